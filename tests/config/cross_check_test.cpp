// cross_check_test.cpp: configurations against manifests.
#include "config/cross_check.hpp"

#include "tests/config/texts.hpp"

#include <boost/test/unit_test.hpp>

#include <functional>
#include <string>
#include <vector>

namespace duet::config::test {
namespace {

constexpr const char* text =                  // line
    "schema: calculet-dual-model/v1\n"        // 1
    "device:\n"                               // 2
    "  type: pcie\n"                          // 3
    "  expected_chips: 2\n"                   // 4
    "  combined_calbin: /models/dual-a-b\n"   // 5
    "models:\n"                               // 6
    "  - alias: model-a\n"                    // 7
    "    chip_id: 0\n"                        // 8
    "    prefill_graph: model_a_prefill\n"    // 9
    "    decode_graph: model_a_decode\n"      // 10
    "    context_limit: 4096\n"               // 11
    "    max_inflight: 2\n"                   // 12
    "    max_sequences: 8\n"                  // 13
    "  - alias: model-b\n"                    // 14
    "    chip_id: 1\n"                        // 15
    "    prefill_graph: model_b_prefill\n"    // 16
    "    decode_graph: model_b_decode\n"      // 17
    "    context_limit: 4096\n";              // 18

void add_model(device::Manifest& manifest, const std::string& letter, std::uint32_t chip) {
  device::Model model;
  model.name = "pack-" + letter;
  model.alias = "model-" + letter;
  model.chip = chip;
  model.prefill = "model_" + letter + "_prefill";
  model.decode = "model_" + letter + "_decode";
  model.kv.slots = 8;
  model.kv.tokens_per_slot = 4096;
  model.tokenizer_sha256 = std::string(64, letter[0]);
  model.source_sha256 = std::string(64, '0');
  for (const std::string& name : {model.prefill, model.decode}) {
    device::Graph graph;
    graph.name = name;
    graph.target_chips = {chip};
    graph.context = 4096;
    manifest.graphs.push_back(graph);
  }
  using device::SectionKind;
  for (const device::Engine engine : {device::Engine::ping, device::Engine::pong}) {
    for (const SectionKind kind : {SectionKind::input, SectionKind::output, SectionKind::command}) {
      device::Section section;
      section.kind = kind;
      section.model = model.name;
      section.engine = engine;
      section.graph = kind == SectionKind::command ? model.prefill : "";
      manifest.sections.push_back(section);
      section.graph = model.decode;
      if (kind == SectionKind::command) manifest.sections.push_back(section);
    }
  }
  manifest.models.push_back(model);
}

device::Manifest dual() {
  device::Manifest manifest;
  manifest.chips = 2;
  add_model(manifest, "a", 0);
  add_model(manifest, "b", 1);
  return manifest;
}

Config config_of(const std::string& yaml) {
  LoadResult result = parse_config(yaml, "duet.yaml");
  BOOST_REQUIRE_MESSAGE(result.config, printed(result.errors));
  return std::move(*result.config);
}

std::vector<Finding> check(const std::string& yaml, const device::Manifest& manifest) {
  return cross_check(config_of(yaml), manifest);
}

void expect_one(const std::vector<Finding>& findings, std::uint32_t line, const std::string& key,
                const std::string& message) {
  BOOST_REQUIRE_MESSAGE(findings.size() == 1U, key << ": " << message << printed(findings));
  BOOST_TEST(findings[0].file == "duet.yaml");
  BOOST_TEST(findings[0].at.line == line, printed(findings));
  BOOST_TEST(findings[0].key == key);
  BOOST_TEST(findings[0].message.find(message) != std::string::npos, printed(findings));
}

}   // namespace

BOOST_AUTO_TEST_SUITE(config_cross_check)

//
BOOST_AUTO_TEST_CASE(a_configuration_that_agrees_with_its_package_has_no_finding) {
  const auto findings = check(text, dual());
  BOOST_TEST(findings.empty(), printed(findings));
  const auto sample = check(read_source("config/sample.yaml"), dual());
  BOOST_TEST(sample.empty(), printed(sample));
}

// chip, graph, context, batch, hash.
BOOST_AUTO_TEST_CASE(a_configuration_that_disagrees_is_refused_at_its_line_and_key) {
  struct Case {
    std::string from;
    std::string to;
    std::uint32_t line;
    std::string key;
    std::string message;
  };
  const std::vector<Case> cases = {
      {"model-b", "model-c", 14, "models[1].alias", "it has 'model-a', 'model-b'"},
      {"model-b", "model", 14, "models[1].alias", "no model with the alias 'model'"},
      {"model-b", "Model-b", 14, "models[1].alias", "no model with the alias"},
      {"model-b", "pack-b", 14, "models[1].alias", "no model with the alias"},
      {"model-b", "b\n    model: model-b", 15, "models[1].model", "it has 'pack-a', 'pack-b'"},
      {"model-b", "b\n    model: pack-a", 15, "models[1].model", "pack it once for each chip"},
      {"model_b_prefill", "model_b_pre", 16, "models[1].prefill_graph", "'model_b_prefill'"},
      {"model_b_prefill", "model_b_decode", 16, "models[1].prefill_graph", "'model_b_prefill'"},
      {"model_b_decode", "model_a_decode", 17, "models[1].decode_graph", "'model_b_decode'"},
      {"    context_limit: 4096\n    max_inflight", "    context_limit: 4097\n    max_inflight", 11,
       "models[0].context_limit", "compiled for 4096"},
      {"max_sequences: 8", "max_sequences: 9", 13, "models[0].max_sequences", "memory for 8"},
      {"chip_id: 1", "chip_id: 1\n    tokenizer_sha256: " + std::string(64, 'a'), 16,
       "models[1].tokenizer_sha256", "differs from the package's 'bbbb"},
  };
  for (const Case& test : cases) {
    const auto findings = check(replaced(text, test.from, test.to), dual());
    const Finding* finding = find(findings, test.key);
    BOOST_REQUIRE_MESSAGE(finding != nullptr, test.to << printed(findings));
    BOOST_TEST(finding->at.line == test.line, printed(findings));
    BOOST_TEST(finding->message.find(test.message) != std::string::npos, printed(findings));
  }
}

BOOST_AUTO_TEST_CASE(models_on_swapped_chips_are_both_refused) {
  std::string swapped = replaced(text, "chip_id: 0", "chip_id: x");
  swapped = replaced(swapped, "chip_id: 1", "chip_id: 0");
  swapped = replaced(swapped, "chip_id: x", "chip_id: 1");
  const auto findings = check(swapped, dual());
  BOOST_REQUIRE(findings.size() == 2U);
  BOOST_TEST(findings[0].key == "models[0].chip_id");
  BOOST_TEST(findings[0].at.line == 8U);
  BOOST_TEST(findings[1].key == "models[1].chip_id");
  BOOST_TEST(findings[1].at.line == 15U);
}

BOOST_AUTO_TEST_CASE(a_package_that_disagrees_with_the_configuration_is_refused) {
  struct Case {
    std::function<void(device::Manifest&)> change;
    std::uint32_t line;
    std::string key;
    std::string message;
  };
  const std::vector<Case> cases = {
      {[](auto& m) { m.chips = 1; }, 4, "device.expected_chips", "made for 1"},
      {[](auto& m) { m.graphs[2].batch = 4; }, 16, "models[1].prefill_graph", "batch 4"},
      {[](auto& m) { m.graphs[3].context = 2048; }, 18, "models[1].context_limit", "for 2048"},
      {[](auto& m) { m.models[1].kv.tokens_per_slot = 1024; }, 18, "models[1].context_limit",
       "for 1024"},
      {[](auto& m) { m.graphs[2].target_chips = {0}; }, 16, "models[1].prefill_graph",
       "on chip '0'"},
      {[](auto& m) {
         m.graphs[3].target_chips = {0, 1};
       },
       17, "models[1].decode_graph", "on chip '0', '1'"},
      {[](auto& m) { m.graphs[3].target_chips = {}; }, 17, "models[1].decode_graph", "chip none"},
      {[](auto& m) { m.graphs.pop_back(); }, 17, "models[1].decode_graph", "lists no graph"},
      {[](auto& m) { m.models.pop_back(); }, 14, "models[1].alias", "it has 'model-a'"},
      {[](auto& m) { m.sections.clear(); }, 12, "models[0].max_inflight", "it must be 1"},
  };
  for (const Case& test : cases) {
    device::Manifest manifest = dual();
    test.change(manifest);
    expect_one(check(text, manifest), test.line, test.key, test.message);
  }
}

BOOST_AUTO_TEST_CASE(every_section_of_both_engines_counts_for_two_jobs_at_a_time) {
  const std::size_t sections = dual().sections.size() / 2;   // of model a
  for (std::size_t i = 0; i < sections; ++i) {
    device::Manifest manifest = dual();
    manifest.sections.erase(manifest.sections.begin() + static_cast<std::ptrdiff_t>(i));
    expect_one(check(text, manifest), 12, "models[0].max_inflight", "it must be 1");
  }
}

BOOST_AUTO_TEST_CASE(an_unset_context_needs_a_queue_that_takes_the_packages_longest_prompt) {
  device::Manifest manifest = dual();
  manifest.models[1].kv.tokens_per_slot = 131072;
  manifest.graphs[2].context = manifest.graphs[3].context = 131072;
  const std::string unset =
      replaced(text, "model_b_decode\n    context_limit: 4096\n", "model_b_decode\n");
  expect_one(check(unset, manifest), 14, "models[1].max_waiting_prompt_tokens", "131072");
  const std::string enough = unset + "    max_waiting_prompt_tokens: 131072\n";
  BOOST_TEST(check(enough, manifest).empty());
}

// R-5.C
BOOST_AUTO_TEST_CASE(one_model_of_a_dual_package_is_valid) {
  const std::string one = std::string(text).substr(0, std::string(text).find("  - alias: model-b"));
  BOOST_TEST(check(one, dual()).empty());
}

// R-5.C: the same model file, packed for both chips, under two aliases of the operator's choice.
BOOST_AUTO_TEST_CASE(the_same_model_under_two_aliases_on_two_chips_is_valid) {
  device::Manifest manifest = dual();
  BOOST_TEST(manifest.models[0].source_sha256 == manifest.models[1].source_sha256);
  manifest.models[1].tokenizer_sha256 = manifest.models[0].tokenizer_sha256;
  std::string twins = replaced(text, "alias: model-a", "alias: left\n    model: pack-a");
  twins = replaced(twins, "alias: model-b", "alias: right\n    model: pack-b");
  const auto findings = check(twins, manifest);
  BOOST_TEST(findings.empty(), printed(findings));
}

BOOST_AUTO_TEST_CASE(an_explicit_name_binds_before_an_alias) {
  const device::Manifest manifest = dual();
  actors::ModelOptions options;
  options.alias = "model-a";
  BOOST_TEST(bound_model(options, manifest) == &manifest.models[0]);
  options.package_model = "pack-b";
  BOOST_TEST(bound_model(options, manifest) == &manifest.models[1]);
  options.package_model = "pack";
  BOOST_TEST(bound_model(options, manifest) == nullptr);
}

// R-5.B
BOOST_AUTO_TEST_CASE(models_with_packages_of_their_own_are_checked_one_by_one) {
  const Config config = config_of(read_source("tests/config/data/sessions.yaml"));
  device::Manifest first;
  add_model(first, "a", 0);
  first.models[0].alias = "alpha";
  device::Manifest second;
  add_model(second, "b", 1);
  second.models[0].alias = "beta";
  BOOST_TEST(cross_check(config, 0, first).empty());
  BOOST_TEST(cross_check(config, 1, second).empty());
  const auto findings = cross_check(config, 1, first);
  BOOST_REQUIRE(findings.size() == 1U);
  BOOST_TEST(findings[0].key == "models[1].alias");
}

BOOST_AUTO_TEST_CASE(an_empty_manifest_is_refused_and_does_no_harm) {
  const auto findings = check(text, device::Manifest{});
  BOOST_TEST(findings.size() == 2U);
  for (const Finding& finding : findings) {
    BOOST_TEST(finding.message.find("it has none") != std::string::npos);
  }
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace duet::config::test
