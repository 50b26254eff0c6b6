/// Values of plain JSON as writers of traces put them: digits, hex digests, short texts. Private to the JSONL reader.
///
/// Each `take_` moves `at` behind the token and is false where the token has any other form, whether that is legal JSON
/// or not: the careful reader (event_decoder.hpp) decides then, and finds the words for what is wrong.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <system_error>

namespace kvwitness::trace {

/// The part of a line that is still to be read.
struct Remaining {
  const char* at;
  const char* end;

  [[nodiscard]] std::size_t size() const noexcept { return static_cast<std::size_t>(end - at); }
  [[nodiscard]] bool starts_with(char c) const noexcept { return at != end && *at == c; }
};

[[nodiscard]] inline std::uint64_t eight_bytes(const char* at) noexcept {
  std::uint64_t word = 0;
  std::memcpy(&word, at, sizeof word);
  return word;
}

/// Takes exactly `text`.
[[nodiscard]] inline bool take_text(Remaining& in, std::string_view text) noexcept {
  if (in.size() < text.size() || std::memcmp(in.at, text.data(), text.size()) != 0) return false;
  in.at += text.size();
  return true;
}

/// Bytes that are looked for again and again. They are short, so that a call of memcmp would be most of the work.
class Literal {
 public:
  Literal() = default;
  explicit Literal(std::string_view text) : text_(text) {
    std::memcpy(&head_, text.data(), std::min(text.size(), sizeof head_));
    mask_ = text.size() >= sizeof head_ ? ~0ULL : (1ULL << (8U * text.size())) - 1;
  }

  /// Takes exactly the text.
  [[nodiscard]] bool take(Remaining& in) const noexcept {
    const std::size_t size = text_.size();
    if (in.size() < std::max(size, sizeof head_)) return take_text(in, text_);
    if ((eight_bytes(in.at) & mask_) != head_) return false;
    if (size > sizeof head_ && !has_rest(in.at)) return false;
    in.at += size;
    return true;
  }
  friend bool operator==(const Literal& a, const Literal& b) noexcept { return a.text_ == b.text_; }

 private:
  /// What follows the head; the last eight bytes overlap with those before them.
  [[nodiscard]] bool has_rest(const char* at) const noexcept {
    const std::size_t last = text_.size() - sizeof head_;
    for (std::size_t i = sizeof head_; i < last; i += sizeof head_) {
      if (eight_bytes(at + i) != eight_bytes(text_.data() + i)) return false;
    }
    return eight_bytes(at + last) == eight_bytes(text_.data() + last);
  }

  std::string text_;
  std::uint64_t head_ = 0;  ///< the first eight bytes, little-endian, or fewer and zeros
  std::uint64_t mask_ = 0;  ///< of the bytes that there are
};

[[nodiscard]] constexpr bool is_decimal_digit(char c) noexcept {
  return c >= '0' && c <= '9';
}

/// A number of digits only, at most `most`.
[[nodiscard]] inline bool take_unsigned(Remaining& in, std::uint64_t most, std::uint64_t& value) noexcept {
  constexpr std::ptrdiff_t kSafeDigits = 19;  // any number of so many digits fits into 64 bits
  const char* at = in.at;
  std::uint64_t number = 0;
  while (at != in.end && is_decimal_digit(*at)) number = 10 * number + static_cast<std::uint64_t>(*at++ - '0');
  const std::ptrdiff_t digits = at - in.at;
  if (digits == 0 || (digits > 1 && *in.at == '0')) return false;
  if (digits > kSafeDigits && std::from_chars(in.at, at, number).ec != std::errc()) return false;
  if (number > most) return false;
  value = number;
  in.at = at;
  return true;
}

/// Eight lower-case hex digits as a number; false where one of the bytes is something else.
[[nodiscard]] inline bool eight_hex_digits(const char* at, std::uint64_t& value) noexcept {
  constexpr std::uint64_t kOnes = 0x0101010101010101ULL;
  constexpr std::uint64_t kTops = 0x80 * kOnes;
  const std::uint64_t text = eight_bytes(at);
  // Per byte, the top bit of `x + (0x80 - low)` is set iff x >= low, as long as all bytes are ASCII.
  const auto at_least = [](std::uint64_t x, unsigned low) { return (x + (0x80 - low) * kOnes) & kTops; };
  const std::uint64_t digits = at_least(text, '0') & ~at_least(text, '9' + 1);
  const std::uint64_t letters = at_least(text, 'a') & ~at_least(text, 'f' + 1);
  if ((text & kTops) != 0 || (digits | letters) != kTops) return false;
  std::uint64_t nibbles = (text & 0x0f * kOnes) + (letters >> 7U) * 9;
  // The first digit is the lowest byte: fold neighbours, most significant first.
  nibbles = (nibbles << 4U | nibbles >> 8U) & 0x00ff00ff00ff00ffULL;
  nibbles = (nibbles << 8U | nibbles >> 16U) & 0x0000ffff0000ffffULL;
  value = (nibbles << 16U | nibbles >> 32U) & 0xffffffffULL;
  return true;
}

/// `"0x` and 16 lower-case hex digits `"`.
[[nodiscard]] inline bool take_digest(Remaining& in, std::uint64_t& value) noexcept {
  constexpr std::size_t kBytes = 20;
  if (in.size() < kBytes || std::memcmp(in.at, "\"0x", 3) != 0 || in.at[kBytes - 1] != '"') return false;
  std::uint64_t high = 0;
  std::uint64_t low = 0;
  if (!eight_hex_digits(in.at + 3, high) || !eight_hex_digits(in.at + 11, low)) return false;
  value = high << 32U | low;
  in.at += kBytes;
  return true;
}

/// A text of ASCII without escapes or control characters, without its quotes.
[[nodiscard]] inline bool take_plain_text(Remaining& in, std::string_view& text) noexcept {
  if (!in.starts_with('"')) return false;
  const char* at = in.at + 1;
  while (at != in.end && *at != '"' && *at != '\\' && *at >= 0x20) ++at;
  if (at == in.end || *at != '"') return false;
  text = {in.at + 1, static_cast<std::size_t>(at - in.at - 1)};
  in.at = at + 1;
  return true;
}

/// The end of the number that `in` starts with (RFC 8259, section 6); null where it starts with none.
[[nodiscard]] inline const char* number_end(const Remaining& in) noexcept {
  const char* at = in.at;
  const auto take_digits = [&at, &in] {
    const char* const start = at;
    while (at != in.end && is_decimal_digit(*at)) ++at;
    return at != start;
  };
  const auto take_one = [&at, &in](char c) {
    if (at == in.end || *at != c) return false;
    ++at;
    return true;
  };
  (void)take_one('-');
  if (!take_one('0') && !take_digits()) return nullptr;
  if (take_one('.') && !take_digits()) return nullptr;
  if (take_one('e') || take_one('E')) {
    if (!take_one('+')) (void)take_one('-');
    if (!take_digits()) return nullptr;
  }
  return at;
}

/// A number, rounded to the nearest value of its type; false where that overflows or underflows.
template <class Float>
[[nodiscard]] bool take_float(Remaining& in, Float& value) noexcept {
  const char* const end = number_end(in);
  if (end == nullptr || std::from_chars(in.at, end, value).ec != std::errc()) return false;
  in.at = end;
  return true;
}

}  // namespace kvwitness::trace
