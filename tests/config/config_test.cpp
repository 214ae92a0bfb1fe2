// config_test.cpp: what right configurations become.
#include "config/config.hpp"

#include "config/key_table.hpp"
#include "config/limits.hpp"
#include "tests/config/texts.hpp"
#include "tests/device/package/scratch.hpp"

#include <boost/test/unit_test.hpp>

#include <sys/stat.h>

#include <filesystem>
#include <set>

namespace duet::config::test {
namespace {

using namespace std::chrono_literals;
using device::test::ScratchDirectory;

Config parsed(const std::string& text, const std::string& file = "dir/test.yaml") {
  LoadResult result = parse_config(text, file);
  BOOST_REQUIRE_MESSAGE(result.config, printed(result.errors));
  return std::move(*result.config);
}

std::string source_path(const std::string& path) {
  return std::string(DUET_SOURCE_DIR) + "/" + path;
}

constexpr const char* minimal =
    "schema: calculet-dual-model/v1\n"
    "device:\n"
    "  type: emulated\n"
    "  combined_calbin: package\n"
    "models:\n"
    "  - alias: model-a\n"
    "    chip_id: 0\n";

}   // namespace

BOOST_AUTO_TEST_SUITE(config_files)

//
BOOST_AUTO_TEST_CASE(the_sample_of_the_specification_loads_unchanged) {
  const LoadResult result = load_config(source_path("config/sample.yaml"));
  BOOST_REQUIRE_MESSAGE(result.config, printed(result.errors));
  BOOST_TEST(result.warnings.empty());
  const Config& config = *result.config;
  BOOST_TEST(config.schema == "calculet-dual-model/v1");
  BOOST_TEST((config.device.type == DeviceType::pcie));
  BOOST_TEST(config.device.expected_chips == 2U);
  BOOST_TEST(config.service.device.package == "/models/dual-a-b");
  BOOST_REQUIRE(config.service.models.size() == 2U);
  const char letters[] = {'a', 'b'};
  for (std::uint32_t i = 0; i < 2; ++i) {
    const actors::ModelOptions& model = config.service.models[i];
    BOOST_TEST(model.alias == std::string("model-") + letters[i]);
    BOOST_TEST(model.package_model.empty());
    BOOST_TEST(model.chip == i);
    BOOST_TEST(model.prefill_graph == std::string("model_") + letters[i] + "_prefill");
    BOOST_TEST(model.decode_graph == std::string("model_") + letters[i] + "_decode");
    BOOST_TEST(model.context_max == 4096U);
    BOOST_TEST(model.inflight_max == 1U);
    BOOST_TEST(model.requests_waiting_max == 64U);
  }
  BOOST_TEST(!config.recovery.allow_session_reset);
  BOOST_TEST(config.service.device.restart_on_unknown_dma);
}

BOOST_AUTO_TEST_CASE(a_pcie_board_without_a_runtime_loads_but_cannot_be_served) {
  const Config config = parsed(read_source("config/sample.yaml"));
  BOOST_TEST((config.device.runtime == DeviceRuntime::unset));
  const auto errors = check_serving(config);
  const Finding* runtime = find(errors, "device.runtime");
  BOOST_REQUIRE_MESSAGE(runtime != nullptr, printed(errors));
  BOOST_TEST(runtime->at.line == 2U);
  const Finding* signers = find(errors, "security.trusted_signers");
  BOOST_REQUIRE(signers != nullptr);
  BOOST_TEST(errors.size() == 2U);
}

//
BOOST_AUTO_TEST_CASE(the_demo_configurations_load_and_can_be_served) {
  for (const std::string name : {"demo", "null"}) {
    const LoadResult result = load_config(source_path("config/" + name + ".yaml"));
    BOOST_REQUIRE_MESSAGE(result.config, printed(result.errors));
    const Config& config = *result.config;
    BOOST_TEST(check_serving(config).empty());
    BOOST_TEST((config.device.runtime == DeviceRuntime::emulator));
    BOOST_TEST(config.device.profile == (name == "null" ? "null" : "combined"));
    BOOST_REQUIRE(config.service.models.size() == 2U);
    BOOST_TEST(config.service.models[0].alias == "model-a");
    BOOST_TEST(config.service.models[0].chip == 0U);
    BOOST_TEST(config.service.models[1].alias == "model-b");
    BOOST_TEST(config.service.models[1].chip == 1U);
    BOOST_TEST(config.service.device.package == source_path("build/release/demo-package"));
    BOOST_REQUIRE(config.service.device.trusted_signers.size() == 1U);
    BOOST_TEST(config.service.device.trusted_signers[0] ==
               source_path("build/release/demo-key.pub"));
  }
}

BOOST_AUTO_TEST_CASE(every_value_of_a_full_file_reaches_its_field) {
  const Config c = parsed(read_source("tests/config/data/full.yaml"), "dir/full.yaml");
  BOOST_TEST((c.device.type == DeviceType::emulated));
  BOOST_TEST(c.service.device.package == "dir/packages/dual");
  BOOST_TEST((c.device.runtime == DeviceRuntime::emulator));
  BOOST_TEST(c.device.board == "board1");
  BOOST_TEST((c.device.dialect == Dialect::combined));
  BOOST_TEST(c.device.profile == "null");
  BOOST_TEST(c.device.threads_per_chip == 2U);
  BOOST_TEST(c.device.lock_directory == "dir/locks");
  BOOST_TEST((c.service.device.call_deadline == 90s));
  BOOST_TEST((c.service.device.drain_deadline == 20s));
  BOOST_TEST(c.service.device.golden_prompts_max == 8U);
  BOOST_TEST(c.device.faults_file == "dir/faults.yaml");
  const actors::ModelOptions& m = c.service.models.at(0);
  BOOST_TEST(m.alias == "alpha");
  BOOST_TEST(m.package_model == "model-a");
  BOOST_TEST(m.prefill_graph == "model_a_prefill");
  BOOST_TEST(m.decode_graph == "model_a_decode");
  BOOST_TEST(m.context_max == 2048U);
  BOOST_TEST(m.inflight_max == 2U);
  BOOST_TEST(m.sequences_max == 6U);
  BOOST_TEST(m.requests_waiting_max == 32U);
  BOOST_TEST(m.prompt_tokens_waiting_max == 32768U);
  BOOST_TEST((m.queue_timeout == 15s));
  BOOST_TEST((m.request_timeout == 5min));
  BOOST_TEST((m.job_deadline_min == 2500ms));
  BOOST_TEST(m.tokenizer_sha256 ==
             "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff");
  BOOST_TEST(c.service.models.at(1).alias == "beta");
  BOOST_TEST(c.service.scheduling.short_prefill_tokens == 256U);
  BOOST_TEST(c.service.scheduling.medium_prefill_tokens == 2048U);
  BOOST_TEST(c.service.scheduling.decode_run_max == 8U);
  BOOST_TEST((c.service.scheduling.prefill_wait_max == 150ms));
  BOOST_TEST(c.recovery.allow_session_reset);
  BOOST_TEST(!c.service.device.restart_on_unknown_dma);
  BOOST_TEST(c.recovery.conformance_report == "dir/reports/conformance.json");
  BOOST_TEST(c.service.device.recovery_attempts == 5U);
  BOOST_TEST((c.service.device.recovery_backoff == 500ms));
  BOOST_TEST((c.recovery.replay_wait == 4s));
  BOOST_TEST(c.recovery.quarantine_max == 4U);
  BOOST_TEST(c.http.address == "::1");
  BOOST_TEST(c.http.port == 9000);
  BOOST_TEST(c.http.unix_socket == "dir/run/duet.sock");
  const http::ServerLimits& l = c.http.limits;
  BOOST_TEST(l.body_bytes == 4U << 20U);
  BOOST_TEST(l.header_bytes == 8192U);
  BOOST_TEST(l.nesting_depth == 16U);
  BOOST_TEST(l.connections == 500U);
  BOOST_TEST((l.keep_alive_idle == 1min));
  BOOST_TEST((l.header_deadline == 5s));
  BOOST_TEST((l.body_deadline == 30s));
  BOOST_TEST(l.stream_high_bytes == 128U << 10U);
  BOOST_TEST(l.stream_low_bytes == 32U << 10U);
  BOOST_TEST((l.slow_reader == 10s));
  BOOST_TEST((l.ping_interval == 5s));
  BOOST_TEST((l.linger == 1s));
  BOOST_TEST(l.socket_send_bytes == 256U << 10U);
  BOOST_TEST(c.admin.socket == "dir/run/admin.sock");
  BOOST_TEST((c.admin.allow_uid == std::vector<std::uint32_t>{1000, 1001}));
  BOOST_TEST(c.keys_file == "/etc/duet/keys");
  BOOST_TEST((c.service.device.trusted_signers ==
              std::vector<std::string>{"dir/keys/first.pub", "/etc/duet/second.pub"}));
  BOOST_TEST((c.service.device.revoked_signers == std::vector<std::string>{"dir/keys/revoked"}));
  BOOST_TEST(c.revoked_keys.empty());   // no file was read
  BOOST_TEST(!c.service.device.allow_unsigned);
  BOOST_TEST(!c.http.allow_anonymous);
  BOOST_TEST((c.log.level == LogLevel::warning));
  BOOST_TEST(c.log.file == "dir/log/duet.json");
  BOOST_TEST(!c.log.prompts);
  BOOST_TEST(c.runtime.threads == 4U);
  BOOST_TEST((c.service.stop_deadline == 45s));
}

BOOST_AUTO_TEST_CASE(each_model_may_bring_its_own_package) {
  const Config c = parsed(read_source("tests/config/data/sessions.yaml"));
  BOOST_TEST((c.device.runtime == DeviceRuntime::plugin));
  BOOST_TEST(c.device.plugin == "dir/libcalrt_plugin.so");
  BOOST_TEST((c.device.dialect == Dialect::sessions));
  BOOST_TEST(c.service.device.package.empty());
  BOOST_TEST(c.service.models.at(0).package == "dir/packages/alpha");
  BOOST_TEST(c.service.models.at(1).package == "dir/packages/beta");
}

// R-5.C
BOOST_AUTO_TEST_CASE(one_model_and_an_idle_chip_are_valid) {
  const Config c = parsed(minimal);
  BOOST_TEST(c.service.models.size() == 1U);
  BOOST_TEST((c.device.runtime == DeviceRuntime::emulator));
  BOOST_TEST(c.http.address == "127.0.0.1");
  BOOST_TEST(c.http.port == 8000);
}

BOOST_AUTO_TEST_CASE(keys_and_values_know_their_places) {
  const Config c = parsed(minimal);
  BOOST_TEST(c.at("models[0].chip_id").line == 7U);
  BOOST_TEST(c.at("models[0].chip_id").column == 14U);
  BOOST_TEST(c.at("models[0].max_inflight").line == 6U);   // the model's own place
  BOOST_TEST(c.at("device.runtime").line == 2U);           // the block's
  BOOST_TEST(c.at("http.port").line == 1U);
}

BOOST_AUTO_TEST_CASE(only_loopback_is_served_without_keys) {
  for (const char* address : {"127.0.0.1", "127.8.9.10", "::1", "localhost", "::ffff:127.0.0.1"}) {
    const auto result =
        parse_config(std::string(minimal) + "http:\n  address: \"" + address + "\"\n", "test.yaml");
    BOOST_TEST(result.config.has_value(), address << printed(result.errors));
  }
  for (const char* address :
       {"0.0.0.0", "::", "10.0.0.1", "128.0.0.1", "::ffff:10.0.0.1", "fe80::1"}) {
    const std::string open = std::string(minimal) + "http:\n  address: \"" + address + "\"\n";
    const auto refused = parse_config(open, "test.yaml");
    const Finding* error = find(refused.errors, "http.address");
    BOOST_REQUIRE_MESSAGE(error != nullptr, address);
    BOOST_TEST(error->at.line == 9U);
    BOOST_TEST(error->message.find("security.keys_file") != std::string::npos);
    BOOST_TEST(parsed(open + "security:\n  allow_anonymous: true\n").http.allow_anonymous);
    BOOST_TEST(parsed(open + "security:\n  keys_file: keys\n").keys_file == "dir/keys");
  }
}

BOOST_AUTO_TEST_CASE(no_tcp_is_needed_beside_a_unix_socket) {
  const Config c =
      parsed(std::string(minimal) + "http:\n  address: \"\"\n  unix_socket: /run/d.sock\n");
  BOOST_TEST(c.http.address.empty());
  BOOST_TEST(c.http.unix_socket == "/run/d.sock");
}

BOOST_AUTO_TEST_CASE(what_weakens_the_server_is_a_warning) {
  const auto result = parse_config(std::string(minimal) +
                                       "recovery:\n  allow_session_reset: true\n"
                                       "security:\n  allow_unsigned: true\n"
                                       "log:\n  prompts: true\n",
                                   "test.yaml");
  BOOST_REQUIRE(result.config);
  BOOST_TEST(result.warnings.size() == 3U);
  for (const char* key :
       {"recovery.allow_session_reset", "security.allow_unsigned", "log.prompts"}) {
    BOOST_TEST(find(result.warnings, key) != nullptr, key);
  }
}

BOOST_AUTO_TEST_CASE(keys_are_read_with_the_file_and_relative_to_it) {
  const ScratchDirectory scratch;
  scratch.write("keys", "alice 0123456789abcdef\n");
  ::chmod(scratch.at("keys").c_str(), 0600);
  scratch.write("duet.yaml", std::string(minimal) +
                                 "http:\n  address: 0.0.0.0\nsecurity:\n  keys_file: ./keys\n");
  const auto result = load_config(scratch.at("duet.yaml"));
  BOOST_REQUIRE_MESSAGE(result.config, printed(result.errors));
  BOOST_TEST(result.warnings.empty(), printed(result.warnings));
  BOOST_REQUIRE(result.config->http.keys.size() == 1U);
  BOOST_TEST(result.config->http.keys[0].name == "alice");
}

//
BOOST_AUTO_TEST_CASE(every_key_of_every_list_of_revoked_signers_is_read) {
  const ScratchDirectory scratch;
  const auto key = [](char digit) { return std::string(64, digit); };
  scratch.write("lost", "# lost in March\n\n" + key('1') + "\n  " + key('2') + "  # laptop\r\n");
  scratch.write("left", key('3'));
  scratch.write("duet.yaml",
                std::string(minimal) + "security:\n  revoked_signers:\n    - lost\n    - left\n");
  const auto result = load_config(scratch.at("duet.yaml"));
  BOOST_REQUIRE_MESSAGE(result.config, printed(result.errors));
  const auto filled = [](int byte) {
    device::PublicKey bytes;
    bytes.fill(static_cast<std::byte>(byte));
    return bytes;
  };
  BOOST_TEST((result.config->revoked_keys ==
              std::vector<device::PublicKey>{filled(0x11), filled(0x22), filled(0x33)}));
}

// a list that cannot be read is no empty list.
BOOST_AUTO_TEST_CASE(a_spoiled_list_of_revoked_signers_is_named_with_file_line_and_key) {
  const ScratchDirectory scratch;
  const std::string good(64, '1');
  scratch.write("good", good);
  struct Case {
    std::string list;   // what it holds
    std::string says;
  };
  const Case cases[] = {
      {"", "holds no public key"},
      {"# nothing\n", "holds no public key"},
      {good + "\n" + good.substr(1) + "\n", "line 2 is not a public key of 64 hex digits"},
      {"# a\n" + good + "0\n", "line 2 is not a public key"},
      {good + " " + good + "\n", "line 1 is not a public key"},
      {std::string("\0\n", 2) + good, "line 1 is not a public key"},
      {"-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n", "no Ed25519 public key"},
      {std::string(1U << 20U, '#'), "is larger than"},
  };
  const auto check = [&](const std::string& list, const std::string& says) {
    scratch.write("duet.yaml", std::string(minimal) +
                                   "security:\n  revoked_signers:\n    - good\n" + "    - " + list +
                                   "\n");
    const auto line = lines_of(std::string(minimal)).size() + 4;
    const auto result = load_config(scratch.at("duet.yaml"));
    BOOST_TEST(!result.config.has_value());
    BOOST_REQUIRE_MESSAGE(result.errors.size() == 1U, says << printed(result.errors));
    const std::string error = to_string(result.errors[0]);
    BOOST_TEST(error.starts_with(scratch.at("duet.yaml") + ":" + std::to_string(line) +
                                 ":7: security.revoked_signers[1]: " + scratch.at(list) + ": "),
               error);
    BOOST_TEST(error.find(says) != std::string::npos, error);
  };
  for (const Case& test : cases) {
    scratch.write("bad", test.list);
    check("bad", test.says);
  }
  ::mkfifo(scratch.at("pipe").c_str(), 0600);
  check("none", "No such file");
  check("pipe", "");
}

BOOST_AUTO_TEST_CASE(a_file_that_cannot_be_read_is_one_error) {
  const ScratchDirectory scratch;
  ::mkfifo(scratch.at("pipe").c_str(), 0600);
  scratch.write("huge", std::string(limits::file_bytes_max + 1, '#'));
  for (const char* name : {"none.yaml", ".", "pipe", "huge"}) {
    const auto result = load_config(scratch.at(name));
    BOOST_TEST(!result.config.has_value());
    BOOST_REQUIRE(result.errors.size() == 1U);
    BOOST_TEST(to_string(result.errors[0]).starts_with(scratch.at(name) + ": "));
  }
}

BOOST_AUTO_TEST_CASE(the_reference_lists_exactly_the_keys_of_the_table) {
  std::set<std::string> documented;
  for (const std::string& line : lines_of(read_source("docs/configuration.md"))) {
    if (line.starts_with("| `")) documented.insert(line);
  }
  std::set<std::string> expected;
  for (const Key& key : key_table()) expected.insert(reference_row(key));
  for (const std::string& row : expected) {
    BOOST_TEST(documented.contains(row), "docs/configuration.md lacks\n" << row);
  }
  for (const std::string& row : documented) {
    BOOST_TEST(expected.contains(row), "docs/configuration.md has, but the table lacks\n" << row);
  }
  BOOST_TEST(expected.size() == key_table().size());
}

BOOST_AUTO_TEST_CASE(the_example_of_the_reference_loads) {
  const std::string page = read_source("docs/configuration.md");
  const std::size_t begin = page.find("```yaml\n") + 8;
  const std::string example = page.substr(begin, page.find("```", begin) - begin);
  BOOST_TEST(parsed(example).service.models.size() == 2U);
}

BOOST_AUTO_TEST_CASE(defaults_lie_within_their_own_bounds) {
  for (const Key& key : key_table()) {
    const bool has_range = key.kind == ValueKind::number || key.kind == ValueKind::size ||
                           key.kind == ValueKind::duration;
    if (!has_range || key.required || !key.absent.empty()) continue;
    Config config;
    actors::ModelOptions model;
    const std::uint64_t value = key.get({&config, &model}).number;
    BOOST_TEST(value >= key.min, path_of(key));
    BOOST_TEST(value <= key.max, path_of(key));
  }
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace duet::config::test
