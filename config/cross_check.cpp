// cross_check.cpp: the rules between a configuration and a manifest.
#include "config/cross_check.hpp"

#include "config/detail/draft.hpp"
#include "device/program/message.hpp"
#include "runtime/assert.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace duet::config {
namespace {

using detail::model_key;
using device::concat;
using device::in_quotes;

const device::Graph* graph_named(const device::Manifest& manifest, const std::string& name) {
  const auto found = std::find_if(manifest.graphs.begin(), manifest.graphs.end(),
                                  [&](const device::Graph& graph) { return graph.name == name; });
  return found == manifest.graphs.end() ? nullptr : &*found;
}

/// What the package has instead, in quotes.
template <typename Range, typename Name>
std::string list(const Range& range, Name name) {
  std::string text;
  for (const auto& item : range) text += (text.empty() ? "" : ", ") + in_quotes(name(item));
  return text.empty() ? "none" : text;
}

/// Two jobs at a time need buffers and command lists of both job engines for both graphs.
bool has_both_engines(const device::Manifest& manifest, const device::Model& model) {
  using device::Engine;
  using device::SectionKind;
  const auto has = [&](SectionKind kind, const std::string& graph, Engine engine) {
    return std::any_of(
        manifest.sections.begin(), manifest.sections.end(), [&](const device::Section& section) {
          return section.kind == kind && section.model == model.name &&
                 (graph.empty() || section.graph == graph) && section.engine == engine;
        });
  };
  return std::ranges::all_of(std::array{Engine::ping, Engine::pong}, [&](Engine engine) {
    return has(SectionKind::input, "", engine) && has(SectionKind::output, "", engine) &&
           has(SectionKind::command, model.prefill, engine) &&
           has(SectionKind::command, model.decode, engine);
  });
}

class Checker {
 public:
  Checker(const Config& config, const device::Manifest& manifest)
      : config_(config), manifest_(manifest) {}

  void chips() {
    if (config_.device.expected_chips != manifest_.chips) {
      error("device.expected_chips", concat("is ", config_.device.expected_chips,
                                            ", but the package was made for ", manifest_.chips));
    }
  }

  void model(std::size_t index) {
    index_ = index;
    const actors::ModelOptions& options = config_.service.models[index];
    const device::Model* model = bound_model(options, manifest_);
    if (model == nullptr) {
      if (options.package_model.empty()) {
        model_error("alias", concat("the package has no model with the alias ",
                                    in_quotes(options.alias), "; it has ",
                                    list(manifest_.models, [](const auto& m) { return m.alias; })));
      } else {
        model_error("model", concat("the package has no model ", in_quotes(options.package_model),
                                    "; it has ",
                                    list(manifest_.models, [](const auto& m) { return m.name; })));
      }
      return;
    }
    for (std::size_t other = 0; other < index; ++other) {
      if (!config_.service.models[other].package.empty()) continue;
      if (bound_model(config_.service.models[other], manifest_) == model) {
        model_error("model",
                    concat("models[", other, "] is the package's model ", in_quotes(model->name),
                           ", too; to serve one model twice, pack it once for each chip"));
      }
    }
    compare(options, *model);
  }

  [[nodiscard]] std::vector<Finding> take() {
    findings_.sort(config_.file);
    return std::move(findings_.errors);
  }

 private:
  void error(const std::string& key, std::string message) {
    findings_.error(config_.file, config_.at(key), key, std::move(message));
  }
  void model_error(const char* name, std::string message) {
    error(model_key(index_, name), std::move(message));
  }

  void compare(const actors::ModelOptions& options, const device::Model& model) {
    if (options.chip != model.chip) {
      model_error("chip_id", concat("is ", options.chip, ", but the package's model ",
                                    in_quotes(model.name), " was compiled for chip ", model.chip));
    }
    const device::Graph* prefill =
        graph("prefill_graph", options.prefill_graph, model.prefill, model.chip);
    const device::Graph* decode =
        graph("decode_graph", options.decode_graph, model.decode, model.chip);

    std::uint32_t context = model.kv.tokens_per_slot;
    if (prefill != nullptr) context = std::min(context, prefill->context);
    if (decode != nullptr) context = std::min(context, decode->context);
    if (options.context_max > context) {
      model_error("context_limit", concat("is ", options.context_max,
                                          ", but the package was compiled for ", context));
    }
    // A short prompt queue is found by the loader where the limit is written there.
    if (options.context_max == 0 && context > options.prompt_tokens_waiting_max) {
      model_error("max_waiting_prompt_tokens",
                  concat("is ", options.prompt_tokens_waiting_max,
                         ", below the package's context of ", context));
    }
    const std::uint32_t slots = model.kv.slots;
    if (options.sequences_max > slots) {
      model_error("max_sequences", concat("is ", options.sequences_max,
                                          ", but the package has key/value memory for ", slots));
    }
    if (options.inflight_max > slots) {
      model_error("max_inflight", concat("is ", options.inflight_max,
                                         ", but the package has key/value memory for ", slots));
    }
    if (options.inflight_max > 1 && !has_both_engines(manifest_, model)) {
      model_error("max_inflight", concat("is ", options.inflight_max,
                                         ", but the package lacks buffers or commands of a job "
                                         "engine; it must be 1"));
    }
    if (!options.tokenizer_sha256.empty() && options.tokenizer_sha256 != model.tokenizer_sha256) {
      model_error("tokenizer_sha256",
                  concat("differs from the package's ", in_quotes(model.tokenizer_sha256)));
    }
  }

  /// `configured` may be "": then only the manifest's own graph is looked at.
  const device::Graph* graph(const char* key, const std::string& configured,
                             const std::string& manifest_name, std::uint32_t chip) {
    if (!configured.empty() && configured != manifest_name) {
      model_error(key, concat("is ", in_quotes(configured), ", but the package's model has ",
                              in_quotes(manifest_name)));
    }
    const device::Graph* graph = graph_named(manifest_, manifest_name);
    if (graph == nullptr) {
      model_error(key, concat("the package lists no graph ", in_quotes(manifest_name)));
      return nullptr;
    }
    if (graph->target_chips != std::vector<std::uint32_t>{chip}) {
      model_error(
          key, concat("the package's graph ", in_quotes(graph->name), " runs on chip ",
                      list(graph->target_chips, [](std::uint32_t c) { return std::to_string(c); }),
                      ", but its model is on chip ", chip));
    }
    if (graph->batch != 1) {
      model_error(key, concat("the package's graph ", in_quotes(graph->name), " has batch ",
                              graph->batch, "; only batch 1 is served"));
    }
    return graph;
  }

  const Config& config_;
  const device::Manifest& manifest_;
  Findings findings_;
  std::size_t index_ = 0;
};

}   // namespace

const device::Model* bound_model(const actors::ModelOptions& options,
                                 const device::Manifest& manifest) {
  const bool by_name = !options.package_model.empty();
  const auto found =
      std::find_if(manifest.models.begin(), manifest.models.end(), [&](const device::Model& model) {
        return by_name ? model.name == options.package_model : model.alias == options.alias;
      });
  return found == manifest.models.end() ? nullptr : &*found;
}

std::vector<Finding> cross_check(const Config& config, const device::Manifest& manifest) {
  Checker checker{config, manifest};
  checker.chips();
  for (std::size_t i = 0; i < config.service.models.size(); ++i) checker.model(i);
  return checker.take();
}

std::vector<Finding> cross_check(const Config& config, std::size_t index,
                                 const device::Manifest& manifest) {
  DUET_ASSERT(index < config.service.models.size(), index);
  Checker checker{config, manifest};
  checker.chips();
  checker.model(index);
  return checker.take();
}

}   // namespace duet::config
