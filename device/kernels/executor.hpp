// executor.hpp: runs the programs of one graph on the CPU, tile by tile, with one or two threads.
#pragma once

#include "device/package/manifest.hpp"
#include "device/program/op.hpp"

#include <boost/system/result.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace duet::device {

enum class Arithmetic : std::uint8_t {
  w8a8,   ///< numerics 1: int8 products, BF16 KV.
  f32,    ///< the reference: every weight widened to F32, KV in F32.
};

/// Read-only view of one tensor's bytes; the owner of the parameters keeps them alive.
struct TensorView {
  DType dtype = DType::f32;
  std::uint64_t rows = 0;   ///< 1 for a vector.
  std::uint64_t columns = 0;
  const std::byte* data = nullptr;
};

/// The key/value memory of one sequence: for each layer K then V, each
/// [tokens][kv_heads][head_dim]. The element is BF16 under w8a8 and F32 under f32.
struct KvLayout {
  std::uint32_t layers = 0;
  std::uint32_t tokens = 0;   ///< capacity.
  std::uint32_t kv_heads = 0;
  std::uint32_t head_dim = 0;
  [[nodiscard]] std::uint64_t bytes(Arithmetic arithmetic) const;
};

/// Two threads of one chip meet at `sync`. The executor calls it from both; the emulator's threaded
/// driver implements it.
class CoreRunner {
 public:
  virtual ~CoreRunner() = default;
  /// Calls body(context, 0) and body(context, 1), in turn on this thread or at the same time on
  /// two; returns after both.
  virtual void run_cores(void (*body)(void* context, std::uint32_t core), void* context) = 0;
  /// True if the two bodies run at the same time, so that `sync` may wait.
  [[nodiscard]] virtual bool parallel() const = 0;
};

/// A verified graph, ready to run. Immutable: any number of threads may run it at once, each with
/// its own Workspace.
class Executable {
 public:
  /// Checks every operation against buffers, tensors, KV layout and its partner's program, so that
  /// run() needs no checks and cannot leave its memory. `tensors` is indexed by Op::tensor and must
  /// outlive the Executable. The error text names the graph, core, operation number and what is
  /// wrong.
  static boost::system::result<std::shared_ptr<const Executable>, std::string> create(
      std::vector<Program> cores, std::vector<TensorView> tensors, KvLayout kv,
      Arithmetic arithmetic);

  virtual ~Executable() = default;

  [[nodiscard]] virtual std::uint32_t vocabulary() const = 0;   ///< width of the logits.

  /// Scratch memory of one job at a time; `tile` tokens are computed together.
  /// bytes() is the sum of the following, with T = tile and C = cores; a row of F32 or int8 is
  /// rounded up to 64 bytes, a row of scales to 32, a whole term to 64:
  ///   F32 buffer of width w: 4*T*w, once if shared, C times if local; T counts as 1 where the
  ///   buffer serves the last token only (the logits);
  ///   activation of width w, C times: T*(w + w/8) under w8a8, 4*T*w under f32;
  ///   scratch, C times: the largest of (T+2)*K + K/4 and 16*K over matmuls of K columns (K rounded
  ///   up to 256), and 512*head_dim + 8*T*group over attentions.
  class Workspace {
   public:
    virtual ~Workspace() = default;
    [[nodiscard]] virtual std::uint64_t bytes() const = 0;
  };
  /// `tile` is clamped to 1..tile_max; a decode graph computes one token at a time whatever it is.
  /// Throws std::bad_alloc. The workspace belongs to this Executable.
  [[nodiscard]] virtual std::unique_ptr<Workspace> make_workspace(std::uint32_t tile) const = 0;

  /// Computes `tokens` at positions [past, past + tokens.size()) and writes the logits of the last
  /// one (vocabulary F32). `kv` holds KvLayout::bytes(); positions below `past` are read, the new
  /// ones written; nothing past them is touched. The caller guarantees token ids < vocabulary and
  /// past + tokens.size() <= KvLayout::tokens; tokens is not empty, and kv is aligned for F32.
  /// Results are bit-equal for every tile size, for one or two threads and on every SIMD target.
  /// Neither allocates nor throws; a broken guarantee stops the process.
  virtual void run(std::span<const std::uint32_t> tokens, std::uint32_t past,
                   std::span<std::byte> kv, std::span<float> logits, Workspace& workspace,
                   CoreRunner& runner) const = 0;
};

inline constexpr std::uint32_t tile_max =
    256;   ///< activations of 256 tokens of a 1B model stay within 16 MiB.
inline constexpr std::uint32_t tile_default = 64;

/// Runs the cores' programs in turn on the calling thread.
class SerialRunner final : public CoreRunner {
 public:
  void run_cores(void (*body)(void* context, std::uint32_t core), void* context) override;
  [[nodiscard]] bool parallel() const override { return false; }
};

/// Names of the Highway targets compiled in and supported by this CPU, best first; for tests and
/// benchmarks.
[[nodiscard]] std::vector<std::string> simd_targets();

/// Names of all Highway targets compiled in, supported here or not.
[[nodiscard]] std::vector<std::string> simd_targets_compiled();

/// Restricts dispatch of this process to one target by name, or to the best one with "". For tests;
/// not thread-safe. False if the target is unknown or not supported here.
bool force_simd_target(const std::string& name);

}   // namespace duet::device
