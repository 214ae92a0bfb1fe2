// ctl_budget_test.cpp: what is marked, and how it is shown. R-8.1
#include "tools/ctl_budget.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/test/unit_test.hpp>

#include <string>

namespace {

namespace json = boost::json;
using duet::tools::mark_budget;
using duet::tools::show_budget;

/// An answer of one chip with one line; `line` and the others are "planned" and what is measured.
json::value answer(const std::string& line, const std::string& slots = R"("measured": 8)") {
  return json::parse(
      R"({"host": {"resident": 1048576, "resident_peak": null}, "chips": [{"chip": 0, "model": "m",
      "error": null, "context": 512, "verdict": "go", "reason": "", "dram": {"planned": 4096,
      "measured": null}, "used": {"planned": 1000, "measured": 1000}, "lines": [{"what": "kv", )" +
      line + R"(}], "kv_slots": {"planned": 8, "used": 1, "peak": 2, "booked": 3, )" + slots +
      "}}]}");
}

std::uint64_t marks(const std::string& line, unsigned bound) {
  json::value value = answer(line);
  return mark_budget(value, bound);
}

}   // namespace

BOOST_AUTO_TEST_SUITE(ctl_budget)

BOOST_AUTO_TEST_CASE(a_difference_above_the_bound_is_marked_on_either_side_and_at_it_is_not) {
  struct Row {
    std::uint64_t measured;
    unsigned bound;
    bool marked;
  };
  for (const Row& row :
       {Row{1000, 0, false}, Row{1001, 0, true}, Row{999, 0, true}, Row{1010, 1, false},
        Row{1011, 1, true}, Row{990, 1, false}, Row{989, 1, true}, Row{2000, 100, false},
        Row{2001, 100, true}, Row{0, 100, false}, Row{0, 99, true}}) {
    const std::string line = R"("planned": 1000, "peak": null, "measured": )";
    json::value value = answer(line + std::to_string(row.measured));
    BOOST_TEST(mark_budget(value, row.bound) == (row.marked ? 1U : 0U),
               row.measured << " " << row.bound);
    const json::value& told = value.at("chips").at(0).at("lines").at(0);
    BOOST_TEST(told.at("marked").as_bool() == row.marked);
    BOOST_TEST(told.at("difference").to_number<std::int64_t>() ==
               static_cast<std::int64_t>(row.measured) - 1000);
    BOOST_TEST(value.at("marked").to_number<int>() == (row.marked ? 1 : 0));
    BOOST_TEST(value.at("bound_percent").to_number<unsigned>() == row.bound);
  }
}

BOOST_AUTO_TEST_CASE(what_was_not_measured_is_never_marked_and_shown_as_such) {
  json::value value = answer(R"("planned": 1000, "measured": null, "peak": null)");
  BOOST_TEST(mark_budget(value, 0) == 0U);
  const json::value& line = value.at("chips").at(0).at("lines").at(0);
  BOOST_TEST(line.at("difference").is_null());
  const std::string text = show_budget(value);
  BOOST_TEST(
      text.find("  kv                     0.00 MiB   not measured            -   not measured\n") !=
          std::string::npos,
      text);
  BOOST_TEST(text.find("host: 1.00 MiB resident, not measured at most\n") != std::string::npos,
             text);
  BOOST_TEST(text.find("nothing that was measured is more than 0 % beside") != std::string::npos,
             text);
}

BOOST_AUTO_TEST_CASE(more_in_use_than_planned_is_marked_whatever_is_set_aside) {
  BOOST_TEST(marks(R"("planned": 1000, "measured": 1000, "peak": 1000)", 0) == 0U);
  BOOST_TEST(marks(R"("planned": 1000, "measured": 1000, "peak": 1001)", 100) == 1U);
  BOOST_TEST(marks(R"("planned": 1000, "measured": null, "peak": 1001)", 100) == 1U);
  BOOST_TEST(marks(R"("planned": 0, "measured": 1, "peak": null)", 100) == 1U);   // unplanned
}

BOOST_AUTO_TEST_CASE(marked_lines_slots_and_the_reason_for_no_measurement_are_shown) {
  json::value value =
      answer(R"("planned": 1048576, "measured": 1572864, "peak": 524288)", R"("measured": 6)");
  value.at("chips").at(0).as_object()["error"] = "the driver was lost";
  BOOST_TEST(mark_budget(value, 1) == 2U);
  const std::string text = show_budget(value);
  for (const char* part :
       {"chip 0 (m): go, context 512\n", "  nothing could be measured: the driver was lost\n",
        "* kv                     1.00 MiB       1.50 MiB      +524288       0.50 MiB\n",
        "* kv slots                      8              6           -2              2\n",
        "  kv slots in use: 1 by the board, 3 by the server's books\n",
        "2 marked (*): more than 1 % beside the plan, or more in use than planned\n"}) {
    BOOST_TEST(text.find(part) != std::string::npos, part << "\n" << text);
  }
}

BOOST_AUTO_TEST_CASE(an_answer_of_another_form_or_with_absurd_numbers_is_refused) {
  for (const char* text :
       {"{}", "[]", "7", R"({"chips": 1})", R"({"chips": [1]})", R"({"chips": [{"lines": []}]})"}) {
    json::value value = json::parse(text);
    BOOST_CHECK_THROW(mark_budget(value, 1), std::exception);
  }
  for (const char* line :
       {R"("planned": null, "measured": 1)", R"("planned": -1, "measured": 1)",
        R"("planned": "1", "measured": 1)", R"("planned": 18446744073709551615, "measured": 1)",
        R"("planned": 1, "measured": 1125899906842625)", R"("planned": 1)"}) {
    json::value value = answer(line);
    BOOST_CHECK_THROW(mark_budget(value, 1), std::exception);
  }
  BOOST_CHECK_THROW((void)show_budget(answer(R"("planned": 1, "measured": 1)")), std::exception);
}

BOOST_AUTO_TEST_SUITE_END()
