// mapped_file.cpp: maps a regular file read-only.
#include "device/package/mapped_file.hpp"

#include "runtime/assert.hpp"

#include <cerrno>
#include <cstdint>
#include <cstring>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace duet::device {

Result<std::shared_ptr<const MappedFile>> MappedFile::open(const std::string& path) {
  // Non-blocking: opening a FIFO must not wait for its writer.
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) return failure(path, ": cannot be opened: ", std::strerror(errno));
  return adopt(fd, path);
}

Result<std::shared_ptr<const MappedFile>> MappedFile::adopt(int fd, const std::string& name) {
  struct stat status = {};
  Error error;
  void* address = nullptr;
  std::size_t size = 0;
  if (::fstat(fd, &status) != 0) {
    error = failure(name, ": cannot be examined: ", std::strerror(errno));
  } else if (!S_ISREG(status.st_mode)) {
    error = failure(name, ": is not a regular file");
  } else if (status.st_size > 0) {
    size = static_cast<std::size_t>(status.st_size);
    address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (address == MAP_FAILED) {
      error = failure(name, ": cannot be mapped (", size, " bytes): ", std::strerror(errno));
    }
  }
  ::close(fd);
  if (!error.message.empty()) return error;
  const std::span<const std::byte> bytes{static_cast<const std::byte*>(address), size};
  return std::shared_ptr<const MappedFile>(new MappedFile(bytes));
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

void MappedFile::forget(std::span<const std::byte> part) const {
  if (part.empty()) return;
  DUET_ASSERT(part.data() >= bytes_.data() &&
              part.data() + part.size() <= bytes_.data() + bytes_.size());
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto first = reinterpret_cast<std::uintptr_t>(part.data()) / page * page;
  const auto end = reinterpret_cast<std::uintptr_t>(part.data() + part.size());
  // The mapping is read-only, so its pages are the file's own and nothing is lost. Where it fails,
  // memory stays in use, which harms nobody.
  (void)::madvise(reinterpret_cast<void*>(first), end - first, MADV_DONTNEED);
}

}   // namespace duet::device
