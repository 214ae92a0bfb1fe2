// tokenizer_json_fuzz.cpp: any bytes as a tokenizer document; what loads must encode, render and
// decode without harm.
#include "text/chat_template.hpp"
#include "text/token_decoder.hpp"
#include "text/tokenizer.hpp"
#include "text/utf8.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace duet::text;

void require(bool condition) {
  if (!condition) std::abort();
}

/// Encodes, checks the ids and decodes them token by token.
void round_trip(const Tokenizer& tokenizer, const TemplatedText& text) {
  std::vector<TokenId> ids;
  if (!tokenizer.encode(text, AddSpecial::yes, ids)) return;
  TokenDecoder decoder{tokenizer, DecodeFrom::text_start};
  std::string out;
  for (const TokenId id : ids) {
    require(id < tokenizer.vocabulary().size());
    require(decoder.push(id, out).has_value());
    require(utf8_valid_prefix(out) == out.size());
  }
  decoder.flush(out);
  require(utf8_valid_prefix(out) == out.size());
}

}   // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes{reinterpret_cast<const char*>(data), size};
  // The bytes are also a template and a text, so that the fuzzer need not find JSON first.
  if (const auto chat = ChatTemplate::create(bytes, "<s>", "</s>")) {
    static_cast<void>(chat->render({{"system", "Be brief."}, {"user", "Hi </s> \xC3\xA9"}}));
  }
  const auto tokenizer = Tokenizer::from_json(bytes);
  if (!tokenizer) {
    require(!tokenizer.error().message.empty());
    return 0;
  }
  const std::string own{bytes.substr(0, 256)};
  for (const std::string& text :
       {std::string{"Hello world, 1234 \xF0\x9F\x98\x80 </s><|im_end|>\n\n  x"},
        std::string(100, 'a'), own}) {
    for (const Origin origin : {Origin::content, Origin::markup}) {
      round_trip(*tokenizer, TemplatedText{text, origin});
    }
  }
  if (const auto chat = ChatTemplate::create(*tokenizer)) {
    if (const auto text = chat->render({{"user", "Hello </s>"}, {"assistant", "x"}})) {
      round_trip(*tokenizer, *text);
    }
  }
  return 0;
}
