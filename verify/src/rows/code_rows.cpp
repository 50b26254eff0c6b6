#include "rows/code_rows.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace kvwitness::verify {
namespace {

using trace::DType;

constexpr std::size_t kBlock = 32;
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kUnit = 0x1p-24;  // rounding unit of f32

/// A format of `fraction` bits behind the point and exponents from `least` to `most`, by its definition: the value is
/// rounded to a whole number of its last places.
std::uint16_t to_half(float value, int fraction, int least, int most) noexcept {
  const std::uint32_t sign = std::bit_cast<std::uint32_t>(value) >> 31;
  const double magnitude = std::abs(static_cast<double>(value));
  const std::uint32_t infinity = static_cast<std::uint32_t>(most - least + 2) << fraction;
  int exponent = magnitude == 0 ? least : std::max(least, std::ilogb(magnitude));
  // nearbyint: to nearest, halves to even. A carry makes the next exponent.
  const auto places = static_cast<std::uint32_t>(std::nearbyint(std::ldexp(magnitude, fraction - exponent)));
  const std::uint32_t bits = (static_cast<std::uint32_t>(exponent - least) << fraction) + places;
  return static_cast<std::uint16_t>(sign << 15 | std::min(bits, infinity));
}

std::uint16_t to_f16(float value) noexcept {
  return to_half(value, 10, -14, 15);
}
std::uint16_t to_bf16(float value) noexcept {
  return to_half(value, 7, -126, 127);
}

void put(std::uint64_t value, std::size_t count, std::vector<std::byte>& bytes) {
  for (std::size_t i = 0; i < count; ++i) bytes.push_back(static_cast<std::byte>(value >> (8 * i)));
}

/// First value of the largest magnitude.
float extreme(std::span<const float> block) noexcept {
  return *std::ranges::max_element(block, {}, [](float x) { return std::abs(x); });
}

/// 0 where the block's scale is 0 as f16 whatever the codes are.
float inverse(float d) noexcept {
  return d == 0 || std::isinf(1.0F / d) ? 0.0F : 1.0F / d;
}

void append_q8_0(std::span<const float> block, std::vector<std::byte>& bytes) {
  const float d = std::abs(extreme(block)) / 127.0F;
  put(to_f16(d), 2, bytes);
  for (const float x : block) bytes.push_back(static_cast<std::byte>(std::lround(x * inverse(d)) & 0xff));
}

void append_q4_0(std::span<const float> block, std::vector<std::byte>& bytes) {
  const float d = extreme(block) / -8.0F;
  const auto code = [&](float x) { return std::min(15L, static_cast<long>(std::trunc(x * inverse(d) + 8.5F))); };
  put(to_f16(d), 2, bytes);
  for (std::size_t j = 0; j < kBlock / 2; ++j)
    bytes.push_back(static_cast<std::byte>(code(block[j]) + 16 * code(block[j + kBlock / 2])));
}

bool flips(std::uint64_t seed, std::uint64_t element) noexcept {
  std::uint64_t z = seed + (element + 1) * 0x9e3779b97f4a7c15ULL;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
  return ((z ^ z >> 31) & 1ULL << 63) != 0;
}

/// Group of a row from element `first` on, rotated. T = float: as stores do; T = double: in truth.
template <class T>
std::vector<T> rotated(const trace::LayerCode& code, std::span<const float> row, std::size_t first) {
  std::vector<T> y(code.block);
  for (std::size_t i = 0; i < y.size(); ++i) {
    const auto x = static_cast<T>(row[first + i]);
    y[i] = flips(code.seed, first + i) ? -x : x;
  }
  for (std::size_t distance = 1; distance < y.size(); distance *= 2) {
    std::vector<T> next(y.size());
    for (std::size_t i = 0; i < y.size(); ++i)
      next[i] = (i & distance) == 0 ? y[i] + y[i ^ distance] : y[i ^ distance] - y[i];
    y = std::move(next);
  }
  const auto length = static_cast<T>(1.0 / std::sqrt(static_cast<double>(y.size())));
  for (T& value : y) value *= length;
  return y;
}

void append_levels(std::vector<float>& y, std::uint32_t bits, std::vector<std::byte>& bytes) {
  const float half = std::ldexp(1.0F, static_cast<int>(bits) - 1);
  const float d = std::abs(extreme(y)) / half;
  put(std::bit_cast<std::uint32_t>(d), 4, bytes);
  std::uint64_t word = 0;
  std::uint32_t filled = 0;
  for (float& value : y) {
    const float level = d > 0 ? std::clamp(std::floor(value / d), -half, half - 1) : -half;
    word |= static_cast<std::uint64_t>(level + half) << filled;
    for (filled += bits; filled >= 8; filled -= 8, word >>= 8) put(word & 0xff, 1, bytes);
    value -= (level + 0.5F) * d;
  }
}

void append_rotated(const trace::LayerCode& code, std::span<const float> row, std::vector<std::byte>& bytes) {
  for (std::size_t first = 0; first < row.size(); first += code.block) {
    std::vector<float> y = rotated<float>(code, row, first);
    append_levels(y, code.bits, bytes);
    if (code.residual_bits != 0) append_levels(y, code.residual_bits, bytes);
  }
}

// ---- errors ---------------------------------------------------------------------------------------------------------

double half_error(double x, double unit, double least, double largest) noexcept {
  return x < largest ? std::max(unit * x, least) : kInfinity;
}

double scale_error(double d) noexcept {
  return half_error(d, 0x1p-11, 0x1p-25, 65520);
}

double q8_error(double x, double d) noexcept {
  return d == 0 ? 0 : 0.501 * d + (std::abs(x) / d + 0.5) * scale_error(d);
}

/// `d` with its sign.
double q4_error(double x, double d) noexcept {
  if (d == 0) return 0;
  const double cut = std::max(0.5, x / d - 7);
  return (cut + 0.001) * std::abs(d) + std::min(8.0, std::abs(x / d) + 0.5) * scale_error(std::abs(d));
}

void blocks_error(const trace::LayerCode& code, std::span<const float> row, CodeError& error) {
  for (std::size_t first = 0; first < row.size(); first += kBlock) {
    const auto m = static_cast<double>(extreme(row.subspan(first, kBlock)));
    for (const float x : row.subspan(first, kBlock)) {
      const auto value = static_cast<double>(x);
      error.element.push_back(code.code == DType::q8_0 ? q8_error(value, std::abs(m) / 127) : q4_error(value, m / -8));
    }
  }
}

void rotated_error(const trace::LayerCode& code, std::span<const float> row, CodeError& error) {
  const std::size_t group = code.block;
  for (std::size_t first = 0; first < row.size(); first += group) {
    double largest = 0;
    double square = 0;
    for (const double y : rotated<double>(code, row, first)) {
      largest = std::max(largest, std::abs(y));
      square += y * y;
    }
    const double half_step = largest / std::exp2(code.bits + code.residual_bits);
    const double rounding = 2 * (std::log2(static_cast<double>(group)) + 4) * kUnit * std::sqrt(square) + 0x1p-140;
    const double length = 1.001 * std::sqrt(static_cast<double>(group)) * half_step + rounding;
    error.length.push_back(length);
    error.element.insert(error.element.end(), group, length);
  }
}

/// Lengths of groups from the errors of their elements.
void add_lengths(CodeError& error) {
  for (std::size_t first = 0; first < error.element.size(); first += error.group) {
    double square = 0;
    for (std::size_t i = first; i < first + error.group; ++i) square += error.element[i] * error.element[i];
    error.length.push_back(std::sqrt(square));
  }
}

}  // namespace

void append_code(const trace::LayerCode& code, std::span<const float> row, std::vector<std::byte>& bytes) {
  switch (code.code) {
    case DType::f32:
      for (const float x : row) put(std::bit_cast<std::uint32_t>(x), 4, bytes);
      return;
    case DType::f16:
      for (const float x : row) put(to_f16(x), 2, bytes);
      return;
    case DType::bf16:
      for (const float x : row) put(to_bf16(x), 2, bytes);
      return;
    case DType::q8_0:
      for (std::size_t i = 0; i < row.size(); i += kBlock) append_q8_0(row.subspan(i, kBlock), bytes);
      return;
    case DType::q4_0:
      for (std::size_t i = 0; i < row.size(); i += kBlock) append_q4_0(row.subspan(i, kBlock), bytes);
      return;
    case DType::rotated: return append_rotated(code, row, bytes);
    case DType::none: return;
  }
}

CodeError code_error(const trace::LayerCode& code, std::span<const float> row) {
  CodeError error;
  const bool is_finite = std::ranges::all_of(row, [](float x) { return std::isfinite(x); });
  if (code.code == DType::q8_0 || code.code == DType::q4_0) error.group = kBlock;
  if (code.code == DType::rotated) error.group = code.block;
  if (!is_finite) {
    error.element.assign(row.size(), kInfinity);
  } else if (code.code == DType::rotated) {
    rotated_error(code, row, error);
    return error;
  } else if (error.group == kBlock) {
    blocks_error(code, row, error);
  } else {
    for (const float x : row) {
      const double magnitude = std::abs(static_cast<double>(x));
      const double f16 = half_error(magnitude, 0x1p-11, 0x1p-25, 65520);
      const double bf16 = half_error(magnitude, 0x1p-8, 0x1p-134, 0x1.ffp127);
      error.element.push_back(code.code == DType::f16 ? f16 : code.code == DType::bf16 ? bf16 : 0);
    }
  }
  add_lengths(error);
  return error;
}

}  // namespace kvwitness::verify
