// manifest_schema.cpp: visits the fields of a manifest and writes down what each may hold.
#include "device/package/manifest_schema.hpp"

#include "device/package/json_text.hpp"
#include "device/package/manifest_fields.hpp"
#include "device/package/manifest_yaml.hpp"
#include "runtime/assert.hpp"

#include <algorithm>
#include <array>
#include <concepts>
#include <limits>
#include <optional>
#include <vector>

namespace duet::device {
namespace {

/// What the type of a field does not say: its meaning, and rules as members of a JSON object.
struct Note {
  std::string_view path;
  std::string_view meaning;
  std::string_view rules = {};
};

constexpr std::string_view plain_name = R"("pattern": "^[A-Za-z0-9_][A-Za-z0-9._-]*$")";
constexpr std::string_view sha256_hex = R"("pattern": "^[0-9a-f]{64}$")";

// Every field has its row here, in the order of the file; next_note() insists on it.
constexpr auto notes = std::to_array<Note>({
    {"schema", "the format of this file", R"("const": "duet-package/v1")"},
    {"kind", "two models on two chips, or one and an idle chip", R"("enum": ["dual", "single"])"},
    {"build_id", "names the build that made every part", R"("pattern": "^[0-9a-f]{32}$")"},
    {"numerics", "rules of the arithmetic; 1: W8A8 with BF16 KV", R"("const": 1)"},
    {"chips", "chips of the board", R"("minimum": 1, "maximum": 2)"},
    {"cores_per_chip", "CalCores of a chip", R"("minimum": 1, "maximum": 2)"},
    {"dram_bytes_per_chip", "the capacity that the address plan was made for, in bytes"},
    {"models", "one, or two on different chips", R"("minItems": 1, "maxItems": 2)"},
    {"models[].name", "folder and owner", plain_name},
    {"models[].alias", "the public name", plain_name},
    {"models[].chip", "the one chip it lives on"},
    {"models[].config", "hyper-parameters that the programs were compiled from"},
    {"models[].config.architecture", "the family", R"("enum": ["llama", "qwen2", "qwen3"])"},
    {"models[].config.layers", "transformer blocks"},
    {"models[].config.embedding", "elements of the residual stream"},
    {"models[].config.feed_forward", "elements of the feed-forward's middle"},
    {"models[].config.heads", "query heads"},
    {"models[].config.kv_heads", "key and value heads"},
    {"models[].config.head_dim", "elements of a head"},
    {"models[].config.rope_dims", "elements of a head that are rotated"},
    {"models[].config.vocabulary", "tokens"},
    {"models[].config.context", "positions that the model file allows"},
    {"models[].config.norm_epsilon", "added under the root of RMS norms"},
    {"models[].config.rope_base", "base of the rotation's frequencies"},
    {"models[].config.rope_neox", "rotates halves instead of neighbours"},
    {"models[].config.qk_norm", "norms queries and keys"},
    {"models[].config.qkv_bias", "has biases of queries, keys and values"},
    {"models[].config.tied_output", "the output matrix is the token embedding"},
    {"models[].quantization", "weights and activations", R"("const": "W8A8")"},
    {"models[].source_sha256", "of the model file", sha256_hex},
    {"models[].parameters", "name of the section"},
    {"models[].parameter_map", "name of the section"},
    {"models[].prefill", "exact name of the graph"},
    {"models[].decode", "exact name of the graph"},
    {"models[].kv", "memory of its sequences"},
    {"models[].kv.section", "name of the section"},
    {"models[].kv.dtype", "of an element", R"("const": "bf16")"},
    {"models[].kv.slots", "sequences at a time"},
    {"models[].kv.tokens_per_slot", "positions of a sequence"},
    {"models[].kv.bytes_per_slot", "bytes of a sequence"},
    {"models[].kv.sequence_id_first", "first of its sequence ids"},
    {"models[].kv.sequence_id_last", "last of its sequence ids"},
    {"models[].tokenizer", "path in the package"},
    {"models[].tokenizer_sha256", "of that file", sha256_hex},
    {"models[].golden", "path in the package"},
    {"models[].golden_sha256", "of that file", sha256_hex},
    {"models[].golden_rule", "when an answer is as the golden's"},
    {"models[].golden_rule.kind", "the rule's name"},
    {"models[].golden_rule.margin_min", "best logit minus second from which a token must agree"},
    {"models[].golden_rule.logprob_mean_max", "mean difference of log-probabilities, in nats"},
    {"models[].golden_rule.logprob_p99_max", "99th percentile of it, in nats"},
    {"models[].tensors", "all tensors of the parameters, in the order that programs count them"},
    {"models[].tensors[].name", "as in the model file"},
    {"models[].tensors[].dtype", "of an element"},
    {"models[].tensors[].shape", "outermost first"},
    {"models[].tensors[].offset", "bytes from the start of the parameters", R"("multipleOf": 64)"},
    {"models[].tensors[].bytes", "bytes of the tensor"},
    {"graphs", "a prefill and a decode graph a model", R"("minItems": 2, "maxItems": 16)"},
    {"graphs[].name", "exact and unique", plain_name},
    {"graphs[].kind", "what its jobs do"},
    {"graphs[].target_chips", "tarChipN: the one chip of its model",
     R"("minItems": 1, "maxItems": 1)"},
    {"graphs[].mode", "SCHIP or MCHIP; only schip is valid in a package", R"("const": "schip")"},
    {"graphs[].task", "only single_chip is valid", R"("const": "single_chip")"},
    {"graphs[].calc_mchip", "computes across chips; only false is valid", R"("const": false)"},
    {"graphs[].batch", "sequences of one job", R"("const": 1)"},
    {"graphs[].context", "positions of a sequence"},
    {"graphs[].tokens_max", "tokens of one job"},
    {"graphs[].split_prefill", "a prompt may come in several prefill jobs"},
    {"graphs[].inputs", "tensors that go in"},
    {"graphs[].inputs[].name", "of the port"},
    {"graphs[].inputs[].dtype", "of an element"},
    {"graphs[].inputs[].shape", "outermost first"},
    {"graphs[].outputs", "tensors that come out"},
    {"graphs[].outputs[].name", "of the port"},
    {"graphs[].outputs[].dtype", "of an element"},
    {"graphs[].outputs[].shape", "outermost first"},
    {"graphs[].programs", "names of sections, one a CalCore"},
    {"graphs[].commands", "names of sections: CPU and PLD, ping and pong",
     R"("minItems": 4, "maxItems": 4)"},
    {"graphs[].csr", "name of the section"},
    {"graphs[].workspace", "name of the section; both graphs of a model may share it"},
    {"graphs[].sync_units", "device-wide numbers: ping started, done, pong started, done",
     R"("minItems": 4, "maxItems": 4)"},
    {"sections", "all pieces of device memory", R"("maxItems": 256)"},
    {"sections[].name", "unique", plain_name},
    {"sections[].kind", "what it holds"},
    {"sections[].model", "the model that owns it"},
    {"sections[].graph", "of a program, command or csr section"},
    {"sections[].path", "the file that fills it; none: reserved memory"},
    {"sections[].sha256", "of that file", sha256_hex},
    {"sections[].chip_mask", "bit n: chip n; exactly one", R"("enum": [1, 2])"},
    {"sections[].address", "in the chip's local DRAM", R"("multipleOf": 4096)"},
    {"sections[].bytes", "its size", R"("minimum": 1)"},
    {"sections[].writable", "kv, workspace, input and output are"},
    {"sections[].core", "of a program: the CalCore"},
    {"sections[].engine", "of a command list or a staging"},
    {"sections[].processor", "of a command list: who executes it"},
    {"dma_routes", "ways between the host and one chip", R"("maxItems": 64)"},
    {"dma_routes[].name", "unique", plain_name},
    {"dma_routes[].model", "the model that uses it"},
    {"dma_routes[].from", "one end", R"("enum": ["host", "chip0", "chip1"])"},
    {"dma_routes[].to", "the other end", R"("enum": ["host", "chip0", "chip1"])"},
    {"dma_routes[].window", "the host mapping, never shared by two models", plain_name},
    {"memory", "what is reserved of each chip's DRAM"},
    {"memory[].chip", "its number"},
    {"memory[].what", "the line",
     R"("enum": ["weights", "kv", "workspace", "code", "io", "metadata", )"
     R"("fragmentation", "guard"])"},
    {"memory[].bytes", "bytes"},
});

template <typename T>
concept Named = requires {
  EnumNames<T>::names;
};
template <typename T>
concept Number = std::unsigned_integral<T> && !std::same_as<T, bool>;

/// Hands the notes out in the order of the fields.
class Notes {
 public:
  const Note& next(const std::string& path) {
    DUET_ASSERT(at_ < notes.size() && notes[at_].path == path, at_);
    return notes[at_++];
  }
  void finish() const { DUET_ASSERT(at_ == notes.size(), at_); }

 private:
  std::size_t at_ = 0;
};

/// Writes the members of the schema of one map.
class SchemaWriter {
 public:
  SchemaWriter(Notes& given, std::string prefix, std::string indent)
      : notes_(given), prefix_(std::move(prefix)), indent_(std::move(indent)) {}

  template <typename T>
  void operator()(const char* key, T& value) {
    property(key, value);
    required_ += (required_.empty() ? "" : ", ") + json_string(key);
  }
  template <typename T>
  void optional(const char* key, T& value) {
    property(key, value);
  }
  void hex(const char* key, std::uint64_t& value) { (*this)(key, value); }

  /// The members that make an object of the properties.
  [[nodiscard]] std::string take() const {
    return "\"type\": \"object\", \"additionalProperties\": false,\n" + indent_ +
           "\"required\": [" + required_ + "],\n" + indent_ + "\"properties\": {" + properties_ +
           "\n" + indent_ + "}";
  }

 private:
  template <typename T>
  void property(const char* key, T& value) {
    const std::string path = prefix_ + key;
    const Note& note = notes_.next(path);
    properties_ += (properties_.empty() ? "\n" : ",\n") + indent_ + "  " + json_string(key) +
                   ": {\"description\": " + json_string(note.meaning) + ", " +
                   type(value, path, std::string(note.rules)) + "}";
  }
  static std::string with(std::string members, const std::string& rules) {
    return rules.empty() ? members : std::move(members) + ", " + rules;
  }

  std::string type(const std::string&, const std::string&, const std::string& rules) {
    return with(R"("type": "string", "maxLength": )" + number_text(manifest_limits::text_bytes_max),
                rules);
  }
  std::string type(bool, const std::string&, const std::string& rules) {
    return with(R"("type": "boolean")", rules);
  }
  template <Number T>
  std::string type(T, const std::string&, const std::string& rules) {
    std::string members = R"("type": "integer")";
    if (rules.find("\"minimum\"") == std::string::npos) members += R"(, "minimum": 0)";
    if (rules.find("\"maximum\"") == std::string::npos) {
      members += ", \"maximum\": " + number_text(std::numeric_limits<T>::max());
    }
    return with(members, rules);
  }
  template <std::floating_point T>
  std::string type(T, const std::string&, const std::string& rules) {
    return with(R"("type": "number")", rules);
  }
  template <Named T>
  std::string type(T, const std::string&, const std::string& rules) {
    return with("\"enum\": " + json_array(EnumNames<T>::names, json_string), rules);
  }
  std::string type(DType, const std::string&, const std::string& rules) {
    return with("\"enum\": " + json_array(dtype_spellings, json_string), rules);
  }
  template <typename T>
  std::string type(const std::optional<T>&, const std::string& path, const std::string& rules) {
    return type(T{}, path, rules);
  }
  template <typename T>
  std::string type(std::vector<T>&, const std::string& path, const std::string& rules) {
    std::string members = R"("type": "array")";
    if (rules.find("\"maxItems\"") == std::string::npos) {
      members += ", \"maxItems\": " + number_text(manifest_limits::items_max);
    }
    T item = {};
    return with(members, rules) + ", \"items\": {" + type(item, path + "[]", "") + "}";
  }
  template <typename T>
  requires requires(SchemaWriter& writer, T& value) { fields(writer, value); }
  std::string type(T& value, const std::string& path, const std::string&) {
    SchemaWriter inner{notes_, path + ".", indent_ + "    "};
    fields(inner, value);
    return inner.take();
  }

  Notes& notes_;
  std::string prefix_;
  std::string indent_;
  std::string required_;
  std::string properties_;
};

}   // namespace

std::string manifest_json_schema() {
  Manifest manifest;
  Notes given;
  SchemaWriter writer{given, "", "  "};
  fields(writer, manifest);
  given.finish();
  return "{\n  \"$schema\": \"https://json-schema.org/draft/2020-12/schema\",\n"
         "  \"$id\": \"urn:duet:package:v1\",\n"
         "  \"title\": \"manifest.yaml of a Duet package\",\n  " +
         writer.take() + "\n}\n";
}

}   // namespace duet::device
