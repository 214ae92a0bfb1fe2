// model_cache.cpp: a directory a set of models, named by a hash of all that matters.
#include "tools/model_cache.hpp"

#include "device/package/file_tree.hpp"
#include "device/package/mapped_file.hpp"
#include "device/package/package_files.hpp"
#include "device/package/sha256.hpp"
#include "device/package/signature.hpp"
#include "device/package/validator.hpp"
#include "device/program/byte_reader.hpp"

#include <cstdlib>
#include <filesystem>
#include <system_error>

namespace duet::tools {

namespace {

using device::Result;

constexpr const char* key_name = "/key.pem";
constexpr const char* public_key_name = "/key.pub";

/// The cache's key pair; made by whoever comes first.
Result<device::PrivateKey> cache_key(const std::string& cache) {
  const std::string path = cache + key_name;
  if (!std::filesystem::exists(path)) {
    auto key = device::generate_key();
    if (!key) return key.error();
    const auto pem = device::private_key_pem(*key);
    if (!pem) return pem.error();
    // Refused if another process was faster; then that one's key is the cache's.
    static_cast<void>(device::write_new_file(path, device::as_byte_span(*pem), 0600));
  }
  auto key = device::read_private_key(path);
  if (!key) return key.error();
  if (!std::filesystem::exists(cache + public_key_name)) {
    const auto open = device::public_key(*key);
    if (!open) return open.error();
    const auto pem = device::public_key_pem(*open);
    if (!pem) return pem.error();
    static_cast<void>(
        device::write_new_file(cache + public_key_name, device::as_byte_span(*pem), 0644));
  }
  return key;
}

Result<std::string> name_of(const std::vector<std::pair<std::string, std::string>>& models) {
  device::Sha256 hash;
  const auto add = [&hash](const std::string& text) {
    hash.update(device::as_byte_span(text));
    hash.update(device::as_byte_span(std::string(1, '\0')));
  };
  add("duet-package/v1");
  add("numerics 1");
  for (const auto& [alias, path] : models) {
    const auto file = device::MappedFile::open(path);
    if (!file) return file.error();
    const device::Digest digest = device::sha256((*file)->bytes());
    add(alias);
    add(device::hex_text(digest));
  }
  const device::Digest digest = hash.finish();
  return device::hex_text(digest).substr(0, 32);
}

bool is_valid(const std::string& directory, const std::string& public_key) {
  const auto key = device::read_public_key(public_key);
  if (!key) return false;
  device::ValidateOptions options;
  options.trusted_keys.push_back(*key);
  return device::validate_package(directory, options).package != nullptr;
}

}   // namespace

std::string default_model_cache() {
  const char* const xdg = std::getenv("XDG_CACHE_HOME");   // NOLINT: before any thread
  if (xdg != nullptr && *xdg != '\0') return std::string(xdg) + "/duet";
  const char* const home = std::getenv("HOME");   // NOLINT: before any thread
  if (home != nullptr && *home != '\0') return std::string(home) + "/.cache/duet";
  return "";
}

Result<CachedPackage> package_from_models(
    const std::string& cache, const std::vector<std::pair<std::string, std::string>>& models,
    const std::function<void(const device::PackProgress&)>& progress) {
  std::error_code error;
  std::filesystem::create_directories(cache, error);
  if (error) return device::failure("cannot make the cache ", cache, ": ", error.message());
  const auto name = name_of(models);
  if (!name) return name.error();
  const auto key = cache_key(cache);
  if (!key) return key.error();

  CachedPackage package{cache + "/" + *name, cache + public_key_name, false};
  if (std::filesystem::exists(package.directory) &&
      is_valid(package.directory, package.public_key)) {
    return package;
  }
  device::PackOptions options;
  for (const auto& [alias, path] : models) {
    device::PackModel model;
    model.name = alias;
    model.gguf = path;
    model.chip = static_cast<std::uint32_t>(options.models.size());
    options.models.push_back(std::move(model));
  }
  options.directory = package.directory;
  options.replace = true;   // what is there is damaged, or another process's of the same bytes
  options.key = &*key;
  const auto built = device::build_package(options, progress);
  if (!built) return built.error();
  package.packed = true;
  return package;
}

}   // namespace duet::tools
