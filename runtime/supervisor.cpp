// supervisor.cpp: starting and restarting children; supervisor_stop.cpp is the other half.
#include "runtime/supervisor.hpp"

#include "runtime/assert.hpp"

#include <algorithm>
#include <exception>
#include <utility>

namespace duet::runtime {

std::size_t Supervisor::AddressHash::operator()(const Address& address) const noexcept {
  return std::hash<const void*>()(address.slot()) ^
         std::hash<std::uint64_t>()(address.generation() * 0x9e3779b97f4a7c15ULL);
}

Supervisor::Supervisor(SupervisorOptions options, const Children& children)
    : options_(std::move(options)), window_(options_.limit) {
  for (const ChildSpec& spec : children.specs()) children_.emplace(++last_key_, spec);
}

/// Whoever still lives here was not waited for: we were killed, or the system ends.
Supervisor::~Supervisor() {
  if (living_.empty()) return;
  const auto why = std::make_exception_ptr(KilledError("the supervisor " + name_ + " has ended"));
  for (auto child = children_.rbegin(); child != children_.rend(); ++child) {
    if (child->second.address.empty()) continue;
    child->second.spec.place().publish(Address());
    detail::Core::kill(child->second.address, why);
  }
}

// ---- starting ----

void Supervisor::started() {
  name_ = slot().side().name();
  start_from(0);
}

/// In order, all from `floor` on that do not live.
void Supervisor::start_from(Key floor) {
  for (auto next = children_.lower_bound(floor); next != children_.end();) {
    const auto child = next++;
    if (child->second.state != ChildState::absent) continue;
    const Start result = start(child->first, child->second);
    if (result == Start::refused) return;   // the system stops; so shall we
    if (result == Start::failed) forget_if_done(child);
    if (mode_ != Mode::running) return;   // a child that could not be started changed the plan
  }
}

Supervisor::Start Supervisor::start(Key key, Child& child) {
  DUET_ASSERT(child.state == ChildState::absent && child.address.empty());
  ExitReason failure;
  try {
    auto* const watcher =
        detail::create<detail::TypedMonitor<SupervisorMessage>>(Address(), address(), false);
    Spawner spawner(core(), child.spec.options(), *watcher, options_.on_event);
    const Address spawned = child.spec.start(spawner);
    if (spawned != spawner.spawned()) {
      detail::Core::kill(spawner.spawned(), std::make_exception_ptr(KilledError("not returned")));
      throw std::logic_error("a factory returns what its spawner spawned");
    }
    child.address = spawned;
  } catch (...) {
    failure = ExitReason(ExitKind::failed, std::current_exception());
  }
  if (failure.kind() == ExitKind::failed) {
    SupervisorEvent ended = event(SupervisorEvent::Kind::ended, child);
    ended.reason = failure;
    tell(std::move(ended));
    if (wants_restart(child, failure)) child_failed(key, child, failure);
    return Start::failed;
  }
  if (child.address.empty()) return Start::refused;
  child.state = ChildState::alive;
  living_.emplace(child.address, key);
  child.spec.place().publish(child.address);
  tell(event(SupervisorEvent::Kind::started, child));
  return Start::started;
}

void Supervisor::on(StartChild command) {
  const bool full = children_.size() >= options_.children_max;
  if (mode_ != Mode::running || options_.strategy != Strategy::one_for_one || full) {
    tell(event(SupervisorEvent::Kind::refused, Child(command.spec)));
    const bool wrong = mode_ != Mode::running || options_.strategy != Strategy::one_for_one;
    command.reply.fail(wrong ? errc::cancelled : errc::overloaded);
    return;
  }
  const auto child = children_.emplace(++last_key_, std::move(command.spec)).first;
  child->second.dynamic = true;
  switch (start(child->first, child->second)) {
    case Start::started:
      command.reply(child->second.address);
      break;
    case Start::failed:
      command.reply.fail(errc::receiver_gone);
      forget_if_done(child);
      break;
    case Start::refused:
      command.reply.fail(errc::cancelled);
      children_.erase(child);
  }
}

// ---- ends ----

void Supervisor::on(const Down& down) {
  const auto found = living_.find(down.actor);
  if (found == living_.end()) return;
  const auto entry = children_.find(found->second);
  living_.erase(found);
  const Key key = entry->first;
  Child& child = entry->second;
  SupervisorEvent ended = event(SupervisorEvent::Kind::ended, child);
  ended.reason = down.reason;
  const ChildState before = std::exchange(child.state, ChildState::absent);
  child.address = Address();
  child.spec.place().publish(Address());
  tell(std::move(ended));

  const bool alive = before == ChildState::alive;
  const bool in_group = mode_ == Mode::regrouping && key >= floor_;
  const std::optional<std::string> beyond = left_behind(down.reason);
  if (alive && beyond.has_value() && (mode_ == Mode::running || mode_ == Mode::regrouping)) {
    give_up(*beyond, child.spec.options().name + " failed: " + down.reason.text(), true);
    return;
  }
  if (alive && (mode_ == Mode::running || (mode_ == Mode::regrouping && !in_group)) &&
      wants_restart(child, down.reason)) {
    child_failed(key, child, down.reason);
    return;
  }
  // Of a child that was asked to stop: the stage may be over. Others end with the group or for
  // good.
  const bool of_stage = before == ChildState::stopping;
  if (of_stage && beyond.has_value()) left_behind_ = *beyond;
  forget_if_done(entry);
  if (!of_stage) return;
  DUET_ASSERT(stage_left_ > 0);
  if (--stage_left_ == 0) next_stage();
}

std::optional<std::string> Supervisor::left_behind(const ExitReason& reason) {
  if (reason.kind() != ExitKind::failed || reason.exception() == nullptr) return std::nullopt;
  try {
    std::rethrow_exception(reason.exception());
  } catch (const SupervisorError& error) {
    if (error.beyond_restart()) return error.child();
  } catch (...) {   // any other failure
  }
  return std::nullopt;
}

bool Supervisor::wants_restart(const Child& child, const ExitReason& reason) noexcept {
  switch (child.spec.options().restart) {
    case Restart::permanent:
      return true;
    case Restart::transient:
      return reason.abnormal();
    case Restart::temporary:
      return false;
  }
  DUET_UNREACHABLE();
}

/// Temporary children and those that were added later are not kept once they have ended.
void Supervisor::forget_if_done(ChildMap::iterator child) {
  if (child->second.state != ChildState::absent) return;
  const bool temporary = child->second.spec.options().restart == Restart::temporary;
  if (temporary || child->second.dynamic) children_.erase(child);
}

void Supervisor::child_failed(Key key, Child& child, const ExitReason& reason) {
  if (now() - child.failed >= options_.limit.window) child.restarts = 0;
  child.failed = now();
  ++child.restarts;
  if (!window_.admit(now())) {
    const std::string name = child.spec.options().name;
    give_up(name,
            name + " needs a restart after " + std::to_string(window_.count()) +
                " within the window, the last time: " + reason.text(),
            false);
    return;
  }
  const Duration delay = backoff_delay(options_.backoff, child.restarts, random().unit());
  SupervisorEvent restarting = event(SupervisorEvent::Kind::restarting, child);
  restarting.delay = delay;
  tell(std::move(restarting));
  switch (options_.strategy) {
    case Strategy::one_for_one:
      child.state = ChildState::backing_off;
      child.timer = send_after(delay, detail::RestartDue{key});
      break;
    case Strategy::rest_for_one:
      regroup(key, delay);
      break;
    case Strategy::one_for_all:
      regroup(0, delay);
      break;
  }
}

void Supervisor::regroup(Key floor, Duration delay) {
  regroup_delay_ = delay;
  if (mode_ == Mode::regrouping) {
    floor_ = std::min(floor_, floor);
    if (stage_left_ == 0) next_stage();   // else the sweep in progress goes down to the new floor
    return;
  }
  mode_ = Mode::regrouping;
  floor_ = floor;
  begin_sweep();
}

void Supervisor::on(detail::RestartDue due) {
  if (due.child == 0) {
    DUET_ASSERT(mode_ == Mode::regrouping && stage_left_ == 0);
    mode_ = Mode::running;
    set_waits_for(nullptr);
    start_from(floor_);
    return;
  }
  const auto child = children_.find(due.child);
  DUET_ASSERT(child != children_.end() && child->second.state == ChildState::backing_off);
  child->second.state = ChildState::absent;
  if (start(child->first, child->second) == Start::failed) forget_if_done(child);
}

ExitReason Supervisor::failure() const {
  return ExitReason(ExitKind::failed, std::make_exception_ptr(
                                          SupervisorError(name_ + " gives up: " + why_, why_child_,
                                                          window_.count(), why_beyond_restart_)));
}

void Supervisor::give_up(const std::string& child, const std::string& why, bool beyond_restart) {
  DUET_ASSERT(mode_ == Mode::running || mode_ == Mode::regrouping);
  why_ = why;
  why_child_ = child;
  why_beyond_restart_ = beyond_restart;
  SupervisorEvent giving_up;
  giving_up.kind = SupervisorEvent::Kind::giving_up;
  giving_up.child = child;
  giving_up.reason = failure();
  tell(std::move(giving_up));
  const Mode before = std::exchange(mode_, Mode::failing);
  floor_ = 0;
  if (before == Mode::running) {
    begin_sweep();
  } else if (stage_left_ == 0) {
    next_stage();
  }
}

// ---- telling ----

SupervisorEvent Supervisor::event(SupervisorEvent::Kind kind, const Child& child) const {
  SupervisorEvent event;
  event.kind = kind;
  event.child = child.spec.options().name;
  event.address = child.address;
  return event;
}

void Supervisor::tell(SupervisorEvent event) const {
  if (options_.on_event == nullptr) return;
  event.supervisor = name_;
  event.restarts = window_.count();
  event.now = now();
  options_.on_event(event);
}

// ---- supervisors as children ----

ChildRef<SupervisorMessage> add_supervisor(Children& to, ChildOptions child,
                                           SupervisorOptions options, Children children) {
  if (!child.stop_deadline.has_value()) {
    child.stop_deadline = stop_time_max(options, children) + options.kill_deadline;
  }
  ChildRef<SupervisorMessage> ref;
  to.add_made(ref, std::move(child),
              [options = std::move(options), children = std::move(children)](Spawner& spawner) {
                SupervisorOptions own = options;
                if (own.on_event == nullptr) own.on_event = spawner.hook();
                return spawner.spawn<Supervisor>(std::move(own), children);
              });
  return ref;
}

}   // namespace duet::runtime
