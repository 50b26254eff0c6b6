#include "attention/compare.hpp"

#include "kvwitness/trace/event.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstddef>
#include <limits>

namespace kvwitness::verify {
namespace {

using trace::Comparison;
using trace::Tolerance;

/// Order-preserving map of f32 onto the integers (both zeros are 0).
std::int64_t rank_of(float value) noexcept {
  const std::uint32_t bits = trace::to_bits(value);
  const auto magnitude = static_cast<std::int64_t>(bits & 0x7fffffffU);
  return (bits >> 31) != 0 ? -magnitude : magnitude;
}

bool is_close(float left, float right, const Tolerance& tolerance) noexcept {
  if (left == right) return true;  // infinities, whose difference is NaN
  const double distance = std::abs(static_cast<double>(left) - static_cast<double>(right));
  return std::isfinite(left) && std::isfinite(right) &&
         distance <= tolerance.abs + tolerance.rel * std::abs(static_cast<double>(right));
}

bool is_same(float left, float right, const Tolerance& tolerance) noexcept {
  if (std::isnan(left) || std::isnan(right)) return std::isnan(left) && std::isnan(right) && tolerance.nan_equal;
  switch (tolerance.by) {
    case Comparison::bits: return trace::to_bits(left) == trace::to_bits(right);
    case Comparison::max_ulp: return ulps_between(left, right) <= tolerance.max_ulp;
    case Comparison::abs_rel: return is_close(left, right, tolerance);
    case Comparison::cosine_min: return true;  // judged by the row
  }
  return false;
}

std::string element_text(std::size_t i, float left, float right) {
  return fmt::format("element {}: {:.9g} and {:.9g} ({:#010x}, {:#010x}, {} ulp apart)", i, left, right,
                     trace::to_bits(left), trace::to_bits(right), ulps_between(left, right));
}

bool has_nan(std::span<const float> row) noexcept {
  for (const float value : row) {
    if (std::isnan(value)) return true;
  }
  return false;
}

}  // namespace

std::uint64_t ulps_between(float left, float right) noexcept {
  if (std::isnan(left) || std::isnan(right)) return std::numeric_limits<std::uint64_t>::max();
  const std::int64_t distance = rank_of(left) - rank_of(right);
  return static_cast<std::uint64_t>(distance < 0 ? -distance : distance);
}

double cosine(std::span<const float> left, std::span<const float> right) noexcept {
  double dot = 0;
  double left_square = 0;
  double right_square = 0;
  for (std::size_t i = 0; i < left.size(); ++i) {
    const auto a = static_cast<double>(left[i]);
    const auto b = static_cast<double>(right[i]);
    dot += a * b;
    left_square += a * a;
    right_square += b * b;
  }
  if (left_square == 0 && right_square == 0) return 1;
  if (left_square == 0 || right_square == 0) return 0;
  return dot / (std::sqrt(left_square) * std::sqrt(right_square));
}

std::optional<std::string> difference(std::span<const float> left, std::span<const float> right,
                                      const Tolerance& tolerance) {
  if (left.size() != right.size()) return fmt::format("{} elements and {}", left.size(), right.size());
  for (std::size_t i = 0; i < left.size(); ++i) {
    if (!is_same(left[i], right[i], tolerance)) return element_text(i, left[i], right[i]);
  }
  // A row with NaN in the same places has no angle; is_same has judged it.
  if (tolerance.by != Comparison::cosine_min || has_nan(left)) return std::nullopt;
  const double angle = cosine(left, right);
  if (angle >= tolerance.cosine_min) return std::nullopt;
  return fmt::format("cosine {:.9g}, at least {:.9g} asked for", angle, tolerance.cosine_min);
}

}  // namespace kvwitness::verify
