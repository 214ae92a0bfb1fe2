// server_fixture.hpp: a server on two threads over a fake service, and its orderly end.
#pragma once

#include "http/server.hpp"
#include "runtime/real_clock.hpp"
#include "runtime/real_random.hpp"
#include "tests/http/client.hpp"
#include "tests/http/fake_service.hpp"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

#include <future>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace duet::http::tests {

/// Threads of its own for main and reserved.
class ServerFixture {
 public:
  explicit ServerFixture(ServerOptions options = {}, bool one_executor = false) {
    options.port = 0;
    ServerContext context{main_.get_executor(),
                          one_executor ? main_.get_executor() : reserved_.get_executor(),
                          clock_,
                          random_,
                          service,
                          {},
                          [this](const RequestRecord& record) {
                            const std::lock_guard lock(records_mutex_);
                            records_.push_back(record);
                          }};
    server_ = std::make_unique<Server>(std::move(options), std::move(context));
    port_ = server_->listen().value();
    main_thread_ = std::thread([this] { main_.run(); });
    reserved_thread_ = std::thread([this] { reserved_.run(); });
  }
  ~ServerFixture() {
    std::promise<void> closed;
    server_->close([&closed] { closed.set_value(); });
    closed.get_future().wait();
    main_guard_.reset();
    reserved_guard_.reset();
    main_.stop();
    reserved_.stop();
    main_thread_.join();
    reserved_thread_.join();
    // What is left holds connections, and their strands need both contexts: streams that a script
    // keeps, and wakes posted too late.
    service.on_submit({});
    do {
      main_.restart();
      reserved_.restart();
    } while (main_.poll() + reserved_.poll() > 0);
  }

  [[nodiscard]] std::uint16_t port() const { return port_; }
  [[nodiscard]] Server& server() { return *server_; }
  [[nodiscard]] boost::asio::io_context& main() { return main_; }
  [[nodiscard]] std::vector<RequestRecord> records() {
    const std::lock_guard lock(records_mutex_);
    return records_;
  }
  /// One request on a connection of its own.
  Response ask(std::string_view request, bool head = false) {
    Client client(port_);
    client.send(request);
    return client.read(head);
  }

  FakeService service;

 private:
  boost::asio::io_context main_;
  boost::asio::io_context reserved_;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> main_guard_{
      main_.get_executor()};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> reserved_guard_{
      reserved_.get_executor()};
  runtime::RealClock clock_{main_.get_executor()};
  runtime::RealRandom random_;
  std::mutex records_mutex_;
  std::vector<RequestRecord> records_;
  std::unique_ptr<Server> server_;
  std::uint16_t port_ = 0;
  std::thread main_thread_;
  std::thread reserved_thread_;
};

}   // namespace duet::http::tests
