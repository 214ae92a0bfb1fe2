// threaded_rig.hpp: a threaded board with a package in memory and a computation that can be held
// up.
#pragma once

#include "device/emulator/threaded_board.hpp"
#include "tests/device/emulator/fakes.hpp"
#include "tests/device/emulator/one_fault.hpp"

#include <boost/test/unit_test.hpp>

#include <array>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace duet::device::emulator::fixture {

inline constexpr TimePoint past_deadline{};

struct Rig {
  explicit Rig(std::uint32_t threads = 1, FaultHook* faults = nullptr, bool gated = false) {
    std::string pattern = (std::filesystem::temp_directory_path() / "duet-board-XXXXXX").string();
    BOOST_REQUIRE(::mkdtemp(pattern.data()) != nullptr);
    directory = pattern;
    options.lock_directory = directory;
    options.profile.dram_bytes_per_chip = 1 << 20;
    options.threads_per_chip = threads;
    options.faults = faults;
    options.open_package =
        [this](const std::filesystem::path& path) -> result<std::unique_ptr<PackageImage>> {
      if (path != "demo") return Failure{errc::package_invalid, "no package at " + path.string()};
      return std::unique_ptr<PackageImage>{
          std::make_unique<fixture::FakeImage>(std::make_shared<fixture::FakePackage>(package))};
    };
    options.make_executable =
        [this, gated](
            std::vector<Program> programs, std::vector<TensorView> tensors, KvLayout,
            Arithmetic) -> boost::system::result<std::shared_ptr<const Executable>, std::string> {
      if (!refuse_programs.empty()) return refuse_programs;
      return std::shared_ptr<const Executable>{std::make_shared<fixture::FakeExecutable>(
          programs.at(0).chip, tensors.at(0).data, logits_made, gated ? &gate : nullptr)};
    };
  }
  ~Rig() {
    board.reset();
    std::filesystem::remove_all(directory);
  }

  ThreadedBoard& make() {
    board = std::make_unique<ThreadedBoard>(options);
    return *board;
  }
  ThreadedBoard& configured() {
    ThreadedBoard& made = make();
    BOOST_REQUIRE(made.open().has_value());
    BOOST_REQUIRE(made.load_package("demo").has_value());
    const auto done = made.configure();
    BOOST_REQUIRE_MESSAGE(done.has_value(), done.error().detail);
    for (GraphHandle graph = 0; graph < 4; ++graph) {
      for (IoBuffers& buffers : io[graph]) buffers = made.allocate_io(graph).value();
    }
    return made;
  }

  VendorJob job(GraphHandle graph, SequenceId sequence, std::uint32_t past,
                const std::vector<std::uint32_t>& tokens, std::size_t which = 0) {
    IoBuffers& buffers = io[graph][which];
    std::copy(tokens.begin(), tokens.end(), buffers.tokens.begin());
    VendorJob job;
    job.graph = graph;
    job.job = ++jobs;
    job.generation = 1;
    job.sequence = sequence;
    job.past = past;
    job.tokens = static_cast<std::uint32_t>(tokens.size());
    job.buffers = buffers.id;
    return job;
  }

  JobTicket start(GraphHandle graph, SequenceId sequence, std::uint32_t past,
                  const std::vector<std::uint32_t>& tokens, std::size_t which = 0) {
    const auto count = static_cast<std::uint32_t>(tokens.size());
    BOOST_REQUIRE(board->kv_reserve(graph / 2, 1, sequence, count).has_value());
    const auto ticket = board->submit(job(graph, sequence, past, tokens, which));
    BOOST_REQUIRE_MESSAGE(ticket.has_value(), ticket.error().detail);
    return ticket.value();
  }

  std::filesystem::path directory;
  fixture::FakePackage package;
  fixture::Gate gate;
  std::string refuse_programs;
  std::uint32_t logits_made = fixture::vocabulary;
  ThreadedBoardOptions options;
  std::unique_ptr<ThreadedBoard> board;
  std::array<std::array<IoBuffers, 2>, 4> io{};
  std::atomic<JobId> jobs{0};
};

/// A prefill and `steps` decodes of one sequence; true if every logit is the one foretold.
inline bool run_sequence(Rig& rig, std::uint32_t chip, SequenceId sequence, int steps,
                         std::size_t which) {
  ThreadedBoard& board = *rig.board;
  std::vector<std::uint32_t> history{1, 2, 3, chip};
  std::uint32_t committed = 0;
  for (int step = 0; step <= steps; ++step) {
    const GraphHandle graph = chip * 2 + (step == 0 ? 0 : 1);
    const std::vector<std::uint32_t> fresh(history.begin() + committed, history.end());
    const auto count = static_cast<std::uint32_t>(fresh.size());
    if (board.kv_reserve(chip, 1, sequence, count).has_error()) return false;
    const auto ticket = board.submit(rig.job(graph, sequence, committed, fresh, which));
    if (ticket.has_error()) return false;
    const auto end = board.wait(ticket.value(), no_deadline);
    if (end.has_error() || end->status || end->kv_before != committed) return false;
    if (board.kv_commit(chip, 1, sequence, count).has_error()) return false;
    committed += count;
    if (end->kv_after != committed) return false;
    const std::span<const float> logits = rig.io[graph][which].logits;
    for (std::uint32_t i = 0; i < fixture::vocabulary; ++i) {
      const auto weight = static_cast<std::uint8_t>(40 + chip);
      if (logits[i] != fixture::expected_logit(history, chip, i, weight)) return false;
    }
    history.push_back(static_cast<std::uint32_t>(step) % fixture::vocabulary);
  }
  return board.kv_release(chip, 1, sequence).has_value();
}

}   // namespace duet::device::emulator::fixture
