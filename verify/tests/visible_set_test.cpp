#include "naive_attention.hpp"
#include "trace_builder.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <string>
#include <vector>

using namespace kvwitness;
using namespace kvwitness::verify;
using namespace kvwitness::verify::testing;

namespace {

constexpr LayerSpec kLayer{.capacity = 8, .window = 4, .q_heads = 4, .kv_heads = 2, .head_dim = 4};

/// Nine tokens in a ring of eight; the last query, 8, sees `seen` instead of [5, 9).
RuleVerdict judged(const std::vector<Position>& seen, trace::StreamKind kind = trace::StreamKind::indicator) {
  TraceBuilder trace;
  const NameHash stream = trace.stream("tokens", kind);
  trace.ring(kLayer);
  for (std::uint32_t i = 0; i < 8; ++i) decode_recorded(trace, 0, 0, {stream, i}, "sut.out");
  decode_recorded(trace, 0, 0, {stream, 8}, "sut.out", &seen);
  return trace.verdict_of("visible-set");
}

bool says(const RuleVerdict& verdict, std::string_view part) {
  return verdict.status == Status::fail && verdict.shown.front().observed.find(part) != std::string::npos;
}

/// The same, with the last output changed by hand.
template <class F>
RuleVerdict judged_with(F&& change) {
  TraceBuilder trace;
  const NameHash stream = trace.stream("tokens", trace::StreamKind::indicator);
  trace.ring(kLayer);
  for (std::uint32_t i = 0; i < 9; ++i) decode_recorded(trace, 0, 0, {stream, i}, "sut.out");
  for (const std::size_t piece : {16U, 17U}) {
    trace.edit<trace::TensorValues>(piece, [&](trace::TensorValues& values) {
      for (std::uint32_t& bits : values.values) bits = trace::to_bits(change(trace::from_bits(bits)));
    });
  }
  return trace.verdict_of("visible-set");
}

}  // namespace

BOOST_AUTO_TEST_SUITE(visible_set)

BOOST_AUTO_TEST_CASE(the_mean_over_the_window_passes) {
  const RuleVerdict verdict = judged(positions({5, 9}));
  BOOST_CHECK_EQUAL(to_text(verdict.status), "pass");
  BOOST_CHECK_EQUAL(verdict.met, 9U);
}

BOOST_AUTO_TEST_CASE(a_window_off_by_one_fails_and_is_named) {
  BOOST_CHECK(says(judged(positions({4, 9})), "it saw keys [4, 9)"));
  BOOST_CHECK(says(judged(positions({6, 9})), "it saw keys [6, 9)"));
  BOOST_CHECK(says(judged(positions({5, 8})), "it saw keys [5, 8)"));
}

BOOST_AUTO_TEST_CASE(a_window_that_is_not_applied_is_named) {
  BOOST_CHECK(says(judged(positions({1, 9})), "it saw keys [1, 9)"));
}

BOOST_AUTO_TEST_CASE(a_hole_is_named) {
  BOOST_CHECK(says(judged({5, 7, 8}), "it saw keys [5, 6), [7, 9)"));
}

BOOST_AUTO_TEST_CASE(a_key_seen_twice_is_not_explained) {
  BOOST_CHECK(says(judged({5, 6, 7, 8, 8}), "no range of keys explains it"));
}

BOOST_AUTO_TEST_CASE(slots_never_written_are_named) {
  // Two unwritten slots took part: the sum of four over six.
  BOOST_CHECK(says(judged_with([](float value) { return value * 4 / 6; }), "keys [5, 9) and 2 rows of zeros"));
}

BOOST_AUTO_TEST_CASE(nan_and_zeros_are_named) {
  BOOST_CHECK(says(judged_with([](float) { return std::numeric_limits<float>::quiet_NaN(); }), "it saw NaN"));
  BOOST_CHECK(says(judged_with([](float) { return 0.0F; }), "it saw no key"));
}

BOOST_AUTO_TEST_CASE(rounding_passes_and_a_thousandth_fails) {
  BOOST_CHECK_EQUAL(to_text(judged_with([](float value) { return std::nextafter(value, 2.0F); }).status), "pass");
  BOOST_CHECK_EQUAL(to_text(judged_with([](float value) { return value * 1.001F; }).status), "fail");
}

BOOST_AUTO_TEST_CASE(rows_of_a_lost_position_are_named) {
  // The ring of four holds [5, 9); the output still has the row of position 4.
  TraceBuilder trace;
  const NameHash stream = trace.stream("tokens", trace::StreamKind::indicator);
  LayerSpec tight = kLayer;
  tight.capacity = 4;
  trace.ring(tight);
  TraceBuilder wide;
  wide.stream("tokens", trace::StreamKind::indicator);
  wide.ring(kLayer);
  for (std::uint32_t i = 0; i < 9; ++i) decode_recorded(trace, 0, 0, {stream, i}, "sut.out");
  const std::vector<Position> seen = positions({4, 8});
  for (std::uint32_t i = 0; i < 8; ++i) decode_recorded(wide, 0, 0, {stream, i}, "sut.out");
  decode_recorded(wide, 0, 0, {stream, 8}, "sut.out", &seen);
  for (const std::size_t piece : {16U, 17U}) {
    trace.edit<trace::TensorValues>(piece, [&](trace::TensorValues& values) {
      const auto other = wide.payload<trace::TensorValues>(piece);
      std::copy(std::begin(other.values), std::end(other.values), std::begin(values.values));
    });
  }
  BOOST_CHECK(says(trace.verdict_of("visible-set"), "it saw keys [4, 8)"));
}

BOOST_AUTO_TEST_CASE(keys_that_differ_are_not_judged) {
  BOOST_CHECK_EQUAL(to_text(judged(positions({4, 9}), trace::StreamKind::coded).status), "vacuous");
}

BOOST_AUTO_TEST_SUITE_END()
