// budget_test.cpp: what fits a chip, and by how much it does not.
#include "device/package/budget.hpp"

#include <boost/test/unit_test.hpp>

#include <string>

namespace duet::device::test {
namespace {

constexpr std::uint64_t gib = std::uint64_t{1} << 30U;

/// A chip of 100 GiB: its reserve of 15 % leaves 85, so that 75 and 80 % decide.
Manifest manifest_with(std::uint64_t weights, std::uint64_t dram = 100 * gib) {
  Manifest manifest;
  manifest.chips = 2;
  manifest.dram_bytes_per_chip = dram;
  manifest.memory = {{0, "weights", weights}, {0, "kv", 0}, {0, "guard", 20 * gib}};
  return manifest;
}

ChipBudget budget_of(std::uint64_t weights, std::uint64_t dram = 100 * gib) {
  const auto budgets = chip_budgets(manifest_with(weights, dram));
  BOOST_REQUIRE(budgets.size() == 1U);   // the other chip is idle
  return budgets[0];
}

}   // namespace

BOOST_AUTO_TEST_SUITE(budget)

BOOST_AUTO_TEST_CASE(the_verdict_turns_at_75_and_at_80_percent_of_the_chips_own_memory) {
  BOOST_TEST((budget_of(75 * gib).verdict == BudgetVerdict::go));
  BOOST_TEST(budget_of(75 * gib).reason.empty());
  BOOST_TEST((budget_of(75 * gib + 1).verdict == BudgetVerdict::warn));
  BOOST_TEST((budget_of(80 * gib).verdict == BudgetVerdict::warn));
  BOOST_TEST((budget_of(80 * gib + 1).verdict == BudgetVerdict::no_go));
  BOOST_TEST((budget_of(200 * gib).verdict == BudgetVerdict::no_go));
}

BOOST_AUTO_TEST_CASE(at_least_a_gibibyte_or_15_percent_stays_free) {
  BOOST_TEST(budget_of(0).reserve == 15 * gib);
  // On a small chip the gibibyte decides, below 75 %.
  BOOST_TEST(budget_of(2 * gib, 4 * gib).reserve == gib);
  BOOST_TEST((budget_of(3 * gib, 4 * gib).verdict == BudgetVerdict::go));
  BOOST_TEST((budget_of(gib, 2 * gib).verdict == BudgetVerdict::go));
  BOOST_TEST((budget_of(gib + 1, 2 * gib).verdict == BudgetVerdict::no_go));
  BOOST_TEST((budget_of(1, gib).verdict == BudgetVerdict::no_go));
}

BOOST_AUTO_TEST_CASE(the_guard_is_part_of_what_stays_free) {
  BOOST_TEST(budget_of(10 * gib).used == 10 * gib);
}

BOOST_AUTO_TEST_CASE(the_text_names_chip_verdict_lines_and_by_how_much) {
  const std::string go = budget_text(budget_of(25 * gib));
  BOOST_TEST(go == "chip 0: go: 25.0 GiB of 100.0 GiB (25.0 %): weights 25.0 GiB, guard 20.0 GiB");
  const std::string no_go = budget_text(budget_of(82 * gib));
  BOOST_TEST(no_go.find("no-go") != std::string::npos);
  BOOST_TEST(no_go.find("2.0 GiB more than 80 %") != std::string::npos, no_go);
}

BOOST_AUTO_TEST_CASE(each_chip_is_judged_by_itself) {
  Manifest manifest = manifest_with(90 * gib);
  manifest.memory.push_back({1, "weights", gib});
  const auto budgets = chip_budgets(manifest);
  BOOST_REQUIRE(budgets.size() == 2U);
  BOOST_TEST((budgets[0].verdict == BudgetVerdict::no_go));
  BOOST_TEST((budgets[1].verdict == BudgetVerdict::go));
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace duet::device::test
