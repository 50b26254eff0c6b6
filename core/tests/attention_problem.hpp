/// One call of an attention kernel with its data, and what it must give: two-pass softmax in double, written here from
/// the definition, with a bound for what f32 arithmetic may lose.
#pragma once

#include "kvwitness/core/blocked_attention.hpp"
#include "kvwitness/core/codes.hpp"
#include "kvwitness/trace/rows.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

namespace kvwitness::core {

inline constexpr double kUnit = 0x1p-24;  ///< rounding unit of f32

struct Heads {
  std::uint32_t q_heads = 4;
  std::uint32_t kv_heads = 2;
  std::uint32_t head_dim = 16;
};

/// Keys are positions 0 .. keys-1, the queries the last of them.
struct AttentionProblem {
  AttentionInput input;
  std::uint32_t keys = 0;
  RowCode k_code, v_code;
  std::vector<float> q, k, v;  ///< as the kernel sees them: coded and decoded
  std::vector<std::byte> k_bytes, v_bytes;
  mutable std::vector<std::byte> room;

  AttentionProblem(Heads heads, std::uint32_t key_count, std::uint32_t queries,
                   trace::RandomShape shape = trace::RandomShape::uniform, RowCode k_as = {}, RowCode v_as = {})
      : keys(key_count), k_code(k_as), v_code(v_as) {
    input.q_heads = heads.q_heads;
    input.kv_heads = heads.kv_heads;
    input.head_dim = heads.head_dim;
    input.count = queries;
    input.first_query = key_count - queries;
    input.score_scale = static_cast<float>(1 / std::sqrt(static_cast<double>(heads.head_dim)));
    q = rows(trace::Plane::q, queries, out_row(), shape);
    k = rows(trace::Plane::k, key_count, row(), shape);
    v = rows(trace::Plane::v, key_count, row(), shape);
    input.q = q;
    encode();
  }
  AttentionProblem(const AttentionProblem&) = delete;
  AttentionProblem& operator=(const AttentionProblem&) = delete;

  [[nodiscard]] std::size_t row() const { return std::size_t{input.kv_heads} * input.head_dim; }
  [[nodiscard]] std::size_t out_row() const { return std::size_t{input.q_heads} * input.head_dim; }
  [[nodiscard]] std::size_t k_row_bytes() const { return row_bytes(k_code, row()); }
  [[nodiscard]] std::size_t v_row_bytes() const { return row_bytes(v_code, row()); }

  static std::vector<float> rows(trace::Plane plane, std::uint32_t count, std::size_t elements,
                                 trace::RandomShape shape) {
    trace::StreamSpec stream{.kind = trace::StreamKind::random, .shape = shape, .seed = 7};
    std::vector<float> values(count * elements);
    for (std::uint32_t i = 0; i < count; ++i)
      trace::fill_row(stream, {plane, 0, i}, std::span(values).subspan(i * elements, elements));
    return values;
  }

  /// After k or v were changed.
  void encode() {
    const auto code_rows = [&](const RowCode& code, std::vector<float>& values, std::vector<std::byte>& bytes) {
      const std::size_t size = row_bytes(code, row());
      bytes.resize(keys * size);
      for (std::uint32_t i = 0; i < keys; ++i) {
        const auto row_values = std::span(values).subspan(i * row(), row());
        const auto row_code = std::span(bytes).subspan(i * size, size);
        encode_row(code, row_values, row_code);
        decode_row(code, row_code, row_values);
      }
    };
    code_rows(k_code, k, k_bytes);
    code_rows(v_code, v, v_bytes);
  }

  /// Rows [from, to) as one run.
  [[nodiscard]] Run run(Position from, Position to) const {
    Run run{.first = from, .count = to - from, .slot = from};
    run.k = k_bytes.data() + from * k_row_bytes();
    run.v = v_bytes.data() + from * v_row_bytes();
    run.k_stride_bytes = k_row_bytes();
    run.v_stride_bytes = v_row_bytes();
    run.k_code = k_code.type == DType::f32 ? nullptr : &k_code;
    run.v_code = v_code.type == DType::f32 ? nullptr : &v_code;
    return run;
  }

  [[nodiscard]] bool sees(std::uint32_t query, Position key) const {
    const Position position = input.first_query + query;
    return key <= position && (key < input.sinks || key >= trace::window_low(input.window, position));
  }
};

struct Attended {
  std::vector<float> out;
  std::vector<Visited> visited;
};

inline bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

/// By blocks, with room of exactly the size asked for.
inline Attended attend_by_blocks(const AttentionProblem& problem, const std::vector<Run>& runs, InstructionSet set,
                                 bool rows_in_cache) {
  Attended result{std::vector<float>(problem.out_row() * problem.input.count, -99.0F),
                  std::vector<Visited>(problem.input.count)};
  AttentionInput input = problem.input;
  problem.room.resize(block_room_bytes(input.q_heads, input.kv_heads, input.head_dim, input.count));
  std::fill(problem.room.begin(), problem.room.end(),
            std::byte{0xff});  // NaN, wherever it is read before it is written
  input.block_room = problem.room;
  input.rows_in_cache = rows_in_cache;
  attend_blocked(input, runs, result.out, result.visited, set);
  return result;
}

/// The same whether rows are expected in a cache or not.
inline Attended attend_by_blocks(const AttentionProblem& problem, const std::vector<Run>& runs, InstructionSet set) {
  Attended result = attend_by_blocks(problem, runs, set, false);
  const Attended in_cache = attend_by_blocks(problem, runs, set, true);
  BOOST_TEST_REQUIRE(same_bits(result.out, in_cache.out));
  return result;
}

inline std::vector<InstructionSet> instruction_sets() {
  std::vector<InstructionSet> sets;
  for (const InstructionSet set : {InstructionSet::baseline, InstructionSet::avx2, InstructionSet::avx512})
    if (runs(set)) sets.push_back(set);
  return sets;
}

/// Softmax of one query head, and how far a kernel that is right may be off.
struct ExpectedHead {
  std::vector<double> out;
  std::vector<double> bound;
};

/// A key's score in double, with a bound on the error of the f32 score: 16 partial sums of ceil(dim / 16) products, 4
/// folds and the scale round at most ceil(dim / 16) + 6 times; a cap has slope at most 1 and rounds by 8 units more.
/// Products may fall below the normal numbers, where each operation is off by the least denormal at most.
struct ExpectedScore {
  double score = 0;
  double error = 0;
};
inline ExpectedScore expected_score(const AttentionProblem& p, std::uint32_t query, std::uint32_t head, Position key) {
  const std::size_t dim = p.input.head_dim;
  const std::size_t kv = head / (p.input.q_heads / p.input.kv_heads);
  double dot = 0;
  double magnitude = 0;
  for (std::size_t d = 0; d < dim; ++d) {
    const double product =
        static_cast<double>(p.q[query * p.out_row() + head * dim + d]) * p.k[key * p.row() + kv * dim + d];
    dot += product;
    magnitude += std::abs(product);
  }
  const double scale = p.input.score_scale;
  ExpectedScore s{dot * scale, 0};
  s.error = (std::ceil(static_cast<double>(dim) / 16) + 6) * kUnit * magnitude * scale +
            (2 * static_cast<double>(dim) + 1) * 0x1p-149 * (scale + 1);
  if (p.input.softcap > 0) {
    const double cap = p.input.softcap;
    s.score = cap * std::tanh(s.score / cap);
    s.error += 8 * kUnit * std::abs(s.score);
  }
  return s;
}

/// Each weight is e^(s - max) with the error of s and of max, one rounding of their difference, and at most 4 units of
/// exp; each block that raises the maximum multiplies it by one more exp of this kind (of differences that add up to
/// s - max) and rounds. Numerator and denominator then round once a key and twice a block. Weights below 2^-126 are 0.
inline ExpectedHead expected_head(const AttentionProblem& p, std::uint32_t query, std::uint32_t head) {
  const std::size_t dim = p.input.head_dim;
  const std::size_t kv = head / (p.input.q_heads / p.input.kv_heads);
  std::vector<Position> keys;
  std::vector<ExpectedScore> scores;
  double top = p.input.sink_logits.empty() ? -std::numeric_limits<double>::infinity() : p.input.sink_logits[head];
  double score_error = 0;
  for (Position key = 0; key < p.keys; ++key) {
    if (!p.sees(query, key)) continue;
    keys.push_back(key);
    scores.push_back(expected_score(p, query, head, key));
    top = std::max(top, scores.back().score);
    score_error = std::max(score_error, scores.back().error);
  }
  ExpectedHead r{std::vector<double>(dim), std::vector<double>(dim)};
  if (keys.empty()) return r;
  const auto count = static_cast<double>(keys.size());
  const double blocks = std::ceil(count / keys_of_block(p.row())) + 3;  // cut at both ends, and at the sinks
  const double roundings = (count + 2 * blocks + 2) * kUnit;
  double sum = 0;
  double sum_error = 0;
  std::vector<double> error(dim);
  const auto add = [&](double score, const float* values) {
    const double weight = std::exp(score - top);
    const double off =
        weight * std::expm1(2 * score_error + (top - score) * kUnit + 5 * blocks * kUnit + roundings) + 0x1p-126;
    sum += weight;
    sum_error += off;
    for (std::size_t d = 0; values != nullptr && d < dim; ++d) {
      r.out[d] += weight * values[d];
      error[d] += off * std::abs(static_cast<double>(values[d])) + 0x1p-148;
    }
  };
  for (std::size_t i = 0; i < keys.size(); ++i) add(scores[i].score, p.v.data() + keys[i] * p.row() + kv * dim);
  if (!p.input.sink_logits.empty() && std::isfinite(p.input.sink_logits[head])) add(p.input.sink_logits[head], nullptr);
  for (std::size_t d = 0; d < dim; ++d) {
    r.out[d] /= sum;
    const double quotient = (error[d] + std::abs(r.out[d]) * sum_error) / (sum - sum_error);
    r.bound[d] = quotient + 2 * kUnit * std::abs(r.out[d]) + 0x1p-149;
  }
  return r;
}

/// The largest error of all outputs in units of its bound; infinite where an output is not finite.
inline double worst_error(const AttentionProblem& problem, const std::vector<float>& out) {
  double worst = 0;
  for (std::uint32_t query = 0; query < problem.input.count; ++query) {
    for (std::uint32_t head = 0; head < problem.input.q_heads; ++head) {
      const ExpectedHead expected = expected_head(problem, query, head);
      for (std::size_t d = 0; d < problem.input.head_dim; ++d) {
        const double value = out[query * problem.out_row() + head * problem.input.head_dim + d];
        if (!std::isfinite(value)) return std::numeric_limits<double>::infinity();
        const double error = std::abs(value - expected.out[d]);
        worst = std::max(worst, expected.bound[d] > 0 ? error / expected.bound[d] : (error == 0 ? 0.0 : 2.0));
      }
    }
  }
  return worst;
}

}  // namespace kvwitness::core
