// file_tree.cpp: walks a directory tree by file descriptors, never through a link.
#include "device/package/file_tree.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace duet::device {
namespace {

constexpr int directory_flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW;
constexpr int file_flags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  [[nodiscard]] int get() const { return fd_; }
  [[nodiscard]] int release() { return std::exchange(fd_, -1); }
  void reset(int fd) {
    if (fd_ >= 0) ::close(fd_);
    fd_ = fd;
  }

 private:
  int fd_;
};

const char* kind_of(mode_t mode) {
  if (S_ISLNK(mode)) return "symbolic link";
  if (S_ISFIFO(mode)) return "named pipe";
  if (S_ISSOCK(mode)) return "socket";
  return "device";
}

/// Adds what lies in the directory `fd` (taken over) with `prefix`; recursion is bounded by
/// depth_max.
Result<void> list_into(int fd, const std::string& prefix, std::size_t depth,
                       FileTree::Listing& out) {
  if (depth > tree_limits::depth_max) {
    ::close(fd);
    return failure(prefix, ": directories are nested deeper than ", tree_limits::depth_max);
  }
  DIR* directory = ::fdopendir(fd);
  if (directory == nullptr) {
    ::close(fd);
    return failure(prefix, ": cannot be listed: ", std::strerror(errno));
  }
  std::vector<std::string> names;
  // readdir: the names come from the kernel one by one; the bound on files holds here too.
  while (const dirent* entry = ::readdir(directory)) {
    const std::string name = entry->d_name;
    if (name == "." || name == "..") continue;
    names.push_back(name);
    if (names.size() + out.files.size() + out.irregular.size() > tree_limits::files_max) {
      ::closedir(directory);
      return failure("the directory has more than ", tree_limits::files_max, " files");
    }
  }
  std::sort(names.begin(), names.end());
  Error error;
  for (const std::string& name : names) {
    const std::string path = prefix.empty() ? name : prefix + "/" + name;
    struct stat status = {};
    if (::fstatat(::dirfd(directory), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
      error = failure(path, ": cannot be examined: ", std::strerror(errno));
      break;
    }
    if (S_ISREG(status.st_mode)) {
      out.files.push_back(path);
    } else if (S_ISDIR(status.st_mode)) {
      const int child = ::openat(::dirfd(directory), name.c_str(), directory_flags);
      const auto listed = child < 0 ? Result<void>(failure(path, ": ", std::strerror(errno)))
                                    : list_into(child, path, depth + 1, out);
      if (listed.has_error()) {
        error = listed.error();
        break;
      }
    } else {
      out.irregular.push_back(path + ": " + kind_of(status.st_mode));
    }
  }
  ::closedir(directory);
  if (!error.message.empty()) return error;
  return {};
}

}   // namespace

bool is_tree_path(std::string_view path) {
  if (path.empty() || path.size() > tree_limits::path_bytes_max) return false;
  std::size_t depth = 0;
  while (true) {
    const std::size_t slash = path.find('/');
    if (!is_plain_name(path.substr(0, slash))) return false;
    if (slash == std::string_view::npos) return true;
    if (++depth >= tree_limits::depth_max) return false;
    path.remove_prefix(slash + 1);
  }
}

Result<FileTree> FileTree::open(const std::string& directory) {
  const int fd = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0)
    return failure(directory, ": cannot be opened as a directory: ", std::strerror(errno));
  return FileTree{fd, directory};
}

FileTree::~FileTree() {
  if (fd_ >= 0) ::close(fd_);
}

FileTree::FileTree(FileTree&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), directory_(std::move(other.directory_)) {}

FileTree& FileTree::operator=(FileTree&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(directory_, other.directory_);
  return *this;
}

Result<FileTree::Listing> FileTree::list() const {
  const int fd = ::openat(fd_, ".", directory_flags);
  if (fd < 0) return failure(directory_, ": cannot be listed: ", std::strerror(errno));
  Listing out;
  const auto listed = list_into(fd, "", 1, out);
  if (listed.has_error()) return listed.error();
  std::sort(out.files.begin(), out.files.end());
  std::sort(out.irregular.begin(), out.irregular.end());
  return out;
}

Result<int> FileTree::open_file(const std::string& path) const {
  if (!is_tree_path(path)) return failure(in_quotes(path), ": is not a path inside the package");
  Descriptor at{::openat(fd_, ".", directory_flags)};
  std::string_view rest = path;
  for (std::size_t slash = rest.find('/'); slash != std::string_view::npos;
       slash = rest.find('/')) {
    at.reset(::openat(at.get(), std::string(rest.substr(0, slash)).c_str(), directory_flags));
    if (at.get() < 0) return failure(path, ": cannot be opened: ", std::strerror(errno));
    rest.remove_prefix(slash + 1);
  }
  const int fd = ::openat(at.get(), std::string(rest).c_str(), file_flags);
  if (fd < 0) {
    return failure(path, ": ", errno == ELOOP ? "is a symbolic link" : std::strerror(errno));
  }
  return fd;
}

FileTree::Stamp FileTree::stamp(const std::string& path) const {
  const auto fd = open_file(path);
  if (fd.has_error()) return {};
  const Descriptor file{*fd};
  struct stat status = {};
  if (::fstat(file.get(), &status) != 0) return {};
  const auto nanoseconds = [](const timespec& time) {
    return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
  };
  return {status.st_dev, status.st_ino, static_cast<std::uint64_t>(status.st_size),
          nanoseconds(status.st_mtim), nanoseconds(status.st_ctim)};
}

Result<std::shared_ptr<const MappedFile>> FileTree::map(const std::string& path) const {
  const auto fd = open_file(path);
  if (fd.has_error()) return fd.error();
  return MappedFile::adopt(*fd, path);
}

Result<std::string> read_small_file(const std::string& path, std::uint64_t bytes_max) {
  const auto file = MappedFile::open(path);
  if (file.has_error()) return file.error();
  const auto bytes = (*file)->bytes();
  if (bytes.size() > bytes_max) {
    return failure(path, ": is larger than ", bytes_max, " bytes (", bytes.size(), ")");
  }
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

Result<void> write_new_file(const std::string& path, std::span<const std::byte> bytes,
                            unsigned mode) {
  Descriptor file{::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode)};
  if (file.get() < 0) return failure(path, ": cannot be created: ", std::strerror(errno));
  while (!bytes.empty()) {
    const ssize_t written = ::write(file.get(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return failure(path, ": cannot be written: ", std::strerror(errno));
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  if (::close(file.release()) != 0) {
    return failure(path, ": cannot be written: ", std::strerror(errno));
  }
  return {};
}

}   // namespace duet::device
