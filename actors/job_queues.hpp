// job_queues.hpp: which job of a model runs next. Pure: no clock, no device; the same calls give
// the same choices.
#pragma once

#include "actors/options.hpp"
#include "runtime/time.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

namespace duet::actors {

/// The worker's own number of a sequence; never reused.
using SequenceNumber = std::uint64_t;

enum class PrefillClass : std::uint8_t { short_prompt, medium_prompt, long_prompt };

struct JobChoice {
  enum class Kind : std::uint8_t { prefill, decode };
  Kind kind = Kind::decode;
  SequenceNumber sequence = 0;
};

/// Four queues: decode-ready before all, then short, medium and long prefills. Decodes take
/// turns. A prefill runs when no decode is ready and none is about to be (a token being sampled),
/// and in any case after decode_run_max decodes or when the oldest prefill has waited for
/// prefill_wait_max. Among prefills the best class goes first and, within a class, the
/// oldest (with a token being sampled the empty decode queue is no reason for a prefill; a due
/// prefill may still pass the next decode, or two sequences that take turns would keep it out for
/// ever). For each prefill_wait_max that a prompt has waited it moves up one class, so that no
/// class starves. Not thread-safe; the worker bounds what it pushes.
class JobQueues {
 public:
  explicit JobQueues(SchedulingOptions options);

  void push_prefill(SequenceNumber sequence, std::uint32_t tokens, runtime::TimePoint now);
  void push_decode(SequenceNumber sequence);
  /// False if it waits in no queue.
  bool remove(SequenceNumber sequence);

  /// Takes the next job out. `sampling`: sequences whose next token is being chosen right now.
  /// `prefill_allowed`: a key/value slot is free.
  std::optional<JobChoice> choose(runtime::TimePoint now, std::uint32_t sampling,
                                  bool prefill_allowed);

  [[nodiscard]] std::size_t prefills() const { return prefills_waiting_; }
  [[nodiscard]] std::size_t decodes() const { return decodes_.size(); }
  [[nodiscard]] std::uint64_t prefill_tokens() const { return prefill_tokens_; }
  /// When choose() could change its mind without any other call: the moment a waiting prefill
  /// becomes due.
  [[nodiscard]] std::optional<runtime::TimePoint> next_due() const;

 private:
  struct Waiting {
    SequenceNumber sequence = 0;
    std::uint32_t tokens = 0;
    runtime::TimePoint since{};
  };
  [[nodiscard]] PrefillClass class_of(std::uint32_t tokens) const;
  [[nodiscard]] bool prefill_is_due(runtime::TimePoint now) const;
  SequenceNumber take_best_prefill(runtime::TimePoint now);

  const SchedulingOptions options_;
  std::array<std::deque<Waiting>, 3> prefills_;   // by class, oldest first
  std::vector<SequenceNumber> decodes_;           // as many as key/value slots; its memory stays
  std::size_t prefills_waiting_ = 0;              // in all three; asked several times a token
  std::uint64_t prefill_tokens_ = 0;
  std::uint32_t decodes_since_prefill_ = 0;
};

}   // namespace duet::actors
