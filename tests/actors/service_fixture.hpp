// service_fixture.hpp: the whole application on the emulated board, without HTTP, and a client that
// collects.
#pragma once

#include "actors/duet_service.hpp"
#include "device/calrt/combined_adapter.hpp"
#include "device/emulator/emulated_board.hpp"
#include "device/package/validator.hpp"
#include "runtime/real_clock.hpp"
#include "runtime/real_completion_source.hpp"
#include "runtime/system.hpp"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/test/unit_test.hpp>

#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace duet::test {

/// Keeps everything; a test waits for its end. May pretend to be slow. Checks nothing where it is
/// called, since Boost.Test is for one thread.
class Collector final : public actors::OutputStream {
 public:
  void listen(std::weak_ptr<actors::OutputListener> listener) noexcept override {
    const std::lock_guard lock(mutex_);
    listener_ = std::move(listener);
  }
  void start(std::uint32_t tokens) noexcept override {
    const std::lock_guard lock(mutex_);
    started = true;
    prompt_tokens = tokens;
    changed_.notify_all();
  }
  void delta(const actors::OutputDelta& delta) noexcept override {
    const std::lock_guard lock(mutex_);
    if (!started) out_of_order = "a delta before the start";
    text[delta.index] += delta.text;
    ++deltas;
    logprobs += delta.logprobs.size();
    changed_.notify_all();
  }
  void choice_end(std::uint32_t index, actors::FinishReason reason) noexcept override {
    const std::lock_guard lock(mutex_);
    if (finish.contains(index)) out_of_order = "a second end of a choice";
    finish[index] = reason;
  }
  void end(const actors::Usage& all) noexcept override {
    const std::lock_guard lock(mutex_);
    usage = all;
    ++terminals;
    changed_.notify_all();
  }
  void fail(const actors::ServiceError& what) noexcept override {
    const std::lock_guard lock(mutex_);
    error = what;
    ++terminals;
    changed_.notify_all();
  }
  bool writable() const noexcept override {
    const std::lock_guard lock(mutex_);
    return !slow;
  }

  void wait_for_end() {
    wait([this] { return terminals > 0; });
    const std::lock_guard lock(mutex_);
    BOOST_TEST(out_of_order == "");
  }
  void wait(const std::function<bool()>& condition) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, condition);
  }
  std::shared_ptr<actors::OutputListener> listener() {
    const std::lock_guard lock(mutex_);
    return listener_.lock();
  }
  void read_again() {
    {
      const std::lock_guard lock(mutex_);
      slow = false;
    }
    if (const auto told = listener()) told->on_writable();
  }

  // Read when the end was waited for.
  bool started = false;
  bool slow = false;
  std::uint32_t prompt_tokens = 0;
  std::map<std::uint32_t, std::string> text;
  std::map<std::uint32_t, actors::FinishReason> finish;
  std::optional<actors::Usage> usage;
  std::optional<actors::ServiceError> error;
  std::size_t deltas = 0;
  std::size_t logprobs = 0;
  std::string out_of_order;   ///< what came at the wrong moment, "" if nothing.
  int terminals = 0;

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::weak_ptr<actors::OutputListener> listener_;
};

inline actors::GenerateRequest chat(const std::string& model, const std::string& question,
                                    const std::string& id) {
  actors::GenerateRequest request;
  request.id = id;
  request.model = model;
  auto messages = std::make_shared<boost::json::array>();
  messages->push_back(boost::json::object{{"role", "user"}, {"content", question}});
  request.prompts.emplace_back(actors::ChatPrompt(std::move(messages)));
  request.sampling.temperature = 0;
  return request;
}

/// Started and Ready when constructed; shut down by the destructor at the latest.
class ServiceFixture {
 public:
  explicit ServiceFixture(const std::function<void(actors::ServiceOptions&)>& change = {},
                          device::emulator::FaultHook* faults = nullptr,
                          const std::string& profile = "combined") {
    actors::ServiceOptions options;
    options.device.package = std::string(DUET_BINARY_DIR) + "/demo-package";
    options.device.golden_prompts_max = 1;
    for (std::uint32_t chip = 0; chip < 2; ++chip) {
      actors::ModelOptions model;
      model.alias = chip == 0 ? "model-a" : "model-b";
      model.chip = chip;
      // A test is not to depend on how fast it runs, least of all under a sanitizer.
      model.job_deadline_min = std::chrono::hours(1);
      options.models.push_back(model);
    }
    if (change) change(options);
    device::ValidateOptions validate;
    const auto key = device::read_public_key(std::string(DUET_BINARY_DIR) + "/demo-key.pub");
    BOOST_REQUIRE(key.has_value());
    validate.trusted_keys.push_back(*key);
    auto report = device::validate_package(options.device.package, validate);
    BOOST_REQUIRE(report.package != nullptr);
    package = report.package;

    device::emulator::ThreadedBoardOptions board_options;
    board_options.board = "actors-test-" + std::to_string(::getpid());
    board_options.faults = faults;
    board_options.profile = device::emulator::find_profile(profile).value();
    board_ = device::emulator::make_emulated_board(board_options);
    clock_ = std::make_unique<runtime::RealClock>(io_.get_executor());
    adapter_ = std::make_unique<device::CombinedAdapter>(*board_, completions_, *clock_);
    system_ = std::make_unique<runtime::System>(io_.get_executor());
    actors::ServiceHooks hooks;
    hooks.on_request = [this](const actors::RequestRecord& record) {
      const std::lock_guard lock(mutex_);
      records_.push_back(record);
    };
    hooks.on_life_cycle = [this](const std::string& event, const std::string& detail) {
      const std::lock_guard lock(mutex_);
      events_.push_back(event);
      details_[event] = detail;
      changed_.notify_all();
    };
    service_ = std::make_unique<actors::DuetService>(*system_, *adapter_, report.package, options,
                                                     std::move(hooks));
    thread_ = std::thread([this] { io_.run(); });
    wait_for_event("ready");
  }

  ~ServiceFixture() {
    if (service_ != nullptr) shut_down();
  }

  bool shut_down() {
    bool released = false;
    bool done = false;
    service_->shut_down([&](bool ok) {
      const std::lock_guard lock(mutex_);
      released = ok;
      done = true;
      changed_.notify_all();
    });
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return done; });
    }
    bool stopped = false;
    system_->stop(std::chrono::seconds(10), [&](const runtime::StopReport&) {
      const std::lock_guard lock(mutex_);
      stopped = true;
      changed_.notify_all();
    });
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return stopped; });
    }
    work_.reset();
    thread_.join();
    final_metrics = service_->metrics();
    service_.reset();
    system_.reset();
    adapter_.reset();
    return released;
  }

  void wait_for_event(const std::string& event) {
    std::unique_lock lock(mutex_);
    changed_.wait(
        lock, [&] { return std::find(events_.begin(), events_.end(), event) != events_.end(); });
  }

  std::shared_ptr<Collector> submit(actors::GenerateRequest request) {
    auto collector = std::make_shared<Collector>();
    service_->submit(std::move(request), collector);
    return collector;
  }

  /// What the last life-cycle event of that name said.
  std::string detail(const std::string& event) {
    const std::lock_guard lock(mutex_);
    return details_[event];
  }

  std::vector<actors::ModelMetrics> final_metrics;   ///< after shut_down.
  std::shared_ptr<const device::Package> package;

  actors::DuetService& service() { return *service_; }
  device::emulator::ThreadedBoard& board() { return *board_; }
  std::vector<std::string> events() {
    const std::lock_guard lock(mutex_);
    return events_;
  }

 private:
  boost::asio::io_context io_{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_ =
      boost::asio::make_work_guard(io_);
  std::unique_ptr<device::emulator::ThreadedBoard> board_;
  std::unique_ptr<runtime::RealClock> clock_;
  runtime::RealCompletionSource completions_;
  std::unique_ptr<device::CombinedAdapter> adapter_;
  std::unique_ptr<runtime::System> system_;
  std::unique_ptr<actors::DuetService> service_;
  std::thread thread_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<actors::RequestRecord> records_;
  std::vector<std::string> events_;
  std::map<std::string, std::string> details_;   // by event
};

}   // namespace duet::test
