// sim_executor.hpp: the execution context on which a simulated system lives.
#pragma once

#include "runtime/detail/pool.hpp"
#include "runtime/simulation/ready_set.hpp"

#include <boost/asio/execution.hpp>
#include <boost/asio/execution_context.hpp>

#include <type_traits>
#include <utility>

namespace duet::runtime::simulation {

/// Has no threads, no sockets and no timers of its own: an Asio operation of the operating system
/// does not belong in a simulation.
class SimContext final : public boost::asio::execution_context {
 public:
  explicit SimContext(ReadySet& ready) noexcept : ready_(ready) {}
  ~SimContext() {
    shutdown();
    destroy();
  }
  [[nodiscard]] ReadySet& ready() const noexcept { return ready_; }

 private:
  ReadySet& ready_;
};

template <typename F>
class FunctionHandler final : public HostHandler {
 public:
  explicit FunctionHandler(F&& function) : function_(std::move(function)) {}
  explicit FunctionHandler(const F& function) : function_(function) {}
  ~FunctionHandler() override = default;

  void run() noexcept override {
    F function(std::move(function_));
    drop();
    function();
  }
  void drop() noexcept override { detail::destroy(this); }

 private:
  F function_;
};

/// What it is given becomes ready; it never runs inside execute(). Handlers run in any order.
class SimExecutor {
 public:
  explicit SimExecutor(SimContext& context) noexcept : context_(&context) {}

  [[nodiscard]] boost::asio::execution_context& query(
      boost::asio::execution::context_t) const noexcept {
    return *context_;
  }
  [[nodiscard]] static constexpr boost::asio::execution::blocking_t query(
      boost::asio::execution::blocking_t) noexcept {
    return boost::asio::execution::blocking.never;
  }
  friend bool operator==(const SimExecutor& a, const SimExecutor& b) noexcept {
    return a.context_ == b.context_;
  }
  friend bool operator!=(const SimExecutor& a, const SimExecutor& b) noexcept { return !(a == b); }

  template <typename F>
  void execute(F&& function) const {
    auto* const handler =
        detail::create<FunctionHandler<std::decay_t<F>>>(std::forward<F>(function));
    context_->ready().push(*handler, nullptr);
  }

 private:
  SimContext* context_;
};

}   // namespace duet::runtime::simulation
