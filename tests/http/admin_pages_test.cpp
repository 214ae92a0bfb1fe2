// admin_pages_test.cpp: what the administration socket says of memory, whatever a runtime can tell.
// R-8.1
#include "http/admin_pages.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/test/unit_test.hpp>

#include <string>

namespace duet::http::tests {
namespace {

namespace json = boost::json;

actors::ChipMemory planned_chip() {
  actors::ChipMemory chip;
  chip.chip = 1;
  chip.alias = "model-b";
  chip.context = 512;
  chip.kv_slots = 4;
  chip.planned.chip = 1;
  chip.planned.lines = {{1, "weights", 1000}, {1, "kv", 400}, {1, "fragmentation", 24}};
  chip.planned.used = 1424;
  chip.planned.dram = 4096;
  return chip;
}

json::value page(const actors::ChipMemory& chip, const std::vector<actors::ModelMetrics>& metrics) {
  return memory_json({chip}, metrics, {});
}

}   // namespace

BOOST_AUTO_TEST_SUITE(admin_pages_memory)

BOOST_AUTO_TEST_CASE(a_runtime_that_can_tell_nothing_leaves_nulls_and_no_number) {
  const json::value expected = json::parse(R"({
    "host": {"resident": null, "resident_peak": null},
    "chips": [{
      "chip": 1, "model": "model-b", "error": null, "context": 512, "verdict": "go", "reason": "",
      "dram": {"planned": 4096, "measured": null}, "used": {"planned": 1400, "measured": null},
      "lines": [
        {"what": "weights", "planned": 1000, "measured": null, "peak": null},
        {"what": "kv", "planned": 400, "measured": null, "peak": null},
        {"what": "fragmentation", "planned": 24, "measured": null, "peak": null}],
      "kv_slots":
        {"planned": 4, "measured": null, "used": null, "peak": null, "booked": null}}]})");
  BOOST_TEST(json::serialize(page(planned_chip(), {})) == json::serialize(expected));
}

BOOST_AUTO_TEST_CASE(what_was_measured_stands_beside_its_own_line_and_the_unplanned_behind_all) {
  actors::ChipMemory chip = planned_chip();
  chip.measured.total_bytes = 8192;
  chip.measured.used_bytes = 1500;
  chip.measured.kv_slots_total = 5;
  chip.measured.kv_slots_used = 2;
  chip.measured.kv_slots_peak = 3;
  chip.measured.parts = {{"driver", 77, std::nullopt}, {"kv", 500, 300}, {"weights", 1000, {}}};
  std::vector<actors::ModelMetrics> metrics(2);
  metrics[0].alias = "model-a";
  metrics[0].kv_slots_used = 9;
  metrics[1].alias = "model-b";
  metrics[1].kv_slots_used = 1;
  const json::value told = page(chip, metrics).at("chips").at(0);
  const json::value expected = json::parse(R"({
      "dram": {"planned": 4096, "measured": 8192}, "used": {"planned": 1400, "measured": 1500},
      "lines": [
        {"what": "weights", "planned": 1000, "measured": 1000, "peak": null},
        {"what": "kv", "planned": 400, "measured": 500, "peak": 300},
        {"what": "fragmentation", "planned": 24, "measured": null, "peak": null},
        {"what": "driver", "planned": 0, "measured": 77, "peak": null}],
      "kv_slots": {"planned": 4, "measured": 5, "used": 2, "peak": 3, "booked": 1}})");
  for (const auto& [key, value] : expected.as_object()) {
    BOOST_TEST(json::serialize(told.at(key)) == json::serialize(value));
  }
}

BOOST_AUTO_TEST_CASE(a_failed_measurement_is_told_and_the_hosts_memory_still_is) {
  actors::ChipMemory chip = planned_chip();
  chip.error = "the driver was lost";
  chip.planned.verdict = device::BudgetVerdict::warn;
  chip.planned.reason = "it takes more";
  const json::value told = memory_json({chip}, {}, {1U << 20U, 2U << 20U});
  BOOST_TEST(told.at("chips").at(0).at("error").as_string() == "the driver was lost");
  BOOST_TEST(told.at("chips").at(0).at("verdict").as_string() == "warn");
  BOOST_TEST(told.at("chips").at(0).at("reason").as_string() == "it takes more");
  BOOST_TEST(told.at("host").at("resident").to_number<int>() == 1 << 20);
  BOOST_TEST(told.at("host").at("resident_peak").to_number<int>() == 2 << 20);
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace duet::http::tests
