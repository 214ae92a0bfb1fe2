// package_files.cpp: writes and reads the small files of a package.
#include "device/package/package_files.hpp"

#include "device/package/file_tree.hpp"
#include "device/package/json_text.hpp"
#include "device/package/limits.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>

#include <algorithm>
#include <array>

namespace duet::device {
namespace {

namespace json = boost::json;

constexpr std::uint32_t numerics = 1;

/// What compatibility.json says, in its order. All values are texts or the one number `numerics`.
constexpr std::array<std::array<const char*, 2>, 7> formats = {{
    {"package", "duet-package/v1"},
    {"program", "DUETPRG1"},
    {"command", "DUETCMD1"},
    {"csr", "DUETCSR1"},
    {"parameter_map", "DUETMAP1"},
    {"tokenizer", "duet-tokenizer/v1"},
    {"golden", "duet-golden/v1"},
}};

bool is_sha256(std::string_view text) {
  return text.size() == 64 && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

std::string text_of(const json::object& object, const char* key) {
  const json::value* value = object.if_contains(key);
  const json::string* text = value == nullptr ? nullptr : value->if_string();
  return text == nullptr ? std::string() : std::string(text->data(), text->size());
}

std::size_t kind_line(SectionKind kind) {
  switch (kind) {
    case SectionKind::parameters:
      return 0;
    case SectionKind::kv:
      return 1;
    case SectionKind::workspace:
      return 2;
    case SectionKind::program:
      return 3;
    case SectionKind::input:
    case SectionKind::output:
      return 4;
    case SectionKind::parameter_map:
    case SectionKind::command:
    case SectionKind::csr:
      break;
  }
  return 5;
}
constexpr std::array<const char*, 6> kind_lines = {"weights", "kv", "workspace",
                                                   "code",    "io", "metadata"};

}   // namespace

std::string write_checksums(const Checksums& checksums) {
  std::string out;
  for (const auto& [path, hash] : checksums) out += hash + "  " + path + "\n";
  return out;
}

Result<Checksums> read_checksums(std::string_view text) {
  Checksums out;
  std::string last;
  std::size_t line = 0;
  while (!text.empty()) {
    ++line;
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos) return failure("line ", line, " is cut short");
    const std::string_view entry = text.substr(0, end);
    text.remove_prefix(end + 1);
    if (entry.size() < 67 || !is_sha256(entry.substr(0, 64)) || entry.substr(64, 2) != "  ") {
      return failure("line ", line, " is not a hash, two blanks and a path");
    }
    std::string path{entry.substr(66)};
    if (!is_tree_path(path))
      return failure("line ", line, ": ", in_quotes(path), " leaves the package");
    if (line > 1 && path <= last) return failure("line ", line, ": the paths are not in order");
    if (line > tree_limits::files_max)
      return failure("more than ", tree_limits::files_max, " lines");
    last = path;
    out.emplace(std::move(path), entry.substr(0, 64));
  }
  if (out.empty()) return failure("the list is empty");
  return out;
}

std::string compatibility_text() {
  std::string out = "{\"numerics\": " + number_text(numerics);
  for (const auto& [key, value] : formats) {
    out += ",\n" + json_string(key) + ": " + json_string(value);
  }
  return out + "}\n";
}

Result<void> check_compatibility(std::string_view text, unsigned& code) {
  code = 601;
  boost::system::error_code ec;
  const json::value root = json::parse({text.data(), text.size()}, ec);
  if (ec) return failure("is not JSON: ", ec.message());
  const json::object* object = root.if_object();
  if (object == nullptr || object->size() != formats.size() + 1) {
    return failure("is not an object of ", formats.size() + 1, " keys");
  }
  for (const auto& [key, value] : formats) {
    const json::value* found = object->if_contains(key);
    if (found == nullptr || !found->is_string()) return failure("the text '", key, "' is missing");
    if (*found != json::value(value)) {
      code = 602;
      return failure("'", key, "' is ", in_quotes(text_of(*object, key)), "; this program has ",
                     value);
    }
  }
  const json::value* number = object->if_contains("numerics");
  if (number == nullptr || !number->is_int64()) return failure("the number 'numerics' is missing");
  if (number->get_int64() != numerics) {
    code = 603;
    return failure("numerics ", number->get_int64(), "; this program has ", numerics);
  }
  return {};
}

std::string write_provenance(const Provenance& provenance) {
  return "{\"format\": \"duet-provenance/v1\",\n\"build_id\": " + json_string(provenance.build_id) +
         ",\n\"packer\": " + json_string(provenance.packer) +
         ",\n\"packer_version\": " + number_text(provenance.packer_version) + ",\n\"sources\": " +
         json_array(provenance.sources,
                    [](const Provenance::Source& source) {
                      return "\n{\"model\": " + json_string(source.model) +
                             ", \"sha256\": " + json_string(source.sha256) +
                             ", \"golden_sha256\": " + json_string(source.golden_sha256) + "}";
                    }) +
         "}\n";
}

Result<Provenance> read_provenance(std::string_view text) {
  boost::system::error_code ec;
  const json::value root = json::parse({text.data(), text.size()}, ec);
  if (ec) return failure("is not JSON: ", ec.message());
  const json::object* object = root.if_object();
  if (object == nullptr || text_of(*object, "format") != "duet-provenance/v1") {
    return failure("is not of the format duet-provenance/v1");
  }
  Provenance out;
  out.build_id = text_of(*object, "build_id");
  out.packer = text_of(*object, "packer");
  const json::value* version = object->if_contains("packer_version");
  const json::value* sources = object->if_contains("sources");
  if (version == nullptr || !version->is_int64() || version->get_int64() < 1 ||
      version->get_int64() > 0xffff || sources == nullptr || !sources->is_array() ||
      sources->get_array().size() > package_limits::models_max) {
    return failure("'packer_version' or 'sources' is missing or malformed");
  }
  out.packer_version = static_cast<std::uint32_t>(version->get_int64());
  for (const json::value& value : sources->get_array()) {
    const json::object* source = value.if_object();
    if (source == nullptr) return failure("a source is not an object");
    out.sources.push_back(
        {text_of(*source, "model"), text_of(*source, "sha256"), text_of(*source, "golden_sha256")});
    if (out.sources.back().model.empty() || !is_sha256(out.sources.back().sha256)) {
      return failure("a source has no model or no hash");
    }
  }
  return out;
}

std::vector<MemoryLine> memory_lines(const Manifest& manifest) {
  std::vector<MemoryLine> out;
  for (std::uint32_t chip = 0; chip < manifest.chips; ++chip) {
    std::array<std::uint64_t, kind_lines.size()> bytes = {};
    std::uint64_t sum = 0;
    std::uint64_t top = 0;
    for (const Section& section : manifest.sections) {
      if (section.chip_mask != std::uint32_t{1} << chip) continue;
      bytes[kind_line(section.kind)] += section.bytes;
      sum += section.bytes;
      top = std::max(top, section.address + section.bytes);
    }
    if (top == 0) continue;
    for (std::size_t i = 0; i < bytes.size(); ++i) out.push_back({chip, kind_lines[i], bytes[i]});
    out.push_back({chip, "fragmentation", top - sum - package_limits::guard_bytes});
    out.push_back({chip, "guard", package_limits::guard_bytes});
  }
  return out;
}

const char* memory_line_of(SectionKind kind) noexcept {
  return kind_lines[kind_line(kind)];
}

std::string memory_report(const Manifest& manifest) {
  std::string out = "# bytes reserved in the DRAM of each chip; build " + manifest.build_id + "\n";
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < manifest.memory.size(); ++i) {
    const MemoryLine& line = manifest.memory[i];
    out += "chip" + number_text(line.chip) + " " + line.what + " " + number_text(line.bytes) + "\n";
    sum += line.bytes;
    if (i + 1 == manifest.memory.size() || manifest.memory[i + 1].chip != line.chip) {
      out += "chip" + number_text(line.chip) + " total " + number_text(sum) + " of " +
             number_text(manifest.dram_bytes_per_chip) + "\n";
      sum = 0;
    }
  }
  return out;
}

}   // namespace duet::device
