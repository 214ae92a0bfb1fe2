// packer.cpp: builds a package beside its place and moves it there when it is whole.
#include "device/package/packer.hpp"

#include "device/package/budget.hpp"
#include "device/package/detail/pack_model.hpp"
#include "device/package/file_tree.hpp"
#include "device/package/limits.hpp"
#include "device/package/manifest_yaml.hpp"
#include "device/package/package_files.hpp"
#include "device/package/validator.hpp"
#include "device/program/byte_reader.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

namespace duet::device {
namespace {

namespace fs = std::filesystem;

constexpr std::uint32_t context_min = 32;   // a computed golden takes 31 positions

/// After a loss of power the new name must not stand for files without their bytes.
Result<void> sync_directory(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const bool synced = fd >= 0 && ::syncfs(fd) == 0;
  const int error = errno;
  if (fd >= 0) ::close(fd);
  if (!synced) return failure(path, ": cannot be synced to the disk: ", std::strerror(error));
  return {};
}

/// A directory with a name of its own beside the target; removed unless it was moved away.
class ScratchDirectory {
 public:
  static Result<ScratchDirectory> create(const std::string& target) {
    std::error_code ec;
    const fs::path parent = fs::path(target).parent_path();
    if (!parent.empty()) fs::create_directories(parent, ec);
    if (ec) return failure(parent.string(), ": cannot be created: ", ec.message());
    std::string path = target + ".partial-XXXXXX";
    if (::mkdtemp(path.data()) == nullptr) {
      return failure(path, ": cannot be created: ", std::strerror(errno));
    }
    return ScratchDirectory{std::move(path)};
  }
  ~ScratchDirectory() {
    std::error_code ignored;   // nothing more can be done about what will not go away
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }
  ScratchDirectory(ScratchDirectory&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  ScratchDirectory& operator=(ScratchDirectory&&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }

  /// Syncs and renames to `target`; an older package there moves aside first and is removed
  /// afterwards.
  Result<void> move_to(const std::string& target) {
    const auto synced = sync_directory(path_);
    if (synced.has_error()) return synced.error();
    std::error_code ec;
    const std::string aside = path_ + ".old";
    const bool old = fs::exists(fs::symlink_status(target, ec));
    if (old) fs::rename(target, aside, ec);
    if (!old || !ec) {
      ec.clear();
      fs::rename(path_, target, ec);
      if (ec && old) {
        std::error_code ignored;   // the first error is the one to report
        fs::rename(aside, target, ignored);
      }
    }
    if (ec) return failure(target, ": the package cannot be moved there: ", ec.message());
    path_.clear();
    if (old) fs::remove_all(aside, ec);
    return {};
  }

 private:
  explicit ScratchDirectory(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

Result<void> check_options(const PackOptions& options) {
  if (options.models.empty() || options.models.size() > package_limits::models_max) {
    return failure("a package holds one or two models, not ", options.models.size());
  }
  std::set<std::string> names;
  std::set<std::string> aliases;
  std::set<std::uint32_t> chips;
  for (const PackModel& model : options.models) {
    const std::string& alias = model.alias.empty() ? model.name : model.alias;
    for (const std::string* name : {&model.name, &alias}) {
      if (!is_plain_name(*name)) {
        return failure(in_quotes(*name), ": a name has letters, digits, '.', '_' and '-' only");
      }
    }
    if (model.name == "tokenizer") return failure("a model cannot be named 'tokenizer'");
    if (model.chip >= package_limits::chips_max) {
      return failure("chip ", model.chip, " does not exist; there are ", package_limits::chips_max);
    }
    if (!names.insert(model.name).second || !aliases.insert(alias).second ||
        !chips.insert(model.chip).second) {
      return failure("two models have the same name, alias or chip");
    }
  }
  if (options.context < context_min) {
    return failure("a context of ", options.context, " is below ", context_min);
  }
  if (options.kv_slots == 0 || options.kv_slots > package_limits::kv_slots_max) {
    return failure(options.kv_slots, " KV slots are not 1 to ", package_limits::kv_slots_max);
  }
  if (options.dram_bytes_per_chip <= package_limits::guard_bytes ||
      options.dram_bytes_per_chip > package_limits::dram_bytes_max) {
    return failure(options.dram_bytes_per_chip, " bytes of DRAM a chip are out of range");
  }
  return {};
}

/// An existing target must be asked for and must be a package: nothing else is ever removed.
Result<void> check_target(const PackOptions& options, const std::string& target) {
  std::error_code ec;
  if (target.empty()) return failure("no output directory was given");
  if (!fs::exists(fs::symlink_status(target, ec))) return {};
  if (!options.replace)
    return failure(target, ": exists already; choose another place or replace it");
  const bool package =
      fs::is_directory(fs::symlink_status(target, ec)) &&
      (fs::exists(fs::path(target) / manifest_file, ec) || fs::is_empty(target, ec));
  if (!package) return failure(target, ": is not a package, so it is not replaced");
  return {};
}

/// The first half of a hash over all that the result depends on.
BuildId make_build_id(const PackOptions& options, const std::vector<detail::ModelInput>& inputs) {
  std::string text =
      concat("duet-pack ", detail::packer_version, "\n", manifest_schema, "\n", options.context,
             " ", options.kv_slots, " ", options.dram_bytes_per_chip, "\n");
  for (const detail::ModelInput& input : inputs) {
    text += concat(input.options.name, " ", input.options.alias, " ", input.options.chip, " ",
                   input.sha256, " ", input.golden_sha256, "\n");
  }
  const Digest digest = sha256(as_byte_span(text));
  BuildId id = {};
  std::copy_n(digest.begin(), id.size(), id.begin());
  return id;
}

Manifest make_manifest(const PackOptions& options, const BuildId& build_id) {
  Manifest manifest;
  manifest.schema = manifest_schema;
  manifest.kind = options.models.size() == 2 ? "dual" : "single";
  manifest.build_id = build_id_text(build_id);
  manifest.chips = package_limits::chips_max;
  manifest.cores_per_chip = package_limits::cores_max;
  manifest.dram_bytes_per_chip = options.dram_bytes_per_chip;
  return manifest;
}

Result<void> write_documents(const std::vector<detail::ModelInput>& inputs,
                             const Manifest& manifest, detail::OutputTree& out) {
  Provenance provenance;
  provenance.build_id = manifest.build_id;
  provenance.packer = "duet-pack";
  provenance.packer_version = detail::packer_version;
  for (const detail::ModelInput& input : inputs) {
    provenance.sources.push_back({input.options.name, input.sha256, input.golden_sha256});
  }
  const std::array<std::pair<const char*, std::string>, 4> files = {{
      {manifest_file, write_manifest(manifest)},
      {memory_report_file, memory_report(manifest)},
      {compatibility_file, compatibility_text()},
      {provenance_file, write_provenance(provenance)},
  }};
  for (const auto& [path, text] : files) {
    const auto written = out.put(path, std::string_view(text));
    if (written.has_error()) return written.error();
  }
  return {};
}

/// The package must pass its own validator: a packer that writes nonsense must not get away with
/// it.
Result<PackResult> judge(const std::string& directory, const PackOptions& options) {
  ValidateOptions validate;
  validate.allow_unsigned = true;
  if (options.key != nullptr) {
    const auto key = public_key(*options.key);
    if (key.has_error()) return key.error();
    validate.trusted_keys.push_back(*key);
  }
  const ValidationReport report = validate_package(directory, validate);
  if (report.package == nullptr) {
    return failure("the new package does not validate: ",
                   finding_text(report.findings.list().front()));
  }
  PackResult result;
  result.build_id = report.package->manifest().build_id;
  result.hash = report.package->hash();
  std::error_code ec;
  for (const auto& entry : fs::recursive_directory_iterator(directory, ec)) {
    if (entry.is_regular_file(ec)) result.bytes += entry.file_size(ec);
  }
  return result;
}

/// Writes the list of `checksums` and, with a key, its signature.
Result<void> seal(const std::string& directory, const Checksums& checksums, const PrivateKey* key) {
  const std::string text = write_checksums(checksums);
  std::error_code ec;
  for (const char* name : {checksums_file, signature_file})
    fs::remove(fs::path(directory) / name, ec);
  const auto written = write_new_file(directory + "/" + checksums_file, as_byte_span(text));
  if (written.has_error() || key == nullptr) return written;
  const auto signature = sign(as_byte_span(text), *key);
  if (signature.has_error()) return signature.error();
  return write_new_file(directory + "/" + signature_file, *signature);
}

}   // namespace

Result<Manifest> plan_package(const PackOptions& options) {
  const auto checked = check_options(options);
  if (checked.has_error()) return checked.error();
  Manifest manifest = make_manifest(options, BuildId{});
  detail::OutputTree nothing{""};
  for (const PackModel& model : options.models) {
    detail::ModelInput input;
    input.options = model;
    if (input.options.alias.empty()) input.options.alias = model.name;
    auto gguf = Gguf::open(model.gguf);
    if (gguf.has_error()) return gguf.error();
    input.gguf = std::make_unique<Gguf>(std::move(*gguf));
    auto source = read_model_source(*input.gguf);
    if (source.has_error()) return source.error();
    input.source = std::move(*source);
    input.kv_slots = options.kv_slots;
    input.context = std::min(options.context, input.source.config.context);
    const detail::Step silent = [](const char*, std::uint64_t, std::uint64_t) {};
    const auto added = detail::add_model(input, BuildId{}, nothing, manifest, silent);
    if (added.has_error()) return added.error();
  }
  auto placed = replanned(manifest, options.context, options.kv_slots, options.dram_bytes_per_chip);
  return placed;
}

Result<void> seal_package(const std::string& directory, const PrivateKey* key) {
  const auto tree = FileTree::open(directory);
  if (tree.has_error()) return tree.error();
  const auto listing = tree->list();
  if (listing.has_error()) return listing.error();
  if (!listing->irregular.empty()) return failure(listing->irregular.front(), " in the package");
  Checksums checksums;
  for (const std::string& path : listing->files) {
    if (path == checksums_file || path == signature_file) continue;
    if (!is_tree_path(path))
      return failure(in_quotes(path), ": is not a name that a package may hold");
    const auto file = tree->map(path);
    if (file.has_error()) return file.error();
    checksums.emplace(path, hex_text(sha256((*file)->bytes())));
  }
  return seal(directory, checksums, key);
}

Result<PackResult> build_package(const PackOptions& options,
                                 const std::function<void(const PackProgress&)>& progress) {
  std::string target = options.directory;
  while (target.size() > 1 && target.back() == '/') target.pop_back();
  auto checked = check_options(options);
  if (checked.has_value()) checked = check_target(options, target);
  if (checked.has_error()) return checked.error();
  std::vector<detail::ModelInput> inputs;
  for (const PackModel& model : options.models) {
    const detail::Step step = [&](const char* what, std::uint64_t done, std::uint64_t total) {
      if (progress) progress({model.name, what, done, total});
    };
    auto input = detail::read_input(model, options.context, options.kv_slots, step);
    if (input.has_error()) return input.error();
    if (!model.sha256.empty() && input->sha256 != model.sha256) {
      return failure(model.gguf, ": it was changed while it was read; start again");
    }
    if (input->context < context_min) {
      return failure(model.gguf, ": a context of ", input->context, " is below ", context_min);
    }
    inputs.push_back(std::move(*input));
  }
  const BuildId build_id = make_build_id(options, inputs);
  auto scratch = ScratchDirectory::create(target);
  if (scratch.has_error()) return scratch.error();
  detail::OutputTree out{scratch->path()};
  Manifest manifest = make_manifest(options, build_id);
  for (const detail::ModelInput& input : inputs) {
    const detail::Step step = [&](const char* what, std::uint64_t done, std::uint64_t total) {
      if (progress) progress({input.options.name, what, done, total});
    };
    const auto added = detail::add_model(input, build_id, out, manifest, step);
    if (added.has_error()) return added.error();
  }
  auto done = detail::place_sections(manifest);
  if (done.has_value()) done = detail::write_command_files(build_id, out, manifest);
  if (done.has_error()) return done.error();
  manifest.memory = memory_lines(manifest);
  done = write_documents(inputs, manifest, out);
  if (done.has_value()) done = seal(scratch->path(), out.hashes(), options.key);
  if (done.has_error()) return done.error();
  if (progress) progress({"", "check", 0, 1});
  auto result = judge(scratch->path(), options);
  if (result.has_error()) return result.error();
  // mkdtemp made it for this user alone; a package is read by a server that runs as another.
  std::error_code ec;
  fs::permissions(scratch->path(), fs::perms(0755), ec);
  done = scratch->move_to(target);
  if (done.has_error()) return done.error();
  return result;
}

}   // namespace duet::device
