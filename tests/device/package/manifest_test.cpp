// manifest_test.cpp: manifest.yaml read strictly, and the other small files of a package.
#include "device/package/manifest_yaml.hpp"
#include "device/package/package_files.hpp"
#include "device/package/yaml_tree.hpp"
#include "tests/device/package/scratch.hpp"

#include <boost/test/unit_test.hpp>

#include <string>

namespace duet::device::test {
namespace {

Manifest sample() {
  Manifest m;
  m.schema = manifest_schema;
  m.kind = "single";
  m.build_id = std::string(32, 'a');
  m.dram_bytes_per_chip = std::uint64_t{16} << 30;
  Model model;
  model.name = "model-a";
  model.alias = "a \"quoted\" \\ alias";
  model.config.architecture = "llama";
  model.config.norm_epsilon = 1e-5F;
  model.config.rope_base = 1e6F;
  model.tensors = {{"t", DType::q8_0, {64, 32}, 64, 2176}};
  m.models.push_back(model);
  Graph graph;
  graph.name = "model_a_prefill";
  graph.target_chips = {0};
  graph.inputs = {{"tokens", DType::i32, {1, 64}}};
  graph.programs = {"p0", "p1"};
  graph.sync_units = {0, 1, 2, 3};
  m.graphs.push_back(graph);
  Section section;
  section.name = "p0";
  section.address = 0x100000;
  section.chip_mask = 1;
  section.core = 0;
  section.engine = Engine::pong;
  m.sections.push_back(section);
  m.dma_routes.push_back({"r", "model-a", "host", "chip0", "w"});
  m.memory.push_back({0, "weights", 1});
  return m;
}

/// The codes of reading `text`, as "P104 P107".
std::string codes(const std::string& text) {
  Findings findings;
  const auto manifest = read_manifest(text, findings);
  BOOST_TEST(manifest.has_value() == (findings.errors() == 0));
  std::string out;
  for (const Finding& finding : findings.list())
    out += (out.empty() ? "" : " ") + code_text(finding.code);
  return out;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  BOOST_REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

}   // namespace

BOOST_AUTO_TEST_SUITE(manifest)

// R-6.3
BOOST_AUTO_TEST_CASE(a_manifest_comes_back_as_it_was_written) {
  const std::string text = write_manifest(sample());
  Findings findings;
  const auto back = read_manifest(text, findings);
  for (const Finding& finding : findings.list()) BOOST_TEST_MESSAGE(finding_text(finding));
  BOOST_REQUIRE(back.has_value());
  BOOST_TEST(write_manifest(*back) == text);
  BOOST_TEST(back->models[0].alias == "a \"quoted\" \\ alias");
  BOOST_TEST(back->models[0].config.norm_epsilon == 1e-5F);
  BOOST_TEST((back->models[0].tensors[0].shape == std::vector<std::uint64_t>{64, 32}));
  BOOST_TEST(back->sections[0].core.value() == 0U);
  BOOST_TEST((back->sections[0].engine == Engine::pong));
  BOOST_TEST(!back->sections[0].processor.has_value());
}

// R-6.2
BOOST_AUTO_TEST_CASE(each_kind_of_mistake_has_its_own_code_and_line) {
  const std::string text = write_manifest(sample());
  BOOST_TEST(codes(text) == "");
  BOOST_TEST(codes(text + "extra: 1\n") == "P104");
  BOOST_TEST(codes(text + "chips: 2\n") == "P105");
  BOOST_TEST(codes(replaced(text, "chips: 2\n", "")) == "P107");
  BOOST_TEST(codes(replaced(text, "chips: 2\n", "chip: 2\n")) == "P107 P104");
  for (const char* value : {"-1", "1.5", "\"2\"", "[2]", "{a: 1}", "", "4294967296", "02", "0x",
                            "two", "1_0", "+1", "true"}) {
    BOOST_TEST_CONTEXT(value) {
      BOOST_TEST(codes(replaced(text, "chips: 2\n", std::string("chips: ") + value + "\n")) ==
                 "P106");
    }
  }
  BOOST_TEST(codes(replaced(text, "chips: 2\n", "chips: 0x2\n")) == "");
  BOOST_TEST(codes(replaced(text, "mode: schip", "mode: SCHIP")) == "P106");
  BOOST_TEST(codes(replaced(text, "dtype: Q8_0", "dtype: Q4_0")) == "P106");
  BOOST_TEST(codes(replaced(text, "calc_mchip: false", "calc_mchip: no")) == "P106");
  BOOST_TEST(codes(replaced(text, "norm_epsilon: 1e-05", "norm_epsilon: .nan")) == "P106");
  BOOST_TEST(codes(replaced(text, "norm_epsilon: 1e-05", "norm_epsilon: inf")) == "P106");
  Findings findings;
  (void)read_manifest(replaced(text, "chips: 2\n", "chips: x\n"), findings);
  BOOST_REQUIRE(findings.list().size() == 1U);
  BOOST_TEST(findings.list()[0].line == 5U);
  BOOST_TEST(findings.list()[0].key == "chips");
}

// All mistakes come at once.
BOOST_AUTO_TEST_CASE(three_mistakes_give_three_findings) {
  std::string text = write_manifest(sample());
  text = replaced(text, "chips: 2\n", "chips: x\n");
  text = replaced(text, "kind: \"single\"\n", "");
  BOOST_TEST(codes(text + "extra: 1\n") == "P107 P106 P104");
}

BOOST_AUTO_TEST_CASE(yaml_that_no_manifest_needs_is_refused) {
  for (const std::string text :
       {"", "- 1\n", "a", "&x a: 1\n", "a: *x\n", "a: &x 1\nb: *x\n", "!!map {a: 1}\n", "a: !t 1\n",
        "a: 1\n--- \nb: 2\n", "a:\t1\n", "{a: 1", "a: [1\n",

        "? [1, 2]\n: 3\n", "? {a: 1}\n: 3\n", "a: \xff\n", "%YAML 9.9\n--- a\n", "@", "`",
        "a: 1\n b: 2\n"}) {
    BOOST_TEST_CONTEXT("text: " << text) {
      BOOST_TEST(codes(text) == "P103");
    }
  }
  BOOST_TEST(codes(std::string("a: \0b\n", 6)) == "P103");
}

// Bombs end at a bound, not at the end of memory or time.
BOOST_AUTO_TEST_CASE(yaml_bombs_are_refused_at_a_bound) {
  const std::size_t big = 3U << 20;
  BOOST_TEST(codes(std::string(yaml_limits::bytes_max + 1, ' ')) == "P103");
  BOOST_TEST(codes("a: " + std::string(big, '[')) == "P103");
  BOOST_TEST(codes("a: " + std::string(40, '[') + std::string(40, ']') + "\n") == "P103");
  std::string nested;
  for (int depth = 0; depth < 40; ++depth)
    nested += std::string(static_cast<std::size_t>(depth), ' ') + "a:\n";
  BOOST_TEST(codes(nested + std::string(41, ' ') + "b: 1\n") == "P103");
  BOOST_TEST(codes("a: " + std::string(big, 'x') + "\n") == "P103");   // a line too long
  std::string laughs = "a0: &a0 [x, x]\n";
  for (int i = 1; i < 30; ++i) {
    laughs += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [*a" +
              std::to_string(i - 1) + ", *a" + std::to_string(i - 1) + "]\n";
  }
  BOOST_TEST(codes(laughs) == "P103");
  std::string dashes;
  while (dashes.size() < big) dashes += "- - - - - - - - - - - - - - - -\n";
  BOOST_TEST(codes(dashes) == "P103");
}

// A hostile manifest cannot fill the memory with findings.
BOOST_AUTO_TEST_CASE(the_list_of_findings_is_bounded) {
  std::string text = write_manifest(sample());
  for (int i = 0; i < 5000; ++i) text += "k" + std::to_string(i) + ": 1\n";
  Findings findings;
  BOOST_TEST(!read_manifest(text, findings).has_value());
  BOOST_TEST(findings.list().size() == Findings::count_max);
  BOOST_TEST(findings.errors() == 5000U);
}

BOOST_AUTO_TEST_CASE(every_code_has_one_row_in_order_with_an_action) {
  Code last = Code{0};
  for (const CodeInfo& info : code_table()) {
    BOOST_TEST((info.code > last));
    BOOST_TEST(!info.title.empty());
    BOOST_TEST(code_action(info.code) == info.action);
    last = info.code;
  }
}

BOOST_AUTO_TEST_CASE(the_documented_table_of_codes_is_the_one_in_the_program) {
  const std::string page = ScratchDirectory::read_file(DUET_SOURCE_DIR "/docs/findings.md");
  std::size_t rows = 0;
  for (std::size_t at = page.find("\n| P"); at != std::string::npos;
       at = page.find("\n| P", at + 1))
    ++rows;
  BOOST_TEST(rows == code_table().size());
  for (const CodeInfo& info : code_table()) {
    const std::string row = "| " + code_text(info.code) + " | " + std::string(info.title) + " | " +
                            std::string(info.action) + " |\n";
    BOOST_TEST_CONTEXT(row) {
      BOOST_TEST(page.find(row) != std::string::npos);
    }
  }
}

// R-6.5
BOOST_AUTO_TEST_CASE(checksum_lists_are_read_strictly) {
  const std::string hash(64, 'a');
  const std::string good = hash + "  a/b\n" + hash + "  c\n";
  BOOST_TEST(write_checksums(read_checksums(good).value()) == good);
  for (const std::string& bad :
       {std::string(), good.substr(0, good.size() - 1), hash + " a\n", hash.substr(1) + "  a\n",
        hash + "  ../a\n", hash + "  /a\n", hash + "  a/../b\n", hash + "  a//b\n",
        hash + "  a\\b\n", hash + "  c\n" + hash + "  a\n", hash + "  a\n" + hash + "  a\n",
        std::string(64, 'A') + "  a\n", hash + "  .hidden\n", hash + "  \n"}) {
    BOOST_TEST_CONTEXT("list: " << bad) {
      BOOST_TEST(read_checksums(bad).has_error());
    }
  }
}

BOOST_AUTO_TEST_CASE(compatibility_says_which_format_is_foreign) {
  unsigned code = 0;
  BOOST_TEST(check_compatibility(compatibility_text(), code).has_value());
  const auto code_of = [](const std::string& text) {
    unsigned found = 0;
    BOOST_TEST(check_compatibility(text, found).has_error());
    return found;
  };
  BOOST_TEST(code_of("") == 601U);
  BOOST_TEST(code_of("[]") == 601U);
  BOOST_TEST(code_of(replaced(compatibility_text(), "\"command\"", "\"commands\"")) == 601U);
  BOOST_TEST(code_of(replaced(compatibility_text(), "DUETPRG1", "DUETPRG2")) == 602U);
  BOOST_TEST(code_of(replaced(compatibility_text(), "\"numerics\": 1", "\"numerics\": 2")) == 603U);
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace duet::device::test
