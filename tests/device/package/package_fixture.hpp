// package_fixture.hpp: a small dual package for tests, and the means to forge it.
#pragma once

#include "device/package/manifest.hpp"
#include "device/package/packer.hpp"
#include "device/package/validator.hpp"
#include "tests/device/package/scratch.hpp"

#include <functional>
#include <set>
#include <string>

namespace duet::device::test {

/// The key that tests trust (RFC 8032, section 7.1, test 1).
[[nodiscard]] const PrivateKey& test_key();
[[nodiscard]] ValidateOptions trusting();

/// Model files in a scratch directory: a.gguf (qwen3, Q8_0) and b.gguf (llama, F16), tiny and
/// random.
void write_models(const ScratchDirectory& scratch);
[[nodiscard]] PackOptions dual_options(const ScratchDirectory& scratch, const std::string& name);

/// A signed dual package of the two tiny models with computed goldens. Built once a process, kept
/// to its end; read only.
[[nodiscard]] const std::string& tiny_package();

/// A copy of tiny_package() to be changed.
class Forgery {
 public:
  Forgery();
  [[nodiscard]] const std::string& directory() const { return directory_; }
  [[nodiscard]] std::string at(const std::string& path) const { return directory_ + "/" + path; }

  Manifest manifest;   ///< changed freely; seal() writes it.

  [[nodiscard]] Section& section(const std::string& name);
  [[nodiscard]] Graph& graph(const std::string& name);
  [[nodiscard]] std::string read(const std::string& path) const;
  void write(const std::string& path, const std::string& bytes) const;
  void patch(const std::string& path, std::size_t at, const std::string& bytes) const;

  /// Writes the manifest with the hashes of the files as they are now, lists every file and signs
  /// with the trusted key: only the rule that the forgery breaks can refuse it. `refresh`: memory
  /// lines and report follow the sections too.
  void seal(bool refresh = true);
  /// Lists and signs without writing the manifest.
  void seal_files() const;

  [[nodiscard]] ValidationReport validate() const;

 private:
  ScratchDirectory scratch_;
  std::string directory_;
};

/// The codes of all errors, as texts.
[[nodiscard]] std::set<std::string> error_codes(const ValidationReport& report);

}   // namespace duet::device::test
