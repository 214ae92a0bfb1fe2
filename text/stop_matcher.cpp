// stop_matcher.cpp: ends a stream of text at the first stop string, across any borders.
#include "text/stop_matcher.hpp"

#include "runtime/assert.hpp"
#include "text/limits.hpp"
#include "text/utf8.hpp"

#include <algorithm>

namespace duet::text {
namespace {

static_assert(limits::stop_bytes_max <= UINT16_MAX);

Error invalid(std::size_t index, std::string_view what) {
  return {errc::parameter_invalid,
          "stop string " + std::to_string(index) + " " + std::string{what}};
}

std::vector<std::uint16_t> make_fallback(std::string_view text) {
  std::vector<std::uint16_t> fallback(text.size() + 1, 0);
  std::uint16_t border = 0;
  for (std::size_t at = 1; at < text.size(); ++at) {
    while (border > 0 && text[at] != text[border]) border = fallback[border];
    if (text[at] == text[border]) ++border;
    fallback[at + 1] = border;
  }
  return fallback;
}

}   // namespace

Result<StopMatcher> StopMatcher::create(std::vector<std::string> stops) {
  if (stops.size() > limits::stops_max) {
    return Error{errc::parameter_invalid, "there are " + std::to_string(stops.size()) +
                                              " stop strings, more than " +
                                              std::to_string(limits::stops_max)};
  }
  StopMatcher matcher;
  std::size_t longest = 0;
  for (std::size_t index = 0; index < stops.size(); ++index) {
    std::string& stop = stops[index];
    if (stop.empty()) return invalid(index, "is empty");
    if (stop.size() > limits::stop_bytes_max) {
      return invalid(index, "has " + std::to_string(stop.size()) + " bytes, more than " +
                                std::to_string(limits::stop_bytes_max));
    }
    if (utf8_valid_prefix(stop) != stop.size()) return invalid(index, "is not UTF-8");
    longest = std::max(longest, stop.size());
    auto fallback = make_fallback(stop);
    matcher.stops_.push_back({std::move(stop), std::move(fallback), 0});
  }
  matcher.held_.reserve(longest);
  return matcher;
}

bool StopMatcher::push(std::string_view text, std::string& out) {
  if (matched_) return true;
  if (stops_.empty()) {
    out.append(text);
    return false;
  }
  for (const char byte : text) {
    std::size_t held = 0;        // bytes that some stop still needs, with this one
    std::size_t completed = 0;   // length of the longest stop that ends here
    for (std::size_t index = 0; index < stops_.size(); ++index) {
      auto& [stop, fallback, state] = stops_[index];
      while (state > 0 && byte != stop[state]) state = fallback[state];
      if (byte == stop[state]) ++state;
      held = std::max<std::size_t>(held, state);
      if (state < stop.size()) continue;
      if (stop.size() > completed) matched_ = index;
      completed = std::max(completed, stop.size());
    }
    held_.push_back(byte);
    if (completed > 0) {
      DUET_ASSERT(held_.size() >= completed, held_.size(), completed);
      // What is held before the stop belongs to a longer one that did not come to its end.
      out.append(held_, 0, held_.size() - completed);
      held_.clear();
      return true;
    }
    DUET_ASSERT(held_.size() >= held, held_.size(), held);
    const std::size_t free = held_.size() - held;
    out.append(held_, 0, free);
    held_.erase(0, free);
  }
  return false;
}

void StopMatcher::flush(std::string& out) {
  out.append(held_);
  held_.clear();
  for (auto& stop : stops_) stop.state = 0;
}

}   // namespace duet::text
