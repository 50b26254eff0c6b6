// What a trace declares of a store, changed by itself so that it does not go together any more.
#include "trace_builder.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <functional>

using namespace kvwitness;
using namespace kvwitness::verify;
using namespace kvwitness::verify::testing;

namespace {

using Change = std::function<void(TraceBuilder&)>;

}  // namespace

BOOST_AUTO_TEST_SUITE(declarations)

BOOST_AUTO_TEST_CASE(what_is_declared_of_a_store_goes_together) {
  const auto flat = [](const Change& change) {
    TraceBuilder trace;
    trace.prefill(trace.flat({.capacity = 4}), 0, 2);
    change(trace);
    return trace.expects("event-grammar", "");
  };
  const auto can = [](TraceBuilder& trace, trace::Capability one) {
    trace.edit<trace::StoreCreated>(
        0, [&](trace::StoreCreated& store) { store.capabilities |= static_cast<std::uint64_t>(one); });
  };
  BOOST_TEST(!flat([](TraceBuilder&) {}));
  const Change slides = [](TraceBuilder& trace) {
    trace.edit<trace::LayerDeclared>(0, [](auto& layer) { layer.sliding = 1; });
  };
  const Change has_sinks = [](TraceBuilder& trace) {
    trace.edit<trace::LayerDeclared>(0, [](auto& layer) { layer.sinks = 1; });
  };
  BOOST_TEST(flat(slides));
  BOOST_TEST(!flat([&](TraceBuilder& trace) { slides(trace), can(trace, trace::Capability::sliding); }));
  BOOST_TEST(flat(has_sinks));
  BOOST_TEST(!flat([&](TraceBuilder& trace) { has_sinks(trace), can(trace, trace::Capability::sinks); }));
  BOOST_TEST(
      flat([](TraceBuilder& trace) { trace.edit<trace::LayerDeclared>(0, [](auto& layer) { layer.block = 1; }); }));
  BOOST_TEST(flat([](TraceBuilder& trace) {
    trace.edit<trace::LayerFormat>(0, [](auto& format) { format.rope_theta_bits = trace::to_bits(10000.0); });
  }));
  BOOST_TEST(flat([&](TraceBuilder& trace) { can(trace, trace::Capability::paged); }));
  BOOST_TEST(flat([&](TraceBuilder& trace) { can(trace, trace::Capability::renumbers); }), "after front-evict");
}

BOOST_AUTO_TEST_CASE(a_layer_that_reads_another_needs_a_store_with_donors) {
  for (const bool has_donors : {true, false}) {
    TraceBuilder trace;
    const StoreIndex store = trace.flat({.capacity = 4}, 2);
    trace.edit<trace::LayerFormat>(1, [](auto& format) { format.donor = 0; });
    if (has_donors)
      trace.edit<trace::StoreCreated>(0, [](trace::StoreCreated& created) {
        created.capabilities |= static_cast<std::uint64_t>(trace::Capability::donors);
      });
    trace.step_begin(store, 0, Operation::prefill);
    trace.append(store, 0, 0, 2);
    trace.step_end();
    BOOST_TEST(trace.expects("event-grammar", "the capability donors") == !has_donors);
  }
}

BOOST_AUTO_TEST_CASE(only_a_rotated_code_says_how_it_is_rotated) {
  const auto with = [](trace::DType type, const std::function<void(trace::LayerCode&)>& change) {
    TraceBuilder trace;
    const StoreIndex store = trace.flat({.capacity = 4});
    trace::LayerCode code{};
    code.plane = trace::Plane::k;
    code.code = type;
    change(code);
    trace.emit({store, trace::kNoSequence, 0}, code);
    return trace.expects("event-grammar", "without what rotated ones have");
  };
  BOOST_TEST(!with(trace::DType::f16, [](auto&) {}));
  BOOST_TEST(with(trace::DType::f16, [](auto& code) { code.bits = 4; }));
  BOOST_TEST(with(trace::DType::f16, [](auto& code) { code.block = 32; }));
  BOOST_TEST(with(trace::DType::q8_0, [](auto& code) { code.residual_bits = 1; }));
  BOOST_TEST(with(trace::DType::q8_0, [](auto& code) { code.seed = 1; }));
  BOOST_TEST(!with(trace::DType::rotated, [](auto& code) { code.bits = 4, code.block = 4, code.seed = 1; }));
}

BOOST_AUTO_TEST_CASE(both_sides_of_a_layer_are_coded_or_neither_at_the_same_border) {
  const auto with = [](const std::vector<trace::LayerCode>& codes) {
    TraceBuilder trace;
    const StoreIndex store = trace.flat({.capacity = 4});
    for (const trace::LayerCode& code : codes) trace.emit({store, trace::kNoSequence, 0}, code);
    trace.prefill(store, 0, 2);
    return trace.expects("event-grammar", "both sides of layer 0");
  };
  const auto code = [](trace::Plane plane, std::uint32_t recent, std::uint32_t group) {
    trace::LayerCode told{};
    told.plane = plane;
    told.code = trace::DType::f16;
    told.recent = recent;
    told.quantise_group = group;
    return told;
  };
  using trace::Plane;
  BOOST_TEST(!with({}));
  BOOST_TEST(!with({code(Plane::k, 2, 1), code(Plane::v, 2, 1)}));
  BOOST_TEST(with({code(Plane::k, 2, 1)}));
  BOOST_TEST(with({code(Plane::v, 2, 1)}));
  BOOST_TEST(with({code(Plane::k, 2, 1), code(Plane::v, 1, 1)}));
  BOOST_TEST(with({code(Plane::k, 2, 1), code(Plane::v, 2, 2)}));
}

BOOST_AUTO_TEST_CASE(a_plan_without_its_total_is_no_pass) {
  TraceBuilder trace;
  const StoreIndex store = trace.flat({.capacity = 4});
  trace::PlanLayer line{};
  line.bytes = 2 * 4 * 16;
  line.plane = trace::Plane::k;
  line.slots = 8;
  trace.emit({store, trace::kNoSequence, 0}, line);
  trace.prefill(store, 0, 2);
  const CaseVerdict verdict = trace.verdict();
  const bool is_told = std::ranges::any_of(verdict.rules, [](const RuleVerdict& rule) {
    return rule.rule == "plan-matches" && rule.status == Status::inconclusive;
  });
  BOOST_TEST(is_told);
}

BOOST_AUTO_TEST_SUITE_END()
