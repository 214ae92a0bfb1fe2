// fake_runtime.hpp: a vendor runtime that does what a test says, lanes that a test steps, and a
// clock it moves by hand.
#pragma once

#include "device/calrt/vendor_runtime.hpp"
#include "device/contract/device.hpp"
#include "runtime/clock.hpp"
#include "runtime/completion_source.hpp"
#include "runtime/timer_heap.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace duet::test {

/// Makes a call only when the test says so, on the test's thread.
class SteppedSource final : public runtime::CompletionSource {
 public:
  class Lane final : public runtime::CompletionLane {
   public:
    Lane(SteppedSource& source, std::string name, std::size_t queued_max)
        : source_(source), name_(std::move(name)), queued_max_(queued_max) {
      source_.lanes_.push_back(this);
    }
    ~Lane() override {
      close();
      std::erase(source_.lanes_, this);
    }
    bool push(runtime::BlockingCall& call) noexcept override {
      if (closed_ || queue_.size() > queued_max_) return false;
      queue_.push(call);
      return true;
    }
    void close() noexcept override {
      closed_ = true;
      while (auto* call = queue_.pop()) call->finish(false);
    }
    bool abandon() noexcept override {
      const bool running = running_ != nullptr;
      if (running) source_.abandoned_calls.push_back(std::exchange(running_, nullptr));
      close();
      return running;
    }

   private:
    friend class SteppedSource;
    SteppedSource& source_;
    const std::string name_;
    const std::size_t queued_max_;
    runtime::BlockingCallQueue queue_;
    runtime::BlockingCall* running_ = nullptr;   // run() was called, finish() not yet
    bool closed_ = false;
  };

  std::unique_ptr<runtime::CompletionLane> open_lane(std::string_view name,
                                                     std::size_t queued_max) override {
    return std::make_unique<Lane>(*this, std::string(name), queued_max);
  }
  std::uint64_t abandoned() const noexcept override { return abandoned_calls.size(); }

  /// Runs every waiting call to its end; what they cause too.
  void settle() {
    for (bool any = true; any;) {
      any = false;
      for (std::size_t i = 0; i < lanes_.size(); ++i)
        any |= start(*lanes_[i]) && finish(*lanes_[i]);
    }
  }
  /// The two halves of a call, of the first lane whose name begins so and that has one.
  bool start(const std::string& prefix) {
    return each(prefix, [this](Lane& lane) { return start(lane); });
  }
  bool finish(const std::string& prefix) {
    return each(prefix, [this](Lane& lane) { return finish(lane); });
  }

  std::vector<runtime::BlockingCall*> abandoned_calls;

 private:
  bool start(Lane& lane) {
    if (lane.running_ != nullptr) return false;
    lane.running_ = lane.queue_.pop();
    if (lane.running_ == nullptr) return false;
    lane.running_->run();
    return true;
  }
  bool finish(Lane& lane) {
    runtime::BlockingCall* const call = std::exchange(lane.running_, nullptr);
    if (call == nullptr) return false;
    call->finish(true);
    return true;
  }
  bool each(const std::string& prefix, const std::function<bool(Lane&)>& step) {
    for (std::size_t i = 0; i < lanes_.size(); ++i) {
      if (lanes_[i]->name_.starts_with(prefix) && step(*lanes_[i])) return true;
    }
    return false;
  }

  std::vector<Lane*> lanes_;
};

class ManualClock final : public runtime::Clock {
 public:
  runtime::TimePoint now() const noexcept override { return now_; }
  runtime::WallTime wall_now() const noexcept override { return {}; }
  void arm(runtime::Timer& timer, runtime::TimePoint due) override { heap_.arm(timer, due); }
  bool cancel(runtime::Timer& timer) noexcept override { return heap_.remove(timer); }
  void advance(runtime::Duration by) {
    now_ += by;
    while (auto* timer = heap_.pop_due(now_)) timer->expired();
  }
  [[nodiscard]] std::size_t armed() const { return heap_.size(); }

 private:
  runtime::TimePoint now_{};
  runtime::TimerHeap heap_;
};

/// Keeps what it was told; no thread of its own.
class Recorder final : public device::CompletionSink {
 public:
  void on_call(device::CallDone&& done) noexcept override { calls.push_back(std::move(done)); }
  void on_job(const device::JobResult& done) noexcept override { jobs.push_back(done); }
  void on_settled(device::SessionId, device::Generation, device::JobId job) noexcept override {
    settled.push_back(job);
  }
  std::vector<device::CallDone> calls;
  std::vector<device::JobResult> jobs;
  std::vector<device::JobId> settled;
};

/// Writes down each call as a line; answers well unless a failure was put in its way.
class FakeRuntime final : public device::VendorRuntime {
 public:
  template <typename T>
  using Result = device::result<T>;

  Result<device::Topology> open() override {
    if (auto failure = note("open")) return *failure;
    return topology;
  }
  Result<void> close() override { return note_void("close"); }
  Result<std::vector<device::LoadedGraph>> load_package(const std::filesystem::path& p) override {
    if (auto failure = note("load " + p.string())) return *failure;
    return graphs;
  }
  Result<void> configure() override { return note_void("configure"); }
  Result<std::string> current_hash() override {
    if (auto failure = note("hash")) return *failure;
    return hash;
  }
  Result<void> reset_configuration() override { return note_void("reset_configuration"); }
  Result<void> reset(device::ResetScope scope, std::uint32_t chip) override {
    return note_void("reset " + std::to_string(static_cast<int>(scope)) + " " +
                     std::to_string(chip));
  }
  Result<device::IoBuffers> allocate_io(device::GraphHandle graph) override {
    if (auto failure = note("allocate_io " + std::to_string(graph))) return *failure;
    device::IoBuffers io;
    io.id = ++buffers_made;
    io.tokens = std::span(tokens).first(graph % 2 == 0 ? 16 : 1);
    io.logits = logits;
    return io;
  }
  Result<void> release_io(std::uint64_t id) override {
    return note_void("release_io " + std::to_string(id));
  }
  Result<void> kv_reserve(std::uint32_t chip, device::Generation, device::SequenceId sequence,
                          std::uint32_t count) override {
    return note_void(kv("reserve", chip, sequence) + " " + std::to_string(count));
  }
  Result<void> kv_commit(std::uint32_t chip, device::Generation, device::SequenceId sequence,
                         std::uint32_t count) override {
    return note_void(kv("commit", chip, sequence) + " " + std::to_string(count));
  }
  Result<void> kv_rollback(std::uint32_t chip, device::Generation,
                           device::SequenceId sequence) override {
    return note_void(kv("rollback", chip, sequence));
  }
  Result<void> kv_release(std::uint32_t chip, device::Generation,
                          device::SequenceId sequence) override {
    return note_void(kv("release", chip, sequence));
  }
  Result<device::JobTicket> submit(const device::VendorJob& job) override {
    if (auto failure = note("submit " + std::to_string(job.graph) + " seq" +
                            std::to_string(job.sequence) + " past" + std::to_string(job.past))) {
      return *failure;
    }
    return ++tickets_made;
  }
  Result<device::VendorJobEnd> wait(device::JobTicket ticket, device::TimePoint deadline) override {
    const bool bounded = deadline != device::no_deadline;
    if (auto failure =
            note(std::string(bounded ? "wait " : "wait-forever ") + std::to_string(ticket))) {
      return *failure;
    }
    return job_end;
  }
  Result<device::CancelEffect> cancel(device::JobTicket) override {
    return device::CancelEffect::delivery_only;
  }
  Result<device::MemoryUsage> memory_usage(std::uint32_t chip) override {
    device::MemoryUsage usage;
    usage.chip = chip;
    return usage;
  }
  Result<device::Health> health(std::uint32_t chip) override {
    device::Health health;
    health.chip = chip;
    return health;
  }
  Result<device::Trace> take_trace(std::uint32_t) override { return device::Trace{}; }

  /// The next call whose line begins so fails.
  void fail(std::string prefix, device::errc code) {
    failures.emplace_back(std::move(prefix), code);
  }
  std::vector<std::string> take_lines() { return std::exchange(lines, {}); }

  device::Topology topology;
  std::vector<device::LoadedGraph> graphs;
  std::string hash;
  device::VendorJobEnd job_end;
  std::vector<std::string> lines;
  std::vector<std::pair<std::string, device::errc>> failures;
  std::vector<std::uint32_t> tokens = std::vector<std::uint32_t>(16);
  std::vector<float> logits = std::vector<float>(4);
  std::uint64_t buffers_made = 0;
  std::uint64_t tickets_made = 0;

 private:
  static std::string kv(const char* what, std::uint32_t chip, device::SequenceId sequence) {
    return std::string(what) + " chip" + std::to_string(chip) + " seq" + std::to_string(sequence);
  }
  std::optional<device::Failure> note(const std::string& line) {
    lines.push_back(line);
    for (auto it = failures.begin(); it != failures.end(); ++it) {
      if (!line.starts_with(it->first)) continue;
      device::Failure failure(it->second, "as the test said");
      failures.erase(it);
      return failure;
    }
    return std::nullopt;
  }
  Result<void> note_void(const std::string& line) {
    if (auto failure = note(line)) return *failure;
    return {};
  }
};

}   // namespace duet::test
