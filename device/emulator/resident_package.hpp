// resident_package.hpp: a configured package in the emulated board's memory, ready to compute.
#pragma once

#include "device/emulator/board_core.hpp"
#include "device/emulator/host_memory.hpp"
#include "device/emulator/package_image.hpp"
#include "device/kernels/executor.hpp"

#include <array>
#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace duet::device::emulator {

using MakeExecutable =
    std::function<boost::system::result<std::shared_ptr<const Executable>, std::string>(
        std::vector<Program>, std::vector<TensorView>, KvLayout, Arithmetic)>;

/// All memory that jobs need, so that a job allocates nothing. Threads of different chips may use
/// it at once; of one chip, one.
class ResidentPackage {
 public:
  /// Copies the parameters out of the package, checks the copies against the manifest's SHA-256 (a
  /// file may have changed since validation, and may change later), and has every program verified.
  /// `plan` was made of the image's manifest. `programs` is indexed by graph handle. `tile`: tokens
  /// computed together, halved until the workspace fits its section. Errors: package_invalid,
  /// out_of_memory. Throws std::bad_alloc.
  static result<std::unique_ptr<ResidentPackage>> build(const PackageImage& image,
                                                        const BoardPlan& plan,
                                                        std::vector<std::vector<Program>> programs,
                                                        const MakeExecutable& make,
                                                        std::uint32_t tile);

  /// Staging of one engine in the chip's memory: as long as the longest job of the chip.
  [[nodiscard]] std::span<std::uint32_t> input(std::uint32_t chip, Engine engine) noexcept;
  [[nodiscard]] std::span<float> output(std::uint32_t chip, Engine engine) noexcept;

  /// Computes from the engine's input to its output. Success, or bad_argument for a token outside
  /// the vocabulary, or bad_output for a result that is not finite. `spoil` puts a NaN in first.
  boost::system::error_code compute(const JobView& job, bool spoil, CoreRunner& runner) noexcept;

  [[nodiscard]] std::uint32_t vocabulary(GraphHandle graph) const noexcept;
  /// The largest workspace that a job of the chip uses, bytes.
  [[nodiscard]] std::uint64_t workspace_peak_bytes(std::uint32_t chip) const noexcept;
  /// The parameters that the chip really holds, bytes.
  [[nodiscard]] std::uint64_t parameter_bytes(std::uint32_t chip) const noexcept;

 private:
  struct ResidentModel {
    HostMemory parameters;
    HostMemory kv;
    std::uint64_t bytes_per_slot = 0;
    std::uint64_t bytes_used_per_slot = 0;
    std::vector<TensorView> tensors;
    KvLayout layout;
    std::uint32_t chip = 0;
  };
  struct ResidentGraph {
    std::shared_ptr<const Executable> executable;
    std::unique_ptr<Executable::Workspace> workspace;
    std::uint32_t chip = 0;
    std::uint32_t vocabulary = 0;
  };
  struct Staging {
    std::vector<std::uint32_t> input;
    std::vector<float> output;
  };

  ResidentPackage() = default;
  static result<ResidentModel> load_model(const PackageImage& image, const Model& model);
  static result<ResidentGraph> load_graph(const Manifest& manifest, const GraphPlan& plan,
                                          const ResidentModel& model, std::vector<Program> programs,
                                          const MakeExecutable& make, std::uint32_t tile);

  std::vector<ResidentModel> models_;   ///< indexed by pool; before the graphs, which point in.
  std::vector<ResidentGraph> graphs_;   ///< indexed by graph handle.
  std::array<std::array<Staging, engines_per_chip>, limits::chips_max> staging_;
};

/// True if no element is an infinity or NaN.
[[nodiscard]] bool all_finite(std::span<const float> values) noexcept;

}   // namespace duet::device::emulator
