// workspace.cpp: the buffers of one job, laid out in one block of memory.
#include "device/kernels/workspace.hpp"

#include <cstring>
#include <new>

namespace duet::device {
namespace {

constexpr std::size_t alignment = 64;   // a cache line, and the widest vector

std::size_t round_up(std::size_t value, std::size_t unit) {
  return (value + unit - 1) / unit * unit;
}

/// Gives out parts of a block one after the other; without a block it only counts.
class Carver {
 public:
  explicit Carver(std::byte* base) : base_(base) {}

  std::byte* take(std::size_t bytes) {
    std::byte* at = base_ == nullptr ? nullptr : base_ + used_;
    used_ += round_up(bytes, alignment);
    return at;
  }
  [[nodiscard]] std::size_t used() const { return used_; }

 private:
  std::byte* base_;
  std::size_t used_ = 0;
};

BufferView carve(Carver& carver, const BufferDecl& decl, Arithmetic arithmetic, std::size_t rows) {
  BufferView view;
  if (decl.kind == BufferKind::f32 || arithmetic == Arithmetic::f32) {
    const std::size_t stride = round_up(decl.width, alignment / sizeof(float));
    view.f32.data = reinterpret_cast<float*>(carver.take(rows * stride * sizeof(float)));
    view.f32.stride = rows == 1 ? 0 : stride;
    return view;
  }
  const std::size_t q_stride = round_up(decl.width, alignment);
  const std::size_t d_stride = round_up(decl.width / block_elements, chunk_blocks);
  view.q8.q = reinterpret_cast<std::int8_t*>(carver.take(rows * q_stride));
  view.q8.d = reinterpret_cast<float*>(carver.take(rows * d_stride * sizeof(float)));
  view.q8.q_stride = rows == 1 ? 0 : q_stride;
  view.q8.d_stride = rows == 1 ? 0 : d_stride;
  return view;
}

}   // namespace

void GraphWorkspace::Free::operator()(std::byte* memory) const {
  ::operator delete[](memory, std::align_val_t{alignment});
}

GraphWorkspace::GraphWorkspace(std::span<const BufferDecl> buffers,
                               const std::vector<bool>& one_row, std::uint32_t cores,
                               Arithmetic arithmetic, std::uint32_t tile, std::size_t scratch_bytes)
    : tile_(tile) {
  for (auto& views : views_) views.resize(buffers.size());
  // The first pass counts, the second lays out.
  for (int pass = 0; pass < 2; ++pass) {
    Carver carver(memory_.get());
    for (std::size_t i = 0; i < buffers.size(); ++i) {
      const std::size_t rows = one_row[i] ? 1 : tile;
      views_[0][i] = carve(carver, buffers[i], arithmetic, rows);
      const bool local = buffers[i].scope == BufferScope::local;
      views_[1][i] =
          local && cores == 2 ? carve(carver, buffers[i], arithmetic, rows) : views_[0][i];
    }
    for (std::uint32_t core = 0; core < cores; ++core) scratch_[core] = carver.take(scratch_bytes);
    if (pass == 1) return;
    bytes_ = carver.used();
    memory_.reset(new (std::align_val_t{alignment}) std::byte[bytes_]);
    // The padding behind a row's scales must be 0 for good; the rest is zeroed for determinism.
    std::memset(memory_.get(), 0, bytes_);
  }
}

}   // namespace duet::device
