/// A poison is a call that changes nothing: what is read back after it is what was held before.
#include "kvwitness/trace/names.hpp"
#include "trace_builder.hpp"

#include <boost/test/unit_test.hpp>

#include <string>
#include <utility>
#include <vector>

using namespace kvwitness;
using namespace kvwitness::verify;
using namespace kvwitness::verify::testing;

namespace {

/// Six rows in a ring of four, of the first of two sequences, and a poison.
struct Poisoned : TraceBuilder {
  Poisoned() {
    ring({.capacity = 4, .window = 3});
    token(0, 0, 4);
    token(0, 0, 2);
    step_begin(0, 0, Operation::poison);
    trace::Called called{};
    called.operation = Operation::poison;
    called.count = 2;
    called.ordinal = 1;
    emit({0, 0}, called);
    trace::Counter filled{};
    filled.name = trace::hash_name("poisoned-bytes");
    filled.unit = trace::Unit::bytes;
    emit({0, 0}, filled);
    trace::RegionMeasured region{};
    region.operation = Operation::poison;
    emit({0, 0}, region);
    for (SequenceId sequence = 0; sequence < 2; ++sequence) state(sequence);
    step_end();
  }
  void state(SequenceId sequence) {
    const Layer& rows = std::as_const(*this).layer(0, sequence, 0);
    trace::StateDigest told{};
    told.from = rows.start;
    told.to = rows.end();
    told.k_digest = digest(rows, {rows.start, rows.end()}, trace::Plane::k);
    told.v_digest = digest(rows, {rows.start, rows.end()}, trace::Plane::v);
    told.reason = trace::DigestReason::after_edit;
    emit({0, sequence, 0}, told);
  }
};

std::string joined(const std::vector<std::string>& rules) {
  std::string text;
  for (const std::string& rule : rules) text += (text.empty() ? "" : " ") + rule;
  return text;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(poison)

BOOST_AUTO_TEST_CASE(that_changes_nothing_is_lawful) {
  const Poisoned trace;
  BOOST_CHECK(trace.failing().empty());
}

BOOST_AUTO_TEST_CASE(that_reaches_a_row_is_blamed) {
  Poisoned trace;
  trace.edit<trace::StateDigest>(0, [](trace::StateDigest& state) { state.v_digest ^= 1; });
  BOOST_CHECK_EQUAL(joined(trace.failing()), "position-order resident-set");
}

BOOST_AUTO_TEST_CASE(says_once_how_much_it_filled) {
  Poisoned silent;
  silent.erase<trace::Counter>();
  BOOST_CHECK_EQUAL(joined(silent.failing()), "event-grammar");
  Poisoned twice;
  twice.insert(twice.index_of(trace::EventType::Counter), {0, 0}, twice.payload<trace::Counter>());
  BOOST_CHECK_EQUAL(joined(twice.failing()), "event-grammar");
}

BOOST_AUTO_TEST_CASE(is_read_back_for_every_sequence) {
  Poisoned trace;
  trace.erase<trace::StateDigest>(1);
  BOOST_CHECK_EQUAL(joined(trace.failing()), "event-grammar");
}

BOOST_AUTO_TEST_CASE(is_not_to_be_refused_where_windows_name_the_memory) {
  TraceBuilder trace;
  trace.ring({.capacity = 4, .window = 3});
  trace.token(0, 0, 2);
  trace::Called called{};
  called.operation = Operation::poison;
  called.count = 2;
  trace.refuse({0, 0}, called, RefusalCode::unsupported);
  BOOST_CHECK_EQUAL(joined(trace.failing()), "expected-outcome legal-refused");
  trace.edit<trace::StoreCreated>(0, [](trace::StoreCreated& store) {
    store.capabilities &= ~static_cast<std::uint64_t>(trace::Capability::zero_copy);
  });
  BOOST_CHECK_EQUAL(std::string(to_text(trace.status_of("legal-refused"))), "pass");
}

BOOST_AUTO_TEST_SUITE_END()
