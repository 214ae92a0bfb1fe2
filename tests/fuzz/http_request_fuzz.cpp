// http_request_fuzz.cpp: bytes of a connection through the request reader in pieces of two sizes,
// which must agree, and each body through the parsers of both APIs.
#include "http/admission.hpp"
#include "http/openai_request.hpp"
#include "http/request_reader.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

namespace {

using duet::http::ApiKind;
using duet::http::RequestReader;

// Small bounds, so that a short input reaches them.
constexpr duet::http::ReaderLimits reader_limits{512, 2048};

struct Read {
  std::vector<std::string> bodies;
  std::vector<std::string> targets;
  unsigned error = 0;
};

void require(bool condition) {
  if (!condition) std::abort();
}

Read read_all(std::string_view bytes, std::size_t piece) {
  Read read;
  RequestReader reader(reader_limits);
  std::string waiting;
  for (;;) {
    const std::size_t used = reader.feed(waiting);
    require(used <= waiting.size());
    waiting.erase(0, used);
    const RequestReader::Status status = reader.status();
    if (status == RequestReader::Status::failed) {
      read.error = reader.error_status();
      require(read.error >= 400 && read.error < 600 && !reader.error_message().empty());
      return read;
    }
    if (status == RequestReader::Status::head_complete) {
      const auto admission = duet::http::admit(reader.head(), {});
      require(admission.refusal.has_value() ||
              admission.match.id != duet::http::RouteId::not_found);
      continue;
    }
    if (status == RequestReader::Status::complete) {
      read.targets.push_back(reader.head().target);
      read.bodies.push_back(reader.take_body());
      require(read.bodies.back().size() <= reader_limits.body_bytes);
      reader.reset();
      continue;
    }
    // What waits is bounded by what a head, a chunk's header or the trailers may be.
    require(waiting.size() <= reader_limits.header_bytes + piece);
    if (bytes.empty()) return read;
    waiting += bytes.substr(0, piece);
    bytes.remove_prefix(std::min(piece, bytes.size()));
  }
}

void parse(std::string_view body) {
  static const std::vector<std::string> aliases = {"a", "b"};
  for (const ApiKind kind : {ApiKind::chat, ApiKind::completions}) {
    const auto result = duet::http::parse_openai_request(kind, body, aliases, 32);
    if (result.has_value()) {
      require(!result->generate.prompts.empty() && result->generate.choices >= 1);
    } else {
      require(!result.error().message.empty() && result.error().message.size() < 1000);
    }
  }
}

}   // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const Read whole = read_all(bytes, 64);
  const Read single = read_all(bytes, 1);
  // A bound may be noticed one piece earlier or later; without an error nothing may differ.
  if (whole.error == 0 && single.error == 0)
    require(whole.bodies == single.bodies && whole.targets == single.targets);
  for (const std::string& body : whole.bodies) parse(body);
  parse(bytes);
  return 0;
}
