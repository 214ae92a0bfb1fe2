// accept_test.cpp: duet-accept as its users start it, on the demo package and on spoiled copies of
// it.
#include "process.hpp"

#include "device/emulator/emulated_board.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <boost/test/unit_test.hpp>

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;
namespace json = boost::json;
using duet::test::Finished;
using duet::test::run_program;

const std::string demo_package = std::string(DUET_BINARY_DIR) + "/demo-package";
const std::string demo_key = std::string(DUET_BINARY_DIR) + "/demo-key.pub";

/// A board of this test process alone, so that tests of several builds can run at the same time.
std::string board_name() {
  return "test-" + std::to_string(::getpid());
}

Finished accept(const std::string& package, std::vector<std::string> more = {}) {
  std::vector<std::string> words = {"run", package, "--trust", demo_key, "--board", board_name()};
  words.insert(words.end(), more.begin(), more.end());
  return run_program("duet-accept", words);
}

json::object report_of(const Finished& finished) {
  boost::system::error_code error;
  const json::value value = json::parse(finished.out, error);
  BOOST_REQUIRE_MESSAGE(!error && value.is_object(), finished.out + finished.err);
  return value.as_object();
}

std::vector<std::string> steps_of(const json::object& report) {
  std::vector<std::string> steps;
  for (const json::value& step : report.at("steps").as_array()) {
    steps.emplace_back(step.at("step").as_string().c_str());
  }
  return steps;
}

/// A copy of the demo package that a test may spoil; removed at the end.
class PackageCopy {
 public:
  PackageCopy() : path_(fs::path(DUET_BINARY_DIR) / ("spoiled-" + board_name())) {
    fs::remove_all(path_);
    fs::copy(demo_package, path_, fs::copy_options::recursive);
  }
  ~PackageCopy() { fs::remove_all(path_); }
  [[nodiscard]] const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

/// A package of abacus under each name, signed with the demo key; removed at the end.
class AbacusPackage {
 public:
  explicit AbacusPackage(const std::vector<std::string>& names, std::vector<std::string> more = {})
      : path_(fs::path(DUET_BINARY_DIR) / ("abacus-" + board_name())) {
    const std::string model = std::string(DUET_SOURCE_DIR) + "/tools/demo_models/abacus";
    more.insert(more.begin(), {"build", "--quiet", "--replace", "-o", path_.string(), "--sign-key",
                               std::string(DUET_BINARY_DIR) + "/demo-key.pem"});
    for (const std::string& name : names) {
      more.insert(more.end(), {"--model", name + "=" + model + "-q8_0.gguf", "--golden",
                               name + "=" + model + ".golden.json"});
    }
    const Finished built = run_program("duet-pack", more);
    BOOST_REQUIRE_MESSAGE(built.code == 0, built.out + built.err);
  }
  ~AbacusPackage() { fs::remove_all(path_); }
  AbacusPackage(const AbacusPackage&) = delete;
  AbacusPackage& operator=(const AbacusPackage&) = delete;
  [[nodiscard]] std::string path() const { return path_.string(); }

 private:
  fs::path path_;
};

/// What the report says of each step of this name, in order.
std::vector<std::string> details_of(const json::object& report, const std::string& step) {
  std::vector<std::string> details;
  for (const json::value& each : report.at("steps").as_array()) {
    if (each.at("step").as_string() == step) {
      details.emplace_back(each.at("detail").as_string().c_str());
    }
  }
  return details;
}

}   // namespace

BOOST_AUTO_TEST_SUITE(accept_program)

// the runner's calls in exactly this order.
BOOST_AUTO_TEST_CASE(the_demo_package_is_accepted_and_both_models_answer_at_the_same_time) {
  const Finished finished =
      accept(demo_package, {"--json", "--ask", "model-a=What is 47 + 385?", "--ask",
                            "model-b=Tell me a story about a brave fox and a river."});
  BOOST_TEST(finished.code == 0, finished.out + finished.err);
  const json::object report = report_of(finished);
  const std::vector<std::string> expected = {"validate",
                                             "open",
                                             "load",
                                             "validate loaded",
                                             "configure",
                                             "session",
                                             "load model",
                                             "buffers",
                                             "buffers",
                                             "session",
                                             "load model",
                                             "buffers",
                                             "buffers",
                                             "read hash",
                                             "golden model-a",
                                             "read hash",
                                             "golden model-b",
                                             "verify trace",
                                             "verify trace",
                                             "concurrent model-a",
                                             "concurrent model-b",
                                             "overlap goldens",
                                             "verify trace",
                                             "verify trace",
                                             "answer model-a",
                                             "answer model-b",
                                             "overlap answers",
                                             "drain",
                                             "drain",
                                             "reset configuration",
                                             "release"};
  BOOST_TEST(steps_of(report) == expected, boost::test_tools::per_element());
  BOOST_TEST(report.at("configure_calls").to_number<int>() == 1);
  BOOST_TEST(report.at("jobs_submitted").to_number<int>() ==
             report.at("jobs_done").to_number<int>());
  BOOST_TEST(report.at("overlap_goldens").to_number<double>() > 0.0);
  const json::array& answers = report.at("answers").as_array();
  const std::string sum = answers.at(0).at("answer").as_string().c_str();
  const std::string story = answers.at(1).at("answer").as_string().c_str();
  BOOST_TEST(sum.find("432") != std::string::npos, sum);
  BOOST_TEST(story.find("fox") != std::string::npos, story);
  BOOST_TEST(story.find("river") != std::string::npos, story);
}

// R-5.C
BOOST_AUTO_TEST_CASE(one_model_under_two_aliases_runs_on_both_chips_at_the_same_time) {
  const AbacusPackage package({"sums", "more"});
  const Finished finished = accept(package.path(), {"--json", "--ask", "sums=What is 47 + 385?",
                                                    "--ask", "more=What is 7 x 8?"});
  BOOST_TEST(finished.code == 0, finished.out + finished.err);
  const json::object report = report_of(finished);
  BOOST_TEST(report.at("accepted").as_bool());
  BOOST_TEST(details_of(report, "load model") ==
                 (std::vector<std::string>{"sums on chip 0", "more on chip 1"}),
             boost::test_tools::per_element());
  // The same weights give the same figures, alone and beside each other.
  const std::vector<std::string> golden = details_of(report, "golden sums");
  BOOST_REQUIRE(golden.size() == 1U);
  for (const char* step : {"golden more", "concurrent sums", "concurrent more"}) {
    BOOST_TEST(details_of(report, step) == golden, boost::test_tools::per_element());
  }
  BOOST_TEST(report.at("overlap_goldens").to_number<double>() > 0.0);
  const json::array& answers = report.at("answers").as_array();
  BOOST_REQUIRE(answers.size() == 2U);
  BOOST_TEST(answers.at(0).at("alias").as_string() == "sums");
  BOOST_TEST(answers.at(0).at("answer").as_string() == "47 + 385 = 432.");
  BOOST_TEST(answers.at(1).at("alias").as_string() == "more");
  BOOST_TEST(answers.at(1).at("answer").as_string() == "7 * 8 = 56.");
}

// R-5.C
BOOST_AUTO_TEST_CASE(one_model_alone_runs_on_either_chip_and_takes_nothing_of_the_other) {
  for (const std::string chip : {"0", "1"}) {
    const AbacusPackage package({"only"}, {"--chip", "only=" + chip});
    const Finished finished = accept(package.path(), {"--json", "--ask", "only=What is 47 + 385?"});
    BOOST_TEST(finished.code == 0, finished.out + finished.err);
    const json::object report = report_of(finished);
    BOOST_TEST(report.at("accepted").as_bool());
    BOOST_TEST(report.at("configure_calls").to_number<int>() == 1);
    const std::vector<std::string> expected = {"validate",
                                               "open",
                                               "load",
                                               "validate loaded",
                                               "configure",
                                               "session",
                                               "load model",
                                               "buffers",
                                               "buffers",
                                               "read hash",
                                               "golden only",
                                               "verify trace",
                                               "concurrent only",
                                               "verify trace",
                                               "answer only",
                                               "drain",
                                               "reset configuration",
                                               "release"};
    BOOST_TEST(steps_of(report) == expected, boost::test_tools::per_element());
    BOOST_TEST(details_of(report, "session") == std::vector<std::string>{"chip " + chip},
               boost::test_tools::per_element());
    for (const std::string& trace : details_of(report, "verify trace")) {
      BOOST_TEST(trace.starts_with("chip " + chip + ": "), trace);
      BOOST_TEST(trace.find(", 0 events of another chip or session") != std::string::npos, trace);
    }
    const json::array& answers = report.at("answers").as_array();
    BOOST_REQUIRE(answers.size() == 1U);
    BOOST_TEST(answers.at(0).at("answer").as_string() == "47 + 385 = 432.");
  }
}

BOOST_AUTO_TEST_CASE(one_and_two_threads_a_chip_give_the_same_answers) {
  const std::vector<std::string> question = {"--json", "--ask", "model-b=Tell me a story.",
                                             "--threads"};
  std::vector<std::string> answers;
  for (const char* threads : {"1", "2"}) {
    std::vector<std::string> more = question;
    more.emplace_back(threads);
    const json::object report = report_of(accept(demo_package, more));
    answers.emplace_back(report.at("answers").at(0).at("answer").as_string().c_str());
  }
  BOOST_TEST(answers[0] == answers[1]);
  BOOST_TEST(!answers[0].empty());
}

// Nothing is configured, and nothing is opened, for a package that is not right.
BOOST_AUTO_TEST_CASE(a_flipped_byte_in_the_weights_is_refused_before_configure) {
  const PackageCopy copy;
  fs::path largest;
  for (const auto& entry : fs::recursive_directory_iterator(copy.path())) {
    if (entry.is_regular_file() &&
        (largest.empty() || entry.file_size() > fs::file_size(largest))) {
      largest = entry.path();
    }
  }
  std::fstream file(largest, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(12345);
  const char byte = static_cast<char>(file.get() ^ 1);
  file.seekp(12345);
  file.put(byte);
  file.close();
  const Finished finished = accept(copy.path(), {"--json"});
  BOOST_TEST(finished.code == 1);
  const json::object report = report_of(finished);
  BOOST_TEST(steps_of(report) == (std::vector<std::string>{"validate"}),
             boost::test_tools::per_element());
  BOOST_TEST(report.at("configure_calls").to_number<int>() == 0);
  BOOST_TEST(report.at("findings").at(0).at("code").as_string() == "P402");
}

BOOST_AUTO_TEST_CASE(a_package_that_is_not_there_and_an_untrusted_key_are_refused) {
  const Finished missing = accept("no-such-package", {"--json"});
  BOOST_TEST(missing.code == 1);
  BOOST_TEST(report_of(missing).at("configure_calls").to_number<int>() == 0);
  const Finished untrusted =
      run_program("duet-accept", {"run", demo_package, "--board", board_name(), "--json"});
  BOOST_TEST(untrusted.code == 1);
  BOOST_TEST(report_of(untrusted).at("configure_calls").to_number<int>() == 0);
}

// the demo key's own file is a list of one key.
BOOST_AUTO_TEST_CASE(a_revoked_signer_is_refused_before_the_device_is_opened_though_trusted) {
  for (const bool unsigned_too : {false, true}) {
    std::vector<std::string> more = {"--json", "--revoked", demo_key};
    if (unsigned_too) more.emplace_back("--allow-unsigned");
    const Finished finished = accept(demo_package, more);
    BOOST_TEST(finished.code == 1);
    const json::object report = report_of(finished);
    BOOST_TEST(steps_of(report) == std::vector<std::string>{"validate"},
               boost::test_tools::per_element());
    BOOST_TEST(report.at("configure_calls").to_number<int>() == 0);
    BOOST_TEST(finished.out.find("P410") != std::string::npos, finished.out);
  }
}

BOOST_AUTO_TEST_CASE(an_alias_that_is_not_there_is_refused_before_the_device_is_opened) {
  const Finished finished = accept(demo_package, {"--json", "--ask", "model-c=Hello"});
  BOOST_TEST(finished.code == 1);
  const json::object report = report_of(finished);
  BOOST_TEST(steps_of(report) == (std::vector<std::string>{"validate", "questions"}),
             boost::test_tools::per_element());
  BOOST_TEST(report.at("configure_calls").to_number<int>() == 0);
  BOOST_TEST(finished.out.find("model-c") != std::string::npos);
}

// context + 1 is refused before submit, with both counts.
BOOST_AUTO_TEST_CASE(a_question_longer_than_the_context_is_refused_before_the_device_is_opened) {
  std::string question;
  for (int i = 0; i < 4200; ++i) question += "7 ";
  const Finished finished = accept(demo_package, {"--json", "--ask", "model-a=" + question});
  BOOST_TEST(finished.code == 1);
  const json::object report = report_of(finished);
  BOOST_TEST(report.at("configure_calls").to_number<int>() == 0);
  BOOST_TEST(finished.out.find("the context 4096") != std::string::npos,
             finished.out.substr(0, 900));
}

// one process owns the board.
BOOST_AUTO_TEST_CASE(a_second_process_on_the_board_is_refused_before_anything_is_touched) {
  duet::device::emulator::ThreadedBoardOptions options;
  options.board = board_name();
  const auto board = duet::device::emulator::make_emulated_board(options);
  BOOST_REQUIRE(board->open().has_value());
  const Finished finished = accept(demo_package, {"--json"});
  BOOST_TEST(finished.code == 1);
  const json::object report = report_of(finished);
  BOOST_TEST(steps_of(report) == (std::vector<std::string>{"validate", "open"}),
             boost::test_tools::per_element());
  BOOST_TEST(report.at("configure_calls").to_number<int>() == 0);
  BOOST_TEST(finished.out.find(std::to_string(::getpid())) != std::string::npos, finished.out);
  BOOST_REQUIRE(board->close().has_value());
}

BOOST_AUTO_TEST_CASE(wrong_use_is_told_apart_from_a_finding) {
  for (const std::vector<std::string>& words : {std::vector<std::string>{},
                                                {"walk", demo_package},
                                                {"run"},
                                                {"run", demo_package, "--nope"},
                                                {"run", demo_package, "--ask", "no-equals-sign"},
                                                {"run", demo_package, "--threads", "3"},
                                                {"run", demo_package, "--trust", "/no/such/key"},
                                                {"run", demo_package, "--revoked", "/no/such"}}) {
    const Finished finished = run_program("duet-accept", words);
    BOOST_TEST(finished.code == 2);
    BOOST_TEST(finished.err.find("duet-accept: ") == 0U, finished.err);
    BOOST_TEST(std::count(finished.err.begin(), finished.err.end(), '\n') == 1, finished.err);
  }
  const Finished help = run_program("duet-accept", {"--help"});
  BOOST_TEST(help.code == 0);
  BOOST_TEST(help.out.find("usage: duet-accept run PACKAGE") == 0U);
}

BOOST_AUTO_TEST_SUITE_END()
