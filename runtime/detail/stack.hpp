// stack.hpp: stacks of coroutine frames, as Asio keeps them: an actor's own, and those of branches.
// It rests on names of Asio's detail namespace.
#pragma once

#include "runtime/actor_executor.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/version.hpp>

#include <cstddef>
#include <utility>

static_assert(BOOST_ASIO_VERSION == 102600,
              "checked against the Asio of Boost 1.81; build with -DDUET_AWAITABLE=public");

namespace duet::runtime::detail {

using AsioFrame = boost::asio::detail::awaitable_frame_base<actor_executor>;
using AsioThread = boost::asio::detail::awaitable_thread<actor_executor>;
using AsioEntry = boost::asio::detail::awaitable_thread_entry_point;
using AsioStack = boost::asio::detail::awaitable_handler_base<actor_executor, void>;

/// The suspended frames of a race's branch, owned. Destroying it destroys the frames.
class BranchStack final : public AsioStack {
 public:
  using AsioStack::AsioStack;
  BranchStack(BranchStack&&) noexcept = default;

  void resume() {
    this->frame()->attach_thread(this);
    this->frame()->clear_cancellation_slot();
    this->pump();
  }
};

/// The frames of the coroutine that is the actor. While they await something of ours they stay
/// here, attached, so that a wait costs nothing of Asio's; while they await an Asio operation they
/// lie in its handler.
class RootStack final : public AsioStack {
 public:
  using AsioStack::AsioStack;
  RootStack(const RootStack&) = delete;
  RootStack& operator=(const RootStack&) = delete;

  /// Makes the coroutine run for the first time.
  void launch() {
    bottom_ = this->entry_point();
    this->frame()->attach_thread(this);
    run(*this->frame());
  }

  /// From the frame `top`, run by `thread`, that is about to suspend for a wait of ours. False: it
  /// belongs to a branch. Else it is to be resumed by resume().
  [[nodiscard]] bool park(AsioFrame& top, AsioThread& thread) noexcept {
    if (&thread != this) {
      if (thread.entry_point() != bottom_) return false;
      RootStack other(&thread);   // an Asio operation had it
      this->bottom_of_stack_ = std::move(other.bottom_of_stack_);
      top.attach_thread(this);
    }
    parked_ = &top;
    return true;
  }

  void resume() { run(*std::exchange(parked_, nullptr)); }

  /// Of the frame that will go on, if it waits for something of ours.
  void prefetch() const noexcept {
    if (parked_ == nullptr) return;
    const auto* const frame = reinterpret_cast<const std::byte*>(parked_);
    for (std::size_t line = 0; line < 256; line += 64) __builtin_prefetch(frame + line, 1);
  }

  /// Destroys the parked frames.
  void abandon() noexcept { const BranchStack frames(this); }

 private:
  /// Until the coroutine parks, is taken by an Asio operation, or ends.
  void run(AsioFrame& top) {
    AsioFrame* next = &top;
    do {
      next->resume();
      if (parked_ != nullptr || this->entry_point() == nullptr) return;
      next = this->frame();
    } while (next != nullptr);
    const boost::asio::awaitable<AsioEntry, actor_executor> ended(
        std::move(this->bottom_of_stack_));
  }

  const void* bottom_ = nullptr;
  AsioFrame* parked_ = nullptr;   // the frame that awaits something of ours
};

}   // namespace duet::runtime::detail
