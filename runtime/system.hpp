// system.hpp: a system of actors over a host's executor.
#pragma once

#include "runtime/detail/core.hpp"
#include "runtime/detail/description.hpp"
#include "runtime/detail/spawn.hpp"
#include "runtime/ref.hpp"
#include "runtime/snapshot.hpp"
#include "runtime/system_options.hpp"

#include <boost/asio/any_io_executor.hpp>

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace duet::runtime {

/// Any number of systems may share an executor. The members may be called on any thread, also by
/// actors, except where said.
class System {
 public:
  /// `executor` belongs to an execution context; the threads that run it run the actors. If the
  /// context is destroyed first, the system ends then: all actors are destroyed.
  explicit System(boost::asio::any_io_executor executor, SystemOptions options = {});
  System(const System&) = delete;
  System& operator=(const System&) = delete;

  /// Ends the system: waits for what runs on other threads, then destroys all actors. Frames that
  /// are suspended in a foreign operation are destroyed when that operation completes. Not by one
  /// of the system's own actors (asserted).
  ~System();

  /// Makes an actor.
  ///
  /// A behaviour: `spawn("name", function, args...)`, where `function` takes a Self<M> and then the
  /// arguments by value. It begins to run at its first activation.
  ///
  /// A handler actor: `spawn<X>("name", args...)` constructs X(context, args...) here and now.
  ///
  /// Empty, with nothing spawned, if the system is stopping or has ended.
  template <typename X = void, typename... Args>
  auto spawn(const ActorOptions& options, Args&&... args) const {
    return detail::spawn<X>(*core_, options, std::forward<Args>(args)...);
  }

  /// Asks all actors to end; nothing is spawned any more. `done` runs as a handler of the host's
  /// executor, once: when none is left, or after `patience` with those who are. Once a system.
  void stop(Duration patience, std::function<void(StopReport)> done) const {
    core_->stop(patience, std::move(done));
  }

  /// Asks one actor to end. False if it has ended.
  template <Language M>
  bool stop(const Ref<M>& actor) const noexcept {
    return detail::Core::request_stop(actor.address());
  }

  /// Ends one actor whether it wants to or not, with `why` as its exit reason's text: a handler
  /// actor at its next turn, a behaviour where it waits (what it awaits is cancelled). Code that
  /// blocks or computes cannot be ended. False if it has ended.
  template <Language M>
  bool kill(const Ref<M>& actor, const std::string& why) const {
    return detail::Core::kill(actor.address(), std::make_exception_ptr(KilledError(why)));
  }

  /// Reads side records; never waits for an actor.
  [[nodiscard]] SystemSnapshot snapshot() const { return core_->snapshot(); }

  /// Asks one actor, by its number in a snapshot, what it says about itself: `Properties snapshot()
  /// const` of a handler actor, Self::describe() of a behaviour. `done` is called once, and must
  /// not throw: on the actor's strand; or with nothing if it says nothing, has ended or ends first.
  /// An actor that is stuck does not come to it: what it does the snapshot tells.
  void describe(std::uint64_t number, std::function<void(std::optional<Properties>)> done) const {
    detail::describe(core_->find(number), std::move(done));
  }

  /// Valid until the system or its host's context ends.
  [[nodiscard]] Clock& clock() const noexcept { return core_->clock(); }
  [[nodiscard]] Random& random() const noexcept { return core_->random(); }
  [[nodiscard]] CompletionSource& completions() const noexcept { return core_->completions(); }

  /// True once the host's context has ended it.
  [[nodiscard]] bool finished() const noexcept { return core_->finished(); }

  [[nodiscard]] const std::shared_ptr<detail::Core>& core() const noexcept { return core_; }

 private:
  std::shared_ptr<detail::Core> core_;
};

}   // namespace duet::runtime
