// keys_file.cpp: reads clients' keys, line by line.
#include "config/keys_file.hpp"

#include "config/detail/small_file.hpp"
#include "config/limits.hpp"
#include "device/program/message.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace duet::config {
namespace {

using device::concat;
using device::in_quotes;

constexpr const char* key_of_file = "security.keys_file";

bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\r';
}

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  for (std::size_t i = 0; i < line.size();) {
    while (i < line.size() && is_blank(line[i])) ++i;
    const std::size_t start = i;
    while (i < line.size() && !is_blank(line[i])) ++i;
    if (i > start) words.push_back(line.substr(start, i - start));
  }
  return words;
}

/// "" if the secret may be used; else why not.
std::string secret_problem(std::string_view secret) {
  if (secret.size() < limits::secret_bytes_min || secret.size() > limits::secret_bytes_max) {
    return concat("the secret must have ", limits::secret_bytes_min, " to ",
                  limits::secret_bytes_max, " characters, not ", secret.size());
  }
  const bool visible =
      std::all_of(secret.begin(), secret.end(), [](char c) { return c > ' ' && c < 0x7f; });
  return visible ? "" : "the secret must be visible ASCII characters";
}

}   // namespace

std::vector<http::ApiKey> parse_keys(std::string_view text, const std::string& file,
                                     Findings& findings) {
  std::vector<http::ApiKey> keys;
  std::map<std::string, std::uint32_t, std::less<>> names;     // to their lines
  std::map<std::string, std::uint32_t, std::less<>> secrets;   // the same
  bool good = true;
  std::uint32_t number = 1;
  for (std::size_t start = 0; start < text.size(); ++number) {
    const std::size_t end = std::min(text.find('\n', start), text.size());
    const auto words = words_of(text.substr(start, end - start));
    start = end + 1;
    if (words.empty() || words[0].starts_with('#')) continue;
    const auto error = [&, number](std::string message) {
      findings.error(file, {number, 1}, key_of_file, std::move(message));
      good = false;
    };
    if (keys.size() == limits::keys_max) {
      error(concat("there are more than ", limits::keys_max, " keys"));
      break;
    }
    // No word is repeated here: what looks like a name may be a secret.
    if (words.size() < 2 || words.size() > 3 || (words.size() == 3 && words[2] != "admin")) {
      error("a line must be 'NAME SECRET' or 'NAME SECRET admin'");
      continue;
    }
    if (!device::is_plain_name(words[0])) {
      error("a name must have 1 to 128 letters, digits and . _ -");
      continue;
    }
    if (std::string problem = secret_problem(words[1]); !problem.empty()) {
      error(std::move(problem));
      continue;
    }
    const auto [name, new_name] = names.emplace(words[0], number);
    const auto [secret, new_secret] = secrets.emplace(words[1], number);
    if (!new_name) error(concat("the name is that of line ", name->second, ", too"));
    if (!new_secret) error(concat("the secret is that of line ", secret->second, ", too"));
    keys.push_back({std::string(words[0]), std::string(words[1]), words.size() == 3});
  }
  if (good && keys.empty()) {
    findings.error(file, {1, 1}, key_of_file, "holds no key; write lines 'NAME SECRET'");
  }
  return keys;
}

std::vector<http::ApiKey> load_keys(const std::string& file, Findings& findings) {
  const auto read = detail::read_small_file(file, limits::keys_file_bytes_max);
  if (!read) {
    findings.error(file, {}, key_of_file, read.error().message);
    return {};
  }
  if ((read->permissions & 0006U) != 0) {
    findings.warning(file, {}, key_of_file,
                     concat("can be ", (read->permissions & 0002U) != 0 ? "changed" : "read",
                            " by every user of this host; run chmod 600"));
  }
  return parse_keys(read->text, file, findings);
}

}   // namespace duet::config
