// mapped_file.hpp: a regular file, read-only in memory.
#pragma once

#include "device/program/message.hpp"

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace duet::device {

/// Owner of one read-only mapping. Immutable; any thread may read. The bytes live as long as the
/// object. A file that someone else shortens while it is mapped ends the process (SIGBUS):
/// operators replace files, never cut them.
class MappedFile {
 public:
  /// Refuses what is not a regular file (a FIFO or a device could block or never end).
  static Result<std::shared_ptr<const MappedFile>> open(const std::string& path);
  /// Takes over `fd` (closed in any case); `name` is for messages.
  static Result<std::shared_ptr<const MappedFile>> adopt(int fd, const std::string& name);

  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  [[nodiscard]] std::span<const std::byte> bytes() const { return bytes_; }

  /// Gives the memory of `part`, which is of bytes(), back to the system; reading it again reads
  /// the file again. For passes over files that are larger than memory may become.
  void forget(std::span<const std::byte> part) const;

 private:
  explicit MappedFile(std::span<const std::byte> bytes) : bytes_(bytes) {}
  std::span<const std::byte> bytes_;
};

}   // namespace duet::device
