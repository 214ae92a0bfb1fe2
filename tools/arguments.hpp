// arguments.hpp: command lines of Duet's programs: options with values, flags, positional words.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace duet::tools {

/// Exit codes of every program.
inline constexpr int exit_done = 0;
inline constexpr int exit_finding = 1;   ///< a finding, a violation, a failure.
inline constexpr int exit_wrong_use = 2;
inline constexpr int exit_restart = 75;   ///< the service manager shall start it again.

/// What a program takes. Options may be given as "--name value" or "--name=value", and more than
/// once.
struct ArgumentRules {
  std::vector<std::string> flags;     ///< "--json"
  std::vector<std::string> options;   ///< "--ask"
  std::size_t words_min = 0;
  std::size_t words_max = 0;
};

class Arguments {
 public:
  /// `words` are those behind the program's and the command's name. On wrong use: null, and `error`
  /// says what.
  static std::optional<Arguments> parse(const std::vector<std::string>& words,
                                        const ArgumentRules& rules, std::string& error);

  [[nodiscard]] bool flag(const std::string& name) const { return values_.contains(name); }
  [[nodiscard]] std::vector<std::string> all(const std::string& name) const;
  [[nodiscard]] std::string last(const std::string& name, const std::string& otherwise) const;
  [[nodiscard]] const std::vector<std::string>& words() const { return words_; }

 private:
  std::multimap<std::string, std::string> values_;
  std::vector<std::string> words_;
};

/// First thing in main(): a closed standard stream becomes /dev/null, so that no socket or file
/// gets its number, and a reader that goes away is an error of the write, not the end of the
/// process.
void secure_standard_streams();

/// A whole decimal number in [min, max], else null.
[[nodiscard]] std::optional<std::uint64_t> parse_number(std::string_view text, std::uint64_t min,
                                                        std::uint64_t max);

}   // namespace duet::tools
