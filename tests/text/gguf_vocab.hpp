// gguf_vocab.hpp: reads the tokenizer of a GGUF file into our tokenizer document, for tests alone.
// The product's reader is device/package/'s; text/ may not know it, so its tests bring their own.
#pragma once

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <stdexcept>
#include <string>

namespace duet::text::test {

/// Throws std::runtime_error when the file is cut or has a type that is not in GGUF version 3.
class GgufMetadata {
 public:
  explicit GgufMetadata(const std::string& path) {
    std::ifstream file{path, std::ios::binary};
    if (!file) throw std::runtime_error("cannot read " + path);
    bytes_.assign(std::istreambuf_iterator<char>{file}, {});
    if (bytes_.substr(0, 4) != "GGUF") throw std::runtime_error(path + " is no GGUF file");
    at_ = 4;
    if (number<std::uint32_t>() != 3) throw std::runtime_error(path + " is not GGUF version 3");
    number<std::uint64_t>();   // tensors
    const auto count = number<std::uint64_t>();
    for (std::uint64_t i = 0; i < count; ++i) {
      std::string key = text();
      const auto type = number<std::uint32_t>();
      values_.emplace(std::move(key), value(type));
    }
  }

  /// Null when the key is not there.
  [[nodiscard]] boost::json::value get(const std::string& key) const {
    const auto found = values_.find(key);
    return found == values_.end() ? boost::json::value{} : found->second;
  }

 private:
  template <typename T>
  T number() {
    T out;
    if (bytes_.size() - at_ < sizeof out) throw std::runtime_error("GGUF file is cut");
    std::memcpy(&out, bytes_.data() + at_, sizeof out);
    at_ += sizeof out;
    return out;
  }

  std::string text() {
    const auto size = number<std::uint64_t>();
    if (size > bytes_.size() - at_) throw std::runtime_error("GGUF file is cut");
    at_ += size;
    return bytes_.substr(at_ - size, size);
  }

  boost::json::value value(std::uint32_t type) {
    switch (type) {
      case 0:
        return number<std::uint8_t>();
      case 1:
        return number<std::int8_t>();
      case 2:
        return number<std::uint16_t>();
      case 3:
        return number<std::int16_t>();
      case 4:
        return number<std::uint32_t>();
      case 5:
        return number<std::int32_t>();
      case 6:
        return number<float>();
      case 7:
        return number<std::uint8_t>() != 0;
      case 8:
        return boost::json::string(text());
      case 9: {
        const auto inner = number<std::uint32_t>();
        const auto count = number<std::uint64_t>();
        boost::json::array array;
        for (std::uint64_t i = 0; i < count; ++i) array.push_back(value(inner));
        return array;
      }
      case 10:
        return number<std::uint64_t>();
      case 11:
        return number<std::int64_t>();
      case 12:
        return number<double>();
      default:
        throw std::runtime_error("unknown GGUF type " + std::to_string(type));
    }
  }

  std::string bytes_;
  std::size_t at_ = 0;
  std::map<std::string, boost::json::value> values_;
};

/// The tokenizer document of a GGUF file, with llama.cpp's defaults for keys that are not there.
inline boost::json::object tokenizer_document(const std::string& path) {
  const GgufMetadata metadata{path};
  const auto get = [&metadata](const std::string& key, boost::json::value missing) {
    auto found = metadata.get("tokenizer.ggml." + key);
    return found.is_null() ? missing : found;
  };
  const bool llama = get("model", "") == "llama";
  boost::json::object document;
  document["format"] = "duet-tokenizer/v1";
  document["model"] = get("model", "");
  document["pre"] = get("pre", "default");
  document["tokens"] = get("tokens", boost::json::array{});
  document["token_types"] = get("token_type", boost::json::array{});
  document["scores"] = get("scores", nullptr);
  document["merges"] = get("merges", nullptr);
  for (const char* name : {"bos", "eos", "unknown", "padding", "eot"}) {
    document[std::string{name} + "_id"] = get(std::string{name} + "_token_id", nullptr);
  }
  document["add_bos"] = get("add_bos_token", llama);
  document["add_eos"] = get("add_eos_token", false);
  document["add_space_prefix"] = get("add_space_prefix", llama);
  document["chat_template"] = metadata.get("tokenizer.chat_template");
  return document;
}

}   // namespace duet::text::test
