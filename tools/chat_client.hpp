// chat_client.hpp: one streamed chat with any OpenAI-compatible server, for demonstrations.
#pragma once

#include <boost/system/result.hpp>

#include <cstdint>
#include <functional>
#include <string>

namespace duet::tools {

struct ChatQuestion {
  std::string host = "127.0.0.1";
  std::string port = "8000";
  std::string key;   ///< sent as a bearer token; "" = none.
  std::string model;
  std::string text;
  std::uint32_t tokens_max = 400;
};

/// One sentence.
struct ChatError {
  std::string message;
};
[[noreturn]] void throw_exception_from_error(const ChatError& error,
                                             const boost::source_location& where);

/// Asks without sampling (temperature 0) and calls `on_text` with each piece as it comes. Blocks
/// until the answer's end; a server that says nothing for two minutes is given up. `ready` is
/// called between connecting and sending: several can wait there for each other.
[[nodiscard]] boost::system::result<void, ChatError> stream_chat(
    const ChatQuestion& question, const std::function<void()>& ready,
    const std::function<void(const std::string&)>& on_text);

}   // namespace duet::tools
