// lower.cpp: turns a model's hyper-parameters and tensor list into the programs of one graph.
#include "device/program/lower.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>
#include <utility>

namespace duet::device {
namespace {

/// A part of rows, heads, columns or elements.
struct Share {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
};

/// Splits `total` in two at a multiple of `unit`; with an odd number of units core 1 gets the
/// larger part if `extra_to_last`. Both may be uneven or one empty.
Share share_of(std::uint32_t total, std::uint32_t unit, std::uint32_t core, std::uint32_t cores,
               bool extra_to_last = false) {
  if (cores == 1) return {0, total};
  const std::uint32_t units = total / unit;
  const std::uint32_t border = (extra_to_last ? units / 2 : units - units / 2) * unit;
  return core == 0 ? Share{0, border} : Share{border, total - border};
}

/// Buffers of a transformer's graph; the values are indices into Program::buffers.
enum Slot : std::uint32_t {
  residual,
  norm,
  query,
  key,
  value,
  mixed,
  mixed_activation,
  gate,
  up,
  gate_activation,
  logits
};

class Lowering {
 public:
  Lowering(const ModelConfig& config, const std::vector<Tensor>& tensors, std::string graph,
           GraphKind kind)
      : config_(config), tensors_(tensors), graph_(std::move(graph)), kind_(kind) {
    for (std::uint32_t i = 0; i < tensors.size(); ++i) index_.emplace(tensors[i].name, i);
  }

  /// Empty if the hyper-parameters can be lowered.
  std::string check_config() const;
  /// Fills `program.ops` and `program.buffers`; false leaves the reason in error().
  bool build(Program& program);
  const std::string& error() const { return error_; }

 private:
  void layer(std::uint32_t number);
  void attention_part(std::uint32_t number);
  void feed_forward_part(std::uint32_t number);
  void projection(std::uint32_t number, const char* name, Slot out, Share heads,
                  std::uint32_t rows);
  void turn(std::uint32_t number, Slot out, const char* norm_name, Share heads,
            std::uint32_t width);
  void matmul(std::uint32_t number, std::uint32_t tensor, std::uint32_t bias, Slot in, Slot out,
              Share rows, std::uint32_t columns, bool accumulate);
  void rms_norm(std::uint32_t number, const std::string& name);
  void quantize(std::uint32_t number, Slot in, Slot out, std::uint32_t width);
  void sync();
  Op& add(Opcode opcode, std::uint32_t number = 0);
  std::uint32_t matrix(const std::string& name, std::uint64_t rows, std::uint64_t columns);
  std::uint32_t vector(const std::string& name, std::uint64_t elements);
  std::uint32_t tensor(const std::string& name, const std::vector<std::uint64_t>& shape);
  Share share(std::uint32_t total, std::uint32_t unit, bool extra_to_last = false) const {
    return share_of(total, unit, program_->core, program_->cores, extra_to_last);
  }
  std::uint32_t query_width() const { return config_.heads * config_.head_dim; }
  std::uint32_t key_width() const { return config_.kv_heads * config_.head_dim; }

  const ModelConfig& config_;
  const std::vector<Tensor>& tensors_;
  const std::string graph_;
  const GraphKind kind_;
  std::map<std::string, std::uint32_t, std::less<>> index_;
  Program* program_ = nullptr;
  std::uint32_t syncs_ = 0;
  std::string error_;
};

std::string blk(std::uint32_t number, std::string_view name) {
  return "blk." + std::to_string(number) + "." + std::string(name);
}

std::string Lowering::check_config() const {
  const ModelConfig& c = config_;
  // Far above any model that fits the board; keeps every product below within 32 bits.
  constexpr std::uint32_t width_max = 1U << 20, layers_max = 1024, vocabulary_max = 1U << 22;
  const auto bad = [this](std::string_view what) {
    return "graph '" + graph_ + "': " + std::string(what);
  };
  if (c.architecture != "llama" && c.architecture != "qwen2" && c.architecture != "qwen3")
    return bad("architecture '" + c.architecture + "' is none of llama, qwen2, qwen3");
  if (c.layers == 0 || c.layers > layers_max) return bad("layers must be 1..1024");
  if (c.vocabulary == 0 || c.vocabulary > vocabulary_max)
    return bad("vocabulary must be 1..4194304");
  if (c.embedding == 0 || c.embedding % 32 != 0 || c.embedding > width_max)
    return bad("embedding length must be a multiple of 32, at most 1048576");
  if (c.feed_forward == 0 || c.feed_forward % 32 != 0 || c.feed_forward > width_max)
    return bad("feed-forward length must be a multiple of 32, at most 1048576");
  if (c.heads == 0 || c.heads > 4096 || c.kv_heads == 0 || c.heads % c.kv_heads != 0)
    return bad("heads (1..4096) must be a multiple of kv heads");
  if (c.head_dim == 0 || c.head_dim % 8 != 0 || c.head_dim > 1024)
    return bad("head dimension must be a multiple of 8, at most 1024");
  if (query_width() % 32 != 0 || query_width() > width_max)
    return bad("heads x head dimension must be a multiple of 32, at most 1048576");
  if (c.rope_dims == 0 || c.rope_dims % 2 != 0 || c.rope_dims > c.head_dim)
    return bad("rope dimensions must be even, 2..head dimension");
  if (!std::isfinite(c.norm_epsilon) || c.norm_epsilon <= 0)
    return bad("norm epsilon must be finite and above 0");
  if (!std::isfinite(c.rope_base) || c.rope_base <= 1)
    return bad("rope base must be finite and above 1");
  return {};
}

bool Lowering::build(Program& program) {
  program_ = &program;
  syncs_ = 0;
  const ModelConfig& c = config_;
  constexpr auto f32 = BufferKind::f32;
  constexpr auto activation = BufferKind::activation;
  constexpr auto shared = BufferScope::shared;
  constexpr auto local = BufferScope::local;
  program.buffers = {
      {f32, shared, c.embedding},         {activation, local, c.embedding},
      {f32, shared, query_width()},       {f32, shared, key_width()},
      {f32, shared, key_width()},         {f32, shared, query_width()},
      {activation, local, query_width()}, {f32, shared, c.feed_forward},
      {f32, shared, c.feed_forward},      {activation, local, c.feed_forward},
      {f32, shared, c.vocabulary},
  };
  program.logits = logits;

  const Share columns = share(c.embedding, 32);
  const std::uint32_t table = matrix("token_embd.weight", c.vocabulary, c.embedding);
  Op& embed = add(Opcode::embed);
  embed.tensor = table;
  embed.out = residual;
  embed.first = columns.first;
  embed.count = columns.count;
  embed.width = c.embedding;
  sync();
  for (std::uint32_t number = 0; number < c.layers; ++number) layer(number);
  rms_norm(0, "output_norm.weight");
  const std::uint32_t output =
      c.tied_output ? table : matrix("output.weight", c.vocabulary, c.embedding);
  matmul(0, output, no_tensor, norm, logits, share(c.vocabulary, 1), c.embedding, false);
  add(Opcode::end);
  return error_.empty();
}

void Lowering::layer(std::uint32_t number) {
  attention_part(number);
  feed_forward_part(number);
}

void Lowering::attention_part(std::uint32_t number) {
  const ModelConfig& c = config_;
  // With odd numbers core 0 takes the extra query head and core 1 the extra kv head.
  const Share heads = share(c.heads, 1);
  const Share kv_heads = share(c.kv_heads, 1, true);

  rms_norm(number, blk(number, "attn_norm.weight"));
  projection(number, "attn_q", query, heads, query_width());
  projection(number, "attn_k", key, kv_heads, key_width());
  projection(number, "attn_v", value, kv_heads, key_width());
  turn(number, query, "attn_q_norm.weight", heads, query_width());
  turn(number, key, "attn_k_norm.weight", kv_heads, key_width());
  Op& store = add(Opcode::store_kv, number);
  store.in = key;
  store.in2 = value;
  store.first = kv_heads.first;
  store.count = kv_heads.count;
  store.width = key_width();
  store.head_dim = c.head_dim;
  sync();

  if (kind_ == GraphKind::prefill && number + 1 == c.layers) add(Opcode::last_token);
  Op& attention = add(Opcode::attention, number);
  attention.in = query;
  attention.out = mixed;
  attention.first = heads.first;
  attention.count = heads.count;
  attention.width = query_width();
  attention.head_dim = c.head_dim;
  attention.group = c.heads / c.kv_heads;
  sync();

  quantize(number, mixed, mixed_activation, query_width());
  matmul(number, matrix(blk(number, "attn_output.weight"), c.embedding, query_width()), no_tensor,
         mixed_activation, residual, share(c.embedding, 8), query_width(), true);
  sync();
}

void Lowering::feed_forward_part(std::uint32_t number) {
  const ModelConfig& c = config_;
  const Share inner = share(c.feed_forward, 32);
  rms_norm(number, blk(number, "ffn_norm.weight"));
  matmul(number, matrix(blk(number, "ffn_gate.weight"), c.feed_forward, c.embedding), no_tensor,
         norm, gate, inner, c.embedding, false);
  matmul(number, matrix(blk(number, "ffn_up.weight"), c.feed_forward, c.embedding), no_tensor, norm,
         up, inner, c.embedding, false);
  Op& swiglu = add(Opcode::swiglu, number);
  swiglu.in = gate;
  swiglu.in2 = up;
  swiglu.out = gate;
  swiglu.first = inner.first;
  swiglu.count = inner.count;
  swiglu.width = c.feed_forward;
  sync();
  quantize(number, gate, gate_activation, c.feed_forward);
  matmul(number, matrix(blk(number, "ffn_down.weight"), c.embedding, c.feed_forward), no_tensor,
         gate_activation, residual, share(c.embedding, 8), c.feed_forward, true);
  sync();
}

void Lowering::projection(std::uint32_t number, const char* name, Slot out, Share heads,
                          std::uint32_t rows) {
  const std::uint32_t dim = config_.head_dim;
  const std::string base = blk(number, name);
  const std::uint32_t weight = matrix(base + ".weight", rows, config_.embedding);
  const std::uint32_t bias = config_.qkv_bias ? vector(base + ".bias", rows) : no_tensor;
  matmul(number, weight, bias, norm, out, {heads.first * dim, heads.count * dim}, config_.embedding,
         false);
}

void Lowering::turn(std::uint32_t number, Slot out, const char* norm_name, Share heads,
                    std::uint32_t width) {
  if (config_.qk_norm) {
    const std::uint32_t weight = vector(blk(number, norm_name), config_.head_dim);
    Op& head_norm = add(Opcode::head_norm, number);
    head_norm.tensor = weight;
    head_norm.out = out;
    head_norm.first = heads.first;
    head_norm.count = heads.count;
    head_norm.width = width;
    head_norm.head_dim = config_.head_dim;
    head_norm.epsilon = config_.norm_epsilon;
  }
  Op& rope = add(Opcode::rope, number);
  rope.flags = config_.rope_neox ? op_rope_neox : 0;
  rope.out = out;
  rope.first = heads.first;
  rope.count = heads.count;
  rope.width = width;
  rope.head_dim = config_.head_dim;
  rope.rope_dims = config_.rope_dims;
  rope.rope_base = config_.rope_base;
}

void Lowering::matmul(std::uint32_t number, std::uint32_t tensor_index, std::uint32_t bias, Slot in,
                      Slot out, Share rows, std::uint32_t columns, bool accumulate) {
  Op& op = add(Opcode::matmul, number);
  op.flags = accumulate ? op_accumulate : 0;
  op.tensor = tensor_index;
  op.bias = bias;
  op.in = in;
  op.out = out;
  op.first = rows.first;
  op.count = rows.count;
  op.width = columns;
}

void Lowering::rms_norm(std::uint32_t number, const std::string& name) {
  const std::uint32_t weight = vector(name, config_.embedding);
  Op& op = add(Opcode::rms_norm, number);
  op.tensor = weight;
  op.in = residual;
  op.out = norm;
  op.width = config_.embedding;
  op.epsilon = config_.norm_epsilon;
}

void Lowering::quantize(std::uint32_t number, Slot in, Slot out, std::uint32_t width) {
  Op& op = add(Opcode::quantize, number);
  op.in = in;
  op.out = out;
  op.width = width;
}

void Lowering::sync() {
  add(Opcode::sync).first = syncs_++;
}

Op& Lowering::add(Opcode opcode, std::uint32_t number) {
  Op op{};
  op.opcode = opcode;
  op.layer = number;
  op.tensor = op.bias = no_tensor;
  op.in = op.in2 = op.out = no_buffer;
  return program_->ops.emplace_back(op);
}

std::uint32_t Lowering::matrix(const std::string& name, std::uint64_t rows, std::uint64_t columns) {
  return tensor(name, {rows, columns});
}

std::uint32_t Lowering::vector(const std::string& name, std::uint64_t elements) {
  return tensor(name, {elements});
}

std::uint32_t Lowering::tensor(const std::string& name, const std::vector<std::uint64_t>& shape) {
  const auto text = [](const std::vector<std::uint64_t>& s) {
    std::string out = "[";
    for (std::size_t i = 0; i < s.size(); ++i) out += (i ? ", " : "") + std::to_string(s[i]);
    return out + "]";
  };
  const auto found = index_.find(name);
  if (found == index_.end()) {
    if (error_.empty()) error_ = "graph '" + graph_ + "': tensor '" + name + "' is missing";
    return no_tensor;
  }
  const std::vector<std::uint64_t>& actual = tensors_[found->second].shape;
  if (actual != shape && error_.empty())
    error_ = "graph '" + graph_ + "': tensor '" + name + "' has shape " + text(actual) +
             " instead of " + text(shape);
  return found->second;
}

}   // namespace

boost::system::result<std::vector<Program>, std::string> lower(const ModelConfig& config,
                                                               const std::vector<Tensor>& tensors,
                                                               const std::string& graph,
                                                               GraphKind kind, std::uint32_t chip,
                                                               std::uint32_t cores) {
  if (cores != 1 && cores != 2) return "graph '" + graph + "': a chip has 1 or 2 cores";
  Lowering lowering(config, tensors, graph, kind);
  if (std::string bad = lowering.check_config(); !bad.empty()) return bad;
  std::vector<Program> programs(cores);
  for (std::uint32_t core = 0; core < cores; ++core) {
    programs[core].graph = graph;
    programs[core].kind = kind;
    programs[core].chip = chip;
    programs[core].core = core;
    programs[core].cores = cores;
    if (!lowering.build(programs[core])) return lowering.error();
  }
  return programs;
}

}   // namespace duet::device
