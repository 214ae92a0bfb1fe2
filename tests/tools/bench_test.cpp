// bench_test.cpp: the form of what duet-bench prints; its figures are nobody's promise here.
#include "tests/tools/process.hpp"

#include <boost/json.hpp>
#include <boost/test/unit_test.hpp>

#include <set>
#include <string>
#include <vector>

namespace {

namespace json = boost::json;
using duet::test::Finished;

Finished run_bench(const std::vector<std::string>& words) {
  return duet::test::run_program("duet-bench", words);
}

/// The names of the results, after checking what all of them have.
std::set<std::string> results_of(const Finished& finished) {
  BOOST_REQUIRE_MESSAGE(finished.code == 0, finished.err);
  const json::value report = json::parse(finished.out);
  BOOST_TEST(report.at("tool").as_string() == "duet-bench");
  BOOST_TEST(!report.at("commit").as_string().empty());
  BOOST_TEST(!report.at("machine").as_string().empty());
  std::set<std::string> names;
  for (const json::value& result : report.at("results").as_array()) {
    names.emplace(result.at("name").as_string());
    BOOST_TEST(!result.at("unit").as_string().empty());
    const double median = result.at("median").to_number<double>();
    BOOST_TEST(median > 0);
    BOOST_TEST(result.at("min").to_number<double>() <= median);
    BOOST_TEST(result.at("max").to_number<double>() >= median);
    BOOST_TEST(result.at("peer").is_null() == result.at("ratio").is_null());
    BOOST_TEST(result.at("bar").is_null() == result.at("bar_met").is_null());
    BOOST_TEST(result.at("bar").is_null() == result.at("bar_of").is_null());
  }
  return names;
}

}   // namespace

BOOST_AUTO_TEST_SUITE(bench)

BOOST_AUTO_TEST_CASE(hand_offs_are_printed_beside_a_bare_post) {
  const auto names = results_of(
      run_bench({"actors", "--json", "--only", "completion", "--runs", "1", "--samples", "100"}));
  for (const char* way : {"completion_on_its_thread_handler_1", "bare_post_1",
                          "completion_through_the_loop_handler_1"}) {
    for (const char* quantile : {"_p50", "_p99", "_p99.9"}) {
      BOOST_TEST(names.contains(std::string(way) + quantile), way << quantile);
    }
  }
}

#if !defined(DUET_SANITIZED)   // millions of messages; nine thousand tokens and more

// B1: a figure of ours names its kind and its threads, and says if there is no peer.
BOOST_AUTO_TEST_CASE(a_workload_is_printed_for_both_kinds_of_actors_and_one_and_two_threads) {
  const Finished finished = run_bench({"actors", "--json", "--only", "ring", "--runs", "1"});
  const auto names = results_of(finished);
  const bool peer = names.contains("ring_caf_1");
  for (const char* name :
       {"ring_coroutine_1", "ring_handler_1", "ring_coroutine_2", "ring_handler_2"}) {
    BOOST_TEST(names.contains(name), name);
  }
  const json::value report = json::parse(finished.out);
  for (const json::value& result : report.at("results").as_array()) {
    if (result.at("name").as_string().find("caf") != json::string::npos) continue;
    BOOST_TEST(result.at("peer").is_null() != peer);
    BOOST_TEST(result.as_object().contains("no_peer") != peer);
  }
}

// B5: the server answers every stream to its last token, or there are no figures.
BOOST_AUTO_TEST_CASE(the_cost_of_a_token_is_printed_beside_raw_writes) {
  const auto names =
      results_of(run_bench({"serve", "--json", "--runs", "1", "--streams", "4", "--tokens", "16"}));
  for (const char* name :
       {"cpu_a_token_1_stream", "cpu_a_token_4_streams", "raw_writes_a_token_4_streams",
        "tokens_a_write_4_streams", "ttft_p50_alone", "ttft_p50_beside_3_streams"}) {
    BOOST_TEST(names.contains(name), name);
  }
}

#endif

BOOST_AUTO_TEST_CASE(a_server_that_does_not_come_up_is_a_failure_with_its_words) {
  const Finished finished = run_bench({"serve", "--server", "/bin/false"});
  BOOST_TEST(finished.code == 1);
  BOOST_TEST(finished.out.empty());
  BOOST_TEST(finished.err.find("the server ended") != std::string::npos, finished.err);
}

BOOST_AUTO_TEST_CASE(wrong_use_is_told_from_failure) {
  for (const std::vector<std::string>& words : {std::vector<std::string>{},
                                                {"other"},
                                                {"serve", "--runs", "0"},
                                                {"serve", "--streams", "1"},
                                                {"serve", "--tokens", "4001"},
                                                {"actors", "--samples", "99"},
                                                {"actors", "--only", "everything"},
                                                {"actors", "--what"}}) {
    const Finished finished = run_bench(words);
    BOOST_TEST(finished.code == 2, finished.err);
    BOOST_TEST(finished.err.find("usage: duet-bench") != std::string::npos);
  }
}

BOOST_AUTO_TEST_SUITE_END()
