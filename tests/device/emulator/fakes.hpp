// fakes.hpp: a package in memory and a computation that a test can foretell and hold up.
#pragma once

#include "device/emulator/threaded_board.hpp"
#include "device/package/sha256.hpp"
#include "tests/device/emulator/fixture.hpp"

#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace duet::device::emulator::fixture {

/// Holds up computations of a chip until the test lets them go.
class Gate {
 public:
  void hold(std::uint32_t chip) {
    const std::lock_guard lock{mutex_};
    held_.insert(chip);
  }
  void let_go(std::uint32_t chip) {
    const std::lock_guard lock{mutex_};
    held_.erase(chip);
    changed_.notify_all();
  }
  /// Returns once a computation of the chip stands at the gate.
  void await_arrival(std::uint32_t chip) {
    std::unique_lock lock{mutex_};
    changed_.wait(lock, [&] { return waiting_[chip] > 0; });
  }
  void pass(std::uint32_t chip) {
    std::unique_lock lock{mutex_};
    ++waiting_[chip];
    changed_.notify_all();
    changed_.wait(lock, [&] { return held_.count(chip) == 0; });
    --waiting_[chip];
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::set<std::uint32_t> held_;
  std::map<std::uint32_t, int> waiting_;
};

/// The answer depends on every position of the sequence, on the model and on its weights.
inline float expected_logit(const std::vector<std::uint32_t>& history, std::uint32_t chip,
                            std::uint32_t index, std::uint8_t weight) {
  std::uint32_t sum = 17 * (chip + 1) + weight;
  for (std::size_t i = 0; i < history.size(); ++i) {
    sum = sum * 31 + history[i] + static_cast<std::uint32_t>(i);
  }
  return static_cast<float>((sum + index * 7) % 1009);
}

class FakeExecutable final : public Executable {
 public:
  FakeExecutable(std::uint32_t chip, const std::byte* weights, std::uint32_t logits, Gate* gate)
      : chip_(chip), weights_(weights), logits_(logits), gate_(gate) {}

  [[nodiscard]] std::uint32_t vocabulary() const override { return logits_; }

  class FakeWorkspace final : public Workspace {
   public:
    explicit FakeWorkspace(std::uint32_t tile) : tile_(tile) {}
    [[nodiscard]] std::uint64_t bytes() const override { return std::uint64_t{tile_} * 1024; }

   private:
    std::uint32_t tile_;
  };
  [[nodiscard]] std::unique_ptr<Workspace> make_workspace(std::uint32_t tile) const override {
    return std::make_unique<FakeWorkspace>(tile);
  }

  void run(std::span<const std::uint32_t> tokens, std::uint32_t past, std::span<std::byte> kv,
           std::span<float> logits, Workspace&, CoreRunner& runner) const override {
    if (gate_ != nullptr) gate_->pass(chip_);
    // A position's key/values are its token.
    std::memcpy(kv.data() + std::size_t{past} * 4, tokens.data(), tokens.size() * 4);
    std::vector<std::uint32_t> history(past + tokens.size());
    std::memcpy(history.data(), kv.data(), history.size() * 4);
    struct Context {
      const FakeExecutable* self;
      const std::vector<std::uint32_t>* history;
      std::span<float> logits;
    } shared{this, &history, logits};
    runner.run_cores(
        [](void* raw, std::uint32_t core) {
          const auto& job = *static_cast<Context*>(raw);
          for (std::uint32_t i = core; i < job.logits.size(); i += 2) {
            job.logits[i] = expected_logit(*job.history, job.self->chip_, i,
                                           static_cast<std::uint8_t>(job.self->weights_[0]));
          }
        },
        &shared);
  }

 private:
  std::uint32_t chip_;
  const std::byte* weights_;
  std::uint32_t logits_;
  Gate* gate_;
};

/// What the images of one fake package are made from; a test may change it between calls.
struct FakePackage {
  Manifest manifest = fixture::manifest();
  std::string hash = fixture::hash;
  std::map<std::string, std::vector<std::byte>> files;   ///< by section.
  std::vector<std::uint32_t> ordinary{3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  std::uint32_t programs_a_graph = 2;
  std::uint32_t program_chip_offset = 0;

  FakePackage() {
    for (Model& model : manifest.models) {
      std::vector<std::byte> bytes(8192, std::byte{static_cast<unsigned char>(40 + model.chip)});
      Section& parameters = section(manifest, model.parameters);
      parameters.sha256 = hex_text(sha256(bytes));
      files[parameters.name] = std::move(bytes);
      Tensor tensor;
      tensor.name = "weights";
      tensor.shape = {4, 64};
      tensor.bytes = 1024;
      tensor.offset = 64;
      model.tensors.push_back(tensor);
    }
  }
};

class FakeImage final : public PackageImage {
 public:
  explicit FakeImage(std::shared_ptr<const FakePackage> package) : package_(std::move(package)) {}
  [[nodiscard]] const Manifest& manifest() const override { return package_->manifest; }
  [[nodiscard]] const std::string& hash() const override { return package_->hash; }
  [[nodiscard]] result<std::vector<Program>> programs(const Graph& graph) const override {
    std::vector<Program> programs(package_->programs_a_graph);
    for (std::uint32_t core = 0; core < programs.size(); ++core) {
      programs[core].graph = graph.name;
      programs[core].kind = graph.kind;
      programs[core].chip = graph.target_chips.at(0) + package_->program_chip_offset;
      programs[core].core = core;
    }
    return programs;
  }
  [[nodiscard]] result<std::span<const std::byte>> file(const Section& section) const override {
    const auto found = package_->files.find(section.name);
    if (found == package_->files.end()) {
      return Failure{errc::package_invalid, "no file for section " + section.name};
    }
    return std::span<const std::byte>{found->second};
  }
  [[nodiscard]] result<std::vector<std::uint32_t>> ordinary_tokens(const Model&) const override {
    return package_->ordinary;
  }

 private:
  std::shared_ptr<const FakePackage> package_;
};

}   // namespace duet::device::emulator::fixture
