// small_file.cpp: reads a small regular file through POSIX calls, which tell what went wrong.
#include "config/detail/small_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>

namespace duet::config::detail {
namespace {

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  [[nodiscard]] int get() const { return fd_; }

 private:
  int fd_;
};

device::Error last_error(const char* what) {
  return device::failure(what, ": ", std::generic_category().message(errno));
}

}   // namespace

device::Result<SmallFile> read_small_file(const std::string& path, std::size_t bytes_max) {
  // Without O_NONBLOCK the open of a named pipe waits for a writer.
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (file.get() < 0) return last_error("cannot be opened");
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) return last_error("cannot be examined");
  if (!S_ISREG(status.st_mode)) return device::failure("is not a regular file");
  SmallFile result;
  result.permissions = status.st_mode & 0777U;
  std::array<char, 16384> buffer{};
  for (;;) {
    const ssize_t count = ::read(file.get(), buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return last_error("cannot be read");
    if (count == 0) return result;
    result.text.append(buffer.data(), static_cast<std::size_t>(count));
    if (result.text.size() > bytes_max) {
      return device::failure("has more than the ", bytes_max, " bytes that it may have");
    }
  }
}

}   // namespace duet::config::detail
