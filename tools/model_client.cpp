// model_client.cpp: reserve, job, commit, one after another.
#include "tools/model_client.hpp"

#include <algorithm>
#include <utility>

namespace duet::tools {

using device::errc;
using device::Failure;

ModelClient::ModelClient(DeviceClient& client, const device::Model& model,
                         device::SessionState session, device::IoBuffers prefill,
                         device::IoBuffers decode)
    : client_(client),
      model_(model),
      session_(session),
      prefill_(prefill),
      decode_(decode),
      sequence_(model.kv.sequence_id_first) {}

device::result<std::span<const float>> ModelClient::begin(std::span<const std::uint32_t> prompt) {
  if (auto ended = end(); !ended) return ended.error();
  if (prompt.empty() || prompt.size() > prefill_.tokens.size()) {
    return Failure(errc::bad_argument, "the prompt has " + std::to_string(prompt.size()) +
                                           " tokens; " + model_.alias + " takes 1 to " +
                                           std::to_string(prefill_.tokens.size()));
  }
  // Every sequence has an id of its own, so that a stale slot can never answer for a new one.
  const auto range = model_.kv.sequence_id_last - model_.kv.sequence_id_first + 1;
  sequence_ = model_.kv.sequence_id_first + (sequence_ - model_.kv.sequence_id_first + 1) % range;
  past_ = 0;
  open_ = true;
  return run(device::GraphKind::prefill, prompt);
}

device::result<std::span<const float>> ModelClient::next(std::uint32_t token) {
  if (!open_) return Failure(errc::wrong_state, "no sequence was begun");
  return run(device::GraphKind::decode, std::span(&token, 1));
}

device::result<void> ModelClient::end() {
  if (!std::exchange(open_, false)) return {};
  return client_.device().kv_release(session_.session, session_.generation, sequence_);
}

device::result<std::span<const float>> ModelClient::run(device::GraphKind graph,
                                                        std::span<const std::uint32_t> tokens) {
  device::Device& board = client_.device();
  const device::IoBuffers& io = graph == device::GraphKind::prefill ? prefill_ : decode_;
  const auto count = static_cast<std::uint32_t>(tokens.size());
  if (auto kept = board.kv_reserve(session_.session, session_.generation, sequence_, count);
      !kept) {
    return kept.error();
  }
  std::copy(tokens.begin(), tokens.end(), io.tokens.begin());
  device::JobRequest job;
  job.job = ++jobs_;
  job.session = session_.session;
  job.generation = session_.generation;
  job.graph = graph;
  job.sequence = sequence_;
  job.past = past_;
  job.tokens = count;
  job.buffers = io.id;
  const auto done = client_.run(job);
  if (!done) return done.error();
  if (done->status.failed()) {
    return Failure(
        static_cast<errc>(done->status.value()),
        std::string(to_string(graph)) + " job " + std::to_string(job.job) + " of " + model_.alias);
  }
  if (auto committed = board.kv_commit(session_.session, session_.generation, sequence_, count);
      !committed) {
    return committed.error();
  }
  past_ += count;
  return std::span<const float>(io.logits);
}

}   // namespace duet::tools
