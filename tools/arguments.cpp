// arguments.cpp: a small strict parser; whatever it does not know is wrong use.
#include "tools/arguments.hpp"

#include <fcntl.h>

#include <algorithm>
#include <charconv>
#include <csignal>

namespace duet::tools {

std::optional<Arguments> Arguments::parse(const std::vector<std::string>& words,
                                          const ArgumentRules& rules, std::string& error) {
  const auto has = [](const std::vector<std::string>& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  Arguments arguments;
  bool only_words = false;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word == "--" && !only_words) {
      only_words = true;
      continue;
    }
    if (only_words || word.size() < 2 || word[0] != '-') {
      arguments.words_.push_back(word);
      continue;
    }
    const std::size_t equals = word.find('=');
    const std::string name = word.substr(0, equals);
    if (has(rules.flags, name) && equals == std::string::npos) {
      arguments.values_.emplace(name, "");
    } else if (has(rules.options, name) && equals != std::string::npos) {
      arguments.values_.emplace(name, word.substr(equals + 1));
    } else if (has(rules.options, name) && i + 1 < words.size()) {
      arguments.values_.emplace(name, words[++i]);
    } else if (has(rules.options, name)) {
      error = name + " needs a value";
      return std::nullopt;
    } else if (has(rules.flags, name)) {
      error = name + " takes no value";
      return std::nullopt;
    } else {
      error = "unknown option " + name;
      return std::nullopt;
    }
  }
  if (arguments.words_.size() < rules.words_min) {
    error = "an argument is missing";
    return std::nullopt;
  }
  if (arguments.words_.size() > rules.words_max) {
    error = "unexpected argument '" + arguments.words_[rules.words_max] + "'";
    return std::nullopt;
  }
  return arguments;
}

std::vector<std::string> Arguments::all(const std::string& name) const {
  std::vector<std::string> values;
  const auto [begin, end] = values_.equal_range(name);
  for (auto it = begin; it != end; ++it) values.push_back(it->second);
  return values;
}

std::string Arguments::last(const std::string& name, const std::string& otherwise) const {
  const std::vector<std::string> values = all(name);
  return values.empty() ? otherwise : values.back();
}

void secure_standard_streams() {
  std::signal(SIGPIPE, SIG_IGN);
  for (const int stream : {0, 1, 2}) {
    // open() takes the lowest number that is free: the closed stream's.
    if (::fcntl(stream, F_GETFD) == -1) static_cast<void>(::open("/dev/null", O_RDWR));
  }
}

std::optional<std::uint64_t> parse_number(std::string_view text, std::uint64_t min,
                                          std::uint64_t max) {
  std::uint64_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size() || value < min || value > max) {
    return std::nullopt;
  }
  return value;
}

}   // namespace duet::tools
