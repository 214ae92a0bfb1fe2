// blocking.hpp: blocking calls of an actor on a completion lane; the result comes as a message.
#pragma once

#include "runtime/completion_source.hpp"
#include "runtime/detail/pool.hpp"
#include "runtime/ref.hpp"
#include "runtime/work.hpp"

#include <concepts>
#include <optional>
#include <type_traits>
#include <utility>

namespace duet::runtime {

namespace detail {

/// Owns itself from push to finish; for ever, if the call never comes back.
template <typename M, typename F, typename U>
class LaneCall final : public BlockingCall {
 public:
  LaneCall(const Ref<M>& to, F function, U unmade)
      : to_(to), function_(std::move(function)), unmade_(std::move(unmade)), work_(to.address()) {}
  ~LaneCall() override = default;

  void run() noexcept override { message_.emplace(function_()); }

  void repeat() noexcept override {
    if constexpr (std::is_copy_constructible_v<Message>) {
      static_cast<void>(to_.send_and_run(Message(*message_)));
    }
  }

  void finish(bool ran) noexcept override {
    if (!ran) message_.emplace(unmade_());
    static_cast<void>(to_.send_and_run(std::move(*message_)));
    destroy(this);
  }

 private:
  using Message = std::invoke_result_t<F&>;
  const Ref<M> to_;
  F function_;
  U unmade_;
  std::optional<Message> message_;
  const Work work_;
};

}   // namespace detail

/// Runs `function` on the lane's thread, where it may block, and sends the message that it returns
/// to `to`. Give it by value all that the message needs, the generation above all. If the lane is
/// closed before the call is made, the message is what `unmade` returns. Neither may throw. Until
/// then the host's run() does not return.
///
/// False, and neither is called, if the lane is full or closed. If `to` was spawned with
/// `run_on_completion_thread` it handles the result right on the lane's thread.
template <Language M, std::invocable F, std::invocable U>
requires HasMessage<M, std::invoke_result_t<F&>> &&
    std::same_as<std::invoke_result_t<F&>, std::invoke_result_t<U&>>
[[nodiscard]] bool call_blocking(CompletionLane& lane, const Ref<M>& to, F function, U unmade) {
  auto* const call =
      detail::create<detail::LaneCall<M, F, U>>(to, std::move(function), std::move(unmade));
  if (lane.push(*call)) return true;
  detail::destroy(call);
  return false;
}

}   // namespace duet::runtime
