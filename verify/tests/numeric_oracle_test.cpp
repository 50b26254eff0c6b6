#include "naive_attention.hpp"
#include "trace_builder.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <string>
#include <utility>
#include <vector>

using namespace kvwitness;
using namespace kvwitness::verify;
using namespace kvwitness::verify::testing;

namespace {

constexpr std::string_view kRule = "numeric-oracle";
constexpr LayerSpec kRotated{.capacity = 64, .q_heads = 4, .kv_heads = 2, .head_dim = 8, .rope = true};
constexpr LayerSpec kLayer{.capacity = 8, .window = 4, .q_heads = 4, .kv_heads = 2, .head_dim = 4};

/// Eleven tokens in a ring of eight; the last query, 10, sees [7, 11), or what a test says.
TraceBuilder decoded(trace::StreamKind kind, trace::RandomShape shape, const std::vector<Position>* last = nullptr) {
  TraceBuilder trace;
  const NameHash stream = trace.stream("tokens", kind, shape);
  trace.ring(kLayer);
  for (std::uint32_t i = 0; i < 10; ++i) decode_recorded(trace, 0, 0, {stream, i}, "sut.out");
  decode_recorded(trace, 0, 0, {stream, 10}, "sut.out", last);
  return trace;
}

TraceBuilder coded() {
  return decoded(trace::StreamKind::coded, trace::RandomShape::uniform);
}

/// A row with each head's pairs turned, as complex numbers, in long double, and rounded once.
std::vector<float> turned(std::vector<float> row, Position position, double theta) {
  const std::size_t half = kRotated.head_dim / 2;
  for (std::size_t at = 0; at < row.size(); ++at) {
    const std::size_t j = at % kRotated.head_dim;
    if (j >= half) continue;
    const long double angle =
        position * std::pow(static_cast<long double>(theta), -2 * static_cast<long double>(j) / kRotated.head_dim);
    const auto z = std::complex<long double>(row[at], row[at + half]) * std::polar(1.0L, angle);
    row[at] = static_cast<float>(z.real());
    row[at + half] = static_cast<float>(z.imag());
  }
  return row;
}

struct Turned {
  double key_theta = kRopeTheta;
  Position query_off = 0;  ///< the query is turned as if it stood so far ahead
};

/// A token of a compact store with rope, and the output that keys and query turned so give.
void record_rotated(TraceBuilder& trace, const Turned& how, std::uint32_t ordinal) {
  const Tokens from{trace.claims.streams.front().spec.name, ordinal};
  trace.step_begin(0, 0, Operation::decode);
  trace.append(0, 0, 0, 1, from);
  TraceBuilder::Layer rows = std::as_const(trace).layer(0, 0, 0);
  const Position query = rows.end() - 1;
  const ViewId view = trace.window(0, 0, 0, {0, query + 1});
  trace.attend(view, query, 1, from);
  trace.close(view);
  const auto& streams = trace.claims.streams;
  for (Position p = 0; p <= query; ++p) {
    // Renumbering made other keys of the builder's rows: the raw ones come from the stream.
    TraceBuilder::Row& row = rows.rows[p];
    trace::fill_row(streams.front().spec, {trace::Plane::k, 0, row.ordinal}, row.k);
    row.k = turned(row.k, p, how.key_theta);
  }
  const auto q = turned(query_row(trace, from.stream, 0, ordinal, kRotated), query + how.query_off, kRopeTheta);
  trace.record({0, 0, 0}, "sut.out", trace::Plane::out, query, ordinal,
               naive_attention(rows, kRotated, q, positions({0, query + 1})));
  trace.step_end();
}

TraceBuilder rotated(double key_theta, Position query_off = 0) {
  TraceBuilder trace;
  trace.stream("tokens", trace::StreamKind::coded);
  trace.compact(kRotated);
  for (std::uint32_t i = 0; i < 40; ++i) record_rotated(trace, {key_theta, query_off}, i);
  return trace;
}

std::string status(const TraceBuilder& trace) {
  return std::string(to_text(trace.status_of(kRule)));
}

/// Changes one value of the last output.
TraceBuilder with_value(TraceBuilder trace, float value) {
  trace.edit<trace::TensorValues>(trace.count(trace::EventType::TensorValues) - 1,
                                  [&](trace::TensorValues& values) { values.values[3] = trace::to_bits(value); });
  trace.edit<trace::TensorRecorded>(trace.count(trace::EventType::TensorRecorded) - 1,
                                    [](trace::TensorRecorded& recorded) { recorded.digest = 0; });
  return trace;
}

float last_value(const TraceBuilder& trace) {
  return trace::from_bits(
      trace.payload<trace::TensorValues>(trace.count(trace::EventType::TensorValues) - 1).values[3]);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(numeric_oracle)

BOOST_AUTO_TEST_CASE(outputs_of_the_textbook_pass_in_every_shape) {
  using enum trace::RandomShape;
  BOOST_CHECK_EQUAL(status(coded()), "pass");
  BOOST_CHECK_EQUAL(coded().verdict_of(kRule).met, 11U);
  for (const trace::RandomShape shape : {uniform, one_hot_key, equal_keys, denormals}) {
    BOOST_CHECK_EQUAL(status(decoded(trace::StreamKind::random, shape)), "pass");
  }
}

BOOST_AUTO_TEST_CASE(a_key_too_many_too_few_or_of_the_wrong_place_fails) {
  for (const std::vector<Position>& seen : {positions({6, 11}), positions({8, 11}), {7, 8, 10}, {6, 8, 9, 10}}) {
    BOOST_CHECK_EQUAL(status(decoded(trace::StreamKind::coded, trace::RandomShape::uniform, &seen)), "fail");
  }
}

BOOST_AUTO_TEST_CASE(rounding_passes_and_more_fails) {
  const TraceBuilder trace = coded();
  const float value = last_value(trace);
  BOOST_CHECK_EQUAL(status(with_value(trace, std::nextafter(value, 2.0F))), "pass");
  BOOST_CHECK_EQUAL(status(with_value(trace, value + 1e-5F)), "fail");
}

BOOST_AUTO_TEST_CASE(nan_where_the_rows_have_none_fails) {
  const RuleVerdict verdict = with_value(coded(), std::numeric_limits<float>::quiet_NaN()).verdict_of(kRule);
  BOOST_CHECK_EQUAL(to_text(verdict.status), "fail");
  BOOST_CHECK(verdict.shown.front().observed.starts_with("element 11: nan instead of "));
}

BOOST_AUTO_TEST_CASE(a_tolerance_asked_for_replaces_the_bound) {
  TraceBuilder trace = with_value(coded(), last_value(coded()) + 1e-5F);
  trace::RuleRequest request;
  request.rule = kRule;
  request.tolerance.by = trace::Comparison::abs_rel;
  request.tolerance.abs = 1e-4;
  trace.claims.rules.push_back(request);
  BOOST_CHECK_EQUAL(status(trace), "pass");
  trace.claims.rules.front().tolerance.abs = 1e-6;
  BOOST_CHECK_EQUAL(status(trace), "fail");
}

BOOST_AUTO_TEST_CASE(values_that_are_not_those_of_the_digest_fail) {
  TraceBuilder trace = coded();
  trace.edit<trace::TensorRecorded>(10, [](trace::TensorRecorded& recorded) { recorded.digest += 1; });
  BOOST_CHECK_EQUAL(status(trace), "fail");
}

BOOST_AUTO_TEST_CASE(each_query_of_a_chunk_is_judged_by_its_own_window) {
  // `low`: first key of query 5, which lawfully sees [2, 6).
  const auto chunk = [](Position low) {
    TraceBuilder trace;
    const NameHash stream = trace.stream("tokens", trace::StreamKind::coded);
    trace.ring(kLayer);
    trace.step_begin(0, 0, Operation::prefill);
    trace.append(0, 0, 0, 6, {stream, 0});
    const ViewId view = trace.window(0, 0, 0, {0, 6});
    trace.attend(view, 0, 6, {stream, 0});
    trace.close(view);
    for (Position query = 0; query < 6; ++query) {
      const Range seen{query == 5 ? low : query - std::min(query, 3U), query + 1};
      const auto q = query_row(trace, stream, 0, query, kLayer);
      trace.record({0, 0, 0}, "sut.out", trace::Plane::out, query, query,
                   naive_attention(std::as_const(trace).layer(0, 0, 0), kLayer, q, positions(seen)));
    }
    trace.step_end();
    return trace.verdict_of(kRule);
  };
  BOOST_CHECK_EQUAL(to_text(chunk(2).status), "pass");
  BOOST_CHECK_EQUAL(chunk(2).met, 6U);
  BOOST_CHECK_EQUAL(chunk(1).violations, 1U);
}

BOOST_AUTO_TEST_CASE(streams_that_cannot_be_made_again_are_inconclusive) {
  TraceBuilder trace = coded();
  trace.claims.streams.front().spec.kind = trace::StreamKind::external;
  BOOST_CHECK_EQUAL(status(trace), "inconclusive");
}

BOOST_AUTO_TEST_CASE(an_output_of_no_attend_is_inconclusive) {
  TraceBuilder trace = coded();
  trace.edit<trace::TensorRecorded>(10, [](trace::TensorRecorded& recorded) { recorded.position = 3; });
  BOOST_CHECK_EQUAL(status(trace), "inconclusive");
}

BOOST_AUTO_TEST_CASE(rotated_outputs_are_made_again) {
  const RuleVerdict verdict = rotated(kRopeTheta).verdict_of(kRule);
  BOOST_CHECK_EQUAL(to_text(verdict.status), "pass");
  BOOST_CHECK_EQUAL(verdict.met, 40U);
}

BOOST_AUTO_TEST_CASE(outputs_of_other_rotations_fail) {
  BOOST_CHECK_EQUAL(status(rotated(500000)), "fail");
  BOOST_CHECK_EQUAL(status(rotated(kRopeTheta, 1)), "fail");
}

BOOST_AUTO_TEST_CASE(renumbered_rows_are_rotated_to_where_they_lie) {
  TraceBuilder trace = rotated(kRopeTheta);
  trace.evict(0, 0, {3, 17});
  record_rotated(trace, {.key_theta = kRopeTheta}, 40);
  BOOST_CHECK_EQUAL(status(trace), "pass");
  BOOST_CHECK_EQUAL(trace.verdict_of(kRule).met, 41U);
}

BOOST_AUTO_TEST_CASE(angles_that_are_not_told_are_inconclusive) {
  for (const double theta : {0.0, -1.0, std::numeric_limits<double>::quiet_NaN()}) {
    TraceBuilder trace = rotated(kRopeTheta);
    trace.edit<trace::LayerFormat>(
        0, [theta](trace::LayerFormat& format) { format.rope_theta_bits = trace::to_bits(theta); });
    BOOST_CHECK_EQUAL(status(trace), "inconclusive");
  }
}

BOOST_AUTO_TEST_CASE(outputs_without_values_are_vacuous) {
  TraceBuilder trace = coded();
  while (trace.count(trace::EventType::TensorValues) > 0) trace.erase<trace::TensorValues>();
  BOOST_CHECK_EQUAL(status(trace), "vacuous");
}

BOOST_AUTO_TEST_SUITE_END()
