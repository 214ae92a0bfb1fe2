// fake_service.hpp: a service for tests: it keeps what is asked and answers as a test says.
#pragma once

#include "actors/service.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace duet::http::tests {

struct SilentListener final : actors::OutputListener {
  void on_writable() noexcept override {}
  void on_reader_gone() noexcept override {}
};

class FakeService final : public actors::Service {
 public:
  using Script =
      std::function<void(actors::GenerateRequest, std::shared_ptr<actors::OutputStream>)>;

  FakeService() {
    for (const char* alias : {"model-a", "model-b"}) {
      actors::ModelStatus status;
      status.alias = alias;
      status.state = actors::WorkerState::ready;
      status.created = runtime::WallTime(std::chrono::seconds(1700000000));
      status.context = 512;
      models_.push_back(status);
      actors::ModelMetrics metrics;
      metrics.alias = alias;
      metrics_.push_back(metrics);
    }
  }

  /// Runs inside submit(), on its thread. Set before the server listens, or by a test that waits.
  void on_submit(Script script) {
    const std::lock_guard lock(mutex_);
    script_ = std::move(script);
  }
  void set_models(std::vector<actors::ModelStatus> models) {
    const std::lock_guard lock(mutex_);
    models_ = std::move(models);
  }
  void set_metrics(std::vector<actors::ModelMetrics> metrics) {
    const std::lock_guard lock(mutex_);
    metrics_ = std::move(metrics);
  }
  void set_running(const std::string& id, const std::string& key) {
    const std::lock_guard lock(mutex_);
    running_[id] = key;
  }
  [[nodiscard]] std::uint64_t submitted() const {
    const std::lock_guard lock(mutex_);
    return submitted_;
  }

  void submit(actors::GenerateRequest request,
              std::shared_ptr<actors::OutputStream> stream) override {
    Script script;
    {
      const std::lock_guard lock(mutex_);
      ++submitted_;
      script = script_;
    }
    if (script) {
      script(std::move(request), std::move(stream));
    } else {
      stream->fail({actors::errc::internal, "the test has no script"});
    }
  }
  void cancel(const std::string& id, const std::string& key, bool any_key,
              std::function<void(actors::CancelResult)> done) override {
    bool found = false;
    {
      const std::lock_guard lock(mutex_);
      const auto running = running_.find(id);
      found = running != running_.end() && (any_key || running->second == key);
      if (found) running_.erase(running);
    }
    done(found ? actors::CancelResult::cancelled : actors::CancelResult::not_found);
  }
  [[nodiscard]] std::vector<actors::ModelStatus> models() const override {
    const std::lock_guard lock(mutex_);
    return models_;
  }
  [[nodiscard]] std::vector<actors::ModelMetrics> metrics() const override {
    const std::lock_guard lock(mutex_);
    return metrics_;
  }

 private:
  mutable std::mutex mutex_;
  Script script_;
  std::vector<actors::ModelStatus> models_;
  std::vector<actors::ModelMetrics> metrics_;
  std::map<std::string, std::string> running_;
  std::uint64_t submitted_ = 0;
};

/// Answers every choice with the same pieces at once.
inline FakeService::Script answer_with(std::vector<std::string> pieces,
                                       actors::FinishReason reason = actors::FinishReason::stop) {
  return [pieces = std::move(pieces), reason](const actors::GenerateRequest& request,
                                              const std::shared_ptr<actors::OutputStream>& stream) {
    const auto choices = request.choices * static_cast<std::uint32_t>(request.prompts.size());
    stream->start(7);
    for (std::uint32_t index = 0; index < choices; ++index) {
      for (const std::string& piece : pieces) {
        actors::OutputDelta delta;
        delta.index = index;
        delta.text = piece;
        stream->delta(delta);
      }
      stream->choice_end(index, reason);
    }
    stream->end({7, static_cast<std::uint32_t>(pieces.size()) * choices});
  };
}

}   // namespace duet::http::tests
