/// Colours and columns of what is printed for people.
#pragma once

#include "kvwitness/verify/verdict.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace kvwitness::reports {

enum class Color { plain, bold, dim, red, green, yellow };

class Style {
 public:
  explicit Style(bool color) : color_(color) {}
  [[nodiscard]] std::string paint(Color color, std::string_view text) const;
  [[nodiscard]] std::string status(verify::Status status) const;

 private:
  bool color_;
};

/// Columns as wide as their widest cell; colour is added after the padding, so that it takes no width.
class Table {
 public:
  struct Cell {
    std::string text;
    Color color = Color::plain;
    bool right = false;
  };
  void row(std::vector<Cell> cells) { rows_.push_back(std::move(cells)); }
  [[nodiscard]] std::string render(const Style& style, std::string_view indent = "") const;

 private:
  std::vector<std::vector<Cell>> rows_;
};

[[nodiscard]] Color color_of(verify::Status status) noexcept;

/// 1234567 as "1,234,567".
[[nodiscard]] std::string grouped(std::uint64_t value);
/// "1 case", "2 cases".
[[nodiscard]] std::string counted(std::uint64_t count, std::string_view singular);
/// Text as one printable line: control characters as \xNN, so that a trace cannot steer a terminal.
[[nodiscard]] std::string printable(std::string_view text);

}  // namespace kvwitness::reports
