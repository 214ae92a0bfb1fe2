// actor_executor.hpp: an Asio executor that runs what it is given on one actor's strand.
#pragma once

#include "runtime/address.hpp"
#include "runtime/detail/arena.hpp"
#include "runtime/detail/pool.hpp"

#include <boost/asio/execution.hpp>

#include <type_traits>
#include <utility>

namespace duet::runtime {

namespace detail {

/// A function in a mailbox; run or destroyed on the actor's strand, or destroyed by whoever finds
/// the actor gone.
template <typename F>
struct FunctionNode final : Node {
  explicit FunctionNode(F&& value) : function(std::move(value)) { ops = &node_ops; }
  explicit FunctionNode(const F& value) : function(value) { ops = &node_ops; }

  static void drop(Node& node, errc) noexcept { destroy(static_cast<FunctionNode*>(&node)); }
  static void run(Node& node, ActorBase&) {
    F function(std::move(static_cast<FunctionNode&>(node).function));
    drop(node, errc::cancelled);   // first, so that the function finds its memory free
    function();
  }

  static constexpr NodeOps node_ops = {
      &FunctionNode::drop, &FunctionNode::run,       nullptr,     "function",
      NodeOps::Kind::task, MessageClass::guaranteed, Lane::urgent};
  F function;
};

}   // namespace detail

/// What is executed here runs one at a time with the actor's messages, before those that wait, on
/// whichever thread runs the actor. Once the actor has ended, functions are destroyed unrun, by the
/// caller: so coroutines that are left behind release their frames.
class actor_executor {
 public:
  explicit actor_executor(const Address& address) noexcept : address_(address) {}

  [[nodiscard]] const Address& address() const noexcept { return address_; }

  /// True while the calling thread runs this very life of the actor.
  [[nodiscard]] bool running_in_this_thread() const noexcept {
    const detail::ThreadState& here = detail::thread_state();
    return here.slot == address_.slot() && here.generation == address_.generation() &&
           address_.slot()->generation() == address_.generation();
  }

  [[nodiscard]] boost::asio::execution_context& query(
      boost::asio::execution::context_t) const noexcept {
    return address_.slot()->arena().context();
  }
  [[nodiscard]] boost::asio::execution::blocking_t query(
      boost::asio::execution::blocking_t) const noexcept {
    if (never_) return boost::asio::execution::blocking_t(boost::asio::execution::blocking.never);
    return boost::asio::execution::blocking_t(boost::asio::execution::blocking.possibly);
  }
  [[nodiscard]] actor_executor require(
      boost::asio::execution::blocking_t::possibly_t) const noexcept {
    return {address_, false};
  }
  [[nodiscard]] actor_executor require(boost::asio::execution::blocking_t::never_t) const noexcept {
    return {address_, true};
  }
  friend bool operator==(const actor_executor& a, const actor_executor& b) noexcept {
    return a.address_ == b.address_;
  }
  friend bool operator!=(const actor_executor& a, const actor_executor& b) noexcept {
    return !(a == b);
  }

  template <typename F>
  void execute(F&& function) const {
    using Function = std::decay_t<F>;
    detail::Slot& slot = *address_.slot();
    if (!never_ && running_in_this_thread()) {
      if constexpr (std::is_lvalue_reference_v<F>) {
        Function local(function);
        local();
      } else {
        function();   // in place: the caller keeps it until we return
      }
      return;
    }
    auto* const node = detail::create<detail::FunctionNode<Function>>(std::forward<F>(function));
    node->generation = address_.generation();
    const detail::Inside inside(slot.arena());
    if (!inside || !slot.push(*node)) node->ops->drop(*node, errc::receiver_gone);
  }

 private:
  actor_executor(const Address& address, bool never) noexcept : address_(address), never_(never) {}

  Address address_;
  bool never_ = false;
};

}   // namespace duet::runtime
