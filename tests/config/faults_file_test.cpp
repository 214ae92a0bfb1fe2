// faults_file_test.cpp: the file of scripted answers.
#include "config/faults_file.hpp"

#include "tests/config/texts.hpp"
#include "tests/device/package/scratch.hpp"

#include <boost/test/unit_test.hpp>

#include <array>

namespace duet::config::test {
namespace {

using device::test::ScratchDirectory;
using Ids = std::vector<std::uint32_t>;

const std::array<std::string, 2> aliases = {"model-a", "model-b"};

constexpr const char* good = R"(schema: duet-faults/v1
answers:
  - model: model-a
    prompt_tokens: [1, 17]
    answer_tokens: [300, 16777215]
  - model: model-b
    prompt_tokens: [1, 17]
    answer_tokens: []
    ends: true
  - model: model-b
    prompt_tokens:
      - 0
    answer_tokens: [5]
    ends: false
)";

}   // namespace

BOOST_AUTO_TEST_SUITE(config_faults_file)

BOOST_AUTO_TEST_CASE(answers_are_read_with_their_model_and_end_by_default) {
  Findings findings;
  const auto scripts = parse_faults(good, "f.yaml", aliases, findings);
  BOOST_TEST(findings.errors.empty(), printed(findings.errors));
  BOOST_REQUIRE(scripts.size() == 3U);
  BOOST_TEST(scripts[0].alias == "model-a");
  BOOST_TEST((scripts[0].prompt_tokens == Ids{1, 17}));
  BOOST_TEST((scripts[0].answer_tokens == Ids{300, 16777215}));
  BOOST_TEST(scripts[0].ends);
  BOOST_TEST(scripts[1].alias == "model-b");
  BOOST_TEST(scripts[1].answer_tokens.empty());
  BOOST_TEST((scripts[2].prompt_tokens == Ids{0}));
  BOOST_TEST(!scripts[2].ends);
}

BOOST_AUTO_TEST_CASE(a_file_without_answers_is_right) {
  Findings findings;
  BOOST_TEST(parse_faults("schema: duet-faults/v1\n", "f", aliases, findings).empty());
  BOOST_TEST(findings.errors.empty(), printed(findings.errors));
}

BOOST_AUTO_TEST_CASE(each_spoiled_file_names_its_line_and_key_and_gives_nothing) {
  struct Case {
    const char* what;
    const char* from;
    const char* to;
    std::uint32_t line;
    const char* key;
    const char* message;
  };
  const Case cases[] = {
      {"no schema", "schema: duet-faults/v1\n", "", 1, "schema", "is missing"},
      {"another schema", "faults/v1", "faults/v2", 1, "schema", "must be duet-faults/v1"},
      {"a schema of nothing", " duet-faults/v1", "", 1, "schema", "must be"},
      {"an unknown key", "answers:\n", "answer:\n", 2, "answer", "'answers'"},
      {"answers that are no list", "answers:\n", "answers: none\nx:\n", 2, "answers",
       "must be a list"},
      {"a model that is not served", "model: model-a", "model: model-c", 3, "answers[0].model",
       "model-a or model-b"},
      {"a model that is a list", "model: model-a", "model: [model-a]", 3, "answers[0].model", ""},
      {"no prompt", "    prompt_tokens: [1, 17]\n    answer_tokens: [300, 16777215]",
       "    answer_tokens: [300]", 3, "answers[0].prompt_tokens", "is missing"},
      {"an empty prompt", "    prompt_tokens: [1, 17]\n    answer_tokens: [300, 16777215]",
       "    prompt_tokens: []\n    answer_tokens: [300]", 4, "answers[0].prompt_tokens",
       "is empty"},
      {"tokens that are words", "[300, 16777215]", "[300, x]", 5, "answers[0].answer_tokens[1]",
       "a whole number from 0 to 16777215"},
      {"a token in quotes", "[300, 16777215]", "[\"300\"]", 5, "answers[0].answer_tokens[0]", ""},
      {"a token above every vocabulary", "16777215", "16777216", 5, "answers[0].answer_tokens[1]",
       ""},
      {"a negative token", "300", "-1", 5, "answers[0].answer_tokens[0]", ""},
      {"tokens that are no list", "[300, 16777215]", "300", 5, "answers[0].answer_tokens",
       "must be a list"},
      {"a word for a boolean", "ends: true", "ends: yes", 9, "answers[1].ends",
       "must be true or false"},
      {"a boolean in quotes", "ends: true", "ends: \"true\"", 9, "answers[1].ends", ""},
      {"a misspelled key", "ends: true", "end: true", 9, "answers[1].end", "'ends'"},
      {"a key twice", "    ends: true", "    ends: true\n    ends: false", 10, "answers[1].ends",
       "first in line 9"},
      {"an answer that is a text", "  - model: model-b\n    prompt_tokens: [1, 17]\n",
       "  - text\n  - model: model-b\n    prompt_tokens: [1, 17]\n", 6, "answers[1]",
       "must be a block"},
      {"two answers to one prompt", "model-b\n    prompt_tokens: [1, 17]",
       "model-a\n    prompt_tokens: [1, 17]", 6, "answers[1].prompt_tokens", "those of answers[0]"},
      {"an anchor", "[300, 16777215]", "&a [300]", 5, "answers[0].answer_tokens", "anchors"},
      {"no YAML", "[300, 16777215]", "[300", 6, "answers[0].answer_tokens[1]", ""},
  };
  for (const Case& test : cases) {
    Findings findings;
    const auto scripts =
        parse_faults(replaced(good, test.from, test.to), "f.yaml", aliases, findings);
    BOOST_TEST(scripts.empty(), test.what);
    const Finding* const error = find(findings.errors, test.key);
    BOOST_REQUIRE_MESSAGE(error != nullptr, test.what << printed(findings.errors));
    BOOST_TEST(error->file == "f.yaml");
    BOOST_TEST(error->at.line == test.line, test.what << printed(findings.errors));
    BOOST_TEST(error->message.find(test.message) != std::string::npos,
               test.what << printed(findings.errors));
  }
}

BOOST_AUTO_TEST_CASE(a_configuration_brings_the_answers_of_its_file_and_their_errors) {
  const ScratchDirectory scratch;
  const std::string config = R"(schema: calculet-dual-model/v1
device:
  type: emulated
  profile: "null"
  combined_calbin: package
  faults: faults.yaml
models:
  - alias: model-b
    chip_id: 0
)";
  scratch.write("duet.yaml", config);
  const std::string file = scratch.at("duet.yaml");
  const LoadResult missing = load_config(file);
  BOOST_TEST(!missing.config.has_value());
  const Finding* const absent = find(missing.errors, "device.faults");
  BOOST_REQUIRE_MESSAGE(absent != nullptr, printed(missing.errors));
  BOOST_TEST(absent->message.find("cannot be opened") != std::string::npos);

  scratch.write("faults.yaml",
                "schema: duet-faults/v1\nanswers:\n  - {model: model-b, prompt_tokens: [3], "
                "answer_tokens: [4]}\n");
  const LoadResult right = load_config(file);
  BOOST_REQUIRE_MESSAGE(right.config.has_value(), printed(right.errors));
  BOOST_REQUIRE(right.config->device.answers.size() == 1U);
  BOOST_TEST((right.config->device.answers[0].answer_tokens == Ids{4}));

  scratch.write("faults.yaml",
                "schema: duet-faults/v1\nanswers:\n  - {model: model-a, prompt_tokens: [3], "
                "answer_tokens: [4]}\n");
  const LoadResult wrong = load_config(file);
  BOOST_TEST(!wrong.config.has_value());
  const Finding* const error = find(wrong.errors, "answers[0].model");
  BOOST_REQUIRE_MESSAGE(error != nullptr, printed(wrong.errors));
  BOOST_TEST(error->file == scratch.at("faults.yaml"));
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace duet::config::test
