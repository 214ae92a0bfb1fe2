// service_test.cpp: requests through the whole application on the emulated board. to
//
#include "service_fixture.hpp"

#include <boost/test/unit_test.hpp>

#include <future>
#include <map>
#include <string>
#include <vector>

namespace {

using namespace duet;   // NOLINT: the whole application
using test::chat;
using test::Collector;
using test::ServiceFixture;

/// The ledger closes: every request has one end, every job too, and nothing is left.
void shut_down_and_check(ServiceFixture& fixture) {
  BOOST_TEST(fixture.shut_down());
  for (const actors::ModelMetrics& model : fixture.final_metrics) {
    BOOST_TEST(model.requests_running == 0U, model.alias);
    BOOST_TEST(model.requests_waiting == 0U, model.alias);
    BOOST_TEST(model.sequences_active == 0U, model.alias);
    BOOST_TEST(model.kv_slots_used == 0U, model.alias);
    BOOST_TEST(model.requests_accepted ==
               model.requests_finished + model.requests_failed + model.requests_aborted);
    BOOST_TEST(model.jobs_submitted == model.jobs_done + model.jobs_failed);
  }
}

}   // namespace

BOOST_AUTO_TEST_SUITE(service)

BOOST_AUTO_TEST_CASE(both_models_answer_and_the_board_is_released) {
  ServiceFixture fixture;
  const auto sum = fixture.submit(chat("model-a", "What is 47 + 385?", "r1"));
  const auto story =
      fixture.submit(chat("model-b", "Tell me a story about a brave fox and a river.", "r2"));
  sum->wait_for_end();
  story->wait_for_end();
  BOOST_TEST(!sum->error.has_value());
  BOOST_TEST(sum->text[0] == "47 + 385 = 432.");
  BOOST_TEST((sum->finish[0] == actors::FinishReason::stop));
  BOOST_TEST(sum->usage->prompt_tokens == 19U);
  BOOST_TEST(story->text[0].find("fox") != std::string::npos, story->text[0]);
  BOOST_TEST(story->text[0].find("river") != std::string::npos, story->text[0]);
  for (const actors::ModelStatus& model : fixture.service().models()) {
    BOOST_TEST((model.state == actors::WorkerState::ready));
    BOOST_TEST(model.context == 4096U);
  }
  shut_down_and_check(fixture);
  BOOST_TEST(fixture.board().counters().configures == 1U);
}

// the plan comes from the package, what is measured from the board, each of the own chip.
BOOST_AUTO_TEST_CASE(the_memory_of_each_model_is_measured_beside_its_plan) {
  ServiceFixture fixture;
  const auto measure = [&] {
    std::promise<std::vector<actors::ChipMemory>> promise;
    fixture.service().measure_memory(
        [&](std::vector<actors::ChipMemory> chips) { promise.set_value(std::move(chips)); });
    return promise.get_future().get();
  };
  fixture.submit(chat("model-b", "Tell me a story.", "r1"))->wait_for_end();
  const std::vector<actors::ChipMemory> chips = measure();
  BOOST_REQUIRE(chips.size() == 2U);
  for (std::uint32_t i = 0; i < 2; ++i) {
    const actors::ChipMemory& chip = chips[i];
    const device::Model& model = fixture.package->manifest().models[i];
    BOOST_TEST(chip.error == "");
    BOOST_TEST(chip.alias == model.alias);
    BOOST_TEST(chip.chip == model.chip);
    BOOST_TEST(chip.context == model.kv.tokens_per_slot);
    BOOST_TEST(chip.kv_slots == model.kv.slots);
    BOOST_TEST(chip.planned.chip == model.chip);
    BOOST_TEST(chip.planned.lines.size() == 8U);
    BOOST_TEST(chip.measured.chip == model.chip);
    BOOST_TEST(chip.measured.used_bytes.value() > 0U);
    BOOST_TEST(chip.measured.kv_slots_total.value() == model.kv.slots);
    BOOST_TEST(chip.measured.kv_slots_peak.value() >= 1U);   // goldens ran on both
    BOOST_TEST(!chip.measured.parts.empty());
  }
  BOOST_TEST(chips[0].planned.used != chips[1].planned.used);
  shut_down_and_check(fixture);
}

// no answer depends on its neighbours.
BOOST_AUTO_TEST_CASE(many_requests_at_once_give_the_answers_that_each_gives_alone) {
  ServiceFixture fixture;
  std::vector<actors::GenerateRequest> wanted;
  for (int i = 0; i < 12; ++i) {
    auto request = i % 3 == 2 ? chat("model-b", "Tell me a story about a shy rabbit.", "")
                              : chat("model-a", "What is " + std::to_string(i) + " + 385?", "");
    if (i % 2 == 1) {
      request.sampling.temperature = 0.8F;
      request.sampling.seed = static_cast<std::uint64_t>(100 + i);
    }
    request.tokens_max = 40;
    wanted.push_back(request);
  }
  std::vector<std::string> alone;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    wanted[i].id = "alone-" + std::to_string(i);
    const auto collector = fixture.submit(wanted[i]);
    collector->wait_for_end();
    BOOST_REQUIRE(!collector->error.has_value());
    alone.push_back(collector->text[0]);
  }
  std::vector<std::shared_ptr<Collector>> together;
  for (int round = 0; round < 4; ++round) {
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      wanted[i].id = "r" + std::to_string(round) + "-" + std::to_string(i);
      together.push_back(fixture.submit(wanted[i]));
    }
  }
  for (std::size_t i = 0; i < together.size(); ++i) {
    together[i]->wait_for_end();
    BOOST_TEST(!together[i]->error.has_value());
    BOOST_TEST(together[i]->text[0] == alone[i % alone.size()]);
    BOOST_TEST(together[i]->terminals == 1);
  }
  shut_down_and_check(fixture);
}

BOOST_AUTO_TEST_CASE(several_choices_end_each_once_and_share_the_usage) {
  ServiceFixture fixture;
  auto request = chat("model-b", "Tell me a story.", "n3");
  request.choices = 3;
  request.sampling.temperature = 0.9F;
  request.sampling.seed = 7;
  request.tokens_max = 30;
  const auto collector = fixture.submit(std::move(request));
  collector->wait_for_end();
  BOOST_REQUIRE(!collector->error.has_value());
  BOOST_TEST(collector->finish.size() == 3U);
  BOOST_TEST(collector->text.size() == 3U);
  BOOST_TEST(collector->usage->completion_tokens == 90U);
  shut_down_and_check(fixture);
}

BOOST_AUTO_TEST_CASE(what_cannot_be_served_is_refused_before_anything_starts) {
  ServiceFixture fixture;
  const auto unknown = fixture.submit(chat("model-c", "Hello", "u"));
  unknown->wait_for_end();
  BOOST_TEST((unknown->error->code == actors::errc::model_not_found));
  for (const std::size_t length : {4095U, 4096U, 4097U}) {
    auto request = chat("model-a", "", "c" + std::to_string(length));
    request.prompts = {actors::Prompt(std::vector<text::TokenId>(length, 20))};
    request.tokens_max.reset();
    const auto collector = fixture.submit(std::move(request));
    collector->wait_for_end();
    BOOST_TEST(collector->error.has_value() == (length >= 4096));
    if (!collector->error.has_value()) continue;
    BOOST_TEST((collector->error->code == actors::errc::bad_request));
    BOOST_TEST(!collector->started);
    BOOST_TEST(collector->error->message.find(std::to_string(length)) != std::string::npos);
    BOOST_TEST(collector->error->message.find("4096") != std::string::npos);
  }
  auto outside = chat("model-a", "", "v");
  outside.prompts = {actors::Prompt(std::vector<text::TokenId>{1, 2, 640})};
  const auto collector = fixture.submit(std::move(outside));
  collector->wait_for_end();
  BOOST_TEST((collector->error->code == actors::errc::bad_request));
  BOOST_TEST(collector->error->message.find("position 2") != std::string::npos);
  shut_down_and_check(fixture);
}

BOOST_AUTO_TEST_CASE(a_cancel_ends_its_request_alone_and_everything_returns_to_zero) {
  ServiceFixture fixture;
  auto longer = chat("model-b", "Tell me a story about a proud lion and a tiger.", "long");
  longer.key = "k1";
  const auto cancelled = fixture.submit(longer);
  const auto neighbour = fixture.submit(chat("model-b", "Tell me a story.", "other"));
  cancelled->wait([&] { return cancelled->deltas >= 3; });
  const auto cancel = [&](const std::string& key, bool any) {
    std::promise<actors::CancelResult> result;
    fixture.service().cancel("long", key, any,
                             [&](actors::CancelResult what) { result.set_value(what); });
    return result.get_future().get();
  };
  BOOST_TEST((cancel("k2", false) == actors::CancelResult::not_found));
  BOOST_TEST((cancel("k1", false) == actors::CancelResult::cancelled));
  cancelled->wait_for_end();
  BOOST_TEST((cancelled->error->code == actors::errc::cancelled));
  neighbour->wait_for_end();
  BOOST_TEST(!neighbour->error.has_value());
  shut_down_and_check(fixture);
  BOOST_TEST(cancelled->terminals == 1);
}

BOOST_AUTO_TEST_CASE(a_slow_reader_parks_its_request_and_not_its_neighbours) {
  ServiceFixture fixture;
  const auto slow = std::make_shared<Collector>();
  slow->slow = true;
  fixture.service().submit(chat("model-a", "Count from 1 to 60.", "slow"), slow);
  slow->wait([&] { return slow->deltas >= 1; });
  for (int i = 0; i < 10; ++i) {
    const auto neighbour =
        fixture.submit(chat("model-a", "What is 5 - 12?", "n" + std::to_string(i)));
    neighbour->wait_for_end();
    BOOST_TEST(neighbour->text[0] == "5 - 12 = -7.");
  }
  BOOST_TEST(slow->terminals == 0);
  slow->read_again();
  slow->wait_for_end();
  BOOST_TEST(!slow->error.has_value());
  BOOST_TEST(slow->text[0].find("59, 60") != std::string::npos, slow->text[0]);
  shut_down_and_check(fixture);
}

BOOST_AUTO_TEST_CASE(a_reader_that_goes_away_frees_its_slot) {
  ServiceFixture fixture;
  const auto gone = fixture.submit(chat("model-b", "Tell me a story about an old elephant.", "g"));
  gone->wait([&] { return gone->deltas >= 2; });
  gone->listener()->on_reader_gone();
  gone->wait_for_end();
  BOOST_TEST((gone->error->code == actors::errc::cancelled));
  const auto after = fixture.submit(chat("model-b", "Hello!", "after"));
  after->wait_for_end();
  shut_down_and_check(fixture);
}

BOOST_AUTO_TEST_CASE(stop_strings_and_logprobs_reach_the_stream) {
  ServiceFixture fixture;
  auto request = chat("model-a", "Count from 1 to 10.", "stop");
  request.stop = {", 5"};
  request.logprobs = true;
  request.logprobs_top = 2;
  const auto collector = fixture.submit(std::move(request));
  collector->wait_for_end();
  BOOST_TEST(collector->text[0] == "1, 2, 3, 4");
  BOOST_TEST(collector->logprobs > 4U);
  BOOST_TEST((collector->finish[0] == actors::FinishReason::stop));
  shut_down_and_check(fixture);
}

BOOST_AUTO_TEST_SUITE_END()
