// device_call.hpp: a life-cycle call of the device as something that a behaviour awaits.
#pragma once

#include "device/contract/device.hpp"
#include "runtime/behaviour.hpp"

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/post.hpp>

#include <memory>
#include <utility>

namespace duet::actors {

using DeviceOutcome = device::result<device::CallDone::Value>;

namespace detail {

/// Resumes the behaviour on its strand, from whatever thread completes the call.
template <typename Handler>
class CallSink final : public device::CompletionSink {
 public:
  explicit CallSink(Handler handler) : handler_(std::move(handler)) {}
  void on_call(device::CallDone&& done) noexcept override {
    const auto executor = boost::asio::get_associated_executor(handler_);
    boost::asio::post(executor,
                      [handler = std::move(handler_), outcome = std::move(done.outcome)]() mutable {
                        std::move(handler)(std::move(outcome));
                      });
  }
  void on_job(const device::JobResult&) noexcept override {}
  void on_settled(device::SessionId, device::Generation, device::JobId) noexcept override {}

 private:
  Handler handler_;
};

template <typename Start>
struct CallInitiation {
  template <typename Handler>
  void operator()(Handler&& handler, Start start) const {
    using Stored = std::decay_t<Handler>;
    start(std::uint64_t{0}, std::make_shared<CallSink<Stored>>(std::forward<Handler>(handler)));
  }
};

}   // namespace detail

/// start(tag, sink) makes the call; both must be passed on. Cancelling the behaviour does not stop
/// the call.
template <typename Start>
runtime::Async<DeviceOutcome> call_device(Start start) {
  return boost::asio::async_initiate<const decltype(runtime::use_async), void(DeviceOutcome)>(
      detail::CallInitiation<Start>{}, runtime::use_async, std::move(start));
}

}   // namespace duet::actors
