#include "kvwitness/trace/checked_json.hpp"

#include <algorithm>

namespace kvwitness::trace {

Location place_in(std::string_view text, std::string file, std::size_t offset) {
  const std::string_view before = text.substr(0, offset);
  const std::size_t line_end = before.rfind('\n');
  const std::size_t line_begin = line_end == std::string_view::npos ? 0 : line_end + 1;
  const auto lines = static_cast<std::uint64_t>(std::ranges::count(before, '\n'));
  return {std::move(file), lines + 1, before.size() - line_begin + 1, {}};
}

std::string json_fault(std::string_view what) {
  // "...while parsing array - unexpected ..." of JSON, "...while parsing MessagePack value: unexpected ..." of msgpack.
  if (const std::size_t at = what.find(" - "); at != std::string_view::npos) return std::string(what.substr(at + 3));
  const std::size_t form = what.find("MessagePack ");
  const std::size_t at = form == std::string_view::npos ? form : what.find(": ", form);
  return at == std::string_view::npos ? "a value is not as it must be" : std::string(what.substr(at + 2));
}

std::size_t begin_of_key(std::string_view read) noexcept {
  for (std::size_t quote = read.size(); quote-- > 1;) {
    // The closing one is passed; of the others, those behind an odd number of backslashes are the key's own.
    if (quote + 1 == read.size() || read[quote] != '"') continue;
    const std::size_t before = read.find_last_not_of('\\', quote - 1);
    const std::size_t backslashes = before == std::string_view::npos ? quote : quote - 1 - before;
    if (backslashes % 2 == 0) return quote;
  }
  return 0;
}

std::size_t begin_of_number(std::string_view read) noexcept {
  constexpr std::string_view kOfNumbers = "+-.0123456789Ee";
  const std::size_t end = read.find_last_of(kOfNumbers);
  if (end == std::string_view::npos) return 0;
  const std::size_t before = read.find_last_not_of(kOfNumbers, end);
  return before == std::string_view::npos ? 0 : before + 1;
}

}  // namespace kvwitness::trace
