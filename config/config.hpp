// config.hpp: a configuration file as plain values, and how to load one.
#pragma once

#include "actors/options.hpp"
#include "config/faults_file.hpp"
#include "config/finding.hpp"
#include "device/package/signature.hpp"
#include "http/server_options.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace duet::config {

enum class DeviceType : std::uint8_t { pcie, emulated };
enum class DeviceRuntime : std::uint8_t {
  emulator,
  plugin,
  unset,   ///< `type: pcie` without `runtime`: can be checked, not served.
};
enum class Dialect : std::uint8_t { automatic, combined, sessions };

/// Which board, and who drives it.
struct DeviceSelection {
  DeviceType type = DeviceType::pcie;
  DeviceRuntime runtime = DeviceRuntime::unset;   ///< emulator, if the type is emulated.
  std::string plugin;                             ///< file of the vendor runtime's plug-in.
  std::string board = "board0";
  Dialect dialect = Dialect::automatic;
  std::string profile = "combined";     ///< of the emulated board.
  std::uint32_t threads_per_chip = 1;   ///< of the emulated board.
  std::string lock_directory;           ///< of the emulated board; "" = the emulator's own choice.
  std::string faults_file;              ///< of an emulated board that makes answers up; "" = none.
  std::vector<AnswerScript> answers;    ///< that the file holds.
  std::uint32_t expected_chips = 2;
};

struct AdminOptions {
  std::string socket;                     ///< path; "" = no administration socket.
  std::vector<std::uint32_t> allow_uid;   ///< besides the server's own user.
};

enum class LogLevel : std::uint8_t { debug, info, warning, error };
struct LogOptions {
  LogLevel level = LogLevel::info;
  std::string file;       ///< "" = standard error.
  bool prompts = false;   ///< prompt and answer texts, too.
};

struct RuntimeOptions {
  std::uint32_t threads = 1;   ///< that run actors and connections.
};

/// session reset also needs a topology that promises it. What the application itself
/// decides by is in actors::DeviceOptions.
struct RecoveryOptions {
  bool allow_session_reset = false;
  std::string conformance_report;   ///< file; "" = none, so only the device rung is used.
  std::chrono::milliseconds replay_wait{10000};   ///< requests wait this long to be replayed.
  std::uint32_t quarantine_max = 8;               ///< jobs a chip that never came back.
};

/// Where each key of the file was, by its path ("models[1].chip_id").
using Locations = std::map<std::string, Location, std::less<>>;

struct Config {
  std::string file;     ///< as the caller named it.
  std::string schema;   ///< "calculet-dual-model/v1".
  DeviceSelection device;
  actors::ServiceOptions service;
  http::ServerOptions http;
  AdminOptions admin;
  LogOptions log;
  RuntimeOptions runtime;
  RecoveryOptions recovery;
  std::string keys_file;                         ///< what http.keys were read from; "" = none.
  std::vector<device::PublicKey> revoked_keys;   ///< of service.device.revoked_signers.
  Locations locations;

  /// True if the file holds this key.
  [[nodiscard]] bool given(std::string_view key) const { return locations.contains(key); }
  /// The place of `key`, or of the nearest block around it that the file holds.
  [[nodiscard]] Location at(std::string_view key) const;
};

struct LoadResult {
  std::optional<Config> config;   ///< present if and only if there is no error.
  std::vector<Finding> errors;    ///< all there are, in the order of the file.
  std::vector<Finding> warnings;
};

/// Reads the file, and the keys, faults and revoked signers files that it names. Relative paths in
/// it are relative to its directory; the paths in the result are not. Every error is a finding:
/// nothing is thrown but lack of memory. No other file is looked at. Blocking; any thread.
[[nodiscard]] LoadResult load_config(const std::string& path);

/// The same of a text that came from `file`; reads no file, so http.keys, device.answers and
/// revoked_keys stay empty.
[[nodiscard]] LoadResult parse_config(std::string_view text, const std::string& file);

/// What need not be there for a check, but is needed to serve: a runtime, and trust in the package.
[[nodiscard]] std::vector<Finding> check_serving(const Config& config);

}   // namespace duet::config
