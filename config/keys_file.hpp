// keys_file.hpp: the file of clients' keys.
//
// One key a line: `NAME SECRET` or `NAME SECRET admin`, separated by spaces or tabs; empty lines
// and lines that begin with '#' are passed over. A name has 1 to 128 letters, digits and . _ - and
// is there once, as is each secret: 16 to 256 visible ASCII characters.
#pragma once

#include "config/finding.hpp"
#include "http/server_options.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace duet::config {

/// All keys of the text; findings name `file`, the line and "security.keys_file", and never hold a
/// secret. A file without a key is an error.
[[nodiscard]] std::vector<http::ApiKey> parse_keys(std::string_view text, const std::string& file,
                                                   Findings& findings);

/// Reads the file first. A file that others can read or change is a warning.
[[nodiscard]] std::vector<http::ApiKey> load_keys(const std::string& file, Findings& findings);

}   // namespace duet::config
