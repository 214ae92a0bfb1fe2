// handler_actor.hpp: actors written as one function a message, for the hot and the numerous.
#pragma once

#include "runtime/actor_executor.hpp"
#include "runtime/ask.hpp"
#include "runtime/detail/callbacks.hpp"
#include "runtime/detail/message_node.hpp"
#include "runtime/detail/spawn.hpp"
#include "runtime/link.hpp"
#include "runtime/monitor.hpp"
#include "runtime/ref.hpp"

#include <concepts>
#include <cstddef>
#include <optional>
#include <source_location>
#include <type_traits>
#include <utility>
#include <variant>

namespace duet::runtime {

/// `class X final : public HandlerActor<X, M>` has an overload `on(T)` for every T of M; a missing
/// one does not compile. They run one at a time; none may block. An exception that leaves one ends
/// the actor as failed. X is constructed by spawn() on the spawner's thread, where it cannot use
/// the members below yet; `void started()`, if there is one, runs on the strand before any message.
/// `Properties snapshot() const`, if there is one, runs on the strand when somebody looks.
template <typename X, Language M>
class HandlerActor : public ActorBase {
 public:
  using language = M;

  template <typename... Args>
  static Ref<M> spawn(detail::Core& core, const ActorOptions& options, Args&&... args) {
    X* const actor = detail::create<X>(std::forward<Args>(args)...);
    return Ref<M>(core.spawn(options, *actor));
  }

  Outcome activate() noexcept final;

  void stop_requested() final {
    if constexpr (HasMessage<M, Stop>) {
      derived().on(Stop{});
    } else {
      end(ExitReason(ExitKind::stopped));
    }
  }

  [[nodiscard]] std::optional<Properties> properties() const final {
    if constexpr (requires(const X& x) { x.snapshot(); }) {
      return static_cast<const X&>(*this).snapshot();
    } else {
      return std::nullopt;
    }
  }

  void destroy() noexcept final {
    while (detail::Pending* const pending = this->pending().first()) pending->abandon();
    detail::destroy(&derived());
  }

 protected:
  HandlerActor() = default;
  ~HandlerActor() override = default;

  [[nodiscard]] Ref<M> self() const noexcept { return Ref<M>(address()); }
  [[nodiscard]] actor_executor executor() const noexcept { return actor_executor(address()); }
  [[nodiscard]] TimePoint now() const noexcept { return core().clock().now(); }
  [[nodiscard]] Random& random() const noexcept { return core().random(); }

  /// Of the message being handled; not in a callback.
  [[nodiscard]] Envelope envelope() const noexcept {
    return detail::envelope_of(*detail::thread_state().message);
  }

  /// What inspection shows from now on while this actor waits, with the place of this call: a
  /// literal such as "completion". Null, as at first: a message. Two stores; call it when it
  /// changes.
  void set_waits_for(const char* what,
                     std::source_location where = std::source_location::current()) noexcept {
    slot().side().set_wait(what, where);
  }

  /// Ends this actor once the running handler has returned. What is queued is dropped.
  void finish() noexcept { end(ExitReason(ExitKind::finished)); }

  /// `message` comes to on() after `delay`, unless cancelled.
  template <typename T>
  requires HasMessage<M, T> TimerId send_after(Duration delay, T message) {
    return detail::begin_timer<X>(derived(), now() + delay, std::move(message));
  }
  /// False if it has come already.
  bool cancel_timer(TimerId timer) noexcept {
    detail::Pending* const pending = this->pending().find(static_cast<std::uint64_t>(timer));
    if (pending == nullptr) return false;
    pending->abandon();
    return true;
  }

  /// Calls `callback(AskResult<ReplyOf<T>>)` on the strand, exactly once unless we end first.
  template <Language N, Request T, std::invocable<AskResult<ReplyOf<T>>> F>
  requires HasMessage<N, T>
  void ask(const Ref<N>& to, T request, Duration timeout, F callback) {
    detail::begin_ask(*this, to, std::move(request), timeout, std::move(callback));
  }

  /// Runs `function` on a compute thread, then `callback(Offloaded<R>)` on the strand.
  template <typename F, typename C>
  void offload(F function, C callback) {
    detail::begin_offload(*this, std::move(function), std::move(callback));
  }

  /// A Down comes to on() when `watched` ends; at once if it has ended. Once a call: who monitors
  /// twice is told twice.
  template <Language N>
  requires HasMessage<M, Down>
  void monitor(const Ref<N>& watched) const { detail::monitor<M>(watched.address(), self()); }
  /// Takes all our monitors of `watched` back. A Down that is on its way still comes.
  template <Language N>
  void demonitor(const Ref<N>& watched) const {
    detail::send_unmonitor(watched.address(), address(), false);
  }

  /// As those of Self.
  template <Language N>
  void link(const Ref<N>& other) {
    detail::link(*this, other.address());
  }
  template <Language N>
  requires HasMessage<M, Down>
  void link_told(const Ref<N>& other) { detail::link_told<M>(*this, other.address()); }
  template <Language N>
  void unlink(const Ref<N>& other) {
    detail::unlink(*this, other.address());
  }

  /// As System::spawn(); the new actor is our child.
  template <typename Y = void, typename... Args>
  auto spawn_child(const ActorOptions& options, Args&&... args) const {
    return detail::spawn<Y>(core(), options, std::forward<Args>(args)...);
  }

  /// As spawn_child() and link() or monitor() in one: no end can be missed in between.
  template <typename Y = void, typename... Args>
  auto spawn_linked(const ActorOptions& options, Args&&... args) {
    return detail::spawn_linked<Y>(*this, options, std::forward<Args>(args)...);
  }
  template <typename Y = void, typename... Args>
  requires HasMessage<M, Down>
  auto spawn_monitored(const ActorOptions& options, Args&&... args) {
    return detail::spawn_monitored<M, Y>(*this, options, std::forward<Args>(args)...);
  }

 private:
  template <typename, typename>
  friend class detail::CallbackTimer;

  [[nodiscard]] X& derived() noexcept { return static_cast<X&>(*this); }

  void start() {
    this->set_begun();
    if constexpr (requires(X & x) { x.started(); }) derived().started();
  }

  void handle(detail::MessageHeader& header) {
    slot().handling(header);
    detail::thread_state().message = &header;
    handle_as<0>(header);
  }

  template <std::size_t I>
  void handle_as(detail::MessageHeader& header) {
    if constexpr (I + 1 < std::variant_size_v<M>) {
      if (header.ops->index != I) return handle_as<I + 1>(header);
    }
    auto& node = static_cast<detail::MessageNode<std::variant_alternative_t<I, M>>&>(header);
    const detail::MessageOwner owner(node);
    derived().on(std::move(node.message));
  }
};

template <typename X, Language M>
ActorBase::Outcome HandlerActor<X, M>::activate() noexcept {
  detail::Slot& own = slot();
  detail::SideRecord& side = own.side();
  std::uint32_t left = detail::thread_state().activation_messages;
  for (;;) {
    try {
      if (!this->has_begun()) start();
      while (left > 0 && !ended()) {
        own.take_urgent();
        if (detail::Node* const task = own.next_task()) {
          --left;
          own.observe(*task);
          task->ops->run(*task, *this);
          continue;
        }
        detail::MessageHeader* const message = own.next_message();
        if (message == nullptr) break;
        --left;
        handle(*message);
      }
    } catch (...) {
      end(ExitReason(ExitKind::failed, std::current_exception()));
    }
    if (ended()) return Outcome::ended;
    side.set_message(nullptr);
    side.enter(detail::Activity::waiting, detail::thread_state().stamp);
    if (left == 0 && (own.has_task() || own.has_message() || own.urgent_came())) {
      return Outcome::again;
    }
    switch (own.try_idle()) {
      case detail::Inbox::Idle::idle:
        return Outcome::idle;
      case detail::Inbox::Idle::reclaimed:
        return Outcome::again;
      case detail::Inbox::Idle::busy:
        if (left == 0) return Outcome::again;
        side.enter(detail::Activity::running, detail::thread_state().stamp);
    }
  }
}

}   // namespace duet::runtime
