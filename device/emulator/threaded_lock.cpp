// threaded_lock.cpp: flock on a file a board, with the owner's process id in it.
#include "device/emulator/threaded_lock.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace duet::device::emulator {
namespace {

constexpr std::size_t name_max = 64;

/// Who the file says holds it. Nothing between the owner's lock and its write, so it may be empty.
std::string owner_in(int fd) {
  char text[32] = {};
  const ssize_t size = ::pread(fd, text, sizeof text - 1, 0);
  std::string pid;
  for (ssize_t i = 0; i < size && std::isdigit(static_cast<unsigned char>(text[i])) != 0; ++i) {
    pid += text[i];
  }
  return pid.empty() ? "another process" : "process " + pid;
}

bool write_owner(int fd) {
  const std::string pid = std::to_string(::getpid()) + "\n";
  return ::ftruncate(fd, 0) == 0 &&
         ::pwrite(fd, pid.data(), pid.size(), 0) == static_cast<ssize_t>(pid.size());
}

}   // namespace

bool is_board_name(const std::string& board) {
  return !board.empty() && board.size() <= name_max &&
         std::all_of(board.begin(), board.end(), [](unsigned char c) {
           return std::isalnum(c) != 0 || c == '.' || c == '_' || c == '-';
         });
}

result<BoardLock> BoardLock::take(const std::filesystem::path& directory,
                                  const std::string& board) {
  if (!is_board_name(board)) {
    return Failure{errc::bad_argument,
                   "board name \"" + board + "\": 1 to 64 letters, digits, '.', '_' or '-'"};
  }
  std::filesystem::path file = directory / ("duet-" + board + ".lock");
  // Of every user, so that a second user is told who owns the board, not that the file is
  // another's.
  const int fd = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
  if (fd < 0) {
    return Failure{errc::driver_lost,
                   "the lock file " + file.string() + " cannot be opened: " + std::strerror(errno)};
  }
  BoardLock lock{fd, std::move(file)};
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    const int error = errno;
    // Not ours: the destructor must not wipe the owner's id.
    lock.fd_ = -1;
    const std::string owner = owner_in(fd);
    ::close(fd);
    if (error == EWOULDBLOCK) {
      return Failure{errc::board_in_use, "board \"" + board + "\" is in use by " + owner +
                                             " (lock file " + lock.file_.string() + ")"};
    }
    return Failure{errc::driver_lost, "the lock file " + lock.file_.string() +
                                          " cannot be locked: " + std::strerror(error)};
  }
  if (!write_owner(fd)) {
    return Failure{errc::driver_lost, "the lock file " + lock.file_.string() +
                                          " cannot be written: " + std::strerror(errno)};
  }
  return lock;
}

BoardLock::BoardLock(BoardLock&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), file_(std::move(other.file_)) {}

BoardLock& BoardLock::operator=(BoardLock&& other) noexcept {
  if (this != &other) {
    release();
    fd_ = std::exchange(other.fd_, -1);
    file_ = std::move(other.file_);
  }
  return *this;
}

BoardLock::~BoardLock() {
  release();
}

void BoardLock::release() noexcept {
  if (fd_ < 0) return;
  // An old id must not be taken for the next owner's. If it fails, the next owner overwrites it.
  [[maybe_unused]] const int ignored = ::ftruncate(fd_, 0);
  ::close(fd_);
  fd_ = -1;
}

std::filesystem::path default_lock_directory() {
  std::error_code ignored;
  const char* runtime = std::getenv("XDG_RUNTIME_DIR");
  const std::array<std::filesystem::path, 2> wanted{runtime == nullptr ? "" : runtime, "/run/lock"};
  for (const std::filesystem::path& directory : wanted) {
    if (!directory.empty() && std::filesystem::is_directory(directory, ignored) &&
        ::access(directory.c_str(), W_OK | X_OK) == 0) {
      return directory;
    }
  }
  return "/tmp";
}

}   // namespace duet::device::emulator
