// behaviour_actor.cpp: the activation of a behaviour.
#include "runtime/detail/behaviour_actor.hpp"

#include "runtime/assert.hpp"
#include "runtime/detail/arena.hpp"
#include "runtime/detail/core.hpp"
#include "runtime/error.hpp"

#include <boost/asio/cancellation_type.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/multiple_exceptions.hpp>
#include <boost/system/system_error.hpp>

namespace duet::runtime::detail {
namespace {

/// What our awaits and Asio's throw when they are cancelled; a race throws those of all branches.
bool says_cancelled(const std::exception_ptr& exception) noexcept {
  try {
    std::rethrow_exception(exception);
  } catch (const boost::asio::multiple_exceptions& several) {
    return says_cancelled(several.first_exception());
  } catch (const boost::system::system_error& error) {
    return error.code() == make_error_code(errc::cancelled) ||
           error.code() == boost::asio::error::operation_aborted;
  } catch (...) {
    return false;
  }
}

}   // namespace

void throw_cancelled() {
  throw boost::system::system_error(make_error_code(errc::cancelled));
}

void Wait::complete_later() noexcept {
  auto& behaviour = static_cast<BehaviourActor&>(actor());
  if (complete_ || !linked()) return;
  complete_ = true;
  ++behaviour.complete_;
}

void Wait::wait_for(const char* what, const std::source_location& where, bool holds_work) noexcept {
  link(holds_work);
  actor().slot().side().set_wait(what, where);
}

/// One of the waits that are.
void BehaviourActor::resume_complete() {
  if ((flags_ & receive_complete_flag) != 0) return resume_receive();
  for (Pending* pending = this->pending().first(); pending != nullptr; pending = pending->next()) {
    auto* const wait = static_cast<Wait*>(pending);   // a behaviour has no other pendings
    if (wait->complete()) return wait->resume();
  }
  DUET_UNREACHABLE();
}

void BehaviourActor::cannot_receive() const {
  DUET_ASSERT(unwinding(), "one receive at a time");
  throw_cancelled();
}

/// True if something was done.
bool BehaviourActor::work_once() {
  Slot& own = slot();
  flags_ &= ~dry_flag;
  if (!has_begun()) [[unlikely]] {
    set_begun();
    start();
    return true;
  }
  if (complete_ > 0) [[unlikely]] {
    resume_complete();
    return true;
  }
  own.take_urgent();
  if (Node* const task = own.next_task()) {
    if (left_ > 0) --left_;
    own.observe(*task);
    task->ops->run(*task, *this);
    return true;
  }
  if (!receiving()) {
    own.take_normal();   // so that the head may carry the idle mark
    return false;
  }
  message_ = left_ > 0 ? own.next_message() : nullptr;
  if (message_ == nullptr) return false;
  --left_;
  resume_receive();
  return true;
}

ActorBase::Outcome BehaviourActor::activate() noexcept {
  Slot& own = slot();
  left_ = thread_state().activation_messages;
#if !DUET_AWAITABLE_PUBLIC
  if (root_.has_value()) root_->prefetch();   // comes while the message is taken
#endif
  for (;;) {
    try {
      while (!ended() && work_once()) {
        if (left_ == 0 && (own.has_task() || own.urgent_came())) break;
        if (resting()) break;
      }
    } catch (...) {   // left by a function on the actor's executor, not by the behaviour
      end(ExitReason(ExitKind::failed, std::current_exception()));
    }
    if (ended()) return Outcome::ended;
    SideRecord& side = own.side();
    side.enter(Activity::waiting, thread_state().stamp);
    if (left_ == 0 && ((receiving() && own.has_message()) || own.has_task() || own.urgent_came())) {
      return Outcome::again;
    }
    switch (own.try_idle()) {
      case Inbox::Idle::idle:
        return Outcome::idle;
      case Inbox::Idle::reclaimed:
        return Outcome::again;
      case Inbox::Idle::busy:
        side.enter(Activity::running, thread_state().stamp);
        break;
    }
    if (left_ == 0) return Outcome::again;
  }
}

void BehaviourActor::body_ended(const std::exception_ptr& exception) noexcept {
  if (exception == nullptr || (unwinding() && says_cancelled(exception))) {
    if (kill_reason() != nullptr) {
      end(ExitReason(ExitKind::killed, kill_reason()));
    } else {
      end(ExitReason(unwinding() ? ExitKind::stopped : ExitKind::finished));
    }
  } else {
    end(ExitReason(ExitKind::failed, exception));
  }
}

void BehaviourActor::abandon_waits() noexcept {
  if (receiving()) {
    stop_receiving();
    continuation_.abandon();
  }
  while (Pending* const pending = this->pending().first()) pending->abandon();
}

void BehaviourActor::kill(std::exception_ptr why) {
  keep_kill_reason(std::move(why));
  unwind();
}

void BehaviourActor::unwind() {
  if (unwinding()) return;
  flags_ |= unwinding_flag;
  signal_.emit(boost::asio::cancellation_type::terminal);
  cancel_receive();
  for (Pending* pending = this->pending().first(); pending != nullptr; pending = pending->next()) {
    pending->cancel();
  }
}

}   // namespace duet::runtime::detail
