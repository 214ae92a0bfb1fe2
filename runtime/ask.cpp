// ask.cpp: what the receiver of a timed-out ask was doing.
#include "runtime/ask.hpp"

namespace duet::runtime {

AskFailure AskFailure::timed_out(const Address& address) noexcept {
  AskFailure failure(errc::timed_out);
  if (!address.alive()) return failure;
  const detail::Slot& slot = *address.slot();
  const detail::SideRecord& side = slot.side();
  Receiver& receiver = failure.receiver_;
  receiver.number = address.number();
  switch (side.activity()) {
    case detail::Activity::none:
    case detail::Activity::starting:
      receiver.state = ActorState::starting;
      break;
    case detail::Activity::running:
      receiver.state = ActorState::running;
      break;
    case detail::Activity::waiting:
      receiver.state = slot.inbox().active() ? ActorState::ready : ActorState::waiting;
      break;
  }
  receiver.message = side.message();
  receiver.waits_for = side.waits_for();
  receiver.since = side.since();
  receiver.queued = slot.normal_depth() + slot.urgent_depth();
  return failure;
}

}   // namespace duet::runtime
