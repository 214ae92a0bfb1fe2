// manifest_schema.hpp: the JSON Schema of manifest.yaml, made from its fields.
#pragma once

#include <string>

namespace duet::device {

/// A JSON Schema (draft 2020-12) of what read_manifest() takes: keys, types, spellings and the
/// ranges of single values, one property a line. It is made from manifest_fields.hpp, so that it
/// knows every key that the reader knows, and no other. What several values must be together is the
/// validator's question. The same text every time; ends with a line end. Any thread.
[[nodiscard]] std::string manifest_json_schema();

}   // namespace duet::device
