#include "naive_attention.hpp"
#include "trace_builder.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

using namespace kvwitness;
using namespace kvwitness::verify;
using namespace kvwitness::verify::testing;

namespace {

constexpr std::string_view kRule = "numeric-oracle";
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

BOOST_AUTO_TEST_CASE(outputs_without_values_are_vacuous) {
  TraceBuilder trace = coded();
  while (trace.count(trace::EventType::TensorValues) > 0) trace.erase<trace::TensorValues>();
  BOOST_CHECK_EQUAL(status(trace), "vacuous");
}

BOOST_AUTO_TEST_SUITE_END()
