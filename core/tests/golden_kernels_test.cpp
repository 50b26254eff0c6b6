// The golden attention's loops for newer processors against the plain ones, to the bit; and the plain ones'
// exponentials where a vectorised exp is likeliest to round another way.
#include "decoder/golden_kernels.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

namespace {

using namespace kvwitness::core;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

/// Any NaN is as good as another: which of two a sum keeps is nobody's promise.
std::vector<std::uint32_t> bits(const std::vector<float>& values) {
  std::vector<std::uint32_t> all;
  for (const float v : values) all.push_back(std::bit_cast<std::uint32_t>(std::isnan(v) ? kNaN : v));
  return all;
}

std::vector<float> random_values(std::mt19937& draw, std::size_t count, float scale) {
  std::normal_distribution<float> normal(0, scale);
  std::vector<float> values(count);
  for (float& v : values) v = normal(draw);
  return values;
}

struct Shape {
  std::size_t heads, keys, dim, gap;
};

/// Rows of `gap` more values than head_dim, which are NaN: a read beyond a row shows.
std::vector<float> rows_of(std::mt19937& draw, const Shape& shape) {
  auto rows = random_values(draw, shape.keys * (shape.dim + shape.gap), 1);
  for (std::size_t i = 0; i < shape.keys; ++i)
    for (std::size_t d = 0; d < shape.gap; ++d) rows[i * (shape.dim + shape.gap) + shape.dim + d] = kNaN;
  return rows;
}

GoldenRows as_rows(const std::vector<float>& values, const Shape& shape) {
  return {reinterpret_cast<const std::byte*>(values.data()), (shape.dim + shape.gap) * sizeof(float), shape.keys};
}

std::vector<float> scores_of(const GoldenKernels& kernels, const Shape& shape, std::uint32_t seed) {
  std::mt19937 draw(seed);
  const auto q = random_values(draw, shape.heads * shape.dim, 1);
  const auto k = rows_of(draw, shape);
  std::vector<float> scores(shape.heads * (shape.keys + 1), 7.0F);  // an entry between heads that nobody may write
  kernels.score({q.data(), shape.dim, shape.heads}, as_rows(k, shape), shape.dim, 0.37F,
                {scores.data(), shape.keys + 1, shape.heads});
  return scores;
}

std::vector<float> sums_of(const GoldenKernels& kernels, const Shape& shape, std::uint32_t seed) {
  std::mt19937 draw(seed);
  const auto weights = random_values(draw, shape.heads * (shape.keys + 1), 1);
  const auto v = rows_of(draw, shape);
  auto out = random_values(draw, shape.heads * (shape.dim + 1), 1);
  kernels.add({weights.data(), shape.keys + 1, shape.heads}, as_rows(v, shape), shape.dim,
              {out.data(), shape.dim + 1, shape.heads});
  return out;
}

/// Of the scores as those of several heads: each has them turned by one more.
std::vector<float> weights_of(const GoldenKernels& kernels, const std::vector<float>& scores, std::size_t heads,
                              const float* sink) {
  std::vector<float> all;
  for (std::size_t h = 0; h < heads; ++h) {
    std::vector<float> of_head = scores;
    std::ranges::rotate(of_head, of_head.begin() + static_cast<std::ptrdiff_t>(h % scores.size()));
    all.insert(all.end(), of_head.begin(), of_head.end());
    all.push_back(7.0F);  // an entry between heads that nobody may write
  }
  std::vector<float> sinks;
  for (std::size_t h = 0; h < heads; ++h) sinks.push_back((sink == nullptr ? 0.0F : *sink) - static_cast<float>(h));
  kernels.softmax({all.data(), scores.size() + 1, heads}, scores.size(), sink == nullptr ? nullptr : sinks.data());
  return all;
}

void check_softmax(const std::vector<float>& scores, const float* sink) {
  for (const std::size_t heads : {1U, 2U, 5U}) {
    const auto plain = bits(weights_of(golden_baseline(), scores, heads, sink));
    for (const GoldenKernels* const wide : all_golden_kernels())
      BOOST_TEST(plain == bits(weights_of(*wide, scores, heads, sink)), boost::test_tools::per_element());
  }
}

/// The floats of [-88, -2^-40] whose exponential in double precision (glibc 2.36) lies within 12 units in the last
/// place of the middle between two floats: all that an exhaustive search found, within 1 the last one.
constexpr std::array kNearAMiddle{-0x1p-25F,       -0x1.c1c4b8p-10F, -0x1.6e1ddp-8F, -0x1.e1dbe2p-8F,
                                  -0x1.548c34p-7F, -0x1.f02a66p+1F,  -0x1.d2259ap+3F};

}  // namespace

BOOST_AUTO_TEST_SUITE(golden_loops)

BOOST_AUTO_TEST_CASE(scores_and_sums_have_the_plain_loops_bits) {
  std::uint32_t seed = 1;
  for (const std::size_t dim : {1U, 3U, 7U, 8U, 9U, 16U, 31U, 80U})
    for (const std::size_t heads : {1U, 2U, 3U, 4U, 5U, 9U})
      for (const std::size_t keys : {1U, 2U, 7U, 8U, 9U, 15U, 16U, 17U, 33U}) {
        const Shape shape{heads, keys, dim, dim % 3};
        BOOST_TEST_CONTEXT("dim " << dim << ", heads " << heads << ", keys " << keys) {
          ++seed;
          const auto scores = bits(scores_of(golden_baseline(), shape, seed));
          const auto sums = bits(sums_of(golden_baseline(), shape, seed));
          for (const GoldenKernels* const wide : all_golden_kernels()) {
            BOOST_TEST(bits(scores_of(*wide, shape, seed)) == scores, boost::test_tools::per_element());
            BOOST_TEST(bits(sums_of(*wide, shape, seed)) == sums, boost::test_tools::per_element());
          }
        }
      }
}

BOOST_AUTO_TEST_CASE(weights_have_the_plain_loops_bits) {
  std::mt19937 draw(3);
  for (const float spread : {0.01F, 1.0F, 30.0F, 200.0F})
    for (std::size_t count = 1; count <= 40; ++count) {
      const auto scores = random_values(draw, count, spread);
      const float sink = random_values(draw, 1, spread)[0];
      BOOST_TEST_CONTEXT("spread " << spread << ", " << count << " scores") {
        check_softmax(scores, nullptr);
        check_softmax(scores, &sink);
      }
    }
}

BOOST_AUTO_TEST_CASE(weights_of_odd_scores_have_the_plain_loops_bits) {
  const float none = -kInfinity;
  for (const float odd : {kInfinity, -kInfinity, kNaN, 0.0F, -0.0F, -90.0F, -104.0F, 1e38F, -1e38F})
    for (std::size_t count = 1; count <= 17; ++count)
      for (const std::size_t at : {std::size_t{0}, count / 2, count - 1}) {
        std::vector<float> scores(count, -1.5F);
        scores[at] = odd;
        BOOST_TEST_CONTEXT(odd << " at " << at << " of " << count) {
          check_softmax(scores, nullptr);
          check_softmax(scores, &odd);
          check_softmax(scores, &none);
        }
      }
  check_softmax(std::vector<float>(9, none), nullptr);
}

BOOST_AUTO_TEST_CASE(exponentials_near_the_middle_of_two_floats_round_as_the_c_library_does) {
  for (const float x : kNearAMiddle) check_softmax({0.0F, x, x, x, x, x, x, x, x}, nullptr);
}

BOOST_AUTO_TEST_SUITE_END()
