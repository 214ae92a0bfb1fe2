// fault_hook.hpp: the points at which an emulated board may be told to misbehave.
#pragma once

#include "device/contract/types.hpp"
#include "device/emulator/made_up_tokens.hpp"

#include <cstdint>
#include <optional>

namespace duet::device::emulator {

enum class FaultPoint : std::uint8_t {
  open,                  ///< after the board lock; `fail` only.
  load,                  ///< before anything is placed; `fail` only.
  configure,             ///< before anything is placed; `fail` only.
  submit,                ///< before the job is queued; `fail` only.
  compute_start,         ///< `fail` ends the job with the code; also never_ends, spoil_output.
  compute_end,           ///< `fail` ends the job with the code in place of success.
  wait,                  ///< before a wait blocks; `fail` only; the job is not touched.
  reset,                 ///< before anything is destroyed; `fail` only.
  reset_configuration,   ///< as reset.
};
inline constexpr std::uint32_t fault_points = 9;

/// Where the board is when it asks. Fields that have no meaning at a point are 0.
struct FaultSite {
  FaultPoint point = FaultPoint::open;
  std::uint64_t visit = 0;   ///< how often this point was passed before, since the board was made.
  std::uint32_t chip = 0;
  GraphKind graph = GraphKind::decode;
  JobId job = 0;
  ResetScope scope = ResetScope::device;
  ChipNanoseconds now = 0;
};

struct Fault {
  enum class Effect : std::uint8_t {
    none,
    fail,           ///< the call or job fails with `code`. ccu_exception also halts the chip until
                    ///< it is reset; driver_lost makes every later call fail until close.
    never_ends,     ///< the job computes for ever; only a reset of its chip ends it.
    spoil_output,   ///< the driver puts a NaN into the output before it is checked.
  };
  Effect effect = Effect::none;
  errc code = errc::device_busy;   ///< of `fail`.

  [[nodiscard]] static Fault fail(errc code) { return {Effect::fail, code}; }
  [[nodiscard]] static Fault never_ends() { return {Effect::never_ends, errc::wait_timeout}; }
  [[nodiscard]] static Fault spoil_output() { return {Effect::spoil_output, errc::bad_output}; }
};

/// Decides by chip, graph, job or visit. Called under the board's lock, from any thread, one at a
/// time: it must neither block nor call the board. It must outlive the board. An effect that has no
/// meaning at a point is ignored.
class FaultHook {
 public:
  virtual ~FaultHook() = default;
  virtual Fault consult(const FaultSite& site) noexcept = 0;
  /// Of timed and null boards: what comes after the sequence of this hash, in place of the token
  /// that the hash makes up. Nothing: that one. A token that the model does not have is ignored.
  virtual std::optional<std::uint32_t> next_token(SequenceHash /*sequence*/) noexcept {
    return std::nullopt;
  }
};

}   // namespace duet::device::emulator
