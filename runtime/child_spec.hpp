// child_spec.hpp: what a supervisor starts, again and again, and how others reach it.
#pragma once

#include "runtime/detail/child_place.hpp"
#include "runtime/link.hpp"
#include "runtime/ref.hpp"
#include "runtime/restart_policy.hpp"
#include "runtime/supervisor_event.hpp"
#include "runtime/system_options.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace duet::runtime {

struct ChildOptions {
  // NOLINTNEXTLINE(google-explicit-constructor): a name is what most children have
  ChildOptions(const char* child_name) : name(child_name) {}
  ChildOptions(std::string_view child_name) : name(child_name) {}
  ChildOptions(std::string child_name) noexcept : name(std::move(child_name)) {}

  std::string name;
  Restart restart = Restart::permanent;

  /// From being asked to stop until it is ended by force. Unset: 5 s, and for a supervisor the
  /// sum of what its children may take.
  std::optional<Duration> stop_deadline;

  /// Neighbours with the same number, other than 0, are stopped together. 0: a stage of its own.
  std::uint32_t stage = 0;

  std::uint32_t bounded_max = 0;           ///< as ActorOptions
  bool run_on_completion_thread = false;   ///< as ActorOptions
};

/// A reference to whatever life a supervised child has now. Copied freely, used on any thread, also
/// before the child's first life and after its last: then a send says receiver_gone. Whoever must
/// know of each new life monitors ref(), or listens to the supervisor's events.
template <Language M>
class ChildRef {
 public:
  using language = M;

  /// Of a child that Children::add_as() adds later.
  ChildRef() : place_(std::make_shared<detail::ChildPlace>()) {}

  /// The present life, for an ask or a monitor; empty between two lives. Not to be kept.
  [[nodiscard]] Ref<M> ref() const noexcept { return Ref<M>(place_->read()); }

  /// As Ref::send() to the present life.
  template <typename T>
  requires HasMessage<M, T>
  auto send(T message, TimePoint deadline = TimePoint::max()) const {
    return ref().send(std::move(message), deadline);
  }

  [[nodiscard]] bool alive() const noexcept { return place_->read().alive(); }

  [[nodiscard]] const std::shared_ptr<detail::ChildPlace>& place() const noexcept { return place_; }

 private:
  std::shared_ptr<detail::ChildPlace> place_;
};

/// What a child's factory spawns with: once a call, and it returns what it spawned. Valid during
/// the call.
class Spawner {
 public:
  Spawner(detail::Core& core, const ChildOptions& options, detail::MonitorNode& watcher,
          const SupervisorHook& hook) noexcept
      : core_(core), options_(options), watcher_(&watcher), hook_(hook) {}
  Spawner(const Spawner&) = delete;
  Spawner& operator=(const Spawner&) = delete;
  ~Spawner() {
    if (watcher_ != nullptr) watcher_->fire(*watcher_, Address(), nullptr);
  }

  /// As System::spawn(), under the child's name and options.
  template <typename X = void, typename... Args>
  auto spawn(Args&&... args) {
    if (watcher_ == nullptr) throw std::logic_error("a factory spawns one actor");
    ActorOptions options(options_.name);
    options.bounded_max = options_.bounded_max;
    options.run_on_completion_thread = options_.run_on_completion_thread;
    options.supervised = true;
    const auto ref = detail::spawn_watched<X>(core_, *std::exchange(watcher_, nullptr), options,
                                              std::forward<Args>(args)...);
    spawned_ = ref.address();
    return ref;
  }

  [[nodiscard]] const Address& spawned() const noexcept { return spawned_; }
  /// The supervisor's own, for a child that is a supervisor.
  [[nodiscard]] const SupervisorHook& hook() const noexcept { return hook_; }

 private:
  detail::Core& core_;
  const ChildOptions& options_;
  detail::MonitorNode* watcher_;
  const SupervisorHook& hook_;
  Address spawned_;
};

/// Options, a factory, and the place that the present life is published at. A value; copies share
/// the place.
class ChildSpec {
 public:
  using Factory = std::function<Address(Spawner&)>;

  ChildSpec(ChildOptions options, Factory factory, std::shared_ptr<detail::ChildPlace> place)
      : options_(std::move(options)),
        factory_(std::make_shared<const Factory>(std::move(factory))),
        place_(std::move(place)) {}

  [[nodiscard]] const ChildOptions& options() const noexcept { return options_; }
  [[nodiscard]] detail::ChildPlace& place() const noexcept { return *place_; }
  /// Throws what the factory throws.
  [[nodiscard]] Address start(Spawner& spawner) const { return (*factory_)(spawner); }

 private:
  ChildOptions options_;
  std::shared_ptr<const Factory> factory_;
  std::shared_ptr<detail::ChildPlace> place_;
};

namespace detail {

template <typename X, typename First>
struct ChildLanguage {
  using type = typename X::language;
};
template <typename First>
struct ChildLanguage<void, First> {
  using type = typename BehaviourFunction<std::decay_t<First>>::language;
};

/// X's language, or that of the behaviour that the first argument is.
template <typename X, typename... Args>
using ChildLanguageOf =
    typename ChildLanguage<X, std::tuple_element_t<0, std::tuple<Args..., void>>>::type;

/// Spawns with copies of the arguments for each life.
template <typename X, typename... Args>
ChildSpec::Factory copying_factory(Args&&... args) {
  return [kept = std::make_tuple(std::forward<Args>(args)...)](Spawner& spawner) {
    const auto spawn = [&spawner](auto&&... each) {   // const copies, or what std::ref referred to
      return spawner.spawn<X>(std::forward<decltype(each)>(each)...);
    };
    return std::apply(spawn, kept).address();
  };
}

/// Spawns once, with the arguments themselves.
template <typename X, typename... Args>
ChildSpec::Factory moving_factory(Args&&... args) {
  using Kept = std::tuple<std::decay_t<Args>...>;
  auto kept = std::make_shared<std::optional<Kept>>(std::in_place, std::forward<Args>(args)...);
  return [kept](Spawner& spawner) {
    Kept arguments(std::move(kept->value()));
    kept->reset();
    const auto spawn = [&spawner](auto&... each) { return spawner.spawn<X>(std::move(each)...); };
    return std::apply(spawn, arguments).address();
  };
}

}   // namespace detail

/// A child for StartChild: X(args...), or the behaviour args... with copies of the arguments for
/// each life (std::ref for what is to be shared). `ref` reaches it.
template <typename X = void, typename... Args, typename M = detail::ChildLanguageOf<X, Args...>>
[[nodiscard]] ChildSpec child_spec(const ChildRef<M>& ref, ChildOptions options, Args&&... args) {
  return {std::move(options), detail::copying_factory<X>(std::forward<Args>(args)...), ref.place()};
}

/// The same for one life, with the arguments themselves, which need not be copyable: a session with
/// its socket. Always temporary.
template <typename X = void, typename... Args>
[[nodiscard]] ChildSpec child_spec_once(ChildOptions options, Args&&... args) {
  options.restart = Restart::temporary;
  return {std::move(options), detail::moving_factory<X>(std::forward<Args>(args)...),
          std::make_shared<detail::ChildPlace>()};
}

/// The children that a supervisor starts with, in their order. A value.
class Children {
 public:
  /// A handler actor X(args...), or a behaviour: add("name", function, args...). Copies of the
  /// arguments serve each life; std::ref passes what is to be shared.
  template <typename X = void, typename... Args, typename M = detail::ChildLanguageOf<X, Args...>>
  ChildRef<M> add(ChildOptions options, Args&&... args) {
    ChildRef<M> ref;
    add_as<X>(ref, std::move(options), std::forward<Args>(args)...);
    return ref;
  }

  /// The same under a reference that others have been given already.
  template <typename X = void, typename... Args, typename M = detail::ChildLanguageOf<X, Args...>>
  void add_as(const ChildRef<M>& ref, ChildOptions options, Args&&... args) {
    specs_.push_back(child_spec<X>(ref, std::move(options), std::forward<Args>(args)...));
  }

  /// A child that `factory(Spawner&)` makes: it calls spawner.spawn<X>(...) once and returns that
  /// reference. It runs on the supervisor's strand before each life; what it throws is a life that
  /// failed at once.
  template <Language M, typename F>
  void add_made(const ChildRef<M>& ref, ChildOptions options, F factory) {
    static_assert(std::is_same_v<std::invoke_result_t<F&, Spawner&>, Ref<M>>);
    const auto make = [factory](Spawner& spawner) { return factory(spawner).address(); };
    specs_.emplace_back(std::move(options), make, ref.place());
  }

  [[nodiscard]] const std::vector<ChildSpec>& specs() const noexcept { return specs_; }

 private:
  std::vector<ChildSpec> specs_;
};

}   // namespace duet::runtime
