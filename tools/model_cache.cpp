// model_cache.cpp: a directory a set of models, named by a hash of all that matters.
#include "tools/model_cache.hpp"

#include "device/package/file_tree.hpp"
#include "device/package/mapped_file.hpp"
#include "device/package/package_files.hpp"
#include "device/package/sha256.hpp"
#include "device/package/signature.hpp"
#include "device/package/validator.hpp"
#include "device/program/byte_reader.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <thread>

namespace duet::tools {

namespace {

using device::Result;

namespace fs = std::filesystem;

constexpr const char* key_name = "/key.pem";
constexpr const char* public_key_name = "/key.pub";
constexpr const char* lock_name = "/lock";

/// One process packs at a time; the lock goes with the process.
class CacheLock {
 public:
  explicit CacheLock(const std::string& cache)
      : file_(::open((cache + lock_name).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)) {}
  ~CacheLock() {
    if (file_ >= 0) ::close(file_);
  }
  CacheLock(const CacheLock&) = delete;
  CacheLock& operator=(const CacheLock&) = delete;

  /// Waits for another packer, an hour at most: the largest models take minutes.
  Result<void> take(const std::string& cache) {
    constexpr int tries_max = 36000;
    constexpr std::chrono::milliseconds pause{100};
    for (int i = 0; file_ >= 0 && i < tries_max; ++i) {
      if (::flock(file_, LOCK_EX | LOCK_NB) == 0) return {};
      if (errno != EWOULDBLOCK && errno != EINTR) break;
      std::this_thread::sleep_for(pause);
    }
    return device::failure("cannot lock the cache ", cache, ": ", std::strerror(errno));
  }

 private:
  int file_;
};

/// Whole or not at all, whatever was there.
Result<void> write_file(const std::string& path, const std::string& text, mode_t mode) {
  const std::string beside = path + ".new";
  ::unlink(beside.c_str());
  const auto written = device::write_new_file(beside, device::as_byte_span(text), mode);
  if (!written) return written.error();
  if (std::rename(beside.c_str(), path.c_str()) == 0) return {};
  return device::failure(path, ": ", std::strerror(errno));
}

Result<device::PrivateKey> new_key(const std::string& path) {
  auto key = device::generate_key();
  if (!key) return key;
  const auto pem = device::private_key_pem(*key);
  if (!pem) return pem.error();
  const auto written = write_file(path, *pem, 0600);
  if (!written) return written.error();
  return key;
}

/// The cache's own key pair, made anew if it cannot be read. With the lock.
Result<device::PrivateKey> cache_key(const std::string& cache) {
  auto kept = device::read_private_key(cache + key_name);
  auto key = kept ? std::move(kept) : new_key(cache + key_name);
  if (!key) return key;
  const auto open = device::public_key(*key);
  if (!open) return open.error();
  const auto there = device::read_public_key(cache + public_key_name);
  if (there && *there == *open) return key;
  const auto pem = device::public_key_pem(*open);
  if (!pem) return pem.error();
  const auto written = write_file(cache + public_key_name, *pem, 0644);
  if (!written) return written.error();
  return key;
}

/// Adds each file's hash to its model and returns the name of the package of them all.
Result<std::string> name_of(std::vector<device::PackModel>& models) {
  device::Sha256 hash;
  const auto add = [&hash](const std::string& text) {
    hash.update(device::as_byte_span(text));
    hash.update(device::as_byte_span(std::string(1, '\0')));
  };
  add("duet-package/v1");
  add("numerics 1");
  for (device::PackModel& model : models) {
    const auto file = device::MappedFile::open(model.gguf);
    if (!file) return file.error();
    const device::Digest digest = device::sha256((*file)->bytes());
    model.sha256 = device::hex_text(digest);
    add(model.name);
    add(model.sha256);
  }
  const device::Digest digest = hash.finish();
  return device::hex_text(digest).substr(0, 32);
}

/// A sound package, signed by the cache's key, made of these very files.
bool is_valid(const CachedPackage& package, const std::vector<device::PackModel>& models) {
  const auto key = device::read_public_key(package.public_key);
  if (!key) return false;
  device::ValidateOptions options;
  options.trusted_keys.push_back(*key);
  const auto report = device::validate_package(package.directory, options);
  if (report.package == nullptr) return false;
  for (const device::PackModel& model : models) {
    const device::Model* const packed = device::find_model(report.package->manifest(), model.name);
    if (packed == nullptr || packed->source_sha256 != model.sha256) return false;
  }
  return true;
}

/// What was left by packers that died, and what stands in the way under the package's name. With
/// the lock.
Result<void> clear_away(const std::string& cache, const std::string& directory) {
  std::error_code error;
  std::vector<fs::path> left;
  for (const fs::directory_entry& entry : fs::directory_iterator(cache, error)) {
    const std::string name = entry.path().filename().string();
    if (name.find(".partial-") != std::string::npos) left.push_back(entry.path());
  }
  for (const fs::path& path : left) fs::remove_all(path, error);
  const std::string aside = directory + ".damaged";
  if (!fs::exists(fs::symlink_status(directory, error))) return {};
  fs::remove_all(aside, error);
  fs::rename(directory, aside, error);
  if (!error) return {};
  return device::failure(directory, ": is no package and cannot be moved away: ", error.message());
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
  device::PackOptions options;
  for (const auto& [alias, path] : models) {
    device::PackModel model;
    model.name = alias;
    model.gguf = path;
    model.chip = static_cast<std::uint32_t>(options.models.size());
    options.models.push_back(std::move(model));
  }
  const auto name = name_of(options.models);
  if (!name) return name.error();
  CachedPackage package{cache + "/" + *name, cache + public_key_name, false};
  // Without the lock and the private key, so that a cache can be read that cannot be written.
  if (is_valid(package, options.models)) return package;

  std::error_code error;
  fs::create_directories(cache, error);
  if (error) return device::failure("cannot make the cache ", cache, ": ", error.message());
  CacheLock lock(cache);
  const auto taken = lock.take(cache);
  if (!taken) return taken.error();
  if (is_valid(package, options.models)) return package;   // another one was faster
  const auto cleared = clear_away(cache, package.directory);
  if (!cleared) return cleared.error();
  const auto key = cache_key(cache);
  if (!key) return key.error();
  options.directory = package.directory;
  options.key = &*key;
  const auto built = device::build_package(options, progress);
  if (!built) return built.error();
  package.packed = true;
  return package;
}

}   // namespace duet::tools
