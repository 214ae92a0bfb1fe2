// threaded_lock.hpp: the lock file that makes one owner of a board, over processes.
#pragma once

#include "device/contract/error.hpp"

#include <filesystem>
#include <string>

namespace duet::device::emulator {

/// 1 to 64 letters, digits, '.', '_' or '-': a part of the lock file's name.
[[nodiscard]] bool is_board_name(const std::string& board);

/// Held from take to destruction, or to the end of the process however it ends: the kernel drops
/// it. Two objects of one process exclude each other too. The file stays; it holds the owner's
/// process id while it is locked. A forked child that keeps running without exec keeps the lock.
class BoardLock {
 public:
  /// Does not wait. `board`: see is_board_name. Errors: board_in_use, which
  /// names file and owner; driver_lost if the file cannot be opened; bad_argument.
  static result<BoardLock> take(const std::filesystem::path& directory, const std::string& board);

  BoardLock(BoardLock&& other) noexcept;
  BoardLock& operator=(BoardLock&& other) noexcept;
  ~BoardLock();

  [[nodiscard]] const std::filesystem::path& file() const noexcept { return file_; }

 private:
  BoardLock(int fd, std::filesystem::path file) : fd_(fd), file_(std::move(file)) {}
  void release() noexcept;

  int fd_ = -1;
  std::filesystem::path file_;
};

/// $XDG_RUNTIME_DIR if it is a directory, else /run/lock, else /tmp. Owners that must exclude each
/// other must agree on it; a service and a user's shell need a configured one.
[[nodiscard]] std::filesystem::path default_lock_directory();

}   // namespace duet::device::emulator
