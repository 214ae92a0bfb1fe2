// golden_test.cpp: the demo models' templates and tokenizers give the goldens' texts and ids.
#include "tests/text/test_data.hpp"
#include "text/chat_template.hpp"
#include "text/token_decoder.hpp"

#include <boost/json/parse.hpp>
#include <boost/test/unit_test.hpp>

namespace duet::text::test {
namespace {

std::string as_string(const boost::json::value& value) {
  return {value.as_string().data(), value.as_string().size()};
}

std::vector<TokenId> as_ids(const boost::json::value& value) {
  std::vector<TokenId> ids;
  for (const auto& id : value.as_array()) ids.push_back(static_cast<TokenId>(id.as_int64()));
  return ids;
}

void compare_with_golden(const std::string& name, const std::string& quantisation,
                         std::size_t prompts_expected) {
  const auto tokenizer = tokenizer_of_gguf(demo_model(name + "-" + quantisation + ".gguf"));
  const auto chat = ChatTemplate::create(tokenizer);
  BOOST_REQUIRE_MESSAGE(chat.has_value(), chat.error().message);
  const auto golden = boost::json::parse(read_file(demo_model(name + ".golden.json")));
  const auto& prompts = golden.as_object().at("prompts").as_array();
  BOOST_TEST(prompts.size() == prompts_expected);
  for (const auto& value : prompts) {
    const auto& prompt = value.as_object();
    const std::string rendered = as_string(prompt.at("rendered"));
    TemplatedText text;
    if (const auto* messages = prompt.if_contains("messages")) {
      ChatInput input;
      input.messages = &messages->as_array();
      const auto made = chat->render(input);
      BOOST_REQUIRE_MESSAGE(made.has_value(), made.error().message);
      text = *made;
    } else {
      text.append(as_string(prompt.at("prompt")), Origin::content);
    }
    BOOST_TEST(text.text() == rendered);
    BOOST_TEST(show(encode_or_throw(tokenizer, text, AddSpecial::yes)) ==
                   show(as_ids(prompt.at("prompt_ids"))),
               name << ": " << rendered);
    const auto& answer = prompt.at(quantisation).as_object();
    const auto decoded =
        decode(tokenizer, as_ids(answer.at("output_ids")), DecodeFrom::continuation);
    BOOST_REQUIRE(decoded.has_value());
    BOOST_TEST(*decoded == as_string(answer.at("text")));
  }
  for (const auto& stop : golden.as_object().at("stop_ids").as_array()) {
    BOOST_TEST(tokenizer.is_stop_token(static_cast<TokenId>(stop.as_int64())));
  }
  BOOST_TEST(tokenizer.stop_tokens().size() == golden.as_object().at("stop_ids").as_array().size());
}

}   // namespace

// R-13.1 (golden, tokenizer, context)
BOOST_AUTO_TEST_SUITE(goldens)

BOOST_AUTO_TEST_CASE(abacus_prompts_and_answers_equal_the_goldens) {
  compare_with_golden("abacus", "q8_0", 53);
  compare_with_golden("abacus", "f16", 53);
}

BOOST_AUTO_TEST_CASE(fable_prompts_and_answers_equal_the_goldens) {
  compare_with_golden("fable", "q8_0", 48);
  compare_with_golden("fable", "f16", 48);
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace duet::text::test
