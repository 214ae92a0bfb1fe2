// made_up_package.hpp: a configured package on a board that does not compute.
#pragma once

#include "device/emulator/board_core.hpp"
#include "device/emulator/package_image.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace duet::device::emulator {

/// Each position of each key/value slot holds the hash of its sequence up to there, where real
/// memory would hold keys and values: a job that is given a wrong slot or a wrong past gives a
/// wrong token. Not thread-safe.
class MadeUpPackage {
 public:
  /// `plan` was made of the image's manifest. No parameters are read. Errors: package_invalid.
  /// Throws std::bad_alloc.
  static result<std::unique_ptr<MadeUpPackage>> build(const PackageImage& image,
                                                      const BoardPlan& plan);

  /// Writes the job's positions and returns the token that follows: the hook's, if it has one.
  /// Bounded by job.tokens; allocates nothing. `tokens` is job.tokens long.
  std::uint32_t next_token(const JobView& job, std::span<const std::uint32_t> tokens,
                           FaultHook* faults) noexcept;

 private:
  struct Pool {
    SequenceHash empty = 0;
    std::uint32_t vocabulary = 0;
    std::uint32_t tokens_per_slot = 0;
    std::vector<std::uint32_t> ordinary;
    std::vector<SequenceHash> positions;   ///< [slot][position].
  };
  std::vector<Pool> pools_;   ///< as in the plan.
};

}   // namespace duet::device::emulator
