// duet_sim_reader.hpp: a modelled client of the application: how it reads, and what came.
#pragma once

#include "actors/output_stream.hpp"
#include "runtime/simulation/simulation.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

namespace duet::tools {

/// One client: reads fast, or rests now and then, or goes away; and keeps what came.
class Reader final : public actors::OutputStream, public std::enable_shared_from_this<Reader> {
 public:
  Reader(runtime::simulation::Simulation& simulation, std::uint32_t rests_every,
         std::uint32_t gone_after)
      : simulation_(simulation), rests_every_(rests_every), gone_after_(gone_after) {}

  void listen(std::weak_ptr<actors::OutputListener> listener) noexcept override {
    listener_ = std::move(listener);
  }
  void start(std::uint32_t /*prompt_tokens*/) noexcept override {
    if (started_ || terminals_ > 0) wrong_ = "a start at the wrong moment";
    started_ = true;
  }
  void delta(const actors::OutputDelta& delta) noexcept override {
    if (!started_ || terminals_ > 0) wrong_ = "a delta at the wrong moment";
    text_[delta.index] += delta.text;
    ++deltas_;
    if (rests_every_ != 0 && deltas_ % rests_every_ == 0 && writable_) {
      writable_ = false;
      simulation_.after(std::chrono::milliseconds(300), [self = shared_from_this()] {
        self->writable_ = true;
        if (const auto listener = self->listener_.lock()) listener->on_writable();
      });
    }
    if (gone_after_ != 0 && deltas_ == gone_after_) {
      simulation_.after(runtime::Duration(0), [self = shared_from_this()] {
        if (const auto listener = self->listener_.lock()) listener->on_reader_gone();
      });
    }
  }
  void choice_end(std::uint32_t index, actors::FinishReason /*reason*/) noexcept override {
    if (++ended_[index] != 1 || terminals_ > 0) wrong_ = "a choice ended at the wrong moment";
  }
  void end(const actors::Usage& /*usage*/) noexcept override {
    well_ = true;
    ++terminals_;
  }
  void fail(const actors::ServiceError& error) noexcept override {
    error_ = actors::to_string(error.code);
    ++terminals_;
  }
  [[nodiscard]] bool writable() const noexcept override { return writable_; }

  [[nodiscard]] bool ended() const noexcept { return terminals_ > 0; }
  [[nodiscard]] bool well() const noexcept { return well_; }
  [[nodiscard]] const std::string& error() const noexcept { return error_; }

  /// Empty if all was right.
  [[nodiscard]] std::string judge(const std::string& expected, std::uint32_t choices) const {
    if (!wrong_.empty()) return wrong_;
    if (terminals_ != 1) return std::to_string(terminals_) + " ends";
    for (const auto& [index, text] : text_) {
      if (index >= choices) return "a choice that was not asked for";
      if (well_ ? text != expected : !expected.starts_with(text)) {
        return "choice " + std::to_string(index) + " says \"" + text + "\", not \"" + expected +
               "\"";
      }
    }
    if (well_ && ended_.size() != choices) return "an end without the end of each choice";
    return {};
  }

 private:
  runtime::simulation::Simulation& simulation_;
  const std::uint32_t rests_every_;
  const std::uint32_t gone_after_;
  std::weak_ptr<actors::OutputListener> listener_;
  std::map<std::uint32_t, std::string> text_;
  std::map<std::uint32_t, int> ended_;
  std::string error_;
  std::string wrong_;
  std::uint32_t deltas_ = 0;
  int terminals_ = 0;
  bool started_ = false;
  bool writable_ = true;
  bool well_ = false;
};

}   // namespace duet::tools
