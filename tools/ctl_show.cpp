// ctl_show.cpp: tables from JSON.
#include "tools/ctl_show.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include <array>
#include <cstdint>
#include <cstdio>
#include <map>

namespace duet::tools {

namespace {

namespace json = boost::json;

template <typename... Args>
std::string format(const char* pattern, Args... args) {
  std::array<char, 512> text{};
  const int length = std::snprintf(text.data(), text.size(), pattern, args...);
  return {text.data(), std::min<std::size_t>(text.size() - 1, static_cast<std::size_t>(length))};
}

std::string text_of(const json::value& value) {
  return value.is_null() ? "" : std::string(value.as_string());
}

std::uint64_t number_of(const json::value& value) {
  return value.to_number<std::uint64_t>();
}

/// "reply of 7", "message", "a computation".
std::string waiting_text(const json::value& actor) {
  std::string text = text_of(actor.at("waits_for"));
  if (!actor.at("waits_on").is_null()) {
    text += " of " + std::to_string(number_of(actor.at("waits_on")));
  }
  return text;
}

void show_actor(const json::value& actor, std::size_t depth, std::string& out) {
  const std::string name = std::string(2 * depth, ' ') + text_of(actor.at("name"));
  const std::string state = text_of(actor.at("state"));
  out += format("%6llu  %-32s %-9s %9.3f  %5llu  %-18s %s\n",
                static_cast<unsigned long long>(number_of(actor.at("number"))), name.c_str(),
                state.c_str(), actor.at("for").to_number<double>(),
                static_cast<unsigned long long>(number_of(actor.at("normal").at("depth")) +
                                                number_of(actor.at("urgent").at("depth"))),
                waiting_text(actor).c_str(), text_of(actor.at("at")).c_str());
  for (const json::value& child : actor.at("children").as_array()) {
    show_actor(child, depth + 1, out);
  }
}

struct ChipSums {
  std::uint64_t prefills = 0;
  std::uint64_t decodes = 0;
  double compute_ms = 0;
};

ChipSums sum(const json::value& chip) {
  ChipSums sums;
  for (const json::value& event : chip.at("events").as_array()) {
    if (event.at("kind").as_string() != "compute") continue;
    (event.at("graph").as_string() == "prefill" ? sums.prefills : sums.decodes) += 1;
    sums.compute_ms +=
        static_cast<double>(number_of(event.at("end_ns")) - number_of(event.at("begin_ns"))) / 1e6;
  }
  return sums;
}

}   // namespace

std::string show_actors(const json::value& tree) {
  std::string out = format("%6s  %-32s %-9s %9s  %5s  %-18s %s\n", "number", "actor", "state",
                           "since (s)", "queue", "waits for", "at");
  for (const json::value& actor : tree.at("actors").as_array()) show_actor(actor, 0, out);
  const json::value& counters = tree.at("counters");
  out += format("%llu spawned, %llu messages sent, %llu delivered, %llu refused\n",
                static_cast<unsigned long long>(number_of(counters.at("spawned"))),
                static_cast<unsigned long long>(number_of(counters.at("sent"))),
                static_cast<unsigned long long>(number_of(counters.at("delivered"))),
                static_cast<unsigned long long>(number_of(counters.at("refused"))));
  return out;
}

std::string show_models(const json::value& models) {
  std::string out = format("%-16s %4s  %-11s %7s %7s %9s %9s %10s  %s\n", "model", "chip", "state",
                           "running", "waiting", "finished", "kv slots", "jobs", "reason");
  for (const json::value& model : models.at("models").as_array()) {
    const json::value& requests = model.at("requests");
    const std::string slots = std::to_string(number_of(model.at("kv_slots").at("used"))) + "/" +
                              std::to_string(number_of(model.at("kv_slots").at("total")));
    out += format(
        "%-16s %4llu  %-11s %7llu %7llu %9llu %9s %10llu  %s\n", text_of(model.at("model")).c_str(),
        static_cast<unsigned long long>(number_of(model.at("chip"))),
        text_of(model.at("state")).c_str(),
        static_cast<unsigned long long>(number_of(requests.at("running"))),
        static_cast<unsigned long long>(number_of(requests.at("waiting"))),
        static_cast<unsigned long long>(number_of(requests.at("finished"))), slots.c_str(),
        static_cast<unsigned long long>(number_of(model.at("jobs").at("submitted"))),
        text_of(model.at("reason")).c_str());
  }
  return out;
}

std::string show_trace(const json::value& trace) {
  std::string out;
  for (const json::value& chip : trace.at("chips").as_array()) {
    const auto number = static_cast<unsigned long long>(number_of(chip.at("chip")));
    const std::string model = text_of(chip.at("model"));
    if (!chip.at("error").is_null()) {
      out += format("chip %llu (%s): no trace: %s\n", number, model.c_str(),
                    text_of(chip.at("error")).c_str());
      continue;
    }
    const ChipSums sums = sum(chip);
    out += format("chip %llu (%s): %llu prefills, %llu decodes, %.1f ms of compute", number,
                  model.c_str(), static_cast<unsigned long long>(sums.prefills),
                  static_cast<unsigned long long>(sums.decodes), sums.compute_ms);
    const std::uint64_t dropped = number_of(chip.at("dropped"));
    if (dropped > 0) {
      out += format("; the oldest %llu intervals were dropped",
                    static_cast<unsigned long long>(dropped));
    }
    out += "\n";
  }
  const json::value& overlap = trace.at("overlap");
  if (!overlap.is_null()) {
    out += format(
        "overlap: both chips computed at the same time for %.3f ms of chip time, "
        "ratio %.3f of the shorter\n",
        static_cast<double>(number_of(overlap.at("both_busy_ns"))) / 1e6,
        overlap.at("ratio").to_number<double>());
  }
  return out;
}

json::value chrome_trace(const json::value& trace) {
  json::array events;
  for (const json::value& chip : trace.at("chips").as_array()) {
    const std::uint64_t process = number_of(chip.at("chip"));
    const std::string title =
        "chip " + std::to_string(process) + " (" + text_of(chip.at("model")) + ")";
    events.push_back(json::object{{"ph", "M"},
                                  {"name", "process_name"},
                                  {"pid", process},
                                  {"args", json::object{{"name", title}}}});
    std::map<std::string, std::uint64_t> threads;
    for (const json::value& event : chip.at("events").as_array()) {
      const std::string kind = text_of(event.at("kind"));
      const auto [thread, added] = threads.emplace(kind, threads.size() + 1);
      if (added) {
        events.push_back(json::object{{"ph", "M"},
                                      {"name", "thread_name"},
                                      {"pid", process},
                                      {"tid", thread->second},
                                      {"args", json::object{{"name", kind}}}});
      }
      const auto begin = static_cast<double>(number_of(event.at("begin_ns"))) / 1e3;
      const auto end = static_cast<double>(number_of(event.at("end_ns"))) / 1e3;
      events.push_back(json::object{{"ph", "X"},
                                    {"name", event.at("graph")},
                                    {"pid", process},
                                    {"tid", thread->second},
                                    {"ts", begin},
                                    {"dur", end - begin},
                                    {"args", json::object{{"job", event.at("job")},
                                                          {"engine", event.at("engine")},
                                                          {"session", event.at("session")}}}});
    }
  }
  return json::object{{"traceEvents", std::move(events)}, {"displayTimeUnit", "ms"}};
}

}   // namespace duet::tools
