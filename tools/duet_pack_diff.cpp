// duet_pack_diff.cpp: turns packages into keys with values and compares those.
#include "tools/duet_pack_diff.hpp"

#include "device/package/file_tree.hpp"
#include "device/package/json_text.hpp"
#include "device/package/limits.hpp"
#include "device/package/manifest_fields.hpp"
#include "device/package/manifest_yaml.hpp"
#include "device/package/sha256.hpp"
#include "device/program/byte_reader.hpp"

#include <algorithm>
#include <array>
#include <ostream>
#include <span>
#include <string_view>

namespace duet::tools {
namespace {

using device::json_string;
using device::number_text;

using Keys = std::map<std::string, std::string>;

constexpr std::array<std::string_view, 9> groups = {"package",  "models",     "graphs",
                                                    "sections", "dma_routes", "memory",
                                                    "goldens",  "provenance", "files"};

/// Turns a manifest into one text a key. Items of lists go by their names, so that a new section
/// does not make all later ones differ.
class Flattener {
 public:
  Flattener(Keys& out, std::string prefix) : out_(out), prefix_(std::move(prefix)) {}

  template <typename T>
  void operator()(const char* key, T& value) {
    put(prefix_ + key, value);
  }
  template <typename T>
  void optional(const char* key, T& value) {
    put(prefix_ + key, value);
  }
  void hex(const char* key, std::uint64_t& value) {
    char buffer[24];
    const auto end = std::to_chars(buffer, buffer + sizeof buffer, value, 16);
    out_[prefix_ + key] = "0x" + std::string(buffer, end.ptr);
  }

 private:
  static std::string text(const std::string& value) { return value; }
  static std::string text(bool value) { return value ? "true" : "false"; }
  template <typename T>
  requires(std::is_arithmetic_v<T> && !std::is_same_v<T, bool>) static std::string text(T value) {
    return number_text(value);
  }
  template <typename T>
  requires requires { device::EnumNames<T>::names; }
  static std::string text(T value) {
    return std::string(device::EnumNames<T>::names[static_cast<std::size_t>(value)]);
  }
  static std::string text(device::DType value) {
    const auto& values = device::dtype_values;
    const auto* at = std::find(values.begin(), values.end(), value);
    return std::string(device::dtype_spellings[static_cast<std::size_t>(at - values.begin())]);
  }

  template <typename T>
  requires requires(const T& value) { text(value); }
  void put(const std::string& key, T& value) { out_[key] = text(value); }
  template <typename T>
  void put(const std::string& key, std::optional<T>& value) {
    if (value) put(key, *value);
  }
  template <typename T>
  requires requires(Flattener& archive, T& value) { fields(archive, value); }
  void put(const std::string& key, T& value) {
    Flattener inner{out_, key + "."};
    fields(inner, value);
  }
  template <typename T>
  void put(const std::string& key, std::vector<T>& values) {
    if constexpr (requires(const T& value) { text(value); }) {
      std::string list;
      for (const T& value : values) list += (list.empty() ? "" : ", ") + text(value);
      out_[key] = "[" + list + "]";
    } else if constexpr (requires(const T& value) { value.name; }) {
      for (T& value : values) put(key + "." + value.name, value);
    } else {
      for (T& value : values) put(concat(key, ".chip", value.chip, ".", value.what), value);
    }
  }
  template <typename... T>
  static std::string concat(const T&... parts) {
    return device::concat(parts...);
  }

  Keys& out_;
  std::string prefix_;
};

std::string list_text(const std::vector<std::uint32_t>& tokens) {
  std::string out;
  for (const std::uint32_t token : tokens) out += (out.empty() ? "" : " ") + number_text(token);
  return out;
}

Keys golden_keys(const PackageContent& package) {
  Keys out;
  for (const auto& [model, golden] : package.goldens) {
    out[model + ".source"] = golden.source;
    out[model + ".prompts"] = number_text(golden.prompts.size());
    for (std::size_t i = 0; i < golden.prompts.size(); ++i) {
      const std::string key = device::concat(model, ".prompts[", i, "].");
      out[key + "prompt_ids"] = list_text(golden.prompts[i].prompt_ids);
      out[key + "tokens"] = list_text(golden.prompts[i].tokens);
    }
  }
  return out;
}

Keys provenance_keys(const PackageContent& package) {
  Keys out;
  if (!package.provenance) return out;
  const device::Provenance& from = *package.provenance;
  out["build_id"] = from.build_id;
  out["packer"] = from.packer;
  out["packer_version"] = number_text(from.packer_version);
  for (const auto& source : from.sources) {
    out["sources." + source.model + ".sha256"] = source.sha256;
    out["sources." + source.model + ".golden_sha256"] = source.golden_sha256;
  }
  return out;
}

Keys file_keys(const PackageContent& package) {
  Keys out;
  for (const auto& [path, file] : package.files) {
    if (path == device::checksums_file || path == device::signature_file) continue;
    out[path] = device::concat(file.bytes, " bytes, ", file.sha256);
  }
  return out;
}

void compare_keys(std::string_view group, const Keys& a, const Keys& b,
                  std::vector<Difference>& out) {
  auto at = a.begin();
  auto to = b.begin();
  while (at != a.end() || to != b.end()) {
    const bool only_a = to == b.end() || (at != a.end() && at->first < to->first);
    const bool only_b = !only_a && (at == a.end() || to->first < at->first);
    if (only_a) {
      out.push_back({std::string(group), at->first, at->second, ""});
    } else if (only_b) {
      out.push_back({std::string(group), to->first, "", to->second});
    } else if (at->second != to->second) {
      out.push_back({std::string(group), at->first, at->second, to->second});
    }
    if (!only_b) ++at;
    if (!only_a) ++to;
  }
}

/// The keys of a manifest by group; what is in no list belongs to the package.
std::map<std::string, Keys, std::less<>> manifest_groups(const device::Manifest& manifest) {
  device::Manifest copy = manifest;   // fields() takes references, for reading
  Keys all;
  Flattener flattener{all, ""};
  fields(flattener, copy);
  std::map<std::string, Keys, std::less<>> out;
  for (auto& [key, value] : all) {
    const std::string first = key.substr(0, key.find('.'));
    const bool listed = std::find(groups.begin() + 1, groups.end(), first) != groups.end();
    out[listed ? first : "package"].emplace(key, std::move(value));
  }
  return out;
}

/// SHA-256 in hex. A file that is larger than anything says is not read: a sparse one costs nothing
/// to make and hours to hash.
std::string hash_of(const device::Manifest& manifest, const std::string& path,
                    std::span<const std::byte> bytes) {
  std::uint64_t limit = device::package_limits::undeclared_file_bytes_max;
  for (const device::Section& section : manifest.sections) {
    if (section.path == path) {
      limit = std::max(limit, std::min(section.bytes, device::package_limits::dram_bytes_max));
    }
  }
  return bytes.size() > limit ? "too large to be hashed" : device::hex_text(device::sha256(bytes));
}

/// A line of the screen: --json has the whole.
std::string shown(const std::string& text) {
  constexpr std::size_t shown_max = 60;
  return text.size() <= shown_max ? text : text.substr(0, shown_max - 3) + "...";
}

}   // namespace

device::Result<PackageContent> read_content(const std::string& directory) {
  const auto tree = device::FileTree::open(directory);
  if (tree.has_error()) return tree.error();
  const auto listing = tree->list();
  if (listing.has_error()) return listing.error();
  PackageContent out;
  out.directory = directory;
  std::map<std::string, std::shared_ptr<const device::MappedFile>> mapped;
  for (const std::string& path : listing->files) {
    auto file = tree->map(path);
    if (file.has_error()) return file.error();
    mapped.emplace(path, std::move(*file));
  }
  const auto text = [&](const std::string& path) -> std::optional<std::string_view> {
    const auto found = mapped.find(path);
    if (found == mapped.end()) return std::nullopt;
    return device::as_text(found->second->bytes());
  };
  const auto manifest_text = text(device::manifest_file);
  if (!manifest_text) return device::failure(directory, ": has no ", device::manifest_file);
  device::Findings findings;
  auto manifest = device::read_manifest(*manifest_text, findings);
  if (!manifest)
    return device::failure(directory, ": ", device::finding_text(findings.list().front()));
  out.manifest = std::move(*manifest);
  for (const auto& [path, file] : mapped) {
    out.files[path] = {hash_of(out.manifest, path, file->bytes()), file->bytes().size()};
  }
  if (const auto provenance = text(device::provenance_file)) {
    if (provenance->size() <= device::small_file_bytes_max) {
      auto read = device::read_provenance(*provenance);
      if (read.has_value()) out.provenance = std::move(*read);
    }
  }
  for (const device::Model& model : out.manifest.models) {
    const auto golden = text(model.golden);
    if (!golden) continue;
    auto read = device::read_golden(*golden, model.golden);
    if (read.has_value()) out.goldens.emplace(model.name, std::move(*read));
  }
  return out;
}

std::vector<Difference> compare(const PackageContent& a, const PackageContent& b) {
  std::vector<Difference> out;
  auto from = manifest_groups(a.manifest);
  auto to = manifest_groups(b.manifest);
  from["goldens"] = golden_keys(a);
  to["goldens"] = golden_keys(b);
  from["provenance"] = provenance_keys(a);
  to["provenance"] = provenance_keys(b);
  from["files"] = file_keys(a);
  to["files"] = file_keys(b);
  for (const std::string_view group : groups) {
    compare_keys(group, from[std::string(group)], to[std::string(group)], out);
  }
  return out;
}

void print_differences(const std::vector<Difference>& differences, std::ostream& out) {
  std::string group;
  for (const Difference& difference : differences) {
    if (difference.group != group) out << difference.group << ":\n";
    group = difference.group;
    if (difference.a.empty()) {
      out << "  + " << difference.key << ": " << shown(difference.b) << "\n";
    } else if (difference.b.empty()) {
      out << "  - " << difference.key << ": " << shown(difference.a) << "\n";
    } else {
      out << "  ~ " << difference.key << ": " << shown(difference.a) << " -> "
          << shown(difference.b) << "\n";
    }
  }
}

std::string differences_json(const PackageContent& a, const PackageContent& b,
                             const std::vector<Difference>& differences) {
  const auto side = [](const std::string& text) {
    return text.empty() ? std::string("null") : json_string(text);
  };
  return "{\"a\": " + json_string(a.directory) + ", \"b\": " + json_string(b.directory) +
         ", \"equal\": " + (differences.empty() ? "true" : "false") + ", \"differences\": " +
         device::json_array(differences,
                            [&](const Difference& d) {
                              return "{\"group\": " + json_string(d.group) +
                                     ", \"key\": " + json_string(d.key) + ", \"a\": " + side(d.a) +
                                     ", \"b\": " + side(d.b) + "}";
                            }) +
         "}";
}

}   // namespace duet::tools
