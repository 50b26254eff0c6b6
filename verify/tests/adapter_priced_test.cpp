#include "trace_builder.hpp"

#include <boost/test/unit_test.hpp>

using namespace kvwitness;
using namespace kvwitness::verify;
using trace::AdapterInserted;
using verify::testing::TraceBuilder;

namespace {

constexpr const char* kRule = "adapter-priced";

/// One decode step after another over a ring of two layers; rows are 16 bytes a plane.
struct Gathered : TraceBuilder {
  Gathered() {
    store = ring({.capacity = 4, .window = 4}, 2);
    decode(store, 0, 6, {}, true);
  }
  trace::StoreIndex store = 0;
};

struct Copied : TraceBuilder {
  Copied() {
    store = ring({.capacity = 4, .window = 4});
    prefill(store, 0, 3);
    view = copied_window(store, 0, 0, {0, 3});
    close(view);
  }
  trace::StoreIndex store = 0;
  trace::ViewId view = 0;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(adapter_priced)

BOOST_AUTO_TEST_CASE(copies_gathers_reads_and_plain_windows_pass) {
  BOOST_CHECK(Copied().failing().empty());
  BOOST_CHECK(Gathered().failing().empty());
  TraceBuilder trace;
  const auto store = trace.ring({.capacity = 4, .window = 4});
  trace.decode(store, 0, 6);
  trace.read(store, 0, 0, {3, 6});
  BOOST_CHECK(trace.failing().empty());
  BOOST_CHECK_EQUAL(trace.verdict_of(kRule).met, 7U);
}

BOOST_AUTO_TEST_CASE(a_copied_window_needs_an_adapter_a_plane) {
  for (const std::size_t side : {0U, 1U}) {
    Copied trace;
    trace.erase<AdapterInserted>(side);
    BOOST_CHECK(trace.failing() == std::vector<std::string>{kRule});
  }
  Copied twice;
  twice.insert(twice.index_of(trace::EventType::WindowOpened), {twice.store, 0, 0}, twice.payload<AdapterInserted>(0));
  BOOST_CHECK(twice.failing() == std::vector<std::string>{kRule});
}

BOOST_AUTO_TEST_CASE(bytes_are_those_of_the_rows) {
  Copied short_of_rows;
  short_of_rows.edit<AdapterInserted>(0, [](AdapterInserted& adapter) { adapter.bytes_after -= 1; });
  BOOST_CHECK(short_of_rows.status_of(kRule) == Status::fail);
  Copied fewer_rows;
  fewer_rows.edit<AdapterInserted>(1, [](AdapterInserted& adapter) {
    adapter.rows = 2;
    adapter.bytes_before = adapter.bytes_after = 32;
  });
  BOOST_CHECK(fewer_rows.status_of(kRule) == Status::fail);
  Copied window_tells_other_bytes;
  window_tells_other_bytes.edit<trace::WindowOpened>(0, [](trace::WindowOpened& opened) { opened.copied_bytes = 95; });
  BOOST_CHECK(window_tells_other_bytes.status_of(kRule) == Status::fail);
}

BOOST_AUTO_TEST_CASE(a_copy_that_is_not_told_shows_by_its_memory) {
  Copied trace;
  trace.erase<AdapterInserted>(0);
  trace.erase<AdapterInserted>(0);
  trace.edit<trace::WindowOpened>(0, [](trace::WindowOpened& opened) { opened.copied_bytes = 0; });
  const RuleVerdict verdict = trace.verdict_of(kRule);
  BOOST_CHECK(verdict.status == Status::fail);
  BOOST_CHECK_EQUAL(verdict.violations, 1U);
}

BOOST_AUTO_TEST_CASE(a_window_in_place_is_not_priced) {
  TraceBuilder trace;
  const auto store = trace.ring({.capacity = 4, .window = 4});
  trace.decode(store, 0, 2);
  AdapterInserted adapter{};
  adapter.kind = trace::AdapterKind::copy_read;
  adapter.plane = trace::Plane::k;
  adapter.rows = 1;
  adapter.from_type = adapter.to_type = trace::DType::f32;
  adapter.bytes_before = adapter.bytes_after = 16;
  adapter.view = trace.payload<trace::WindowOpened>().view;
  trace.insert(trace.index_of(trace::EventType::WindowOpened), {store, 0, 0}, adapter);
  BOOST_CHECK(trace.failing() == std::vector<std::string>{kRule});
}

BOOST_AUTO_TEST_CASE(a_read_is_priced) {
  TraceBuilder trace;
  const auto store = trace.ring({.capacity = 4, .window = 4});
  trace.prefill(store, 0, 3);
  trace.read(store, 0, 0, {1, 3});
  BOOST_CHECK(trace.status_of(kRule) == Status::pass);
  trace.edit<trace::ReadRows>(0, [](trace::ReadRows& read) { read.bytes = 32; });
  BOOST_CHECK(trace.failing() == std::vector<std::string>{kRule});
}

BOOST_AUTO_TEST_CASE(a_gather_is_a_copy_although_it_says_that_it_copied_nothing) {
  Gathered trace;
  trace.edit<trace::WindowOpened>(1, [](trace::WindowOpened& opened) { opened.copied_bytes = 0; });
  BOOST_CHECK(trace.expects(kRule, "32 bytes copied for 1 rows"));
}

BOOST_AUTO_TEST_CASE(a_gathered_step_has_two_adapters_a_layer) {
  // Gathers of layer 0, of layer 1; two of each are right in a step.
  const auto gathered = [](int of_first, int of_second) {
    TraceBuilder trace;
    const auto store = trace.ring({.capacity = 4, .window = 4}, 2);
    trace.step_begin(store, 0, trace::Operation::decode);
    for (const trace::LayerIndex layer : {trace::LayerIndex{0}, trace::LayerIndex{1}}) {
      trace.append(store, 0, layer, 1);
      const trace::ViewId view = trace.window(store, 0, layer, {0, 1});
      for (int i = 0; i < (layer == 0 ? of_first : of_second); ++i) trace.close(trace.gather(view));
      trace.close(view);
    }
    trace.scope_reset();
    trace.step_end();
    return trace.failing();
  };
  BOOST_CHECK(gathered(0, 0).empty());
  BOOST_CHECK(gathered(1, 1).empty());
  for (const auto& [first, second] : {std::pair{1, 0}, {0, 1}, {2, 1}})
    BOOST_CHECK(gathered(first, second) == std::vector<std::string>{kRule});
}

BOOST_AUTO_TEST_CASE(budgets_count_from_their_token_on) {
  Gathered trace;
  trace.claims.budgets.adapters_per_token = 4;
  trace.claims.budgets.copied_bytes_per_token = 4 * 4 * 16;  // 4 rows of 16 bytes, 2 planes, 2 layers
  BOOST_CHECK(trace.status_of(kRule) == Status::pass);
  trace.claims.budgets.adapters_per_token = 3;
  BOOST_CHECK_EQUAL(trace.verdict_of(kRule).violations, 6U);
  trace.claims.budgets.after_token = 4;
  BOOST_CHECK_EQUAL(trace.verdict_of(kRule).violations, 2U);
  trace.claims.budgets.adapters_per_token = 4;
  trace.claims.budgets.copied_bytes_per_token = 4 * 4 * 16 - 1;
  BOOST_CHECK_EQUAL(trace.verdict_of(kRule).violations, 2U);
}

BOOST_AUTO_TEST_CASE(without_windows_and_reads_it_is_vacuous) {
  TraceBuilder trace;
  trace.prefill(trace.ring({.capacity = 4, .window = 4}), 0, 3);
  BOOST_CHECK(trace.status_of(kRule) == Status::vacuous);
}

BOOST_AUTO_TEST_SUITE_END()
