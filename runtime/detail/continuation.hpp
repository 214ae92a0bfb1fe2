// continuation.hpp: a suspended coroutine; one way natively, one through Asio's public interface.
#pragma once

#include "runtime/detail/configuration.hpp"

#if DUET_AWAITABLE_PUBLIC
#include <boost/asio/any_completion_handler.hpp>
#else
#include "runtime/detail/stack.hpp"

#include <boost/asio/cancellation_signal.hpp>
#endif

#include <optional>
#include <utility>

namespace duet::runtime::detail {

#if DUET_AWAITABLE_PUBLIC

/// The coroutine that awaits something of ours.
class Continuation {
 public:
  template <typename H>
  void suspend(H&& handler) {
    handler_.emplace(std::forward<H>(handler));
  }
  void resume() { take()(); }
  /// Destroys the coroutine.
  void abandon() noexcept { static_cast<void>(take()); }

 private:
  using Handler = boost::asio::any_completion_handler<void()>;
  Handler take() noexcept {
    Handler handler(std::move(*handler_));
    handler_.reset();
    return handler;
  }

  std::optional<Handler> handler_;
};

#else

/// The coroutine that awaits something of ours. resume() and abandon() may destroy this object on
/// the way, with the awaiter in which it lies.
class Continuation {
 public:
  /// The frame `top` suspends; `thread` runs it. False: it is of a branch, not of the actor's own
  /// stack `root`.
  [[nodiscard, gnu::always_inline]] bool suspend(RootStack& root, AsioFrame& top,
                                                 AsioThread& thread) noexcept {
    if (root.park(top, thread)) [[likely]] {
      root_ = &root;
      return true;
    }
    root_ = nullptr;
    branch_.emplace(top.detach_thread());
    return false;
  }
  /// What cancels a branch.
  [[nodiscard]] boost::asio::cancellation_slot slot() const noexcept {
    return branch_->get_cancellation_slot();
  }

  void resume() {
    if (root_ != nullptr) [[likely]]
      return root_->resume();
    take_branch().resume();
  }
  /// Destroys the coroutine.
  void abandon() noexcept {
    if (root_ != nullptr) return root_->abandon();
    const BranchStack branch = take_branch();
  }

 private:
  BranchStack take_branch() noexcept {
    BranchStack branch(std::move(*branch_));
    branch_.reset();
    return branch;
  }

  RootStack* root_ = nullptr;
  std::optional<BranchStack> branch_;   // unless root_ is set
};

#endif

}   // namespace duet::runtime::detail
