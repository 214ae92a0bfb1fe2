// made_up_test.cpp: the application on boards that make their answers up, so that the only right
// answer of each request can be computed beside it.
#include "actors/prompt_tokens.hpp"
#include "device/emulator/made_up_tokens.hpp"
#include "device/emulator/scripted_answers.hpp"
#include "device/package/tokenizer_metadata.hpp"
#include "service_fixture.hpp"
#include "text/token_decoder.hpp"

#include <boost/test/unit_test.hpp>

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace {

using namespace duet;   // NOLINT: the whole application
using test::chat;
using test::Collector;
using test::ServiceFixture;
using Ids = std::vector<std::uint32_t>;

/// What a made-up board must answer to a request, from the package alone.
class Foretell {
 public:
  Foretell(const device::Package& package, const std::string& model)
      : model_(model),
        tokenizer_(text::Tokenizer::from_json(package.tokenizer(model)).value()),
        ordinary_(device::ordinary_tokens(package.tokenizer(model), model).value()) {
    chat_ = text::ChatTemplate::create(tokenizer_).value();
  }

  Ids prompt(const actors::GenerateRequest& request) const {
    const actors::ModelProfile profile{request.model, tokenizer_, chat_, 4096};
    const auto prepared = actors::prepare_prompts(request, profile);
    BOOST_REQUIRE(prepared.has_value());
    return *prepared->prompts.at(0);
  }
  Ids answer(const actors::GenerateRequest& request) const {
    return device::emulator::made_up_answer(model_, prompt(request), ordinary_,
                                            *request.tokens_max);
  }
  std::string text_of(const Ids& tokens) const {
    text::TokenDecoder decoder(tokenizer_, text::DecodeFrom::continuation);
    std::string out;
    for (const std::uint32_t token : tokens) BOOST_REQUIRE(decoder.push(token, out).has_value());
    decoder.flush(out);
    return out;
  }
  const text::Tokenizer& tokenizer() const { return tokenizer_; }

 private:
  std::string model_;
  text::Tokenizer tokenizer_;
  Ids ordinary_;
  std::optional<text::ChatTemplate> chat_;
};

void shut_down_and_check(ServiceFixture& fixture, std::uint64_t requests) {
  BOOST_TEST(fixture.shut_down());
  std::uint64_t finished = 0;
  for (const actors::ModelMetrics& model : fixture.final_metrics) {
    BOOST_TEST(model.requests_running + model.requests_waiting == 0U, model.alias);
    BOOST_TEST(model.kv_slots_used == 0U, model.alias);
    BOOST_TEST(model.requests_accepted ==
               model.requests_finished + model.requests_failed + model.requests_aborted);
    BOOST_TEST(model.jobs_submitted == model.jobs_done + model.jobs_failed);
    BOOST_TEST(model.jobs_failed == 0U);
    finished += model.requests_finished;
  }
  BOOST_TEST(finished == requests);
}

}   // namespace

BOOST_AUTO_TEST_SUITE(made_up)

BOOST_AUTO_TEST_CASE(fifty_requests_at_once_each_get_the_one_right_answer) {
  for (const char* profile : {"null", "timed"}) {
    ServiceFixture fixture({}, nullptr, profile);
    BOOST_TEST(fixture.detail("golden model-a").starts_with("skipped"));
    const Foretell a(*fixture.package, "model-a");
    const Foretell b(*fixture.package, "model-b");
    struct Asked {
      std::shared_ptr<Collector> stream;
      std::string expected;
      std::uint32_t tokens;
    };
    std::vector<Asked> all;
    for (std::uint32_t i = 0; i < 50; ++i) {
      const bool first = i % 2 == 0;
      auto request = chat(first ? "model-a" : "model-b", "What is " + std::to_string(i) + " + 5?",
                          "r" + std::to_string(i));
      request.tokens_max = 10 + i;
      if (i % 5 == 4) {   // sampled: the made-up token is so likely that it comes all the same
        request.sampling.temperature = 1;
        request.sampling.seed = i;
      }
      const Foretell& model = first ? a : b;
      std::string expected = model.text_of(model.answer(request));
      const std::uint32_t tokens = *request.tokens_max;
      all.push_back({fixture.submit(std::move(request)), std::move(expected), tokens});
    }
    for (const Asked& asked : all) {
      asked.stream->wait_for_end();
      BOOST_TEST(!asked.stream->error.has_value());
      BOOST_TEST(asked.stream->text[0] == asked.expected);
      BOOST_TEST(asked.stream->usage->completion_tokens == asked.tokens);
      BOOST_TEST((asked.stream->finish[0] == actors::FinishReason::length));
    }
    shut_down_and_check(fixture, 50);
  }
}

BOOST_AUTO_TEST_CASE(a_scripted_answer_streams_split_characters_whole_and_ends_by_itself) {
  const std::string wanted = "naïve 😀 → 東京!";
  // The demo tokenizers have no such characters as tokens: each arrives in bytes.
  device::ValidateOptions options;
  options.allow_unsigned = true;
  const auto package =
      device::validate_package(std::string(DUET_BINARY_DIR) + "/demo-package", options).package;
  BOOST_REQUIRE(package != nullptr);
  const Foretell model(*package, "model-a");
  auto request = chat("model-a", "Say something.", "r1");
  Ids answer;
  BOOST_REQUIRE(model.tokenizer().encode(wanted, text::AddSpecial::no, answer).has_value());
  BOOST_TEST(answer.size() > 15U);
  device::emulator::ScriptedAnswers scripts(
      {{"model-a", model.prompt(request), answer, model.tokenizer().eos()}});
  ServiceFixture fixture({}, &scripts, "null");
  const auto said = fixture.submit(request);
  auto stopping = request;
  stopping.id = "r2";
  stopping.stop = {"→"};
  const auto stopped = fixture.submit(stopping);
  said->wait_for_end();
  stopped->wait_for_end();
  BOOST_TEST(said->text[0] == wanted);
  BOOST_TEST((said->finish[0] == actors::FinishReason::stop));
  BOOST_TEST(said->usage->completion_tokens == answer.size() + 1);
  BOOST_TEST(stopped->text[0] == wanted.substr(0, wanted.find("→")));
  BOOST_TEST((stopped->finish[0] == actors::FinishReason::stop));
  shut_down_and_check(fixture, 2);
}

BOOST_AUTO_TEST_SUITE_END()
