// templated_text.cpp: text whose bytes know whether a template or a client wrote them.
#include "text/templated_text.hpp"

#include "runtime/assert.hpp"

#include <algorithm>

namespace duet::text {

void TemplatedText::append(std::string_view text, Origin origin) {
  if (text.empty()) return;
  text_.append(text);
  if (!runs_.empty() && runs_.back().origin == origin) {
    runs_.back().end = text_.size();
  } else {
    runs_.push_back({text_.size(), origin});
  }
}

void TemplatedText::append(const TemplatedText& other, std::size_t begin, std::size_t end) {
  DUET_ASSERT(begin <= end && end <= other.size(), begin, end, other.size());
  DUET_ASSERT(&other != this);
  if (begin == end) return;
  const std::string_view text = other.text_;
  for (std::size_t run = other.run_at(begin); begin < end; ++run) {
    const std::size_t stop = std::min(end, other.runs_[run].end);
    append(text.substr(begin, stop - begin), other.runs_[run].origin);
    begin = stop;
  }
}

TemplatedText TemplatedText::slice(std::size_t begin, std::size_t end) const {
  TemplatedText part;
  part.append(*this, begin, end);
  return part;
}

void TemplatedText::clear() noexcept {
  text_.clear();
  runs_.clear();
}

Origin TemplatedText::origin_at(std::size_t at) const {
  return runs_[run_at(at)].origin;
}

std::size_t TemplatedText::run_at(std::size_t at) const {
  DUET_ASSERT(at < text_.size(), at, text_.size());
  const auto run = std::partition_point(runs_.begin(), runs_.end(),
                                        [at](const Run& candidate) { return candidate.end <= at; });
  return static_cast<std::size_t>(run - runs_.begin());
}

}   // namespace duet::text
