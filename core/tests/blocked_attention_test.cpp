/// Blocked attention against the double oracle, for every instruction set that this machine runs.
#include "kvwitness/core/blocked_attention.hpp"

#include "attention_problem.hpp"

#include <boost/test/unit_test.hpp>

#include <bit>
#include <ostream>

using namespace kvwitness::core;
namespace trace = kvwitness::trace;
using trace::RandomShape;

namespace kvwitness::core {
std::ostream& operator<<(std::ostream& out, InstructionSet set) {
  return out << (set == InstructionSet::avx512 ? "avx512" : set == InstructionSet::avx2 ? "avx2" : "baseline");
}
}  // namespace kvwitness::core

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

/// Within the bound with every instruction set, and the same bits with those that fuse.
void check(const AttentionProblem& problem) {
  const std::vector<Run> runs{problem.run(0, problem.keys)};
  std::vector<float> fused;
  for (const InstructionSet set : instruction_sets()) {
    const std::vector<float> out = attend_by_blocks(problem, runs, set).out;
    BOOST_TEST(worst_error(problem, out) <= 1.0, set);
    if (set == InstructionSet::avx2) fused = out;
    if (set == InstructionSet::avx512) BOOST_TEST(same_bits(out, fused));
  }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(blocked_attention)

BOOST_AUTO_TEST_CASE(is_softmax_attention_for_every_head_size_and_shape_of_input) {
  for (const RandomShape shape : {RandomShape::uniform, RandomShape::large_scores, RandomShape::one_hot_key,
                                  RandomShape::equal_keys, RandomShape::denormals})
    for (const std::uint32_t dim : {1U, 7U, 16U, 33U, 64U, 80U, 96U, 128U, 256U})
      BOOST_TEST_CONTEXT(trace::to_text(shape) << ", heads of " << dim) {
        check({{3, 1, dim}, 300, 1, shape});
      }
}

BOOST_AUTO_TEST_CASE(every_size_of_group_reads_its_own_head) {
  for (std::uint32_t group = 1; group <= 17; ++group)
    for (const std::uint32_t kv_heads : {1U, 3U})
      BOOST_TEST_CONTEXT("group " << group << ", " << kv_heads << " kv heads") {
        check({{group * kv_heads, kv_heads, 20}, 70, 2});
        // Heads of whole strips of registers, a query alone and several; 70 keys leave part of a tile over.
        for (const std::uint32_t queries : {1U, 3U}) check({{group * kv_heads, kv_heads, 64}, 70, queries});
      }
}

BOOST_AUTO_TEST_CASE(every_count_of_keys_around_the_ends_of_blocks) {
  for (const std::uint32_t heads : {1U, 8U}) {  // short rows and long ones
    const std::uint32_t block = keys_of_block(std::size_t{heads} * 64);
    BOOST_TEST(block == (heads == 1 ? 256U : 128U));
    for (const std::uint32_t keys : {1U, 2U, 3U, 4U, 5U, block - 1, block, block + 1, 2 * block + 3})
      BOOST_TEST_CONTEXT(keys << " keys, " << heads << " heads") {
        check({{heads, heads, 64}, keys, 1});
      }
  }
}

BOOST_AUTO_TEST_CASE(windows_sinks_caps_and_sink_logits) {
  const std::vector<float> logits{0.5F, -kInfinity, 30.0F, -4.0F};
  for (const std::uint32_t window : {0U, 1U, 9U, 256U, 260U}) {
    for (const std::uint32_t sinks : {0U, 4U, 256U, 262U}) {
      for (const bool is_plain : {true, false}) {
        AttentionProblem problem({4, 2, 24}, 290, 11, RandomShape::large_scores);
        problem.input.window = {window, window != 0};
        problem.input.sinks = sinks;
        problem.input.softcap = is_plain ? 0.0F : 20.0F;
        if (!is_plain) problem.input.sink_logits = logits;
        BOOST_TEST_CONTEXT("window " << window << ", " << sinks << " sinks, plain " << is_plain) {
          check(problem);
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(the_reference_takes_sink_logits_too) {
  const std::vector<float> logits{0.5F, -kInfinity, 30.0F, -4.0F};
  AttentionProblem problem({4, 2, 24}, 20, 3);
  problem.input.sink_logits = logits;
  std::vector<float> out(3 * problem.out_row());
  std::vector<Visited> visited(3);
  attend_online(problem.input, std::vector{problem.run(0, 20)}, out, visited);
  BOOST_TEST(worst_error(problem, out) <= 2.0);  // another order of additions than the bound is for
}

BOOST_AUTO_TEST_CASE(rows_of_every_code_are_what_they_decode_to) {
  const RowCode rotated{DType::rotated, {.bits = 4, .group = 32, .residual_bits = 0, .seed = 5}};
  const std::vector<RowCode> codes{{DType::f32}, {DType::f16}, {DType::bf16}, {DType::q8_0}, {DType::q4_0}, rotated};
  for (const RowCode& k_code : codes) {
    for (const RowCode& v_code : codes) {
      for (const std::uint32_t dim : {8U, 16U, 64U, 80U}) {
        BOOST_TEST_CONTEXT(trace::to_text(k_code.type) << " and " << trace::to_text(v_code.type) << ", " << dim) {
          const AttentionProblem coded({8, 4, dim}, 75, 1, RandomShape::uniform, k_code, v_code);
          check(coded);
          AttentionProblem decoded({8, 4, dim}, 75, 1);
          decoded.k = coded.k;
          decoded.v = coded.v;
          decoded.encode();
          for (const InstructionSet set : instruction_sets())
            BOOST_TEST(same_bits(attend_by_blocks(coded, {coded.run(0, 75)}, set).out,
                                 attend_by_blocks(decoded, {decoded.run(0, 75)}, set).out));
        }
      }
    }
  }
}

/// Codes up to a border and f32 from there on, as a store keeps its newest rows.
BOOST_AUTO_TEST_CASE(where_codes_begin_changes_no_bit) {
  const AttentionProblem coded({4, 2, 32}, 270, 1, RandomShape::uniform, {DType::f16}, {DType::q8_0});
  AttentionProblem decoded({4, 2, 32}, 270, 1);
  decoded.k = coded.k;
  decoded.v = coded.v;
  decoded.encode();
  for (const InstructionSet set : instruction_sets()) {
    const std::vector<float> whole = attend_by_blocks(decoded, {decoded.run(0, 270)}, set).out;
    for (Position border = 0; border <= 270; border += border < 250 ? 10 : 1) {
      const std::vector<Run> runs{coded.run(0, border), decoded.run(border, 270)};
      BOOST_TEST(same_bits(attend_by_blocks(coded, runs, set).out, whole));
    }
  }
}

/// All bit patterns of f16 and bf16, and all codes of q8_0 with scales of every kind, decode as core/codes.hpp does.
BOOST_AUTO_TEST_CASE(every_half_and_every_code_is_read_exactly) {
  for (const DType type : {DType::f16, DType::bf16, DType::q8_0}) {
    AttentionProblem problem({1, 1, 256}, 1, 1, RandomShape::uniform, {}, {type});
    std::vector<float> expected(256);
    for (std::uint32_t high = 0; high < 256; ++high) {
      // One key has all the weight, so that the output is its V row.
      for (std::size_t i = 0; i < problem.v_bytes.size(); ++i)
        problem.v_bytes[i] = static_cast<std::byte>(type == DType::q8_0 ? (i % 34 == 0   ? high * 37
                                                                           : i % 34 == 1 ? high
                                                                                         : i + high)
                                                                        : (i % 2 == 0 ? i / 2 : high));
      decode_row(problem.v_code, problem.v_bytes, expected);
      for (const InstructionSet set : instruction_sets()) {
        const std::vector<float> out = attend_by_blocks(problem, {problem.run(0, 1)}, set).out;
        bool is_same = true;
        // A sum begins at +0, so that a zero loses its sign.
        for (std::size_t d = 0; d < 256; ++d)
          is_same &= out[d] == expected[d] || (out[d] != out[d] && expected[d] != expected[d]);
        BOOST_TEST(is_same, set << " reads " << trace::to_text(type) << " " << high);
      }
    }
  }
}

// ---- what no arithmetic is defined by -------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(without_a_visible_key_the_row_is_zero) {
  const std::vector<float> logits{kNan, 1.0F};
  AttentionProblem problem({2, 2, 4}, 6, 1);
  for (const bool has_sinks : {false, true}) {
    if (has_sinks) problem.input.sink_logits = logits;
    for (const std::vector<Run>& runs : {std::vector<Run>{}, std::vector<Run>{problem.run(2, 2)}}) {
      for (const InstructionSet set : instruction_sets()) {
        const Attended result = attend_by_blocks(problem, runs, set);
        for (const float value : result.out) BOOST_TEST(value == 0.0F);
        BOOST_TEST(result.visited[0].visited == 0U);
        BOOST_TEST(result.visited[0].first_key == trace::kNoPosition);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(infinite_scores) {
  for (const InstructionSet set : instruction_sets()) {
    AttentionProblem problem({1, 1, 2}, 400, 1);
    problem.q[0] = 1, problem.q[1] = 0;
    for (Position key = 0; key < 400; ++key) problem.k[key * 2] = -kInfinity, problem.k[key * 2 + 1] = 0;
    problem.encode();
    for (const float value : attend_by_blocks(problem, {problem.run(0, 400)}, set).out) BOOST_TEST(value == 0.0F);
    // One key with a score gets all the weight, wherever it stands; of those at +inf each gets the same.
    for (const Position key : {0U, 255U, 256U, 399U}) {
      for (const float score : {0.5F, kInfinity}) {
        AttentionProblem one({1, 1, 2}, 400, 1);
        one.q = problem.q;
        one.k = problem.k;
        one.k[key * 2] = score;
        one.encode();
        const Attended result = attend_by_blocks(one, {one.run(0, 400)}, set);
        BOOST_TEST(result.out[0] == one.v[key * 2]);
        BOOST_TEST(result.out[1] == one.v[key * 2 + 1]);
      }
    }
    AttentionProblem shared({1, 1, 1}, 300, 1);
    shared.q = {1};
    shared.input.q = shared.q;
    std::fill(shared.v.begin(), shared.v.end(), 8.0F);
    for (const Position key : {3U, 280U}) shared.k[key] = kInfinity, shared.v[key] = key == 3 ? 1.0F : 3.0F;
    shared.encode();
    BOOST_TEST(attend_by_blocks(shared, {shared.run(0, 300)}, set).out[0] == 2.0F);
  }
}

BOOST_AUTO_TEST_CASE(a_nan_reaches_the_heads_and_queries_that_read_it_and_no_other) {
  for (const bool in_key : {true, false}) {
    for (const Position at : {2U, 70U, 255U}) {
      AttentionProblem problem({4, 2, 4}, 270, 270);
      problem.input.window = {3, true};
      std::vector<std::vector<float>> clean;
      for (const InstructionSet set : instruction_sets())
        clean.push_back(attend_by_blocks(problem, {problem.run(0, 270)}, set).out);
      (in_key ? problem.k : problem.v)[at * problem.row() + 4] =
          std::bit_cast<float>(0xffc12345U);  // kv head 1, and not the NaN of `out`
      problem.encode();
      for (std::size_t s = 0; s < clean.size(); ++s) {
        const InstructionSet set = instruction_sets()[s];
        const std::vector<float> out = attend_by_blocks(problem, {problem.run(0, 270)}, set).out;
        bool is_right = true;
        for (std::size_t i = 0; i < out.size(); ++i) {
          const std::size_t query = i / 16;
          // Of V, one element alone.
          const bool reads = query >= at && query < at + 3 && i % 16 >= 8 && (in_key || i % 4 == 0);
          is_right &= std::bit_cast<std::uint32_t>(out[i]) == std::bit_cast<std::uint32_t>(reads ? kNan : clean[s][i]);
        }
        BOOST_TEST(is_right, set << " reads a NaN at " << at);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(a_nan_query_or_sink_is_not_hidden) {
  const std::vector<float> logits{kNan};
  for (const InstructionSet set : instruction_sets()) {
    AttentionProblem problem({1, 1, 2}, 3, 1);
    problem.q[0] = kNan;
    std::fill(problem.k.begin(), problem.k.end(), 0.0F);
    problem.encode();
    for (const float value : attend_by_blocks(problem, {problem.run(0, 3)}, set).out) BOOST_TEST(std::isnan(value));
    AttentionProblem sunk({1, 1, 2}, 3, 1);
    sunk.input.sink_logits = logits;
    for (const float value : attend_by_blocks(sunk, {sunk.run(0, 3)}, set).out) BOOST_TEST(std::isnan(value));
  }
}

BOOST_AUTO_TEST_CASE(the_last_positions_do_not_overflow) {
  AttentionProblem problem({1, 1, 2}, 4, 1);
  problem.input.first_query = trace::kNoPosition - 1;
  problem.input.window = {3, true};
  Run run = problem.run(0, 4);
  run.first = trace::kNoPosition - 4;
  const Attended result = attend_by_blocks(problem, {run}, widest_instruction_set());
  BOOST_TEST(result.visited[0].visited == 3U);
  BOOST_TEST(result.visited[0].first_key == trace::kNoPosition - 3);
  BOOST_TEST(result.visited[0].last_key == trace::kNoPosition - 1);
  for (const float value : result.out) BOOST_TEST(std::isfinite(value));
}

BOOST_AUTO_TEST_SUITE_END()
