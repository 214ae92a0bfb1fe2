// lower.hpp: turns a model's hyper-parameters and tensor list into the programs of one graph.
#pragma once

#include "device/package/manifest.hpp"
#include "device/program/op.hpp"

#include <boost/system/result.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace duet::device {

/// Writes the programs of one graph, one a core, core 0 first. Pure.
///
/// `tensors` is the model's list; Op::tensor indexes it. `chip` is recorded only. `cores` is 1
/// or 2. Known architectures: llama (RoPE on neighbours), qwen2 (bias on q, k, v), qwen3 (q/k
/// norm); the flags of `config` decide, not the name, so that a file which departs from its family
/// still computes what it says. Every core norms and quantises the whole row for itself: that costs
/// little and saves a meeting. A layer has five: after store_kv, attention, attn_output, swiglu and
/// ffn_down. A prefill program turns to the job's last token as soon as the last layer's keys and
/// values are stored. Errors name the graph and the missing or misshapen tensor, or the
/// hyper-parameter that does not fit.
[[nodiscard]] boost::system::result<std::vector<Program>, std::string> lower(
    const ModelConfig& config, const std::vector<Tensor>& tensors, const std::string& graph,
    GraphKind kind, std::uint32_t chip, std::uint32_t cores);

}   // namespace duet::device
