// test_data.hpp: where the tests of text/ find their data.
#pragma once

#include "tests/text/gguf_vocab.hpp"
#include "text/tokenizer.hpp"

#include <boost/test/unit_test.hpp>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

namespace duet::text::test {

inline std::string read_file(const std::filesystem::path& path) {
  std::ifstream file{path, std::ios::binary};
  if (!file) throw std::runtime_error("cannot read " + path.string());
  return {std::istreambuf_iterator<char>{file}, {}};
}

inline std::filesystem::path vectors_folder() {
  if (const char* folder = std::getenv("DUET_VECTORS")) return folder;
  return std::filesystem::path{DUET_SOURCE_DIR} / ".." / "shared" / "vectors";
}

/// A precondition: a test case whose data file is not there is reported as skipped, unless
/// DUET_REQUIRE_VECTORS=1 says that it must be there; then it runs and fails.
struct VectorIsThere {
  std::string file;
  boost::test_tools::assertion_result operator()(boost::unit_test::test_unit_id) const {
    const char* required = std::getenv("DUET_REQUIRE_VECTORS");
    boost::test_tools::assertion_result answer{
        std::filesystem::exists(vectors_folder() / file) ||
        (required != nullptr && std::string{required} == "1")};
    answer.message() << file << " is not in " << vectors_folder().string();
    return answer;
  }
};

inline std::filesystem::path demo_model(const std::string& name) {
  return std::filesystem::path{DUET_SOURCE_DIR} / "tools" / "demo_models" / name;
}

inline Tokenizer tokenizer_of_gguf(const std::filesystem::path& path) {
  auto made = Tokenizer::from_json(boost::json::serialize(tokenizer_document(path.string())));
  if (!made) throw std::runtime_error(path.string() + ": " + made.error().message);
  return *made;
}

inline std::string show(const std::vector<TokenId>& ids) {
  std::ostringstream out;
  for (const auto id : ids) out << id << ' ';
  return out.str();
}

inline std::vector<TokenId> encode_or_throw(const Tokenizer& tokenizer, const TemplatedText& text,
                                            AddSpecial add) {
  std::vector<TokenId> ids;
  if (auto done = tokenizer.encode(text, add, ids); !done) {
    throw std::runtime_error(done.error().message);
  }
  return ids;
}

inline std::vector<TokenId> encode_or_throw(const Tokenizer& tokenizer, std::string_view content,
                                            AddSpecial add = AddSpecial::no) {
  return encode_or_throw(tokenizer, TemplatedText{content, Origin::content}, add);
}

}   // namespace duet::text::test
