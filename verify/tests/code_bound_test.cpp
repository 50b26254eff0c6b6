// The bound of attention over q8_0 rows, against attention in double over what the codes decode to.
#include "rows/code_bound.hpp"

#include "kvwitness/trace/rows.hpp"
#include "rows/code_rows.hpp"

#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

using namespace kvwitness;
using namespace kvwitness::verify;
namespace data = boost::unit_test::data;

namespace {

constexpr OracleShape kShape{.q_heads = 2, .kv_heads = 1, .head_dim = 64, .score_scale = 0.125};
constexpr std::size_t kWidth = 64;

std::vector<float> rows_of(std::uint32_t shape, trace::Plane plane, std::uint32_t first, std::size_t count,
                           std::size_t width) {
  trace::StreamSpec stream;
  stream.kind = trace::StreamKind::random;
  stream.shape = static_cast<trace::RandomShape>(shape);
  std::vector<float> rows(count * width);
  for (std::size_t i = 0; i < count; ++i)
    trace::fill_row(stream, {plane, 0, first + static_cast<std::uint32_t>(i)},
                    std::span(rows).subspan(i * width, width));
  return rows;
}

trace::LayerCode q8() {
  trace::LayerCode code{};
  code.code = trace::DType::q8_0;
  return code;
}

double f16_value(std::span<const std::byte> bytes) {
  std::uint16_t bits = 0;
  std::memcpy(&bits, bytes.data(), 2);
  const int exponent = bits >> 10 & 31;
  const int fraction = bits & 1023;
  return exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
}

/// What codes of `rows` decode to; each block by the scale of the one `behind` it.
std::vector<double> decoded(const std::vector<float>& rows, std::size_t behind = 0) {
  std::vector<std::byte> codes;
  for (std::size_t at = 0; at < rows.size(); at += kWidth)
    append_code(q8(), std::span(rows).subspan(at, kWidth), codes);
  std::vector<double> again(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::size_t block = i / 32;
    const std::size_t scale = std::min(block + behind, rows.size() / 32 - 1);
    const auto q = static_cast<std::int8_t>(codes[block * 34 + 2 + i % 32]);
    again[i] = q * f16_value(std::span(codes).subspan(scale * 34));
  }
  return again;
}

std::vector<double> attention(const std::vector<float>& q, const std::vector<double>& k, const std::vector<double>& v) {
  std::vector<double> out(q.size());
  for (std::size_t head = 0; head < 2; ++head) {
    std::vector<double> scores;
    for (std::size_t at = 0; at < k.size(); at += kWidth) {
      double score = 0;
      for (std::size_t d = 0; d < kWidth; ++d) score += static_cast<double>(q[head * kWidth + d]) * k[at + d];
      scores.push_back(score * kShape.score_scale);
    }
    const double top = *std::ranges::max_element(scores);
    double sum = 0;
    for (std::size_t i = 0; i < scores.size(); ++i) {
      const double weight = std::exp(scores[i] - top);
      sum += weight;
      for (std::size_t d = 0; d < kWidth; ++d) out[head * kWidth + d] += weight * v[i * kWidth + d];
    }
    for (std::size_t d = 0; d < kWidth; ++d) out[head * kWidth + d] /= sum;
  }
  return out;
}

struct Found {
  double within = 0;  ///< largest |off| / bound of the codes' own error
  double beyond = 0;  ///< the same where scales are one block off
};

Found measure(std::uint32_t shape, std::size_t keys) {
  Found found;
  for (std::uint32_t first = 0; first < 400; first += 20) {
    const std::vector<float> q = rows_of(shape, trace::Plane::q, first, 1, 2 * kWidth);
    const std::vector<float> k = rows_of(shape, trace::Plane::k, first, keys, kWidth);
    const std::vector<float> v = rows_of(shape, trace::Plane::v, first, keys, kWidth);
    const std::vector<double> exact = attention(q, {k.begin(), k.end()}, {v.begin(), v.end()});
    std::vector<double> bound(exact.size());
    add_code_bound(kShape, q, {{k, v}, keys, q8(), q8()}, exact, bound);
    const std::vector<double> right = attention(q, decoded(k), decoded(v));
    const std::vector<double> wrong = attention(q, decoded(k, 1), decoded(v, 1));
    for (std::size_t i = 0; i < exact.size(); ++i) {
      found.within = std::max(found.within, std::abs(right[i] - exact[i]) / bound[i]);
      found.beyond = std::max(found.beyond, std::abs(wrong[i] - exact[i]) / bound[i]);
    }
  }
  return found;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(code_bound)

// One key leaves its value alone; several put their errors through a softmax. Shapes: uniform, large scores, one hot
// key.
BOOST_DATA_TEST_CASE(codes_stay_within_and_a_wrong_scale_does_not, data::make({0, 2}) * data::make({1, 2, 8}), shape,
                     keys) {
  const Found found = measure(static_cast<std::uint32_t>(shape), static_cast<std::size_t>(keys));
  BOOST_TEST(found.within <= 1);
  BOOST_TEST(found.within > 0.02);
  BOOST_TEST(found.beyond > 1);
}

// Scores so large that their errors overflow the weights: the output is a mean of values still.
BOOST_AUTO_TEST_CASE(no_error_of_scores_takes_an_output_out_of_its_values) {
  for (const std::size_t keys : {2U, 8U}) {
    const Found found = measure(1, keys);
    BOOST_TEST(found.within <= 1);
  }
  std::vector<float> q(2 * kWidth, 1e6F);
  std::vector<float> k = rows_of(1, trace::Plane::k, 0, 4, kWidth);
  const std::vector<float> v = rows_of(0, trace::Plane::v, 0, 4, kWidth);
  const std::vector<double> exact = attention(q, {k.begin(), k.end()}, {v.begin(), v.end()});
  std::vector<double> bound(exact.size());
  add_code_bound(kShape, q, {{k, v}, 4, q8(), q8()}, exact, bound);
  for (const double value : bound) BOOST_TEST((std::isfinite(value) && value <= 2.1));
}

BOOST_AUTO_TEST_CASE(rows_in_full_add_nothing) {
  const std::vector<float> q = rows_of(0, trace::Plane::q, 0, 1, 2 * kWidth);
  const std::vector<float> k = rows_of(0, trace::Plane::k, 0, 4, kWidth);
  const std::vector<float> v = rows_of(0, trace::Plane::v, 0, 4, kWidth);
  const std::vector<double> exact = attention(q, {k.begin(), k.end()}, {v.begin(), v.end()});
  std::vector<double> bound(exact.size());
  add_code_bound(kShape, q, {{k, v}, 0, q8(), q8()}, exact, bound);
  BOOST_TEST(*std::ranges::max_element(bound) < 1e-12);
}

BOOST_AUTO_TEST_SUITE_END()
