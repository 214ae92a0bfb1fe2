// file_tree.hpp: reads files of one directory tree without ever leaving it, and writes small files.
#pragma once

#include "device/package/mapped_file.hpp"
#include "device/program/message.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace duet::device {

namespace tree_limits {
inline constexpr std::size_t files_max = 4096;   // a dual package has about 40
inline constexpr std::size_t depth_max = 8;      // three are used
inline constexpr std::size_t path_bytes_max = 512;
}   // namespace tree_limits

/// True if `path` can name a file below a directory: relative, '/' between plain names
/// (is_plain_name), no "." or "..", within the limits above.
[[nodiscard]] bool is_tree_path(std::string_view path);

/// A directory held open. Paths are walked component by component and never through a symbolic
/// link, so that no name can lead outside. Any thread.
class FileTree {
 public:
  static Result<FileTree> open(const std::string& directory);
  ~FileTree();
  FileTree(FileTree&& other) noexcept;
  FileTree& operator=(FileTree&& other) noexcept;

  [[nodiscard]] const std::string& directory() const { return directory_; }

  /// What lies below, sorted by path. Symbolic links and special files are reported in `irregular`,
  /// not followed.
  struct Listing {
    std::vector<std::string> files;
    std::vector<std::string> irregular;   ///< with what it is: "a/b: symbolic link".
  };
  [[nodiscard]] Result<Listing> list() const;

  /// What the file system says of a file: differs if the file was written or replaced in between.
  /// All 0 if there is no such file now. Nothing is followed.
  struct Stamp {
    std::uint64_t device = 0;
    std::uint64_t inode = 0;
    std::uint64_t bytes = 0;
    std::int64_t modified_ns = 0;
    std::int64_t changed_ns = 0;
    bool operator==(const Stamp&) const = default;
  };
  [[nodiscard]] Stamp stamp(const std::string& path) const;

  /// Errors name the path relative to the directory.
  [[nodiscard]] Result<std::shared_ptr<const MappedFile>> map(const std::string& path) const;

 private:
  /// A descriptor of the caller's.
  [[nodiscard]] Result<int> open_file(const std::string& path) const;

  FileTree(int fd, std::string directory) : fd_(fd), directory_(std::move(directory)) {}
  int fd_ = -1;
  std::string directory_;
};

/// The whole of a regular file of at most `bytes_max` bytes. Follows links: for key files and the
/// like.
[[nodiscard]] Result<std::string> read_small_file(const std::string& path, std::uint64_t bytes_max);

/// Creates `path` with `mode` and writes it whole; refuses a file that exists. Not synced to the
/// disk.
[[nodiscard]] Result<void> write_new_file(const std::string& path, std::span<const std::byte> bytes,
                                          unsigned mode = 0644);

}   // namespace duet::device
