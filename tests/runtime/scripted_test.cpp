// scripted_test.cpp: tests by script: step, expect, forbid, inject, reorder, advance.
#include "runtime/blocking.hpp"
#include "runtime/simulation/script.hpp"
#include "tests/runtime/actor_fixture.hpp"

#include <boost/asio/post.hpp>
#include <boost/test/unit_test.hpp>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace duet;   // NOLINT(google-build-using-namespace)
using namespace duet::test;
using runtime::Behaviour;
using runtime::Ref;
using runtime::Self;
using runtime::simulation::Probe;
using runtime::simulation::Script;
using runtime::simulation::ScriptError;

using Names = std::vector<std::string>;

/// Passes work on as results, urgent cancels at once; asks its neighbour on a question; a gauge
/// makes a timer.
class Relay final : public runtime::HandlerActor<Relay, Language> {
 public:
  explicit Relay(Ref<Language> next) : next_(std::move(next)) {}
  void on(Work work) { static_cast<void>(next_.send(Result{work.number})); }
  void on(Cancel cancel) { static_cast<void>(next_.send(cancel)); }
  void on(Result result) { static_cast<void>(next_.send(Gauge{result.number})); }
  void on(Gauge) { send_after(250ms, Result{99}); }
  void on(Question question) {
    const auto answer = std::make_shared<Question>(std::move(question));
    ask(next_, Question(answer->number), 100ms, [answer](const runtime::AskResult<int>& result) {
      answer->reply(result.has_value() ? *result + 1 : -1);
    });
  }
  void on(runtime::Stop) { finish(); }

 private:
  Ref<Language> next_;
};

Behaviour waits_and_asks(Self<Language> self, Ref<Language> next, int* answer) {
  const Language first = co_await self.receive();
  const auto& work = std::get<Work>(first);
  co_await self.sleep(1s);
  const auto result = co_await self.ask(next, Question(work.number), 100ms);
  *answer = result.has_value() ? *result : -1;
}

/// The text of the ScriptError that `function` throws; empty if it throws none.
std::string error_of(const std::function<void()>& function) {
  try {
    function();
  } catch (const ScriptError& error) {
    return error.what();
  }
  return "";
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

struct Stage {
  Script script;
  Probe<Language> next = script.probe<Language>("next");
  Ref<Language> relay = script.system().spawn<Relay>("relay", next.ref());
};

}   // namespace

BOOST_AUTO_TEST_SUITE(scripted)

BOOST_AUTO_TEST_CASE(a_step_handles_one_message_of_the_chosen_actor) {
  Stage stage;
  stage.script.inject(stage.relay, Work{1});
  stage.script.inject(stage.relay, Work{2});
  BOOST_TEST((stage.script.mailbox(stage.relay.address()) == Names{"Work", "Work"}));
  stage.script.step(stage.relay);
  BOOST_TEST((stage.script.mailbox(stage.relay.address()) == Names{"Work"}));
  BOOST_TEST((stage.script.mailbox(stage.next.ref().address()) == Names{"Result"}));
  stage.script.step(stage.relay);
  BOOST_TEST((stage.script.mailbox(stage.next.ref().address()) == Names{"Result", "Result"}));
  const auto is_two = [](const Result& result) { return result.number == 2; };
  BOOST_TEST(stage.script.expect<Result>(stage.next.ref(), is_two).number == 2);
  BOOST_TEST(stage.script.expect<Result>(stage.next.ref()).number == 1);   // the first
}

BOOST_AUTO_TEST_CASE(a_step_of_an_actor_that_has_nothing_to_do_is_an_error_that_says_so) {
  Stage stage;
  stage.script.step(stage.relay);   // its beginning
  const std::string error = error_of([&stage] { stage.script.step(stage.relay); });
  BOOST_TEST(has(error, "step: relay: waiting for message"), error);
  BOOST_TEST(has(error, "there are ready: nothing"), error);
  BOOST_TEST(!stage.script.step());
}

BOOST_AUTO_TEST_CASE(what_is_expected_and_not_there_is_an_error_that_lists_the_mailbox) {
  Stage stage;
  stage.script.inject(stage.relay, Work{1});
  stage.script.step(stage.relay);
  const std::string error = error_of([&stage] { stage.script.expect<Cancel>(stage.next.ref()); });
  BOOST_TEST(has(error, "expected Cancel for next"), error);
  BOOST_TEST(has(error, "in its mailbox: Result"), error);
  const auto is_two = [](const Result& result) { return result.number == 2; };
  BOOST_TEST(error_of([&] { stage.script.expect<Result>(stage.next.ref(), is_two); }) != "");
}

BOOST_AUTO_TEST_CASE(what_is_forbidden_is_found_in_the_step_that_sends_it) {
  Stage stage;
  const auto is_two = [](const Result& result) { return result.number == 2; };
  stage.script.forbid<Result>(stage.next.ref(), is_two);
  stage.script.forbid<Cancel>(stage.next.ref());
  stage.script.inject(stage.relay, Work{1});
  stage.script.step(stage.relay);
  stage.script.inject(stage.relay, Work{2});
  std::string error = error_of([&stage] { stage.script.step(stage.relay); });
  BOOST_TEST(has(error, "forbidden: Result came to next"), error);
  stage.script.allow_all();
  stage.script.inject(stage.relay, Cancel{1});
  stage.script.step(stage.relay);
  error = error_of([&stage] { stage.script.forbid<Cancel>(stage.next.ref()); });
  BOOST_TEST(has(error, "forbidden: Cancel"), error);
}

BOOST_AUTO_TEST_CASE(an_urgent_message_is_handled_before_those_that_came_earlier) {
  Stage stage;
  stage.script.inject(stage.relay, Work{1});
  stage.script.inject(stage.relay, Cancel{2});
  BOOST_TEST((stage.script.mailbox(stage.relay.address()) == Names{"Cancel", "Work"}));
  stage.script.step(stage.relay);
  BOOST_TEST(stage.script.expect<Cancel>(stage.next.ref()).number == 2);
}

BOOST_AUTO_TEST_CASE(time_stands_still_until_it_is_advanced) {
  Stage stage;
  stage.script.inject(stage.relay, Gauge{1});
  stage.script.settle();
  stage.script.advance(249ms);
  BOOST_TEST(!stage.script.is_ready(stage.relay.address()));
  stage.script.advance(1ms);
  BOOST_TEST((stage.script.mailbox(stage.relay.address()) == Names{"timer"}));
  BOOST_TEST(stage.script.mailbox(stage.next.ref().address()).empty());   // nothing ran yet
  stage.script.step(stage.relay);
  BOOST_TEST(stage.script.expect<Gauge>(stage.next.ref()).number == 99);
}

BOOST_AUTO_TEST_CASE(two_that_are_ready_change_their_places) {
  Script script;
  std::vector<std::string> log;
  const auto a = script.system().spawn<Recorder>("a", log);
  const auto b = script.system().spawn<Recorder>("b", log);
  const auto c = script.system().spawn<Recorder>("c", log);
  script.settle();
  script.inject(a, Result{1});
  script.inject(b, Result{2});
  script.inject(c, Result{3});
  BOOST_TEST((script.line() == Names{"a", "b", "c"}));
  script.reorder(a, c);
  BOOST_TEST((script.line() == Names{"c", "b", "a"}));
  script.settle();
  BOOST_TEST((log == Names{"result 3", "result 2", "result 1"}));
  BOOST_TEST(has(error_of([&] { script.reorder(a, b); }), "reorder: a"));
}

BOOST_AUTO_TEST_CASE(a_probe_is_asked_and_answers) {
  Stage stage;
  int answer = 0;
  const auto asker = stage.script.system().spawn("asker", waits_and_asks, stage.relay, &answer);
  stage.script.inject(asker, Work{20});
  stage.script.settle();
  stage.script.advance(1s);
  stage.script.step(asker);         // its timer; asks
  stage.script.step(stage.relay);   // the question; asks the next one
  BOOST_TEST(stage.script.expect<Question>(stage.next.ref()).number == 20);
  Question question = stage.script.take<Question>(stage.next);
  question.reply(41);
  stage.script.settle();
  BOOST_TEST(answer == 42);
}

BOOST_AUTO_TEST_CASE(an_answer_and_a_timeout_race_as_the_script_wants) {
  for (const bool in_time : {true, false}) {
    Stage stage;
    int answer = 0;
    const auto asker =
        stage.script.system().spawn("asker", waits_and_asks, stage.next.ref(), &answer);
    stage.script.inject(asker, Work{1});
    stage.script.settle();
    stage.script.advance(1s);
    stage.script.settle();
    Question question = stage.script.take<Question>(stage.next);
    if (!in_time) stage.script.advance(100ms);
    question.reply(7);
    if (in_time) stage.script.advance(100ms);
    stage.script.step(asker);   // whichever came first
    BOOST_TEST(answer == (in_time ? 7 : -1));
  }
}

BOOST_AUTO_TEST_CASE(taking_another_type_than_the_first_is_an_error) {
  Stage stage;
  stage.script.inject(stage.relay, Work{1});
  stage.script.step(stage.relay);
  BOOST_TEST(error_of([&] { static_cast<void>(stage.script.take<Gauge>(stage.next)); }) != "");
  BOOST_TEST(stage.script.take<Result>(stage.next).number == 1);
  BOOST_TEST(error_of([&] { static_cast<void>(stage.script.take<Result>(stage.next)); }) != "");
}

BOOST_AUTO_TEST_CASE(an_injection_that_is_refused_is_an_error) {
  Stage stage;
  stage.script.inject(stage.relay, runtime::Stop{});
  stage.script.settle();
  const std::string error = error_of([&stage] { stage.script.inject(stage.relay, Work{1}); });
  BOOST_TEST(has(error, "inject Work: "), error);
  BOOST_TEST(has(error_of([&] { stage.script.step(stage.relay); }), "ended"));
  BOOST_TEST(error_of([&] { stage.script.expect<Work>(stage.relay); }) != "");
}

BOOST_AUTO_TEST_CASE(two_actors_that_never_rest_end_a_settle) {
  Script script;
  const auto first = script.probe<Language>("first");
  const auto a = script.system().spawn<Relay>("a", first.ref());
  script.inject(a, Gauge{1});
  script.settle(10);
  boost::asio::post(script.simulation().executor(), [] {});
  BOOST_TEST((script.line() == Names{""}));
  std::function<void()> again = [&] { boost::asio::post(script.simulation().executor(), again); };
  again();
  BOOST_TEST(has(error_of([&script] { script.settle(50); }), "after 50 steps"));
  again = [] {};
  script.settle();
}

BOOST_AUTO_TEST_CASE(a_blocking_call_comes_back_when_time_goes_on) {
  Script script;
  const auto probe = script.probe<Language>("probe");
  const auto lane = script.system().completions().open_lane("lane", 1);
  const auto function = [] { return Result{5}; };
  BOOST_TEST(runtime::call_blocking(*lane, probe.ref(), function, function));
  BOOST_TEST(script.mailbox(probe.ref().address()).empty());
  script.advance(1s);
  BOOST_TEST(script.take<Result>(probe).number == 5);
}

BOOST_AUTO_TEST_SUITE_END()
