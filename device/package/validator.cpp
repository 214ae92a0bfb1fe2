// validator.cpp: reads, hashes and judges a package.
#include "device/package/validator.hpp"

#include "device/package/detail/rules.hpp"
#include "device/package/file_tree.hpp"
#include "device/package/limits.hpp"
#include "device/package/package_files.hpp"
#include "device/package/sha256.hpp"
#include "device/program/byte_reader.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

namespace duet::device {
namespace detail {

std::optional<std::span<const std::byte>> Subject::bytes(const std::string& path) const {
  const auto found = files.find(path);
  if (found == files.end() || found->second.sha256.empty()) return std::nullopt;
  return found->second.file->bytes();
}

void Subject::report(Code code, const std::string& key, std::string message) const {
  findings.add(code, manifest_file, key, std::move(message));
}

void Subject::report_file(Code code, const std::string& file, std::string message) const {
  // Readers name the file themselves; the finding has it in a field of its own.
  if (message.rfind(file + ": ", 0) == 0) message.erase(0, file.size() + 2);
  findings.add(code, file, "", std::move(message));
}

std::string key_of(const Section& section, const char* field) {
  return "sections." + section.name + "." + field;
}
std::string key_of(const Graph& graph, const char* field) {
  return "graphs." + graph.name + "." + field;
}
std::string key_of(const Model& model, const char* field) {
  return "models." + model.name + "." + field;
}

const Model* owner_of(const Manifest& manifest, const Graph& graph) {
  for (const Model& model : manifest.models) {
    if (model.prefill == graph.name || model.decode == graph.name) return &model;
  }
  return nullptr;
}

const Section* owned(const Manifest& manifest, const std::string& name, SectionKind kind,
                     const std::string& model) {
  const Section* section = find_section(manifest, name);
  const bool fits = section != nullptr && section->kind == kind && section->model == model;
  return fits ? section : nullptr;
}

const Section* staging(const Manifest& manifest, SectionKind kind, const std::string& model,
                       Engine engine) {
  for (const Section& section : manifest.sections) {
    if (section.kind == kind && section.model == model && section.engine == engine) return &section;
  }
  return nullptr;
}

}   // namespace detail

namespace {

constexpr std::array<const char*, 5> required_files = {
    manifest_file, checksums_file, compatibility_file, provenance_file, memory_report_file};

}   // namespace

/// One validation.
class Validator {
 public:
  Validator(const std::string& directory, const ValidateOptions& options)
      : directory_(directory), options_(options) {}

  ValidationReport run() {
    if (map_files()) {
      read_the_manifest();
      hash_files();
      check_checksums();
      check_signature();
      check_manifest();
    }
    ValidationReport report;
    if (findings_.errors() == 0) report.package = make_package();
    findings_.sort();
    report.findings = std::move(findings_);
    return report;
  }

 private:
  void report(Code code, const std::string& file, std::string message,
              Severity severity = Severity::error) {
    findings_.add(code, file, "", std::move(message), severity);
  }

  /// Maps every regular file below the directory.
  bool map_files() {
    const auto tree = FileTree::open(directory_);
    const auto listing = tree.has_value() ? tree->list() : Result<FileTree::Listing>(tree.error());
    if (listing.has_error()) {
      report(Code::directory_unreadable, "", listing.error().message);
      return false;
    }
    for (const std::string& what : listing->irregular) {
      report(Code::path_escapes, what.substr(0, what.rfind(": ")),
             what + ": only regular files are allowed");
    }
    for (const std::string& path : listing->files) {
      auto file = tree->map(path);
      if (file.has_error()) {
        report(Code::path_escapes, path, file.error().message);
      } else {
        files_.emplace(path, detail::LoadedFile{std::move(*file), ""});
      }
    }
    for (const char* path : required_files) {
      if (files_.count(path) == 0) report(Code::file_missing, path, "the file is not there");
    }
    return true;
  }

  void read_the_manifest() {
    const auto found = files_.find(manifest_file);
    if (found == files_.end()) return;
    auto manifest = read_manifest(as_text(found->second.file->bytes()), findings_);
    if (manifest) manifest_ = std::make_shared<const Manifest>(std::move(*manifest));
  }

  /// Hashes what is not larger than the manifest leads to expect; the rest stays without a hash and
  /// unread.
  void hash_files() {
    std::map<std::string, std::uint64_t> declared;
    if (manifest_ != nullptr) {
      for (const Section& section : manifest_->sections) {
        declared[section.path] = std::min(section.bytes, package_limits::dram_bytes_max);
      }
    }
    for (auto& [path, file] : files_) {
      const auto found = declared.find(path);
      const std::uint64_t limit = std::max(package_limits::undeclared_file_bytes_max,
                                           found == declared.end() ? 0 : found->second);
      if (file.file->bytes().size() > limit) {
        report(
            Code::size_mismatch, path,
            concat("has ", file.file->bytes().size(), " bytes, more than anything says; not read"));
      } else {
        file.sha256 = hex_text(sha256(file.file->bytes()));
      }
    }
  }

  void check_checksums() {
    const auto found = files_.find(checksums_file);
    if (found == files_.end()) return;
    const auto bytes = found->second.file->bytes();
    const auto list = bytes.size() > small_file_bytes_max
                          ? Result<Checksums>(failure("is too large"))
                          : read_checksums(as_text(bytes));
    if (list.has_error())
      return report(Code::checksums_malformed, checksums_file, list.error().message);
    for (const auto& [path, hash] : *list) {
      const auto file = files_.find(path);
      if (path == checksums_file || path == signature_file) {
        report(Code::checksums_malformed, checksums_file, "lists itself or its signature");
      } else if (file == files_.end()) {
        report(Code::listed_file_missing, path, "is listed but not there");
      } else if (!file->second.sha256.empty() && file->second.sha256 != hash) {
        report(Code::hash_wrong, path,
               "has the hash " + file->second.sha256 + ", listed is " + hash);
      }
    }
    for (const auto& [path, file] : files_) {
      if (path != checksums_file && path != signature_file && list->count(path) == 0) {
        report(Code::file_not_listed, path, "is not listed in " + std::string(checksums_file));
      }
    }
  }

  void check_signature() {
    const Severity missing = options_.allow_unsigned ? Severity::warning : Severity::error;
    const auto found = files_.find(signature_file);
    if (found == files_.end()) {
      return report(Code::signature_missing, signature_file, "there is no signature", missing);
    }
    const auto bytes = found->second.file->bytes();
    Signature signature = {};
    if (bytes.size() != signature.size()) {
      return report(Code::signature_malformed, signature_file,
                    concat("has ", bytes.size(), " bytes, not ", signature.size()));
    }
    if (options_.trusted_keys.empty()) {
      trust_ = Trust::unverified;
      return report(Code::signature_unverifiable, signature_file, "no trusted key was given",
                    missing);
    }
    std::copy(bytes.begin(), bytes.end(), signature.begin());
    const auto list = files_.find(checksums_file);
    if (list == files_.end()) return;   // P102
    for (const PublicKey& key : options_.trusted_keys) {
      if (!verify(list->second.file->bytes(), signature, key)) continue;
      trust_ = Trust::verified;
      return;
    }
    report(Code::signature_wrong, signature_file,
           concat("does not fit any of ", options_.trusted_keys.size(), " trusted keys"));
  }

  void check_manifest() {
    if (manifest_ == nullptr) return;
    subject_ = std::make_unique<detail::Subject>(
        detail::Subject{*manifest_, files_, findings_, {}, {}, {}, {}});
    detail::check_structure(*subject_);
    detail::check_targets(*subject_);
    detail::check_addresses(*subject_);
    detail::check_files(*subject_);
    detail::check_programs(*subject_);
    detail::check_tensors(*subject_);
    detail::check_profiles(*subject_);
    detail::check_compatibility_files(*subject_);
  }

  std::shared_ptr<const Package> make_package() {
    const std::shared_ptr<Package> out(new Package());
    out->directory_ = directory_;
    out->manifest_ = manifest_;
    out->trust_ = trust_;
    const Digest digest = sha256(files_.at(checksums_file).file->bytes());
    out->hash_ = hex_text(digest);
    for (std::size_t i = 0; i < 8; ++i) {
      out->hash_number_ = out->hash_number_ << 8 | std::to_integer<std::uint64_t>(digest[i]);
    }
    for (const Graph& graph : manifest_->graphs) {
      auto& programs = out->programs_[graph.name];
      programs.resize(graph.programs.size());
      for (const std::string& name : graph.programs) {
        Program& program = subject_->programs.at(name).program;
        programs.at(program.core) = std::move(program);
      }
    }
    out->goldens_ = std::move(subject_->goldens);
    for (auto& [path, file] : files_) out->files_.emplace(path, std::move(file.file));
    return out;
  }

  const std::string& directory_;
  const ValidateOptions& options_;
  Findings findings_;
  Trust trust_ = Trust::unsigned_;
  std::map<std::string, detail::LoadedFile> files_;
  std::shared_ptr<const Manifest> manifest_;
  std::unique_ptr<detail::Subject> subject_;
};

ValidationReport validate_package(const std::string& directory, const ValidateOptions& options) {
  return Validator{directory, options}.run();
}

}   // namespace duet::device
