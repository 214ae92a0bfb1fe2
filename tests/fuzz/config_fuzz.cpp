// config_fuzz.cpp: any bytes as a configuration and as a file of keys: values or findings, no harm.
#include "config/config.hpp"
#include "config/cross_check.hpp"
#include "config/keys_file.hpp"
#include "config/limits.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace duet;

void require(bool condition) {
  if (!condition) std::abort();
}

/// Findings are bounded, say something, lie in the file and print as one line.
void check(const std::vector<config::Finding>& findings, std::size_t lines) {
  require(findings.size() <= config::limits::findings_max + 1);
  for (const config::Finding& finding : findings) {
    require(!finding.message.empty());
    require(finding.at.line <= lines + 1);
    const std::string text = to_string(finding);
    require(std::none_of(text.begin(), text.end(),
                         [](char c) { return static_cast<unsigned char>(c) < 0x20; }));
  }
}

device::Manifest manifest() {
  device::Manifest manifest;
  device::Model model;
  model.name = model.alias = "model-a";
  model.prefill = "p";
  manifest.models.push_back(model);
  device::Graph graph;
  graph.name = "p";
  manifest.graphs.push_back(graph);
  return manifest;
}

}   // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes{reinterpret_cast<const char*>(data), size};
  const auto lines = static_cast<std::size_t>(std::count(bytes.begin(), bytes.end(), '\n')) + 1;

  const config::LoadResult result = config::parse_config(bytes, "fuzz.yaml");
  require(result.config.has_value() == result.errors.empty());
  check(result.errors, lines);
  check(result.warnings, lines);
  if (result.config) {
    const auto& models = result.config->service.models;
    require(!models.empty() && models.size() <= config::limits::models_max);
    require(result.config->schema == "calculet-dual-model/v1");
    check(config::check_serving(*result.config), lines);
    check(config::cross_check(*result.config, manifest()), lines);
  }

  config::Findings findings;
  const auto keys = config::parse_keys(bytes, "keys", findings);
  require(!keys.empty() || !findings.errors.empty());
  check(findings.errors, lines);
  return 0;
}
