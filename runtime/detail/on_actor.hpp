// on_actor.hpp: brings the completion of any Asio operation back to the actor that awaits it.
#pragma once

#include "runtime/actor_executor.hpp"
#include "runtime/work.hpp"

#include <boost/asio/associated_executor.hpp>
#include <boost/asio/associator.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <tuple>
#include <type_traits>
#include <utility>

namespace duet::runtime {

/// See use_async in behaviour.hpp.
struct UseAsync {
  explicit constexpr UseAsync() = default;
};

namespace detail {

/// A completion handler of an actor. While it lives the host's run() does not return. Called
/// elsewhere than on the actor's strand, because of a bound executor or by a library that knows no
/// executors, it goes there first.
template <typename Handler>
class OnActor {
 public:
  explicit OnActor(Handler&& handler)
      : executor_(boost::asio::get_associated_executor(handler)),
        work_(executor_.address()),
        handler_(std::move(handler)) {}

  template <typename... Args>
  void operator()(Args&&... args) {
    if (executor_.running_in_this_thread()) {
      std::move(handler_)(std::forward<Args>(args)...);
      return;
    }
    const actor_executor executor = executor_;
    executor.execute([self = std::move(*this),
                      values = std::tuple<std::decay_t<Args>...>(std::forward<Args>(args)...)]   //
                     () mutable { std::apply(std::move(self.handler_), std::move(values)); });
  }

  [[nodiscard]] const Handler& handler() const noexcept { return handler_; }

 private:
  actor_executor executor_;
  Work work_;
  Handler handler_;
};

template <typename Initiation>
struct BeginOnActor {
  explicit BeginOnActor(Initiation&& value) : initiation(std::move(value)) {}

  template <typename Handler, typename... Args>
  void operator()(Handler&& handler, Args&&... args) {
    std::move(initiation)(OnActor<std::decay_t<Handler>>(std::forward<Handler>(handler)),
                          std::forward<Args>(args)...);
  }

  Initiation initiation;
};

}   // namespace detail
}   // namespace duet::runtime

namespace boost::asio {

template <template <typename, typename> class Associator, typename Handler, typename Default>
struct associator<Associator, duet::runtime::detail::OnActor<Handler>, Default>
    : Associator<Handler, Default> {
  [[nodiscard]] static auto get(const duet::runtime::detail::OnActor<Handler>& value) noexcept {
    return Associator<Handler, Default>::get(value.handler());
  }
  [[nodiscard]] static auto get(const duet::runtime::detail::OnActor<Handler>& value,
                                const Default& otherwise) noexcept {
    return Associator<Handler, Default>::get(value.handler(), otherwise);
  }
};

template <typename R, typename... Signature>
class async_result<duet::runtime::UseAsync, R(Signature...)> {
  using Token = use_awaitable_t<duet::runtime::actor_executor>;
  using Awaited = async_result<Token, R(Signature...)>;

 public:
  // Asio's adapters ask for these.
  using handler_type = duet::runtime::detail::OnActor<typename Awaited::handler_type>;
  using return_type = typename Awaited::return_type;

  template <typename Initiation, typename... Args>
  static return_type initiate(Initiation initiation, duet::runtime::UseAsync, Args... args) {
    return Awaited::initiate(duet::runtime::detail::BeginOnActor<Initiation>(std::move(initiation)),
                             Token(), std::move(args)...);
  }
};

}   // namespace boost::asio
