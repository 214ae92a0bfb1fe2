// real_random.hpp: randomness from the kernel, good enough for request ids that nobody can guess.
#pragma once

#include "runtime/random.hpp"

#include <array>
#include <cstddef>
#include <mutex>

namespace duet::runtime {

class RealRandom final : public Random {
 public:
  [[nodiscard]] std::uint64_t next() noexcept override;

 private:
  std::mutex mutex_;
  std::array<std::uint64_t, 32>
      block_{};   // 256 bytes: the most that getrandom gives without a partial read
  std::size_t used_ = block_.size();
};

}   // namespace duet::runtime
