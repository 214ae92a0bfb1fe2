// packer_test.cpp: building packages: contents, repeatability, and what happens when it cannot be
// done.
#include "device/package/packer.hpp"
#include "device/package/package_files.hpp"
#include "device/program/byte_reader.hpp"
#include "tests/device/package/gguf_builder.hpp"
#include "tests/device/package/package_fixture.hpp"
#include "tools/random_model.hpp"

#include <boost/test/unit_test.hpp>

#include <cstring>
#include <filesystem>
#include <map>

namespace duet::device::test {
namespace {

namespace fs = std::filesystem;

/// Every file below `directory` with its bytes.
std::map<std::string, std::string> contents(const std::string& directory) {
  std::map<std::string, std::string> out;
  for (const auto& entry : fs::recursive_directory_iterator(directory)) {
    if (!entry.is_regular_file()) continue;
    out[fs::relative(entry.path(), directory).string()] =
        ScratchDirectory::read_file(entry.path().string());
  }
  return out;
}

/// The names in `directory`: nothing half-done may be among them.
std::set<std::string> names(const std::string& directory) {
  std::set<std::string> out;
  for (const auto& entry : fs::directory_iterator(directory))
    out.insert(entry.path().filename().string());
  return out;
}

void check_refused(const PackOptions& options, const std::string& part) {
  const auto built = build_package(options);
  BOOST_TEST_CONTEXT("wanted: " << part << ", got: "
                                << (built.has_error() ? built.error().message : "a package")) {
    BOOST_REQUIRE(built.has_error());
    BOOST_TEST(built.error().message.find(part) != std::string::npos);
  }
}

}   // namespace

BOOST_AUTO_TEST_SUITE(packer)

//
BOOST_AUTO_TEST_CASE(a_dual_package_holds_what_the_specification_lists) {
  const auto report = validate_package(tiny_package(), trusting());
  BOOST_REQUIRE(report.package != nullptr);
  BOOST_TEST(report.findings.list().empty());
  const Package& package = *report.package;
  const Manifest& m = package.manifest();
  BOOST_TEST(m.kind == "dual");
  BOOST_REQUIRE(m.models.size() == 2U);
  BOOST_TEST(m.graphs.size() == 4U);
  BOOST_TEST(m.models[0].alias == "alpha");
  for (const Model& model : m.models) {
    const std::uint32_t index = model.name == "model-a" ? 0 : 1;
    BOOST_TEST(model.chip == index);
    BOOST_TEST((package.trust() == Trust::verified));
    BOOST_TEST(package.golden(model.name).prompts.size() == 4U);
    BOOST_TEST(package.golden(model.name).prompts[0].tokens.size() == 16U);
    BOOST_TEST(package.tensors(model.name).size() == model.tensors.size());
    BOOST_TEST(package.tokenizer(model.name).find("duet-tokenizer/v1") != std::string_view::npos);
    for (const std::string& graph : {model.prefill, model.decode}) {
      BOOST_REQUIRE(package.programs(graph).size() == 2U);
      for (std::uint32_t core = 0; core < 2; ++core) {
        BOOST_TEST(package.programs(graph)[core].core == core);
        BOOST_TEST(package.programs(graph)[core].chip == model.chip);
      }
      BOOST_TEST(find_graph(m, graph)->commands.size() == 4U);
    }
  }
  for (const Section& section : m.sections)
    BOOST_TEST(section.chip_mask == (section.model == "model-a" ? 1U : 2U));
  const auto files = contents(tiny_package());
  for (const char* path : {"manifest.yaml", "model_memory_reserved_info.txt", "checksums.sha256",
                           "checksums.sha256.sig", "compatibility.json", "build-provenance.json",
                           "model-a/prefill/ccu0_chip0.elf", "model-a/decode/ccu1_chip0.elf",
                           "model-b/prefill/ccu1_chip1.elf", "model-b/decode/pld_pong.cmd",
                           "model-b/params/parameters.bin", "model-a/golden/golden.json",
                           "tokenizer/alpha/tokenizer.json", "tokenizer/beta/tokenizer.json"}) {
    BOOST_TEST_CONTEXT(path) {
      BOOST_TEST(files.count(path) == 1U);
    }
  }
  // The same addresses on both chips: each chip's memory is its own.
  BOOST_TEST(find_section(m, "model-a.params")->address ==
             find_section(m, "model-b.params")->address);
  // The name of the package is the hash of its checksum list.
  BOOST_TEST(package.hash().size() == 64U);
  BOOST_TEST(package.hash_number() == std::stoull(package.hash().substr(0, 16), nullptr, 16));
}

BOOST_AUTO_TEST_CASE(two_builds_of_the_same_input_are_byte_identical) {
  const ScratchDirectory scratch;
  write_models(scratch);
  const auto first = build_package(dual_options(scratch, "one")).value();
  fs::rename(scratch.at("a.gguf"), scratch.at("renamed.gguf"));
  auto options = dual_options(scratch, "two");
  options.models[0].gguf = scratch.at("renamed.gguf");
  const auto second = build_package(options).value();
  BOOST_TEST(first.hash == second.hash);
  BOOST_TEST((contents(scratch.at("one")) == contents(scratch.at("two"))));
  // Another option is another build.
  options.directory = scratch.at("three");
  options.kv_slots = 3;
  BOOST_TEST(build_package(options).value().build_id != first.build_id);
  BOOST_TEST((names(scratch.path()) ==
              std::set<std::string>{"renamed.gguf", "b.gguf", "one", "two", "three"}));
}

// One layer of each real architecture, with its real heads and feed-forward.
BOOST_AUTO_TEST_CASE(layers_of_real_models_build_twice_to_the_same_valid_bytes) {
  for (const auto& [shape, type] : {std::pair{"qwen2-layer", WeightType::f16},
                                    {"llama-layer", WeightType::q6_k},
                                    {"qwen3-layer", WeightType::q4_k}}) {
    BOOST_TEST_CONTEXT(shape) {
      const ScratchDirectory scratch;
      tools::RandomModel model;
      model.config = tools::find_model_shape(shape)->config;
      model.type = type;
      for (const char* name : {"1.gguf", "2.gguf"}) {
        BOOST_REQUIRE(tools::write_random_model(model, scratch.at(name)).has_value());
      }
      PackOptions options;
      options.context = 64;
      options.kv_slots = 2;
      std::vector<std::string> hashes;
      for (const char* name : {"1", "2"}) {
        options.models = {{"m", "m", scratch.at(std::string(name) + ".gguf"), "", 0}};
        options.directory = scratch.at(name);
        const auto built = build_package(options);
        BOOST_TEST_REQUIRE(built.has_value(), built.error().message);
        hashes.push_back(built->hash);
      }
      BOOST_TEST(hashes[0] == hashes[1]);
      BOOST_TEST((contents(scratch.at("1")) == contents(scratch.at("2"))));
      // Another seed is another model.
      model.seed = 2;
      BOOST_REQUIRE(tools::write_random_model(model, scratch.at("3.gguf")).has_value());
      BOOST_TEST((ScratchDirectory::read_file(scratch.at("3.gguf")) !=
                  ScratchDirectory::read_file(scratch.at("1.gguf"))));
    }
  }
}

BOOST_AUTO_TEST_CASE(q8_0_blocks_are_taken_unchanged) {
  const ScratchDirectory scratch;
  write_models(scratch);
  const auto gguf = Gguf::open(scratch.at("a.gguf")).value();
  const auto report = validate_package(tiny_package(), trusting());
  const Model& model = report.package->manifest().models[0];
  const auto parameters = report.package->parameters("model-a");
  std::size_t matrices = 0;
  for (const Tensor& tensor : model.tensors) {
    const auto source = gguf.data(*gguf.find_tensor(tensor.name));
    BOOST_TEST(tensor.offset % 64 == 0U);
    BOOST_REQUIRE(tensor.bytes == source.size());
    BOOST_TEST(std::memcmp(parameters.data() + tensor.offset, source.data(), source.size()) == 0);
    matrices += tensor.shape.size() == 2;
  }
  BOOST_TEST(matrices == 8U);   // tied output is there once
}

// R-5.C: one model, the other chip idle.
BOOST_AUTO_TEST_CASE(a_single_package_may_live_on_either_chip) {
  const ScratchDirectory scratch;
  write_models(scratch);
  for (const std::uint32_t chip : {0U, 1U}) {
    PackOptions options = dual_options(scratch, "single" + std::to_string(chip));
    options.models.resize(1);
    options.models[0].chip = chip;
    options.key = nullptr;
    (void)build_package(options).value();
    ValidateOptions allow;
    allow.allow_unsigned = true;
    const auto report = validate_package(options.directory, allow);
    BOOST_REQUIRE(report.package != nullptr);
    BOOST_TEST(report.package->manifest().kind == "single");
    BOOST_TEST(report.package->manifest().models[0].chip == chip);
    BOOST_TEST((report.package->trust() == Trust::unsigned_));
    BOOST_TEST(report.findings.warnings() == 1U);
  }
}

BOOST_AUTO_TEST_CASE(a_given_golden_file_is_taken_with_its_margins) {
  const ScratchDirectory scratch;
  const std::string folder = DUET_SOURCE_DIR "/tools/demo_models/";
  PackOptions options;
  options.models = {
      {"model-a", "abacus", folder + "abacus-q8_0.gguf", folder + "abacus.golden.json", 0}};
  options.directory = scratch.at("p");
  (void)build_package(options).value();
  ValidateOptions allow;
  allow.allow_unsigned = true;
  const auto report = validate_package(options.directory, allow);
  BOOST_REQUIRE(report.package != nullptr);
  const Golden& golden = report.package->golden("model-a");
  BOOST_TEST(golden.prompts.size() == 53U);
  BOOST_TEST(golden.source == "q8_0");
  const GoldenPrompt& first = golden.prompts[0];   // What is 47 + 385?
  BOOST_TEST((first.tokens == std::vector<std::uint32_t>{19, 22, 259, 220, 18, 23, 20, 256, 220, 19,
                                                         18, 17, 13, 639}));
  BOOST_TEST(first.stop_id.value() == 639U);
  BOOST_TEST(first.margins.size() == first.tokens.size());
  // A golden of another model does not fit.
  options.directory = scratch.at("q");
  options.models[0].golden = folder + "fable.golden.json";
  check_refused(options, "fable.golden.json: prompt");
}

BOOST_AUTO_TEST_CASE(what_cannot_be_built_leaves_nothing_behind) {
  const ScratchDirectory scratch;
  write_models(scratch);
  const auto before = names(scratch.path());
  const auto options = [&] { return dual_options(scratch, "p"); };
  auto bad = options();
  bad.models[0].gguf = scratch.at("none.gguf");
  check_refused(bad, "none.gguf: cannot be opened");
  bad = options();
  bad.models[1].chip = 0;
  check_refused(bad, "same name, alias or chip");
  bad = options();
  bad.models[1].alias = "alpha";
  check_refused(bad, "same name, alias or chip");
  bad = options();
  bad.models[1].alias = "../x";
  check_refused(bad, "'../x': a name has");
  bad = options();
  bad.models[1].chip = 2;
  check_refused(bad, "chip 2 does not exist");
  bad = options();
  bad.context = 8;
  check_refused(bad, "below 32");
  bad = options();
  bad.dram_bytes_per_chip = 1100000;
  check_refused(bad, "does not fit");
  bad = options();
  bad.kv_slots = 4096;
  bad.dram_bytes_per_chip = std::uint64_t{4} << 20;
  check_refused(bad, "'model-a.kv'");
  bad = options();
  bad.models.push_back(bad.models[0]);
  check_refused(bad, "one or two models");
  bad = options();
  bad.directory = scratch.path();   // exists and is no package
  check_refused(bad, "exists already");
  bad.replace = true;
  check_refused(bad, "is not a package, so it is not replaced");
  BOOST_TEST((names(scratch.path()) == before));
}

BOOST_AUTO_TEST_CASE(replacing_swaps_the_whole_package) {
  const ScratchDirectory scratch;
  write_models(scratch);
  auto options = dual_options(scratch, "p");
  const auto first = build_package(options).value();
  check_refused(options, "exists already");
  options.replace = true;
  options.kv_slots = 3;
  const auto second = build_package(options).value();
  BOOST_TEST(first.hash != second.hash);
  BOOST_TEST(validate_package(options.directory, trusting()).package->hash() == second.hash);
  BOOST_TEST((names(scratch.path()) == std::set<std::string>{"a.gguf", "b.gguf", "p"}));
}

// Weights that are numbers but make no model: the F32 reference notices.
BOOST_AUTO_TEST_CASE(weights_that_overflow_are_refused) {
  const ScratchDirectory scratch;
  auto builder = tiny_model("llama", DType::f32);
  std::vector<float> huge(48 * 64, 3e38F);
  builder.drop_tensor("token_embd.weight");
  const auto bytes = std::as_bytes(std::span(huge));
  builder.tensor("token_embd.weight", {64, 48}, 0, {bytes.begin(), bytes.end()});
  scratch.write("a.gguf", as_text(builder.build()));
  auto options = dual_options(scratch, "p");
  options.models.resize(1);
  check_refused(options, "'token_embd.weight', row 0: weights are too large for Q8_0");
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace duet::device::test
