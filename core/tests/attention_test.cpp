/// The online kernel against two-pass softmax in double precision, written here from the definition.
#include "kvwitness/core/attention.hpp"

#include "kvwitness/trace/rows.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

using namespace kvwitness::core;
namespace trace = kvwitness::trace;

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr double kUnit = 0x1p-24;  ///< rounding unit of f32

/// Shapes and data of one call. Keys are positions 0 .. keys-1.
struct Problem {
  AttentionInput input;
  std::uint32_t keys = 0;
  std::vector<float> q, k, v;

  Problem(std::uint32_t q_heads, std::uint32_t kv_heads, std::uint32_t head_dim, std::uint32_t key_count,
          std::uint32_t queries, trace::RandomShape shape = trace::RandomShape::uniform)
      : keys(key_count) {
    input.q_heads = q_heads;
    input.kv_heads = kv_heads;
    input.head_dim = head_dim;
    input.count = queries;
    input.first_query = key_count - queries;
    input.score_scale = static_cast<float>(1 / std::sqrt(static_cast<double>(head_dim)));
    q = rows(trace::Plane::q, queries, std::size_t{q_heads} * head_dim, shape);
    k = rows(trace::Plane::k, key_count, row(), shape);
    v = rows(trace::Plane::v, key_count, row(), shape);
    input.q = q;
  }

  [[nodiscard]] std::size_t row() const { return std::size_t{input.kv_heads} * input.head_dim; }
  [[nodiscard]] std::size_t out_row() const { return std::size_t{input.q_heads} * input.head_dim; }

  static std::vector<float> rows(trace::Plane plane, std::uint32_t count, std::size_t elements,
                                 trace::RandomShape shape) {
    trace::StreamSpec stream{.kind = trace::StreamKind::random, .shape = shape, .seed = 7};
    std::vector<float> values(count * elements);
    for (std::uint32_t i = 0; i < count; ++i)
      trace::fill_row(stream, {plane, 0, i}, std::span(values).subspan(i * elements, elements));
    return values;
  }

  /// Rows [from, to) as one run.
  [[nodiscard]] Run run(Position from, Position to) const {
    const std::size_t bytes = row() * sizeof(float);
    return {from,
            to - from,
            0,
            reinterpret_cast<const std::byte*>(k.data() + from * row()),
            reinterpret_cast<const std::byte*>(v.data() + from * row()),
            bytes,
            bytes};
  }
};

struct Result {
  std::vector<float> out;
  std::vector<Visited> visited;
};

Result attend(const Problem& problem, const std::vector<Run>& runs) {
  Result result{std::vector<float>(problem.out_row() * problem.input.count, -99.0F),
                std::vector<Visited>(problem.input.count)};
  attend_online(problem.input, runs, result.out, result.visited);
  return result;
}

/// Two-pass softmax of one query head in double, with a bound for what f32 arithmetic may lose.
struct Reference {
  std::vector<double> out;
  std::vector<double> bound;
};

Reference reference(const Problem& p, std::uint32_t query, std::uint32_t head) {
  const std::size_t dim = p.input.head_dim;
  const std::size_t kv = head / (p.input.q_heads / p.input.kv_heads);
  const Position position = p.input.first_query + query;
  const std::int64_t low =
      p.input.window.limited ? std::max<std::int64_t>(0, std::int64_t{position} - p.input.window.keys + 1) : 0;
  std::vector<double> scores;
  double score_error = 0;
  for (Position key = static_cast<Position>(low); key <= position && key < p.keys; ++key) {
    double dot = 0;
    double magnitude = 0;
    for (std::size_t d = 0; d < dim; ++d) {
      const double product =
          static_cast<double>(p.q[query * p.out_row() + head * dim + d]) * p.k[key * p.row() + kv * dim + d];
      dot += product;
      magnitude += std::abs(product);
    }
    double score = dot * static_cast<double>(p.input.score_scale);
    // Of a sum of dim products, its scaling and the cap, whose slope is at most 1.
    double error = static_cast<double>(dim + 4) * kUnit * magnitude * static_cast<double>(p.input.score_scale);
    if (p.input.softcap > 0) {
      const double cap = p.input.softcap;
      score = cap * std::tanh(score / cap);
      error += 8 * kUnit * std::abs(score);
    }
    scores.push_back(score);
    score_error = std::max(score_error, error + kUnit * std::abs(score));
  }
  Reference r{std::vector<double>(dim), std::vector<double>(dim)};
  if (scores.empty()) return r;
  const double max = *std::max_element(scores.begin(), scores.end());
  double sum = 0;
  std::vector<double> magnitude(dim);
  for (std::size_t i = 0; i < scores.size(); ++i) {
    const double weight = std::exp(scores[i] - max);
    sum += weight;
    for (std::size_t d = 0; d < dim; ++d) {
      const double value = p.v[(static_cast<std::size_t>(low) + i) * p.row() + kv * dim + d];
      r.out[d] += weight * value;
      magnitude[d] += weight * std::abs(value);
    }
  }
  // Weights move by at most twice the scores' error; each key adds a few roundings to numerator and denominator, and
  // denormal results are off by their own unit.
  const double relative = std::expm1(4 * score_error) + (4.0 * static_cast<double>(scores.size()) + 8) * kUnit;
  for (std::size_t d = 0; d < dim; ++d) {
    r.out[d] /= sum;
    r.bound[d] = relative * magnitude[d] / sum + static_cast<double>(scores.size() + 2) * 0x1p-149;
  }
  return r;
}

void check_against_reference(const Problem& problem, const Result& result) {
  double worst = 0;
  for (std::uint32_t query = 0; query < problem.input.count; ++query) {
    for (std::uint32_t head = 0; head < problem.input.q_heads; ++head) {
      const Reference expected = reference(problem, query, head);
      for (std::size_t d = 0; d < problem.input.head_dim; ++d) {
        const double value = result.out[query * problem.out_row() + head * problem.input.head_dim + d];
        const double error = std::abs(value - expected.out[d]);
        BOOST_REQUIRE(std::isfinite(value));
        worst = std::max(worst, expected.bound[d] > 0 ? error / expected.bound[d] : error);
      }
    }
  }
  BOOST_TEST(worst <= 1.0);
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(attention)

BOOST_AUTO_TEST_CASE(equals_two_pass_softmax_for_every_shape_of_input) {
  using trace::RandomShape;
  for (const RandomShape shape : {RandomShape::uniform, RandomShape::large_scores, RandomShape::one_hot_key,
                                  RandomShape::equal_keys, RandomShape::denormals}) {
    BOOST_TEST_CONTEXT(trace::to_text(shape)) {
      for (const std::uint32_t dim : {1U, 7U, 8U, 64U}) {
        const Problem problem(4, 2, dim, 50, 1, shape);
        check_against_reference(problem, attend(problem, {problem.run(0, 50)}));
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(query_heads_read_their_own_kv_head) {
  for (const auto& [q_heads, kv_heads] : {std::pair{1U, 1U}, {6U, 2U}, {6U, 3U}, {8U, 1U}, {130U, 65U}}) {
    const Problem problem(q_heads, kv_heads, 5, 9, 2);
    check_against_reference(problem, attend(problem, {problem.run(0, 9)}));
  }
}

BOOST_AUTO_TEST_CASE(a_chunk_sees_per_row_what_its_window_allows) {
  for (std::uint32_t keys = 0; keys <= 12; ++keys) {
    Problem problem(2, 1, 4, 12, 5);
    problem.input.window = {keys, keys != 0};
    const Result result = attend(problem, {problem.run(0, 12)});
    check_against_reference(problem, result);
    for (std::uint32_t i = 0; i < 5; ++i) {
      const Position query = 7 + i;
      const std::uint32_t expected = keys == 0 ? query + 1 : std::min(query + 1, keys);
      BOOST_TEST(result.visited[i].visited == expected);
      BOOST_TEST(result.visited[i].rows_read == expected);
      BOOST_TEST(result.visited[i].last_key == query);
      BOOST_TEST(result.visited[i].first_key == query + 1 - expected);
    }
  }
}

BOOST_AUTO_TEST_CASE(softcap_bounds_the_scores) {
  Problem problem(4, 4, 16, 20, 1, trace::RandomShape::large_scores);
  problem.input.softcap = 3;
  check_against_reference(problem, attend(problem, {problem.run(0, 20)}));
}

BOOST_AUTO_TEST_CASE(where_runs_end_changes_no_bit) {
  Problem problem(4, 2, 24, 17, 3, trace::RandomShape::one_hot_key);
  problem.input.window = {9, true};
  const Result whole = attend(problem, {problem.run(0, 17)});
  for (Position cut = 0; cut <= 17; ++cut)
    BOOST_TEST(same_bits(attend(problem, {problem.run(0, cut), problem.run(cut, 17)}).out, whole.out));
  std::vector<Run> rows;
  for (Position p = 0; p < 17; ++p) rows.push_back(problem.run(p, p + 1));
  BOOST_TEST(same_bits(attend(problem, rows).out, whole.out));

  // The same rows at another stride and alignment.
  Problem moved = problem;
  std::vector<float> wide(17 * (problem.row() + 3) + 1);
  for (Position p = 0; p < 17; ++p)
    std::copy_n(problem.k.data() + p * problem.row(), problem.row(), wide.data() + 1 + p * (problem.row() + 3));
  Run run = moved.run(0, 17);
  run.k = reinterpret_cast<const std::byte*>(wide.data() + 1);
  run.k_stride_bytes = (problem.row() + 3) * sizeof(float);
  BOOST_TEST(same_bits(attend(problem, {run}).out, whole.out));
}

BOOST_AUTO_TEST_CASE(without_a_visible_key_the_row_is_zero) {
  const Problem problem(2, 2, 4, 6, 1);
  for (const std::vector<Run>& runs : {std::vector<Run>{}, std::vector<Run>{problem.run(2, 2)}}) {
    const Result result = attend(problem, runs);
    for (const float value : result.out) BOOST_TEST(value == 0.0F);
    BOOST_TEST(result.visited[0].visited == 0U);
    BOOST_TEST(result.visited[0].first_key == trace::kNoPosition);
    BOOST_TEST(result.visited[0].last_key == trace::kNoPosition);
  }
}

BOOST_AUTO_TEST_CASE(scores_of_minus_infinity_weigh_nothing) {
  Problem problem(1, 1, 2, 4, 1);
  problem.q = {1, 0};
  problem.input.q = problem.q;
  for (Position key = 0; key < 4; ++key) problem.k[key * 2] = -kInfinity, problem.k[key * 2 + 1] = 0;
  for (const float value : attend(problem, {problem.run(0, 4)}).out) BOOST_TEST(value == 0.0F);
  // One key with a score gets all the weight, wherever it stands.
  for (Position key = 0; key < 4; ++key) {
    Problem one = problem;
    one.input.q = one.q;
    one.k[key * 2] = 0.5F;
    const Result result = attend(one, {one.run(0, 4)});
    BOOST_TEST(result.out[0] == one.v[key * 2]);
    BOOST_TEST(result.out[1] == one.v[key * 2 + 1]);
  }
}

BOOST_AUTO_TEST_CASE(scores_of_plus_infinity_share_the_weight) {
  Problem problem(1, 1, 1, 4, 1);
  problem.q = {1};
  problem.input.q = problem.q;
  problem.k = {1, kInfinity, 2, kInfinity};
  problem.v = {8, 1, 8, 3};
  BOOST_TEST(attend(problem, {problem.run(0, 4)}).out[0] == 2.0F);
}

BOOST_AUTO_TEST_CASE(a_nan_reaches_the_heads_that_read_it_and_no_other) {
  for (const bool in_key : {true, false}) {
    Problem problem(4, 2, 4, 6, 2);  // queries at 4 and 5
    problem.input.window = {3, true};
    const Result clean = attend(problem, {problem.run(0, 6)});
    std::vector<float>& plane = in_key ? problem.k : problem.v;
    plane[2 * problem.row() + 4] = kNan;  // position 2, kv head 1
    const Result result = attend(problem, {problem.run(0, 6)});
    for (std::size_t head = 0; head < 4; ++head) {
      // Query 4 sees 2, query 5 does not.
      const bool first_is_nan = std::isnan(result.out[head * 4]);
      BOOST_TEST(first_is_nan == (head >= 2));
    }
    BOOST_TEST(std::equal(result.out.begin() + 16, result.out.end(), clean.out.begin() + 16));
    BOOST_TEST(std::equal(result.out.begin(), result.out.begin() + 8, clean.out.begin()));
  }
}

BOOST_AUTO_TEST_CASE(a_nan_query_is_not_hidden_by_a_row_of_zeros) {
  Problem problem(1, 1, 2, 3, 1);
  problem.q = {kNan, 0};
  problem.input.q = problem.q;
  for (const float value : attend(problem, {problem.run(0, 3)}).out) BOOST_TEST(std::isnan(value));
}

BOOST_AUTO_TEST_CASE(rows_outside_the_window_are_never_touched) {
  Problem problem(2, 1, 4, 10, 1);
  problem.input.window = {3, true};
  for (std::size_t i = 0; i < 7 * problem.row(); ++i) problem.k[i] = problem.v[i] = kNan;
  check_against_reference(problem, attend(problem, {problem.run(0, 10)}));
}

BOOST_AUTO_TEST_CASE(the_last_positions_do_not_overflow) {
  Problem problem(1, 1, 2, 4, 1);
  problem.input.first_query = trace::kNoPosition - 1;
  problem.input.window = {3, true};
  Run run = problem.run(0, 4);
  run.first = trace::kNoPosition - 4;
  const Result result = attend(problem, {run});
  BOOST_TEST(result.visited[0].visited == 3U);
  BOOST_TEST(result.visited[0].first_key == trace::kNoPosition - 3);
  BOOST_TEST(result.visited[0].last_key == trace::kNoPosition - 1);
}

BOOST_AUTO_TEST_CASE(the_path_asks_for_what_its_queries_see) {
  const AttentionPath path;
  BOOST_TEST((path.key_range(0, {4, true}, 10, 1) == Range{7, 11}));
  BOOST_TEST((path.key_range(0, {4, true}, 10, 3) == Range{7, 13}));
  BOOST_TEST((path.key_range(0, {4, true}, 2, 3) == Range{0, 5}));
  BOOST_TEST((path.key_range(0, {}, 10, 2) == Range{0, 12}));
}

BOOST_AUTO_TEST_SUITE_END()
