// Rows of a layer without LayerCode are native: given in the layer's format, and judged by their bytes as f32 rows are.
// The builder's rows of four f32 are told as rows of eight 16-bit values.
#include "trace_builder.hpp"

#include <boost/test/unit_test.hpp>

#include <array>
#include <string>
#include <string_view>
#include <vector>

using namespace kvwitness;
using namespace kvwitness::verify;
using namespace kvwitness::verify::testing;

namespace {

constexpr std::array<trace::DType, 3> kNative{trace::DType::f16, trace::DType::bf16, trace::DType::q8_0};

/// The store's only layer in another format, with rows of the same bytes.
void make_native(TraceBuilder& trace, trace::DType type) {
  trace.edit<trace::LayerDeclared>(0, [](trace::LayerDeclared& layer) { layer.head_dim *= 2; });
  trace.edit<trace::LayerFormat>(0, [&](trace::LayerFormat& format) { format.k_type = format.v_type = type; });
}

/// Two sequences in a ring that wraps, a rollback, and a state read back after it.
struct Decoded : TraceBuilder {
  explicit Decoded(trace::DType type) {
    const StoreIndex store = ring({.capacity = 6, .window = 4});
    make_native(*this, type);
    decode(store, 0, 9);
    decode(store, 1, 3);
    truncate(store, 0, 8);
    decode(store, 0, 2);
    end();
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(native_rows)

/// What a trace of f32 rows gets, the same trace of other rows gets too.
BOOST_AUTO_TEST_CASE(right_traces_get_the_verdict_that_f32_rows_get) {
  const auto told = [](trace::DType type) {
    std::string text;
    for (const RuleVerdict& rule : Decoded(type).verdict().rules)
      text += rule.rule + " " + std::string(to_text(rule.status)) + " " + std::to_string(rule.met) + "\n";
    return text;
  };
  const std::string right = told(trace::DType::f32);
  BOOST_TEST(right.find("inconclusive") == std::string::npos);
  BOOST_TEST(right.find("position-order pass") != std::string::npos);
  for (const trace::DType type : kNative) BOOST_TEST(told(type) == right);
}

BOOST_AUTO_TEST_CASE(other_rows_in_a_window_are_blamed) {
  for (const trace::DType type : kNative) {
    Decoded trace(type);
    trace.edit<trace::WindowRun>(5, [](trace::WindowRun& run) { run.k_digest ^= 1; });
    BOOST_CHECK(trace.failing() == std::vector<std::string>{"position-order"});
  }
}

BOOST_AUTO_TEST_CASE(other_rows_read_back_are_blamed) {
  for (const trace::DType type : kNative) {
    Decoded trace(type);
    trace.edit<trace::StateDigest>(0, [](trace::StateDigest& state) { state.v_digest ^= 1; });
    BOOST_CHECK(trace.status_of("resident-set") == Status::fail);
    BOOST_CHECK(trace.status_of("position-order") == Status::fail);
  }
}

BOOST_AUTO_TEST_CASE(rows_that_another_sequence_changed_are_blamed) {
  for (const bool is_wrong : {false, true}) {
    TraceBuilder trace;
    const StoreIndex store = trace.ring({.capacity = 6, .window = 4});
    make_native(trace, trace::DType::f16);
    trace.decode(store, 0, 3);
    trace.decode(store, 1, 1);
    trace.close(trace.window(store, 0, 0, {0, 3}));
    if (is_wrong)
      trace.edit<trace::WindowRun>(trace.count(trace::EventType::WindowRun) - 1,
                                   [](trace::WindowRun& run) { run.v_digest ^= 1; });
    BOOST_CHECK(trace.status_of("non-interference") == (is_wrong ? Status::fail : Status::pass));
  }
}

/// A layer that is to code rows says so by LayerCode.
BOOST_AUTO_TEST_CASE(nothing_is_coded_later) {
  TraceBuilder trace;
  const StoreIndex store = trace.flat({.capacity = 6});
  make_native(trace, trace::DType::f16);
  trace.append(store, 0, 0, 3);
  BOOST_CHECK(trace.status_of("quantise-once") == Status::vacuous);
  trace::Quantise told{};
  told.count = 1;
  told.k_type = told.v_type = trace::DType::f16;
  trace.insert(trace.index_of(trace::EventType::RegionMeasured), {store, 0, 0}, told);
  BOOST_CHECK(trace.expects("quantise-once", "no row coded"));
}

BOOST_AUTO_TEST_CASE(attention_reads_them) {
  TraceBuilder trace;
  const StoreIndex store = trace.flat({.capacity = 6});
  make_native(trace, trace::DType::bf16);
  trace.append(store, 0, 0, 3);
  trace::Called called{};
  called.operation = Operation::attend;
  called.view = trace.window(store, 0, 0, {0, 3});
  called.from = 2;
  called.to = 3;
  called.count = 1;
  trace.refuse({store, 0, 0}, called, RefusalCode::unsupported);
  BOOST_CHECK(trace.status_of("legal-refused") == Status::fail);
}

/// A copy may be in another format, as its adapters say. Its rows are other bytes, so that it has no digests.
BOOST_AUTO_TEST_CASE(a_copy_in_another_format_is_not_compared) {
  TraceBuilder trace;
  const StoreIndex store = trace.flat({.capacity = 6});
  make_native(trace, trace::DType::f16);
  trace.append(store, 0, 0, 3);
  trace.step_begin(store, 0, Operation::decode);
  trace.close(trace.copied_window(store, 0, 0, {0, 3}));
  trace.step_end();
  for (const std::size_t nth : {0U, 1U}) {
    trace.edit<trace::AdapterInserted>(nth, [](trace::AdapterInserted& adapter) {
      adapter.from_type = trace::DType::f16;
      adapter.bytes_after = 2 * adapter.bytes_before;
    });
  }
  trace.edit<trace::WindowOpened>(0, [](trace::WindowOpened& opened) { opened.copied_bytes *= 2; });
  trace.edit<trace::WindowRun>(0, [](trace::WindowRun& run) { run.k_digest = run.v_digest = 0; });
  BOOST_CHECK(trace.failing().empty());
  BOOST_CHECK(trace.status_of("adapter-priced") == Status::pass);
  BOOST_CHECK(trace.status_of("position-order") == Status::inconclusive);
}

/// What a stream makes is f32; what 16 bits keep of it is not known, and nobody is blamed for it.
BOOST_AUTO_TEST_CASE(rules_of_values_do_not_judge_them) {
  TraceBuilder trace;
  const NameHash equal = trace.stream("equal", trace::StreamKind::indicator);
  const StoreIndex store = trace.flat({.capacity = 6, .q_heads = 1});
  make_native(trace, trace::DType::f16);
  trace.step_begin(store, 0, Operation::decode);
  trace.append(store, 0, 0, 2, {equal, 0});
  const ViewId view = trace.window(store, 0, 0, {0, 2});
  trace.attend(view, 1, 1, {equal, 1});
  trace.record({store, 0, 0}, "sut.out", trace::Plane::out, 1, 1, std::vector<float>(8, 1e9F));
  trace.close(view);
  trace.step_end();
  BOOST_CHECK(trace.status_of("visible-set") == Status::vacuous);
  BOOST_CHECK(trace.status_of("numeric-oracle") == Status::inconclusive);
}

BOOST_AUTO_TEST_SUITE_END()
