// tokenizer_metadata_test.cpp: GGUF tokenizer metadata to the tokenizer document.
#include "device/package/tokenizer_metadata.hpp"
#include "tests/device/package/gguf_builder.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <boost/test/unit_test.hpp>

#include <functional>

namespace duet::device::test {
namespace {

namespace json = boost::json;

Result<std::string> convert(const GgufBuilder& builder) {
  const auto bytes = builder.build();
  return tokenizer_document(Gguf::parse(bytes, "x.gguf").value());
}

json::object object_of(const GgufBuilder& builder) {
  return json::parse(convert(builder).value()).as_object();
}

/// A byte-level tokenizer of three tokens.
GgufBuilder gpt2() {
  return GgufBuilder{}
      .text("tokenizer.ggml.model", "gpt2")
      .texts("tokenizer.ggml.tokens", {"a", "b", "ab"})
      .texts("tokenizer.ggml.merges", {"a b"});
}
GgufBuilder llama() {
  return GgufBuilder{}
      .text("tokenizer.ggml.model", "llama")
      .texts("tokenizer.ggml.tokens", {"<unk>", "<s>", "</s>", "a"})
      .f32s("tokenizer.ggml.scores", {0, 0, 0, -1.5F})
      .i32s("tokenizer.ggml.token_type", {2, 3, 3, 1});
}

void check_refused(const GgufBuilder& builder, const std::string& part) {
  const auto document = convert(builder);
  BOOST_TEST_CONTEXT("wanted: " << part << ", got: "
                                << (document.has_error() ? document.error().message : *document)) {
    BOOST_TEST(document.has_error());
    if (document.has_error()) BOOST_TEST(document.error().message.find(part) != std::string::npos);
  }
}

}   // namespace

BOOST_AUTO_TEST_SUITE(tokenizer_metadata)

// R-6.1
BOOST_AUTO_TEST_CASE(absent_keys_get_the_defaults_of_their_model) {
  const json::object bpe = object_of(gpt2());
  BOOST_TEST(bpe.at("format").as_string() == "duet-tokenizer/v1");
  BOOST_TEST(bpe.at("pre").as_string() == "default");
  BOOST_TEST(!bpe.at("add_bos").as_bool());
  BOOST_TEST(!bpe.at("add_space_prefix").as_bool());
  BOOST_TEST(bpe.at("eos_id").is_null());
  BOOST_TEST(bpe.at("chat_template").is_null());
  BOOST_TEST(bpe.at("scores").as_array().empty());
  BOOST_TEST(bpe.at("token_types").as_array().size() == 3U);
  const json::object spm = object_of(llama());
  BOOST_TEST(spm.at("add_bos").as_bool());
  BOOST_TEST(spm.at("add_space_prefix").as_bool());
  BOOST_TEST(!spm.at("add_eos").as_bool());
  BOOST_TEST(spm.at("bos_id").as_int64() == 1);
  BOOST_TEST(spm.at("eos_id").as_int64() == 2);
  BOOST_TEST(spm.at("unknown_id").as_int64() == 0);
  BOOST_TEST(spm.at("merges").as_array().empty());
  BOOST_TEST(spm.at("scores").as_array()[3].as_double() == -1.5);
  BOOST_TEST(
      object_of(
          gpt2().text("tokenizer.ggml.pre", "llama-bpe").u32("tokenizer.ggml.bos_token_id", 0))
          .at("add_bos")
          .as_bool());
}

BOOST_AUTO_TEST_CASE(given_keys_win_and_texts_survive_the_escapes) {
  const std::string text = "{{ \"q\" }}\n\t\\ \x01 \xe2\x96\x81";
  const json::object object = object_of(llama()
                                            .boolean("tokenizer.ggml.add_bos_token", false)
                                            .u32("tokenizer.ggml.eos_token_id", 3)
                                            .u32("tokenizer.ggml.eot_token_id", 2)
                                            .text("tokenizer.chat_template", text));
  BOOST_TEST(!object.at("add_bos").as_bool());
  BOOST_TEST(object.at("eos_id").as_int64() == 3);
  BOOST_TEST(object.at("eot_id").as_int64() == 2);
  BOOST_TEST(std::string(object.at("chat_template").as_string().c_str()) == text);
}

BOOST_AUTO_TEST_CASE(broken_metadata_is_refused_with_key_and_element) {
  check_refused(GgufBuilder{}, "'tokenizer.ggml.model' is missing");
  check_refused(GgufBuilder{}.text("tokenizer.ggml.model", "bert"),
                "model 'bert' is not supported");
  check_refused(gpt2().drop_key("tokenizer.ggml.tokens"), "'tokenizer.ggml.tokens' is missing");
  check_refused(gpt2().drop_key("tokenizer.ggml.merges"), "'tokenizer.ggml.merges' is missing");
  check_refused(llama().drop_key("tokenizer.ggml.scores"), "'tokenizer.ggml.scores' is missing");
  check_refused(gpt2().drop_key("tokenizer.ggml.tokens").texts("tokenizer.ggml.tokens", {}),
                "is empty");
  check_refused(
      gpt2().drop_key("tokenizer.ggml.tokens").texts("tokenizer.ggml.tokens", {"a", "\xff"}),
      "element 1 '\\xff' is not UTF-8");
  check_refused(gpt2().drop_key("tokenizer.ggml.merges").texts("tokenizer.ggml.merges", {"ab"}),
                "no pair of tokens");
  check_refused(
      gpt2().drop_key("tokenizer.ggml.merges").texts("tokenizer.ggml.merges", {"a b", "a "}),
      "element 1");
  check_refused(gpt2().i32s("tokenizer.ggml.token_type", {1, 1}), "has 2 elements for 3 tokens");
  check_refused(gpt2().i32s("tokenizer.ggml.token_type", {1, 9, 1}), "element 1: type 9");
  check_refused(llama().drop_key("tokenizer.ggml.scores").f32s("tokenizer.ggml.scores", {0, 0, 0}),
                "3 elements for 4");
  check_refused(
      llama()
          .drop_key("tokenizer.ggml.scores")
          .f32s("tokenizer.ggml.scores", {0, 0, 0, std::numeric_limits<float>::quiet_NaN()}),
      "not finite");
  check_refused(gpt2().u32("tokenizer.ggml.eos_token_id", 3), "token 3 does not exist");
  check_refused(gpt2().boolean("tokenizer.ggml.add_bos_token", true), "there is no bos_token_id");
  check_refused(gpt2().text("tokenizer.chat_template", "\xc0\x80"), "is not UTF-8");
  check_refused(gpt2().text("tokenizer.ggml.pre", "a b"), "not a plain name");
  check_refused(gpt2()
                    .drop_key("tokenizer.ggml.tokens")
                    .texts("tokenizer.ggml.tokens", {std::string(4097, 'x')}),
                "longer than 4096");
}

BOOST_AUTO_TEST_CASE(a_package_takes_documents_that_fit_its_model_only) {
  const std::string document = convert(llama()).value();
  BOOST_TEST(check_tokenizer_document(document, 4, "t").has_value());
  BOOST_TEST(check_tokenizer_document(document, 3, "t").has_error());
  BOOST_TEST(check_tokenizer_document(document.substr(0, document.size() / 2), 4, "t").has_error());
  BOOST_TEST(check_tokenizer_document("{}", 4, "t").has_error());
  std::string wrong = document;
  wrong.replace(wrong.find("\"bos_id\": 1"), 11, "\"bos_id\": 9");
  BOOST_TEST(check_tokenizer_document(wrong, 4, "t").has_error());
}

BOOST_AUTO_TEST_CASE(ordinary_tokens_are_the_normal_ones_that_have_no_special_role) {
  const auto document = [](const std::string& types, const std::string& eos) {
    return R"({"format":"duet-tokenizer/v1","tokens":["a","b","c","d","e"],"token_types":)" +
           types + R"(,"bos_id":null,"eos_id":)" + eos +
           R"(,"unknown_id":null,"padding_id":null,"eot_id":null})";
  };
  using Ids = std::vector<std::uint32_t>;
  BOOST_TEST((ordinary_tokens(document("[1,3,1,6,1]", "4"), "t").value() == Ids{0, 2}));
  BOOST_TEST((ordinary_tokens(document("[1,3,1,6,1]", "null"), "t").value() == Ids{0, 2, 4}));
  BOOST_TEST(ordinary_tokens(document("[2,3,3,6,5]", "null"), "t").value().empty());
  BOOST_TEST(ordinary_tokens(document("[1,1]", "null"), "t").has_error());
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace duet::device::test
