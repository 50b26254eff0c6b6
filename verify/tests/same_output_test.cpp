#include "trace_builder.hpp"

#include <boost/test/unit_test.hpp>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

using namespace kvwitness;
using namespace kvwitness::verify;
using namespace kvwitness::verify::testing;

namespace {

constexpr std::string_view kRule = "same-output";
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

/// Outputs of two stores: `left` and `right` are rows of ordinals 0, 1, ...
struct Outputs : TraceBuilder {
  explicit Outputs(const trace::Tolerance& tolerance = {}) {
    ring({.capacity = 4, .window = 4});
    ring({.capacity = 4, .window = 4});
    trace::RuleRequest request;
    request.rule = kRule;
    request.left = "sut.out";
    request.right = "ref.out";
    request.tolerance = tolerance;
    claims.rules.push_back(request);
  }
  void left(std::uint32_t ordinal, const std::vector<float>& row) {
    record({0, 0, 0}, "sut.out", trace::Plane::out, ordinal, ordinal, row);
  }
  void right(std::uint32_t ordinal, const std::vector<float>& row) {
    record({1, 0, 0}, "ref.out", trace::Plane::out, ordinal, ordinal, row);
  }
  [[nodiscard]] std::string status() const { return std::string(to_text(status_of(kRule))); }
};

std::string compared(const trace::Tolerance& tolerance, const std::vector<float>& left,
                     const std::vector<float>& right) {
  Outputs trace(tolerance);
  trace.left(0, left);
  trace.right(0, right);
  return trace.status();
}

trace::Tolerance by(trace::Comparison how) {
  trace::Tolerance tolerance;
  tolerance.by = how;
  return tolerance;
}

/// Two stores with the same rows, read back and compared by step 0.
struct States : TraceBuilder {
  States() {
    ring({.capacity = 4, .window = 4});
    ring({.capacity = 4, .window = 4});
    trace::RuleRequest request;
    request.rule = kRule;
    request.left = "sut";
    request.right = "ref";
    request.at_step = true;
    claims.rules.push_back(request);
  }
  void state(StoreIndex store, std::uint64_t k, std::uint64_t v, Range range = {0, 3}) {
    trace::StateDigest digest{};
    digest.k_digest = k;
    digest.v_digest = v;
    digest.from = range.from;
    digest.to = range.to;
    digest.reason = store == 0 ? trace::DigestReason::compare_left : trace::DigestReason::compare_right;
    emit({store, 0, 0}, digest);
  }
  [[nodiscard]] std::string status() const { return std::string(to_text(status_of(kRule))); }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(same_output)

BOOST_AUTO_TEST_CASE(rows_are_paired_by_ordinal_in_any_order) {
  Outputs trace;
  trace.left(0, {1, 2});
  trace.left(1, {3, 4});
  trace.right(1, {3, 4});
  trace.right(0, {1, 2});
  BOOST_CHECK_EQUAL(trace.status(), "pass");
  BOOST_CHECK_EQUAL(trace.verdict_of(kRule).met, 2U);
}

BOOST_AUTO_TEST_CASE(an_ordinal_recorded_again_is_paired_in_turn) {
  Outputs trace;
  trace.left(0, {1});
  trace.left(0, {2});
  trace.right(0, {1});
  trace.right(0, {2});
  BOOST_CHECK_EQUAL(trace.status(), "pass");
}

BOOST_AUTO_TEST_CASE(one_bit_fails) {
  const float next = std::nextafter(1.0F, 2.0F);
  BOOST_CHECK_EQUAL(compared({}, {1, 1}, {1, 1}), "pass");
  BOOST_CHECK_EQUAL(compared({}, {1, 1}, {1, next}), "fail");
  BOOST_CHECK_EQUAL(compared({}, {0.0F}, {-0.0F}), "fail");
}

BOOST_AUTO_TEST_CASE(names_the_element_and_both_rows) {
  Outputs trace;
  trace.left(0, {1, 2});
  trace.right(0, {1, 3});
  const RuleVerdict verdict = trace.verdict_of(kRule);
  BOOST_REQUIRE_EQUAL(verdict.shown.size(), 1U);
  BOOST_CHECK(verdict.shown.front().observed.starts_with("element 1: 2 and 3 "));
  BOOST_CHECK_EQUAL(verdict.shown.front().cause, trace.index_of(trace::EventType::TensorRecorded, 0));
  BOOST_CHECK_EQUAL(verdict.shown.front().event, trace.index_of(trace::EventType::TensorRecorded, 1));
}

BOOST_AUTO_TEST_CASE(ulps_are_counted_across_zero) {
  trace::Tolerance tolerance = by(trace::Comparison::max_ulp);
  tolerance.max_ulp = 2;
  const float least = std::numeric_limits<float>::denorm_min();
  BOOST_CHECK_EQUAL(compared(tolerance, {least}, {-least}), "pass");
  BOOST_CHECK_EQUAL(compared(tolerance, {2 * least}, {-least}), "fail");
}

BOOST_AUTO_TEST_CASE(distance_is_absolute_and_relative_to_the_right) {
  trace::Tolerance tolerance = by(trace::Comparison::abs_rel);
  tolerance.abs = 0.5;
  tolerance.rel = 0.25;
  BOOST_CHECK_EQUAL(compared(tolerance, {5.5F}, {4}), "pass");
  BOOST_CHECK_EQUAL(compared(tolerance, {5.625F}, {4}), "fail");
  const float infinity = std::numeric_limits<float>::infinity();
  BOOST_CHECK_EQUAL(compared(tolerance, {infinity}, {infinity}), "pass");
  BOOST_CHECK_EQUAL(compared(tolerance, {1}, {infinity}), "fail");
}

BOOST_AUTO_TEST_CASE(cosine_is_of_the_whole_row) {
  trace::Tolerance tolerance = by(trace::Comparison::cosine_min);
  tolerance.cosine_min = 0.8;
  BOOST_CHECK_EQUAL(compared(tolerance, {1, 0}, {4, 3}), "pass");  // cosine 0.8
  BOOST_CHECK_EQUAL(compared(tolerance, {1, 0}, {3, 4}), "fail");  // cosine 0.6
  BOOST_CHECK_EQUAL(compared(tolerance, {0, 0}, {0, 0}), "pass");
  BOOST_CHECK_EQUAL(compared(tolerance, {0, 0}, {1, 0}), "fail");
}

BOOST_AUTO_TEST_CASE(nan_equals_nan_only_where_asked_for) {
  using enum trace::Comparison;
  for (const trace::Comparison how : {bits, max_ulp, abs_rel, cosine_min}) {
    trace::Tolerance tolerance = by(how);
    tolerance.abs = 1e9;
    tolerance.max_ulp = 1U << 31;
    BOOST_CHECK_EQUAL(compared(tolerance, {kNan, 1}, {kNan, 1}), "fail");
    BOOST_CHECK_EQUAL(compared(tolerance, {kNan, 1}, {1, 1}), "fail");
    tolerance.nan_equal = true;
    BOOST_CHECK_EQUAL(compared(tolerance, {kNan, 1}, {kNan, 1}), "pass");
    BOOST_CHECK_EQUAL(compared(tolerance, {1, 1}, {kNan, 1}), "fail");
  }
}

BOOST_AUTO_TEST_CASE(a_row_without_a_partner_fails) {
  Outputs trace;
  trace.left(0, {1});
  trace.right(0, {1});
  trace.right(1, {1});
  const RuleVerdict verdict = trace.verdict_of(kRule);
  BOOST_CHECK_EQUAL(to_text(verdict.status), "fail");
  BOOST_CHECK_EQUAL(verdict.shown.front().expected, "a partner in sut.out");
}

BOOST_AUTO_TEST_CASE(a_row_of_another_length_fails) {
  BOOST_CHECK_EQUAL(compared({}, {1, 2}, {1}), "fail");
}

BOOST_AUTO_TEST_CASE(digests_alone_are_enough_for_bits_only) {
  const auto without_values = [](const trace::Tolerance& tolerance, float left, float right) {
    Outputs trace(tolerance);
    trace.left(0, {left});
    trace.right(0, {right});
    trace.erase<trace::TensorValues>(1);
    trace.erase<trace::TensorValues>(0);
    return trace.status();
  };
  BOOST_CHECK_EQUAL(without_values({}, 1, 1), "pass");
  BOOST_CHECK_EQUAL(without_values({}, 1, 2), "fail");
  BOOST_CHECK_EQUAL(without_values(by(trace::Comparison::abs_rel), 1, 2), "inconclusive");
}

BOOST_AUTO_TEST_CASE(a_row_that_tells_neither_digest_nor_values_is_no_difference) {
  for (const std::size_t silent : {std::size_t{0}, std::size_t{1}}) {
    Outputs trace;
    trace.left(0, {1});
    trace.right(0, {1});
    trace.erase<trace::TensorValues>(silent);
    BOOST_TEST_CONTEXT("side " << silent) BOOST_CHECK_EQUAL(trace.status(), "pass");
    trace.edit<trace::TensorRecorded>(silent, [](trace::TensorRecorded& one) { one.digest = 0; });
    BOOST_TEST_CONTEXT("side " << silent) BOOST_CHECK_EQUAL(trace.status(), "inconclusive");
  }
}

BOOST_AUTO_TEST_CASE(a_plane_that_one_side_tells_leaves_it_open) {
  for (const StoreIndex silent : {StoreIndex{0}, StoreIndex{1}}) {
    States trace;
    trace.state(silent, 0, 8);
    trace.state(silent == 0 ? StoreIndex{1} : StoreIndex{0}, 7, 8);
    BOOST_TEST_CONTEXT("side " << silent) BOOST_CHECK_EQUAL(trace.status(), "inconclusive");
  }
}

BOOST_AUTO_TEST_CASE(states_of_two_stores_are_compared) {
  const auto compared_states = [](std::uint64_t k, std::uint64_t v, Range range) {
    States trace;
    trace.state(0, 7, 8);
    trace.state(1, k, v, range);
    return trace.status();
  };
  BOOST_CHECK_EQUAL(compared_states(7, 8, {0, 3}), "pass");
  BOOST_CHECK_EQUAL(compared_states(9, 8, {0, 3}), "fail");
  BOOST_CHECK_EQUAL(compared_states(7, 9, {0, 3}), "fail");
  BOOST_CHECK_EQUAL(compared_states(7, 8, {0, 4}), "fail");
  BOOST_CHECK_EQUAL(compared_states(0, 8, {0, 3}), "inconclusive");
}

BOOST_AUTO_TEST_CASE(a_plane_that_neither_side_tells_is_not_compared) {
  States trace;
  trace.state(0, 7, 0);
  trace.state(1, 7, 0);
  BOOST_CHECK_EQUAL(trace.status(), "pass");
  States none;
  none.state(0, 0, 0);
  none.state(1, 0, 0);
  BOOST_CHECK_EQUAL(none.status(), "inconclusive");
}

BOOST_AUTO_TEST_CASE(without_rows_it_is_vacuous) {
  BOOST_CHECK_EQUAL(Outputs().status(), "vacuous");
  BOOST_CHECK_EQUAL(States().status(), "vacuous");
}

BOOST_AUTO_TEST_CASE(two_states_that_hold_nothing_are_no_pair) {
  const auto judged = [](Range left, Range right) {
    States trace;
    trace.state(0, left.empty() ? 0 : 7, left.empty() ? 0 : 8, left);
    trace.state(1, right.empty() ? 0 : 7, right.empty() ? 0 : 8, right);
    return trace.status();
  };
  BOOST_CHECK_EQUAL(judged({0, 0}, {0, 0}), "vacuous");
  BOOST_CHECK_EQUAL(judged({0, 1}, {0, 1}), "pass");
  BOOST_CHECK_EQUAL(judged({0, 0}, {0, 1}), "fail");
  BOOST_CHECK_EQUAL(judged({2, 2}, {0, 0}), "fail");
  States emptied;
  emptied.prefill(1, 0, 2);
  emptied.clear(1, 0);
  emptied.state(0, 0, 0, {0, 0});
  emptied.state(1, 0, 0, {0, 0});
  BOOST_CHECK_EQUAL(emptied.status(), "pass");
}

BOOST_AUTO_TEST_SUITE_END()
