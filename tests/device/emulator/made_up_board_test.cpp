// made_up_board_test.cpp: boards that make their tokens up: timed, null, and scripts on both.
#include "device/emulator/made_up_tokens.hpp"
#include "device/emulator/scripted_answers.hpp"
#include "tests/device/emulator/core_rig.hpp"
#include "tests/device/emulator/threaded_rig.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <chrono>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace duet::device::emulator {
namespace {

using fixture::Rig;
using Tokens = std::vector<std::uint32_t>;

std::unique_ptr<Rig> made_up_rig(const std::string& profile, FaultHook* faults = nullptr) {
  auto rig = std::make_unique<Rig>(1, faults);
  rig->options.profile = *find_profile(profile);
  rig->options.profile.dram_bytes_per_chip = 1 << 20;
  // A program that cannot be built shows that none is.
  rig->refuse_programs = "a board that makes tokens up builds no program";
  return rig;
}

std::uint32_t best(std::span<const float> logits) {
  return static_cast<std::uint32_t>(std::max_element(logits.begin(), logits.end()) -
                                    logits.begin());
}

/// A prefill of `prompt` and decodes of what it answers, greedy; empty if a call failed.
Tokens answer_of(Rig& rig, std::uint32_t chip, SequenceId sequence, const Tokens& prompt,
                 std::size_t tokens, std::size_t which = 0) {
  ThreadedBoard& board = *rig.board;
  Tokens answer;
  Tokens fresh = prompt;
  std::uint32_t past = 0;
  while (answer.size() < tokens) {
    const GraphHandle graph = chip * 2 + (answer.empty() ? 0 : 1);
    const auto count = static_cast<std::uint32_t>(fresh.size());
    if (board.kv_reserve(chip, 1, sequence, count).has_error()) return {};
    const auto ticket = board.submit(rig.job(graph, sequence, past, fresh, which));
    if (ticket.has_error()) return {};
    const auto end = board.wait(ticket.value(), no_deadline);
    if (end.has_error() || end->status) return {};
    if (board.kv_commit(chip, 1, sequence, count).has_error()) return {};
    past += count;
    answer.push_back(best(rig.io[graph][which].logits));
    fresh = {answer.back()};
  }
  if (board.kv_release(chip, 1, sequence).has_error()) return {};
  return answer;
}

BOOST_AUTO_TEST_SUITE(made_up_board_test)

BOOST_AUTO_TEST_CASE(a_sequence_hash_depends_on_model_every_token_and_their_order) {
  const auto hash = [](std::string_view model, const Tokens& tokens) {
    SequenceHash sequence = empty_sequence(model);
    for (const std::uint32_t token : tokens) sequence = append_token(sequence, token);
    return sequence;
  };
  std::set<SequenceHash> seen;
  const std::vector<Tokens> lists{{}, {0}, {1}, {0, 0}, {0, 1}, {1, 0}, {0, 0, 0}, {5, 6, 7}};
  for (const char* model : {"a", "b", "ab", ""}) {
    for (const Tokens& tokens : lists) seen.insert(hash(model, tokens));
  }
  BOOST_TEST(seen.size() == 4 * lists.size());
}

BOOST_AUTO_TEST_CASE(made_up_tokens_are_ordinary_ones_and_all_of_them_come) {
  const Tokens ordinary{2, 3, 5, 7};
  const Tokens answer = made_up_answer("a", Tokens{1, 2}, ordinary, 400);
  BOOST_TEST(answer.size() == 400U);
  for (const std::uint32_t token : ordinary) {
    const auto times = std::count(answer.begin(), answer.end(), token);
    BOOST_TEST(times > 60);   // of 100; a fair coin misses this once in 10^5 keys, and this is one.
    BOOST_TEST(times < 140);
  }
}

BOOST_AUTO_TEST_CASE(no_profile_of_another_name_is_found_and_outputs_are_said_to_be_made_up) {
  BOOST_TEST(!find_profile("nul").has_value());
  BOOST_TEST(topology_of(*find_profile("combined")).real_outputs);
  BOOST_TEST(!topology_of(*find_profile("null")).real_outputs);
  BOOST_TEST(!topology_of(*find_profile("timed")).real_outputs);
  Profile wrong = *find_profile("null");
  wrong.transfers = TransferTiming::performed;
  BOOST_CHECK_THROW(check_profile(wrong), std::invalid_argument);
}

BOOST_AUTO_TEST_CASE(a_null_job_has_ended_before_anybody_waits_and_answers_what_the_hash_says) {
  const auto rig = made_up_rig("null");
  ThreadedBoard& board = rig->configured();
  const JobTicket ticket = rig->start(fixture::a_prefill, 5, 0, {3, 4, 5});
  const auto end = board.wait(ticket, fixture::past_deadline);
  BOOST_REQUIRE(end.has_value());
  BOOST_TEST(!end->status.failed());
  BOOST_TEST(end->times.compute_begin == end->times.compute_end);
  const Tokens expected = made_up_answer("a", Tokens{3, 4, 5}, rig->package.ordinary, 1);
  BOOST_TEST(best(rig->io[fixture::a_prefill][0].logits) == expected[0]);
}

BOOST_AUTO_TEST_CASE(both_kinds_answer_the_same_on_each_chip) {
  for (const char* profile : {"null", "timed"}) {
    const auto rig = made_up_rig(profile);
    rig->configured();
    for (const std::uint32_t chip : {0U, 1U}) {
      const Tokens prompt{1, 2, chip};
      const Tokens expected =
          made_up_answer(chip == 0 ? "a" : "b", prompt, rig->package.ordinary, 20);
      const Tokens answer = answer_of(*rig, chip, chip * 1000 + 7, prompt, 20);
      BOOST_TEST(answer == expected, boost::test_tools::per_element());
    }
  }
}

BOOST_AUTO_TEST_CASE(only_the_chosen_logit_is_not_zero_however_often_the_buffer_was_used) {
  const auto rig = made_up_rig("null");
  rig->configured();
  answer_of(*rig, 0, 7, {1, 2, 3}, 25);
  for (const std::uint32_t graph : {fixture::a_prefill, fixture::a_decode}) {
    const auto logits = rig->io[graph][0].logits;
    BOOST_TEST(std::count(logits.begin(), logits.end(), 0.0F) ==
               static_cast<std::ptrdiff_t>(logits.size()) - 1);
    BOOST_TEST(logits[best(logits)] == made_up_logit);
  }
}

BOOST_AUTO_TEST_CASE(a_rolled_back_position_leaves_no_trace_in_the_answer) {
  const auto rig = made_up_rig("null");
  ThreadedBoard& board = rig->configured();
  BOOST_REQUIRE(board.wait(rig->start(fixture::a_prefill, 5, 0, {3, 4, 5}), no_deadline));
  BOOST_REQUIRE(board.kv_commit(0, 1, 5, 3).has_value());
  BOOST_REQUIRE(board.wait(rig->start(fixture::a_decode, 5, 3, {9}), no_deadline));
  BOOST_REQUIRE(board.kv_rollback(0, 1, 5).has_value());
  BOOST_REQUIRE(board.wait(rig->start(fixture::a_decode, 5, 3, {6}), no_deadline));
  const Tokens expected = made_up_answer("a", Tokens{3, 4, 5, 6}, rig->package.ordinary, 1);
  BOOST_TEST(best(rig->io[fixture::a_decode][0].logits) == expected[0]);
}

BOOST_AUTO_TEST_CASE(sequences_that_run_between_each_other_do_not_mix) {
  const auto rig = made_up_rig("timed");
  rig->options.profile.job_overhead = 1'000;
  rig->configured();
  std::vector<Tokens> answers(4);
  std::vector<std::thread> threads;
  for (std::uint32_t i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      answers[i] = answer_of(*rig, i % 2, (i % 2) * 1000 + 10 + i, {1, i}, 25, i / 2);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (std::uint32_t i = 0; i < 4; ++i) {
    const Tokens expected =
        made_up_answer(i % 2 == 0 ? "a" : "b", Tokens{1, i}, rig->package.ordinary, 25);
    BOOST_TEST(answers[i] == expected, boost::test_tools::per_element());
  }
  const Counters counters = rig->board->counters();
  BOOST_TEST(counters.jobs_submitted == 100U);
  BOOST_TEST(counters.jobs_done == 100U);
}

BOOST_AUTO_TEST_CASE(a_timed_job_takes_the_longer_of_its_reads_and_its_multiply_adds) {
  Profile profile = fixture::modelled();
  profile.compute = Compute::timed;
  profile.dram_bytes_per_second = 1'000'000'000;    // a byte a nanosecond
  profile.operations_per_second = 10'000'000'000;   // ten a nanosecond
  profile.job_overhead = 5;
  Manifest manifest = fixture::manifest();
  for (Model& model : manifest.models) {
    Tensor tensor;
    tensor.name = "weights";
    tensor.shape = {100, 10};
    tensor.bytes = 1000;
    model.tensors.push_back(tensor);
  }
  BoardCore core{profile};
  BOOST_REQUIRE(core.open(0).has_value());
  BOOST_REQUIRE(core.load(manifest, fixture::hash, 0).has_value());
  BOOST_REQUIRE(core.begin_configure(0).has_value());
  core.finish_configure();
  const Tokens ids(fixture::context, 1);
  const auto run = [&](GraphHandle graph, std::uint32_t past, std::uint32_t tokens,
                       ChipNanoseconds now) {
    const std::uint64_t io = core.allocate_io(graph).value();
    BOOST_REQUIRE(core.kv_reserve(0, 1, 5, tokens).has_value());
    VendorJob job;
    job.graph = graph;
    job.generation = 1;
    job.sequence = 5;
    job.past = past;
    job.tokens = tokens;
    job.buffers = io;
    const JobTicket ticket = core.submit(job, ids, now).value();
    while (core.next_event()) {
      core.advance(*core.next_event());
      while (const auto action = core.next_action()) {
        if (const auto* start = std::get_if<StartCompute>(&*action)) {
          core.compute_done(start->ticket, {}, start->at, start->at);
        }
      }
    }
    const auto end = core.take_end(ticket);
    BOOST_REQUIRE(end.has_value() && end->has_value());
    BOOST_REQUIRE(core.kv_commit(0, 1, 5, tokens).has_value());
    return (**end).times;
  };
  // 20 tokens: 20 · 2000 operations at ten a nanosecond beat 1000 + 20 · 32 bytes.
  const JobTimes prefill = run(fixture::a_prefill, 0, 20, 100);
  BOOST_TEST(prefill.h2d_begin == 100U);
  BOOST_TEST(prefill.compute_begin == 120U);   // 80 bytes over a link of 4 a nanosecond
  BOOST_TEST(prefill.compute_end - prefill.compute_begin == 5U + 4000U);
  BOOST_TEST(prefill.d2h_end - prefill.d2h_begin == 16U);
  // One token: 1000 bytes of weights and 21 positions of 4 · 2 · 1 · 4 bytes beat 200 ns.
  const JobTimes decode = run(fixture::a_decode, 20, 1, 10'000);
  BOOST_TEST(decode.compute_end - decode.compute_begin == 5U + 1000U + 21U * 32U);
}

BOOST_AUTO_TEST_CASE(a_reset_ends_a_timed_job_at_once) {
  const auto rig = made_up_rig("timed");
  rig->options.profile.job_overhead = 3'600'000'000'000;   // an hour
  ThreadedBoard& board = rig->configured();
  const JobTicket ticket = rig->start(fixture::a_prefill, 5, 0, {3, 4, 5});
  std::thread waiter([&] {
    const auto end = board.wait(ticket, no_deadline);
    if (end.has_value() && end->status == errc::stale_generation) rig->jobs = 1000;
  });
  BOOST_TEST(board.reset(ResetScope::chip, 0).has_value());
  waiter.join();
  BOOST_TEST(rig->jobs == 1000U);
}

BOOST_AUTO_TEST_CASE(a_wait_for_a_timed_job_gives_up_at_its_deadline_and_the_job_goes_on) {
  const auto rig = made_up_rig("timed");
  rig->options.profile.job_overhead = 3'600'000'000'000;
  ThreadedBoard& board = rig->configured();
  const JobTicket ticket = rig->start(fixture::a_prefill, 5, 0, {3, 4, 5});
  const auto end = board.wait(ticket, fixture::past_deadline);
  BOOST_REQUIRE(end.has_error());
  BOOST_TEST((end.error().code == errc::wait_timeout));
  BOOST_TEST((board.cancel(ticket).value() == CancelEffect::delivery_only));
  BOOST_TEST(board.counters().jobs_done == 0U);
}

BOOST_AUTO_TEST_CASE(faults_reach_made_up_jobs_too) {
  for (const char* profile : {"null", "timed"}) {
    fixture::OneFault fault{FaultPoint::compute_start, Fault::spoil_output()};
    const auto rig = made_up_rig(profile, &fault);
    ThreadedBoard& board = rig->configured();
    const auto end = board.wait(rig->start(fixture::a_prefill, 5, 0, {3, 4, 5}), no_deadline);
    BOOST_REQUIRE(end.has_value());
    BOOST_TEST((end->status == errc::bad_output));
    // The next one is as if nothing had been.
    BOOST_REQUIRE(board.kv_release(0, 1, 5).has_value());
    const Tokens answer = answer_of(*rig, 0, 6, {3, 4, 5}, 3);
    const Tokens expected = made_up_answer("a", Tokens{3, 4, 5}, rig->package.ordinary, 3);
    BOOST_TEST(answer == expected, boost::test_tools::per_element());
  }
}

BOOST_AUTO_TEST_CASE(a_script_is_followed_for_its_prompt_and_model_alone_and_ends_as_it_says) {
  ScriptedAnswers scripts{{{"a", {1, 2}, {0, 2, 0}, 1},   // 0, 1, 2 are no ordinary tokens here
                           {"a", {1, 2}, {2, 2, 2}, 2},   // the prompt has its answer already
                           {"a", {2, 1}, {2}, std::nullopt}}};
  const auto rig = made_up_rig("null", &scripts);
  rig->configured();
  const Tokens& ordinary = rig->package.ordinary;
  const Tokens scripted = answer_of(*rig, 0, 5, {1, 2}, 4);
  BOOST_TEST(scripted == (Tokens{0, 2, 0, 1}), boost::test_tools::per_element());
  const Tokens open = answer_of(*rig, 0, 6, {2, 1}, 3);
  const Tokens after = made_up_answer("a", Tokens{2, 1, 2}, ordinary, 2);
  BOOST_TEST(open == (Tokens{2, after[0], after[1]}), boost::test_tools::per_element());
  const Tokens other_model = answer_of(*rig, 1, 1005, {1, 2}, 4);
  BOOST_TEST(other_model == made_up_answer("b", Tokens{1, 2}, ordinary, 4),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_scripted_token_outside_the_vocabulary_is_ignored) {
  ScriptedAnswers scripts{{{"a", {1, 2}, {fixture::vocabulary}, std::nullopt}}};
  const auto rig = made_up_rig("null", &scripts);
  rig->configured();
  const Tokens answer = answer_of(*rig, 0, 5, {1, 2}, 2);
  BOOST_TEST(answer == made_up_answer("a", Tokens{1, 2}, rig->package.ordinary, 2),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_tokenizer_without_ordinary_tokens_cannot_be_configured) {
  const auto rig = made_up_rig("null");
  rig->package.ordinary.clear();
  ThreadedBoard& board = rig->make();
  BOOST_REQUIRE(board.open().has_value());
  BOOST_REQUIRE(board.load_package("demo").has_value());
  const auto configured = board.configure();
  BOOST_REQUIRE(configured.has_error());
  BOOST_TEST((configured.error().code == errc::package_invalid));
  BOOST_TEST(board.current_hash().value().empty());
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace
}   // namespace duet::device::emulator
