// core_rig.hpp: a board core with the hand-made package, and short ways to run jobs on it.
#pragma once

#include "device/emulator/board_core.hpp"
#include "tests/device/emulator/fixture.hpp"
#include "tests/device/emulator/one_fault.hpp"

#include <boost/test/unit_test.hpp>

#include <array>
#include <vector>

namespace duet::device::emulator::fixture {

/// 4 bytes a nanosecond and no latency: a token takes 1 ns, the logits take 16 ns.
inline Profile modelled() {
  Profile profile;
  profile.dram_bytes_per_chip = 1 << 20;
  profile.transfers = TransferTiming::modelled;
  profile.pcie_bytes_per_second = 4'000'000'000;
  profile.pcie_latency = 0;
  profile.trace_events_max = 64;
  return profile;
}

inline Profile performed() {
  Profile profile = modelled();
  profile.transfers = TransferTiming::performed;
  return profile;
}

struct Board {
  explicit Board(const Profile& profile, FaultHook* faults = nullptr) : core(profile, faults) {}

  void configure() {
    BOOST_REQUIRE(core.open(0).has_value());
    BOOST_REQUIRE(core.load(fixture::manifest(), fixture::hash, 0).has_value());
    BOOST_REQUIRE(core.begin_configure(0).has_value());
    core.finish_configure();
    for (std::uint32_t graph = 0; graph < 4; ++graph) {
      for (auto& id : io[graph]) id = core.allocate_io(graph).value();
    }
  }

  VendorJob job(GraphHandle graph, SequenceId sequence, std::uint32_t past, std::uint32_t tokens,
                std::size_t which = 0) {
    VendorJob job;
    job.graph = graph;
    job.job = ++job_count;
    job.session = 7;
    job.generation = 1;
    job.sequence = sequence;
    job.past = past;
    job.tokens = tokens;
    job.buffers = io[graph][which];
    return job;
  }

  /// Reserves and submits a prefill.
  JobTicket prefill(GraphHandle graph, SequenceId sequence, std::uint32_t tokens,
                    ChipNanoseconds now, std::size_t which = 0, Engine engine = Engine::automatic) {
    BOOST_REQUIRE(core.kv_reserve(graph / 2, 1, sequence, tokens).has_value());
    VendorJob request = job(graph, sequence, 0, tokens, which);
    request.engine = engine;
    const auto ticket = core.submit(request, ids, now);
    BOOST_REQUIRE_MESSAGE(ticket.has_value(), ticket.error().detail);
    return ticket.value();
  }

  template <typename Action>
  std::vector<Action> take() {
    std::vector<Action> found;
    while (const auto action = core.next_action()) {
      if (const auto* wanted = std::get_if<Action>(&*action)) found.push_back(*wanted);
    }
    return found;
  }

  VendorJobEnd end_of(JobTicket ticket) {
    auto taken = core.take_end(ticket);
    BOOST_REQUIRE(taken.has_value());
    BOOST_REQUIRE(taken.value().has_value());
    return *taken.value();
  }

  BoardCore core;
  std::array<std::array<std::uint64_t, 2>, 4> io{};
  std::array<std::uint32_t, fixture::context> ids{};
  JobId job_count = 0;
};

}   // namespace duet::device::emulator::fixture
