// Each check of the rules of paged stores by itself: of a fault that several of them see, what this one says of it.
#include "paged_cases.hpp"

#include <boost/test/unit_test.hpp>

#include <string_view>

using namespace kvwitness;
using namespace kvwitness::verify;
using namespace kvwitness::verify::testing;

namespace {

RuleVerdict judged(const PagedTrace& trace, std::string_view rule) {
  PagedTrace whole = trace;
  whole.finish();
  return whole.verdict_of(rule);
}

/// Two beams of two rows each; both become the first.
struct Reordered : PagedTrace {
  Reordered() {
    append(0, 2);
    append(1, 2);
    reorder({0, 0});
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(paged_checks)

/// A trace may name any sequence. Who asks what its pool holds gets nothing, as of an empty one.
BOOST_AUTO_TEST_CASE(an_admission_of_a_sequence_that_the_store_does_not_have_is_blamed) {
  PagedTrace trace;
  trace.admit(1, 9, 3, {11, 12});
  trace.append(1, 9);
  BOOST_TEST(only(trace) == "");
  trace.edit<trace::StoreCreated>(0, [](trace::StoreCreated& store) { store.sequences = 1; });
  BOOST_TEST((judged(trace, "prefix-sound").status == Status::fail));
  BOOST_TEST((judged(trace, "admission").status != Status::pass));
  BOOST_TEST((judged(trace, "event-grammar").status == Status::fail));
}

// ---- block-reference ------------------------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(an_entry_is_for_a_block_that_its_sequence_holds) {
  PagedTrace trace;
  trace.append(0, 1);
  trace.append(1, 1);
  trace.edit<trace::TableEntry>(1, [](trace::TableEntry& entry) { entry.block = 0; });
  BOOST_TEST(expects(trace, "block-reference", "an entry for a block that sequence 1 holds"));
}

BOOST_AUTO_TEST_CASE(an_entry_is_told_in_the_epoch_of_its_block_from_its_first_position) {
  const auto told = [](auto change) {
    PagedTrace trace;
    trace.append(0, 5);
    trace.edit<trace::TableEntry>(1, change);
    return trace;
  };
  BOOST_TEST(only(told([](trace::TableEntry&) {})) == "");
  BOOST_TEST(expects(told([](trace::TableEntry& entry) { ++entry.epoch; }), "block-reference", "block 1 in its epoch"));
  BOOST_TEST(expects(told([](trace::TableEntry& entry) { ++entry.first; }), "block-reference", "from position 4"));
  BOOST_TEST(expects(told([](trace::TableEntry& entry) { entry.rows = 5; }), "block-reference", "of at most 4 rows"));
}

BOOST_AUTO_TEST_CASE(rows_of_a_window_lie_where_the_table_has_them) {
  PagedTrace trace;
  trace.append(0, 5);
  trace.close(trace.window(0, 0, {0, 5}));
  BOOST_TEST(only(trace) == "");
  trace.edit<trace::WindowRun>(0, [](trace::WindowRun& run) { ++run.slot; });
  BOOST_TEST(expects(trace, "block-reference", "position 0 in a window in slot 0 of block 0"));
}

BOOST_AUTO_TEST_CASE(a_copy_on_write_starts_where_the_rows_lie) {
  Forked trace;
  trace.edit<trace::Move>(0, [](trace::Move& move) { move.from_slot = 12; });
  BOOST_TEST(expects(trace, "block-reference", "position 4 copied in slot 4 of block 1"));
}

BOOST_AUTO_TEST_CASE(a_copy_on_write_ends_in_a_block_that_is_held) {
  Forked trace;
  trace.edit<trace::Move>(0, [](trace::Move& move) { move.to_slot = 20; });
  BOOST_TEST(expects(trace, "block-reference", "copied to a block that sequence 1 holds"));
}

BOOST_AUTO_TEST_CASE(a_copy_on_write_fits_into_its_block) {
  Forked trace;
  trace.edit<trace::Move>(0, [](trace::Move& move) { move.count = 5; });
  BOOST_TEST(expects(trace, "block-reference", "position 4 copied to row 0 of a block"));
}

BOOST_AUTO_TEST_CASE(the_entry_behind_a_copy_is_for_the_block_copied_to) {
  Forked other;
  other.edit<trace::TableEntry>(4, [](trace::TableEntry& entry) { entry.block = 0, entry.epoch = 1; });
  BOOST_TEST(expects(other, "block-reference", "block 2, which the rows of entry 1 were copied to"));
  Forked none;
  none.erase<trace::TableEntry>(4);
  BOOST_TEST(expects(none, "block-reference", "an entry for block 2, which rows were copied to"));
}

BOOST_AUTO_TEST_CASE(tables_of_every_beam_and_of_a_child_are_whole) {
  Reordered beams;
  BOOST_TEST(only(beams) == "");
  beams.erase<trace::TableEntry>(2);
  BOOST_TEST(expects(beams, "block-reference", "entries [0, 1) of sequence 1"));
  Forked child;
  child.erase<trace::TableEntry>(3);
  BOOST_TEST(expects(child, "block-reference", "entries [0, 2) of sequence 1"));
}

// ---- prefix-sound ---------------------------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(a_block_is_published_by_the_positions_that_it_has_and_by_its_holder) {
  const auto published = [](auto change) {
    Shared trace;
    trace.edit<trace::PrefixPublished>(1, change);
    return trace;
  };
  BOOST_TEST(
      expects(published([](trace::PrefixPublished& one) { one.block = 0; }), "prefix-sound", "block 0 published once"));
  BOOST_TEST(expects(published([](trace::PrefixPublished& one) { one.block = 2; }), "prefix-sound",
                     "the block of positions [4, 8)"));
  BOOST_TEST(expects(published([](trace::PrefixPublished& one) { one.from = 3; }), "prefix-sound",
                     "the block of positions [3, 8)"));
  BOOST_TEST(expects(published([](trace::PrefixPublished& one) { one.token_hash = 11; }), "prefix-sound",
                     "a hash that cannot be found yet"));
  BOOST_TEST(expects(published([](trace::PrefixPublished& one) { one.block = 5; }), "prefix-sound",
                     "a block that sequence 0 holds"));
}

BOOST_AUTO_TEST_CASE(an_admission_hits_all_that_can_be_found) {
  Shared trace;
  trace.erase<trace::PrefixHit>(1);
  BOOST_TEST(expects(trace, "prefix-sound", "a hit of 8 tokens"));
}

// ---- pool-conservation ----------------------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(what_is_cached_is_what_the_list_model_has_cached) {
  PagedTrace trace;
  trace.admit(0, 9, 3, {11, 12});
  trace.append(0, 9);
  trace.clear(0);
  BOOST_TEST(only(trace) == "");
  trace.erase<trace::BlockCached>(1);
  BOOST_TEST(expects(trace, "pool-conservation", "2 blocks cached"));
}

// ---- admission ------------------------------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(an_admission_alone_is_judged_and_so_is_a_refusal_for_memory) {
  PagedTrace admitted;
  admitted.admit(0, 9, 3, {});
  BOOST_TEST(judged(admitted, "admission").met == 1U);
  PagedTrace refused({.pool_blocks = 1});
  refused.append(0, 4);
  refused.refuse(0, appended(1), RefusalCode::no_memory);
  BOOST_TEST(only(refused) == "");
  BOOST_TEST(judged(refused, "admission").met == 1U);
}

BOOST_AUTO_TEST_CASE(what_was_admitted_was_not_promised_a_copy_of_what_others_hold_by_now) {
  PagedTrace trace({.pool_blocks = 2});
  trace.admit(0, 6, 2, {});
  trace.append(0, 6);
  PagedTrace alone = trace;
  alone.refuse(0, appended(1), RefusalCode::no_memory);
  BOOST_TEST(expects(alone, "admission", "sequence 0 served up to the 8 tokens"));
  trace.fork(0, 1, 6);
  trace.refuse(0, appended(1), RefusalCode::no_memory);
  BOOST_TEST(only(trace) == "");
}

// ---- stream-order ---------------------------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(a_wait_is_for_a_signal_that_was_given) {
  PagedTrace trace;
  trace.append(0, 5);
  trace.swap_out(0);
  trace.edit<trace::Wait>(1, [](trace::Wait& wait) { wait.signal = 99; });
  BOOST_TEST(expects(trace, "stream-order", "a wait for a signal that was given"));
}

// ---- shared-write, non-interference ---------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(rows_read_are_compared_with_those_seen_before) {
  PagedTrace trace;
  trace.append(0, 4);
  trace.append(1, 4);
  trace.close(trace.window(0, 0, {0, 4}));
  trace.append(1, 1);
  trace::Called called{};
  called.operation = Operation::read;
  called.to = 4;
  trace.step_begin(0, 0, Operation::read);
  trace.emit({0, 0, 0}, called);
  trace::ReadRows rows{};
  rows.to = 4;
  const auto seen = trace.payload<trace::WindowRun>(0);
  rows.k_digest = seen.k_digest;
  rows.v_digest = seen.v_digest;
  trace.emit({0, 0, 0}, rows);
  trace::RegionMeasured region{};
  region.operation = Operation::read;
  region.evidence = trace::Evidence::observed;
  trace.emit({0, 0, 0}, region);
  trace.step_end();
  BOOST_TEST(!fails(trace, "non-interference"));
  trace.edit<trace::ReadRows>(0, [](trace::ReadRows& read) { ++read.v_digest; });
  BOOST_TEST(expects(trace, "non-interference", "rows of sequence 0"));
}

BOOST_AUTO_TEST_SUITE_END()
