// lower_test.cpp: the programs that are made of hyper-parameters.
#include "device/program/lower.hpp"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <limits>
#include <string>
#include <vector>

namespace duet::device {
namespace {

ModelConfig small_config() {
  ModelConfig c;
  c.architecture = "llama";
  c.layers = 2;
  c.embedding = 64;
  c.feed_forward = 96;
  c.heads = 4;
  c.kv_heads = 2;
  c.head_dim = 16;
  c.rope_dims = 16;
  c.vocabulary = 101;
  c.context = 128;
  c.norm_epsilon = 1e-5F;
  c.rope_base = 10000;
  return c;
}

void add(std::vector<Tensor>& list, const std::string& name, std::vector<std::uint64_t> shape) {
  Tensor tensor;
  tensor.name = name;
  tensor.dtype = shape.size() == 2 ? DType::q8_0 : DType::f32;
  tensor.shape = std::move(shape);
  list.push_back(std::move(tensor));
}

std::vector<Tensor> tensors_of(const ModelConfig& c) {
  std::vector<Tensor> list;
  const std::uint64_t query = std::uint64_t{c.heads} * c.head_dim;
  const std::uint64_t key = std::uint64_t{c.kv_heads} * c.head_dim;
  add(list, "token_embd.weight", {c.vocabulary, c.embedding});
  add(list, "output_norm.weight", {c.embedding});
  if (!c.tied_output) add(list, "output.weight", {c.vocabulary, c.embedding});
  for (std::uint32_t layer = 0; layer < c.layers; ++layer) {
    const std::string blk = "blk." + std::to_string(layer) + ".";
    add(list, blk + "attn_norm.weight", {c.embedding});
    add(list, blk + "attn_q.weight", {query, c.embedding});
    add(list, blk + "attn_k.weight", {key, c.embedding});
    add(list, blk + "attn_v.weight", {key, c.embedding});
    if (c.qkv_bias) {
      add(list, blk + "attn_q.bias", {query});
      add(list, blk + "attn_k.bias", {key});
      add(list, blk + "attn_v.bias", {key});
    }
    if (c.qk_norm) {
      add(list, blk + "attn_q_norm.weight", {c.head_dim});
      add(list, blk + "attn_k_norm.weight", {c.head_dim});
    }
    add(list, blk + "attn_output.weight", {c.embedding, query});
    add(list, blk + "ffn_norm.weight", {c.embedding});
    add(list, blk + "ffn_gate.weight", {c.feed_forward, c.embedding});
    add(list, blk + "ffn_up.weight", {c.feed_forward, c.embedding});
    add(list, blk + "ffn_down.weight", {c.embedding, c.feed_forward});
  }
  return list;
}

std::vector<Program> lowered(const ModelConfig& config, GraphKind kind, std::uint32_t cores = 2) {
  auto programs = lower(config, tensors_of(config), "model_x.graph", kind, 1, cores);
  BOOST_REQUIRE_MESSAGE(programs.has_value(),
                        (programs.has_error() ? programs.error() : std::string()));
  return *programs;
}

std::size_t count(const Program& program, Opcode opcode) {
  return static_cast<std::size_t>(std::count_if(program.ops.begin(), program.ops.end(),
                                                [&](const Op& op) { return op.opcode == opcode; }));
}

std::string error_of(const ModelConfig& config, const std::vector<Tensor>& tensors,
                     std::uint32_t cores = 2) {
  const auto programs = lower(config, tensors, "model_x.graph", GraphKind::prefill, 0, cores);
  return programs.has_error() ? programs.error() : "no error";
}

}   // namespace

// each graph has a program for each core of its one chip.
BOOST_AUTO_TEST_SUITE(program_lower)

BOOST_AUTO_TEST_CASE(a_graph_gets_one_program_a_core_and_only_prefill_skips_to_the_last_token) {
  for (const GraphKind kind : {GraphKind::prefill, GraphKind::decode}) {
    for (const std::uint32_t cores : {1U, 2U}) {
      const std::vector<Program> programs = lowered(small_config(), kind, cores);
      BOOST_TEST(programs.size() == cores);
      for (std::uint32_t core = 0; core < cores; ++core) {
        const Program& p = programs[core];
        BOOST_TEST(p.core == core);
        BOOST_TEST(p.cores == cores);
        BOOST_TEST(p.chip == 1U);
        BOOST_TEST(p.numerics == 1U);
        BOOST_TEST(p.graph == "model_x.graph");
        BOOST_TEST(count(p, Opcode::last_token) == (kind == GraphKind::prefill ? 1U : 0U));
        // One meeting after the embedding, five a layer.
        BOOST_TEST(count(p, Opcode::sync) == 1U + 5U * 2U);
        BOOST_TEST((p.ops.back().opcode == Opcode::end));
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(flags_of_the_model_decide_about_norms_biases_and_rotation) {
  ModelConfig c = small_config();
  const auto matmuls_with_bias = [](const Program& p) {
    return std::count_if(p.ops.begin(), p.ops.end(), [](const Op& op) {
      return op.opcode == Opcode::matmul && op.bias != no_tensor;
    });
  };
  const auto neox = [](const Program& p) {
    return std::count_if(p.ops.begin(), p.ops.end(), [](const Op& op) {
      return op.opcode == Opcode::rope && (op.flags & op_rope_neox) != 0;
    });
  };
  const Program llama = lowered(c, GraphKind::decode)[0];
  BOOST_TEST(count(llama, Opcode::head_norm) == 0U);
  BOOST_TEST(matmuls_with_bias(llama) == 0);
  BOOST_TEST(neox(llama) == 0);
  c.architecture = "qwen2";
  c.qkv_bias = c.rope_neox = true;
  const Program qwen2 = lowered(c, GraphKind::decode)[0];
  BOOST_TEST(matmuls_with_bias(qwen2) == 6);
  BOOST_TEST(neox(qwen2) == 4);
  c.architecture = "qwen3";
  c.qkv_bias = false;
  c.qk_norm = true;
  const Program qwen3 = lowered(c, GraphKind::decode)[0];
  BOOST_TEST(matmuls_with_bias(qwen3) == 0);
  BOOST_TEST(count(qwen3, Opcode::head_norm) == 4U);
}

BOOST_AUTO_TEST_CASE(a_tied_model_reads_its_embedding_table_as_output) {
  ModelConfig c = small_config();
  for (const bool tied : {false, true}) {
    c.tied_output = tied;
    const Program p = lowered(c, GraphKind::decode)[0];
    const Op& output = p.ops[p.ops.size() - 2];
    BOOST_TEST((output.opcode == Opcode::matmul));
    BOOST_TEST(output.out == p.logits);
    BOOST_TEST((output.tensor == p.ops.front().tensor) == tied);
  }
}

BOOST_AUTO_TEST_CASE(shares_of_both_cores_cover_everything_once_even_where_nothing_divides) {
  ModelConfig c = small_config();
  c.heads = 6;
  c.kv_heads = 1;
  c.embedding = 96;
  const std::vector<Program> p = lowered(c, GraphKind::prefill);
  BOOST_TEST(p[0].ops.size() == p[1].ops.size());
  for (std::size_t i = 0; i < p[0].ops.size(); ++i) {
    const Op& a = p[0].ops[i];
    const Op& b = p[1].ops[i];
    BOOST_TEST((a.opcode == b.opcode));
    if (a.count + b.count == 0) continue;
    BOOST_TEST(a.first == 0U);
    BOOST_TEST(b.first == a.count);
    if (a.opcode == Opcode::matmul && a.out == p[0].logits) BOOST_TEST(a.count + b.count == 101U);
    if (a.opcode == Opcode::store_kv) {
      BOOST_TEST(a.count == 0U);   // one kv head: core 1 stores it
      BOOST_TEST(b.count == 1U);
    }
    if (a.opcode == Opcode::attention) BOOST_TEST(a.count + b.count == 6U);
  }
}

BOOST_AUTO_TEST_CASE(a_missing_or_misshapen_tensor_is_named) {
  const ModelConfig c = small_config();
  std::vector<Tensor> tensors = tensors_of(c);
  const auto find = [&](const std::string& name) {
    return std::find_if(tensors.begin(), tensors.end(),
                        [&](const Tensor& t) { return t.name == name; });
  };
  find("blk.1.ffn_up.weight")->shape = {96, 65};
  BOOST_TEST(error_of(c, tensors) ==
             "graph 'model_x.graph': tensor 'blk.1.ffn_up.weight' has shape [96, 65] instead of "
             "[96, 64]");
  tensors.erase(find("blk.0.attn_k.weight"));
  BOOST_TEST(error_of(c, tensors) ==
             "graph 'model_x.graph': tensor 'blk.0.attn_k.weight' is missing");
}

BOOST_AUTO_TEST_CASE(hyper_parameters_that_do_not_fit_are_refused) {
  const auto refused = [](auto change, const std::string& reason) {
    ModelConfig c = small_config();
    change(c);
    const std::string error = error_of(c, {});
    BOOST_TEST(error.find(reason) != std::string::npos, error);
    BOOST_TEST(error.find("'model_x.graph'") != std::string::npos, error);
  };
  refused([](ModelConfig& c) { c.architecture = "mamba"; }, "architecture 'mamba'");
  refused([](ModelConfig& c) { c.layers = 0; }, "layers");
  refused([](ModelConfig& c) { c.layers = 1025; }, "layers");
  refused([](ModelConfig& c) { c.vocabulary = 0; }, "vocabulary");
  refused([](ModelConfig& c) { c.embedding = 63; }, "embedding");
  refused([](ModelConfig& c) { c.feed_forward = 0x80000000U; }, "feed-forward");
  refused([](ModelConfig& c) { c.kv_heads = 3; }, "multiple of kv heads");
  refused([](ModelConfig& c) { c.kv_heads = 0; }, "multiple of kv heads");
  refused([](ModelConfig& c) { c.head_dim = 12; }, "head dimension");
  refused([](ModelConfig& c) { c.heads = 3, c.kv_heads = 1, c.head_dim = 8; }, "multiple of 32");
  refused([](ModelConfig& c) { c.rope_dims = 18; }, "rope dimensions");
  refused([](ModelConfig& c) { c.rope_dims = 7; }, "rope dimensions");
  refused([](ModelConfig& c) { c.norm_epsilon = std::numeric_limits<float>::quiet_NaN(); },
          "epsilon");
  refused([](ModelConfig& c) { c.rope_base = 1; }, "rope base");
  BOOST_TEST(error_of(small_config(), tensors_of(small_config()), 3).find("1 or 2 cores") !=
             std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace duet::device
