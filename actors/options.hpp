// options.hpp: what config/ fills in for the application.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace duet::actors {

/// One alias and its limits. Names bind exactly to the package's manifest; nothing is guessed.
struct ModelOptions {
  std::string alias;
  std::string package_model;   ///< the model's name in the manifest, "" = the one with this alias.
  std::uint32_t chip = 0;      ///< must be the manifest's.
  std::string prefill_graph;   ///< must be the manifest's; "" = not checked.
  std::string decode_graph;
  std::uint32_t context_max = 0;   ///< 0 = the manifest's; never above it.
  std::uint32_t requests_waiting_max =
      64;   ///< a worker's queue; refused with `overloaded` above it.
  std::uint64_t prompt_tokens_waiting_max = 65536;
  std::uint32_t sequences_max = 0;   ///< with KV at a time; 0 = the manifest's slots, never above.
  std::uint32_t inflight_max = 1;    ///< 2 needs verified separate buffers and ping/pong.
  std::chrono::milliseconds queue_timeout{30000};   ///< then `overloaded`, before any header.
  std::chrono::milliseconds request_timeout{600000};
  std::chrono::milliseconds job_deadline_min{10000};   ///< the watchdog's floor.
  std::string package;            ///< its own package directory; "" = DeviceOptions::package.
  std::string tokenizer_sha256;   ///< must be the manifest's; "" = not checked.
};

/// Decode first; after so many decodes or so long the oldest prefill of the best class runs (R-9.3,
///
struct SchedulingOptions {
  std::uint32_t short_prefill_tokens = 512;
  std::uint32_t medium_prefill_tokens = 4096;
  std::uint32_t decode_run_max = 16;
  std::chrono::milliseconds prefill_wait_max{200};
};

struct DeviceOptions {
  std::string package;                        ///< directory.
  std::vector<std::string> trusted_signers;   ///< files of public keys.
  std::vector<std::string> revoked_signers;   ///< files of lists of public keys.
  bool allow_unsigned = false;
  std::chrono::seconds call_deadline{
      120};   ///< of a life-cycle call; then the process must restart.
  std::chrono::seconds drain_deadline{30};
  std::uint32_t recovery_attempts = 3;   ///< in a row; a board that needs more needs a person.
  /// Before the second attempt, then doubled up to limits::recovery_pause_max.
  std::chrono::milliseconds recovery_backoff{1000};
  /// Ask the host to restart the process when a reset itself does not come back; else Failed.
  bool restart_on_unknown_dma = true;
  std::uint32_t golden_prompts_max = 4;   ///< checked before Ready; 0 = all.
};

struct ServiceOptions {
  DeviceOptions device;
  std::vector<ModelOptions> models;   ///< one or two.
  SchedulingOptions scheduling;
  std::chrono::seconds stop_deadline{30};   ///< SIGTERM: streams may finish for so long.
};

}   // namespace duet::actors
