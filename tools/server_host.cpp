// server_host.cpp: putting all of it together, and taking it apart.
#include "tools/server_host.hpp"

#include "actors/duet_service.hpp"
#include "config/log_sink.hpp"
#include "device/calrt/combined_adapter.hpp"
#include "device/emulator/emulated_board.hpp"
#include "device/package/sha256.hpp"
#include "http/admin_pages.hpp"
#include "http/server.hpp"
#include "runtime/inspect/server.hpp"
#include "runtime/real_clock.hpp"
#include "runtime/real_completion_source.hpp"
#include "runtime/real_random.hpp"
#include "runtime/real_stall_watch.hpp"
#include "runtime/system.hpp"
#include "tools/answer_script.hpp"
#include "tools/arguments.hpp"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>
#include <utility>
#include <vector>

namespace duet::tools {

using config::LogLevel;

namespace {

/// what the signature of the package that is served is worth.
const char* trust_text(device::Trust trust) {
  switch (trust) {
    case device::Trust::unsigned_:
      return "missing";
    case device::Trust::unverified:
      return "unverifiable";
    case device::Trust::verified:
      break;
  }
  return "verified";
}

/// What the kernel says of this process.
http::HostMemory host_memory() {
  http::HostMemory memory;
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    std::istringstream words(line);
    std::string name;
    std::uint64_t kib = 0;
    if (!(words >> name >> kib)) continue;
    if (name == "VmRSS:") memory.resident = kib * 1024;
    if (name == "VmHWM:") memory.resident_peak = kib * 1024;
  }
  return memory;
}

}   // namespace

/// The members in the order of their making; the destructor takes them apart from behind.
class ServerHost::Impl {
 public:
  Impl(config::Config config, std::shared_ptr<const device::Package> package)
      : config_(std::move(config)), clock_(io_.get_executor()), log_(config_.log, clock_) {
    log_start(*package);
    device::emulator::ThreadedBoardOptions board;
    board.board = config_.device.board;
    board.lock_directory = config_.device.lock_directory;
    board.threads_per_chip = config_.device.threads_per_chip;
    board.profile = device::emulator::find_profile(config_.device.profile).value();
    script_ = answer_script(config_, *package);
    board.faults = script_.get();
    board_ = device::emulator::make_emulated_board(board);
    adapter_ = std::make_unique<device::CombinedAdapter>(*board_, completions_, clock_);
    runtime::SystemOptions system;
    system.pumps = config_.runtime.threads;
    system_ = std::make_unique<runtime::System>(io_.get_executor(), system);
    make_admin();
    runtime::StallWatchOptions stalls;
    stalls.on_stall = [this](const runtime::Stall& stall) { log_stall(stall); };
    stalls_ = std::make_unique<runtime::RealStallWatch>(*system_, std::move(stalls));
    service_ = std::make_unique<actors::DuetService>(*system_, *adapter_, std::move(package),
                                                     config_.service, hooks());
    http::ServerContext context{io_.get_executor(), reserved_.get_executor(), clock_, random_,
                                *service_};
    context.log = [this](const http::RequestRecord& record) { log_http(record); };
    server_ = std::make_unique<http::Server>(config_.http, std::move(context));
  }

  /// Returns the exit code when all has ended.
  int run(const std::string& port_file) {
    const auto port = server_->listen();
    if (!port) {
      std::fprintf(stderr, "duet-server: error: %s\n", port.error().message.c_str());
      exit_code_ = exit_finding;
      stop_service();
    } else {
      listening_ = true;
      info("listening", {{"address", config_.http.address}, {"port", *port}});
      if (!port_file.empty() && !write_port(port_file, *port)) {
        std::fprintf(stderr, "duet-server: error: cannot write %s, or it is no regular file\n",
                     port_file.c_str());
        exit_code_ = exit_finding;
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
    admin_.reset();   // closes on the reserved thread, which then has nothing left
    reserved_work_.reset();
    reserved.join();
    // What a last wake has left there runs while everything it may touch still lives.
    io_.restart();
    io_.poll();
    reserved_.restart();
    reserved_.poll();
    return exit_code_;
  }

 private:
  actors::ServiceHooks hooks() {
    actors::ServiceHooks hooks;
    hooks.on_request = [this](const actors::RequestRecord& record) { log_request(record); };
    hooks.on_life_cycle = [this](const std::string& step, const std::string& detail) {
      const LogLevel level = step == "failed"       ? LogLevel::error
                             : step == "recovering" ? LogLevel::warning
                                                    : LogLevel::info;
      log_.write(level, "life_cycle", {{"step", step}, {"detail", detail}});
    };
    hooks.restart_process = [this] {
      log_.write(LogLevel::error, "restart",
                 {{"detail", "the board cannot be recovered from inside this process"}});
      log_.flush();
      ::_exit(exit_restart);
    };
    return hooks;
  }

  void info(const char* event, const boost::json::object& fields) {
    log_.write(LogLevel::info, event, fields);
  }

  // On the watch's thread.
  void log_stall(const runtime::Stall& stall) {
    const runtime::ActorSnapshot& actor = stall.actor;
    log_.write(LogLevel::warning, "stall",
               {{"actor", actor.name},
                {"number", actor.number},
                {"message", actor.message},
                {"held_ms", std::chrono::duration<double, std::milli>(stall.held).count()},
                {"at", actor.file.empty() ? "" : actor.file + ":" + std::to_string(actor.line)}});
  }

  void log_start(const device::Package& package) {
    boost::json::array models;
    for (const actors::ModelOptions& model : config_.service.models) {
      models.push_back(boost::json::object{{"model", model.alias}, {"chip", model.chip}});
    }
    info("start", {{"configuration", config_.file},
                   {"package", config_.service.device.package},
                   {"package_hash", package.hash()},
                   {"signature", trust_text(package.trust())},
                   {"board", config_.device.board},
                   {"profile", config_.device.profile},
                   {"models", std::move(models)}});
  }

  // Chip and generation are for operators; no prompt and no answer is ever here.
  void log_request(const actors::RequestRecord& record) {
    const auto text_or_null = [](const std::string& text) {
      return text.empty() ? boost::json::value(nullptr) : boost::json::value(text);
    };
    info("request", {{"request_id", record.id},
                     {"model", record.model},
                     {"generation", record.generation},
                     {"chip", record.chip},
                     {"prompt_tokens", record.prompt_tokens},
                     {"completion_tokens", record.completion_tokens},
                     {"seed", record.seed},
                     {"queue_ms", milliseconds(record.queue)},
                     {"ttft_ms", milliseconds(record.ttft)},
                     {"tpot_ms", milliseconds(record.tpot)},
                     {"e2e_ms", milliseconds(record.e2e)},
                     {"finish_reason", text_or_null(record.finish)},
                     {"error", text_or_null(record.error)}});
  }

  // What was refused at the door never becomes a request; the rest is of interest to who debugs.
  void log_http(const http::RequestRecord& record) {
    const bool refused = record.status >= 400;
    log_.write(refused ? LogLevel::info : LogLevel::debug, "http",
               {{"request_id", record.request_id},
                {"route", record.route},
                {"key", record.key},
                {"status", record.status},
                {"error", record.error},
                {"stream", record.stream},
                {"bytes_sent", record.bytes_sent},
                {"ms", milliseconds(record.finished - record.received)}});
  }

  static double milliseconds(runtime::Duration duration) {
    return std::chrono::duration<double, std::milli>(duration).count();
  }

  void make_admin() {
    if (config_.admin.socket.empty()) return;
    runtime::inspect::ServerOptions options;
    options.path = config_.admin.socket;
    options.allowed_uids.assign(config_.admin.allow_uid.begin(), config_.admin.allow_uid.end());
    // Asked only while run() runs, when service and server are there.
    options.pages = [this](const runtime::inspect::Request& request, auto done) {
      const http::AdminContext context{*service_, *service_, server_->counters(), clock_,
                                       host_memory};
      http::admin_pages(context)(request, std::move(done));
    };
    admin_ = std::make_unique<runtime::inspect::Server>(reserved_.get_executor(), *system_,
                                                        std::move(options));
    info("administration", {{"socket", config_.admin.socket}});
  }

  static bool write_port(const std::string& path, std::uint16_t port) {
    std::error_code ignored;
    const auto there = std::filesystem::symlink_status(path, ignored);
    // Renaming would put a file in the place of a device or a link.
    if (std::filesystem::exists(there) && !std::filesystem::is_regular_file(there)) return false;
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
      info("stopping", {{"signal", signal}});
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
      info("released", {{"clean", released}});
      if (!released) exit_code_ = exit_finding;
      boost::asio::post(io_, [this] { close_connections(); });
    });
  }

  void close_connections() {
    if (!listening_) return stop_actors();
    server_->close([this] { boost::asio::post(io_, [this] { stop_actors(); }); });
  }

  void stop_actors() {
    boost::system::error_code ignored;
    signals_.clear(ignored);   // from here on a signal ends the process at once
    signals_.cancel();
    system_->stop(std::chrono::seconds(5), [this](const runtime::StopReport& report) {
      for (const runtime::ActorSnapshot& straggler : report.stragglers) {
        log_.write(LogLevel::warning, "straggler",
                   {{"actor", runtime::describe(straggler, clock_.now())}});
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
  config::LogSink log_;
  std::unique_ptr<device::emulator::FaultHook> script_;
  std::unique_ptr<device::emulator::ThreadedBoard> board_;
  std::unique_ptr<device::CombinedAdapter> adapter_;
  std::unique_ptr<runtime::System> system_;
  std::unique_ptr<runtime::inspect::Server> admin_;
  std::unique_ptr<runtime::RealStallWatch> stalls_;
  std::unique_ptr<actors::DuetService> service_;
  std::unique_ptr<http::Server> server_;
  bool listening_ = false;
  bool stopping_ = false;   // on the first thread of io_
  int exit_code_ = exit_done;
};

ServerHost::ServerHost(config::Config config, std::shared_ptr<const device::Package> package)
    : impl_(std::make_unique<Impl>(std::move(config), std::move(package))) {}

ServerHost::~ServerHost() = default;

int ServerHost::run(const std::string& port_file) {
  return impl_->run(port_file);
}

void log_refusal(const config::Config& config, const device::ValidationReport& report) {
  boost::json::array codes;
  for (const device::Finding& finding : report.findings.list()) {
    if (finding.severity != device::Severity::error) continue;
    const std::string code = device::code_text(finding.code);
    // The findings are sorted, so that equal codes stand together.
    if (codes.empty() || codes.back() != boost::json::value(code)) codes.emplace_back(code);
  }
  try {
    boost::asio::io_context io;
    const runtime::RealClock clock(io.get_executor());
    config::LogSink log(config.log, clock);
    log.write(LogLevel::error, "package_refused",
              {{"configuration", config.file},
               {"package", config.service.device.package},
               {"signature", device::name_of(report.signature)},
               {"signer", report.signer ? boost::json::value(device::hex_text(*report.signer))
                                        : boost::json::value(nullptr)},
               {"codes", std::move(codes)}});
    log.flush();
  } catch (const std::exception& exception) {
    std::fprintf(stderr, "duet-server: error: %s\n", exception.what());
  }
}

}   // namespace duet::tools
