// accept_run.cpp: the steps of the runner in their order.
#include "tools/accept_run.hpp"

#include "device/contract/overlap.hpp"
#include "tools/answer_screen.hpp"
#include "tools/golden_check.hpp"

#include <boost/json/array.hpp>

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstdio>
#include <functional>
#include <thread>

namespace duet::tools {

namespace {

using device::TimePoint;

// A model of a few GiB is copied and its programs are checked in seconds; a board that needs more
// is stuck.
constexpr std::chrono::seconds call_deadline{120};
constexpr std::chrono::seconds drain_deadline{30};

TimePoint in(std::chrono::seconds time) {
  return std::chrono::steady_clock::now() + time;
}

std::string chips_text(const std::vector<std::uint32_t>& chips) {
  std::string text = "[";
  for (const std::uint32_t chip : chips)
    text += (text.size() > 1 ? "," : "") + std::to_string(chip);
  return text + "]";
}

std::string milliseconds_text(device::ChipNanoseconds time) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f ms", static_cast<double>(time) / 1e6);
  return text;
}

/// Runs body(0), body(1), ... on threads of their own, which begin together.
void side_by_side(std::size_t count, const std::function<void(std::size_t)>& body) {
  std::barrier begin(static_cast<std::ptrdiff_t>(count));
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < count; ++i) {
    threads.emplace_back([&begin, &body, i] {
      begin.arrive_and_wait();
      body(i);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}   // namespace

AcceptRun::AcceptRun(AcceptOptions options, AcceptReport& report)
    : options_(std::move(options)), report_(report) {}

bool AcceptRun::validate() {
  device::ValidationReport validation =
      device::validate_package(options_.package, options_.validate);
  boost::json::array findings;
  for (const device::Finding& finding : validation.findings.list()) {
    report_.note(device::finding_text(finding));
    findings.push_back(boost::json::object{{"code", device::code_text(finding.code)},
                                           {"text", device::finding_text(finding)}});
  }
  report_.set("package", boost::json::string(options_.package));
  report_.set("findings", std::move(findings));
  package_ = validation.package;
  if (package_ == nullptr) {
    report_.step("validate", false,
                 std::to_string(validation.findings.errors()) + " errors; nothing was opened");
    return false;
  }
  report_.step("validate", true,
               std::to_string(package_->manifest().models.size()) + " models, " +
                   std::to_string(package_->manifest().graphs.size()) + " graphs, " +
                   std::to_string(validation.findings.warnings()) + " warnings, " +
                   (package_->trust() == device::Trust::verified ? "signature verified"
                                                                 : "signature not verified"));
  for (const device::Model& model : package_->manifest().models) {
    chips_.emplace_back().model = &model;
  }
  for (const auto& [alias, message] : options_.asks) {
    const auto chip = std::find_if(chips_.begin(), chips_.end(), [&alias_ = alias](const Chip& c) {
      return c.model->alias == alias_;
    });
    if (chip == chips_.end()) {
      report_.step("questions", false, "the package has no alias '" + alias + "'");
      return false;
    }
    auto question = Question::create(*chip->model, package_->tokenizer(chip->model->name), message);
    if (!question) {
      report_.step("questions", false, question.error());
      return false;
    }
    asked_.push_back(
        {static_cast<std::size_t>(chip - chips_.begin()), message, std::move(*question)});
  }
  return true;
}

std::optional<DeviceClient::Value> AcceptRun::step(DeviceClient& client, const std::string& what,
                                                   const DeviceClient::Start& start,
                                                   const std::string& detail) {
  auto outcome = client.call(start);
  if (!outcome) {
    report_.step(what, false, failure_text(outcome.error()));
    return std::nullopt;
  }
  std::string text = detail;
  if (const auto* topology = std::get_if<device::Topology>(&*outcome)) {
    text = topology->runtime + ", " + std::to_string(topology->chips) + " chips of " +
           std::to_string(topology->cores_per_chip) + " CalCores, lock taken, device reset";
  } else if (const auto* hash = std::get_if<std::string>(&*outcome)) {
    text += *hash;
  }
  report_.step(what, true, text);
  return std::move(*outcome);
}

bool AcceptRun::run(device::Device& device) {
  DeviceClient client(device);
  const bool passed = open(client) && load(client) && configure(client) && make_sessions(client) &&
                      goldens(client) && both_at_once(client) && answer(client);
  tear_down(client);
  return passed && !report_.failed();
}

bool AcceptRun::open(DeviceClient& client) {
  opened_ = step(client, "open", [&](std::uint64_t tag, device::Sink sink) {
              client.device().open(tag, in(call_deadline), std::move(sink));
            }).has_value();
  return opened_;
}

bool AcceptRun::load(DeviceClient& client) {
  const auto value = step(
      client, "load",
      [&](std::uint64_t tag, device::Sink sink) {
        const device::PackageRef ref{package_->directory(), package_->shared_manifest(),
                                     package_->hash()};
        client.device().load_package(tag, ref, in(call_deadline), std::move(sink));
      },
      options_.package);
  if (!value) return false;
  const auto& loaded = std::get<device::LoadedPackage>(*value);
  loaded_ = loaded.package;

  // exact names and chip targets, as the runtime itself reports them, before configure.
  const auto& graphs = package_->manifest().graphs;
  std::string text;
  bool equal = loaded.graphs.size() == graphs.size();
  for (const device::LoadedGraph& graph : loaded.graphs) {
    const auto named = std::count_if(loaded.graphs.begin(), loaded.graphs.end(),
                                     [&](const auto& other) { return other.name == graph.name; });
    const device::Graph* const expected = device::find_graph(package_->manifest(), graph.name);
    const bool same = named == 1 && expected != nullptr && graph.mode == expected->mode &&
                      graph.target_chips == expected->target_chips;
    equal = equal && same;
    text += (text.empty() ? "" : ", ") + graph.name + " -> " + chips_text(graph.target_chips) +
            (same ? "" : " (not as in the manifest)");
  }
  report_.step("validate loaded", equal, text);
  return equal;
}

bool AcceptRun::configure(DeviceClient& client) {
  configured_ = step(
                    client, "configure",
                    [&](std::uint64_t tag, device::Sink sink) {
                      client.device().configure(tag, loaded_, in(call_deadline), std::move(sink));
                    },
                    "once, for the whole board")
                    .has_value();
  return configured_;
}

bool AcceptRun::make_session(DeviceClient& client, Chip& chip) {
  const std::string& alias = chip.model->alias;
  auto created = step(
      client, "session",
      [&](std::uint64_t tag, device::Sink sink) {
        device::ChipSessionOptions session;
        session.chip = chip.model->chip;
        client.device().create_session(tag, session, client.sink(), std::move(sink));
      },
      "chip " + std::to_string(chip.model->chip));
  if (!created) return false;
  chip.session = std::get<device::SessionState>(*created);
  auto loaded = step(
      client, "load model",
      [&](std::uint64_t tag, device::Sink sink) {
        client.device().load_model(tag, chip.session.session, loaded_, chip.model->name,
                                   in(call_deadline), std::move(sink));
      },
      alias + " on chip " + std::to_string(chip.model->chip));
  if (!loaded) return false;
  chip.session = std::get<device::SessionState>(*loaded);
  for (const auto graph : {device::GraphKind::prefill, device::GraphKind::decode}) {
    auto made = step(
        client, "buffers",
        [&](std::uint64_t tag, device::Sink sink) {
          client.device().allocate_io(tag, chip.session.session, graph, std::move(sink));
        },
        alias + " " + to_string(graph));
    if (!made) return false;
    chip.buffers.push_back(std::get<device::IoBuffers>(*made));
  }
  chip.client = std::make_unique<ModelClient>(client, *chip.model, chip.session, chip.buffers[0],
                                              chip.buffers[1]);
  return true;
}

bool AcceptRun::make_sessions(DeviceClient& client) {
  return std::all_of(chips_.begin(), chips_.end(),
                     [&](Chip& chip) { return make_session(client, chip); });
}

bool AcceptRun::hash_is_ours(DeviceClient& client, const std::string& before) {
  const auto value = step(
      client, "read hash",
      [&](std::uint64_t tag, device::Sink sink) {
        client.device().read_hash(tag, in(call_deadline), std::move(sink));
      },
      "before " + before + ": ");
  if (!value) return false;
  if (std::get<std::string>(*value) == package_->hash()) return true;
  report_.step("compare hash", false, "the package's is " + package_->hash());
  return false;
}

bool AcceptRun::goldens(DeviceClient& client) {
  for (Chip& chip : chips_) {
    const std::string& alias = chip.model->alias;
    if (!hash_is_ours(client, "golden " + alias)) return false;
    const device::Golden& golden = package_->golden(chip.model->name);
    const auto verdict = check_golden_on(*chip.client, golden, 0, golden.prompts.size());
    if (!verdict) {
      report_.step("golden " + alias, false, failure_text(verdict.error()));
      return false;
    }
    report_.step("golden " + alias, verdict->passed(chip.model->golden_rule), verdict->text());
    if (report_.failed()) return false;
  }
  return true;
}

std::vector<device::TraceEvent> AcceptRun::take_trace(DeviceClient& client, const Chip& chip,
                                                      std::uint64_t& dropped) {
  auto value = client.call([&](std::uint64_t tag, device::Sink sink) {
    client.device().take_trace(tag, chip.model->chip, std::move(sink));
  });
  if (!value) {
    report_.step("read trace", false, failure_text(value.error()));
    return {};
  }
  auto& trace = std::get<device::Trace>(*value);
  dropped = trace.dropped;
  return std::move(trace.events);
}

std::vector<device::TraceEvent> AcceptRun::traced(DeviceClient& client,
                                                  const std::function<void(std::size_t)>& body) {
  std::vector<std::uint64_t> jobs_before;
  std::uint64_t dropped = 0;
  for (const Chip& chip : chips_) {
    take_trace(client, chip, dropped);   // what was recorded until now is not of interest
    jobs_before.push_back(chip.client->jobs());
  }
  side_by_side(chips_.size(), body);
  std::vector<device::TraceEvent> all;
  for (std::size_t i = 0; i < chips_.size(); ++i) {
    const Chip& chip = chips_[i];
    const std::vector<device::TraceEvent> events = take_trace(client, chip, dropped);
    const auto is_own = [&](const device::TraceEvent& event) {
      return event.chip == chip.model->chip && event.session == chip.session.session;
    };
    const auto own = static_cast<std::size_t>(std::count_if(events.begin(), events.end(), is_own));
    const auto computed = static_cast<std::uint64_t>(
        std::count_if(events.begin(), events.end(), [&](const device::TraceEvent& event) {
          return is_own(event) && event.kind == device::TraceKind::compute;
        }));
    const std::uint64_t jobs = chip.client->jobs() - jobs_before[i];
    report_.step("verify trace", computed == jobs && own == events.size() && dropped == 0,
                 "chip " + std::to_string(chip.model->chip) + ": " + std::to_string(jobs) +
                     " jobs, " + std::to_string(computed) + " compute intervals, " +
                     std::to_string(events.size() - own) + " events of another chip or session, " +
                     std::to_string(dropped) + " dropped");
    all.insert(all.end(), events.begin(), events.end());
  }
  return all;
}

bool AcceptRun::report_overlap(const std::string& what, std::span<const device::TraceEvent> trace,
                               bool required) {
  if (chips_.size() != 2) return true;
  const device::Overlap overlap =
      device::compute_overlap(trace, chips_[0].model->chip, chips_[1].model->chip);
  char ratio[16];
  std::snprintf(ratio, sizeof ratio, "%.3f", overlap.ratio);
  report_.step("overlap " + what, overlap.both_busy > 0 || !required,
               std::string(ratio) + ": both chips computed for " +
                   milliseconds_text(overlap.both_busy) + " of " +
                   milliseconds_text(overlap.first_busy) + " and " +
                   milliseconds_text(overlap.second_busy) + ", chip time");
  report_.set("overlap_" + what, overlap.ratio);
  return !report_.failed();
}

bool AcceptRun::both_at_once(DeviceClient& client) {
  std::vector<std::optional<device::result<device::GoldenVerdict>>> verdicts(chips_.size());
  const auto trace = traced(client, [&](std::size_t i) {
    const device::Golden& golden = package_->golden(chips_[i].model->name);
    verdicts[i] = check_golden_on(*chips_[i].client, golden, 0, golden.prompts.size());
  });
  for (std::size_t i = 0; i < chips_.size(); ++i) {
    const device::Model& model = *chips_[i].model;
    const auto& verdict = *verdicts[i];
    report_.step("concurrent " + model.alias, verdict && verdict->passed(model.golden_rule),
                 verdict ? verdict->text() : failure_text(verdict.error()));
  }
  return report_overlap("goldens", trace, true);
}

bool AcceptRun::answer(DeviceClient& client) {
  if (asked_.empty()) return true;
  std::vector<std::string> titles;
  for (const Asked& asked : asked_) titles.push_back(chips_[asked.chip].model->alias);
  for (const Asked& asked : asked_) {
    report_.note("asking " + chips_[asked.chip].model->alias + ": " + asked.message);
  }
  AnswerScreen screen(titles, report_.json() ? 0 : options_.terminal_columns);
  std::vector<std::optional<device::result<Answer>>> answers(asked_.size());
  // Questions to different models at the same time, to one model one after another.
  const auto trace = traced(client, [&](std::size_t chip) {
    for (std::size_t i = 0; i < asked_.size(); ++i) {
      if (asked_[i].chip != chip) continue;
      answers[i] = ask(*chips_[chip].client, asked_[i].question, options_.answer_tokens_max,
                       [&](const std::string& piece) {
                         if (!report_.json()) screen.append(i, piece);
                       });
      if (!report_.json()) screen.finish(i);
    }
  });
  boost::json::array list;
  for (std::size_t i = 0; i < asked_.size(); ++i) {
    const auto& answer = *answers[i];
    report_.step("answer " + titles[i], answer.has_value(),
                 answer ? std::to_string(answer->tokens) + " tokens, finish " + answer->finish
                        : failure_text(answer.error()));
    if (!answer) continue;
    list.push_back(boost::json::object{{"alias", titles[i]},
                                       {"question", asked_[i].message},
                                       {"answer", answer->text},
                                       {"tokens", answer->tokens},
                                       {"finish", answer->finish}});
  }
  report_.set("answers", std::move(list));
  // A short answer may end before a loaded machine lets the other begin, so this one is only told.
  return report_overlap("answers", trace, false);
}

void AcceptRun::tear_down(DeviceClient& client) {
  if (!opened_) return;
  for (Chip& chip : chips_) {
    if (chip.client == nullptr) continue;
    static_cast<void>(chip.client->end());
    static_cast<void>(step(
        client, "drain",
        [&](std::uint64_t tag, device::Sink sink) {
          client.device().drain(tag, chip.session.session, in(drain_deadline), std::move(sink));
        },
        chip.model->alias));
    for (const device::IoBuffers& buffers : chip.buffers) {
      static_cast<void>(client.call([&](std::uint64_t tag, device::Sink sink) {
        client.device().release_io(tag, chip.session.session, buffers.id, std::move(sink));
      }));
    }
  }
  if (configured_) {
    static_cast<void>(
        step(client, "reset configuration", [&](std::uint64_t tag, device::Sink sink) {
          client.device().reset_configuration(tag, in(call_deadline), std::move(sink));
        }));
  }
  static_cast<void>(step(client, "release", [&](std::uint64_t tag, device::Sink sink) {
    client.device().close(tag, in(call_deadline), std::move(sink));
  }));
}

}   // namespace duet::tools
