// verify.cpp: proves that a graph's programs stay within their memory and that its cores never
// race.
#include "device/kernels/verify.hpp"

#include "device/kernels/flow.hpp"
#include "device/kernels/kernels.hpp"
#include "device/program/message.hpp"

#include <cmath>
#include <cstring>
#include <optional>
#include <string_view>

namespace duet::device {
namespace {

using Complaint = std::optional<std::string>;

std::string_view name_of(Opcode opcode) {
  switch (opcode) {
    case Opcode::embed:
      return "embed";
    case Opcode::rms_norm:
      return "rms_norm";
    case Opcode::quantize:
      return "quantize";
    case Opcode::matmul:
      return "matmul";
    case Opcode::head_norm:
      return "head_norm";
    case Opcode::rope:
      return "rope";
    case Opcode::store_kv:
      return "store_kv";
    case Opcode::attention:
      return "attention";
    case Opcode::swiglu:
      return "swiglu";
    case Opcode::sync:
      return "sync";
    case Opcode::last_token:
      return "last_token";
    case Opcode::end:
      return "end";
  }
  return "unknown";
}

class Verifier {
 public:
  Verifier(std::span<const Program> cores, std::span<const TensorView> tensors, const KvLayout& kv,
           Arithmetic arithmetic)
      : cores_(cores), tensors_(tensors), kv_(kv), arithmetic_(arithmetic) {}

  boost::system::result<VerifiedGraph, std::string> run();

 private:
  Complaint heads() const;
  Complaint buffers(const Program& program) const;
  Complaint kv_layout() const;
  Complaint skeleton(const Program& program);
  Complaint operation(const Op& op) const;
  Complaint embed(const Op& op) const;
  Complaint rms_norm(const Op& op) const;
  Complaint quantize(const Op& op) const;
  Complaint matmul(const Op& op) const;
  Complaint head_norm(const Op& op) const;
  Complaint rope(const Op& op) const;
  Complaint store_kv(const Op& op) const;
  Complaint attention(const Op& op) const;
  Complaint swiglu(const Op& op) const;
  Complaint partners() const;

  Complaint buffer(std::uint32_t index, std::string_view what, BufferKind kind,
                   std::uint64_t width) const;
  Complaint share(const Op& op, std::uint64_t limit, std::uint32_t unit) const;
  Complaint vector(std::uint32_t index, std::string_view what, std::uint64_t elements) const;
  Complaint matrix(std::uint32_t index, std::string_view what) const;
  Complaint head_shape(const Op& op) const;
  Complaint positive(float value, std::string_view what) const;
  std::string where(const Program& program) const {
    return concat("graph '", program.graph, "' core ", program.core, ": ");
  }
  std::string where(const Program& program, std::size_t number) const {
    return concat("graph '", program.graph, "' core ", program.core, " op ", number, " (",
                  std::string(name_of(program.ops[number].opcode)), "): ");
  }

  const std::span<const Program> cores_;
  const std::span<const TensorView> tensors_;
  const KvLayout& kv_;
  const Arithmetic arithmetic_;
  VerifiedGraph out_;
};

boost::system::result<VerifiedGraph, std::string> Verifier::run() {
  if (Complaint bad = heads()) return *bad;
  for (const Program& program : cores_) {
    if (Complaint bad = buffers(program)) return where(program) + *bad;
    if (Complaint bad = skeleton(program)) return *bad;
    for (std::size_t i = 0; i < program.ops.size(); ++i)
      if (Complaint bad = operation(program.ops[i])) return where(program, i) + *bad;
  }
  if (Complaint bad = partners()) return *bad;
  const Program& first = cores_.front();
  if (Complaint bad = buffer(first.logits, "logits", BufferKind::f32, 0))
    return where(first) + *bad;
  if (first.buffers[first.logits].scope != BufferScope::shared)
    return concat(where(first), "the logits buffer is not shared");
  if (first.buffers[first.logits].width != out_.vocabulary)
    return concat(where(first), "the logits buffer has ", first.buffers[first.logits].width,
                  " elements, the embedding table ", out_.vocabulary, " rows");

  Flow flow(cores_, kv_, out_.last_token);
  if (std::optional<FlowError> bad = flow.run())
    return where(cores_[bad->core], bad->op) + bad->text;
  out_.one_row = flow.one_row();
  return std::move(out_);
}

Complaint Verifier::heads() const {
  if (cores_.empty() || cores_.size() > 2)
    return concat("a graph needs 1 or 2 programs, not ", cores_.size());
  const Program& first = cores_.front();
  for (std::size_t i = 0; i < cores_.size(); ++i) {
    const Program& p = cores_[i];
    const std::string at = where(p);
    if (p.graph != first.graph) return concat(at, "is paired with graph '", first.graph, "'");
    if (p.cores != cores_.size())
      return concat(at, "was compiled for ", p.cores, " cores, ", cores_.size(),
                    " programs are given");
    if (p.core != i) return concat(at, "stands in the place of core ", i);
    if (p.kind != first.kind || (p.kind != GraphKind::prefill && p.kind != GraphKind::decode))
      return concat(at, "the kind is unknown or differs between the cores");
    if (p.chip != first.chip) return concat(at, "the chip differs between the cores");
    if (p.numerics != 1)
      return concat(at, "numerics ", p.numerics, " is unknown; this build knows 1");
    if (p.logits != first.logits) return concat(at, "the logits buffer differs between the cores");
    if (p.buffers.size() != first.buffers.size() ||
        std::memcmp(p.buffers.data(), first.buffers.data(),
                    p.buffers.size() * sizeof(BufferDecl)) != 0)
      return concat(at, "the buffers differ between the cores");
  }
  if (Complaint bad = kv_layout()) return where(first) + *bad;
  return {};
}

Complaint Verifier::kv_layout() const {
  if (kv_.layers == 0 || kv_.layers > 4096 || kv_.tokens == 0 || kv_.tokens > kv_tokens_max ||
      kv_.kv_heads == 0 || kv_.kv_heads > 4096 || kv_.head_dim == 0 || kv_.head_dim > 1024 ||
      kv_.head_dim % 8 != 0)
    return "the KV layout must have 1..4096 layers and heads, 1..1048576 tokens and a head "
           "dimension that is a multiple of 8, at most 1024";
  return {};
}

Complaint Verifier::buffers(const Program& program) const {
  if (program.buffers.size() > program_buffers_max)
    return concat("more than ", program_buffers_max, " buffers");
  for (std::size_t i = 0; i < program.buffers.size(); ++i) {
    const BufferDecl& b = program.buffers[i];
    const std::string at = concat("buffer ", i, ": ");
    if (b.kind != BufferKind::f32 && b.kind != BufferKind::activation)
      return concat(at, "unknown kind");
    if (b.scope != BufferScope::shared && b.scope != BufferScope::local)
      return concat(at, "unknown scope");
    if (b.width == 0 || b.width > buffer_width_max)
      return concat(at, "the width must be 1..", buffer_width_max);
    if (b.kind == BufferKind::activation && b.width % block_elements != 0)
      return concat(at, "the width of an activation must be a multiple of 32");
  }
  return {};
}

Complaint Verifier::skeleton(const Program& program) {
  const std::vector<Op>& ops = program.ops;
  if (ops.size() > program_ops_max)
    return concat(where(program), "more than ", program_ops_max, " operations");
  if (ops.empty() || ops.back().opcode != Opcode::end)
    return concat(where(program), "the last operation is not end");
  std::vector<std::uint32_t> meetings;
  std::optional<std::uint32_t> last_token;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const Op& op = ops[i];
    if (op.opcode == Opcode::end && i + 1 != ops.size())
      return concat(where(program, i), "stands before the end of the program");
    if (op.opcode == Opcode::sync) {
      if (op.first != meetings.size())
        return concat(where(program, i), "has number ", op.first, " instead of ", meetings.size());
      meetings.push_back(static_cast<std::uint32_t>(i));
    }
    if (op.opcode == Opcode::last_token) {
      if (last_token) return concat(where(program, i), "stands there a second time");
      last_token = static_cast<std::uint32_t>(i);
    }
    if (op.opcode == Opcode::store_kv && last_token)
      return concat(where(program, i), "after last_token it would leave keys and values unwritten");
    if (op.opcode == Opcode::embed && op.tensor < tensors_.size())
      out_.vocabulary = static_cast<std::uint32_t>(
          std::min<std::uint64_t>(tensors_[op.tensor].rows, buffer_width_max + 1));
  }
  out_.meetings = std::move(meetings);
  out_.last_token = last_token.value_or(static_cast<std::uint32_t>(ops.size() - 1));
  return {};
}

Complaint Verifier::operation(const Op& op) const {
  if (op.reserved != 0) return "the reserved field is not 0";
  const std::uint16_t allowed = op.opcode == Opcode::matmul ? op_accumulate
                                : op.opcode == Opcode::rope ? op_rope_neox
                                                            : 0;
  if ((op.flags & ~allowed) != 0) return "has flags that it does not know";
  switch (op.opcode) {
    case Opcode::embed:
      return embed(op);
    case Opcode::rms_norm:
      return rms_norm(op);
    case Opcode::quantize:
      return quantize(op);
    case Opcode::matmul:
      return matmul(op);
    case Opcode::head_norm:
      return head_norm(op);
    case Opcode::rope:
      return rope(op);
    case Opcode::store_kv:
      return store_kv(op);
    case Opcode::attention:
      return attention(op);
    case Opcode::swiglu:
      return swiglu(op);
    case Opcode::sync:
    case Opcode::last_token:
    case Opcode::end:
      return {};
  }
  return concat("opcode ", static_cast<unsigned>(op.opcode), " is unknown");
}

Complaint Verifier::buffer(std::uint32_t index, std::string_view what, BufferKind kind,
                           std::uint64_t width) const {
  const std::vector<BufferDecl>& all = cores_.front().buffers;
  const std::string name(what);
  if (index >= all.size()) return concat(name, ": there is no buffer ", index);
  if (all[index].kind != kind)
    return concat(name, ": buffer ", index,
                  (kind == BufferKind::f32 ? " is not F32" : " is not an activation"));
  if (kind == BufferKind::activation && all[index].scope != BufferScope::local)
    return concat(name, ": activation buffer ", index, " is not local to its core");
  if (width != 0 && all[index].width != width)
    return concat(name, ": buffer ", index, " has ", all[index].width, " elements instead of ",
                  width);
  return {};
}

Complaint Verifier::share(const Op& op, std::uint64_t limit, std::uint32_t unit) const {
  if (std::uint64_t{op.first} + op.count > limit)
    return concat("the share [", op.first, ", ", std::uint64_t{op.first} + op.count, ") passes ",
                  limit);
  if (op.first % unit != 0 || op.count % unit != 0)
    return concat("the share does not lie on multiples of ", unit);
  return {};
}

Complaint Verifier::matrix(std::uint32_t index, std::string_view what) const {
  const std::string name(what);
  if (index >= tensors_.size()) return concat(name, ": there is no tensor ", index);
  const TensorView& t = tensors_[index];
  const std::string at = concat(name, ": tensor ", index, " ");
  if (t.data == nullptr) return concat(at, "has no data");
  if (t.dtype != DType::f32 && t.dtype != DType::f16 && t.dtype != DType::bf16 &&
      t.dtype != DType::q8_0)
    return concat(at, "has a type that kernels do not read");
  if (t.rows == 0 || t.rows > buffer_width_max || t.columns == 0 || t.columns > buffer_width_max)
    return concat(at, "has 0 or more than ", buffer_width_max, " rows or columns");
  return {};
}

Complaint Verifier::vector(std::uint32_t index, std::string_view what,
                           std::uint64_t elements) const {
  if (Complaint bad = matrix(index, what)) return bad;
  const TensorView& t = tensors_[index];
  const std::string at = concat(what, ": tensor ", index, " ");
  if (t.dtype != DType::f32) return concat(at, "is not F32");
  if (reinterpret_cast<std::uintptr_t>(t.data) % alignof(float) != 0)
    return concat(at, "is misaligned");
  if (t.rows != 1 || t.columns != elements) return concat(at, "is not a vector of ", elements);
  return {};
}

Complaint Verifier::positive(float value, std::string_view what) const {
  if (!std::isfinite(value) || value <= 0) return concat(what, " must be finite and above 0");
  return {};
}

Complaint Verifier::head_shape(const Op& op) const {
  if (op.head_dim != kv_.head_dim)
    return concat("head dimension ", op.head_dim, " instead of ", kv_.head_dim);
  if (op.width == 0 || op.width % op.head_dim != 0)
    return "the width is no multiple of the head dimension";
  return {};
}

Complaint Verifier::embed(const Op& op) const {
  if (Complaint bad = matrix(op.tensor, "table")) return bad;
  if (Complaint bad = buffer(op.out, "out", BufferKind::f32, op.width)) return bad;
  const TensorView& t = tensors_[op.tensor];
  if (t.columns != op.width)
    return concat("the table has ", t.columns, " columns, the operation ", op.width);
  if (t.rows != out_.vocabulary) return "two embedding tables of different length";
  return share(op, op.width, block_elements);
}

Complaint Verifier::rms_norm(const Op& op) const {
  if (Complaint bad = buffer(op.in, "in", BufferKind::f32, op.width)) return bad;
  if (Complaint bad = buffer(op.out, "out", BufferKind::activation, op.width)) return bad;
  if (Complaint bad = vector(op.tensor, "weight", op.width)) return bad;
  return positive(op.epsilon, "epsilon");
}

Complaint Verifier::quantize(const Op& op) const {
  if (Complaint bad = buffer(op.in, "in", BufferKind::f32, op.width)) return bad;
  return buffer(op.out, "out", BufferKind::activation, op.width);
}

Complaint Verifier::matmul(const Op& op) const {
  if (Complaint bad = buffer(op.in, "in", BufferKind::activation, op.width)) return bad;
  if (Complaint bad = matrix(op.tensor, "weight")) return bad;
  const TensorView& t = tensors_[op.tensor];
  if (arithmetic_ == Arithmetic::w8a8 && t.dtype != DType::q8_0)
    return concat("weight: tensor ", op.tensor, " is not Q8_0, as W8A8 needs it");
  if (t.columns != op.width)
    return concat("weight: tensor ", op.tensor, " has ", t.columns, " columns, the input ",
                  op.width);
  if (Complaint bad = buffer(op.out, "out", BufferKind::f32, t.rows)) return bad;
  if (op.bias != no_tensor) {
    if (Complaint bad = vector(op.bias, "bias", t.rows)) return bad;
  }
  return share(op, t.rows, 1);
}

Complaint Verifier::head_norm(const Op& op) const {
  if (Complaint bad = buffer(op.out, "out", BufferKind::f32, op.width)) return bad;
  if (Complaint bad = head_shape(op)) return bad;
  if (Complaint bad = vector(op.tensor, "weight", op.head_dim)) return bad;
  if (Complaint bad = positive(op.epsilon, "epsilon")) return bad;
  return share(op, op.width / op.head_dim, 1);
}

Complaint Verifier::rope(const Op& op) const {
  if (Complaint bad = buffer(op.out, "out", BufferKind::f32, op.width)) return bad;
  if (Complaint bad = head_shape(op)) return bad;
  if (op.rope_dims == 0 || op.rope_dims % 2 != 0 || op.rope_dims > op.head_dim)
    return "rope_dims must be even, 2..head dimension";
  if (!std::isfinite(op.rope_base) || op.rope_base <= 1)
    return "the rope base must be finite and above 1";
  return share(op, op.width / op.head_dim, 1);
}

Complaint Verifier::store_kv(const Op& op) const {
  if (op.layer >= kv_.layers) return concat("there is no layer ", op.layer);
  if (Complaint bad = buffer(op.in, "keys", BufferKind::f32, op.width)) return bad;
  if (Complaint bad = buffer(op.in2, "values", BufferKind::f32, op.width)) return bad;
  if (Complaint bad = head_shape(op)) return bad;
  if (op.width / op.head_dim != kv_.kv_heads)
    return concat("has ", op.width / op.head_dim, " heads, the KV layout ", kv_.kv_heads);
  return share(op, kv_.kv_heads, 1);
}

Complaint Verifier::attention(const Op& op) const {
  if (op.layer >= kv_.layers) return concat("there is no layer ", op.layer);
  if (Complaint bad = buffer(op.in, "in", BufferKind::f32, op.width)) return bad;
  if (Complaint bad = buffer(op.out, "out", BufferKind::f32, op.width)) return bad;
  if (op.in == op.out) return "writes over its own input";
  if (Complaint bad = head_shape(op)) return bad;
  if (op.group == 0 || std::uint64_t{op.group} * kv_.kv_heads != op.width / op.head_dim)
    return "group x kv heads is not the number of heads";
  return share(op, op.width / op.head_dim, 1);
}

Complaint Verifier::swiglu(const Op& op) const {
  if (Complaint bad = buffer(op.in, "in", BufferKind::f32, op.width)) return bad;
  if (Complaint bad = buffer(op.in2, "in2", BufferKind::f32, op.width)) return bad;
  if (Complaint bad = buffer(op.out, "out", BufferKind::f32, op.width)) return bad;
  return share(op, op.width, 8);
}

Complaint Verifier::partners() const {
  const Program& a = cores_.front();
  const Program& b = cores_.back();
  if (a.ops.size() != b.ops.size())
    return concat(where(b), "has ", b.ops.size(), " operations, core 0 ", a.ops.size());
  for (std::size_t i = 0; i < a.ops.size(); ++i) {
    Op left = a.ops[i];
    Op right = b.ops[i];
    left.first = left.count = right.first = right.count = 0;
    if (std::memcmp(&left, &right, sizeof(Op)) != 0)
      return concat(where(b, i), "differs from core 0's in more than its share");
  }
  return {};
}

}   // namespace

boost::system::result<VerifiedGraph, std::string> verify_graph(std::span<const Program> cores,
                                                               std::span<const TensorView> tensors,
                                                               const KvLayout& kv,
                                                               Arithmetic arithmetic) {
  return Verifier(cores, tensors, kv, arithmetic).run();
}

}   // namespace duet::device
