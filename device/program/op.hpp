// op.hpp: the instruction set of the emulated board's graph programs. Plain data; no behaviour.
//
// A program is the list that one CalCore executes for one graph. The two programs of a chip run
// side by side: between two `sync` operations they write disjoint parts of the shared buffers, so
// that one thread that runs both in turn and two threads that run one each give the same bits.
#pragma once

#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

namespace duet::device {

inline constexpr std::uint32_t no_tensor = 0xffffffffU;
inline constexpr std::uint32_t no_buffer = 0xffffffffU;

enum class Opcode : std::uint16_t {
  embed = 1,   ///< out[t][first..first+count) = widened row tokens[t] of `tensor` (columns split
               ///< over the cores).
  rms_norm =
      2,   ///< out[t] = in[t] / rms(in[t]) * tensor; `epsilon`. `out` is a local activation buffer.
  quantize = 3,    ///< out[t] = in[t] as activation (Q8 blocks of 32 under W8A8, a copy under F32).
  matmul = 4,      ///< out[t][row] (= or +=) dot(tensor[row], in[t]) + bias[row] for rows [first,
                   ///< first+count).
  head_norm = 5,   ///< in place: RMSNorm of heads [first, first+count) of `out`, weight `tensor`;
                   ///< `epsilon`.
  rope = 6,        ///< in place: rotates heads [first, first+count) of `out` by position; base =
                   ///< `rope_base`.
  store_kv = 7,   ///< writes kv heads [first, first+count) of `in` (K) and `in2` (V) into the KV of
                  ///< `layer`.
  attention = 8,   ///< out heads [first, first+count): softmax(q·K/sqrt(head_dim))·V over positions
                   ///< 0..t; q = `in`.
  swiglu = 9,   ///< out[t][i] = silu(in[t][i]) * in2[t][i] for i in [first, first+count).
  sync = 10,    ///< both cores of the chip meet; `first` numbers the meeting within the program,
                ///< from 0.
  last_token = 11,   ///< from here on only the job's last token is computed (prefill returns one
                     ///< row of logits).
  end = 12,          ///< the last operation of a program.
};

/// Bits of Op::flags.
enum OpFlag : std::uint16_t {
  op_accumulate = 1,   ///< matmul: add to `out` instead of overwriting it (residual).
  op_rope_neox = 2,    ///< rope: pairs are (i, i + half); without it neighbours (2i, 2i + 1).
};

/// One operation: 64 bytes, little-endian, as it lies in the section `.duet.prog`.
struct Op {
  Opcode opcode;
  std::uint16_t flags;
  std::uint32_t layer;    ///< 0..layers-1; 0 where it has no meaning.
  std::uint32_t tensor;   ///< index into the model's tensor list, or no_tensor.
  std::uint32_t bias;     ///< as `tensor`; the bias of matmul.
  std::uint32_t in;       ///< index into Program::buffers, or no_buffer.
  std::uint32_t in2;
  std::uint32_t out;
  std::uint32_t first;      ///< first row, head, column or element of this core's share.
  std::uint32_t count;      ///< size of the share; 0 is allowed (an idle core).
  std::uint32_t width;      ///< elements of `in` a token (matmul: columns of the tensor; embed:
                            ///< columns of the row).
  std::uint32_t head_dim;   ///< head_norm, rope, store_kv, attention.
  std::uint32_t group;      ///< attention: query heads that share one kv head.
  std::uint32_t
      rope_dims;     ///< rope: the first rope_dims elements of a head rotate; even, <= head_dim.
  float epsilon;     ///< rms_norm, head_norm.
  float rope_base;   ///< rope.
  std::uint32_t reserved;   ///< 0.
};
static_assert(sizeof(Op) == 64 && std::is_trivially_copyable_v<Op>);

enum class BufferKind : std::uint16_t {
  f32 = 1,          ///< F32 elements.
  activation = 2,   ///< Q8 blocks under W8A8, F32 under the reference numerics.
};

enum class BufferScope : std::uint16_t {
  shared = 1,   ///< one for both cores of the chip.
  local = 2,    ///< one a core.
};

/// A working buffer: `width` elements a token.
struct BufferDecl {
  BufferKind kind;
  BufferScope scope;
  std::uint32_t width;
};
static_assert(sizeof(BufferDecl) == 8 && std::is_trivially_copyable_v<BufferDecl>);

enum class GraphKind : std::uint8_t { prefill = 0, decode = 1 };

/// What one ELF file holds. `numerics` names the rules of the arithmetic; 1 is W8A8 as
/// docs/numerics.md defines it.
struct Program {
  std::string graph;   ///< exact graph name, e.g. "model_a_prefill".
  GraphKind kind = GraphKind::prefill;
  std::uint32_t chip = 0;    ///< the one chip it was compiled for.
  std::uint32_t core = 0;    ///< the CalCore of that chip: 0 or 1.
  std::uint32_t cores = 2;   ///< how many programs share the graph on this chip: 1 or 2.
  std::uint32_t numerics = 1;
  std::uint32_t logits = no_buffer;   ///< the shared F32 buffer whose last row is the job's output.
  std::vector<BufferDecl> buffers;    ///< both cores' programs declare the same list.
  std::vector<Op> ops;
};

}   // namespace duet::device
