// vectors_test.cpp: token ids equal those of llama.cpp's tokenizer vectors.
#include "tests/text/test_data.hpp"
#include "text/token_decoder.hpp"

#include <boost/test/unit_test.hpp>

namespace utf = boost::unit_test;

namespace duet::text::test {
namespace {

std::vector<std::string> split(const std::string& text, const std::string& separator) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  for (auto at = text.find(separator); at != text.npos; at = text.find(separator, begin)) {
    parts.push_back(text.substr(begin, at - begin));
    begin = at + separator.size();
  }
  parts.push_back(text.substr(begin));
  return parts;
}

void compare_with_vector(const std::string& name) {
  const auto base = vectors_folder() / ("ggml-vocab-" + name + ".gguf");
  const Tokenizer tokenizer = tokenizer_of_gguf(base);
  const auto texts = split(read_file(base.string() + ".inp"), "\n__ggml_vocab_test__\n");
  auto lines = split(read_file(base.string() + ".out"), "\n");
  BOOST_REQUIRE(lines.back().empty());
  lines.pop_back();
  // The input file ends with a separator, behind which there is nothing.
  BOOST_REQUIRE_GE(texts.size(), lines.size());
  BOOST_REQUIRE_GE(lines.size(), 40U);
  for (std::size_t at = 0; at < lines.size(); ++at) {
    std::istringstream expected{lines[at]};
    const std::vector<TokenId> want{std::istream_iterator<TokenId>{expected}, {}};
    const auto ids = encode_or_throw(tokenizer, texts[at]);
    BOOST_TEST(show(ids) == show(want), name << ", text " << at << ": " << texts[at]);
    // Encoding loses nothing.
    const auto text = decode(tokenizer, ids, DecodeFrom::text_start);
    BOOST_REQUIRE(text.has_value());
    BOOST_TEST(*text == texts[at], name << ", text " << at);
  }
}

}   // namespace

// R-13.1 (tokenizer)
BOOST_AUTO_TEST_SUITE(vectors)

BOOST_AUTO_TEST_CASE(gpt2_ids_equal_llama_cpp,
                     *utf::precondition(VectorIsThere{"ggml-vocab-gpt-2.gguf"})) {
  compare_with_vector("gpt-2");
}

BOOST_AUTO_TEST_CASE(falcon_ids_equal_llama_cpp,
                     *utf::precondition(VectorIsThere{"ggml-vocab-falcon.gguf"})) {
  compare_with_vector("falcon");
}

BOOST_AUTO_TEST_CASE(llama_sentencepiece_ids_equal_llama_cpp,
                     *utf::precondition(VectorIsThere{"ggml-vocab-llama-spm.gguf"})) {
  compare_with_vector("llama-spm");
}

BOOST_AUTO_TEST_CASE(phi3_ids_equal_llama_cpp,
                     *utf::precondition(VectorIsThere{"ggml-vocab-phi-3.gguf"})) {
  compare_with_vector("phi-3");
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace duet::text::test
