// duet_server.cpp: the command line of the server: from a configuration, or from model files, to a
// checked package, and off it goes.
#include "config/config.hpp"
#include "config/cross_check.hpp"
#include "device/package/budget.hpp"
#include "device/package/validator.hpp"
#include "tools/arguments.hpp"
#include "tools/model_cache.hpp"
#include "tools/server_host.hpp"

#include <boost/json/serialize.hpp>
#include <boost/json/string.hpp>

#include <cstdint>
#include <cstdio>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace duet;   // NOLINT: the program that puts all of it together
using tools::Arguments;

constexpr std::size_t socket_path_bytes_max = 107;   // sockaddr_un, with its null byte

constexpr const char* help = R"(usage: duet-server --config FILE [options]
       duet-server --model ALIAS=FILE.gguf [--model ALIAS=FILE.gguf] [options]

Serves one or two models on the two chips of a board behind one OpenAI-compatible endpoint.

  --config FILE          a configuration (calculet-dual-model/v1); config/demo.yaml serves the demo
                         models; every key is in docs/configuration.md
  --model ALIAS=FILE     instead of a configuration: pack the model file for the emulated board and
                         serve it as ALIAS; the first on chip 0, the second on chip 1
  --cache DIRECTORY      where --model keeps packages; else $XDG_CACHE_HOME/duet or ~/.cache/duet
  --check                check configuration, package and memory budget, open no device, and end
  --port N               listen on this port instead of the configured one; 0: the system chooses
  --port-file FILE       write the port there once clients are served
  --admin-socket PATH    show actors, models and traces there, for duet-ctl; overrides admin.socket
  --board NAME           the board to use; overrides device.board
  --help                 this text

SIGTERM and SIGINT drain: readiness goes to 503, new requests are refused, running answers finish.
A second one ends at once.
Exit codes: 0 done, 1 a finding or a failure, 2 wrong use, 75 the process must be restarted.
)";

int wrong_use(const std::string& what) {
  std::fprintf(stderr, "duet-server: %s; see duet-server --help\n", what.c_str());
  return tools::exit_wrong_use;
}

/// Prints findings; true if there was none.
bool none(const std::vector<config::Finding>& findings, const char* kind) {
  for (const config::Finding& finding : findings) {
    std::fprintf(stderr, "duet-server: %s: %s\n", kind, config::to_string(finding).c_str());
  }
  return findings.empty();
}

/// The validated package, or null after printing why not. `serving`: a signature that cannot be
/// verified is an error.
std::shared_ptr<const device::Package> open_package(const config::Config& config, bool serving) {
  device::ValidateOptions options;
  options.allow_unsigned = config.service.device.allow_unsigned || !serving;
  options.revoked_keys = config.revoked_keys;
  const std::vector<std::string>& signers = config.service.device.trusted_signers;
  for (std::size_t i = 0; i < signers.size(); ++i) {
    const auto key = device::read_public_key(signers[i]);
    if (!key) {
      const std::string name = "security.trusted_signers[" + std::to_string(i) + "]";
      none({{config.file, config.at(name), name, key.error().message}}, "error");
      return nullptr;
    }
    options.trusted_keys.push_back(*key);
  }
  device::ValidationReport report =
      device::validate_package(config.service.device.package, options);
  for (const device::Finding& finding : report.findings.list()) {
    std::fprintf(stderr, "duet-server: %s\n", device::finding_text(finding).c_str());
  }
  if (report.package == nullptr) {
    if (serving) tools::log_refusal(config, report);
    return nullptr;
  }
  return none(config::cross_check(config, report.package->manifest()), "error") ? report.package
                                                                                : nullptr;
}

/// One line a chip; false if a chip has no room for what the package reserves.
bool budget_allows(const device::Package& package) {
  bool allowed = true;
  for (const device::ChipBudget& budget : device::chip_budgets(package.manifest())) {
    std::fprintf(stderr, "duet-server: budget: %s\n", device::budget_text(budget).c_str());
    allowed = allowed && budget.verdict != device::BudgetVerdict::no_go;
  }
  if (!allowed) std::fprintf(stderr, "duet-server: error: the models do not fit their chips\n");
  return allowed;
}

/// One line a step: packing a large model takes minutes.
class ProgressLines {
 public:
  void operator()(const device::PackProgress& progress) {
    const std::uint64_t percent = progress.total == 0 ? 0 : progress.done * 100 / progress.total;
    const std::string step =
        progress.model.empty() ? progress.step : progress.model + ": " + progress.step;
    if (step == step_ && percent < next_) return;
    if (step != step_) next_ = 0;
    step_ = step;
    next_ = percent - percent % 25 + 25;
    std::fprintf(stderr, "duet-server: packing %s %d %%\n", step.c_str(),
                 static_cast<int>(percent));
  }

 private:
  std::string step_;
  std::uint64_t next_ = 0;
};

/// The configuration that `--model` stands for. Exit code on failure.
struct FromModels {
  std::optional<config::Config> config;
  int exit_code = tools::exit_done;
};

FromModels config_from_models(const Arguments& arguments) {
  std::vector<std::pair<std::string, std::string>> models;
  for (const std::string& word : arguments.all("--model")) {
    const std::size_t equals = word.find('=');
    if (equals == 0 || equals == std::string::npos || equals + 1 == word.size()) {
      return {{}, wrong_use("--model wants ALIAS=FILE.gguf, not '" + word + "'")};
    }
    models.emplace_back(word.substr(0, equals), word.substr(equals + 1));
  }
  if (models.size() > 2) return {{}, wrong_use("the board has two chips, so two --model at most")};
  const std::string cache = arguments.last("--cache", tools::default_model_cache());
  if (cache.empty()) return {{}, wrong_use("there is no HOME; name a directory with --cache")};

  // The words of a configuration file: the same defaults and the same checks.
  using boost::json::serialize;
  using boost::json::string;
  std::string text =
      "schema: calculet-dual-model/v1\ndevice:\n  type: emulated\n  combined_calbin: " +
      serialize(string(cache + "/package")) + "\nmodels:\n";
  for (std::size_t i = 0; i < models.size(); ++i) {
    text += "  - alias: " + serialize(string(models[i].first)) +
            "\n    chip_id: " + std::to_string(i) + "\n";
  }
  config::LoadResult loaded = config::parse_config(text, "--model");
  if (!none(loaded.errors, "error")) return {{}, tools::exit_finding};
  const auto package = tools::package_from_models(cache, models, ProgressLines());
  if (!package) {
    std::fprintf(stderr, "duet-server: error: %s\n", package.error().message.c_str());
    return {{}, tools::exit_finding};
  }
  std::fprintf(stderr, "duet-server: %s %s\n", package->packed ? "packed" : "found",
               package->directory.c_str());
  loaded.config->service.device.package = package->directory;
  loaded.config->service.device.trusted_signers = {package->public_key};
  return {std::move(loaded.config), tools::exit_done};
}

/// What the command line says about a configuration, wherever that came from. False: wrong use.
bool override_config(const Arguments& arguments, config::Config& config) {
  if (arguments.flag("--port")) {
    const auto port = tools::parse_number(arguments.last("--port", ""), 0, 65535);
    if (!port) {
      wrong_use("--port wants a number from 0 to 65535");
      return false;
    }
    config.http.port = static_cast<std::uint16_t>(*port);
  }
  config.admin.socket = arguments.last("--admin-socket", config.admin.socket);
  if (config.admin.socket.size() > socket_path_bytes_max) {
    wrong_use("--admin-socket: a socket's path has at most 107 bytes: " + config.admin.socket);
    return false;
  }
  config.device.board = arguments.last("--board", config.device.board);
  return true;
}

int run(const Arguments& arguments) {
  const std::string file = arguments.last("--config", "");
  const bool from_models = arguments.flag("--model");
  if (file.empty() != from_models) {
    return wrong_use(from_models ? "--config and --model exclude each other"
                                 : "--config or --model is missing");
  }
  std::optional<config::Config> config;
  if (from_models) {
    FromModels made = config_from_models(arguments);
    if (!made.config) return made.exit_code;
    config = std::move(made.config);
  } else {
    config::LoadResult loaded = config::load_config(file);
    none(loaded.warnings, "warning");
    if (!none(loaded.errors, "error")) return tools::exit_finding;
    config = std::move(loaded.config);
  }
  if (!override_config(arguments, *config)) return tools::exit_wrong_use;
  const bool check = arguments.flag("--check");
  if (!check && !none(config::check_serving(*config), "error")) return tools::exit_finding;
  if (!check && config->device.runtime == config::DeviceRuntime::plugin) {
    std::fprintf(stderr,
                 "duet-server: error: %s: device.runtime: this version serves the emulator only\n",
                 file.c_str());
    return tools::exit_finding;
  }
  auto package = open_package(*config, !check);
  if (package == nullptr || !budget_allows(*package)) return tools::exit_finding;
  if (check) {
    std::printf("%s: right; package %s\n", config->file.c_str(), package->hash().c_str());
    return tools::exit_done;
  }
  try {
    tools::ServerHost host(std::move(*config), std::move(package));
    return host.run(arguments.last("--port-file", ""));
  } catch (const std::exception& exception) {
    std::fprintf(stderr, "duet-server: error: %s\n", exception.what());
    return tools::exit_finding;
  }
}

}   // namespace

int main(int argc, char** argv) {
  tools::secure_standard_streams();
  const std::vector<std::string> words(argv + 1, argv + argc);
  tools::ArgumentRules rules;
  rules.flags = {"--check", "--help"};
  rules.options = {"--config",    "--model",        "--cache", "--port",
                   "--port-file", "--admin-socket", "--board"};
  std::string error;
  const auto arguments = Arguments::parse(words, rules, error);
  if (!arguments) return wrong_use(error);
  if (arguments->flag("--help")) {
    std::fputs(help, stdout);
    return tools::exit_done;
  }
  return run(*arguments);
}
