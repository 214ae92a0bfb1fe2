// duet_server.cpp: the server: configuration, package, board, actors and HTTP put together, and
// taken apart again.
#include "actors/duet_service.hpp"
#include "config/config.hpp"
#include "config/cross_check.hpp"
#include "device/calrt/combined_adapter.hpp"
#include "device/emulator/emulated_board.hpp"
#include "device/package/validator.hpp"
#include "http/server.hpp"
#include "runtime/real_clock.hpp"
#include "runtime/real_completion_source.hpp"
#include "runtime/real_random.hpp"
#include "runtime/system.hpp"
#include "tools/answer_script.hpp"
#include "tools/arguments.hpp"
#include "tools/json_log.hpp"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>

#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <exception>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace duet;   // NOLINT: the program that puts all of it together
using tools::Arguments;

constexpr const char* help = R"(usage: duet-server --config FILE [options]

Serves the models of a configuration (calculet-dual-model/v1) behind one OpenAI-compatible endpoint.

  --config FILE        the configuration; config/demo.yaml serves the two demo models
  --check              check configuration and package, open no device, and end
  --port N             listen on this port instead of the configured one; 0 lets the system choose
  --port-file FILE     write the port there once clients are served
  --help               this text

SIGTERM and SIGINT drain: readiness goes to 503, new requests are refused, running answers finish.
A second one ends at once.
Exit codes: 0 done, 1 a finding or a failure, 2 wrong use, 75 the process must be restarted.
)";

int wrong_use(const std::string& what) {
  std::fprintf(stderr, "duet-server: %s; see duet-server --help\n", what.c_str());
  return tools::exit_wrong_use;
}

/// Prints findings; true if there was none.
bool none(const std::vector<config::Finding>& findings, const char* kind) {
  for (const config::Finding& finding : findings) {
    std::fprintf(stderr, "duet-server: %s: %s\n", kind, config::to_string(finding).c_str());
  }
  return findings.empty();
}

/// The validated package, or null after printing why not. `serving`: a signature that cannot be
/// verified is an error.
std::shared_ptr<const device::Package> open_package(const config::Config& config, bool serving) {
  device::ValidateOptions options;
  options.allow_unsigned = config.service.device.allow_unsigned || !serving;
  for (const std::string& path : config.service.device.trusted_signers) {
    const auto key = device::read_public_key(path);
    if (!key) {
      std::fprintf(stderr, "duet-server: error: %s\n", key.error().message.c_str());
      return nullptr;
    }
    options.trusted_keys.push_back(*key);
  }
  device::ValidationReport report =
      device::validate_package(config.service.device.package, options);
  for (const device::Finding& finding : report.findings.list()) {
    std::fprintf(stderr, "duet-server: %s\n", device::finding_text(finding).c_str());
  }
  if (report.package == nullptr) return nullptr;
  return none(config::cross_check(config, report.package->manifest()), "error") ? report.package
                                                                                : nullptr;
}

/// Everything that runs, in the order of its making; the destructor takes it apart from behind.
class Host {
 public:
  Host(config::Config config, std::shared_ptr<const device::Package> package)
      : config_(std::move(config)), clock_(io_.get_executor()), log_(config_.log.file) {
    device::emulator::ThreadedBoardOptions board;
    board.board = config_.device.board;
    board.lock_directory = config_.device.lock_directory;
    board.threads_per_chip = config_.device.threads_per_chip;
    board.profile = device::emulator::find_profile(config_.device.profile).value();
    script_ = tools::answer_script(config_, *package);
    board.faults = script_.get();
    board_ = device::emulator::make_emulated_board(board);
    adapter_ = std::make_unique<device::CombinedAdapter>(*board_, completions_, clock_);
    runtime::SystemOptions system;
    system.pumps = config_.runtime.threads;
    system_ = std::make_unique<runtime::System>(io_.get_executor(), system);
    service_ = std::make_unique<actors::DuetService>(*system_, *adapter_, std::move(package),
                                                     config_.service, hooks());
    http::ServerContext context{io_.get_executor(), reserved_.get_executor(), clock_, random_,
                                *service_};
    server_ = std::make_unique<http::Server>(config_.http, std::move(context));
  }

  /// Returns the exit code when all has ended.
  int run(const std::string& port_file) {
    const auto port = server_->listen();
    if (!port) {
      std::fprintf(stderr, "duet-server: error: %s\n", port.error().message.c_str());
      exit_code_ = tools::exit_finding;
      server_.reset();   // nothing was served
      stop_service();
    } else {
      log_.write("listening", {{"address", config_.http.address}, {"port", *port}});
      if (!port_file.empty() && !write_port(port_file, *port)) {
        std::fprintf(stderr, "duet-server: error: cannot write %s\n", port_file.c_str());
        exit_code_ = tools::exit_finding;
        begin_stop();
      }
      wait_for_signal();
    }
    std::thread reserved([this] { reserved_.run(); });
    std::vector<std::thread> more;
    for (std::uint32_t i = 1; i < config_.runtime.threads; ++i) {
      more.emplace_back([this] { io_.run(); });
    }
    io_.run();
    for (std::thread& thread : more) thread.join();
    reserved_work_.reset();
    reserved.join();
    return exit_code_;
  }

 private:
  actors::ServiceHooks hooks() {
    actors::ServiceHooks hooks;
    hooks.on_request = [this](const actors::RequestRecord& record) {
      const auto milliseconds = [](runtime::Duration duration) {
        return std::chrono::duration<double, std::milli>(duration).count();
      };
      log_.write("request", {{"request_id", record.id},
                             {"model", record.model},
                             {"prompt_tokens", record.prompt_tokens},
                             {"completion_tokens", record.completion_tokens},
                             {"seed", record.seed},
                             {"queue_ms", milliseconds(record.queue)},
                             {"ttft_ms", milliseconds(record.ttft)},
                             {"e2e_ms", milliseconds(record.e2e)},
                             {"outcome", record.outcome}});
    };
    hooks.on_life_cycle = [this](const std::string& event, const std::string& detail) {
      log_.write("life_cycle", {{"step", event}, {"detail", detail}});
    };
    hooks.restart_process = [this] {
      log_.write("restart", {{"detail", "the board cannot be recovered from here"}});
      ::_exit(tools::exit_restart);
    };
    return hooks;
  }

  static bool write_port(const std::string& path, std::uint16_t port) {
    const std::string beside = path + ".new";
    std::ofstream file(beside);
    file << port << '\n';
    file.close();
    return file.good() && std::rename(beside.c_str(), path.c_str()) == 0;
  }

  void wait_for_signal() {
    signals_.async_wait([this](const boost::system::error_code& error, int signal) {
      if (error) return;
      if (stopping_) ::_exit(128 + signal);
      log_.write("stopping", {{"signal", signal}});
      begin_stop();
      wait_for_signal();
    });
  }

  // The order: no new work, answers finish, the board is released, connections end, actors end.
  void begin_stop() {
    stopping_ = true;
    server_->drain([] {});
    stop_service();
  }

  void stop_service() {
    stopping_ = true;
    service_->shut_down([this](bool released) {
      log_.write("released", {{"clean", released}});
      if (!released) exit_code_ = tools::exit_finding;
      boost::asio::post(io_, [this] { close_connections(); });
    });
  }

  void close_connections() {
    if (server_ == nullptr) return stop_actors();
    server_->close([this] { boost::asio::post(io_, [this] { stop_actors(); }); });
  }

  void stop_actors() {
    signals_.cancel();
    system_->stop(std::chrono::seconds(5), [this](const runtime::StopReport& report) {
      if (!report.stragglers.empty()) {
        log_.write("stragglers", {{"count", report.stragglers.size()}});
      }
      work_.reset();
    });
  }

  const config::Config config_;
  boost::asio::io_context io_;
  boost::asio::io_context reserved_{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_ =
      boost::asio::make_work_guard(io_);
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> reserved_work_ =
      boost::asio::make_work_guard(reserved_);
  boost::asio::signal_set signals_{io_, SIGTERM, SIGINT};
  runtime::RealClock clock_;
  runtime::RealRandom random_;
  runtime::RealCompletionSource completions_;
  tools::JsonLog log_;
  std::unique_ptr<device::emulator::FaultHook> script_;
  std::unique_ptr<device::emulator::ThreadedBoard> board_;
  std::unique_ptr<device::CombinedAdapter> adapter_;
  std::unique_ptr<runtime::System> system_;
  std::unique_ptr<actors::DuetService> service_;
  std::unique_ptr<http::Server> server_;
  bool stopping_ = false;   // on the first thread of io_
  int exit_code_ = tools::exit_done;
};

int serve(const Arguments& arguments) {
  const std::string file = arguments.last("--config", "");
  if (file.empty()) return wrong_use("--config is missing");
  config::LoadResult loaded = config::load_config(file);
  none(loaded.warnings, "warning");
  if (!none(loaded.errors, "error")) return tools::exit_finding;
  config::Config config = std::move(*loaded.config);
  if (!arguments.all("--port").empty()) {
    const auto port = tools::parse_number(arguments.last("--port", ""), 0, 65535);
    if (!port) return wrong_use("--port wants a number from 0 to 65535");
    config.http.port = static_cast<std::uint16_t>(*port);
  }
  const bool check = arguments.flag("--check");
  if (!check && !none(config::check_serving(config), "error")) return tools::exit_finding;
  if (!check && config.device.runtime == config::DeviceRuntime::plugin) {
    std::fprintf(stderr,
                 "duet-server: error: %s: device.runtime: this version serves the emulator only\n",
                 file.c_str());
    return tools::exit_finding;
  }
  auto package = open_package(config, !check);
  if (package == nullptr) return tools::exit_finding;
  if (check) {
    std::printf("%s: right; package %s\n", file.c_str(), package->hash().c_str());
    return tools::exit_done;
  }
  try {
    Host host(std::move(config), std::move(package));
    return host.run(arguments.last("--port-file", ""));
  } catch (const std::exception& exception) {
    std::fprintf(stderr, "duet-server: error: %s\n", exception.what());
    return tools::exit_finding;
  }
}

}   // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  tools::ArgumentRules rules;
  rules.flags = {"--check", "--help"};
  rules.options = {"--config", "--port", "--port-file"};
  std::string error;
  const auto arguments = Arguments::parse(words, rules, error);
  if (!arguments) return wrong_use(error);
  if (arguments->flag("--help")) {
    std::fputs(help, stdout);
    return tools::exit_done;
  }
  return serve(*arguments);
}
