// executor.cpp: runs the programs of one graph on the CPU, tile by tile, with one or two threads.
#include "device/kernels/executor.hpp"

#include "device/kernels/half.hpp"
#include "device/kernels/kernels.hpp"
#include "device/kernels/rope_table.hpp"
#include "device/kernels/verify.hpp"
#include "device/kernels/workspace.hpp"
#include "runtime/assert.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace duet::device {
namespace {

std::size_t element_bytes(Arithmetic arithmetic) {
  return arithmetic == Arithmetic::w8a8 ? sizeof(std::uint16_t) : sizeof(float);
}

std::size_t row_bytes(const TensorView& tensor) {
  switch (tensor.dtype) {
    case DType::f32:
      return tensor.columns * 4;
    case DType::q8_0:
      return tensor.columns / block_elements * block_bytes;
    default:
      return tensor.columns * 2;
  }
}

float* row(const F32Rows& rows, std::size_t token) {
  return rows.data + token * rows.stride;
}

/// Several RoPE tables are possible, but no known model has more than two bases.
constexpr std::size_t rope_tables_max = 4;
constexpr std::uint64_t rope_table_bytes_max = 1ULL
                                               << 28;   // 262144 positions of 128 dimensions, twice

class GraphExecutable;

/// One call of run(), as its cores see it.
struct Job {
  const GraphExecutable* graph;
  const Kernels* kernels;
  std::span<const std::uint32_t> tokens;
  std::uint32_t past;
  std::byte* kv;
  GraphWorkspace* workspace;
  // One segment of one tile, for cores that run in turn.
  std::size_t begin;
  std::size_t end;
  std::uint32_t tile_first;
};

/// The tokens of one tile, from the first that is still computed.
struct Tile {
  std::span<const std::uint32_t> tokens;
  std::uint32_t past;     ///< position of tokens[0].
  std::uint32_t offset;   ///< row of tokens[0] in the buffers.
};

class GraphExecutable final : public Executable {
 public:
  GraphExecutable(std::vector<Program> cores, std::vector<TensorView> tensors, KvLayout kv,
                  Arithmetic arithmetic, VerifiedGraph verified);

  std::uint32_t vocabulary() const override { return verified_.vocabulary; }
  std::unique_ptr<Workspace> make_workspace(std::uint32_t tile) const override;
  void run(std::span<const std::uint32_t> tokens, std::uint32_t past, std::span<std::byte> kv,
           std::span<float> logits, Workspace& workspace, CoreRunner& runner) const override;

  static bool rope_fits(const std::vector<Program>& cores, const KvLayout& kv);

 private:
  void run_in_turn(Job& job, CoreRunner& runner) const;
  void run_tiles(const Job& job, std::uint32_t core) const;
  void run_ops(const Job& job, std::uint32_t core, std::size_t begin, std::size_t end,
               std::uint32_t tile_first) const;
  void run_op(const Job& job, std::uint32_t core, std::size_t number, const Tile& tile) const;
  void embed(const Job& job, std::uint32_t core, const Op& op, const Tile& tile) const;
  void activate(const Job& job, std::uint32_t core, const Op& op, const Tile& tile) const;
  void matmul(const Job& job, std::uint32_t core, const Op& op, const Tile& tile) const;
  void head_norm(const Job& job, std::uint32_t core, const Op& op, const Tile& tile) const;
  void rope(const Job& job, std::uint32_t core, std::size_t number, const Tile& tile) const;
  void store_kv(const Job& job, std::uint32_t core, const Op& op, const Tile& tile) const;
  void attention(const Job& job, std::uint32_t core, const Op& op, const Tile& tile) const;
  void swiglu(const Job& job, std::uint32_t core, const Op& op, const Tile& tile) const;

  std::size_t tile_tokens(const Job& job, std::uint32_t tile_first) const {
    return std::min<std::size_t>(job.workspace->tile(), job.tokens.size() - tile_first);
  }
  /// Keys, or `values`, of `layer`.
  std::byte* kv_plane(const Job& job, std::uint32_t layer, bool values) const {
    return job.kv + (std::size_t{2} * layer + (values ? 1 : 0)) * plane_bytes_;
  }

  const std::vector<Program> cores_;
  const std::vector<TensorView> tensors_;
  const KvLayout kv_;
  const Arithmetic arithmetic_;
  const VerifiedGraph verified_;
  const std::size_t position_bytes_;   ///< keys of one position of one layer.
  const std::size_t plane_bytes_;
  std::vector<RopeTable> rope_tables_;
  std::vector<std::uint8_t> rope_of_op_;   ///< index into rope_tables_, by op number.
};

GraphExecutable::GraphExecutable(std::vector<Program> cores, std::vector<TensorView> tensors,
                                 KvLayout kv, Arithmetic arithmetic, VerifiedGraph verified)
    : cores_(std::move(cores)),
      tensors_(std::move(tensors)),
      kv_(kv),
      arithmetic_(arithmetic),
      verified_(std::move(verified)),
      position_bytes_(std::size_t{kv.kv_heads} * kv.head_dim * element_bytes(arithmetic)),
      plane_bytes_(position_bytes_ * kv.tokens),
      rope_of_op_(cores_.front().ops.size()) {
  const std::vector<Op>& ops = cores_.front().ops;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    if (ops[i].opcode != Opcode::rope) continue;
    const auto same = [&](const RopeTable& table) {
      return table.dims == ops[i].rope_dims && table.base == ops[i].rope_base;
    };
    auto found = std::find_if(rope_tables_.begin(), rope_tables_.end(), same);
    if (found == rope_tables_.end()) {
      rope_tables_.push_back(make_rope_table(kv.tokens, ops[i].rope_dims, ops[i].rope_base));
      found = rope_tables_.end() - 1;
    }
    rope_of_op_[i] = static_cast<std::uint8_t>(found - rope_tables_.begin());
  }
}

bool GraphExecutable::rope_fits(const std::vector<Program>& cores, const KvLayout& kv) {
  std::vector<std::pair<std::uint32_t, float>> kinds;
  std::uint64_t bytes = 0;
  for (const Op& op : cores.front().ops) {
    if (op.opcode != Opcode::rope) continue;
    const std::pair<std::uint32_t, float> kind{op.rope_dims, op.rope_base};
    if (std::find(kinds.begin(), kinds.end(), kind) != kinds.end()) continue;
    kinds.push_back(kind);
    bytes += std::uint64_t{kv.tokens} * op.rope_dims * sizeof(float);
    if (kinds.size() > rope_tables_max || bytes > rope_table_bytes_max) return false;
  }
  return true;
}

std::unique_ptr<Executable::Workspace> GraphExecutable::make_workspace(std::uint32_t tile) const {
  tile = std::clamp(tile, 1U, tile_max);
  // A decode graph has no last_token, so that its logits would need a row for each token of a tile.
  if (cores_.front().kind == GraphKind::decode) tile = 1;
  std::size_t scratch = 0;
  for (const Op& op : cores_.front().ops) {
    if (op.opcode == Opcode::matmul)
      scratch = std::max(scratch, matmul_scratch_bytes(op.width, tile));
    if (op.opcode == Opcode::attention)
      scratch = std::max(scratch, attention_scratch_bytes(op.head_dim, op.group, tile));
  }
  return std::make_unique<GraphWorkspace>(cores_.front().buffers, verified_.one_row,
                                          static_cast<std::uint32_t>(cores_.size()), arithmetic_,
                                          tile, scratch);
}

void GraphExecutable::run(std::span<const std::uint32_t> tokens, std::uint32_t past,
                          std::span<std::byte> kv, std::span<float> logits, Workspace& workspace,
                          CoreRunner& runner) const {
  DUET_ASSERT(!tokens.empty());
  DUET_ASSERT(std::uint64_t{past} + tokens.size() <= kv_.tokens, past, tokens.size(), kv_.tokens);
  DUET_ASSERT(kv.size() >= kv_.bytes(arithmetic_), kv.size());
  DUET_ASSERT(logits.size() >= verified_.vocabulary, logits.size(), verified_.vocabulary);
  for (const std::uint32_t token : tokens) DUET_ASSERT(token < verified_.vocabulary, token);

  auto& space = static_cast<GraphWorkspace&>(workspace);
  Job job{this, &kernels(), tokens, past, kv.data(), &space, 0, 0, 0};
  if (runner.parallel()) {
    runner.run_cores(
        [](void* context, std::uint32_t core) {
          const Job& of = *static_cast<const Job*>(context);
          of.graph->run_tiles(of, core);
        },
        &job);
  } else {
    run_in_turn(job, runner);
  }
  const std::size_t last = (tokens.size() - 1) % space.tile();
  std::memcpy(logits.data(), row(space.view(0, cores_.front().logits).f32, last),
              verified_.vocabulary * sizeof(float));
}

void GraphExecutable::run_in_turn(Job& job, CoreRunner& runner) const {
  for (std::uint32_t first = 0; first < job.tokens.size(); first += job.workspace->tile()) {
    job.tile_first = first;
    job.begin = 0;
    for (std::size_t meeting = 0; meeting <= verified_.meetings.size(); ++meeting) {
      job.end = meeting < verified_.meetings.size() ? verified_.meetings[meeting]
                                                    : cores_.front().ops.size();
      runner.run_cores(
          [](void* context, std::uint32_t core) {
            const Job& of = *static_cast<const Job*>(context);
            if (core < of.graph->cores_.size())
              of.graph->run_ops(of, core, of.begin, of.end, of.tile_first);
          },
          &job);
      job.begin = job.end + 1;
    }
  }
}

void GraphExecutable::run_tiles(const Job& job, std::uint32_t core) const {
  if (core >= cores_.size()) return;
  const bool alone = cores_.size() == 1;
  for (std::uint32_t first = 0; first < job.tokens.size(); first += job.workspace->tile()) {
    std::size_t begin = 0;
    for (const std::uint32_t meeting : verified_.meetings) {
      run_ops(job, core, begin, meeting, first);
      if (!alone) job.workspace->barrier().arrive();
      begin = meeting + 1;
    }
    run_ops(job, core, begin, cores_.front().ops.size(), first);
    // The next tile writes over what the partner may still read.
    if (!alone) job.workspace->barrier().arrive();
  }
}

void GraphExecutable::run_ops(const Job& job, std::uint32_t core, std::size_t begin,
                              std::size_t end, std::uint32_t tile_first) const {
  const std::size_t count = tile_tokens(job, tile_first);
  const bool last_tile = tile_first + count == job.tokens.size();
  for (std::size_t i = begin; i < end; ++i) {
    Tile tile{job.tokens.subspan(tile_first, count), job.past + tile_first, 0};
    if (i > verified_.last_token) {
      if (!last_tile) return;
      tile.offset = static_cast<std::uint32_t>(count - 1);
      tile.past += tile.offset;
      tile.tokens = tile.tokens.last(1);
    }
    run_op(job, core, i, tile);
  }
}

void GraphExecutable::run_op(const Job& job, std::uint32_t core, std::size_t number,
                             const Tile& tile) const {
  const Op& op = cores_[core].ops[number];
  switch (op.opcode) {
    case Opcode::embed:
      return embed(job, core, op, tile);
    case Opcode::rms_norm:
    case Opcode::quantize:
      return activate(job, core, op, tile);
    case Opcode::matmul:
      return matmul(job, core, op, tile);
    case Opcode::head_norm:
      return head_norm(job, core, op, tile);
    case Opcode::rope:
      return rope(job, core, number, tile);
    case Opcode::store_kv:
      return store_kv(job, core, op, tile);
    case Opcode::attention:
      return attention(job, core, op, tile);
    case Opcode::swiglu:
      return swiglu(job, core, op, tile);
    case Opcode::sync:
    case Opcode::last_token:
    case Opcode::end:
      return;
  }
}

void GraphExecutable::embed(const Job& job, std::uint32_t core, const Op& op,
                            const Tile& tile) const {
  const TensorView& table = tensors_[op.tensor];
  const F32Rows& out = job.workspace->view(core, op.out).f32;
  TensorView before = table;
  before.columns = op.first;   // the bytes of a row that come before this core's columns
  for (std::size_t t = 0; t < tile.tokens.size(); ++t)
    job.kernels->widen(table.dtype,
                       table.data + tile.tokens[t] * row_bytes(table) + row_bytes(before), op.count,
                       row(out, tile.offset + t) + op.first);
}

void GraphExecutable::activate(const Job& job, std::uint32_t core, const Op& op,
                               const Tile& tile) const {
  const F32Rows& in = job.workspace->view(core, op.in).f32;
  const BufferView& out = job.workspace->view(core, op.out);
  const bool norm = op.opcode == Opcode::rms_norm;
  const auto* weight = norm ? reinterpret_cast<const float*>(tensors_[op.tensor].data) : nullptr;
  for (std::size_t t = tile.offset; t < tile.offset + tile.tokens.size(); ++t) {
    const float* x = row(in, t);
    if (arithmetic_ == Arithmetic::f32) {
      float* y = row(out.f32, t);
      if (norm) {
        job.kernels->rms_norm_f32(x, weight, op.epsilon, op.width, y);
      } else {
        std::memcpy(y, x, op.width * sizeof(float));
      }
      continue;
    }
    std::int8_t* q = out.q8.q + t * out.q8.q_stride;
    float* d = out.q8.d + t * out.q8.d_stride;
    if (norm) {
      job.kernels->rms_norm_q8(x, weight, op.epsilon, op.width, q, d);
    } else {
      job.kernels->quantize(x, op.width, q, d);
    }
  }
}

void GraphExecutable::matmul(const Job& job, std::uint32_t core, const Op& op,
                             const Tile& tile) const {
  if (op.count == 0) return;
  const TensorView& tensor = tensors_[op.tensor];
  const BufferView& in = job.workspace->view(core, op.in);
  Matmul m;
  m.dtype = tensor.dtype;
  m.weights = tensor.data;
  if (op.bias != no_tensor) m.bias = reinterpret_cast<const float*>(tensors_[op.bias].data);
  m.columns = op.width;
  m.first = op.first;
  m.count = op.count;
  m.tokens = static_cast<std::uint32_t>(tile.tokens.size());
  m.accumulate = (op.flags & op_accumulate) != 0;
  m.out = job.workspace->view(core, op.out).f32;
  m.out.data = row(m.out, tile.offset);
  m.scratch = job.workspace->scratch(core);
  if (arithmetic_ == Arithmetic::f32) {
    m.in_f32 = in.f32;
    m.in_f32.data = row(in.f32, tile.offset);
    job.kernels->matmul_f32(m);
    return;
  }
  m.in_q8 = in.q8;
  m.in_q8.q += tile.offset * in.q8.q_stride;
  m.in_q8.d += tile.offset * in.q8.d_stride;
  job.kernels->matmul_q8(m);
}

void GraphExecutable::head_norm(const Job& job, std::uint32_t core, const Op& op,
                                const Tile& tile) const {
  const F32Rows& out = job.workspace->view(core, op.out).f32;
  const auto* weight = reinterpret_cast<const float*>(tensors_[op.tensor].data);
  for (std::size_t t = 0; t < tile.tokens.size(); ++t) {
    for (std::uint32_t head = op.first; head < op.first + op.count; ++head) {
      float* x = row(out, tile.offset + t) + std::size_t{head} * op.head_dim;
      job.kernels->rms_norm_f32(x, weight, op.epsilon, op.head_dim, x);
    }
  }
}

void GraphExecutable::rope(const Job& job, std::uint32_t core, std::size_t number,
                           const Tile& tile) const {
  const Op& op = cores_[core].ops[number];
  const RopeTable& table = rope_tables_[rope_of_op_[number]];
  const F32Rows& out = job.workspace->view(core, op.out).f32;
  Rope r;
  r.heads = op.count;
  r.head_dim = op.head_dim;
  r.dims = op.rope_dims;
  r.neox = (op.flags & op_rope_neox) != 0;
  for (std::size_t t = 0; t < tile.tokens.size(); ++t) {
    const std::size_t at = (tile.past + t) * (op.rope_dims / 2);
    r.data = row(out, tile.offset + t) + std::size_t{op.first} * op.head_dim;
    r.cosine = table.cosine.data() + at;
    r.sine = table.sine.data() + at;
    job.kernels->rope(r);
  }
}

void GraphExecutable::store_kv(const Job& job, std::uint32_t core, const Op& op,
                               const Tile& tile) const {
  const std::size_t from = std::size_t{op.first} * op.head_dim;
  const std::size_t n = std::size_t{op.count} * op.head_dim;
  for (const bool values : {false, true}) {
    const F32Rows& in = job.workspace->view(core, values ? op.in2 : op.in).f32;
    std::byte* plane = kv_plane(job, op.layer, values);
    for (std::size_t t = 0; t < tile.tokens.size(); ++t) {
      std::byte* to = plane + (tile.past + t) * position_bytes_ + from * element_bytes(arithmetic_);
      const float* x = row(in, tile.offset + t) + from;
      if (arithmetic_ == Arithmetic::f32) {
        std::memcpy(to, x, n * sizeof(float));
      } else {
        job.kernels->narrow_bf16(x, n, reinterpret_cast<std::uint16_t*>(to));
      }
    }
  }
}

void GraphExecutable::attention(const Job& job, std::uint32_t core, const Op& op,
                                const Tile& tile) const {
  if (op.count == 0) return;
  Attention a;
  a.in = job.workspace->view(core, op.in).f32;
  a.in.data = row(a.in, tile.offset);
  a.out = job.workspace->view(core, op.out).f32;
  a.out.data = row(a.out, tile.offset);
  a.keys = kv_plane(job, op.layer, false);
  a.values = kv_plane(job, op.layer, true);
  a.kv_heads = kv_.kv_heads;
  a.head_dim = op.head_dim;
  a.group = op.group;
  a.first = op.first;
  a.count = op.count;
  a.tokens = static_cast<std::uint32_t>(tile.tokens.size());
  a.past = tile.past;
  a.scratch = job.workspace->scratch(core);
  if (arithmetic_ == Arithmetic::f32) {
    job.kernels->attention_f32(a);
  } else {
    job.kernels->attention_bf16(a);
  }
}

void GraphExecutable::swiglu(const Job& job, std::uint32_t core, const Op& op,
                             const Tile& tile) const {
  const F32Rows& gate = job.workspace->view(core, op.in).f32;
  const F32Rows& up = job.workspace->view(core, op.in2).f32;
  const F32Rows& out = job.workspace->view(core, op.out).f32;
  for (std::size_t t = tile.offset; t < tile.offset + tile.tokens.size(); ++t)
    job.kernels->swiglu(row(gate, t) + op.first, row(up, t) + op.first, op.count,
                        row(out, t) + op.first);
}

}   // namespace

std::uint64_t KvLayout::bytes(Arithmetic arithmetic) const {
  return std::uint64_t{2} * layers * tokens * kv_heads * head_dim * element_bytes(arithmetic);
}

boost::system::result<std::shared_ptr<const Executable>, std::string> Executable::create(
    std::vector<Program> cores, std::vector<TensorView> tensors, KvLayout kv,
    Arithmetic arithmetic) {
  auto verified = verify_graph(cores, tensors, kv, arithmetic);
  if (verified.has_error()) return verified.error();
  if (!GraphExecutable::rope_fits(cores, kv))
    return "graph '" + cores.front().graph + "' core 0: its RoPE tables would pass 256 MiB, or " +
           std::to_string(rope_tables_max) + " kinds";
  std::shared_ptr<const Executable> made = std::make_shared<GraphExecutable>(
      std::move(cores), std::move(tensors), kv, arithmetic, std::move(*verified));
  return made;
}

void SerialRunner::run_cores(void (*body)(void* context, std::uint32_t core), void* context) {
  body(context, 0);
  body(context, 1);
}

}   // namespace duet::device
