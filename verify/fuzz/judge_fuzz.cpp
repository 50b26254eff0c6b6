#include "entry.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <string_view>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  kvwitness::verify::fuzz_judge({reinterpret_cast<const char*>(data), size});
  return 0;
}

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

namespace {

using Draw = std::minstd_rand;

std::size_t below(Draw& draw, std::size_t end) {
  return std::uniform_int_distribution<std::size_t>(0, end - 1)(draw);
}

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// Puts another number where one stands: a neighbour, an end of a range, or one of another line.
void change_number(Draw& draw, std::string& line, const std::string& other) {
  const auto number_at = [&](const std::string& text) {
    std::size_t from = text.empty() ? 0 : below(draw, text.size());
    while (from < text.size() && !is_digit(text[from])) ++from;
    std::size_t to = from;
    while (to < text.size() && is_digit(text[to])) ++to;
    return std::pair(from, to - from);
  };
  const auto [at, count] = number_at(line);
  if (count == 0 || count > 18) return;
  const std::uint64_t value = std::stoull(line.substr(at, count));
  const auto [other_at, other_count] = number_at(other);
  const std::string choices[] = {
      std::to_string(value + 1),          std::to_string(value == 0 ? 1 : value - 1), "0", "1", "4294967295",
      other.substr(other_at, other_count)};
  const std::string& chosen = choices[below(draw, std::size(choices))];
  if (!chosen.empty()) line.replace(at, count, chosen);
}

void mutate_lines(Draw& draw, std::vector<std::string>& lines) {
  if (lines.size() < 3) return;
  const auto any = [&] { return 1 + below(draw, lines.size() - 1); };  // the header stays
  const auto at = [&](std::size_t i) { return lines.begin() + static_cast<std::ptrdiff_t>(i); };
  const std::size_t i = any();
  switch (below(draw, 5)) {
    case 0: lines.erase(at(i)); return;
    case 1: lines.insert(at(any()), std::string(lines[i])); return;
    case 2: std::swap(lines[i], lines[any()]); return;
    default: change_number(draw, lines[i], lines[any()]); return;
  }
}

}  // namespace

/// Mostly whole lines and numbers in them: what is no trace any more never reaches the judge.
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
  Draw draw(seed);
  if (below(draw, 10) == 0) return LLVMFuzzerMutate(data, size, max_size);
  std::vector<std::string> lines = lines_of({reinterpret_cast<const char*>(data), size});
  for (std::size_t changes = 1 + below(draw, 3); changes > 0; --changes) mutate_lines(draw, lines);
  std::string text;
  for (const std::string& line : lines) (text += line) += '\n';
  const std::size_t kept = std::min(text.size(), max_size);
  std::memcpy(data, text.data(), kept);
  return kept;
}
