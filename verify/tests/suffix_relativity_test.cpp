#include "naive_attention.hpp"
#include "trace_builder.hpp"

#include <boost/test/unit_test.hpp>

#include <cmath>
#include <complex>
#include <string>
#include <utility>
#include <vector>

using namespace kvwitness;
using namespace kvwitness::verify;
using namespace kvwitness::verify::testing;

namespace {

constexpr std::string_view kRule = "suffix-relativity";
constexpr LayerSpec kLayer{
    .capacity = 64, .window = 4, .sliding = false, .q_heads = 4, .kv_heads = 2, .head_dim = 8, .rope = true};
constexpr std::uint32_t kPrefix = 37;

/// A row with each head's pairs turned, as complex numbers, in long double, and rounded once.
std::vector<float> turned(std::vector<float> row, Position position, double theta = kRopeTheta) {
  const std::size_t half = kLayer.head_dim / 2;
  for (std::size_t at = 0; at < row.size(); ++at) {
    const std::size_t j = at % kLayer.head_dim;
    if (j >= half) continue;
    const long double angle =
        position * std::pow(static_cast<long double>(theta), -2 * static_cast<long double>(j) / kLayer.head_dim);
    const auto z = std::complex<long double>(row[at], row[at + half]) * std::polar(1.0L, angle);
    row[at] = static_cast<float>(z.real());
    row[at + half] = static_cast<float>(z.imag());
  }
  return row;
}

/// What is wrong with the queries of the left store.
struct Fault {
  bool rotated_twice = false;
  Position ahead = 0;
  double theta = kRopeTheta;
  float added = 0;  ///< to one element of each output
};

/// The same tokens in two flat stores, in the first behind a prefix.
struct Suffix : TraceBuilder {
  explicit Suffix(std::uint32_t from_ordinal = kPrefix + kLayer.window - 1) {
    text = stream("tokens", trace::StreamKind::coded);
    sut = flat(kLayer);
    ref = flat(kLayer);
    trace::RuleRequest request;
    request.rule = kRule;
    request.left = "sut.out";
    request.right = "ref.out";
    request.from_ordinal = from_ordinal;
    claims.rules.push_back(request);
    token(sut, 0, kPrefix, {text, 0});
  }

  void decode_both(std::uint32_t tokens, const Fault& fault = {}) {
    for (std::uint32_t i = 0; i < tokens; ++i) {
      decode(sut, kPrefix + i, "sut.out", fault);
      decode(ref, kPrefix + i, "ref.out", {});
    }
  }

  void decode(StoreIndex store, std::uint32_t ordinal, const std::string& label, const Fault& fault) {
    const Tokens from{text, ordinal};
    step_begin(store, 0, Operation::decode);
    append(store, 0, 0, 1, from);
    Layer rows = std::as_const(*this).layer(store, 0, 0);
    const Position query = rows.end() - 1;
    const Range seen{query + 1 - std::min(query + 1, kLayer.window), query + 1};
    const ViewId view = window(store, 0, 0, seen);
    attend(view, query, 1, from);
    close(view);
    for (Position p = seen.from; p < seen.to; ++p) rows.rows[p].k = turned(rows.rows[p].k, p);
    auto q = turned(query_row(*this, text, 0, ordinal, kLayer), query + fault.ahead, fault.theta);
    if (fault.rotated_twice) q = turned(q, query);
    auto out = naive_attention(rows, kLayer, q, positions(seen));
    out[3] += fault.added;
    record({store, 0, 0}, label, trace::Plane::out, query, ordinal, out);
    step_end();
  }

  [[nodiscard]] std::string status() const { return std::string(to_text(status_of(kRule))); }

  NameHash text = 0;
  StoreIndex sut = 0;
  StoreIndex ref = 0;
};

std::string judged(const Fault& fault) {
  Suffix trace;
  trace.decode_both(12, fault);
  return trace.status();
}

}  // namespace

BOOST_AUTO_TEST_SUITE(suffix_relativity)

BOOST_AUTO_TEST_CASE(the_same_rows_answer_the_same_wherever_they_stand) {
  Suffix trace;
  trace.decode_both(12);
  const RuleVerdict verdict = trace.verdict_of(kRule);
  BOOST_CHECK_EQUAL(std::string(to_text(verdict.status)), "pass");
  BOOST_TEST(verdict.met == 12U - (kLayer.window - 1));
}

BOOST_AUTO_TEST_CASE(a_query_that_stands_elsewhere_than_its_keys_think_is_blamed) {
  BOOST_CHECK_EQUAL(judged({.ahead = 1}), "fail");
  BOOST_CHECK_EQUAL(judged({.ahead = kPrefix}), "fail");
  BOOST_CHECK_EQUAL(judged({.rotated_twice = true}), "fail");
  BOOST_CHECK_EQUAL(judged({.theta = 500}), "fail");
}

BOOST_AUTO_TEST_CASE(rounding_is_allowed_and_little_more) {
  BOOST_CHECK_EQUAL(judged({.added = 1e-7F}), "pass");
  BOOST_CHECK_EQUAL(judged({.added = 2e-3F}), "fail");
}

// What both do alike is for rules that know where rows stand.
BOOST_AUTO_TEST_CASE(a_fault_that_both_have_is_not_relative) {
  Suffix trace;
  for (std::uint32_t i = 0; i < 8; ++i) {
    trace.decode(trace.sut, kPrefix + i, "sut.out", {.ahead = 1});
    trace.decode(trace.ref, kPrefix + i, "ref.out", {.ahead = 1});
  }
  BOOST_CHECK_EQUAL(trace.status(), "pass");
}

BOOST_AUTO_TEST_CASE(queries_that_see_other_rows_are_not_compared) {
  Suffix trace(kPrefix);
  trace.decode_both(2);
  BOOST_CHECK_EQUAL(trace.status(), "inconclusive");
}

BOOST_AUTO_TEST_CASE(an_output_without_a_partner_is_blamed) {
  Suffix trace;
  trace.decode_both(6);
  trace.decode(trace.sut, kPrefix + 6, "sut.out", {});
  BOOST_CHECK_EQUAL(trace.status(), "fail");
}

BOOST_AUTO_TEST_CASE(nothing_in_the_ordinals_asked_for_is_vacuous) {
  Suffix trace(1000);
  trace.decode_both(6);
  BOOST_CHECK_EQUAL(trace.status(), "vacuous");
}

BOOST_AUTO_TEST_SUITE_END()
