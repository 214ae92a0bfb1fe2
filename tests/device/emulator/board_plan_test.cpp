// board_plan_test.cpp: what the board refuses of a manifest, whoever validated it before.
#include "device/emulator/board_plan.hpp"
#include "device/emulator/chip_memory.hpp"
#include "tests/device/emulator/fixture.hpp"

#include <boost/test/unit_test.hpp>

#include <functional>
#include <string>

namespace duet::device::emulator {
namespace {

Profile small_board() {
  Profile profile;
  profile.dram_bytes_per_chip = 1 << 20;
  return profile;
}

BOOST_AUTO_TEST_SUITE(board_plan)

BOOST_AUTO_TEST_CASE(a_sound_manifest_becomes_tables_in_its_own_order) {
  const auto plan = plan_board(fixture::manifest(), fixture::hash, small_board());
  BOOST_REQUIRE(plan.has_value());
  BOOST_TEST(plan->hash == fixture::hash);
  BOOST_REQUIRE(plan->graphs.size() == 4U);
  BOOST_TEST(plan->graphs[fixture::a_decode].name == "a.decode");
  BOOST_TEST(plan->graphs[fixture::b_prefill].chip == 1U);
  BOOST_TEST(plan->graphs[fixture::b_prefill].tokens_max == fixture::context);
  BOOST_REQUIRE(plan->pools.size() == 2U);
  BOOST_TEST(plan->pools[1].chip == 1U);
  BOOST_TEST(plan->sections.size() == 14U);
}

struct Damage {
  const char* what;
  errc code;
  const char* says;
  std::function<void(Manifest&)> damage;
};

// a model, its graphs and its sections are wholly on its chip.
BOOST_AUTO_TEST_CASE(every_damage_is_refused_with_a_sentence_that_names_it) {
  const std::vector<Damage> table{
      {"no models", errc::package_invalid, "no model", [](Manifest& m) { m.models.clear(); }},
      {"model twice", errc::package_invalid, "there twice",
       [](Manifest& m) { m.models[1].name = "a"; }},
      {"three chips", errc::package_invalid, "more chips", [](Manifest& m) { m.chips = 3; }},
      {"large chips", errc::out_of_memory, "were planned for",
       [](Manifest& m) { m.dram_bytes_per_chip = (1 << 20) + 1; }},
      {"chip 2", errc::package_invalid, "chip 2 does not exist",
       [](Manifest& m) { m.models[0].chip = 2; }},
      {"mask 3", errc::package_invalid, "chip mask 3",
       [](Manifest& m) { fixture::section(m, "a.kv").chip_mask = 3; }},
      {"mask of the other chip", errc::package_invalid, "chip mask 2",
       [](Manifest& m) { fixture::section(m, "a.parameters").chip_mask = 2; }},
      {"mask 0", errc::package_invalid, "chip mask 0",
       [](Manifest& m) { fixture::section(m, "a.kv").chip_mask = 0; }},
      {"section of nobody", errc::package_invalid, "its model does not exist",
       [](Manifest& m) { fixture::section(m, "a.input0").model = "c"; }},
      {"empty section", errc::package_invalid, "is empty",
       [](Manifest& m) { fixture::section(m, "a.parameters").bytes = 0; }},
      {"section twice", errc::package_invalid, "section name \"a.kv\"",
       [](Manifest& m) { fixture::section(m, "b.kv").name = "a.kv"; }},
      {"graph twice", errc::package_invalid, "graph name \"a.decode\"",
       [](Manifest& m) { m.graphs[0].name = "a.decode"; }},
      {"graph on two chips", errc::package_invalid, "chip 0 alone",
       [](Manifest& m) {
         m.graphs[0].target_chips = {0, 1};
       }},
      {"graph on no chip", errc::package_invalid, "chip 0 alone",
       [](Manifest& m) { m.graphs[0].target_chips.clear(); }},
      {"graph on the other chip", errc::package_invalid, "chip 0 alone",
       [](Manifest& m) { m.graphs[0].target_chips = {1}; }},
      {"graph of mchip mode", errc::package_invalid, "chip 0 alone",
       [](Manifest& m) { m.graphs[1].mode = ChipMode::mchip; }},
      {"graph of a multi-chip task", errc::package_invalid, "chip 0 alone",
       [](Manifest& m) { m.graphs[1].task = TaskKind::multiple_chip; }},
      {"graph with calc_mchip", errc::package_invalid, "chip 0 alone",
       [](Manifest& m) { m.graphs[1].calc_mchip = true; }},
      {"graph missing", errc::package_invalid, "does not exist",
       [](Manifest& m) { m.models[1].decode = "b.other"; }},
      {"graph used by both models", errc::package_invalid, "used twice",
       [](Manifest& m) { m.models[1].decode = "a.decode"; }},
      {"graph unused", errc::package_invalid, "no model uses it",
       [](Manifest& m) {
         Graph extra = m.graphs[0];
         extra.name = "extra";
         m.graphs.push_back(extra);
       }},
      {"kinds swapped", errc::package_invalid, "kind",
       [](Manifest& m) { std::swap(m.models[0].prefill, m.models[0].decode); }},
      {"batch 2", errc::package_invalid, "batch", [](Manifest& m) { m.graphs[0].batch = 2; }},
      {"context above the slot", errc::package_invalid, "context",
       [](Manifest& m) { m.graphs[0].context = fixture::context + 1; }},
      {"no tokens", errc::package_invalid, "tokens_max",
       [](Manifest& m) { m.graphs[0].tokens_max = 0; }},
      {"decode of two tokens", errc::package_invalid, "one token",
       [](Manifest& m) { m.graphs[1].tokens_max = 2; }},
      {"vocabulary 0", errc::package_invalid, "vocabulary",
       [](Manifest& m) { m.models[0].config.vocabulary = 0; }},
      {"kv section missing", errc::package_invalid, "kv section",
       [](Manifest& m) { m.models[0].kv.section = "nothing"; }},
      {"kv section of the other model", errc::package_invalid, "belongs elsewhere",
       [](Manifest& m) { m.models[0].kv.section = "b.kv"; }},
      {"kv in f32", errc::package_invalid, "not bf16",
       [](Manifest& m) { m.models[0].kv.dtype = "f32"; }},
      {"no slots", errc::package_invalid, "slots", [](Manifest& m) { m.models[0].kv.slots = 0; }},
      {"more slots than memory", errc::package_invalid, "smaller than its slots",
       [](Manifest& m) { m.models[0].kv.slots = 3; }},
      {"slot below its positions", errc::package_invalid, "smaller than its positions",
       [](Manifest& m) { --m.models[0].kv.bytes_per_slot; }},
      {"slot size that overflows", errc::package_invalid, "smaller than its positions",
       [](Manifest& m) { m.models[0].config.head_dim = m.models[0].config.layers = 0xffffffffU; }},
      {"sequence range empty", errc::package_invalid, "range is empty",
       [](Manifest& m) {
         m.models[0].kv.sequence_id_first = 1001;
         m.models[0].kv.sequence_id_last = 1000;
       }},
      {"sequence ranges overlap", errc::package_invalid, "also model",
       [](Manifest& m) { m.models[0].kv.sequence_id_last = 1001; }},
      {"input of one engine missing", errc::package_invalid, "pong",
       [](Manifest& m) { fixture::section(m, "a.input1").engine = Engine::ping; }},
      {"output too small", errc::package_invalid, "output",
       [](Manifest& m) { fixture::section(m, "b.output0").bytes -= 1; }},
      {"workspace missing", errc::package_invalid, "workspace",
       [](Manifest& m) { m.graphs[3].workspace.clear(); }},
  };
  for (const Damage& row : table) {
    BOOST_TEST_CONTEXT(row.what) {
      Manifest manifest = fixture::manifest();
      row.damage(manifest);
      const auto plan = plan_board(manifest, fixture::hash, small_board());
      BOOST_REQUIRE(plan.has_error());
      BOOST_TEST((plan.error().code == row.code));
      BOOST_TEST(plan.error().detail.find(row.says) != std::string::npos, plan.error().detail);
    }
  }
}

BOOST_AUTO_TEST_CASE(slot_bytes_are_two_times_the_positions_in_bf16) {
  ModelConfig config;
  config.layers = 16;
  config.kv_heads = 8;
  config.head_dim = 64;
  // 2 · 16 · 8 · 64 · 4096 · 2.
  BOOST_TEST(kv_slot_bytes(config, 4096) == 134217728U);
  config.layers = config.kv_heads = config.head_dim = 0xffffffffU;
  BOOST_TEST(kv_slot_bytes(config, 4096) == ~std::uint64_t{0});
}

BOOST_AUTO_TEST_CASE(an_impossible_profile_throws) {
  const std::vector<std::function<void(Profile&)>> damages{
      [](Profile& p) { p.chips = 0; },
      [](Profile& p) { p.chips = 3; },
      [](Profile& p) { p.cores_per_chip = 0; },
      [](Profile& p) { p.dram_bytes_per_chip = 0; },
      [](Profile& p) { p.pcie_bytes_per_second = 0; },
      [](Profile& p) { p.jobs_per_chip_max = limits::jobs_per_chip_max + 1; },
      [](Profile& p) { p.trace_events_max = 0; },
      [](Profile& p) { p.session_reset = true; },
      [](Profile& p) { p.combined = false; },
  };
  BOOST_CHECK_NO_THROW(check_profile(Profile{}));
  for (const auto& damage : damages) {
    Profile profile;
    damage(profile);
    BOOST_CHECK_THROW(check_profile(profile), std::invalid_argument);
  }
}

BOOST_AUTO_TEST_SUITE_END()
BOOST_AUTO_TEST_SUITE(chip_memory)

BOOST_AUTO_TEST_CASE(regions_touch_but_never_overlap) {
  ChipMemory memory{1000};
  BOOST_TEST(memory.place({"a", "one", 100, 100}).has_value());
  BOOST_TEST(memory.place({"a", "two", 200, 100}).has_value());
  BOOST_TEST(memory.place({"b", "three", 0, 100}).has_value());
  for (const auto& [address, bytes] :
       {std::pair<std::uint64_t, std::uint64_t>{99, 1}, {100, 1}, {150, 10}, {299, 2}, {0, 1000}}) {
    const auto refused = memory.place({"c", "bad", address, bytes});
    BOOST_REQUIRE(refused.has_error());
    BOOST_TEST((refused.error().code == errc::package_invalid));
    BOOST_TEST(refused.error().detail.find("overlaps") != std::string::npos);
  }
  BOOST_TEST(memory.used_bytes() == 300U);
  BOOST_TEST(memory.used_bytes_of("a") == 200U);
  BOOST_TEST(memory.used_bytes_of("c") == 0U);
  BOOST_TEST(memory.regions().size() == 3U);
  BOOST_TEST(memory.regions()[0].name == "three");
}

BOOST_AUTO_TEST_CASE(a_region_past_the_capacity_is_out_of_memory_even_if_its_end_wraps) {
  ChipMemory memory{1000};
  BOOST_TEST(memory.place({"a", "whole", 0, 1000}).has_value());
  memory.clear();
  BOOST_TEST(memory.used_bytes() == 0U);
  for (const auto& [address, bytes] : {std::pair<std::uint64_t, std::uint64_t>{1, 1000},
                                       {1000, 1},
                                       {1001, 1},
                                       {500, ~std::uint64_t{0}},
                                       {~std::uint64_t{0}, 2}}) {
    const auto refused = memory.place({"a", "bad", address, bytes});
    BOOST_REQUIRE(refused.has_error());
    BOOST_TEST((refused.error().code == errc::out_of_memory));
  }
  BOOST_TEST(memory.used_bytes() == 0U);
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace
}   // namespace duet::device::emulator
