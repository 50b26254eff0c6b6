#include "trace_builder.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <string>
#include <vector>

using namespace kvwitness;
using namespace kvwitness::verify;
using namespace kvwitness::verify::testing;

namespace {

constexpr std::string_view kRule = "rope-ledger";
const std::vector<std::string> kOnlyIt{std::string(kRule)};

/// Six keys, each rotated to its position; [1, 3) goes, and 3, 4, 5 become 1, 2, 3.
struct Renumbered : TraceBuilder {
  explicit Renumbered(bool rope = true, std::size_t layers = 1) {
    compact({.capacity = 8, .rope = rope}, layers);
    step_begin(0, 0, Operation::evict);
    token(0, 0, 6);
    evict(0, 0, {1, 3});
    step_end();
  }
};

std::string text_of(const TraceBuilder& trace) {
  return std::string(to_text(trace.status_of(kRule)));
}

}  // namespace

BOOST_AUTO_TEST_SUITE(rope_ledger)

BOOST_AUTO_TEST_CASE(survivors_rotated_once_to_their_new_positions_pass) {
  Renumbered trace(true, 2);
  BOOST_TEST(trace.failing().empty());
  BOOST_TEST(text_of(trace) == "pass");
  BOOST_TEST(trace.verdict_of(kRule).met >= 2U * 3 + 2);
}

// What a layer shows of another one's rows is rotated there.
BOOST_AUTO_TEST_CASE(a_reader_has_no_keys_to_rotate) {
  Renumbered trace(true, 2);
  trace.edit<trace::LayerFormat>(1, [](trace::LayerFormat& format) { format.donor = 0; });
  trace.donors[1] = 0;
  BOOST_TEST(trace.expects(kRule, "no rotation"));
  for (int i = 0; i < 3; ++i) trace.erase<trace::Rotate>(3);
  BOOST_TEST(text_of(trace) == "pass");
}

BOOST_AUTO_TEST_CASE(a_rotation_to_the_old_position_fails) {
  Renumbered trace;
  trace.edit<trace::Rotate>(1, [](trace::Rotate& rotate) { rotate.applied = 4; });
  BOOST_TEST(trace.failing() == kOnlyIt, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_second_rotation_fails) {
  Renumbered twice;
  twice.edit<trace::Rotate>(0, [](trace::Rotate& rotate) { rotate.times = 2; });
  BOOST_TEST(twice.failing() == kOnlyIt, boost::test_tools::per_element());
  Renumbered not_raw;
  not_raw.edit<trace::Rotate>(0, [](trace::Rotate& rotate) { rotate.from_raw = 0; });
  BOOST_TEST(not_raw.failing() == kOnlyIt, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_survivor_left_out_fails) {
  for (const std::size_t nth : {0U, 1U, 2U}) {
    Renumbered trace;
    trace.erase<trace::Rotate>(nth);
    BOOST_TEST(trace.failing() == kOnlyIt, boost::test_tools::per_element());
  }
}

BOOST_AUTO_TEST_CASE(a_key_that_did_not_move_is_not_rotated) {
  Renumbered trace;
  trace::Rotate rotate{};
  rotate.from_raw = rotate.times = 1;
  trace.insert(trace.index_of(trace::EventType::Rotate), {0, 0, 0}, rotate);
  BOOST_TEST(trace.failing() == kOnlyIt, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_rotation_in_another_slot_fails) {
  Renumbered trace;
  trace.edit<trace::Rotate>(2, [](trace::Rotate& rotate) { rotate.slot = 5; });
  BOOST_TEST(trace.failing() == kOnlyIt, boost::test_tools::per_element());
}

// The claims are right, but the key found at position 1 has the bits that it had at position 3.
BOOST_AUTO_TEST_CASE(a_rotation_that_is_claimed_and_not_done_shows_in_the_bits) {
  Renumbered trace;
  const std::uint64_t as_given = trace.payload<trace::RowDigests>(1).k1;  // rows 2 and 3
  trace.edit<trace::RowDigests>(3, [&](trace::RowDigests& rows) { rows.k0 = as_given; });
  BOOST_TEST(trace.failing() == kOnlyIt, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(keys_rotated_to_other_positions_than_they_are_appended_at_fail) {
  Renumbered trace;
  trace.token(0, 0, 2);
  BOOST_TEST(trace.failing().empty());
  // By the count of steps, as if nothing had been evicted.
  trace.edit<trace::Called>(2, [](trace::Called& called) {
    called.from = 6;
    called.to = 8;
  });
  BOOST_TEST(trace.failing() == kOnlyIt, boost::test_tools::per_element());
}

/// Whether the keys of such an append were rotated, and to where, nobody can tell.
BOOST_AUTO_TEST_CASE(keys_appended_without_a_word_of_their_rotation_are_no_pass) {
  Renumbered trace;
  trace.token(0, 0, 2);
  trace.edit<trace::Called>(2, [](trace::Called& called) { called.from = called.to = 0; });
  const RuleVerdict verdict = trace.verdict_of(kRule);
  BOOST_TEST((verdict.status == Status::inconclusive));
  BOOST_TEST(verdict.met > 0U);
  BOOST_TEST(verdict.note == "1 appends do not say to which positions their keys were rotated");
}

BOOST_AUTO_TEST_CASE(keys_without_rotation_move_as_they_are_and_meet_nothing) {
  Renumbered trace(false);
  BOOST_TEST(trace.failing().empty());
  BOOST_TEST(text_of(trace) == "vacuous");
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(renumbering)

BOOST_AUTO_TEST_CASE(what_goes_on_after_an_eviction_from_the_middle_is_judged_as_ever) {
  for (const bool rope : {false, true}) {
    Renumbered trace(rope, 2);
    trace.decode(0, 0, 2);
    trace.read(0, 0, 1, {0, 6});
    trace.evict(0, 0, {0, 6});
    trace.token(0, 0, 3);
    trace.truncate(0, 0, 0);
    BOOST_TEST(trace.failing().empty());
  }
}

BOOST_AUTO_TEST_CASE(another_row_where_a_survivor_must_lie_fails) {
  Renumbered trace(false);
  trace.edit<trace::RowDigests>(5, [](trace::RowDigests& rows) { rows.v0 += 1; });
  BOOST_TEST(trace.failing() == std::vector<std::string>{"position-order"}, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_range_that_is_held_after_it_was_evicted_fails) {
  Renumbered trace(false);
  trace.edit<trace::StateDigest>(0, [](trace::StateDigest& state) { state.to = 5; });
  BOOST_TEST(trace.failing() == std::vector<std::string>{"resident-set"}, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_row_that_moved_with_its_old_number_fails) {
  Renumbered trace(false);
  trace.edit<trace::Move>(0, [](trace::Move& move) { move.to_position = 3; });
  const auto failing = trace.failing();
  BOOST_TEST((std::find(failing.begin(), failing.end(), "trace-truth") != failing.end()));
}

BOOST_AUTO_TEST_CASE(survivors_that_are_not_told_leave_later_windows_open) {
  Renumbered trace(false);
  for (int i = 0; i < 6; ++i) trace.erase<trace::RowDigests>(3);
  BOOST_TEST(trace.failing().empty());
  BOOST_TEST(std::string(to_text(trace.status_of("position-order"))) == "inconclusive");
}

BOOST_AUTO_TEST_CASE(survivors_told_once_break_the_grammar) {
  Renumbered trace(false);
  trace.erase<trace::RowDigests>(8);
  const auto failing = trace.failing();
  BOOST_TEST((std::find(failing.begin(), failing.end(), "event-grammar") != failing.end()));
}

BOOST_AUTO_TEST_CASE(views_below_the_gap_are_fresh_and_views_behind_it_are_stale) {
  for (const bool is_below : {true, false}) {
    TraceBuilder trace;
    trace.compact({.capacity = 8});
    trace.token(0, 0, 8);
    const ViewId view = trace.window(0, 0, 0, is_below ? Range{0, 2} : Range{4, 6});
    trace.evict(0, 0, {2, 3});
    trace.attend(view, is_below ? 1 : 5, 1, {}, true);
    trace.close(view);
    BOOST_TEST((trace.status_of("stale-refusal") == (is_below ? Status::pass : Status::fail)));
  }
}

BOOST_AUTO_TEST_SUITE_END()
