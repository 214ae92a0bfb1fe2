// outside_ask.hpp: an actor for the time of one ask, made for someone who is none.
#pragma once

#include "runtime/ask.hpp"
#include "runtime/detail/core.hpp"
#include "runtime/detail/pool.hpp"
#include "runtime/handler_actor.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/append.hpp>
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/cancellation_type.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/system_executor.hpp>

#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>

namespace duet::runtime::detail {

/// What is asked, of whom, and who is told. Completes once: at the latest when it is destroyed.
template <typename N, typename T, typename Handler>
class OutsideCall {
 public:
  using Result = AskResult<ReplyOf<T>>;

  OutsideCall(const boost::asio::any_io_executor& fallback, const Ref<N>& to, T request,
              Duration timeout, Handler handler)
      : to_(to),
        request_(std::move(request)),
        timeout_(timeout),
        work_(boost::asio::get_associated_executor(handler, fallback)),
        handler_(std::move(handler)) {}
  OutsideCall(const OutsideCall&) = delete;
  OutsideCall& operator=(const OutsideCall&) = delete;
  ~OutsideCall() { complete(AskFailure(errc::receiver_gone)); }

  void complete(Result result) noexcept {
    if (!handler_.has_value()) return;
    Handler handler(std::move(*handler_));
    handler_.reset();
    boost::asio::post(work_.get_executor(),
                      boost::asio::append(std::move(handler), std::move(result)));
    work_.reset();
  }

  [[nodiscard]] const Ref<N>& to() const noexcept { return to_; }
  [[nodiscard]] T take_request() noexcept { return std::move(request_); }
  [[nodiscard]] Duration timeout() const noexcept { return timeout_; }

 private:
  const Ref<N> to_;
  T request_;
  const Duration timeout_;
  boost::asio::executor_work_guard<
      boost::asio::associated_executor_t<Handler, boost::asio::any_io_executor>>
      work_;
  std::optional<Handler> handler_;
};

template <typename Call>
struct CallDeleter {
  void operator()(Call* call) const noexcept { destroy(call); }
};
template <typename Call>
using CallPointer = std::unique_ptr<Call, CallDeleter<Call>>;

template <typename Call>
struct Launch {
  explicit Launch(CallPointer<Call> value) noexcept : call(std::move(value)) {}
  CallPointer<Call> call;
};

}   // namespace duet::runtime::detail

namespace duet::runtime {
template <typename Call>
inline constexpr MessageClass message_class<detail::Launch<Call>> = MessageClass::guaranteed;
}   // namespace duet::runtime

namespace duet::runtime::detail {

template <typename Call>
using OutsideLanguage = std::variant<Launch<Call>, Stop>;

template <typename Call>
class OutsideAsk final : public HandlerActor<OutsideAsk<Call>, OutsideLanguage<Call>> {
 public:
  OutsideAsk() = default;
  ~OutsideAsk() override = default;

  void on(Launch<Call> launch) {
    call_ = std::move(launch.call);
    if (cancelled_) return end_with(AskFailure(errc::cancelled));
    this->set_waits_for("reply");
    this->ask(call_->to(), call_->take_request(), call_->timeout(),
              [this](typename Call::Result result) { end_with(std::move(result)); });
  }
  void on(Stop) {
    cancelled_ = true;
    // A stop that overtook the launch is remembered for it.
    if (call_ != nullptr) end_with(AskFailure(errc::cancelled));
  }

 private:
  void end_with(typename Call::Result result) {
    call_->complete(std::move(result));
    this->finish();
  }

  CallPointer<Call> call_;
  bool cancelled_ = false;
};

class BeginOutsideAsk {
 public:
  explicit BeginOutsideAsk(std::shared_ptr<Core> core) noexcept : core_(std::move(core)) {}

  template <typename Handler, typename N, typename T>
  void operator()(Handler&& handler, const Ref<N>& to, T request, Duration timeout) const {
    using Call = OutsideCall<N, T, std::decay_t<Handler>>;
    auto slot = boost::asio::get_associated_cancellation_slot(handler);
    CallPointer<Call> call(
        create<Call>(fallback(), to, std::move(request), timeout, std::forward<Handler>(handler)));
    const auto asker = spawn<OutsideAsk<Call>>(*core_, ActorOptions("ask"));
    if (asker.empty()) return;   // the call says receiver_gone
    // Before the ask begins: once it ends, slot and handler may be gone.
    if (slot.is_connected()) {
      slot.assign([address = asker.address()](boost::asio::cancellation_type) {
        static_cast<void>(Core::request_stop(address));
      });
    }
    static_cast<void>(asker.send(Launch<Call>(std::move(call))));
  }

 private:
  /// For handlers that name no executor: the system's while there is one.
  [[nodiscard]] boost::asio::any_io_executor fallback() const {
    if (!core_->finished()) {
      const Inside inside(core_->arena());
      if (inside && core_->arena().core_if_any() == core_.get()) return core_->executor();
    }
    return boost::asio::system_executor();
  }

  std::shared_ptr<Core> core_;
};

}   // namespace duet::runtime::detail
