// native_promise.hpp: our promise for awaitable<T, actor_executor>: pooled frames, and awaiters
// that look into the mailbox before they suspend. It rests on names of Asio's detail namespace.
#pragma once

#include "runtime/actor_executor.hpp"
#include "runtime/detail/pool.hpp"
#include "runtime/detail/stack.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <coroutine>
#include <cstddef>
#include <type_traits>
#include <utility>

namespace duet::runtime::detail {

/// An awaiter of ours; when it suspends it is given the frame that awaits it, and what runs it.
template <typename T>
concept NativeAwaiter = requires {
  typename std::remove_cvref_t<T>::native_awaiter;
};

/// What is awaited lives until the end of its full expression, in the frame; g++ 12 would copy it.
template <typename X>
class AwaiterPointer {
 public:
  explicit AwaiterPointer(X& awaiter) noexcept : awaiter_(&awaiter) {}
  [[nodiscard]] bool await_ready() { return awaiter_->await_ready(); }
  template <typename P>
  void await_suspend(std::coroutine_handle<P> handle) noexcept {
    awaiter_->await_suspend(handle.promise(), handle.promise().thread());
  }
  decltype(auto) await_resume() { return awaiter_->await_resume(); }

 private:
  X* awaiter_;
};

template <typename T>
class NativeFrame : public boost::asio::detail::awaitable_frame<T, actor_executor> {
  using Base = boost::asio::detail::awaitable_frame<T, actor_executor>;

 public:
  boost::asio::awaitable<T, actor_executor> get_return_object() noexcept {
    auto object = Base::get_return_object();
    this->coro_ = std::coroutine_handle<NativeFrame>::from_promise(*this);
    return object;
  }

  template <NativeAwaiter X>
  auto await_transform(X&& awaiter) noexcept {
    return AwaiterPointer<std::remove_reference_t<X>>(awaiter);
  }

  /// Asio's awaiter wants the handle of its own promise, which ours contains at the same place.
  template <typename U>
  auto await_transform(boost::asio::awaitable<U, actor_executor> awaitable) {
    return Nested<U>(Base::await_transform(std::move(awaitable)));
  }

  template <typename X>
  requires(!NativeAwaiter<X>) decltype(auto) await_transform(X&& other) {
    return Base::await_transform(std::forward<X>(other));
  }

  [[nodiscard]] AsioThread& thread() const noexcept { return *this->attached_thread_; }

  static void* operator new(std::size_t bytes) { return detail::allocate(bytes); }
  static void operator delete(void* memory, std::size_t bytes) noexcept {
    detail::deallocate(memory, bytes);
  }

 private:
  template <typename U>
  class Nested {
   public:
    explicit Nested(boost::asio::awaitable<U, actor_executor> awaitable) noexcept
        : awaitable_(std::move(awaitable)) {}
    [[nodiscard]] bool await_ready() const noexcept { return awaitable_.await_ready(); }
    void await_suspend(std::coroutine_handle<NativeFrame> handle) {
      awaitable_.await_suspend(std::coroutine_handle<Base>::from_address(handle.address()));
    }
    U await_resume() { return awaitable_.await_resume(); }

   private:
    boost::asio::awaitable<U, actor_executor> awaitable_;
  };
};

}   // namespace duet::runtime::detail

template <typename T, typename... Args>
struct std::coroutine_traits<boost::asio::awaitable<T, duet::runtime::actor_executor>, Args...> {
  using promise_type = duet::runtime::detail::NativeFrame<T>;
};
