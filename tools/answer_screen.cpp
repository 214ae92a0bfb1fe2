// answer_screen.cpp: columns on a terminal, lines in a pipe.
#include "tools/answer_screen.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

namespace duet::tools {

namespace {

constexpr std::size_t line_width = 72;
constexpr const char* gap = " | ";
constexpr std::size_t gap_width = 3;

bool continues(char byte) {
  return (static_cast<unsigned char>(byte) & 0xc0U) == 0x80U;
}

std::size_t columns_of(const std::string& text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char byte) { return !continues(byte); }));
}

void wrap_line(const std::string& line, std::size_t width, std::vector<std::string>& lines) {
  std::string current;
  std::size_t current_columns = 0;
  std::size_t blank = std::string::npos;   // where `current` may be cut
  for (std::size_t i = 0; i < line.size();) {
    std::size_t next = i + 1;
    while (next < line.size() && continues(line[next])) ++next;
    if (current_columns == width) {
      std::string rest;
      if (line[i] != ' ' && blank != std::string::npos) {
        rest = current.substr(blank + 1);
        current.resize(blank);
      }
      lines.push_back(std::exchange(current, rest));
      current_columns = columns_of(current);
      blank = std::string::npos;
      if (line[i] == ' ' && current.empty()) {
        i = next;
        continue;
      }
    }
    if (line[i] == ' ') blank = current.size();
    current.append(line, i, next - i);
    ++current_columns;
    i = next;
  }
  lines.push_back(current);
}

}   // namespace

std::vector<std::string> wrap(const std::string& text, std::size_t width) {
  std::vector<std::string> lines;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    wrap_line(text.substr(begin, end - begin), std::max<std::size_t>(width, 1), lines);
    begin = end + 1;
  }
  return lines;
}

std::string printable(const std::string& text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto at = [&](std::size_t k) {
      return k < text.size() ? static_cast<unsigned char>(text[k]) : 0U;
    };
    // C1 controls (U+0080 to U+009F), which terminals obey as well.
    const bool c1 = at(i) == 0xc2 && at(i + 1) >= 0x80 && at(i + 1) <= 0x9f;
    // What turns the direction of writing: U+200E, U+200F, U+202A to U+202E, U+2066 to U+2069.
    const bool e280 = at(i) == 0xe2 && at(i + 1) == 0x80;
    const bool e281 = at(i) == 0xe2 && at(i + 1) == 0x81;
    const bool turn = (e280 && (at(i + 2) == 0x8e || at(i + 2) == 0x8f)) ||
                      (e280 && at(i + 2) >= 0xaa && at(i + 2) <= 0xae) ||
                      (e281 && at(i + 2) >= 0xa6 && at(i + 2) <= 0xa9);
    const bool c0 = (at(i) < 0x20 && text[i] != '\n') || at(i) == 0x7f;
    if (c0 || c1 || turn) {
      out += ' ';
      i += turn ? 2 : c1 ? 1 : 0;
    } else {
      out += text[i];
    }
  }
  return out;
}

std::size_t terminal_columns() {
  constexpr unsigned short columns_min = 40;
  winsize size{};
  if (::isatty(STDOUT_FILENO) == 0) return 0;
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col < columns_min) return 0;
  return size.ws_col;
}

AnswerScreen::AnswerScreen(std::vector<std::string> titles, std::size_t columns)
    : columns_(columns) {
  for (std::string& title : titles) answers_.push_back({std::move(title), "", 0});
}

void AnswerScreen::append(std::size_t index, const std::string& text) {
  const std::lock_guard lock(mutex_);
  Answer& answer = answers_.at(index);
  answer.text += printable(text);
  if (columns_ > 0) {
    redraw();
  } else {
    print_lines(answer, false);
  }
}

void AnswerScreen::finish(std::size_t index) {
  const std::lock_guard lock(mutex_);
  if (columns_ == 0) print_lines(answers_.at(index), true);
}

void AnswerScreen::print_lines(Answer& answer, bool all) {
  const std::string open = answer.text.substr(answer.printed);
  std::vector<std::string> lines = wrap(open, line_width);
  const std::size_t complete = all ? lines.size() : lines.size() - 1;
  for (std::size_t i = 0; i < complete; ++i) {
    if (all && i + 1 == lines.size() && lines[i].empty()) break;
    std::printf("%-10s| %s\n", answer.title.c_str(), lines[i].c_str());
  }
  std::fflush(stdout);
  // What is left is the tail of the text, after the blank or line break at which it was cut.
  answer.printed = all ? answer.text.size() : answer.text.size() - lines.back().size();
}

void AnswerScreen::redraw() {
  const std::size_t count = answers_.size();
  const std::size_t width =
      std::max<std::size_t>(10, (columns_ - 1 - gap_width * (count - 1)) / count);
  std::vector<std::vector<std::string>> blocks;
  std::size_t height = 0;
  for (const Answer& answer : answers_) {
    std::vector<std::string> block{answer.title};
    for (std::string& line : wrap(answer.text, width)) block.push_back(std::move(line));
    height = std::max(height, block.size());
    blocks.push_back(std::move(block));
  }
  std::string out;
  if (lines_drawn_ > 0) out += "\x1b[" + std::to_string(lines_drawn_) + "A";
  for (std::size_t row = 0; row < height; ++row) {
    out += "\r\x1b[K";
    for (std::size_t i = 0; i < count; ++i) {
      const std::string cell = row < blocks[i].size() ? blocks[i][row] : "";
      out += cell;
      if (i + 1 < count) out += std::string(width - std::min(width, columns_of(cell)), ' ') + gap;
    }
    out += "\n";
  }
  lines_drawn_ = height;
  std::fputs(out.c_str(), stdout);
  std::fflush(stdout);
}

}   // namespace duet::tools
