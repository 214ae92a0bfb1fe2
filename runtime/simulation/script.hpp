// script.hpp: drives actors by hand, message by message: for tests of one actor's protocol.
#pragma once

#include "runtime/detail/message_node.hpp"
#include "runtime/handler_actor.hpp"
#include "runtime/ref.hpp"
#include "runtime/simulation/simulation.hpp"
#include "runtime/system.hpp"

#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace duet::runtime::simulation {

/// What a script expected did not happen, or what it forbade did. The text says what was there.
class ScriptError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

struct ScriptOptions {
  std::uint64_t seed = 1;   ///< of what the actors draw; nothing else is drawn
  CallTimes call_times;
  SystemOptions system;   ///< its name and bounds; the seams are the script's
};

namespace detail {

/// Keeps the one message that it was made to take.
template <typename M>
class ProbeActor final : public HandlerActor<ProbeActor<M>, M> {
 public:
  explicit ProbeActor(std::shared_ptr<std::optional<M>> taken) : taken_(std::move(taken)) {}
  template <typename T>
  void on(T message) {
    taken_->emplace(std::in_place_type<T>, std::move(message));
  }

 private:
  std::shared_ptr<std::optional<M>> taken_;
};

}   // namespace detail

/// Stands for an actor that is not there: what is sent to it lies in its mailbox until the script
/// takes it. Copied freely.
template <Language M>
class Probe {
 public:
  [[nodiscard]] const Ref<M>& ref() const noexcept { return ref_; }

 private:
  friend class Script;
  Ref<M> ref_;
  std::shared_ptr<std::optional<M>> taken_;
};

/// One system, of which nothing runs but what the script says, one message at a time:
///
///   Script script;
///   auto driver = script.probe<DriverMessage>("driver");
///   auto session = script.system().spawn<Session>("session", driver.ref());
///   script.step(session);                                    // started()
///   script.inject(session, Load{7});
///   script.forbid<Unload>(driver.ref());
///   script.step(session);
///   script.expect<Open>(driver.ref(), [](const Open& open) { return open.model == 7; });
///   script.advance(250ms);                                   // the session's patience
///   script.step(session);                                    // its timer
///
/// Every member that finds something else throws ScriptError. One thread.
class Script {
 public:
  explicit Script(ScriptOptions options = {});

  [[nodiscard]] const System& system() const noexcept { return system_; }
  [[nodiscard]] Simulation& simulation() noexcept { return simulation_; }

  template <Language M>
  [[nodiscard]] Probe<M> probe(std::string_view name) {
    Probe<M> probe;
    probe.taken_ = std::make_shared<std::optional<M>>();
    probe.ref_ = system_.spawn<detail::ProbeActor<M>>(name, probe.taken_);
    run_ready_actor(probe.ref_.address());   // so that it is idle
    probes_.push_back(probe.ref_.address());
    return probe;
  }

  // Running.

  /// The actor begins, or handles its next message, completion or timer. It must be ready.
  template <Language M>
  void step(const Ref<M>& actor) {
    run_ready_actor(actor.address());
  }
  /// Whatever is first in line, but no probe. False: nothing is ready.
  bool step();
  /// Steps in line until nothing is ready. Time stands still. At most `steps_max`.
  void settle(std::uint64_t steps_max = 100'000);
  /// Time goes on; what becomes due goes into mailboxes, in order, and waits there. A blocking call
  /// that comes back is delivered; what a host posted waits in line.
  void advance(Duration time);

  /// Who is ready, by name, in the order in which step() runs them; "" is a handler of the host.
  /// Probes are left out.
  [[nodiscard]] std::vector<std::string> line() const;
  [[nodiscard]] bool is_ready(const Address& actor) const noexcept;
  /// Two that are ready change their places in line.
  template <Language M, Language N>
  void reorder(const Ref<M>& a, const Ref<N>& b) {
    reorder(a.address(), b.address());
  }

  // Messages.

  /// A message from outside. Throws if it is refused.
  template <Language M, typename T>
  requires HasMessage<M, T>
  void inject(const Ref<M>& actor, T message) {
    if (const SendStatus status = actor.send(std::move(message)); !status.ok()) {
      throw ScriptError(std::string("inject ") + type_name<T>() + ": " + status.error().message());
    }
    check_forbidden();
  }

  /// A T, for which `accept` holds, lies in the actor's mailbox: somebody sent it and it was not
  /// handled yet. The first such; valid until the next step.
  template <typename T, Language M, std::predicate<const T&> F>
  requires HasMessage<M, T>
  const T& expect(const Ref<M>& actor, F accept) {
    const T* const found = find<T>(actor, accept);
    if (found == nullptr) throw_missing(type_name<T>(), actor.address());
    return *found;
  }
  template <typename T, Language M>
  requires HasMessage<M, T>
  const T& expect(const Ref<M>& actor) {
    return expect<T>(actor, [](const T&) { return true; });
  }

  /// From now on no T for which `reject` holds may come to the actor; it is looked for after every
  /// step and injection.
  template <typename T, Language M, std::predicate<const T&> F>
  requires HasMessage<M, T>
  void forbid(const Ref<M>& actor, F reject) {
    forbidden_.push_back(Forbidden{type_name<T>(), actor.address(), [this, actor, reject] {
                                     return find<T>(actor, reject) != nullptr;
                                   }});
    check_forbidden();
  }
  template <typename T, Language M>
  requires HasMessage<M, T>
  void forbid(const Ref<M>& actor) {
    forbid<T>(actor, [](const T&) { return true; });
  }
  /// Nothing is forbidden any more.
  void allow_all() noexcept { forbidden_.clear(); }

  /// The probe's next message, which must be a T: to look at, and to answer.
  template <typename T, Language M>
  requires HasMessage<M, T>
  [[nodiscard]] T take(const Probe<M>& probe) {
    const Queued first = first_queued(probe.ref().address());
    if (!runtime::detail::carries<M, T>(first.ops)) {
      throw_missing(type_name<T>(), probe.ref().address());
    }
    run_ready_actor(probe.ref().address());
    T message = std::move(std::get<T>(**probe.taken_));
    probe.taken_->reset();
    return message;
  }

  /// Types of what lies in an actor's mailbox, in the order in which it will be handled.
  [[nodiscard]] std::vector<std::string> mailbox(const Address& actor) const;

 private:
  struct Forbidden {
    const char* type;
    Address actor;
    std::function<bool()> came;
  };
  struct Queued {
    const runtime::detail::NodeOps* ops = nullptr;
  };

  template <typename T, typename M, typename F>
  [[nodiscard]] const T* find(const Ref<M>& actor, const F& accept) const {
    const T* found = nullptr;
    visit(actor.address(), [&](const runtime::detail::Node& node) {
      if (found != nullptr || !runtime::detail::carries<M, T>(node.ops)) return;
      const T& candidate = static_cast<const runtime::detail::MessageNode<T>&>(node).message;
      if (accept(candidate)) found = &candidate;
    });
    return found;
  }
  static void visit(const Address& actor,
                    const std::function<void(const runtime::detail::Node&)>& function);
  [[nodiscard]] static Queued first_queued(const Address& actor);

  void run_ready_actor(const Address& actor);
  void reorder(const Address& a, const Address& b);
  [[nodiscard]] bool is_probe(const Address& actor) const noexcept;
  [[nodiscard]] std::size_t place_of(const Address& actor, const char* what) const;
  void check_forbidden();
  [[noreturn]] void throw_missing(const char* type, const Address& actor) const;
  [[nodiscard]] std::string describe_actor(const Address& actor) const;

  Simulation simulation_;
  System system_;
  std::vector<Address> probes_;
  std::vector<Forbidden> forbidden_;
};

}   // namespace duet::runtime::simulation
