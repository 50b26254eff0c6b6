#include "kvwitness/verify/attention_oracle.hpp"

#include "kvwitness/trace/assert.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

namespace kvwitness::verify {
namespace {

constexpr double kUnit = 0x1p-24;  // rounding unit of f32
constexpr double kSmallestNormal = 0x1p-126;
constexpr double kSmallest = 0x1p-149;

std::size_t keys_of(const OracleKeys& piece, std::size_t elements) noexcept {
  return piece.k.size() / elements;
}

/// Sum over pairs (j, j + head_dim / 2) of their lengths' products: neither changes when the pairs are turned.
double pair_lengths(const float* q, const float* k, std::uint32_t head_dim) noexcept {
  const std::uint32_t half = head_dim / 2;
  double sum = 0;
  for (std::uint32_t j = 0; j < half; ++j) {
    const double q_length = std::hypot(static_cast<double>(q[j]), static_cast<double>(q[j + half]));
    sum += q_length * std::hypot(static_cast<double>(k[j]), static_cast<double>(k[j + half]));
  }
  return sum;
}

double capped(double score, double cap) noexcept {
  return cap > 0 ? cap * std::tanh(score / cap) : score;
}

}  // namespace

/// What the first pass finds out about one query head.
struct AttentionOracle::Head {
  std::size_t q_offset = 0;
  std::size_t kv_offset = 0;
  double maximum = -std::numeric_limits<double>::infinity();
  double minimum = std::numeric_limits<double>::infinity();
  double magnitude = 0;  // largest scale * sum |q_d k_d|
  double rotation = 0;   // largest scale * sum of the pairs' lengths; 0 where not rotated
  double rises = 0;

  [[nodiscard]] double weight_error(const OracleShape& shape) const noexcept {
    const double score_error = (shape.head_dim + 1) * kUnit * magnitude + kRotationUlps * kUnit * rotation +
                               4 * kUnit * std::max(shape.softcap, 0.0);
    const double spread = maximum > minimum ? maximum - minimum : 0;
    return 2 * score_error + kUnit * spread + (kExpUlps + 1) * kUnit * (1 + rises);
  }
};

void AttentionOracle::score(const OracleShape& shape, std::span<const float> q, std::span<const OracleKeys> pieces,
                            Head& head) {
  scores_.clear();
  const float* query = q.data() + head.q_offset;
  for (const OracleKeys& piece : pieces) {
    for (std::size_t i = 0; i < keys_of(piece, shape.kv_elements()); ++i) {
      const float* key = piece.k.data() + i * shape.kv_elements() + head.kv_offset;
      double dot = 0;
      double magnitude = 0;
      for (std::uint32_t d = 0; d < shape.head_dim; ++d) {
        const double product = static_cast<double>(query[d]) * static_cast<double>(key[d]);
        dot += product;
        magnitude += std::abs(product);
      }
      const double score = capped(dot * shape.score_scale, shape.softcap);
      head.magnitude = std::max(head.magnitude, magnitude * std::abs(shape.score_scale));
      if (shape.rotated)
        head.rotation = std::max(head.rotation, pair_lengths(query, key, shape.head_dim) * std::abs(shape.score_scale));
      if (std::isfinite(score)) head.minimum = std::min(head.minimum, score);
      // A NaN becomes the maximum and stays it, for nothing is above it: so it reaches the result.
      if (std::isnan(score) || score > head.maximum) {
        head.maximum = score;
        head.rises += 1;
      }
      scores_.push_back(score);
    }
  }
}

void AttentionOracle::accumulate(const OracleShape& shape, std::span<const OracleKeys> pieces, Head& head,
                                 std::span<double> out, std::span<double> bound) {
  partial_.assign(shape.head_dim, 0);
  absolute_.assign(shape.head_dim, 0);
  largest_.assign(shape.head_dim, 0);
  double weights = 0;
  double weights_partial = 0;
  std::size_t n = 0;
  for (const OracleKeys& piece : pieces) {
    for (std::size_t i = 0; i < keys_of(piece, shape.kv_elements()); ++i, ++n) {
      const float* value = piece.v.data() + i * shape.kv_elements() + head.kv_offset;
      const double weight = std::exp(scores_[n] - head.maximum);
      weights += weight;
      weights_partial += weights;
      for (std::uint32_t d = 0; d < shape.head_dim; ++d) {
        const double term = weight * static_cast<double>(value[d]);
        out[d] += term;
        partial_[d] += std::abs(out[d]);
        absolute_[d] += std::abs(term);
        largest_[d] = std::max(largest_[d], std::abs(static_cast<double>(value[d])));
      }
    }
  }
  const double error = head.weight_error(shape);
  for (std::uint32_t d = 0; d < shape.head_dim; ++d) {
    out[d] /= weights;
    if (bound.empty()) continue;
    const double numerator = error * absolute_[d] + kUnit * partial_[d];
    const double denominator = error * weights + kUnit * weights_partial;
    const double relative = (numerator + std::abs(out[d]) * denominator) / weights + 2 * kUnit * std::abs(out[d]);
    const double underflow = static_cast<double>(n) * (kSmallestNormal * largest_[d] + kSmallest);
    bound[d] = kOrderFactor * relative + underflow;
  }
}

void AttentionOracle::attend(const OracleShape& shape, std::span<const float> q, std::span<const OracleKeys> pieces,
                             std::span<double> out, std::span<double> bound) {
  KVW_ASSERT(shape.kv_heads > 0 && shape.q_heads % shape.kv_heads == 0);
  KVW_ASSERT(q.size() == shape.q_elements() && out.size() == q.size() && (bound.empty() || bound.size() == q.size()));
  std::ranges::fill(out, 0.0);
  std::ranges::fill(bound, 0.0);
  for (std::uint32_t h = 0; h < shape.q_heads; ++h) {
    Head head;
    head.q_offset = std::size_t{h} * shape.head_dim;
    head.kv_offset = std::size_t{h / (shape.q_heads / shape.kv_heads)} * shape.head_dim;
    score(shape, q, pieces, head);
    if (head.maximum == -std::numeric_limits<double>::infinity()) continue;  // nothing visible: a row of zeros
    accumulate(shape, pieces, head, out.subspan(head.q_offset, shape.head_dim),
               bound.empty() ? bound : bound.subspan(head.q_offset, shape.head_dim));
  }
}

}  // namespace kvwitness::verify
