// emulated_board.cpp: binds the board to packages in directories and to the kernels.
#include "device/emulator/emulated_board.hpp"

#include "device/package/tokenizer_metadata.hpp"
#include "device/package/validator.hpp"

#include <algorithm>
#include <utility>

namespace duet::device::emulator {
namespace {

class DirectoryImage final : public PackageImage {
 public:
  explicit DirectoryImage(std::shared_ptr<const Package> package) : package_(std::move(package)) {}

  [[nodiscard]] const Manifest& manifest() const override { return package_->manifest(); }
  [[nodiscard]] const std::string& hash() const override { return package_->hash(); }
  [[nodiscard]] result<std::vector<Program>> programs(const Graph& graph) const override {
    return package_->programs(graph.name);
  }
  [[nodiscard]] result<std::span<const std::byte>> file(const Section& section) const override {
    return package_->file(section.path);
  }
  [[nodiscard]] result<std::vector<std::uint32_t>> ordinary_tokens(
      const Model& model) const override {
    auto found = device::ordinary_tokens(package_->tokenizer(model.name), model.tokenizer);
    if (!found) return Failure{errc::package_invalid, found.error().message};
    return std::move(*found);
  }

 private:
  std::shared_ptr<const Package> package_;
};

}   // namespace

result<std::unique_ptr<PackageImage>> open_package_directory(
    const std::filesystem::path& directory) {
  ValidateOptions options;
  options.allow_unsigned = true;
  ValidationReport report = validate_package(directory.string(), options);
  if (report.package == nullptr) {
    const auto& findings = report.findings.list();
    const auto first = std::find_if(findings.begin(), findings.end(), [](const Finding& finding) {
      return finding.severity == Severity::error;
    });
    return Failure{errc::package_invalid,
                   directory.string() + ": " +
                       (first == findings.end() ? "not valid" : first->message) + " (" +
                       std::to_string(report.findings.errors()) + " findings in all)"};
  }
  return std::unique_ptr<PackageImage>{std::make_unique<DirectoryImage>(std::move(report.package))};
}

std::unique_ptr<ThreadedBoard> make_emulated_board(ThreadedBoardOptions options) {
  if (!options.open_package) options.open_package = open_package_directory;
  if (!options.make_executable) options.make_executable = Executable::create;
  return std::make_unique<ThreadedBoard>(std::move(options));
}

}   // namespace duet::device::emulator
