// request_record.hpp: what there is to log of one request. No prompt, no answer, no secret.
#pragma once

#include "runtime/time.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace duet::http {

/// Given to ServerContext::log once a request, on the thread that ended it.
struct RequestRecord {
  std::string request_id;
  std::string_view route;   ///< RouteInfo::name.
  std::string key;          ///< the name of the API key.
  std::string model;        ///< alias; "" unless a completion.
  unsigned status = 0;      ///< 0: the client went before there was one.
  std::string_view error;   ///< actors::errc by name, "reader_gone", "http" or "".
  bool stream = false;
  std::uint32_t prompt_tokens = 0;
  std::uint32_t completion_tokens = 0;
  std::uint64_t bytes_sent = 0;
  runtime::TimePoint received{};     ///< the end of its head.
  runtime::TimePoint first_byte{};   ///< of the answer; epoch: none went out.
  runtime::TimePoint finished{};
};

}   // namespace duet::http
