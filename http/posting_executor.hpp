// posting_executor.hpp: an executor that posts, and says so without asking the one below.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/execution/blocking.hpp>
#include <boost/asio/execution/context.hpp>
#include <boost/asio/require.hpp>

#include <concepts>
#include <utility>

namespace duet::http {

/// For strands that something is posted to at every token: a strand asks its inner executor each
/// time whether it may block, and any_io_executor answers on the heap. Copied freely.
class PostingExecutor {
 public:
  // A template, so that whether a PostingExecutor can be copied is not a question of whether it
  // converts to any_io_executor, which asks whether it is an executor, which asks the first again.
  template <std::same_as<boost::asio::any_io_executor> Executor>
  explicit PostingExecutor(const Executor& executor)
      : executor_(boost::asio::require(executor, boost::asio::execution::blocking.never)) {}

  template <typename F>
  void execute(F&& function) const {
    executor_.execute(std::forward<F>(function));
  }
  [[nodiscard]] boost::asio::execution_context& query(
      boost::asio::execution::context_t) const noexcept {
    return boost::asio::query(executor_, boost::asio::execution::context);
  }
  [[nodiscard]] static constexpr boost::asio::execution::blocking_t query(
      boost::asio::execution::blocking_t) noexcept {
    return boost::asio::execution::blocking.never;
  }
  [[nodiscard]] const PostingExecutor& require(
      boost::asio::execution::blocking_t::never_t) const noexcept {
    return *this;
  }
  friend bool operator==(const PostingExecutor& left, const PostingExecutor& right) noexcept {
    return left.executor_ == right.executor_;
  }
  friend bool operator!=(const PostingExecutor& left, const PostingExecutor& right) noexcept {
    return !(left == right);
  }

 private:
  boost::asio::any_io_executor executor_;
};

}   // namespace duet::http
