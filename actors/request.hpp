// request.hpp: one client request from its prompt to its one terminal event.
#pragma once

#include "actors/messages.hpp"
#include "actors/model_board.hpp"
#include "actors/model_profile.hpp"
#include "runtime/behaviour.hpp"
#include "runtime/self.hpp"

#include <functional>
#include <memory>
#include <string>

namespace duet::actors {

/// What a request leaves behind, for logs and metrics.
struct RequestRecord {
  std::string id;
  std::string model;
  std::uint32_t chip = 0;              ///< internal: for logs, never for a client.
  device::Generation generation = 0;   ///< of the session that ran it; 0: none did.
  std::uint32_t prompt_tokens = 0;
  std::uint32_t completion_tokens = 0;
  std::string finish;   ///< "stop" or "length" of the last choice; "" after an error.
  std::string error;    ///< an errc's word; "" if it ended well.
  std::uint64_t seed = 0;
  runtime::Duration queue{};   ///< from submission to the first accepted prefill.
  runtime::Duration ttft{};    ///< to the first token; 0: there was none.
  runtime::Duration tpot{};    ///< a token after the first, on the average; 0: there was one.
  runtime::Duration e2e{};
};

struct RequestSetup {
  RequestSetup() = default;
  RequestNumber number = 0;
  std::shared_ptr<const GenerateRequest> request;
  std::shared_ptr<OutputStream> stream;
  std::shared_ptr<const ModelProfile> profile;
  std::shared_ptr<ModelBoard> board;
  runtime::Ref<ModelWorkerMessage> worker;
  runtime::Ref<RouterMessage> router;
  std::function<void(const RequestRecord&)> log;
  runtime::Duration time_limit = std::chrono::minutes(10);   ///< the request's own may be shorter.
};

/// Tokenizes, has the worker queue its sequences, chooses each token, writes text, and ends with
/// exactly one end or fail of the stream. A slow reader parks its sequences. Stop, CancelRequest,
/// ReaderGone and the deadline end it at once; the worker waits for the job that may be running.
runtime::Behaviour request(runtime::Self<RequestMessage> self, RequestSetup setup);

}   // namespace duet::actors
