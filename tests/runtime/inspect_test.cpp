// inspect_test.cpp: the actor tree as JSON, and over HTTP on a Unix socket.
#include "runtime/inspect/answer.hpp"
#include "runtime/inspect/server.hpp"
#include "runtime/inspect/tree.hpp"
#include "tests/runtime/actor_fixture.hpp"

#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/test/unit_test.hpp>

#include <sys/stat.h>
#include <unistd.h>
#include <filesystem>
#include <latch>
#include <memory>
#include <optional>
#include <thread>

using namespace duet::test;
namespace inspect = duet::runtime::inspect;
namespace http = boost::beast::http;
namespace json = boost::json;
using Protocol = boost::asio::local::stream_protocol;

namespace {

using Plain = std::variant<Result>;

class Holder final : public duet::runtime::HandlerActor<Holder, std::variant<Question>> {
 public:
  void on(Question question) { reply_ = std::move(question.reply); }

 private:
  duet::runtime::Reply<int> reply_;
};

duet::runtime::Behaviour asks(duet::runtime::Self<Plain> self,
                              duet::runtime::Ref<std::variant<Question>> holder) {
  Question question(1);
  static_cast<void>(co_await self.ask(holder, std::move(question), 1h));
}

class Family final : public duet::runtime::HandlerActor<Family, Plain> {
 public:
  void started() {
    const auto holder = spawn_child<Holder>("holder");
    spawn_child("asker", asks, holder);
  }
  void on(Result) { finish(); }
  [[nodiscard]] duet::runtime::Properties snapshot() const {
    return {{"children", std::int64_t{2}}};
  }
};

/// Holds its thread until the test opens.
class Stuck final : public duet::runtime::HandlerActor<Stuck, Plain> {
 public:
  Stuck(std::latch& entered, std::latch& open) : entered_(entered), open_(open) {}
  void on(Result) {
    entered_.count_down();
    open_.wait();
  }

 private:
  std::latch& entered_;
  std::latch& open_;
};

class Patient final : public duet::runtime::HandlerActor<Patient, Plain> {
 public:
  void on(Result) { set_waits_for(said_ ? nullptr : "spring"), said_ = !said_; }

 private:
  bool said_ = false;
};

inspect::Request get(const char* target, http::verb verb = http::verb::get) {
  inspect::Request request(verb, target, 11);
  return request;
}

/// A directory of its own for a socket.
struct Directory {
  Directory() {
    std::string pattern = (std::filesystem::temp_directory_path() / "duetXXXXXX").string();
    BOOST_REQUIRE(::mkdtemp(pattern.data()) != nullptr);
    path = pattern;
  }
  ~Directory() { std::filesystem::remove_all(path); }
  std::filesystem::path path;
};

std::string exchange_at(const std::string& path, const std::string& request) {
  boost::asio::io_context client;
  Protocol::socket socket(client);
  socket.connect(Protocol::endpoint(path));
  boost::system::error_code error;
  boost::asio::write(socket, boost::asio::buffer(request), error);
  std::string answer;
  boost::asio::read(socket, boost::asio::dynamic_buffer(answer), error);
  return answer;
}

/// A system and its server on a thread; ends with the object.
struct Served {
  explicit Served(inspect::ServerOptions options = {}) : system(io.get_executor()) {
    options.path = (directory.path / "s").string();
    path = options.path;
    system.spawn<Family>("family");
    server.emplace(io.get_executor(), system, options);
    thread = std::thread([this] { io.run(); });
  }
  ~Served() {
    server.reset();
    io.stop();
    thread.join();
  }
  std::string exchange(const std::string& request) const { return exchange_at(path, request); }
  Directory directory;
  std::string path;
  boost::asio::io_context io;
  duet::runtime::System system;
  std::optional<inspect::Server> server;
  std::thread thread;
};

}   // namespace

BOOST_AUTO_TEST_SUITE(inspection)

BOOST_AUTO_TEST_CASE(the_tree_nests_children_and_says_what_each_actor_waits_for) {
  Host host;
  host.system.spawn<Family>("family");
  host.run_ready();
  host.clock.advance(2s);
  const json::value tree = inspect::tree_json(host.system.snapshot());
  BOOST_TEST(tree.at("counters").at("spawned").to_number<int>() == 3);
  const json::array& roots = tree.at("actors").as_array();
  BOOST_REQUIRE(roots.size() == 1U);
  BOOST_TEST(roots[0].at("name").as_string() == "family");
  const json::array& children = roots[0].at("children").as_array();
  BOOST_REQUIRE(children.size() == 2U);
  BOOST_TEST(children[0].at("name").as_string() == "holder");
  const json::value& asker = children[1];
  BOOST_TEST(asker.at("state").as_string() == "waiting");
  BOOST_TEST(asker.at("waits_for").as_string() == "reply");
  BOOST_TEST(asker.at("waits_on").to_number<int>() == 2);
  BOOST_TEST(asker.at("for").as_double() == 2.0);
  const std::string at = asker.at("at").as_string().c_str();
  BOOST_TEST(at.find("inspect_test.cpp:") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_handler_actor_waits_for_a_message_unless_it_says_for_what) {
  Host host;
  const auto patient = host.system.spawn<Patient>("patient");
  host.run_ready();
  const auto waits_for = [&host] { return host.system.snapshot().actors.at(0).waits_for; };
  BOOST_TEST(waits_for() == "message");
  patient.send(Result{});
  host.run_ready();
  BOOST_TEST(waits_for() == "spring");
  BOOST_TEST(host.system.snapshot().actors.at(0).file.ends_with("inspect_test.cpp"));
  patient.send(Result{});
  host.run_ready();
  BOOST_TEST(waits_for() == "message");
}

BOOST_AUTO_TEST_CASE(pages_of_the_host_join_inspection_on_its_socket) {
  inspect::ServerOptions options;
  options.pages = [](const inspect::Request& request, auto done) {
    // Later, and from another thread.
    std::thread([request, done] {
      done(inspect::text_response(request, http::status::ok, "text/plain", "the host's page"));
    }).detach();
  };
  const Served served(options);
  const std::string answer = served.exchange(
      "GET /own HTTP/1.1\r\nHost: x\r\n\r\nGET /counters HTTP/1.1\r\nHost: x\r\nConnection: "
      "close\r\n\r\n");
  BOOST_TEST(answer.find("the host's page") != std::string::npos);
  BOOST_TEST(answer.find("late_replies") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(children_of_the_dead_stand_at_the_top) {
  Host host;
  const auto family = host.system.spawn<Family>("family");
  host.run_ready();
  family.send(Result{});
  host.run_ready();
  const json::value tree = inspect::tree_json(host.system.snapshot());
  BOOST_TEST(tree.at("actors").as_array().size() == 2U);
}

BOOST_AUTO_TEST_CASE(paths_methods_and_numbers_that_are_wrong_get_an_error_object) {
  Host host;
  host.system.spawn<Family>("family");
  const auto status = [&host](const inspect::Request& request) {
    const inspect::Response response = inspect::answer(host.system, request);
    if (request.method() != http::verb::head) {
      const json::value body = json::parse(response.body());
      BOOST_TEST(body.is_object());
      BOOST_TEST((response.result() == http::status::ok || body.as_object().contains("error")));
    }
    return response.result_int();
  };
  BOOST_TEST(status(get("/actors")) == 200U);
  BOOST_TEST(status(get("/actors", http::verb::head)) == 200U);
  BOOST_TEST(status(get("/counters")) == 200U);
  BOOST_TEST(status(get("/actors/1")) == 200U);
  for (const char* target : {"/", "/actor", "/actors/", "/actors/0", "/actors/2", "/actors/1x",
                             "/actors/-1", "/actors/99999999999999999999", "*"}) {
    BOOST_TEST(status(get(target)) == 404U);
  }
  BOOST_TEST(status(get("/actors", http::verb::post)) == 405U);
}

BOOST_AUTO_TEST_CASE(a_client_of_the_same_user_gets_the_tree_over_the_socket) {
  const Served served;
  struct stat status {};
  BOOST_REQUIRE(::stat(served.path.c_str(), &status) == 0);
  BOOST_TEST((status.st_mode & 0777U) == 0600U);
  const std::string answer = served.exchange(
      "GET /actors HTTP/1.1\r\nHost: x\r\n\r\nGET /counters HTTP/1.1\r\nHost: x\r\nConnection: "
      "close\r\n\r\n");
  BOOST_TEST(answer.find("HTTP/1.1 200 OK") == 0U);
  BOOST_TEST(answer.find("\"family\"") != std::string::npos);
  BOOST_TEST(answer.find("late_replies") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(bad_requests_are_told_so_and_the_next_client_is_served) {
  inspect::ServerOptions options;
  options.header_bytes_max = 1024;
  const Served served(options);
  BOOST_TEST(served.exchange("nonsense\r\n\r\n").starts_with("HTTP/1.1 400 "));
  BOOST_TEST(served.exchange("GET /" + std::string(2000, 'x') + " HTTP/1.1\r\n\r\n")
                 .starts_with("HTTP/1.1 431 "));
  BOOST_TEST(served.exchange("GET /actors HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello")
                 .starts_with("HTTP/1.1 413 "));
  const std::string answer =
      served.exchange("GET /actors HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  BOOST_TEST(answer.find("HTTP/1.1 200 OK") == 0U);
}

BOOST_AUTO_TEST_CASE(one_actor_comes_with_what_it_says_about_itself) {
  const Served served;
  const auto page = [&](int number) {
    return served.exchange("GET /actors/" + std::to_string(number) +
                           " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  };
  BOOST_TEST(page(1).find(R"("properties":{"children":2})") != std::string::npos);
  BOOST_TEST(page(2).find(R"("properties":null)") != std::string::npos);
  BOOST_TEST(page(9).starts_with("HTTP/1.1 404 "));
}

BOOST_AUTO_TEST_CASE(one_actor_that_is_stuck_is_shown_without_it) {
  boost::asio::io_context io;
  duet::runtime::System system(io.get_executor());
  std::latch entered(1);
  std::latch open(1);
  system.spawn<Stuck>("stuck", entered, open).send(Result{});
  std::thread loop([&] { io.run(); });
  entered.wait();
  const Directory directory;
  inspect::ServerOptions options;
  options.path = (directory.path / "s").string();
  boost::asio::io_context reserved;
  std::optional<inspect::Server> server(std::in_place, reserved.get_executor(), system, options);
  std::thread other([&] { reserved.run(); });
  const std::string answer =
      exchange_at(options.path, "GET /actors/1 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  server.reset();   // before the actor comes to it
  open.count_down();
  loop.join();
  other.join();
  BOOST_TEST(answer.find(R"("state":"running")") != std::string::npos);
  BOOST_TEST(answer.find(R"("message":"Result")") != std::string::npos);
  BOOST_TEST(answer.find(R"("properties":null)") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_path_in_use_is_an_error_and_a_stale_one_is_replaced) {
  const Served served;
  inspect::ServerOptions options;
  options.path = served.path;
  boost::asio::io_context io;
  duet::runtime::System system(io.get_executor());
  BOOST_CHECK_THROW(inspect::Server(io.get_executor(), system, options),
                    boost::system::system_error);
  options.path = (served.directory.path / "stale").string();
  {
    Protocol::acceptor left(io, Protocol::endpoint(options.path));   // leaves its file behind
  }
  BOOST_CHECK_NO_THROW(inspect::Server(io.get_executor(), system, options));
  options.path = (served.directory.path / "missing" / "s").string();
  BOOST_CHECK_THROW(inspect::Server(io.get_executor(), system, options),
                    boost::system::system_error);
  io.run();
}

BOOST_AUTO_TEST_CASE(a_context_that_is_destroyed_first_takes_server_and_connections_along) {
  const Directory directory;
  inspect::ServerOptions options;
  options.path = (directory.path / "s").string();
  std::optional<boost::asio::io_context> io(std::in_place);
  const duet::runtime::System system(io->get_executor());
  const inspect::Server server(io->get_executor(), system, options);
  io->poll();
  boost::asio::io_context client;
  Protocol::socket socket(client);
  socket.connect(Protocol::endpoint(options.path));
  io->restart();
  io->poll();   // the connection waits for a request, its timer is armed
  io.reset();
  BOOST_TEST(system.finished());
}

BOOST_AUTO_TEST_SUITE_END()
