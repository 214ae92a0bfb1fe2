// templated_text.hpp: text whose bytes know whether a template or a client wrote them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace duet::text {

/// content: came from a client; markup: the chat template's own text, where special tokens count.
enum class Origin : std::uint8_t { content, markup };

/// A string and the origin of each of its bytes, kept as runs. A value type; not thread-safe.
class TemplatedText {
 public:
  struct Run {
    std::size_t end;   ///< Offset behind the run's last byte.
    Origin origin;
    friend bool operator==(const Run&, const Run&) = default;
  };

  TemplatedText() = default;
  TemplatedText(std::string_view text, Origin origin) { append(text, origin); }

  void append(std::string_view text, Origin origin);
  /// Appends bytes [begin, end) of `other` with their origins; begin <= end <= other.size();
  /// `other` is another object.
  void append(const TemplatedText& other, std::size_t begin, std::size_t end);
  void append(const TemplatedText& other) { append(other, 0, other.size()); }
  [[nodiscard]] TemplatedText slice(std::size_t begin, std::size_t end) const;
  void clear() noexcept;

  [[nodiscard]] const std::string& text() const noexcept { return text_; }
  [[nodiscard]] std::size_t size() const noexcept { return text_.size(); }
  [[nodiscard]] bool empty() const noexcept { return text_.empty(); }
  /// In order; adjacent runs differ in origin; none is empty; the last one ends at size().
  [[nodiscard]] const std::vector<Run>& runs() const noexcept { return runs_; }
  /// `at` < size().
  [[nodiscard]] Origin origin_at(std::size_t at) const;
  /// The bytes may be changed in place, one for one, as by upper(); origins stay.
  [[nodiscard]] std::string& mutable_text() noexcept { return text_; }

 private:
  [[nodiscard]] std::size_t run_at(std::size_t at) const;

  std::string text_;
  std::vector<Run> runs_;
};

}   // namespace duet::text
