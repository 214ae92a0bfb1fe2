// self.hpp: what a behaviour can do.
#pragma once

#include "runtime/ask.hpp"
#include "runtime/behaviour.hpp"
#include "runtime/detail/waits.hpp"
#include "runtime/link.hpp"
#include "runtime/monitor.hpp"
#include "runtime/ref.hpp"
#include "runtime/system.hpp"

#include <concepts>
#include <source_location>
#include <type_traits>
#include <utility>

namespace duet::runtime {

/// While it lives, `function` is what the behaviour says about itself. Lies in the behaviour's
/// frame: `const auto shown = self.describe([&] { return Properties{{"open", open}}; });`
template <typename F>
class Description final : private detail::Describer {
 public:
  Description(detail::BehaviourActor& actor, F function)
      : actor_(actor), function_(std::move(function)), before_(actor.set_describer(this)) {}
  Description(const Description&) = delete;
  Description& operator=(const Description&) = delete;
  ~Description() { actor_.set_describer(before_); }

 private:
  [[nodiscard]] Properties say() const override { return function_(); }

  detail::BehaviourActor& actor_;
  const F function_;
  const detail::Describer* const before_;
};

/// The first parameter of a behaviour: itself. A pointer; valid in the behaviour's own frames.
///
/// What is awaited ends in one way. After a stop of an actor whose language has no Stop, or in the
/// losing branch of a race, receive() and sleep() throw system_error with errc::cancelled and an
/// ask ends as cancelled; once the actor is being stopped every further await throws, so that it
/// unwinds.
///
/// The members that begin with async_ do the same as those without, as coroutines for races:
///   auto first = co_await (socket.async_wait(wait_read, use_async) || self.async_receive());
/// (Asio's operator flattens a variant on its left side; so a receive stands on the right.)
template <Language M>
class Self {
  using Where = std::source_location;

 public:
  using language = M;

  explicit Self(detail::BehaviourActor& actor) noexcept : actor_(&actor) {}

  /// The next message; urgent ones first. One receive at a time.
  [[nodiscard]] detail::Awaiting<detail::Receive<M>> receive(
      const Where& where = Where::current()) const {
    return detail::await_operation<detail::Receive<M>>(*actor_, where);
  }

  /// As receive(), at most for `timeout`: then errc::timed_out. A message that is there already
  /// costs no timer.
  [[nodiscard]] detail::Awaiting<detail::ReceiveUntil<M>> receive_for(
      Duration timeout, const Where& where = Where::current()) const {
    return detail::await_operation<detail::ReceiveUntil<M>>(*actor_, now() + timeout, where);
  }

  [[nodiscard]] detail::Awaiting<detail::Sleep> sleep(Duration duration,
                                                      const Where& where = Where::current()) const {
    return detail::await_operation<detail::Sleep>(*actor_, now() + duration, where);
  }

  /// Sends `request` with a Reply in it and waits for the answer, at most for `timeout`. Resolves
  /// exactly once: a value, or timed_out, receiver_gone, overloaded, cancelled.
  template <Language N, Request T>
  requires HasMessage<N, T>
  [[nodiscard]] detail::Awaiting<detail::Ask<N, T>> ask(
      const Ref<N>& to, T request, Duration timeout, const Where& where = Where::current()) const {
    return detail::await_operation<detail::Ask<N, T>>(*actor_, to, std::move(request), timeout,
                                                      where);
  }

  /// Runs `function` on a compute thread; it owns all that it touches. Its value; or overloaded if
  /// too many wait already. What it throws is thrown here.
  template <typename F, typename R = std::invoke_result_t<F&>>
  [[nodiscard]] detail::Awaiting<detail::Offload<F, R>> offload(
      F function, const Where& where = Where::current()) const {
    return detail::await_operation<detail::Offload<F, R>>(*actor_, std::move(function), where);
  }

  [[nodiscard]] Async<M> async_receive(const Where& where = Where::current()) const {
    return receive_in(*this, where);
  }
  [[nodiscard]] Async<> async_sleep(Duration duration,
                                    const Where& where = Where::current()) const {
    return sleep_in(*this, duration, where);
  }
  template <Language N, Request T>
  requires HasMessage<N, T>
  [[nodiscard]] Async<AskResult<ReplyOf<T>>> async_ask(
      const Ref<N>& to, T request, Duration timeout, const Where& where = Where::current()) const {
    return ask_in(*this, to, std::move(request), timeout, where);
  }

  [[nodiscard]] Ref<M> ref() const noexcept { return Ref<M>(actor_->address()); }
  [[nodiscard]] actor_executor executor() const noexcept {
    return actor_executor(actor_->address());
  }
  /// For timers and sockets: the host's execution context.
  [[nodiscard]] boost::asio::execution_context& context() const noexcept {
    return actor_->slot().arena().context();
  }
  [[nodiscard]] TimePoint now() const noexcept { return actor_->core().clock().now(); }
  [[nodiscard]] Random& random() const noexcept { return actor_->core().random(); }

  /// Of the message received last: who sent it, under which number, until when.
  [[nodiscard]] const Envelope& envelope() const noexcept { return actor_->envelope(); }

  /// Until the result is destroyed, `function()` gives the Properties that inspection shows of this
  /// actor. It runs on the strand, between two awaits; it must not wait.
  template <std::invocable F>
  requires std::same_as<std::invoke_result_t<const F&>, Properties>
  [[nodiscard]] Description<F> describe(F function) const {
    return Description<F>(*actor_, std::move(function));
  }

  /// A Down comes here when `watched` ends; at once if it has ended. M must know Down. Once a call:
  /// who monitors twice is told twice.
  template <Language N>
  requires HasMessage<M, Down>
  void monitor(const Ref<N>& watched) const { detail::monitor<M>(watched.address(), ref()); }
  /// Takes all our monitors of `watched` back. A Down that is on its way still comes.
  template <Language N>
  void demonitor(const Ref<N>& watched) const {
    detail::send_unmonitor(watched.address(), ref().address(), false);
  }

  /// From now on, when one of both ends abnormally (failed, killed) the other is ended by force
  /// with that reason; an end that is finished or stopped only dissolves the link. Linking to one
  /// who has ended already ends us: how it ended can no longer be known.
  template <Language N>
  void link(const Ref<N>& other) const {
    detail::link(*actor_, other.address());
  }
  /// As link(), but we are not ended: we get a Down, of any end, as from monitor().
  template <Language N>
  requires HasMessage<M, Down>
  void link_told(const Ref<N>& other) const { detail::link_told<M>(*actor_, other.address()); }
  /// Takes the links between both back. An end that is on its way still comes.
  template <Language N>
  void unlink(const Ref<N>& other) const {
    detail::unlink(*actor_, other.address());
  }

  /// As System::spawn(); the new actor is our child.
  template <typename X = void, typename... Args>
  auto spawn(const ActorOptions& options, Args&&... args) const {
    return detail::spawn<X>(actor_->core(), options, std::forward<Args>(args)...);
  }
  /// As spawn() and link() or monitor() in one: no end can be missed in between.
  template <typename X = void, typename... Args>
  auto spawn_linked(const ActorOptions& options, Args&&... args) const {
    return detail::spawn_linked<X>(*actor_, options, std::forward<Args>(args)...);
  }
  template <typename X = void, typename... Args>
  requires HasMessage<M, Down>
  auto spawn_monitored(const ActorOptions& options, Args&&... args) const {
    return detail::spawn_monitored<M, X>(*actor_, options, std::forward<Args>(args)...);
  }
  /// As System::stop().
  template <Language N>
  bool stop(const Ref<N>& actor) const noexcept {
    return detail::Core::request_stop(actor.address());
  }

 private:
  static Async<M> receive_in(Self self, Where where) { co_return co_await self.receive(where); }
  static Async<> sleep_in(Self self, Duration duration, Where where) {
    co_await self.sleep(duration, where);
  }
  template <typename N, typename T>
  static Async<AskResult<ReplyOf<T>>> ask_in(Self self, Ref<N> to, T request, Duration timeout,
                                             Where where) {
    co_return co_await self.ask(to, std::move(request), timeout, where);
  }

  detail::BehaviourActor* actor_;
};

}   // namespace duet::runtime
