// ask.hpp: how an ask ends.
#pragma once

#include "runtime/error.hpp"
#include "runtime/reply.hpp"
#include "runtime/snapshot.hpp"

#include <boost/assert/source_location.hpp>
#include <boost/system/result.hpp>
#include <boost/system/system_error.hpp>

#include <cstdint>
#include <type_traits>

namespace duet::runtime {

/// Why an ask has no value. If it timed out, what the receiver was doing then.
class AskFailure {
 public:
  AskFailure() noexcept = default;   // what result::error() gives beside a value
  explicit AskFailure(errc code) noexcept : code_(code) {}

  [[nodiscard]] errc code() const noexcept { return code_; }
  [[nodiscard]] boost::system::error_code error() const noexcept { return make_error_code(code_); }

  /// Only after timed_out.
  struct Receiver {
    std::uint64_t number = 0;   ///< 0: it has ended
    ActorState state = ActorState::waiting;
    const char* message = nullptr;     ///< type of the message it handles, or null
    const char* waits_for = nullptr;   ///< or null
    TimePoint since{};
    std::uint32_t queued = 0;   ///< messages in its mailbox
  };
  [[nodiscard]] const Receiver& receiver() const noexcept { return receiver_; }

  /// What the side record of `address` says now.
  static AskFailure timed_out(const Address& address) noexcept;

 private:
  errc code_{};
  Receiver receiver_;
};

/// Lets result::value() throw.
[[noreturn]] inline void throw_exception_from_error(const AskFailure& failure,
                                                    const boost::source_location&) {
  throw boost::system::system_error(failure.error());
}

template <typename T>
using AskResult = boost::system::result<T, AskFailure>;

/// A message with a member `reply`, empty until it is asked with.
template <typename T>
concept Request = requires(T request) {
  typename decltype(request.reply)::value_type;
  requires std::is_same_v<decltype(request.reply),
                          Reply<typename decltype(request.reply)::value_type>>;
};

template <Request T>
using ReplyOf = typename decltype(T::reply)::value_type;

}   // namespace duet::runtime
