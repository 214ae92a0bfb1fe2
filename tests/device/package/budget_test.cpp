// budget_test.cpp: what fits a chip, and by how much it does not.
#include "device/package/budget.hpp"
#include "device/package/package_files.hpp"
#include "device/package/packer.hpp"
#include "tests/device/package/package_fixture.hpp"
#include "tools/random_model.hpp"

#include <boost/test/unit_test.hpp>

#include <filesystem>
#include <functional>
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

/// The header of a model of `shape`, whose weights are a hole in the file.
std::string hollow_model(const ScratchDirectory& scratch, const std::string& shape) {
  tools::RandomModel model;
  model.config = tools::find_model_shape(shape)->config;
  model.hollow = true;
  const std::string path = scratch.at(shape + ".gguf");
  BOOST_REQUIRE(tools::write_random_model(model, path).has_value());
  return path;
}

PackOptions one_model(const std::string& path, std::uint32_t context, std::uint32_t sequences) {
  PackOptions options;
  options.models = {{"m", "m", path, "", 0}};
  options.context = context;
  options.kv_slots = sequences;
  return options;
}

std::uint64_t line_of(const ChipBudget& budget, const std::string& what) {
  for (const MemoryLine& line : budget.lines) {
    if (line.what == what) return line.bytes;
  }
  BOOST_FAIL("no line " + what);
  return 0;
}

BudgetVerdict verdict_of(const Manifest& manifest, std::uint32_t context, std::uint32_t sequences) {
  const auto plan = replanned(manifest, context, sequences, 16 * gib).value();
  return chip_budgets(plan).at(0).verdict;
}

}   // namespace

BOOST_AUTO_TEST_SUITE(budget)

// 3B in W8A8 has 3.2 GiB of weights; the KV of a token takes 4 * 28 * 8 * 128 bytes.
BOOST_AUTO_TEST_CASE(a_3b_model_of_16_sequences_fits_at_4096_tokens_and_not_at_8192) {
  const ScratchDirectory scratch;
  const std::string path = hollow_model(scratch, "llama-3b");
  const Manifest at_4k = plan_package(one_model(path, 4096, 16)).value();
  const ChipBudget go = chip_budgets(at_4k).at(0);
  BOOST_TEST((go.verdict == BudgetVerdict::go), budget_text(go));
  BOOST_TEST(line_of(go, "kv") == std::uint64_t{4} * 28 * 8 * 128 * 4096 * 16);
  // 3.2 billion weights at 34 bytes for 32, and the norms.
  BOOST_TEST(line_of(go, "weights") > 3'212'000'000U / 32 * 34);
  BOOST_TEST(line_of(go, "weights") < 3'214'000'000U / 32 * 34);
  BOOST_TEST(line_of(go, "workspace") > 0U);
  BOOST_TEST(line_of(go, "code") > 0U);
  BOOST_TEST(line_of(go, "io") > 0U);
  const ChipBudget no_go = chip_budgets(plan_package(one_model(path, 8192, 16)).value()).at(0);
  BOOST_TEST((no_go.verdict == BudgetVerdict::no_go), budget_text(no_go));
  BOOST_TEST(no_go.reason.find("more than 80 % of the chip's DRAM") != std::string::npos);
  BOOST_TEST((verdict_of(at_4k, 4096, 1) == BudgetVerdict::go));
  BOOST_TEST((verdict_of(at_4k, 8192, 1) == BudgetVerdict::go));
}

//
BOOST_AUTO_TEST_CASE(what_would_fit_is_go_and_one_more_is_not) {
  const ScratchDirectory scratch;
  const Manifest plan =
      plan_package(one_model(hollow_model(scratch, "llama-3b"), 8192, 16)).value();
  const Fit fit = find_fit(plan, 0, 8192, 16, 16 * gib);
  BOOST_REQUIRE(fit.context.has_value());
  BOOST_REQUIRE(fit.sequences.has_value());
  BOOST_TEST(*fit.context % 256 == 0U);
  BOOST_TEST((verdict_of(plan, *fit.context, 16) == BudgetVerdict::go));
  BOOST_TEST((verdict_of(plan, *fit.context + 256, 16) != BudgetVerdict::go));
  BOOST_TEST((verdict_of(plan, 8192, *fit.sequences) == BudgetVerdict::go));
  BOOST_TEST((verdict_of(plan, 8192, *fit.sequences + 1) != BudgetVerdict::go));
  // On a chip that the weights alone fill, nothing is proposed.
  const Fit none = find_fit(plan, 0, 8192, 16, 4 * gib);
  BOOST_TEST(!none.context.has_value());
  BOOST_TEST(!none.sequences.has_value());
}

// The specification infers 14.075 GiB a chip for the vendor's Qwen3-30B-A3B.
BOOST_AUTO_TEST_CASE(the_vendors_reservation_of_14_075_gib_is_no_go_by_how_much) {
  const std::uint64_t reserved = gib / 1000 * 14075 + gib % 1000 * 14075 / 1000;
  Manifest manifest;
  manifest.chips = 2;
  manifest.dram_bytes_per_chip = 16 * gib;
  manifest.memory = {{0, "reserved", reserved}, {1, "reserved", reserved}};
  const auto budgets = chip_budgets(manifest);
  BOOST_REQUIRE(budgets.size() == 2U);
  for (const ChipBudget& budget : budgets) {
    BOOST_TEST((budget.verdict == BudgetVerdict::no_go));
    BOOST_TEST(budget.reason == "it takes 1.3 GiB more than 80 % of the chip's DRAM");
    BOOST_TEST(budget.used - go_bytes_max(budget.dram) > 2 * gib);
  }
}

BOOST_AUTO_TEST_CASE(the_plan_of_a_model_file_is_the_memory_of_the_package_built_from_it) {
  const ScratchDirectory scratch;
  write_models(scratch);
  const PackOptions options = dual_options(scratch, "p");
  const Manifest plan = plan_package(options).value();
  const auto report = validate_package(tiny_package(), trusting());
  BOOST_REQUIRE(report.package != nullptr);
  const Manifest& built = report.package->manifest();
  BOOST_REQUIRE(plan.sections.size() == built.sections.size());
  for (std::size_t i = 0; i < plan.sections.size(); ++i) {
    BOOST_TEST(plan.sections[i].name == built.sections[i].name);
    BOOST_TEST(plan.sections[i].bytes == built.sections[i].bytes);
    BOOST_TEST(plan.sections[i].address == built.sections[i].address);
  }
  BOOST_TEST(memory_report(plan).substr(100) == memory_report(built).substr(100));
  BOOST_TEST(!std::filesystem::exists(scratch.at("p")));
  // A package judged for other numbers is what a build for those would be.
  PackOptions other = options;
  other.context = 48;
  other.kv_slots = 5;
  const Manifest from_files = plan_package(other).value();
  const Manifest from_package = replanned(built, 48, 5, options.dram_bytes_per_chip).value();
  BOOST_REQUIRE(from_files.memory.size() == from_package.memory.size());
  for (std::size_t i = 0; i < from_files.memory.size(); ++i) {
    BOOST_TEST(from_files.memory[i].what == from_package.memory[i].what);
    BOOST_TEST(from_files.memory[i].bytes == from_package.memory[i].bytes);
  }
}

BOOST_AUTO_TEST_CASE(a_manifest_that_no_packer_writes_is_an_error_not_a_crash) {
  const auto report = validate_package(tiny_package(), trusting());
  BOOST_REQUIRE(report.package != nullptr);
  const Manifest good = report.package->manifest();
  const auto refused = [&](const char* part, const std::function<void(Manifest&)>& change) {
    Manifest bad = good;
    change(bad);
    const auto plan = replanned(bad, 64, 2, 16 * gib);
    BOOST_TEST_CONTEXT(part) {
      BOOST_REQUIRE(plan.has_error());
      BOOST_TEST(plan.error().message.find(part) != std::string::npos, plan.error().message);
    }
  };
  refused("there is no chip 7", [](Manifest& m) { m.models[0].chip = 7; });
  refused("chips", [](Manifest& m) { m.chips = 40; });
  refused("is of no model", [](Manifest& m) { m.sections[0].model = "ghost"; });
  refused("is of no model", [](Manifest& m) { m.sections[0].chip_mask = 3; });
  refused("more than any chip", [](Manifest& m) { m.sections[0].bytes = ~std::uint64_t{0}; });
  refused("layers", [](Manifest& m) { m.models[0].config.layers = 0xffffffffU; });
  BOOST_TEST(replanned(good, 0, 1, 16 * gib).has_error());
  BOOST_TEST(replanned(good, 64, 0, 16 * gib).has_error());
  BOOST_TEST(replanned(good, 64, 4097, 16 * gib).has_error());
}

BOOST_AUTO_TEST_CASE(the_picture_shows_every_line_of_every_chip_to_scale) {
  Manifest manifest = manifest_with(50 * gib);
  manifest.memory.push_back({1, "a<b", 25 * gib});
  const std::string svg = budget_svg(chip_budgets(manifest));
  BOOST_TEST(svg.rfind("<svg ", 0) == 0U);
  BOOST_TEST(svg.find("<title>weights 51200.0 MiB</title>") != std::string::npos);
  BOOST_TEST(svg.find("<title>a&lt;b 25600.0 MiB</title>") != std::string::npos);
  BOOST_TEST(svg.find("a<b") == std::string::npos);
  BOOST_TEST(svg.find("must stay free") != std::string::npos);
  // Half of the chip is half of the bar of 900, whatever else there is.
  BOOST_TEST(svg.find("width=\"450.0\" height=\"60.0\" fill=\"#0072b2\"") != std::string::npos);
  BOOST_TEST(budget_svg(chip_budgets(manifest)) == svg);
}

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

BOOST_AUTO_TEST_CASE(lines_whose_sum_passes_64_bits_are_no_go) {
  Manifest manifest = manifest_with(std::uint64_t{1} << 63U);
  manifest.memory.push_back({0, "code", std::uint64_t{1} << 63U});
  const auto budgets = chip_budgets(manifest);
  BOOST_TEST((budgets.at(0).verdict == BudgetVerdict::no_go));
  BOOST_TEST(!budget_svg(budgets).empty());
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
