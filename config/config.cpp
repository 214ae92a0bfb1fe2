// config.cpp: loads a configuration: file, tree, keys, rules, clients' keys.
#include "config/config.hpp"

#include "config/detail/draft.hpp"
#include "config/detail/small_file.hpp"
#include "config/keys_file.hpp"
#include "config/limits.hpp"
#include "config/yaml_document.hpp"
#include "device/package/signature.hpp"

#include <utility>

namespace duet::config {
namespace {

using detail::Draft;

Draft draft_of(std::string_view text, const std::string& file) {
  Draft draft;
  draft.config.file = file;
  if (const auto tree = read_yaml(text, file, draft.findings)) {
    detail::fill(draft, *tree);
    detail::apply_rules(draft);
  }
  return draft;
}

/// A list that cannot be read stops the start: an unread revocation would be none.
void load_revoked(Draft& draft) {
  const auto& files = draft.config.service.device.revoked_signers;
  for (std::size_t i = 0; i < files.size(); ++i) {
    const auto keys = device::read_key_list(files[i]);
    if (keys.has_error()) {
      draft.error("security.revoked_signers[" + std::to_string(i) + "]", keys.error().message);
      continue;
    }
    auto& revoked = draft.config.revoked_keys;
    revoked.insert(revoked.end(), keys->begin(), keys->end());
  }
}

LoadResult result_of(Draft draft) {
  draft.findings.sort(draft.config.file);
  LoadResult result;
  if (draft.findings.errors.empty()) result.config = std::move(draft.config);
  result.errors = std::move(draft.findings.errors);
  result.warnings = std::move(draft.findings.warnings);
  return result;
}

}   // namespace

Location Config::at(std::string_view key) const {
  for (;;) {
    const auto found = locations.find(key);
    if (found != locations.end()) return found->second;
    const std::size_t end = key.find_last_of(".[");
    if (end == std::string_view::npos) return {1, 1};
    key = key.substr(0, end);
  }
}

LoadResult load_config(const std::string& path) {
  const auto read = detail::read_small_file(path, limits::file_bytes_max);
  if (!read) {
    LoadResult result;
    result.errors.push_back({path, {}, {}, read.error().message});
    return result;
  }
  Draft draft = draft_of(read->text, path);
  if (!draft.config.keys_file.empty()) {
    draft.config.http.keys = load_keys(draft.config.keys_file, draft.findings);
  }
  if (!draft.config.device.faults_file.empty()) {
    std::vector<std::string> aliases;
    for (const auto& model : draft.config.service.models) aliases.push_back(model.alias);
    draft.config.device.answers =
        load_faults(draft.config.device.faults_file, aliases, draft.findings);
  }
  load_revoked(draft);
  return result_of(std::move(draft));
}

LoadResult parse_config(std::string_view text, const std::string& file) {
  return result_of(draft_of(text, file));
}

std::vector<Finding> check_serving(const Config& config) {
  Findings findings;
  if (config.device.runtime == DeviceRuntime::unset) {
    findings.error(config.file, config.at("device.runtime"), "device.runtime",
                   "is missing; serving needs 'runtime: plugin' with the vendor's plug-in, or "
                   "'runtime: emulator'");
  }
  const auto& package = config.service.device;
  if (package.trusted_signers.empty() && !package.allow_unsigned) {
    findings.error(config.file, config.at("security.trusted_signers"), "security.trusted_signers",
                   "is missing; serving needs the public keys of those who may sign packages, or "
                   "'security.allow_unsigned: true'");
  }
  return std::move(findings.errors);
}

namespace detail {

void Draft::error(std::string key, std::string message) {
  const Location at = config.at(key);
  findings.error(config.file, at, std::move(key), std::move(message));
}

void Draft::warning(std::string key, std::string message) {
  const Location at = config.at(key);
  findings.warning(config.file, at, std::move(key), std::move(message));
}

std::string model_key(std::size_t index, std::string_view name) {
  return "models[" + std::to_string(index) + "]." + std::string(name);
}

}   // namespace detail
}   // namespace duet::config
