// duet_pack_command.hpp: what the commands of duet-pack share: their words, errors and exit codes.
#pragma once

#include "device/package/validator.hpp"
#include "device/program/message.hpp"

#include <boost/program_options.hpp>

#include <cstddef>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace duet::tools {

inline constexpr int exit_done = 0;
inline constexpr int exit_finding = 1;
inline constexpr int exit_usage = 2;

/// Wrong use of the command line.
struct Usage {
  std::string message;
};
/// Something could not be done.
struct Failed {
  std::string message;
};

template <typename T>
T take(device::Result<T> result) {
  if (result.has_error()) throw Failed{result.error().message};
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

using Words = std::vector<std::string>;

/// The text of --help, up to the options of a command.
extern const char* const pack_usage;

/// Parses the words after the subcommand and adds --help and --json. `positional` names the
/// operands in order; `needed` of them must be there. With --help the text is printed and the map
/// has "help". Throws Usage or boost::program_options::error.
[[nodiscard]] boost::program_options::variables_map parse_words(
    const Words& words, const char* command, boost::program_options::options_description options,
    const Words& positional, std::size_t needed);

/// --trust and --revoked, and what they mean together with --allow-unsigned where that is given.
void add_trust_options(boost::program_options::options_description& options);
[[nodiscard]] device::ValidateOptions trust_options(
    const boost::program_options::variables_map& map);

/// The commands that only look. Each prints and returns its exit code.
[[nodiscard]] int run_schema(const Words& words);
[[nodiscard]] int run_inspect(const Words& words);
[[nodiscard]] int run_budget(const Words& words);
[[nodiscard]] int run_audit(const Words& words);
[[nodiscard]] int run_diff(const Words& words);

}   // namespace duet::tools
