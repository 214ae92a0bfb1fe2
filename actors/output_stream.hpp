// output_stream.hpp: where an answer goes. http/ implements it on a socket, tests and simulation by
// a modelled reader.
#pragma once

#include "actors/error.hpp"
#include "text/tokenizer_json.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

namespace duet::actors {

enum class FinishReason : std::uint8_t { stop, length };

struct Usage {
  std::uint32_t prompt_tokens = 0;
  std::uint32_t completion_tokens = 0;
};

/// One token with its log-probability (natural). `bytes` may be part of a character.
struct OutputLogprob {
  text::TokenId token = 0;
  std::string_view bytes;
  double logprob = 0;
};

struct OutputToken {
  OutputLogprob chosen;
  std::span<const OutputLogprob> top;   ///< the likeliest first; as many as were asked for.
};

/// One piece of one choice. Views end with the call.
struct OutputDelta {
  std::uint32_t index = 0;   ///< of the choice.
  std::string_view
      text;   ///< whole UTF-8 characters; may be empty when only log-probabilities are told.
  std::span<const OutputToken> logprobs;   ///< of the tokens since the last delta, if asked for.
};

/// Told by the stream, on any thread, also inside a call of it. They outlive the stream's use of
/// them.
class OutputListener {
 public:
  virtual ~OutputListener() = default;
  virtual void on_writable() noexcept = 0;      ///< writable() has become true again.
  virtual void on_reader_gone() noexcept = 0;   ///< nobody will read what comes; at most once.
};

/// Calls come from one request, one at a time: listen, then start (the commit point: status and
/// headers go out), deltas and choice_ends, then one end; or fail, once, at any point instead of
/// what would follow. None of them blocks or throws.
class OutputStream {
 public:
  virtual ~OutputStream() = default;

  virtual void listen(std::weak_ptr<OutputListener> listener) noexcept = 0;

  /// The request's first prefill has been accepted by the chip: from here on an error is an event,
  /// not a status.
  virtual void start(std::uint32_t prompt_tokens) noexcept = 0;
  virtual void delta(const OutputDelta& delta) noexcept = 0;
  virtual void choice_end(std::uint32_t index, FinishReason reason) noexcept = 0;
  virtual void end(const Usage& usage) noexcept = 0;
  virtual void fail(const ServiceError& error) noexcept = 0;

  /// False: what is buffered for the reader has reached its bound; the request parks until
  /// on_writable. Deltas that are given all the same are kept (at most one a choice).
  [[nodiscard]] virtual bool writable() const noexcept = 0;
};

}   // namespace duet::actors
