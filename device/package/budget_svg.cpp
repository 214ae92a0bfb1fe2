// budget_svg.cpp: draws what takes each chip's DRAM.
#include "device/package/budget.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>

namespace duet::device {
namespace {

constexpr double left = 20;
constexpr double bar_width = 900;
constexpr double bar_height = 60;
constexpr double legend_row = 20;
constexpr double legend_columns = 3;
constexpr double width = left * 2 + bar_width;

/// Distinct for readers who do not see colours alike.
constexpr std::array<std::pair<const char*, const char*>, 9> colours = {{
    {"weights", "#0072b2"},
    {"kv", "#e69f00"},
    {"workspace", "#009e73"},
    {"code", "#cc79a7"},
    {"io", "#56b4e9"},
    {"metadata", "#f0e442"},
    {"fragmentation", "#d55e00"},
    {"guard", "#444444"},
    {"reserved", "#0072b2"},
}};

const char* colour_of(const std::string& what) {
  for (const auto& [name, colour] : colours) {
    if (what == name) return colour;
  }
  return "#999999";
}

/// One decimal of a number, the same in every locale.
std::string fixed(double value) {
  const auto tenths = static_cast<long long>(value * 10 + 0.5);
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10);
}

std::string mebibytes(std::uint64_t bytes) {
  return fixed(static_cast<double>(bytes) / (1U << 20U)) + " MiB";
}

/// Text of lines that a package from elsewhere may name as it likes.
std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else if (c == '&') {
      out += "&amp;";
    } else if (c == '"') {
      out += "&quot;";
    } else {
      out += static_cast<unsigned char>(c) < 0x20 ? '?' : c;
    }
  }
  return out;
}

std::string box(double x, double y, double w, double h, const std::string& style,
                const std::string& title = {}) {
  return "<rect x=\"" + fixed(x) + "\" y=\"" + fixed(y) + "\" width=\"" + fixed(w) +
         "\" height=\"" + fixed(h) + "\" " + style +
         (title.empty() ? "/>\n" : "><title>" + escaped(title) + "</title></rect>\n");
}

std::string text(double x, double y, const std::string& words, const char* style = "") {
  return "<text x=\"" + fixed(x) + "\" y=\"" + fixed(y) + "\" " + style + ">" + escaped(words) +
         "</text>\n";
}

double panel_height(const ChipBudget& budget) {
  const auto rows = static_cast<double>((budget.lines.size() + 2) / 3);
  return 30 + bar_height + 30 + rows * legend_row + 30;
}

/// A vertical line with its share of the DRAM below it.
std::string limit(double x, double y, const char* words) {
  return "<line x1=\"" + fixed(x) + "\" x2=\"" + fixed(x) + "\" y1=\"" + fixed(y - 4) + "\" y2=\"" +
         fixed(y + bar_height + 4) + "\" stroke=\"#000\" stroke-dasharray=\"4 2\"/>\n" +
         text(x, y + bar_height + 16, words, "text-anchor=\"middle\" font-size=\"11\"");
}

std::string panel(const ChipBudget& budget, double top) {
  double sum = 0;   // as a real number, which no lines can make wrap
  for (const MemoryLine& line : budget.lines) sum += static_cast<double>(line.bytes);
  const double scale = bar_width / std::max({static_cast<double>(budget.dram), sum, 1.0});
  const auto place = [&](std::uint64_t bytes) { return static_cast<double>(bytes) * scale; };
  const double y = top + 30;
  std::string out =
      text(left, top + 18, budget_text(budget).substr(0, 110), "font-weight=\"bold\"");
  out += box(left, y, place(budget.dram), bar_height, "fill=\"#fff\" stroke=\"#000\"",
             "DRAM " + mebibytes(budget.dram));
  const std::uint64_t reserve = std::min(budget.reserve, budget.dram);
  out += box(left + place(budget.dram - reserve), y, place(reserve), bar_height,
             "fill=\"#eee\" stroke=\"none\"", "must stay free " + mebibytes(reserve));
  double x = left;
  for (const MemoryLine& line : budget.lines) {
    out += box(x, y, place(line.bytes), bar_height,
               std::string("fill=\"") + colour_of(line.what) + "\"",
               line.what + " " + mebibytes(line.bytes));
    x += place(line.bytes);
  }
  out += limit(left + place(budget.dram) * 0.75, y, "75 %");
  out += limit(left + place(budget.dram) * 0.80, y, "80 %");
  double row = y + bar_height + 40;
  for (std::size_t i = 0; i < budget.lines.size(); ++i) {
    const MemoryLine& line = budget.lines[i];
    const double column = left + static_cast<double>(i % 3) * bar_width / legend_columns;
    out += box(column, row - 10, 12, 12, std::string("fill=\"") + colour_of(line.what) + "\"");
    out += text(column + 18, row, line.what + " " + mebibytes(line.bytes));
    if (i % 3 == 2) row += legend_row;
  }
  return out;
}

}   // namespace

std::string budget_svg(const std::vector<ChipBudget>& budgets) {
  double height = 10;
  for (const ChipBudget& budget : budgets) height += panel_height(budget);
  std::string out = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + fixed(width) +
                    "\" height=\"" + fixed(height) +
                    "\" font-family=\"sans-serif\" font-size=\"13\">\n<rect width=\"100%\" "
                    "height=\"100%\" fill=\"#fff\"/>\n";
  double top = 5;
  for (const ChipBudget& budget : budgets) {
    out += panel(budget, top);
    top += panel_height(budget);
  }
  return out + "</svg>\n";
}

}   // namespace duet::device
