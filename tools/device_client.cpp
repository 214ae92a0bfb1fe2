// device_client.cpp: a sink that keeps what has completed until somebody asks for it.
#include "tools/device_client.hpp"

#include "runtime/assert.hpp"

#include <optional>
#include <set>
#include <utility>

namespace duet::tools {

struct DeviceClient::Waiting final : device::CompletionSink {
  using JobKey = std::pair<device::SessionId, device::JobId>;

  void on_call(device::CallDone&& done) noexcept override {
    const std::lock_guard lock(mutex);
    calls.emplace(done.tag, std::move(done.outcome));
    changed.notify_all();
  }

  void on_job(const device::JobResult& done) noexcept override {
    const std::lock_guard lock(mutex);
    jobs.insert_or_assign(JobKey(done.session, done.job), done);
    changed.notify_all();
  }

  void on_settled(device::SessionId, device::Generation, device::JobId) noexcept override {}

  std::mutex mutex;
  std::condition_variable changed;
  std::uint64_t last_tag = 0;
  std::map<std::uint64_t, device::result<Value>> calls;
  std::map<JobKey, device::JobResult> jobs;
};

DeviceClient::DeviceClient(device::Device& device)
    : device_(device), waiting_(std::make_shared<Waiting>()) {}

device::Sink DeviceClient::sink() const {
  return waiting_;
}

device::result<DeviceClient::Value> DeviceClient::call(const Start& start) {
  std::uint64_t tag = 0;
  {
    const std::lock_guard lock(waiting_->mutex);
    tag = ++waiting_->last_tag;
  }
  start(tag, waiting_);
  std::unique_lock lock(waiting_->mutex);
  waiting_->changed.wait(lock, [&] { return waiting_->calls.contains(tag); });
  device::result<Value> outcome = std::move(waiting_->calls.at(tag));
  waiting_->calls.erase(tag);
  return outcome;
}

device::result<device::JobResult> DeviceClient::run(const device::JobRequest& job) {
  if (auto accepted = device_.submit(job); !accepted) return accepted.error();
  const Waiting::JobKey key(job.session, job.job);
  std::unique_lock lock(waiting_->mutex);
  waiting_->changed.wait(lock, [&] { return waiting_->jobs.contains(key); });
  const device::JobResult done = waiting_->jobs.at(key);
  waiting_->jobs.erase(key);
  return done;
}

std::string failure_text(const device::Failure& failure) {
  const std::string sentence = device::make_error_code(failure.code).message();
  return failure.detail.empty() ? sentence : sentence + ": " + failure.detail;
}

}   // namespace duet::tools
