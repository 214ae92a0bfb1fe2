// answer_screen.hpp: shows several answers while they grow: side by side on a terminal, in prefixed
// lines elsewhere.
#pragma once

#include <cstddef>
#include <mutex>
#include <string>
#include <vector>

namespace duet::tools {

/// Cuts text into lines of at most `width` columns, at blanks where there are any. UTF-8 sequences
/// are kept whole and count as one column.
[[nodiscard]] std::vector<std::string> wrap(const std::string& text, std::size_t width);

/// Control characters are shown as blanks, line breaks are kept: what a model says must not steer a
/// terminal.
[[nodiscard]] std::string printable(const std::string& text);

/// Of standard output: for AnswerScreen. 0: no terminal, or one too narrow to show two answers.
[[nodiscard]] std::size_t terminal_columns();

class AnswerScreen {
 public:
  /// `columns` > 0: redraws blocks side by side for a terminal of that width; 0: prints "title|
  /// text" in whole lines, each when it is complete.
  AnswerScreen(std::vector<std::string> titles, std::size_t columns);

  /// Any thread.
  void append(std::size_t index, const std::string& text);
  void finish(std::size_t index);

 private:
  struct Answer {
    std::string title;
    std::string text;
    std::size_t printed = 0;   // bytes of `text`, in lines mode
  };
  void redraw();
  void print_lines(Answer& answer, bool all);

  std::mutex mutex_;
  std::vector<Answer> answers_;
  const std::size_t columns_;
  std::size_t lines_drawn_ = 0;
};

}   // namespace duet::tools
