#include "trace_builder.hpp"

#include <boost/test/unit_test.hpp>

using namespace kvwitness;
using namespace kvwitness::verify;
using verify::testing::TraceBuilder;

namespace {

constexpr const char* kRule = "plan-matches";
/// 2 sequences, 4 slots, 1 head of 4 f32: K and V of the builder's layer.
constexpr std::uint64_t kPlaneBytes = 2 * 4 * 16;

/// A ring of one layer, whose plan is told as soon as it is declared.
struct Planned : TraceBuilder {
  explicit Planned(std::uint64_t k = kPlaneBytes, std::uint64_t v = kPlaneBytes, std::uint64_t total = 2 * kPlaneBytes,
                   bool is_gathered = false) {
    store = ring({.capacity = 4, .window = 4});
    plan(trace::Plane::k, k);
    plan(trace::Plane::v, v);
    trace::PlanTotal told{};
    told.bytes = total;
    told.scratch_bytes = 2 * 4 * 16;
    emit({store}, told);
    decode(store, 0, 6, {}, is_gathered);
    end();
  }
  void plan(trace::Plane plane, std::uint64_t bytes) {
    trace::PlanLayer told{};
    told.bytes = bytes;
    told.plane = plane;
    told.slots = 8;
    emit({store, trace::kNoSequence, 0}, told);
  }
  trace::StoreIndex store = 0;
};

const std::vector<std::string> kOnlyThis{kRule};

}  // namespace

BOOST_AUTO_TEST_SUITE(plan_matches)

BOOST_AUTO_TEST_CASE(a_store_that_takes_what_was_planned_passes) {
  Planned trace;
  BOOST_CHECK(trace.status_of(kRule) == Status::pass);
  BOOST_CHECK(trace.failing().empty());
  BOOST_CHECK_EQUAL(trace.verdict_of(kRule).met, 2U);
}

BOOST_AUTO_TEST_CASE(without_a_plan_there_is_nothing_to_judge) {
  TraceBuilder trace;
  trace.decode(trace.ring({.capacity = 4, .window = 4}), 0, 3);
  trace.end();
  BOOST_CHECK_EQUAL(trace.verdict_of(kRule).met, 0U);
  BOOST_CHECK(trace.status_of(kRule) != Status::fail);
}

BOOST_AUTO_TEST_CASE(each_plane_is_held_to_its_own_line) {
  // One byte more of K and one less of V: the sum is right, and both are wrong.
  Planned trace(kPlaneBytes + 1, kPlaneBytes - 1);
  const RuleVerdict verdict = trace.verdict_of(kRule);
  BOOST_REQUIRE_EQUAL(verdict.violations, 2U);
  BOOST_CHECK_EQUAL(verdict.shown[0].expected, "129 bytes for k of layer 0, as planned");
  BOOST_CHECK_EQUAL(verdict.shown[0].observed, "128 bytes");
  BOOST_CHECK(trace.failing() == kOnlyThis);
}

BOOST_AUTO_TEST_CASE(missing_and_unplanned_planes_fail) {
  Planned trace;
  trace.edit<trace::Allocation>(1, [](trace::Allocation& taken) { taken.plane = trace::Plane::k_raw; });
  const RuleVerdict verdict = trace.verdict_of(kRule);
  BOOST_REQUIRE_EQUAL(verdict.violations, 2U);
  BOOST_CHECK_EQUAL(verdict.shown[0].expected, "128 bytes for v of layer 0, as planned");
  BOOST_CHECK_EQUAL(verdict.shown[0].observed, "0 bytes");
  BOOST_CHECK_EQUAL(verdict.shown[1].expected, "no k-raw of layer 0, which was not planned");
  BOOST_CHECK((trace.failing() == std::vector<std::string>{kRule, "trace-truth"}));  // values have no room
}

BOOST_AUTO_TEST_CASE(a_total_is_the_sum_of_its_lines) {
  Planned trace(kPlaneBytes, kPlaneBytes, 2 * kPlaneBytes + 1);
  BOOST_CHECK_EQUAL(trace.verdict_of(kRule).violations, 1U);
  BOOST_CHECK(trace.failing() == kOnlyThis);
}

// 2 sequences of 4 slots, f32: 8 rows, no scales, and windows of 4 rows of 16 bytes in both planes.
BOOST_AUTO_TEST_CASE(rows_scales_and_scratch_are_those_of_the_declaration) {
  Planned rows;
  rows.edit<trace::PlanLayer>(0, [](trace::PlanLayer& line) { --line.slots; });
  RuleVerdict verdict = rows.verdict_of(kRule);
  BOOST_REQUIRE_EQUAL(verdict.violations, 1U);
  BOOST_CHECK_EQUAL(verdict.shown[0].expected, "8 rows for k of layer 0, as declared");
  BOOST_CHECK(rows.failing() == kOnlyThis);
  Planned scales;
  scales.edit<trace::PlanLayer>(1, [](trace::PlanLayer& line) { line.scale_bytes = 2; });
  BOOST_CHECK_EQUAL(scales.verdict_of(kRule).violations, 1U);
  Planned scratch;
  scratch.edit<trace::PlanTotal>(0, [](trace::PlanTotal& total) { ++total.scratch_bytes; });
  verdict = scratch.verdict_of(kRule);
  BOOST_REQUIRE_EQUAL(verdict.violations, 1U);
  BOOST_CHECK_EQUAL(verdict.shown[0].observed, "129 bytes planned");
  BOOST_CHECK(scratch.failing() == kOnlyThis);
}

// q8-0 rows of 32 values: 34 bytes, 2 of them a scale. 2 sequences of 8 slots, and f32 rows besides: with 2 recent ones
// and groups of 4 at most 5.
BOOST_AUTO_TEST_CASE(of_a_coded_layer_codes_have_scales_and_f32_rows_lie_besides) {
  TraceBuilder trace;
  const auto store = trace.flat({.capacity = 8, .head_dim = 32});
  trace.edit<trace::LayerFormat>(0, [](trace::LayerFormat& format) {
    format.k_type = format.v_type = trace::DType::q8_0;
    format.k_row_bytes = format.v_row_bytes = 34;
  });
  const std::size_t at = trace.index_of(trace::EventType::LayerFormat) + 1;
  for (const trace::Plane plane : {trace::Plane::k, trace::Plane::v}) {
    trace::LayerCode code{};
    code.plane = plane;
    code.code = trace::DType::q8_0;
    code.recent = 2;
    code.quantise_group = 4;
    trace.insert(at, {store, trace::kNoSequence, 0}, code);
  }
  constexpr std::uint64_t kBytes = 2 * (8 * 34 + 5 * 128);
  for (std::size_t i = 0; i < 2; ++i)
    trace.edit<trace::Allocation>(i, [](trace::Allocation& taken) { taken.bytes = kBytes; });
  for (const trace::Plane plane : {trace::Plane::k, trace::Plane::v}) {
    trace::PlanLayer line{};
    line.plane = plane;
    line.bytes = kBytes;
    line.slots = 2 * (8 + 5);
    line.scale_bytes = 2 * 8 * 2;
    trace.emit({store, trace::kNoSequence, 0}, line);
  }
  trace::PlanTotal total{};
  total.bytes = 2 * kBytes;
  total.scratch_bytes = 8 * 2 * 128;
  trace.emit({store}, total);
  const auto wrong = [&] { return trace.verdict_of(kRule).violations; };
  const std::uint64_t reported = wrong();  // what the builder reports, of rows that it has as f32
  trace.edit<trace::PlanLayer>(0, [](trace::PlanLayer& line) { line.slots = 16; });
  BOOST_CHECK_EQUAL(wrong(), reported + 1);
  trace.edit<trace::PlanLayer>(1, [](trace::PlanLayer& line) { line.scale_bytes = 0; });
  BOOST_CHECK_EQUAL(wrong(), reported + 2);
  trace.edit<trace::PlanTotal>(0, [](trace::PlanTotal& one) { ++one.scratch_bytes; });
  BOOST_CHECK_EQUAL(wrong(), reported + 3);
}

BOOST_AUTO_TEST_CASE(a_report_that_differs_from_the_plan_fails) {
  Planned trace;
  trace.edit<trace::Reported>(0, [](trace::Reported& reported) { reported.value -= 16; });
  const RuleVerdict verdict = trace.verdict_of(kRule);
  BOOST_REQUIRE_EQUAL(verdict.violations, 1U);
  BOOST_CHECK_EQUAL(verdict.shown[0].expected, "256 bytes reserved, as planned");
}

BOOST_AUTO_TEST_CASE(gathered_windows_fit_into_the_scratch_until_one_does_not) {
  Planned trace(kPlaneBytes, kPlaneBytes, 2 * kPlaneBytes, true);
  BOOST_CHECK(trace.status_of(kRule) == Status::pass);
  // A window of four rows fills the planned scratch; the sixth token's is one of them.
  trace.edit<trace::PlanTotal>(0, [](trace::PlanTotal& total) { total.scratch_bytes -= 1; });
  const RuleVerdict verdict = trace.verdict_of(kRule);
  // Nor is it what the declaration comes to.
  BOOST_CHECK_EQUAL(verdict.violations, 1U + 3U);
  BOOST_CHECK(trace.failing() == kOnlyThis);
}

BOOST_AUTO_TEST_CASE(a_plan_is_told_once_and_before_the_first_call) {
  Planned twice;
  twice.insert(twice.index_of(trace::EventType::PlanTotal), {twice.store, trace::kNoSequence, 0},
               twice.payload<trace::PlanLayer>(0));
  BOOST_CHECK(twice.failing() == kOnlyThis);
  Planned late;
  trace::PlanLayer line{};
  line.plane = trace::Plane::k_raw;
  late.insert(late.index_of(trace::EventType::Called, 3), {late.store, trace::kNoSequence, 0}, line);
  BOOST_CHECK(late.failing() == kOnlyThis);
  Planned totals;
  totals.insert(totals.index_of(trace::EventType::PlanTotal), {totals.store}, totals.payload<trace::PlanTotal>());
  BOOST_CHECK(totals.failing() == kOnlyThis);
  Planned late_total;
  const auto total = late_total.payload<trace::PlanTotal>();
  late_total.erase<trace::PlanTotal>();
  late_total.insert(late_total.index_of(trace::EventType::Called, 3), {late_total.store}, total);
  BOOST_CHECK(late_total.failing() == kOnlyThis);
}

BOOST_AUTO_TEST_CASE(planes_are_taken_before_the_first_call) {
  Planned trace;
  trace::Allocation more = trace.payload<trace::Allocation>(0);
  more.storage = 99;
  trace.insert(trace.index_of(trace::EventType::Called, 3), {trace.store, trace::kNoSequence, 0}, more);
  BOOST_CHECK(trace.expects(kRule, "all planes taken before the first call"));
}

BOOST_AUTO_TEST_CASE(a_plan_without_its_total_tells_nothing) {
  Planned trace;
  trace.erase<trace::PlanTotal>(0);
  BOOST_CHECK(trace.status_of(kRule) == Status::inconclusive);
}

BOOST_AUTO_TEST_SUITE_END()
