// made_up_package.cpp: sequence hashes in the place of key/values.
#include "device/emulator/made_up_package.hpp"

#include "runtime/assert.hpp"

#include <utility>

namespace duet::device::emulator {

result<std::unique_ptr<MadeUpPackage>> MadeUpPackage::build(const PackageImage& image,
                                                            const BoardPlan& plan) {
  const Manifest& manifest = image.manifest();
  DUET_ASSERT(manifest.models.size() == plan.pools.size());
  auto package = std::make_unique<MadeUpPackage>();
  for (std::size_t i = 0; i < plan.pools.size(); ++i) {
    const Model& model = manifest.models[i];
    auto ordinary = image.ordinary_tokens(model);
    if (ordinary.has_error()) return ordinary.error();
    Pool pool;
    pool.empty = empty_sequence(model.name);
    pool.vocabulary = model.config.vocabulary;
    pool.tokens_per_slot = plan.pools[i].tokens_per_slot;
    pool.ordinary = std::move(ordinary).value();
    if (pool.ordinary.empty() || pool.ordinary.back() >= pool.vocabulary) {
      return Failure{errc::package_invalid, "model \"" + model.name +
                                                "\": its tokenizer has no ordinary tokens, or one "
                                                "above the vocabulary"};
    }
    pool.positions.resize(std::size_t{plan.pools[i].slots} * pool.tokens_per_slot);
    package->pools_.push_back(std::move(pool));
  }
  return package;
}

std::uint32_t MadeUpPackage::next_token(const JobView& job, std::span<const std::uint32_t> tokens,
                                        FaultHook* faults) noexcept {
  Pool& pool = pools_[job.pool];
  DUET_ASSERT(tokens.size() == job.tokens && job.tokens > 0, job.tokens);
  DUET_ASSERT(job.past + job.tokens <= pool.tokens_per_slot, job.past, job.tokens);
  const std::size_t first = std::size_t{job.slot} * pool.tokens_per_slot;
  DUET_ASSERT(first + pool.tokens_per_slot <= pool.positions.size(), job.slot);
  SequenceHash* const positions = pool.positions.data() + first;
  SequenceHash sequence = job.past == 0 ? pool.empty : positions[job.past - 1];
  for (std::uint32_t i = 0; i < job.tokens; ++i) {
    sequence = append_token(sequence, tokens[i]);
    positions[job.past + i] = sequence;
  }
  if (faults != nullptr) {
    const auto scripted = faults->next_token(sequence);
    if (scripted && *scripted < pool.vocabulary) return *scripted;
  }
  return made_up_token(sequence, pool.ordinary);
}

}   // namespace duet::device::emulator
