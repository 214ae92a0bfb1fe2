// system_options.hpp: what may be chosen about a system and about an actor.
#pragma once

#include "runtime/limits.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace duet::runtime {

class Clock;
class CompletionSource;
class Random;
class Scheduler;
struct ActorFailure;

namespace detail {
struct MonitorNode;
}   // namespace detail

struct SystemOptions {
  std::string name = "duet";
  std::uint32_t pumps = 1;   ///< the threads that run the host's executor
  /// Of an actor that sets none; 1 .. limits::bounded_messages_max.
  std::uint32_t bounded_max = limits::bounded_messages_default;
  std::uint32_t compute_threads = 1;        ///< of offload(); opened when first used
  std::uint32_t compute_queued_max = 256;   ///< computations that wait for one compute thread
  std::uint32_t stamp_activations =
      limits::stamp_activations_max;   ///< 1: every one reads the clock

  // The seams. Null: the real one, made over the host's executor. Given ones outlive the system.
  Scheduler* scheduler = nullptr;
  Clock* clock = nullptr;
  Random* random = nullptr;
  CompletionSource* completions = nullptr;

  /// On the failing actor's strand, before its watchers hear of it; must not throw.
  std::function<void(const ActorFailure&)> on_failure;
};

struct ActorOptions {
  // NOLINTNEXTLINE(google-explicit-constructor): a name is what most actors have
  ActorOptions(const char* actor_name) noexcept : name(actor_name) {}
  ActorOptions(std::string_view actor_name) noexcept : name(actor_name) {}
  ActorOptions(const std::string& actor_name) noexcept : name(actor_name) {}

  std::string_view name;           ///< copied; cut at limits::name_characters_max
  std::uint32_t bounded_max = 0;   ///< 0: the system's; at most limits::bounded_messages_max
  /// Ref::send_and_run() may run it on the sender's thread: for those that a completion thread
  /// feeds.
  bool run_on_completion_thread = false;

  // Set by the runtime itself.
  bool supervised = false;                        ///< System::stop() leaves it to its supervisor
  detail::MonitorNode* first_watcher = nullptr;   ///< watches from the first moment
};

}   // namespace duet::runtime
