// duet_pack.cpp: builds, judges, shows and signs packages from the command line.
#include "device/package/file_tree.hpp"
#include "device/package/json_text.hpp"
#include "device/package/manifest_yaml.hpp"
#include "device/package/package_files.hpp"
#include "device/package/packer.hpp"
#include "device/package/sha256.hpp"
#include "device/package/validator.hpp"
#include "device/program/byte_reader.hpp"
#include "tools/duet_pack_command.hpp"
#include "tools/duet_pack_show.hpp"
#include "tools/progress_line.hpp"

#include <boost/program_options.hpp>

#include <array>
#include <exception>
#include <iostream>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <unistd.h>

namespace {

namespace device = duet::device;
namespace po = boost::program_options;
using device::in_quotes;
using device::json_array;
using device::json_string;
using device::number_text;

using duet::tools::exit_done;
using duet::tools::exit_finding;
using duet::tools::exit_usage;
using duet::tools::Failed;
using duet::tools::pack_usage;
using duet::tools::parse_words;
using duet::tools::take;
using duet::tools::Usage;
using duet::tools::Words;

/// "NAME=VALUE" of an option that may be there several times.
std::map<std::string, std::string> pairs(const po::variables_map& map, const char* option,
                                         Words* order = nullptr) {
  std::map<std::string, std::string> out;
  if (map.count(option) == 0) return out;
  for (const std::string& word : map[option].as<Words>()) {
    const std::size_t equals = word.find('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == word.size()) {
      throw Usage{"--" + std::string(option) + " takes NAME=VALUE, not " + in_quotes(word)};
    }
    if (!out.emplace(word.substr(0, equals), word.substr(equals + 1)).second) {
      throw Usage{"--" + std::string(option) + " is there twice for " +
                  in_quotes(word.substr(0, equals))};
    }
    if (order != nullptr) order->push_back(word.substr(0, equals));
  }
  return out;
}

/// The value for `name`, taken out of the map, or nothing.
std::optional<std::string> pull(std::map<std::string, std::string>& values,
                                const std::string& name) {
  const auto node = values.extract(name);
  if (node.empty()) return std::nullopt;
  return node.mapped();
}

std::uint32_t chip_number(const std::string& text) {
  if (text == "0") return 0;
  if (text == "1") return 1;
  throw Usage{"--chip takes NAME=0 or NAME=1, not " + in_quotes(text)};
}

device::PackOptions build_options(const po::variables_map& map) {
  device::PackOptions options;
  Words order;
  auto models = pairs(map, "model", &order);
  auto goldens = pairs(map, "golden");
  auto aliases = pairs(map, "alias");
  auto chips = pairs(map, "chip");
  if (models.empty()) throw Usage{"duet-pack build needs --model NAME=FILE.gguf"};
  if (map.count("output") == 0) throw Usage{"duet-pack build needs -o DIRECTORY"};
  for (std::size_t i = 0; i < order.size(); ++i) {
    device::PackModel model;
    model.name = order[i];
    model.gguf = models[order[i]];
    model.golden = pull(goldens, model.name).value_or("");
    model.alias = pull(aliases, model.name).value_or(model.name);
    const auto chip = pull(chips, model.name);
    model.chip = chip ? chip_number(*chip) : static_cast<std::uint32_t>(i);
    options.models.push_back(std::move(model));
  }
  for (const auto* rest : {&goldens, &aliases, &chips}) {
    if (!rest->empty()) throw Usage{in_quotes(rest->begin()->first) + " is the name of no --model"};
  }
  options.directory = map["output"].as<std::string>();
  options.replace = map.count("replace") != 0;
  options.context = map["context"].as<std::uint32_t>();
  options.kv_slots = map["kv-slots"].as<std::uint32_t>();
  options.dram_bytes_per_chip = map["dram-mib"].as<std::uint64_t>() << 20;
  return options;
}

int run_build(const Words& words) {
  po::options_description text;
  text.add_options()("model", po::value<Words>(),
                     "NAME=FILE.gguf; the first goes to chip 0, the second to chip 1")(
      "golden", po::value<Words>(), "NAME=FILE.golden.json; without one goldens are computed")(
      "alias", po::value<Words>(), "NAME=ALIAS: the public name (default: NAME)")(
      "chip", po::value<Words>(), "NAME=0|1: the chip (default: in order)")(
      "output,o", po::value<std::string>(), "the directory to make")(
      "replace", "replace an older package there")("context",
                                                   po::value<std::uint32_t>()->default_value(4096),
                                                   "positions of a sequence, at most the model's")(
      "kv-slots", po::value<std::uint32_t>()->default_value(8), "sequences of a model at a time")(
      "dram-mib", po::value<std::uint64_t>()->default_value(16384), "MiB of DRAM a chip")(
      "sign-key", po::value<std::string>(), "Ed25519 private key (PEM or hex)")("quiet,q",
                                                                                "no progress");
  const auto map = parse_words(words, "build", text, {}, 0);
  if (map.count("help") != 0) return exit_done;
  device::PackOptions options = build_options(map);
  std::optional<device::PrivateKey> key;
  if (map.count("sign-key") != 0) {
    key.emplace(take(device::read_private_key(map["sign-key"].as<std::string>())));
    options.key = &*key;
  }
  duet::tools::ProgressLine line(std::cerr, ::isatty(STDERR_FILENO) == 1);
  std::function<void(const device::PackProgress&)> progress;
  if (map.count("quiet") == 0) {
    progress = [&](const device::PackProgress& now) { line.show(now); };
  }
  const auto result = device::build_package(options, progress);
  line.finish();
  const device::PackResult built = take(result);
  if (map.count("json") != 0) {
    std::cout << "{\"directory\": " << json_string(options.directory)
              << ", \"build_id\": " << json_string(built.build_id)
              << ", \"hash\": " << json_string(built.hash) << ", \"bytes\": " << built.bytes
              << ", \"signed\": " << (key ? "true" : "false") << "}\n";
  } else {
    std::cout << options.directory << ": build " << built.build_id << ", " << built.bytes
              << " bytes, " << (key ? "signed" : "not signed") << ", hash " << built.hash << "\n";
  }
  return exit_done;
}

int run_validate(const Words& words) {
  po::options_description text;
  duet::tools::add_trust_options(text);
  text.add_options()("allow-unsigned", "a missing or unverifiable signature is only a warning");
  const auto map = parse_words(words, "validate", text, {"DIRECTORY"}, 1);
  if (map.count("help") != 0) return exit_done;
  const std::string directory = map["DIRECTORY"].as<std::string>();
  const auto report = device::validate_package(directory, duet::tools::trust_options(map));
  const bool good = report.package != nullptr;
  if (map.count("json") != 0) {
    std::cout << "{\"directory\": " << json_string(directory)
              << ", \"valid\": " << (good ? "true" : "false")
              << ", \"signature\": " << json_string(device::name_of(report.signature))
              << ", \"signer\": "
              << (report.signer ? json_string(device::hex_text(*report.signer)) : "null")
              << ", \"hash\": " << (good ? json_string(report.package->hash()) : "null")
              << ", \"errors\": " << report.findings.errors()
              << ", \"warnings\": " << report.findings.warnings()
              << ", \"findings\": " << json_array(report.findings.list(), duet::tools::finding_json)
              << "}\n";
    return good ? exit_done : exit_finding;
  }
  for (const device::Finding& finding : report.findings.list())
    std::cout << device::finding_text(finding) << "\n";
  const std::size_t found = report.findings.errors() + report.findings.warnings();
  if (found > report.findings.list().size()) {
    std::cout << "... and " << found - report.findings.list().size() << " more\n";
  }
  std::cout << directory << ": " << (good ? "valid" : "not valid") << ", "
            << report.findings.errors() << " errors, " << report.findings.warnings()
            << " warnings, " << device::signature_text(report) << "\n";
  return good ? exit_done : exit_finding;
}

int run_keygen(const Words& words) {
  const auto map = parse_words(words, "keygen", {}, {"PRIVATE", "PUBLIC"}, 1);
  if (map.count("help") != 0) return exit_done;
  const std::string path = map["PRIVATE"].as<std::string>();
  const std::string public_path =
      map.count("PUBLIC") != 0 ? map["PUBLIC"].as<std::string>() : path + ".pub";
  const auto key = take(device::generate_key());
  const auto public_key = take(device::public_key(key));
  // The private key can be read by its owner alone.
  take(
      device::write_new_file(path, device::as_byte_span(take(device::private_key_pem(key))), 0600));
  take(device::write_new_file(public_path,
                              device::as_byte_span(take(device::public_key_pem(public_key)))));
  if (map.count("json") != 0) {
    std::cout << "{\"private\": " << json_string(path)
              << ", \"public\": " << json_string(public_path) << "}\n";
  } else {
    std::cout << "private key in " << path << ", public key in " << public_path << "\n";
  }
  return exit_done;
}

int run_sign(const Words& words) {
  po::options_description text;
  text.add_options()("sign-key", po::value<std::string>(), "Ed25519 private key (PEM or hex)");
  const auto map = parse_words(words, "sign", text, {"DIRECTORY"}, 1);
  if (map.count("help") != 0) return exit_done;
  if (map.count("sign-key") == 0) throw Usage{"duet-pack sign needs --sign-key"};
  const std::string directory = map["DIRECTORY"].as<std::string>();
  const auto key = take(device::read_private_key(map["sign-key"].as<std::string>()));
  // Only what is sound gets a signature.
  device::ValidateOptions options;
  options.allow_unsigned = true;
  options.trusted_keys.push_back(take(device::public_key(key)));
  const auto report = device::validate_package(directory, options);
  for (const device::Finding& finding : report.findings.list()) {
    if (finding.severity == device::Severity::warning ||
        finding.code == device::Code::signature_wrong ||
        finding.code == device::Code::signature_malformed) {
      continue;   // the signature is about to be replaced
    }
    throw Failed{directory + " is not valid: " + device::finding_text(finding)};
  }
  take(device::seal_package(directory, &key));
  std::cout << (map.count("json") != 0 ? "{\"signed\": " + json_string(directory) + "}"
                                       : directory + ": signed")
            << "\n";
  return exit_done;
}

int run_verify(const Words& words) {
  po::options_description text;
  duet::tools::add_trust_options(text);
  const auto map = parse_words(words, "verify", text, {"DIRECTORY"}, 1);
  if (map.count("help") != 0) return exit_done;
  if (map.count("trust") == 0) throw Usage{"duet-pack verify needs --trust"};
  Words validate = {map["DIRECTORY"].as<std::string>()};
  for (const std::string& key : map["trust"].as<Words>())
    validate.insert(validate.end(), {"--trust", key});
  if (map.count("revoked") != 0) {
    for (const std::string& list : map["revoked"].as<Words>())
      validate.insert(validate.end(), {"--revoked", list});
  }
  if (map.count("json") != 0) validate.emplace_back("--json");
  return run_validate(validate);
}

int run(const Words& words) {
  static constexpr std::array<std::pair<const char*, int (*)(const Words&)>, 10> commands = {{
      {"build", run_build},
      {"validate", run_validate},
      {"inspect", duet::tools::run_inspect},
      {"budget", duet::tools::run_budget},
      {"diff", duet::tools::run_diff},
      {"audit", duet::tools::run_audit},
      {"schema", duet::tools::run_schema},
      {"keygen", run_keygen},
      {"sign", run_sign},
      {"verify", run_verify},
  }};
  if (words.empty()) throw Usage{"no command was given"};
  if (words[0] == "--help" || words[0] == "-h" || words[0] == "help") {
    std::cout << pack_usage;
    return exit_done;
  }
  for (const auto& [name, function] : commands) {
    if (words[0] == name) return function({words.begin() + 1, words.end()});
  }
  throw Usage{"the command " + in_quotes(words[0]) + " is not known"};
}

}   // namespace

int main(int argc, char** argv) {
  try {
    return run({argv + 1, argv + argc});
  } catch (const Usage& wrong) {
    std::cerr << "duet-pack: " << wrong.message << "; see duet-pack --help\n";
    return exit_usage;
  } catch (const po::error& wrong) {
    std::cerr << "duet-pack: " << wrong.what() << "; see duet-pack --help\n";
    return exit_usage;
  } catch (const Failed& failed) {
    std::cerr << "duet-pack: " << failed.message << "\n";
    return exit_finding;
  } catch (const std::exception& error) {
    std::cerr << "duet-pack: " << error.what() << "\n";
    return exit_finding;
  }
}
