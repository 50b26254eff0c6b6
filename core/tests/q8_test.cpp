// Block quantisation against double precision, and what it does to a decoder's logits.
#include "kvwitness/core/decoder/q8.hpp"
#include "decoder/project_kernels.hpp"
#include "decoder_setup.hpp"
#include "kvwitness/core/decoder/forward.hpp"
#include "kvwitness/core/decoder/golden_math.hpp"

#include <boost/test/data/test_case.hpp>

#include <cmath>
#include <limits>
#include <random>

using namespace kvwitness::core;
using namespace kvwitness::core::testing;
namespace data = boost::unit_test::data;

namespace {

std::vector<float> values(std::size_t count, std::uint32_t seed, float scale = 1.0F) {
  std::mt19937 dice(seed);
  std::uniform_real_distribution<float> spread(-scale, scale);
  std::vector<float> all(count);
  for (float& value : all) value = spread(dice);
  return all;
}

struct Quantised {
  explicit Quantised(std::span<const float> x) : values(q8_blocks(x.size()) * kQ8Block), scales(q8_blocks(x.size())) {
    quantise_q8(x, values, scales);
  }
  [[nodiscard]] Q8Row row() const { return {values, scales}; }
  std::vector<std::int8_t> values;
  std::vector<float> scales;
};

/// The specified order, one addition after the other.
float specified_dot(std::span<const float> w, std::span<const float> x) {
  float lane[8] = {};
  const std::size_t whole = w.size() / 8 * 8;
  for (std::size_t i = 0; i < whole; ++i) {
    const float product = w[i] * x[i];
    lane[i % 8] += product;
  }
  float sum = ((lane[0] + lane[1]) + (lane[2] + lane[3])) + ((lane[4] + lane[5]) + (lane[6] + lane[7]));
  for (std::size_t i = whole; i < w.size(); ++i) {
    const float product = w[i] * x[i];
    sum += product;
  }
  return sum;
}

std::vector<ProjectKernels> all_kernels() {
  std::vector<ProjectKernels> all{baseline_kernels()};
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) all.push_back(avx2_kernels());
#endif
  return all;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(projections)

BOOST_DATA_TEST_CASE(every_instruction_set_adds_in_the_specified_order,
                     data::make({1U, 7U, 8U, 9U, 27U, 32U, 64U, 100U}) * data::make({1U, 3U, 4U, 8U, 9U, 16U, 97U}), in,
                     rows) {
  const std::vector<float> weights = values(std::size_t{in} * rows, in);
  const std::vector<float> x = values(in, rows + 1000);
  for (const ProjectKernels& kernels : all_kernels()) {
    std::vector<float> out(rows);
    kernels.f32(weights.data(), x.data(), in, out.data(), rows);
    for (std::size_t o = 0; o < rows; ++o) {
      const float expected = specified_dot(std::span(weights).subspan(o * in, in), x);
      BOOST_TEST(std::bit_cast<std::uint32_t>(out[o]) == std::bit_cast<std::uint32_t>(expected));
    }
  }
}

BOOST_AUTO_TEST_CASE(every_instruction_set_has_the_same_q8_bits) {
  const Q8Matrix matrix(values(13 * 75, 3), 75);
  const Quantised x(values(75, 4));
  std::vector<std::vector<float>> seen;
  for (const ProjectKernels& kernels : all_kernels()) {
    seen.emplace_back(13);
    kernels.q8({matrix.row(0).values.data(), matrix.row(0).scales.data()}, {x.values.data(), x.scales.data()}, 3,
               seen.back().data(), 13);
  }
  for (const auto& out : seen) BOOST_TEST((out == seen[0]));
  std::vector<float> out(13);
  project_q8(matrix, x.row(), out);
  for (std::size_t o = 0; o < 13; ++o) {
    float sum = 0;
    for (std::size_t b = 0; b < 3; ++b) {
      int dot = 0;
      for (std::size_t i = 0; i < 32; ++i) dot += matrix.row(o).values[b * 32 + i] * x.values[b * 32 + i];
      const float scale = matrix.row(o).scales[b] * x.scales[b];
      const float product = static_cast<float>(dot) * scale;
      sum += product;
    }
    BOOST_TEST(out[o] == sum);
  }
}

BOOST_AUTO_TEST_CASE(values_round_to_the_nearest_halves_to_even) {
  // Scale 1: the largest is 127.
  const std::vector<float> x{127.0F, 0.5F, 1.5F, 2.5F, -0.5F, -1.5F, 0.49F, 3.51F, -127.0F};
  const Quantised q(x);
  BOOST_TEST(q.scales[0] == 1.0F);
  const std::vector<int> expected{127, 0, 2, 2, 0, -2, 0, 4, -127};
  for (std::size_t i = 0; i < x.size(); ++i) BOOST_TEST(int{q.values[i]} == expected[i]);
  for (std::size_t i = x.size(); i < 32; ++i) BOOST_TEST(int{q.values[i]} == 0);
}

BOOST_AUTO_TEST_CASE(a_block_has_its_own_scale) {
  std::vector<float> x(64, 1.0F);
  std::fill(x.begin() + 32, x.end(), 1000.0F);
  const Quantised q(x);
  BOOST_TEST(q.scales[0] == 1.0F / 127.0F);
  BOOST_TEST(q.scales[1] == 1000.0F / 127.0F);
}

BOOST_AUTO_TEST_CASE(zeros_denormals_and_what_is_not_finite) {
  BOOST_TEST(Quantised(std::vector<float>(32, 0.0F)).scales[0] == 0.0F);
  // The scale of 180 smallest denormals is 1 of them: 180 does not fit into 8 bits.
  const float tiny = std::numeric_limits<float>::denorm_min();
  const Quantised denormal(std::vector<float>{180 * tiny, -180 * tiny});
  BOOST_TEST(int{denormal.values[0]} == 127);
  BOOST_TEST(int{denormal.values[1]} == -127);
  for (const float bad : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    std::vector<float> x(33, 1.0F);
    x[32] = bad;
    std::vector<float> out(1);
    project_q8(Q8Matrix(std::vector<float>(33, 1.0F), 33), Quantised(x).row(), out);
    BOOST_TEST(std::isnan(out[0]));
  }
}

BOOST_AUTO_TEST_CASE(the_error_of_a_block_is_bounded) {
  // |w - s q| <= s/2, so a product is off by at most |x| sw/2 + |w| sx/2 + sw sx/4; the f32 steps add a few ulps.
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    const float scale = std::ldexp(1.0F, static_cast<int>(seed % 40) - 20);
    const std::vector<float> w = values(96, seed, scale);
    const std::vector<float> x = values(96, seed + 999);
    const Quantised qw(w);
    const Quantised qx(x);
    double exact = 0;
    double bound = 0;
    double size = 0;
    for (std::size_t i = 0; i < w.size(); ++i) {
      const double sw = double{qw.scales[i / 32]} * (1 + 1e-6);
      const double sx = double{qx.scales[i / 32]} * (1 + 1e-6);
      exact += double{w[i]} * double{x[i]};
      size += std::abs(double{w[i]} * double{x[i]});
      bound += std::abs(double{x[i]}) * sw / 2 + std::abs(double{w[i]}) * sx / 2 + sw * sx / 4;
    }
    std::vector<float> out(1);
    project_q8(Q8Matrix(w, 96), qx.row(), out);
    BOOST_TEST(std::abs(double{out[0]} - exact) <= bound + 1e-5 * size);
    BOOST_TEST(double{out[0]} != exact);  // it is quantised
  }
}

BOOST_AUTO_TEST_CASE(a_window_wider_than_the_prompt_is_no_window) {
  const DecoderConfig wide = golden_decoder({11, true});
  const DecoderConfig full = golden_decoder();
  const std::vector<Token> tokens = tokens_of(full, 10);
  BOOST_TEST((forward(wide, seeded_weights(wide), tokens, Arithmetic::q8).logits ==
              forward(full, seeded_weights(full), tokens, Arithmetic::q8).logits));
}

BOOST_AUTO_TEST_CASE(q8_logits_are_near_the_golden_ones) {
  const DecoderConfig config = golden_decoder({4, true});
  const std::vector<Token> tokens = tokens_of(config, 64);
  const Forward exact = forward(config, seeded_weights(config), tokens);
  const Forward q8 = forward(config, seeded_weights(config), tokens, Arithmetic::q8);
  double worst = 0;
  for (std::size_t i = 0; i < exact.logits.size(); ++i)
    worst = std::max(worst, std::abs(double{exact.logits[i]} - double{q8.logits[i]}));
  BOOST_TEST_MESSAGE("largest difference of a logit: " << worst);
  BOOST_TEST(worst > 0.0);
  BOOST_TEST(worst < 0.05);
  // Where the golden margin is wider than twice the difference, the token cannot change.
  for (std::size_t t = 0; t < tokens.size(); ++t) {
    const auto row = std::span(exact.logits).subspan(t * config.vocab, config.vocab);
    std::vector<float> sorted(row.begin(), row.end());
    std::ranges::sort(sorted, std::greater{});
    if (double{sorted[0]} - double{sorted[1]} <= 2 * worst) continue;
    BOOST_TEST(argmax(row) == argmax(std::span(q8.logits).subspan(t * config.vocab, config.vocab)));
  }
}

BOOST_AUTO_TEST_SUITE_END()
