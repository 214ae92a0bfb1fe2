// validator.cpp: reads, hashes and judges a package.
#include "device/package/validator.hpp"

#include "device/package/detail/rules.hpp"
#include "device/package/detail/validator_seam.hpp"
#include "device/package/file_tree.hpp"
#include "device/package/limits.hpp"
#include "device/package/package_files.hpp"
#include "device/package/sha256.hpp"
#include "device/program/byte_reader.hpp"
#include "runtime/assert.hpp"

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
  Validator(const std::string& directory, const ValidateOptions& options,
            const detail::ValidatorSeam& seam)
      : directory_(directory), options_(options), seam_(seam) {}

  ValidationReport run() {
    if (map_files()) {
      read_the_manifest();
      hash_files();
      check_checksums();
      check_signature();
      if (seam_.after_hashing) seam_.after_hashing();
      check_manifest();
      check_unchanged();
    }
    ValidationReport report;
    report.signature = verdict_;
    report.signer = signer_;
    if (!refused()) report.package = make_package();
    findings_.sort();
    report.findings = std::move(findings_);
    return report;
  }

 private:
  void report(Code code, const std::string& file, std::string message,
              Severity severity = Severity::error) {
    findings_.add(code, file, "", std::move(message), severity);
  }

  /// True if an error stands that no test has switched off.
  [[nodiscard]] bool refused() const {
    const auto& list = findings_.list();
    return findings_.errors() + findings_.warnings() > list.size() ||
           std::any_of(list.begin(), list.end(), [&](const Finding& finding) {
             return finding.severity == Severity::error &&
                    seam_.switched_off.count(finding.code) == 0;
           });
  }

  /// Maps every regular file below the directory.
  bool map_files() {
    auto tree = FileTree::open(directory_);
    const auto listing = tree.has_value() ? tree->list() : Result<FileTree::Listing>(tree.error());
    if (listing.has_error()) {
      report(Code::directory_unreadable, "", listing.error().message);
      return false;
    }
    tree_.emplace(std::move(*tree));
    listing_ = *listing;
    for (const std::string& what : listing->irregular) {
      report(Code::path_escapes, what.substr(0, what.rfind(": ")),
             what + ": only regular files are allowed");
    }
    for (const std::string& path : listing->files) {
      stamps_.emplace(path, tree_->stamp(path));   // before the bytes: a later change shows
      auto file = tree_->map(path);
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
      verdict_ = SignatureVerdict::malformed;
      return report(Code::signature_malformed, signature_file,
                    concat("has ", bytes.size(), " bytes, not ", signature.size()));
    }
    std::copy(bytes.begin(), bytes.end(), signature.begin());
    const auto list = files_.find(checksums_file);
    const auto find_signer = [&](const std::vector<PublicKey>& keys) {
      if (list == files_.end()) return false;
      for (const PublicKey& key : keys) {
        if (!verify(list->second.file->bytes(), signature, key)) continue;
        signer_ = key;
        return true;
      }
      return false;
    };
    // A revoked key comes first: nothing that also trusts it may bring it back.
    if (find_signer(options_.revoked_keys)) {
      verdict_ = SignatureVerdict::revoked;
      return report(Code::signature_revoked, signature_file,
                    "is by the revoked key " + hex_text(*signer_));
    }
    if (options_.trusted_keys.empty()) {
      verdict_ = SignatureVerdict::unverifiable;
      trust_ = Trust::unverified;
      return report(Code::signature_unverifiable, signature_file, "no trusted key was given",
                    missing);
    }
    if (find_signer(options_.trusted_keys)) {
      verdict_ = SignatureVerdict::verified;
      trust_ = Trust::verified;
      return;
    }
    verdict_ = SignatureVerdict::stranger;
    if (list == files_.end()) return;   // P102
    report(Code::signature_wrong, signature_file,
           concat("does not fit any of ", options_.trusted_keys.size(), " trusted keys"));
  }

  /// What was judged must be what lies there at the end: the files are mapped, not copied.
  void check_unchanged() {
    for (const auto& [path, before] : stamps_) {
      if (tree_->stamp(path) != before) {
        report(Code::package_changed, path, "was written or replaced during the validation");
      }
    }
    const auto now = tree_->list();
    if (now.has_error() || now->files != listing_.files || now->irregular != listing_.irregular) {
      report(Code::package_changed, "", "files came or went during the validation");
    }
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
        const auto read = subject_->programs.find(name);
        const bool usable =
            read != subject_->programs.end() && read->second.program.core < programs.size();
        // Without a rule switched off, P113, P118 and P208 refused it before.
        DUET_ASSERT(usable || !seam_.switched_off.empty(), programs.size());
        if (usable) programs[read->second.program.core] = std::move(read->second.program);
      }
    }
    out->goldens_ = std::move(subject_->goldens);
    for (auto& [path, file] : files_) out->files_.emplace(path, std::move(file.file));
    return out;
  }

  const std::string& directory_;
  const ValidateOptions& options_;
  const detail::ValidatorSeam& seam_;
  Findings findings_;
  SignatureVerdict verdict_ = SignatureVerdict::missing;
  std::optional<PublicKey> signer_;
  std::optional<FileTree> tree_;
  FileTree::Listing listing_;
  std::map<std::string, FileTree::Stamp> stamps_;
  Trust trust_ = Trust::unsigned_;
  std::map<std::string, detail::LoadedFile> files_;
  std::shared_ptr<const Manifest> manifest_;
  std::unique_ptr<detail::Subject> subject_;
};

ValidationReport detail::validate_with_seam(const std::string& directory,
                                            const ValidateOptions& options,
                                            const ValidatorSeam& seam) {
  return Validator{directory, options, seam}.run();
}

ValidationReport validate_package(const std::string& directory, const ValidateOptions& options) {
  return detail::validate_with_seam(directory, options, {});
}

std::string_view name_of(SignatureVerdict verdict) {
  switch (verdict) {
    case SignatureVerdict::missing:
      return "missing";
    case SignatureVerdict::malformed:
      return "malformed";
    case SignatureVerdict::unverifiable:
      return "unverifiable";
    case SignatureVerdict::stranger:
      return "stranger";
    case SignatureVerdict::revoked:
      return "revoked";
    case SignatureVerdict::verified:
      break;
  }
  return "verified";
}

std::string signature_text(const ValidationReport& report) {
  std::string out = "signature " + std::string(name_of(report.signature));
  if (report.signer) out += ", signed by " + hex_text(*report.signer);
  return out;
}

}   // namespace duet::device
