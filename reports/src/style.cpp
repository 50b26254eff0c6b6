#include "style.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace kvwitness::reports {
namespace {

std::string_view code_of(Color color) noexcept {
  switch (color) {
    case Color::plain: return "";
    case Color::bold: return "\x1b[1m";
    case Color::dim: return "\x1b[2m";
    case Color::red: return "\x1b[31m";
    case Color::green: return "\x1b[32m";
    case Color::yellow: return "\x1b[33m";
  }
  return "";
}

}  // namespace

std::string Style::paint(Color color, std::string_view text) const {
  if (!color_ || color == Color::plain || text.empty()) return std::string(text);
  return fmt::format("{}{}\x1b[0m", code_of(color), text);
}

std::string Style::status(verify::Status status) const {
  return paint(color_of(status), verify::to_text(status));
}

Color color_of(verify::Status status) noexcept {
  switch (status) {
    case verify::Status::pass: return Color::green;
    case verify::Status::skipped: return Color::dim;
    case verify::Status::inconclusive:
    case verify::Status::vacuous: return Color::yellow;
    case verify::Status::fail: return Color::red;
  }
  return Color::plain;
}

std::string Table::render(const Style& style, std::string_view indent) const {
  std::vector<std::size_t> widths;
  for (const std::vector<Cell>& row : rows_) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].text.size());
  }
  std::string out;
  for (const std::vector<Cell>& row : rows_) {
    std::string line(indent);
    const auto filled =
        std::ranges::find_if(row.rbegin(), row.rend(), [](const Cell& cell) { return !cell.text.empty(); });
    const auto cells = static_cast<std::size_t>(std::distance(filled, row.rend()));
    for (std::size_t i = 0; i < cells; ++i) {
      const std::string padding(widths[i] - row[i].text.size(), ' ');
      if (row[i].right) line += padding;
      line += style.paint(row[i].color, row[i].text);
      if (i + 1 < cells) line += (row[i].right ? "" : padding) + "  ";
    }
    out += line + "\n";
  }
  return out;
}

std::string grouped(std::uint64_t value) {
  std::string digits = std::to_string(value);
  for (std::size_t at = digits.size(); at > 3;) digits.insert(at -= 3, 1, ',');
  return digits;
}

std::string counted(std::uint64_t count, std::string_view singular) {
  return fmt::format("{} {}{}", grouped(count), singular, count == 1 ? "" : "s");
}

std::string printable(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) {
      out += fmt::format("\\x{:02x}", byte);
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace kvwitness::reports
