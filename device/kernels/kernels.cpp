// kernels.cpp: compiles the kernels for every SIMD target and picks one table at run time.
#include "device/kernels/kernels.hpp"

#include "device/kernels/executor.hpp"

#include <algorithm>

// Not AVX3_DL: Highway 1.0.3 compiles it with -mavxvnni, which g++ prefers for dot products and
// which Ice Lake and Zen 4 do not have.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/kernels/kernels.cpp"
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

// After highway.h, whose toggle these use.
#include "device/kernels/attention.inl"
#include "device/kernels/lanes.inl"
#include "device/kernels/matmul.inl"
#include "device/kernels/rows.inl"

HWY_BEFORE_NAMESPACE();
namespace duet::device {
namespace HWY_NAMESPACE {

const Kernels& table() {
  static constexpr Kernels kernels{
      .widen = &widen,
      .rms_norm_f32 = &rms_norm_f32,
      .rms_norm_q8 = &rms_norm_q8,
      .quantize = &quantize,
      .rope = &rope,
      .narrow_bf16 = &narrow_bf16,
      .swiglu = &swiglu,
      .exponential = &exponential,
      .matmul_q8 = &matmul_q8,
      .matmul_f32 = &matmul_f32,
      .attention_bf16 = &attention_bf16,
      .attention_f32 = &attention_f32,
  };
  return kernels;
}

}   // namespace HWY_NAMESPACE
}   // namespace duet::device
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace duet::device {

HWY_EXPORT(table);

const Kernels& kernels() {
  return HWY_DYNAMIC_DISPATCH(table)();
}

std::size_t matmul_scratch_bytes(std::uint32_t columns, std::uint32_t tokens) {
  const std::size_t chunks = (columns / block_elements + chunk_blocks - 1) / chunk_blocks;
  const std::size_t packed = (std::size_t{tokens} + 2) * chunks * 256 + 2 * chunks * 32;
  const std::size_t widened = std::size_t{4} * columns * sizeof(float);
  return std::max(packed, widened);
}

std::size_t attention_scratch_bytes(std::uint32_t head_dim, std::uint32_t group,
                                    std::uint32_t tokens) {
  return (std::size_t{2} * chunk_positions * head_dim + std::size_t{2} * tokens * group) *
         sizeof(float);
}

namespace {

/// Targets compiled in and supported by this CPU, best first; not affected by force_simd_target.
const std::vector<std::int64_t>& supported() {
  static const std::vector<std::int64_t> targets = hwy::SupportedAndGeneratedTargets();
  return targets;
}

}   // namespace

std::vector<std::string> simd_targets() {
  std::vector<std::string> names;
  for (const std::int64_t target : supported()) names.emplace_back(hwy::TargetName(target));
  return names;
}

std::vector<std::string> simd_targets_compiled() {
  std::vector<std::string> names;
  for (std::int64_t rest = HWY_TARGETS; rest != 0; rest &= rest - 1)
    names.emplace_back(hwy::TargetName(rest & ~(rest - 1)));
  return names;
}

bool force_simd_target(const std::string& name) {
  std::int64_t mask = 0;
  for (const std::int64_t target : supported())
    if (name == hwy::TargetName(target)) mask = target;
  if (mask == 0 && !name.empty()) return false;
  hwy::SetSupportedTargetsForTest(mask);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  return true;
}

}   // namespace duet::device
#endif
