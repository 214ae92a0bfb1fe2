// job_queues.cpp: decode first, with a share for prefills.
#include "actors/job_queues.hpp"

#include "runtime/assert.hpp"

#include <algorithm>

namespace duet::actors {

JobQueues::JobQueues(SchedulingOptions options) : options_(options) {
  DUET_ASSERT(options_.short_prefill_tokens <= options_.medium_prefill_tokens,
              options_.short_prefill_tokens, options_.medium_prefill_tokens);
  DUET_ASSERT(options_.prefill_wait_max.count() > 0 && options_.decode_run_max > 0);
}

PrefillClass JobQueues::class_of(std::uint32_t tokens) const {
  if (tokens <= options_.short_prefill_tokens) return PrefillClass::short_prompt;
  return tokens <= options_.medium_prefill_tokens ? PrefillClass::medium_prompt
                                                  : PrefillClass::long_prompt;
}

void JobQueues::push_prefill(SequenceNumber sequence, std::uint32_t tokens,
                             runtime::TimePoint now) {
  auto& queue = prefills_[static_cast<std::size_t>(class_of(tokens))];
  DUET_ASSERT(queue.empty() || queue.back().since <= now);
  queue.push_back({sequence, tokens, now});
  ++prefills_waiting_;
  prefill_tokens_ += tokens;
}

void JobQueues::push_decode(SequenceNumber sequence) {
  decodes_.push_back(sequence);
}

bool JobQueues::remove(SequenceNumber sequence) {
  const auto decode = std::find(decodes_.begin(), decodes_.end(), sequence);
  if (decode != decodes_.end()) {
    decodes_.erase(decode);
    return true;
  }
  for (auto& queue : prefills_) {
    const auto waiting = std::find_if(queue.begin(), queue.end(), [sequence](const Waiting& w) {
      return w.sequence == sequence;
    });
    if (waiting == queue.end()) continue;
    prefill_tokens_ -= waiting->tokens;
    --prefills_waiting_;
    queue.erase(waiting);
    return true;
  }
  return false;
}

std::optional<runtime::TimePoint> JobQueues::next_due() const {
  std::optional<runtime::TimePoint> due;
  if (prefills_waiting_ == 0) return due;
  for (const auto& queue : prefills_) {
    if (queue.empty()) continue;
    const auto moment = queue.front().since + options_.prefill_wait_max;
    due = due.has_value() ? std::min(*due, moment) : moment;
  }
  return due;
}

bool JobQueues::prefill_is_due(runtime::TimePoint now) const {
  const auto due = next_due();
  return due.has_value() && (decodes_since_prefill_ >= options_.decode_run_max || *due <= now);
}

SequenceNumber JobQueues::take_best_prefill(runtime::TimePoint now) {
  std::deque<Waiting>* best = nullptr;
  std::int64_t best_rank = 0;
  for (std::size_t i = 0; i < prefills_.size(); ++i) {
    auto& queue = prefills_[i];
    if (queue.empty()) continue;
    const auto steps = (now - queue.front().since) / options_.prefill_wait_max;
    const auto rank = std::max<std::int64_t>(0, static_cast<std::int64_t>(i) - steps);
    const bool better = best == nullptr || rank < best_rank ||
                        (rank == best_rank && queue.front().since < best->front().since);
    if (!better) continue;
    best = &queue;
    best_rank = rank;
  }
  DUET_ASSERT(best != nullptr);
  const Waiting taken = best->front();
  best->pop_front();
  prefill_tokens_ -= taken.tokens;
  --prefills_waiting_;
  decodes_since_prefill_ = 0;
  return taken.sequence;
}

std::optional<JobChoice> JobQueues::choose(runtime::TimePoint now, std::uint32_t sampling,
                                           bool prefill_allowed) {
  const bool prefill_possible = prefill_allowed && prefills() > 0;
  if (prefill_possible && prefill_is_due(now) && (sampling == 0 || !decodes_.empty())) {
    return JobChoice{JobChoice::Kind::prefill, take_best_prefill(now)};
  }
  if (!decodes_.empty()) {
    const SequenceNumber sequence = decodes_.front();
    decodes_.erase(decodes_.begin());
    if (prefills() > 0) ++decodes_since_prefill_;
    return JobChoice{JobChoice::Kind::decode, sequence};
  }
  if (prefill_possible && sampling == 0) {
    return JobChoice{JobChoice::Kind::prefill, take_best_prefill(now)};
  }
  return std::nullopt;
}

}   // namespace duet::actors
