// faults_file.cpp: reads scripted answers.
#include "config/faults_file.hpp"

#include "config/detail/small_file.hpp"
#include "config/limits.hpp"
#include "config/spelling.hpp"
#include "config/values.hpp"
#include "config/yaml_document.hpp"
#include "device/program/message.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>

namespace duet::config {
namespace {

using device::concat;
using device::in_quotes;
using Kind = YamlNode::Kind;

constexpr std::string_view schema = "duet-faults/v1";
constexpr std::array<std::string_view, 2> file_keys = {"schema", "answers"};
constexpr std::array<std::string_view, 4> answer_keys = {"model", "prompt_tokens", "answer_tokens",
                                                         "ends"};

class Reader {
 public:
  Reader(const std::string& file, std::span<const std::string> aliases, Findings& findings)
      : file_(file), aliases_(aliases), findings_(findings), errors_(findings.errors.size()) {}

  std::vector<AnswerScript> read(const YamlNode& root) {
    if (root.kind != Kind::map) {
      error({1, 1}, "", "must be a block of keys: schema and answers");
      return {};
    }
    const auto known = entries_of(root, "", file_keys);
    const YamlEntry* const named = known.at(0);
    if (named == nullptr) {
      error(root.at, "schema", concat("is missing; it must be ", schema));
    } else if (named->value.kind != Kind::scalar || named->value.text != schema) {
      error(place(*named), "schema", concat("must be ", schema));
    }
    std::vector<AnswerScript> scripts;
    if (const YamlEntry* const answers = known.at(1)) {
      if (answers->value.kind != Kind::sequence) {
        error(place(*answers), "answers", "must be a list of answers");
      } else {
        for (const YamlNode& item : answers->value.items) scripts.push_back(answer(item, *answers));
      }
    }
    refuse_doubles(scripts);
    if (findings_.errors.size() != errors_) return {};
    return scripts;
  }

 private:
  void error(Location at, std::string key, std::string message) {
    findings_.error(file_, at, std::move(key), std::move(message));
  }
  static Location place(const YamlEntry& entry) {
    return entry.value.kind == Kind::null ? entry.at : entry.value.at;
  }

  /// The entries of the keys in `names`, in that order; null where there is none.
  std::vector<const YamlEntry*> entries_of(const YamlNode& map, const std::string& path,
                                           std::span<const std::string_view> names) {
    std::vector<const YamlEntry*> found(names.size());
    for (const YamlEntry& entry : map.entries) {
      const std::string key = path + printable_key(entry.key);
      const auto name = std::find(names.begin(), names.end(), entry.key);
      if (name == names.end()) {
        const std::string_view near = nearest_key(entry.key, {names.begin(), names.end()});
        error(entry.at, key,
              near.empty() ? std::string("is not a known key")
                           : concat("is not a known key; did you mean ", in_quotes(near), "?"));
        continue;
      }
      const YamlEntry*& place_of_it = found.at(static_cast<std::size_t>(name - names.begin()));
      if (place_of_it != nullptr) {
        error(entry.at, key,
              concat("is there twice, first in line ", place_of_it->at.line, "; remove one"));
      } else {
        place_of_it = &entry;
      }
    }
    return found;
  }

  AnswerScript answer(const YamlNode& item, const YamlEntry& list) {
    const std::string path = concat("answers[", count_, "]");
    ++count_;
    AnswerScript script;
    const Location at = item.kind == Kind::null ? list.at : item.at;
    places_.push_back(at);
    if (item.kind != Kind::map) {
      error(at, path,
            "must be a block of keys: model, prompt_tokens, answer_tokens and, if need be, ends");
      return script;
    }
    const auto known = entries_of(item, path + ".", answer_keys);
    for (std::size_t i = 0; i < 3; ++i) {
      if (known[i] == nullptr) error(at, concat(path, ".", answer_keys[i]), "is missing");
    }
    if (known[0] != nullptr) script.alias = alias(*known[0], path + ".model");
    if (known[1] != nullptr) script.prompt_tokens = tokens(*known[1], path + ".prompt_tokens");
    if (known[2] != nullptr) script.answer_tokens = tokens(*known[2], path + ".answer_tokens");
    if (known[3] != nullptr) {
      const YamlNode& value = known[3]->value;
      const bool right = value.kind == Kind::scalar && !value.quoted &&
                         (value.text == "true" || value.text == "false");
      if (!right) error(place(*known[3]), path + ".ends", "must be true or false");
      script.ends = value.text != "false";
    }
    if (known[1] != nullptr && known[1]->value.kind == Kind::sequence &&
        known[1]->value.items.empty()) {
      error(place(*known[1]), path + ".prompt_tokens", "is empty; no sequence is without a token");
    }
    return script;
  }

  std::string alias(const YamlEntry& entry, const std::string& key) {
    const YamlNode& value = entry.value;
    const bool known = value.kind == Kind::scalar &&
                       std::find(aliases_.begin(), aliases_.end(), value.text) != aliases_.end();
    if (known) return value.text;
    std::string all;
    for (const std::string& each : aliases_) all += (all.empty() ? "" : " or ") + each;
    error(place(entry), key, concat("must be an alias of the configuration: ", all));
    return {};
  }

  std::vector<std::uint32_t> tokens(const YamlEntry& entry, const std::string& key) {
    std::vector<std::uint32_t> ids;
    if (entry.value.kind != Kind::sequence) {
      error(place(entry), key, "must be a list of token ids");
      return ids;
    }
    for (std::size_t i = 0; i < entry.value.items.size(); ++i) {
      const YamlNode& item = entry.value.items[i];
      const auto number =
          item.kind == Kind::scalar && !item.quoted ? parse_number(item.text) : std::nullopt;
      if (!number || *number > limits::token_id_max) {
        error(item.kind == Kind::null ? place(entry) : item.at, concat(key, "[", i, "]"),
              concat("must be a token id, a whole number from 0 to ", limits::token_id_max));
      } else {
        ids.push_back(static_cast<std::uint32_t>(*number));
      }
    }
    return ids;
  }

  void refuse_doubles(const std::vector<AnswerScript>& scripts) {
    std::map<std::pair<std::string, std::vector<std::uint32_t>>, std::size_t> seen;
    for (std::size_t i = 0; i < scripts.size(); ++i) {
      if (scripts[i].alias.empty() || scripts[i].prompt_tokens.empty()) continue;
      const auto [first, fresh] =
          seen.emplace(std::pair{scripts[i].alias, scripts[i].prompt_tokens}, i);
      if (fresh) continue;
      error(places_[i], concat("answers[", i, "].prompt_tokens"),
            concat("are those of answers[", first->second, "], too; a prompt has one answer"));
    }
  }

  const std::string& file_;
  std::span<const std::string> aliases_;
  Findings& findings_;
  std::size_t errors_;   // there were before
  std::size_t count_ = 0;
  std::vector<Location> places_;
};

}   // namespace

std::vector<AnswerScript> parse_faults(std::string_view text, const std::string& file,
                                       std::span<const std::string> aliases, Findings& findings) {
  const std::size_t errors = findings.errors.size();
  const auto tree = read_yaml(text, file, findings);
  if (!tree) return {};
  std::vector<AnswerScript> scripts = Reader{file, aliases, findings}.read(*tree);
  if (findings.errors.size() != errors) scripts.clear();
  return scripts;
}

std::vector<AnswerScript> load_faults(const std::string& file, std::span<const std::string> aliases,
                                      Findings& findings) {
  const auto read = detail::read_small_file(file, limits::file_bytes_max);
  if (!read) {
    findings.error(file, {}, "device.faults", read.error().message);
    return {};
  }
  return parse_faults(read->text, file, aliases, findings);
}

}   // namespace duet::config
