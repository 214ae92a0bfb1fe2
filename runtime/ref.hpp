// ref.hpp: how actors are addressed and sent to.
#pragma once

#include "runtime/address.hpp"
#include "runtime/detail/arena.hpp"
#include "runtime/detail/core.hpp"
#include "runtime/detail/message_node.hpp"

#include <boost/system/error_code.hpp>

#include <type_traits>
#include <utility>

namespace duet::runtime {

/// Whether a message was taken. Taken is not handled: the receiver may end first.
class SendStatus {
 public:
  SendStatus() = default;
  SendStatus(errc error) noexcept : error_(error) {}   // NOLINT(google-explicit-constructor)

  [[nodiscard]] bool ok() const noexcept { return error_ == errc{}; }
  explicit operator bool() const noexcept { return ok(); }
  /// overloaded or receiver_gone; default if ok.
  [[nodiscard]] boost::system::error_code error() const noexcept {
    return ok() ? boost::system::error_code() : make_error_code(error_);
  }
  friend bool operator==(const SendStatus& status, errc error) noexcept {
    return status.error_ == error;
  }

 private:
  errc error_{};
};

/// Of a bounded message, whose sender must do something about a refusal.
class [[nodiscard]] BoundedSendStatus : public SendStatus {
 public:
  using SendStatus::SendStatus;
};

/// A weak reference to one life of an actor. Two words; copied freely, used on any thread, also
/// after the actor and its system are gone: then a send says receiver_gone.
template <Language M>
class Ref {
 public:
  using language = M;
  template <typename T>
  using Status =
      std::conditional_t<message_class<T> == MessageClass::bounded, BoundedSendStatus, SendStatus>;

  Ref() = default;
  explicit Ref(const Address& address) noexcept : address_(address) {}

  /// A message whose deadline has passed when its turn comes is not started; its Reply says
  /// timed_out.
  template <typename T>
  requires HasMessage<M, T>
  [[gnu::always_inline]] Status<T> send(T message, TimePoint deadline = TimePoint::max()) const {
    if (deadline == TimePoint::max()) {
      return detail::put<M, detail::Put::plain>(address_, std::move(message));
    }
    return detail::put<M, detail::Put::timed>(address_, std::move(message), deadline);
  }

  /// For completion threads: if the receiver is idle and was spawned with
  /// `run_on_completion_thread`, it runs right here for one activation; what it makes ready goes to
  /// the pumps with one post. Else as send().
  template <typename T>
  requires HasMessage<M, T> Status<T> send_and_run(T message)
  const { return detail::put<M, detail::Put::run_here>(address_, std::move(message)); }

  [[nodiscard]] const Address& address() const noexcept { return address_; }
  [[nodiscard]] bool empty() const noexcept { return address_.empty(); }
  [[nodiscard]] bool alive() const noexcept { return address_.alive(); }

  friend bool operator==(const Ref&, const Ref&) = default;

 private:
  Address address_;
};

}   // namespace duet::runtime
