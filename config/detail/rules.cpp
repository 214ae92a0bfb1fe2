// rules.cpp: the rules between the keys of a configuration.
#include "config/detail/draft.hpp"
#include "device/program/message.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <optional>

namespace duet::config::detail {
namespace {

using device::concat;
using device::in_quotes;

void device_rules(Draft& draft) {
  Config& config = draft.config;
  DeviceSelection& device = config.device;
  if (device.type == DeviceType::emulated && !config.given("device.runtime")) {
    device.runtime = DeviceRuntime::emulator;
  }
  const bool is_known =
      draft.has(config.given("device.runtime") ? "device.runtime" : "device.type");
  if (!is_known) return;
  const bool is_plugin = device.runtime == DeviceRuntime::plugin;
  if (is_plugin && !config.given("device.plugin")) {
    draft.error("device.plugin", "is missing; 'runtime: plugin' needs the file to load");
  }
  if (!is_plugin && config.given("device.plugin")) {
    draft.error("device.plugin", "has no effect without 'runtime: plugin'; add that or remove it");
  }
  for (const char* key :
       {"device.profile", "device.threads_per_chip", "device.lock_directory", "device.faults"}) {
    if (device.runtime != DeviceRuntime::emulator && config.given(key)) {
      draft.error(key, "has no effect without 'runtime: emulator'; add that or remove it");
    }
  }
  const bool computes = device.runtime == DeviceRuntime::emulator && device.profile == "combined";
  if (computes && draft.has("device.faults") && !draft.refused.contains("device.profile")) {
    draft.error("device.faults",
                "has no effect with 'profile: combined', which computes its answers; take timed or "
                "\"null\", or remove it");
  }
}

/// One package for all, or one for each; never a mixture.
void package_rules(Draft& draft) {
  Config& config = draft.config;
  const auto& models = config.service.models;
  const auto has_own = [&](std::size_t i) { return config.given(model_key(i, "calbin")); };
  std::size_t own = 0;
  for (std::size_t i = 0; i < models.size(); ++i) own += has_own(i) ? 1 : 0;
  if (own == 0) {
    if (!config.given("device.combined_calbin")) {
      draft.error("device.combined_calbin", "is missing; name the package's directory");
    }
    return;
  }
  if (config.given("device.combined_calbin")) {
    draft.error("device.combined_calbin",
                "excludes 'calbin' of a model; keep the one package, or one for each model");
  }
  if (config.device.dialect == Dialect::combined) {
    draft.error("device.dialect",
                "must be sessions (or auto) where models have a 'calbin' of their own");
  }
  for (std::size_t i = 0; i < models.size(); ++i) {
    if (!has_own(i) && !config.given("device.combined_calbin")) {
      draft.error(model_key(i, "calbin"), "is missing; the other model has one");
    }
  }
}

void model_rules(Draft& draft) {
  Config& config = draft.config;
  const auto& models = config.service.models;
  for (std::size_t i = 0; i < models.size(); ++i) {
    const actors::ModelOptions& model = models[i];
    if (model.chip >= config.device.expected_chips) {
      draft.error(model_key(i, "chip_id"),
                  concat("must be below device.expected_chips, which is ",
                         config.device.expected_chips, "; not ", model.chip));
    }
    if (model.context_max > model.prompt_tokens_waiting_max) {
      draft.error(model_key(i, "max_waiting_prompt_tokens"),
                  concat("must be at least context_limit, which is ", model.context_max, "; not ",
                         model.prompt_tokens_waiting_max, ": no long prompt could ever wait"));
    }
    if (model.queue_timeout > model.request_timeout) {
      draft.error(model_key(i, "queue_timeout"), "must not be longer than request_timeout");
    }
    if (model.sequences_max != 0 && model.sequences_max < model.inflight_max) {
      draft.error(model_key(i, "max_sequences"), "must be at least max_inflight");
    }
    for (std::size_t other = 0; other < i; ++other) {
      if (!model.alias.empty() && model.alias == models[other].alias) {
        draft.error(model_key(i, "alias"),
                    concat("is the alias of models[", other, "], too; each needs its own"));
      }
      const bool both =
          draft.has(model_key(i, "chip_id")) && draft.has(model_key(other, "chip_id"));
      if (both && model.chip == models[other].chip) {
        draft.error(model_key(i, "chip_id"),
                    concat("is the chip of models[", other, "], too; a chip holds one model"));
      }
    }
  }
  const auto& scheduling = config.service.scheduling;
  if (scheduling.short_prefill_tokens > scheduling.medium_prefill_tokens) {
    draft.error(config.given("scheduling.short_prefill_tokens")
                    ? "scheduling.short_prefill_tokens"
                    : "scheduling.medium_prefill_tokens",
                concat("short_prefill_tokens (", scheduling.short_prefill_tokens,
                       ") must not be above medium_prefill_tokens (",
                       scheduling.medium_prefill_tokens, ")"));
  }
}

/// Nothing if the text is no address; else whether it is this host's alone.
std::optional<bool> is_loopback(const std::string& address) {
  if (address == "localhost") return true;
  in_addr v4{};
  if (::inet_pton(AF_INET, address.c_str(), &v4) == 1) return (ntohl(v4.s_addr) >> 24U) == 127;
  in6_addr v6{};
  if (::inet_pton(AF_INET6, address.c_str(), &v6) != 1) return std::nullopt;
  const std::array<std::uint8_t, 12> mapped = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  if (std::equal(mapped.begin(), mapped.end(), std::begin(v6.s6_addr))) {
    return v6.s6_addr[12] == 127;
  }
  return IN6_IS_ADDR_LOOPBACK(&v6) != 0;
}

void http_rules(Draft& draft) {
  const Config& config = draft.config;
  const http::ServerOptions& http = config.http;
  if (http.address.empty() && http.unix_socket.empty()) {
    draft.error("http.address",
                "is empty, and there is no http.unix_socket: name one to listen on");
  }
  if (!http.address.empty()) {
    const auto loopback = is_loopback(http.address);
    if (!loopback) {
      draft.error("http.address",
                  concat("must be an IPv4 or IPv6 address (without brackets or port) or "
                         "localhost, not ",
                         in_quotes(http.address)));
    } else if (!*loopback && config.keys_file.empty() && !http.allow_anonymous) {
      draft.error("http.address", concat(in_quotes(http.address),
                                         " is open to others and there are no keys: name a "
                                         "security.keys_file, listen on 127.0.0.1, or say "
                                         "'security.allow_anonymous: true'"));
    }
  }
  if (http.limits.stream_low_bytes >= http.limits.stream_high_bytes) {
    draft.error(config.given("http.limits.stream_low_bytes") ? "http.limits.stream_low_bytes"
                                                             : "http.limits.stream_high_bytes",
                concat("stream_low_bytes (", http.limits.stream_low_bytes,
                       ") must be below stream_high_bytes (", http.limits.stream_high_bytes, ")"));
  }
  if (!http.unix_socket.empty() && http.unix_socket == config.admin.socket) {
    draft.error("admin.socket", "is http.unix_socket, too; each needs a path of its own");
  }
  if (config.given("admin.allow_uid") && config.admin.socket.empty()) {
    draft.error("admin.allow_uid", "has no effect without admin.socket; add that or remove it");
  }
}

void warn(Draft& draft) {
  const Config& config = draft.config;
  if (config.recovery.allow_session_reset && config.recovery.conformance_report.empty()) {
    draft.warning("recovery.allow_session_reset",
                  "has no effect without recovery.conformance_report: the device is reset");
  }
  if (config.http.allow_anonymous && !config.keys_file.empty()) {
    draft.warning("security.allow_anonymous", "has no effect beside security.keys_file");
  }
  // Known and kept for what is to come; whoever sets one should not believe that it acts.
  for (const char* key : {"log.prompts", "recovery.replay_wait", "recovery.quarantine_max",
                          "recovery.conformance_report"}) {
    if (config.given(key)) draft.warning(key, "has no effect in this version");
  }
  if (config.service.device.allow_unsigned) {
    draft.warning("security.allow_unsigned", "a package from anybody will be served");
  }
}

}   // namespace

void apply_rules(Draft& draft) {
  device_rules(draft);
  package_rules(draft);
  model_rules(draft);
  http_rules(draft);
  warn(draft);
}

}   // namespace duet::config::detail
