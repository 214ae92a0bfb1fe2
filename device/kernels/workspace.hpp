// workspace.hpp: the buffers of one job, laid out in one block of memory.
#pragma once

#include "device/kernels/barrier.hpp"
#include "device/kernels/executor.hpp"
#include "device/kernels/kernels.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace duet::device {

/// One buffer as one core sees it. Only the members of its kind are set; a stride is 0 if the
/// buffer has one row.
struct BufferView {
  F32Rows f32;
  Q8Rows q8;
};

class GraphWorkspace final : public Executable::Workspace {
 public:
  /// `one_row` as in VerifiedGraph; `scratch_bytes` for each core. Throws std::bad_alloc.
  GraphWorkspace(std::span<const BufferDecl> buffers, const std::vector<bool>& one_row,
                 std::uint32_t cores, Arithmetic arithmetic, std::uint32_t tile,
                 std::size_t scratch_bytes);

  [[nodiscard]] std::uint64_t bytes() const override { return bytes_; }
  [[nodiscard]] std::uint32_t tile() const { return tile_; }
  [[nodiscard]] const BufferView& view(std::uint32_t core, std::uint32_t buffer) const {
    return views_[core][buffer];
  }
  [[nodiscard]] std::byte* scratch(std::uint32_t core) const { return scratch_[core]; }
  [[nodiscard]] CoreBarrier& barrier() { return barrier_; }

 private:
  struct Free {
    void operator()(std::byte* memory) const;
  };

  std::uint32_t tile_;
  std::uint64_t bytes_ = 0;
  std::unique_ptr<std::byte[], Free> memory_;
  std::vector<BufferView> views_[2];
  std::byte* scratch_[2] = {};
  CoreBarrier barrier_;
};

}   // namespace duet::device
