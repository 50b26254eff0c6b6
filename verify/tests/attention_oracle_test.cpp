#include "kvwitness/verify/attention_oracle.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

using kvwitness::verify::AttentionOracle;
using kvwitness::verify::OracleKeys;
using kvwitness::verify::OracleShape;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

struct Answer {
  std::vector<double> out;
  std::vector<double> bound;
};

Answer ask(const OracleShape& shape, const std::vector<float>& q, const std::vector<float>& k,
           const std::vector<float>& v) {
  AttentionOracle oracle;
  Answer answer{std::vector<double>(q.size()), std::vector<double>(q.size())};
  const OracleKeys keys{k, v};
  oracle.attend(shape, q, std::span(&keys, 1), answer.out, answer.bound);
  return answer;
}

/// The textbook formula, term by term, in long double and without shared passes.
std::vector<long double> textbook(const OracleShape& shape, const std::vector<float>& q, const std::vector<float>& k,
                                  const std::vector<float>& v) {
  const std::size_t row = shape.kv_elements();
  std::vector<long double> out(shape.q_elements(), 0.0L);
  for (std::size_t e = 0; e < out.size(); ++e) {
    const std::size_t head = e / shape.head_dim;
    const std::size_t kv = head * shape.kv_heads / shape.q_heads * shape.head_dim;
    long double numerator = 0;
    long double denominator = 0;
    for (std::size_t i = 0; i < k.size() / row; ++i) {
      long double score = 0;
      for (std::size_t d = 0; d < shape.head_dim; ++d) {
        score += static_cast<long double>(q[head * shape.head_dim + d]) * k[i * row + kv + d];
      }
      score *= shape.score_scale;
      if (shape.softcap > 0) score = shape.softcap * std::tanh(score / shape.softcap);
      numerator += std::exp(score) * v[i * row + kv + e % shape.head_dim];
      denominator += std::exp(score);
    }
    out[e] = numerator / denominator;
  }
  return out;
}

std::vector<float> random_values(std::mt19937& random, std::size_t count, float scale = 1) {
  std::uniform_real_distribution<float> uniform(-scale, scale);
  std::vector<float> values(count);
  std::ranges::generate(values, [&] { return uniform(random); });
  return values;
}

/// A plain f32 kernel, written here: online softmax over the keys in the order given.
std::vector<float> f32_kernel(const OracleShape& shape, const std::vector<float>& q, const std::vector<float>& k,
                              const std::vector<float>& v, const std::vector<std::size_t>& order) {
  const std::size_t row = shape.kv_elements();
  std::vector<float> out(shape.q_elements(), 0.0F);
  for (std::size_t head = 0; head < shape.q_heads; ++head) {
    const std::size_t kv = head * shape.kv_heads / shape.q_heads * shape.head_dim;
    float maximum = -std::numeric_limits<float>::infinity();
    float sum = 0;
    for (const std::size_t i : order) {
      float score = 0;
      for (std::size_t d = 0; d < shape.head_dim; ++d) score += q[head * shape.head_dim + d] * k[i * row + kv + d];
      score *= static_cast<float>(shape.score_scale);
      const float next = std::max(maximum, score);
      const float rescale = std::exp(maximum - next);
      const float weight = std::exp(score - next);
      sum = sum * rescale + weight;
      for (std::size_t d = 0; d < shape.head_dim; ++d) {
        float& o = out[head * shape.head_dim + d];
        o = o * rescale + weight * v[i * row + kv + d];
      }
      maximum = next;
    }
    for (std::size_t d = 0; d < shape.head_dim; ++d) out[head * shape.head_dim + d] /= sum;
  }
  return out;
}

std::vector<std::size_t> ascending(std::size_t count) {
  std::vector<std::size_t> order(count);
  for (std::size_t i = 0; i < count; ++i) order[i] = i;
  return order;
}

double worst_share(const Answer& answer, const std::vector<float>& kernel) {
  double worst = 0;
  for (std::size_t e = 0; e < kernel.size(); ++e) {
    worst = std::max(worst, std::abs(answer.out[e] - static_cast<double>(kernel[e])) / answer.bound[e]);
  }
  return worst;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(attention_oracle)

BOOST_AUTO_TEST_CASE(equal_keys_give_the_mean_of_the_values) {
  const OracleShape shape{1, 1, 2, 0.5, 0};
  const Answer answer = ask(shape, {3, -1}, {1, 2, 1, 2, 1, 2}, {1, 10, 2, 20, 6, 60});
  BOOST_CHECK_SMALL(answer.out[0] - 3.0, 1e-15);
  BOOST_CHECK_SMALL(answer.out[1] - 30.0, 1e-14);
}

BOOST_AUTO_TEST_CASE(one_hot_key_gives_its_row) {
  const OracleShape shape{1, 1, 1, 1, 0};
  const Answer answer = ask(shape, {1}, {0, 800, 0}, {5, -7, 9});
  BOOST_CHECK_EQUAL(answer.out[0], -7.0);
}

BOOST_AUTO_TEST_CASE(two_keys_give_the_logistic_of_their_difference) {
  const OracleShape shape{1, 1, 1, 0.25, 0};
  const Answer answer = ask(shape, {2}, {3, 1}, {1, 0});
  BOOST_CHECK_SMALL(answer.out[0] - 1 / (1 + std::exp(-1.0)), 1e-15);  // scores 1.5 and 0.5
}

BOOST_AUTO_TEST_CASE(softcap_bends_the_scores) {
  const OracleShape shape{1, 1, 1, 1, 2};
  const Answer answer = ask(shape, {1}, {3, 0}, {1, 0});
  BOOST_CHECK_SMALL(answer.out[0] - 1 / (1 + std::exp(-2 * std::tanh(1.5))), 1e-15);
}

BOOST_AUTO_TEST_CASE(one_visible_key_gives_its_own_row) {
  const OracleShape shape{2, 2, 2, 1, 0};
  const Answer answer = ask(shape, {9, 8, 7, 6}, {1, 2, 3, 4}, {0.1F, -0.2F, 0.3F, 0.4F});
  BOOST_CHECK_EQUAL(answer.out[1], static_cast<double>(-0.2F));
  BOOST_CHECK_EQUAL(answer.out[2], static_cast<double>(0.3F));
}

BOOST_AUTO_TEST_CASE(query_heads_of_a_group_share_a_kv_head) {
  const OracleShape shape{4, 2, 1, 1, 0};
  const Answer answer = ask(shape, {1, 2, 3, 4}, {0, 0}, {5, 6});
  BOOST_CHECK((answer.out == std::vector<double>{5, 5, 6, 6}));
}

BOOST_AUTO_TEST_CASE(no_key_and_scores_of_minus_infinity_give_zeros) {
  const OracleShape shape{1, 1, 1, 1, 0};
  BOOST_CHECK_EQUAL(ask(shape, {1}, {}, {}).out[0], 0.0);
  const float low = -std::numeric_limits<float>::infinity();
  BOOST_CHECK_EQUAL(ask(shape, {1}, {low, low}, {3, 4}).out[0], 0.0);
  BOOST_CHECK_EQUAL(ask(shape, {1}, {low, 2}, {3, 4}).out[0], 4.0);
}

BOOST_AUTO_TEST_CASE(nan_stays_in_the_heads_that_read_it) {
  const OracleShape shape{2, 2, 1, 1, 0};
  const Answer key = ask(shape, {1, 1}, {kNan, 1, 0, 1}, {1, 2, 3, 4});
  BOOST_CHECK(std::isnan(key.out[0]));
  BOOST_CHECK_EQUAL(key.out[1], 3.0);
  const Answer value = ask(shape, {1, 1}, {0, 0, 0, 0}, {1, 2, 3, kNan});
  BOOST_CHECK_EQUAL(value.out[0], 2.0);
  BOOST_CHECK(std::isnan(value.out[1]));
  BOOST_CHECK(std::isnan(ask({1, 1, 1, 1, 0}, {1}, {kNan}, {1}).out[0]));  // not one score to compare with
}

BOOST_AUTO_TEST_CASE(pieces_are_one_set_of_keys) {
  const OracleShape shape{2, 1, 4, 0.5, 0};
  std::mt19937 random(7);
  const auto q = random_values(random, 8);
  const auto k = random_values(random, 20);
  const auto v = random_values(random, 20);
  const Answer whole = ask(shape, q, k, v);
  AttentionOracle oracle;
  std::vector<double> out(8);
  const OracleKeys pieces[] = {{std::span(k).first(8), std::span(v).first(8)},
                               {std::span(k).subspan(8), std::span(v).subspan(8)}};
  oracle.attend(shape, q, pieces, out);
  BOOST_CHECK(out == whole.out);
}

BOOST_AUTO_TEST_CASE(agrees_with_the_textbook_in_long_double) {
  std::mt19937 random(11);
  for (const double softcap : {0.0, 3.0}) {
    for (const std::size_t keys : {1U, 2U, 17U, 64U}) {
      const OracleShape shape{4, 2, 8, 0.35355339F, softcap};
      const auto q = random_values(random, 32, 4);
      const auto k = random_values(random, keys * 16, 4);
      const auto v = random_values(random, keys * 16);
      const Answer answer = ask(shape, q, k, v);
      const auto expected = textbook(shape, q, k, v);
      for (std::size_t e = 0; e < expected.size(); ++e) {
        BOOST_CHECK_SMALL(answer.out[e] - static_cast<double>(expected[e]), 1e-14);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(bound_covers_a_correct_f32_kernel_in_any_order) {
  std::mt19937 random(13);
  const OracleShape shape{4, 2, 8, 0.35355339F, 0};
  for (const float scale : {0.01F, 1.0F, 24.0F}) {
    for (const std::size_t keys : {1U, 3U, 100U, 4096U}) {
      const auto q = random_values(random, 32, scale);
      const auto k = random_values(random, keys * 16, scale);
      const auto v = random_values(random, keys * 16);
      const Answer answer = ask(shape, q, k, v);
      auto order = ascending(keys);
      BOOST_CHECK_LE(worst_share(answer, f32_kernel(shape, q, k, v, order)), 1.0);
      std::ranges::reverse(order);
      BOOST_CHECK_LE(worst_share(answer, f32_kernel(shape, q, k, v, order)), 1.0);
      std::ranges::shuffle(order, random);
      BOOST_CHECK_LE(worst_share(answer, f32_kernel(shape, q, k, v, order)), 1.0);
    }
  }
}

BOOST_AUTO_TEST_CASE(bound_covers_scores_that_are_close_but_large) {
  // Long rows of large values and two keys that hardly differ: the rounding of the scores is all that matters.
  std::mt19937 random(19);
  const OracleShape shape{1, 1, 64, 0.125, 0};
  for (int trial = 0; trial < 50; ++trial) {
    const auto q = random_values(random, 64, 24);
    auto k = random_values(random, 64, 24);
    const auto nudge = random_values(random, 64, 0.01F);
    for (std::size_t d = 0; d < 64; ++d) k.push_back(k[d] + nudge[d]);
    std::vector<float> v(128, 1.0F);
    std::fill(v.begin() + 64, v.end(), -1.0F);
    BOOST_CHECK_LE(worst_share(ask(shape, q, k, v), f32_kernel(shape, q, k, v, ascending(2))), 1.0);
  }
}

BOOST_AUTO_TEST_CASE(bound_is_below_one_key_in_four_thousand) {
  std::mt19937 random(17);
  const OracleShape shape{4, 2, 8, 0.35355339F, 0};
  const std::size_t keys = 4096;
  const auto q = random_values(random, 32);
  const auto k = random_values(random, keys * 16);
  const auto v = random_values(random, keys * 16);
  const Answer answer = ask(shape, q, k, v);
  auto order = ascending(keys);
  order.erase(order.begin());
  BOOST_CHECK_GT(worst_share(answer, f32_kernel(shape, q, k, v, order)), 5.0);
}

BOOST_AUTO_TEST_CASE(bound_of_denormal_values_still_tells_them_from_zero) {
  const OracleShape shape{1, 1, 1, 1, 0};
  const Answer answer = ask(shape, {1}, {0, 0}, {0x1p-130F, 0x1p-131F});
  BOOST_CHECK_EQUAL(answer.out[0], 0x1.8p-131);
  BOOST_CHECK_LT(answer.bound[0], 0x1p-140);
  BOOST_CHECK_GT(answer.bound[0], 0.0);
  BOOST_CHECK_LT(answer.bound[0], kInfinity);
}

BOOST_AUTO_TEST_SUITE_END()
