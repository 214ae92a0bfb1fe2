// compute_call.hpp: a computation on a compute thread, and its way back.
#pragma once

#include "runtime/actor_base.hpp"
#include "runtime/completion_source.hpp"
#include "runtime/detail/arena.hpp"
#include "runtime/detail/core.hpp"
#include "runtime/detail/node.hpp"
#include "runtime/detail/pool.hpp"

#include <exception>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>

namespace duet::runtime::detail {

template <typename R>
using Computed = std::conditional_t<std::is_void_v<R>, std::monostate, R>;

/// What came out; neither, if the computation was never made.
template <typename R>
struct ComputeHeader : Node {
  std::optional<Computed<R>> value;
  std::exception_ptr exception;
};

/// Runs `function` once; the result goes to the pending `id` of the actor that is meant.
template <typename F, typename R>
class ComputeCall final : public BlockingCall, public ComputeHeader<R> {
 public:
  ComputeCall(F function, const Address& to, std::uint64_t pending)
      : function_(std::move(function)), to_(to), id_(pending) {
    this->ops = &node_ops;
    this->generation = to.generation();
  }
  ~ComputeCall() override = default;

  void run() noexcept override {
    try {
      if constexpr (std::is_void_v<R>) {
        function_();
        this->value.emplace();
      } else {
        this->value.emplace(function_());
      }
    } catch (...) {
      this->exception = std::current_exception();
    }
  }

  void finish(bool) noexcept override {
    const Inside inside(to_.slot()->arena());
    if (!inside || !to_.slot()->push(*this)) drop(*this, errc::receiver_gone);
  }

  static void drop(Node& node, errc) noexcept { destroy(static_cast<ComputeCall*>(&node)); }

 private:
  static void arrived(Node& node, ActorBase& actor) {
    Pending* const pending = actor.pending().find(static_cast<ComputeCall&>(node).id_);
    if (pending != nullptr) pending->answered(node);
    drop(node, errc::cancelled);
    if (pending != nullptr) pending->resolved();
  }
  static constexpr NodeOps node_ops = {
      &ComputeCall::drop,  &ComputeCall::arrived,    nullptr,     "computation",
      NodeOps::Kind::task, MessageClass::guaranteed, Lane::urgent};

  F function_;
  const Address to_;
  const std::uint64_t id_;
};

}   // namespace duet::runtime::detail
