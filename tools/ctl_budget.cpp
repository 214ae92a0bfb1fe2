// ctl_budget.cpp: compares what a board holds with what was planned, and shows both.
#include "tools/ctl_budget.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include <algorithm>
#include <array>
#include <cstdio>
#include <optional>
#include <stdexcept>

namespace duet::tools {

namespace {

namespace json = boost::json;

/// More than any chip has, so that neither differences nor percents overflow.
constexpr std::uint64_t number_max = std::uint64_t{1} << 50U;

std::optional<std::uint64_t> number_of(const json::value& value) {
  if (value.is_null()) return std::nullopt;
  const auto number = value.to_number<std::uint64_t>();
  if (number > number_max) throw std::out_of_range("a number beyond any chip's memory");
  return number;
}

bool mark_pair(json::object& pair, unsigned bound_percent) {
  const std::uint64_t planned = number_of(pair.at("planned")).value();
  const auto measured = number_of(pair.at("measured"));
  const json::value* const peak = pair.if_contains("peak");
  const auto in_use = peak == nullptr ? std::nullopt : number_of(*peak);
  bool marked = in_use && *in_use > planned;
  pair["difference"] = nullptr;
  if (measured) {
    const std::uint64_t distance = std::max(*measured, planned) - std::min(*measured, planned);
    marked = marked || distance * 100 > planned * bound_percent;
    pair["difference"] = static_cast<std::int64_t>(*measured) - static_cast<std::int64_t>(planned);
  }
  pair["marked"] = marked;
  return marked;
}

/// "12.34 MiB", or what stands for a value that there is not.
std::string mib(const std::optional<std::uint64_t>& bytes) {
  if (!bytes) return "not measured";
  std::array<char, 48> text{};
  std::snprintf(text.data(), text.size(), "%.2f MiB",
                static_cast<double>(*bytes) / static_cast<double>(1U << 20U));
  return text.data();
}

std::string count(const std::optional<std::uint64_t>& number) {
  return number ? std::to_string(*number) : "not measured";
}

using Print = std::string (*)(const std::optional<std::uint64_t>&);

std::string row(const std::string& what, const json::object& pair, Print print) {
  const json::value& difference = pair.at("difference");
  const json::value* const peak = pair.if_contains("peak");
  std::string away = "-";
  if (!difference.is_null()) {
    const auto bytes = difference.to_number<std::int64_t>();
    away = bytes == 0 ? "none" : (bytes > 0 ? "+" : "") + std::to_string(bytes);
  }
  std::array<char, 256> text{};
  std::snprintf(text.data(), text.size(), "%c %-16.32s %14s %14s %12s %14s\n",
                pair.at("marked").as_bool() ? '*' : ' ', what.c_str(),
                print(number_of(pair.at("planned"))).c_str(),
                print(number_of(pair.at("measured"))).c_str(), away.c_str(),
                peak == nullptr ? "-" : print(number_of(*peak)).c_str());
  return text.data();
}

std::string show_chip(const json::object& chip) {
  std::string out = "chip " + std::to_string(number_of(chip.at("chip")).value()) + " (" +
                    std::string(chip.at("model").as_string()) +
                    "): " + std::string(chip.at("verdict").as_string());
  const json::string& reason = chip.at("reason").as_string();
  if (!reason.empty()) out += ": " + std::string(reason);
  out += ", context " + std::to_string(number_of(chip.at("context")).value()) + "\n";
  if (!chip.at("error").is_null()) {
    out += "  nothing could be measured: " + std::string(chip.at("error").as_string()) + "\n";
  }
  std::array<char, 256> head{};
  std::snprintf(head.data(), head.size(), "  %-16s %14s %14s %12s %14s\n", "line", "planned",
                "measured", "difference", "most in use");
  out += head.data();
  for (const json::value& line : chip.at("lines").as_array()) {
    out += row(std::string(line.at("what").as_string()), line.as_object(), mib);
  }
  const json::object& slots = chip.at("kv_slots").as_object();
  out += row("used, no gaps", chip.at("used").as_object(), mib) +
         row("DRAM", chip.at("dram").as_object(), mib) + row("kv slots", slots, count);
  out += "  kv slots in use: " + count(number_of(slots.at("used"))) + " by the board, " +
         count(number_of(slots.at("booked"))) + " by the server's books\n";
  return out;
}

}   // namespace

std::uint64_t mark_budget(json::value& memory, unsigned bound_percent) {
  std::uint64_t marks = 0;
  json::object& whole = memory.as_object();
  for (json::value& each : whole.at("chips").as_array()) {
    json::object& chip = each.as_object();
    for (json::value& line : chip.at("lines").as_array()) {
      marks += mark_pair(line.as_object(), bound_percent) ? 1 : 0;
    }
    for (const char* name : {"used", "dram", "kv_slots"}) {
      marks += mark_pair(chip.at(name).as_object(), bound_percent) ? 1 : 0;
    }
  }
  whole["bound_percent"] = bound_percent;
  whole["marked"] = marks;
  return marks;
}

std::string show_budget(const json::value& memory) {
  std::string out;
  for (const json::value& chip : memory.at("chips").as_array()) out += show_chip(chip.as_object());
  const json::object& host = memory.at("host").as_object();
  out += "host: " + mib(number_of(host.at("resident"))) + " resident, " +
         mib(number_of(host.at("resident_peak"))) + " at most\n";
  const std::uint64_t marks = number_of(memory.at("marked")).value();
  const std::string bound = std::to_string(number_of(memory.at("bound_percent")).value());
  out += marks == 0 ? "nothing that was measured is more than " + bound + " % beside the plan\n"
                    : std::to_string(marks) + " marked (*): more than " + bound +
                          " % beside the plan, or more in use than planned\n";
  return out;
}

}   // namespace duet::tools
