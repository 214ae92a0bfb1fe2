// supervisor.hpp: an actor that starts others in order, restarts those that fail, and stops them in
// reverse order.
#pragma once

#include "runtime/child_spec.hpp"
#include "runtime/handler_actor.hpp"
#include "runtime/restart_policy.hpp"
#include "runtime/supervisor_event.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

namespace duet::runtime {

struct SupervisorOptions {
  Strategy strategy = Strategy::one_for_one;
  RestartLimit limit;   ///< of all children together
  Backoff backoff;      ///< a child's own; begins anew a window after its last failure
  /// From ending a late child by force until it is abandoned.
  Duration kill_deadline = std::chrono::seconds(1);
  /// Of the children that StartChild added; they are one stage.
  Duration started_stop_deadline = std::chrono::seconds(5);
  std::size_t children_max = limits::children_max_default;
  SupervisorHook on_event;   ///< unset: that of the supervisor above, if there is one
};

/// Adds a child to a supervisor with the strategy one_for_one. Refused with overloaded at
/// children_max, with cancelled while the supervisor ends or by another strategy, with
/// receiver_gone if the factory threw (a permanent or transient child is then tried again). A
/// refused child's arguments are destroyed, and the hook is told.
///
/// Such a child comes after all others and is forgotten when it has ended for good.
struct StartChild {
  explicit StartChild(ChildSpec child) noexcept : spec(std::move(child)) {}
  Reply<Address> reply;
  ChildSpec spec;
};
template <>
inline constexpr MessageClass message_class<StartChild> = MessageClass::bounded;

namespace detail {

/// A child's back-off, or with child 0 that of a group, is over.
struct RestartDue {
  std::uint64_t child = 0;
};
/// The stage in progress has had its time.
struct StageDue {};

}   // namespace detail

template <>
inline constexpr MessageClass message_class<detail::RestartDue> = MessageClass::guaranteed;
template <>
inline constexpr MessageClass message_class<detail::StageDue> = MessageClass::guaranteed;

using SupervisorMessage =
    std::variant<Stop, Down, StartChild, detail::RestartDue, detail::StageDue>;

/// system.spawn<Supervisor>("root", options, children), or Children and add_supervisor() below.
///
/// Strand:    its own; factories and the hook run there.
/// Starts:    its children in order, each when the one before has been spawned. Children are
///            watched from before their first message: no end is missed.
/// Restarts:  by Restart, Strategy, RestartLimit and Backoff. A factory that throws is a life that
///            failed at once.
/// Gives up:  at one restart too many: it stops its children and fails with a SupervisorError that
///            names the child, so that the supervisor above acts. Also if a child that must be
///            stopped for a restart cannot be ended: it never starts a second life beside a first.
/// Stops:     on Stop, stage by stage in reverse order: each child is asked, at its deadline ended
///            by force, after kill_deadline abandoned. Late ones are told with their snapshots. Who
///            left one behind ends as failed and says so, and is not started again.
/// Killed:    its children are killed too; nobody waits for them then.
/// System:    System::stop() asks a child's supervisor, not the child, so that the order holds.
class Supervisor final : public HandlerActor<Supervisor, SupervisorMessage> {
 public:
  Supervisor(SupervisorOptions options, const Children& children);
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;
  ~Supervisor() override;

  void started();
  void on(Stop);
  void on(const Down& down);
  void on(StartChild command);
  void on(detail::RestartDue due);
  void on(detail::StageDue);

 private:
  using Key = std::uint64_t;   // running number; the order of the children

  enum class Mode : std::uint8_t {
    running,
    regrouping,   // children from floor_ on are stopped, then started again
    stopping,     // all are stopped, then it finishes
    failing       // all are stopped, then it fails
  };
  enum class ChildState : std::uint8_t { absent, alive, backing_off, stopping, abandoned };

  struct Child {
    explicit Child(ChildSpec child_spec) noexcept : spec(std::move(child_spec)) {}
    ChildSpec spec;
    Address address;
    ChildState state = ChildState::absent;
    bool dynamic = false;
    std::uint32_t restarts = 0;   // in a row, none a window after the one before
    TimePoint failed{};           // when it last needed one
    TimerId timer{};              // of its back-off
  };
  struct AddressHash {
    std::size_t operator()(const Address& address) const noexcept;
  };
  using ChildMap = std::map<Key, Child>;

  enum class Start : std::uint8_t { started, failed, refused };
  Start start(Key key, Child& child);
  void start_from(Key floor);

  /// The actor that could not be ended, if a supervisor says so; else nothing.
  [[nodiscard]] static std::optional<std::string> left_behind(const ExitReason& reason);
  [[nodiscard]] static bool wants_restart(const Child& child, const ExitReason& reason) noexcept;
  void child_failed(Key key, Child& child, const ExitReason& reason);
  void forget_if_done(ChildMap::iterator child);
  void regroup(Key floor, Duration delay);
  void give_up(const std::string& child, const std::string& why, bool beyond_restart);
  [[nodiscard]] ExitReason failure() const;

  void begin_sweep();
  void next_stage();
  void stage_began(Duration deadline);
  void kill_late();
  void abandon_late();
  void swept();

  void tell(SupervisorEvent event) const;
  [[nodiscard]] SupervisorEvent event(SupervisorEvent::Kind kind, const Child& child) const;
  [[nodiscard]] Duration stop_deadline(const Child& child) const noexcept;

  const SupervisorOptions options_;
  std::string name_;
  Mode mode_ = Mode::running;
  ChildMap children_;
  std::unordered_map<Address, Key, AddressHash> living_;   // looked up only
  Key last_key_ = 0;
  RestartWindow window_;

  // Of failing: why, because of whom, and whether another life would do harm. Empty: not failing.
  std::string why_;
  std::string why_child_;
  bool why_beyond_restart_ = false;

  // Of a sweep: stopping children from the last one down to floor_.
  Key floor_ = 0;
  Key swept_to_ = 0;             // from here on nobody lives
  Key stage_top_ = 0;            // the stage in progress is [swept_to_, stage_top_)
  std::size_t stage_left_ = 0;   // of them, not down yet
  bool stage_killed_ = false;
  std::string left_behind_;   // the child that could not be ended; empty if there is none
  Duration regroup_delay_{};
  TimerId stage_timer_{};   // of the stage, or of the group's back-off
  std::vector<ActorSnapshot> late_;
};

/// The longest that an orderly stop of such a supervisor takes.
[[nodiscard]] Duration stop_time_max(const SupervisorOptions& options, const Children& children);

/// A child that is a supervisor itself. Its stop deadline, unless set, is stop_time_max() and a
/// kill_deadline more.
ChildRef<SupervisorMessage> add_supervisor(Children& to, ChildOptions child,
                                           SupervisorOptions options, Children children);

}   // namespace duet::runtime
