// duet_pack_command.cpp: the usage of duet-pack and how its words are parsed.
#include "tools/duet_pack_command.hpp"

#include <iostream>

namespace duet::tools {

namespace po = boost::program_options;

const char* const pack_usage = R"(duet-pack: packages of one or two models for a board of two chips

  duet-pack build --model NAME=FILE.gguf [--model NAME=FILE.gguf] -o DIRECTORY [options]
  duet-pack validate DIRECTORY [--trust KEY]... [--revoked KEYS]... [--allow-unsigned]
  duet-pack inspect DIRECTORY [--sections]
  duet-pack budget DIRECTORY|FILE.gguf [FILE.gguf] [options]
  duet-pack diff DIRECTORY OTHER
  duet-pack audit DIRECTORY [--with DIRECTORY]... [--trust KEY]... [--revoked KEYS]...
  duet-pack schema
  duet-pack keygen PRIVATE.pem [PUBLIC.pem]
  duet-pack sign DIRECTORY --sign-key PRIVATE.pem
  duet-pack verify DIRECTORY --trust PUBLIC.pem [--revoked KEYS]...

Each command has --help and --json. Exit codes: 0 done, 1 a finding, a difference, a missing item or
an error, 2 wrong use.
)";

po::variables_map parse_words(const Words& words, const char* command,
                              po::options_description options, const Words& positional,
                              std::size_t needed) {
  options.add_options()("help,h", "this text")("json", "print one JSON object");
  po::options_description all = options;
  po::positional_options_description places;
  for (const std::string& name : positional) {
    all.add_options()(name.c_str(), po::value<std::string>());
    places.add(name.c_str(), 1);
  }
  po::variables_map map;
  po::store(po::command_line_parser(words).options(all).positional(places).run(), map);
  po::notify(map);
  if (map.count("help") != 0) {
    std::cout << pack_usage << "\nOptions of " << command << ":\n" << options;
    return map;
  }
  for (std::size_t i = 0; i < needed; ++i) {
    if (map.count(positional[i]) == 0)
      throw Usage{"duet-pack " + std::string(command) + " needs " + positional[i]};
  }
  return map;
}

void add_trust_options(po::options_description& options) {
  options.add_options()("trust", po::value<Words>(),
                        "Ed25519 public key (PEM or hex); may be there several times")(
      "revoked", po::value<Words>(),
      "a file of revoked public keys, one in hex a line; may be there several times");
}

device::ValidateOptions trust_options(const po::variables_map& map) {
  device::ValidateOptions options;
  options.allow_unsigned = map.count("allow-unsigned") != 0;
  if (map.count("trust") != 0) {
    for (const std::string& path : map["trust"].as<Words>()) {
      options.trusted_keys.push_back(take(device::read_public_key(path)));
    }
  }
  if (map.count("revoked") != 0) {
    for (const std::string& path : map["revoked"].as<Words>()) {
      const auto keys = take(device::read_key_list(path));
      options.revoked_keys.insert(options.revoked_keys.end(), keys.begin(), keys.end());
    }
  }
  return options;
}

}   // namespace duet::tools
