// duet_pack_budget.cpp: shows what takes each chip's memory, whether it fits, and what would.
#include "tools/duet_pack_budget.hpp"

#include "device/package/budget.hpp"
#include "device/package/file_tree.hpp"
#include "device/package/json_text.hpp"
#include "device/package/limits.hpp"
#include "device/package/manifest_yaml.hpp"
#include "device/package/packer.hpp"
#include "device/program/byte_reader.hpp"
#include "tools/duet_pack_command.hpp"

#include <boost/program_options.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <ostream>

namespace duet::tools {
namespace {

using device::ChipBudget;
using device::failure;
using device::json_string;
using device::Manifest;
using device::number_text;
using device::Result;
namespace po = boost::program_options;

constexpr std::uint32_t context_default = 4096;
constexpr std::uint32_t sequences_default = 8;
constexpr std::uint64_t dram_default = std::uint64_t{16} << 30U;
constexpr std::uint64_t size_max = std::uint64_t{1} << 40U;

/// A chip's budget with what would fit instead; no Fit if only a reservation is known.
struct Answer {
  ChipBudget budget;
  std::optional<device::Fit> fit;
  std::uint64_t kv_min = 0;   ///< the lower bound of R-8.1, bytes.
};

struct Judged {
  std::uint32_t context = 0;
  std::uint32_t sequences = 0;
  Manifest manifest;
  std::vector<Answer> answers;
};

Result<Manifest> read_package_manifest(const std::string& path) {
  const auto tree = device::FileTree::open(path);
  if (tree.has_error()) return tree.error();
  const auto file = tree->map(device::manifest_file);
  if (file.has_error()) return failure(path, ": is no package: ", file.error().message);
  device::Findings findings;
  auto manifest = device::read_manifest(device::as_text((*file)->bytes()), findings);
  if (!manifest) {
    return failure(path, ": ", device::finding_text(findings.list().front()),
                   "; see duet-pack validate");
  }
  return std::move(*manifest);
}

/// The manifest of the question's package or model files for its numbers.
Result<Manifest> read_manifest_of(const BudgetQuestion& question) {
  const bool package = question.paths.size() == 1 &&
                       std::filesystem::is_directory(std::filesystem::path(question.paths[0]));
  if (package) {
    auto own = read_package_manifest(question.paths[0]);
    const bool as_it_is = !question.context && !question.sequences && !question.dram;
    if (own.has_error() || as_it_is) return own;
    if (own->models.empty()) return failure(question.paths[0], ": has no model");
    // A model with a shorter limit keeps it, so the longest context is what was asked for.
    std::uint32_t context = 0;
    std::uint32_t sequences = 0;
    for (const device::Model& model : own->models) {
      context = std::max(context, model.kv.tokens_per_slot);
      sequences = std::max(sequences, model.kv.slots);
    }
    return device::replanned(*own, question.context.value_or(context),
                             question.sequences.value_or(sequences),
                             question.dram.value_or(own->dram_bytes_per_chip));
  }
  device::PackOptions options;
  for (std::size_t i = 0; i < question.paths.size(); ++i) {
    const std::string name = std::string("model-") + static_cast<char>('a' + i);
    options.models.push_back({name, name, question.paths[i], "", static_cast<std::uint32_t>(i)});
  }
  options.context = question.context.value_or(context_default);
  options.kv_slots = question.sequences.value_or(sequences_default);
  options.dram_bytes_per_chip = question.dram.value_or(dram_default);
  return device::plan_package(options);
}

Result<Judged> judge(const BudgetQuestion& question) {
  Judged out;
  if (question.paths.empty()) {
    out.manifest.chips = device::package_limits::chips_max;
    out.manifest.dram_bytes_per_chip = question.dram.value_or(dram_default);
    for (const auto& [chip, bytes] : question.reserved) {
      out.manifest.memory.push_back({chip, "reserved", bytes});
    }
  } else {
    auto manifest = read_manifest_of(question);
    if (manifest.has_error()) return manifest.error();
    out.manifest = std::move(*manifest);
  }
  for (ChipBudget& budget : device::chip_budgets(out.manifest)) {
    Answer answer;
    for (const device::Model& model : out.manifest.models) {
      if (model.chip != budget.chip) continue;
      const device::ModelConfig& c = model.config;
      out.context = std::max(out.context, model.kv.tokens_per_slot);
      out.sequences = std::max(out.sequences, model.kv.slots);
      answer.kv_min += std::uint64_t{2} * c.layers * c.kv_heads * c.head_dim *
                       model.kv.tokens_per_slot * model.kv.slots * 2;
      answer.fit = device::find_fit(out.manifest, budget.chip, model.kv.tokens_per_slot,
                                    model.kv.slots, out.manifest.dram_bytes_per_chip);
    }
    answer.budget = std::move(budget);
    out.answers.push_back(std::move(answer));
  }
  if (out.answers.empty()) return failure("nothing takes any chip's memory");
  return out;
}

std::string mib(std::uint64_t bytes) {
  std::array<char, 48> text{};
  std::snprintf(text.data(), text.size(), "%11.2f MiB",
                static_cast<double>(bytes) / static_cast<double>(1U << 20U));
  return text.data();
}

std::string counted(std::uint32_t sequences) {
  return std::to_string(sequences) + (sequences == 1 ? " sequence" : " sequences");
}

std::string padded(std::string text) {
  text.resize(std::max<std::size_t>(text.size(), 16), ' ');
  return text;
}

void print_answer(const Judged& judged, const Answer& answer, std::ostream& out) {
  const ChipBudget& b = answer.budget;
  out << "chip " << b.chip << ": " << device::to_string(b.verdict)
      << (b.reason.empty() ? "" : ": " + b.reason) << "\n";
  for (const device::MemoryLine& line : b.lines) {
    out << "  " << padded(line.what) << mib(line.bytes);
    if (line.what == "kv") out << "   at least" << mib(answer.kv_min) << " by the formula";
    out << "\n";
  }
  const std::uint64_t go = device::go_bytes_max(b.dram);
  out << "  " << padded("used") << mib(b.used) << "   of" << mib(b.dram) << "\n"
      << "  " << padded("go up to") << mib(go) << "   " << (b.used > go ? "over by" : "room for")
      << mib(b.used > go ? b.used - go : go - b.used) << "\n  " << padded("must stay free")
      << mib(b.reserve) << "\n";
  if (!answer.fit) return;
  const auto shown = [](const std::optional<std::uint32_t>& n) {
    return n ? "up to " + std::to_string(*n) : std::string("none");
  };
  out << "  would be go: with " << counted(judged.sequences) << " a context of "
      << shown(answer.fit->context) << "; with a context of " << judged.context << " "
      << shown(answer.fit->sequences) << " sequences\n";
}

std::string answer_json(const Answer& answer) {
  const ChipBudget& b = answer.budget;
  const std::uint64_t go = device::go_bytes_max(b.dram);
  const auto number = [](const std::optional<std::uint32_t>& n) {
    return n ? number_text(*n) : std::string("null");
  };
  std::string out = "{\"chip\": " + number_text(b.chip) +
                    ", \"verdict\": " + json_string(device::to_string(b.verdict)) +
                    ", \"reason\": " + json_string(b.reason) + ", \"lines\": " +
                    device::json_array(b.lines,
                                       [](const device::MemoryLine& line) {
                                         return "{\"what\": " + json_string(line.what) +
                                                ", \"bytes\": " + number_text(line.bytes) + "}";
                                       }) +
                    ", \"used\": " + number_text(b.used) + ", \"dram\": " + number_text(b.dram) +
                    ", \"reserve\": " + number_text(b.reserve) +
                    ", \"go_max\": " + number_text(go) +
                    ", \"over\": " + number_text(b.used > go ? b.used - go : 0);
  if (answer.fit) {
    out += ", \"kv_min\": " + number_text(answer.kv_min) +
           ", \"fits\": {\"context\": " + number(answer.fit->context) +
           ", \"sequences\": " + number(answer.fit->sequences) + "}";
  }
  return out + "}";
}

/// "CHIP=SIZE".
std::pair<std::uint32_t, std::uint64_t> reservation(const std::string& word) {
  if (word.size() < 3 || word[1] != '=' || (word[0] != '0' && word[0] != '1')) {
    throw Usage{"--reserved takes 0=SIZE or 1=SIZE, not " + device::in_quotes(word)};
  }
  const auto size = parse_size(word.substr(2));
  if (size.has_error()) throw Usage{size.error().message};
  return {word[0] == '0' ? 0U : 1U, *size};
}

}   // namespace

Result<std::uint64_t> parse_size(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view unit = text.substr(static_cast<std::size_t>(end - text.data()));
  static constexpr std::array<std::pair<std::string_view, double>, 4> units = {
      {{"", 1.0}, {"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30}}};
  for (const auto& [name, bytes] : units) {
    if (error != std::errc() || unit != name) continue;
    const double size = number * bytes;
    if (size >= 1 && size <= static_cast<double>(size_max)) return static_cast<std::uint64_t>(size);
  }
  return failure(device::in_quotes(text), " is no size: write 16GiB, 512MiB or a number of bytes, ",
                 "at most 1024GiB");
}

Result<bool> answer_budget(const BudgetQuestion& question, std::ostream& out) {
  auto judged = judge(question);
  if (judged.has_error()) return judged.error();
  std::vector<ChipBudget> budgets;
  for (const Answer& answer : judged->answers) budgets.push_back(answer.budget);
  if (!question.svg.empty()) {
    std::ofstream file(question.svg, std::ios::binary | std::ios::trunc);
    file << device::budget_svg(budgets);
    file.close();
    if (!file) return failure(question.svg, ": cannot be written");
  }
  const bool fits = std::all_of(budgets.begin(), budgets.end(), [](const ChipBudget& budget) {
    return budget.verdict != device::BudgetVerdict::no_go;
  });
  if (question.json) {
    out << "{\"fits\": " << (fits ? "true" : "false")
        << ", \"context\": " << (judged->context == 0 ? "null" : number_text(judged->context))
        << ", \"sequences\": " << (judged->sequences == 0 ? "null" : number_text(judged->sequences))
        << ", \"chips\": " << device::json_array(judged->answers, answer_json) << "}\n";
    return fits;
  }
  if (judged->context != 0) {
    out << "context " << judged->context << ", " << counted(judged->sequences) << " a model\n";
  }
  for (const Answer& answer : judged->answers) print_answer(*judged, answer, out);
  return fits;
}

int run_budget(const Words& words) {
  po::options_description text;
  text.add_options()("context", po::value<std::uint32_t>(),
                     "positions of a sequence (default: the package's, or 4096)")(
      "sequences", po::value<std::uint32_t>(),
      "sequences of a model at a time (default: the package's, or 8)")(
      "dram", po::value<std::string>(), "of a chip: 16GiB (default: the package's, or 16GiB)")(
      "reserved", po::value<Words>(),
      "CHIP=SIZE: judge an address plan of which only the size is known")(
      "svg", po::value<std::string>(), "draw each chip's memory to this file");
  const auto map = parse_words(words, "budget", text, {"FILE", "SECOND"}, 0);
  if (map.count("help") != 0) return exit_done;
  BudgetQuestion question;
  for (const char* name : {"FILE", "SECOND"}) {
    if (map.count(name) != 0) question.paths.push_back(map[name].as<std::string>());
  }
  if (map.count("reserved") != 0) {
    for (const std::string& word : map["reserved"].as<Words>()) {
      question.reserved.push_back(reservation(word));
    }
  }
  if (question.paths.empty() == question.reserved.empty()) {
    throw Usage{"duet-pack budget needs a package, model files, or --reserved CHIP=SIZE"};
  }
  if (map.count("context") != 0) question.context = map["context"].as<std::uint32_t>();
  if (map.count("sequences") != 0) question.sequences = map["sequences"].as<std::uint32_t>();
  if (question.context == 0U || question.sequences == 0U) {
    throw Usage{"--context and --sequences are numbers from 1"};
  }
  if (map.count("dram") != 0) {
    const auto size = parse_size(map["dram"].as<std::string>());
    if (size.has_error()) throw Usage{size.error().message};
    question.dram = *size;
  }
  if (map.count("svg") != 0) question.svg = map["svg"].as<std::string>();
  question.json = map.count("json") != 0;
  return take(answer_budget(question, std::cout)) ? exit_done : exit_finding;
}

}   // namespace duet::tools
