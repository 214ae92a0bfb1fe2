// supervisor_stop.cpp: stopping children, stage by stage from the last one.
#include "runtime/supervisor.hpp"

#include "runtime/assert.hpp"

#include <algorithm>
#include <exception>
#include <iterator>
#include <limits>
#include <utility>

namespace duet::runtime {
namespace {

constexpr Duration stop_deadline_default = std::chrono::seconds(5);
constexpr std::uint32_t dynamic_stage = std::numeric_limits<std::uint32_t>::max();
constexpr std::uint64_t behind_all = std::numeric_limits<std::uint64_t>::max();

}   // namespace

void Supervisor::on(Stop) {
  if (mode_ == Mode::stopping || mode_ == Mode::failing) return;
  const Mode before = std::exchange(mode_, Mode::stopping);
  floor_ = 0;
  if (before == Mode::running) {
    begin_sweep();
  } else if (stage_left_ == 0) {   // it waited for the group's back-off
    next_stage();
  }
}

void Supervisor::begin_sweep() {
  swept_to_ = behind_all;
  left_behind_.clear();
  next_stage();
}

/// Asks the last children that still live, a stage of them.
void Supervisor::next_stage() {
  cancel_timer(stage_timer_);
  stage_top_ = swept_to_;
  stage_left_ = 0;
  Duration deadline{};
  std::uint32_t stage = 0;
  for (auto next = children_.lower_bound(swept_to_); next != children_.begin();) {
    const auto entry = std::prev(next);
    if (entry->first < floor_) break;
    Child& child = entry->second;
    const std::uint32_t own = child.dynamic ? dynamic_stage : child.spec.options().stage;
    if (stage_left_ > 0 && (stage == 0 || own != stage)) break;
    next = entry;
    swept_to_ = entry->first;
    if (child.state == ChildState::backing_off) {
      cancel_timer(child.timer);
      child.state = ChildState::absent;
    }
    if (child.state != ChildState::alive) continue;
    child.state = ChildState::stopping;
    stage = own;
    ++stage_left_;
    deadline = std::max(deadline, stop_deadline(child));
    slot().side().set_waits_on(child.address.slot(), child.address.generation());
    detail::Core::request_stop(child.address);   // if it has ended its Down is on the way
  }
  if (stage_left_ == 0) {
    swept();
  } else {
    stage_began(deadline);
  }
}

void Supervisor::stage_began(Duration deadline) {
  stage_killed_ = false;
  stage_timer_ = send_after(deadline, detail::StageDue{});
  set_waits_for("end of a child");
}

void Supervisor::on(detail::StageDue) {
  if (stage_left_ == 0) return;
  if (stage_killed_) {
    abandon_late();
  } else {
    kill_late();
  }
}

void Supervisor::kill_late() {
  stage_killed_ = true;
  stage_timer_ = send_after(options_.kill_deadline, detail::StageDue{});
  const auto end = children_.lower_bound(stage_top_);
  for (auto entry = children_.lower_bound(swept_to_); entry != end; ++entry) {
    const Child& child = entry->second;
    if (child.state != ChildState::stopping) continue;
    SupervisorEvent late = event(SupervisorEvent::Kind::late, child);
    late.stragglers.push_back(core().snapshot(*child.address.slot()));
    if (!child.address.alive()) continue;   // just now; the snapshot may be of the next one there
    if (late_.size() < limits::late_children_max) late_.push_back(late.stragglers.front());
    tell(std::move(late));
    const std::string why = "it did not stop when its supervisor " + name_ + " asked it to";
    detail::Core::kill(child.address, std::make_exception_ptr(KilledError(why)));
  }
}

void Supervisor::abandon_late() {
  const auto end = children_.lower_bound(stage_top_);
  for (auto entry = children_.lower_bound(swept_to_); entry != end; ++entry) {
    Child& child = entry->second;
    if (child.state != ChildState::stopping) continue;
    child.state = ChildState::abandoned;
    left_behind_ = child.spec.options().name;
    child.spec.place().publish(Address());
    tell(event(SupervisorEvent::Kind::abandoned, child));
  }
  next_stage();
}

/// Nobody from floor_ on lives, but for the abandoned.
void Supervisor::swept() {
  switch (mode_) {
    case Mode::running:
      DUET_UNREACHABLE();
    case Mode::regrouping:
      break;
    case Mode::stopping:
    case Mode::failing: {
      SupervisorEvent stopped;
      stopped.kind = SupervisorEvent::Kind::stopped;
      stopped.stragglers = late_;
      tell(std::move(stopped));
      if (!left_behind_.empty() &&
          !why_beyond_restart_) {   // whoever would start us anew must know
        why_ += (why_.empty() ? "" : "; ") + left_behind_ + " could not be ended";
        if (why_child_.empty()) why_child_ = left_behind_;
        why_beyond_restart_ = true;
      }
      end(why_.empty() ? ExitReason(ExitKind::stopped) : failure());
      return;
    }
  }
  if (!left_behind_.empty()) {
    const std::string name = left_behind_;
    give_up(name, name + " cannot be ended, so nothing is started beside it", true);
    return;
  }
  set_waits_for("back-off");
  stage_timer_ = send_after(regroup_delay_, detail::RestartDue{});
}

Duration Supervisor::stop_deadline(const Child& child) const noexcept {
  if (child.dynamic) return options_.started_stop_deadline;
  return child.spec.options().stop_deadline.value_or(stop_deadline_default);
}

Duration stop_time_max(const SupervisorOptions& options, const Children& children) {
  Duration sum = options.strategy == Strategy::one_for_one
                     ? options.started_stop_deadline + options.kill_deadline
                     : Duration(0);
  Duration longest{};
  std::uint32_t stage = 0;
  for (const ChildSpec& spec : children.specs()) {
    const std::uint32_t own = spec.options().stage;
    if (own == 0 || own != stage) {
      sum += longest;
      longest = Duration(0);
    }
    stage = own;
    const Duration deadline = spec.options().stop_deadline.value_or(stop_deadline_default);
    longest = std::max(longest, deadline + options.kill_deadline);
  }
  return sum + longest;
}

}   // namespace duet::runtime
