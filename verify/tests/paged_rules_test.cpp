// Each rule of paged stores: the smallest bad trace, and only that rule fails where one fault shows in one place.
#include "paged_cases.hpp"

#include <boost/test/unit_test.hpp>

#include <string>
#include <string_view>
#include <vector>

using namespace kvwitness;
using namespace kvwitness::verify;
using namespace kvwitness::verify::testing;

namespace {

Status status(const PagedTrace& trace, std::string_view rule) {
  PagedTrace whole = trace;
  whole.finish();
  return whole.status_of(rule);
}

}  // namespace

// ---- pool-conservation ----------------------------------------------------------------------------------------------

BOOST_AUTO_TEST_SUITE(pool_conservation)

BOOST_AUTO_TEST_CASE(a_pool_that_is_whole_passes) {
  const Shared trace;
  BOOST_TEST(only(trace) == "");
  BOOST_CHECK(status(trace, "pool-conservation") == Status::pass);
}

BOOST_AUTO_TEST_CASE(a_block_freed_twice_fails) {
  PagedTrace trace;
  trace.append(0, 1);
  trace.clear(0);
  trace.insert(trace.index_of(trace::EventType::BlockFree), {0, 0}, trace.payload<trace::BlockFree>());
  BOOST_TEST(only(trace) == "pool-conservation");
}

BOOST_AUTO_TEST_CASE(a_release_without_what_follows_it_fails) {
  PagedTrace trace;
  trace.append(0, 1);
  trace.clear(0);
  trace.erase<trace::BlockFree>();
  BOOST_TEST(only(trace) == "pool-conservation");
}

BOOST_AUTO_TEST_CASE(a_block_that_is_taken_while_it_is_held_fails) {
  PagedTrace trace;
  trace.append(0, 1);
  trace.append(1, 1);
  trace.edit<trace::BlockAlloc>(1, [](trace::BlockAlloc& taken) { taken.block = 0; });
  BOOST_TEST(fails(trace, "pool-conservation"));
}

BOOST_AUTO_TEST_CASE(a_block_outside_of_the_pool_fails) {
  PagedTrace trace;
  trace.append(0, 1);
  trace.edit<trace::BlockAlloc>(0, [](trace::BlockAlloc& taken) { taken.block = 8; });
  BOOST_TEST(fails(trace, "pool-conservation"));
}

BOOST_AUTO_TEST_CASE(a_count_of_holders_that_is_not_raised_fails) {
  Shared trace;
  trace.edit<trace::BlockHold>(0, [](trace::BlockHold& hold) { hold.holders = 1; });
  BOOST_TEST(only(trace) == "pool-conservation");
}

BOOST_AUTO_TEST_CASE(a_block_kept_after_a_clear_fails) {
  PagedTrace trace;
  trace.append(0, 5);
  trace.clear(0);
  trace.erase<trace::BlockRelease>();
  trace.erase<trace::BlockFree>();
  BOOST_TEST(fails(trace, "pool-conservation"));
}

BOOST_AUTO_TEST_CASE(cached_blocks_are_taken_again_in_their_order_and_only_when_none_is_free) {
  PagedTrace trace({.pool_blocks = 3});
  trace.admit(0, 9, 3, {11, 12});
  trace.append(0, 9);
  trace.clear(0);  // block 1 is cached before block 0
  trace.append(1, 5);
  BOOST_TEST(only(trace) == "");
  const std::size_t freed = trace.count(trace::EventType::BlockFree) - 1;
  PagedTrace other = trace;
  other.edit<trace::BlockFree>(freed, [](trace::BlockFree& one) { one.block = 0; });
  BOOST_TEST(fails(other, "pool-conservation"));
  PagedTrace early = trace;
  const trace::BlockFree again = early.payload<trace::BlockFree>(freed);
  early.erase<trace::BlockFree>(freed);
  early.insert(early.index_of(trace::EventType::BlockAlloc, 3), {0, 1}, again);
  BOOST_TEST(fails(early, "pool-conservation"));
}

BOOST_AUTO_TEST_SUITE_END()

// ---- block-reference ------------------------------------------------------------------------------------------------

BOOST_AUTO_TEST_SUITE(block_reference)

BOOST_AUTO_TEST_CASE(an_entry_of_an_earlier_allocation_fails) {
  PagedTrace trace({.pool_blocks = 1});
  trace.append(0, 1);
  trace.clear(0);
  trace.append(0, 1);
  BOOST_TEST(only(trace) == "");
  trace.edit<trace::TableEntry>(1, [](trace::TableEntry& entry) { entry.epoch = 1; });
  BOOST_TEST(only(trace) == "block-reference");
}

BOOST_AUTO_TEST_CASE(an_entry_for_a_block_of_another_sequence_fails) {
  PagedTrace trace;
  trace.append(0, 1);
  trace.append(1, 1);
  trace.edit<trace::TableEntry>(1, [](trace::TableEntry& entry) { entry.block = 0; });
  BOOST_TEST(fails(trace, "block-reference"));
}

BOOST_AUTO_TEST_CASE(a_row_in_another_row_of_its_block_fails) {
  PagedTrace trace;
  trace.append(0, 1);
  trace.edit<trace::Append>(0, [](trace::Append& append) { append.slot = 1; });
  BOOST_TEST(fails(trace, "block-reference"));
}

BOOST_AUTO_TEST_CASE(an_entry_that_outlives_its_positions_fails) {
  PagedTrace trace;
  trace.append(0, 5);
  trace.truncate(0, 4);
  trace.erase<trace::BlockRelease>();
  trace.erase<trace::BlockFree>();
  BOOST_TEST(fails(trace, "block-reference"));
}

BOOST_AUTO_TEST_CASE(a_swap_that_leaves_a_block_out_fails) {
  PagedTrace trace;
  trace.append(0, 5);
  trace.swap_out(0);
  trace.swap_in(0);
  BOOST_TEST(only(trace) == "");
  PagedTrace out = trace;
  out.erase<trace::SwapOut>();
  BOOST_TEST(only(out) == "block-reference");
  PagedTrace elsewhere = trace;
  elsewhere.edit<trace::SwapIn>(1, [](trace::SwapIn& swap) { swap.block = 7; });
  BOOST_TEST(only(elsewhere) == "block-reference");
}

BOOST_AUTO_TEST_SUITE_END()

// ---- shared-write ---------------------------------------------------------------------------------------------------

BOOST_AUTO_TEST_SUITE(shared_write)

BOOST_AUTO_TEST_CASE(a_copy_on_write_passes) {
  const Forked trace({.layers = 2});
  BOOST_TEST(only(trace) == "");
  BOOST_CHECK(status(trace, "shared-write") == Status::pass);
}

BOOST_AUTO_TEST_CASE(a_copy_of_one_row_too_few_or_of_one_layer_only_fails) {
  Forked rows;
  rows.edit<trace::Move>(0, [](trace::Move& move) {
    move.count = 1;
    move.bytes /= 2;
  });
  BOOST_TEST(only(rows) == "shared-write");
  Forked layers({.layers = 2});
  layers.erase<trace::Move>(1);
  BOOST_TEST(fails(layers, "shared-write"));
}

BOOST_AUTO_TEST_CASE(an_append_into_a_shared_block_fails) {
  PagedTrace trace;
  trace.append(0, 6);
  trace.fork(0, 1, 6);
  const std::size_t before = trace.events.size();
  trace.append(1, 1);
  std::erase_if(trace.events, [&, at = std::size_t{0}](const Event& event) mutable {
    using enum trace::EventType;
    const bool copies =
        event.type == Move || event.type == BlockAlloc || event.type == TableEntry || event.type == BlockRelease;
    return at++ >= before && copies;
  });
  const std::size_t last = trace.count(trace::EventType::Append) - 1;
  trace.edit<trace::Append>(last, [](trace::Append& append) { append.slot = 6; });
  BOOST_TEST(fails(trace, "shared-write"));
}

BOOST_AUTO_TEST_CASE(a_child_with_other_rows_than_its_parent_fails) {
  PagedTrace trace;
  trace.append(0, 6);
  trace.fork(0, 1, 5);
  BOOST_TEST(only(trace) == "");
  const std::size_t last = trace.count(trace::EventType::StateDigest) - 1;
  trace.edit<trace::StateDigest>(last, [](trace::StateDigest& state) { ++state.v_digest; });
  BOOST_TEST(fails(trace, "shared-write"));
}

BOOST_AUTO_TEST_CASE(beams_that_are_swapped_fail) {
  PagedTrace trace;
  trace.append(0, 2);
  trace.append(1, 2);
  trace.reorder({1, 0});
  BOOST_TEST(only(trace) == "");
  trace.edit<trace::Reorder>(0, [](trace::Reorder& one) { one.parent = 0; });
  trace.edit<trace::Reorder>(1, [](trace::Reorder& one) { one.parent = 1; });
  BOOST_TEST(fails(trace, "shared-write"));
}

BOOST_AUTO_TEST_SUITE_END()

// ---- prefix-sound ---------------------------------------------------------------------------------------------------

BOOST_AUTO_TEST_SUITE(prefix_sound)

BOOST_AUTO_TEST_CASE(hits_of_what_was_published_pass) {
  const Shared trace;
  BOOST_CHECK(status(trace, "prefix-sound") == Status::pass);
}

BOOST_AUTO_TEST_CASE(a_block_published_under_another_hash_or_before_it_is_full_fails) {
  Shared other;
  other.edit<trace::PrefixPublished>(1, [](trace::PrefixPublished& one) { one.token_hash = 99; });
  BOOST_TEST(fails(other, "prefix-sound"));
  PagedTrace early;
  early.admit(0, 9, 3, {11, 12});
  early.append(0, 3);
  early.insert(early.index_of(trace::EventType::Append), {0, 0}, trace::PrefixPublished{11, 0, 4, 0, 0, {}});
  BOOST_TEST(only(early) == "prefix-sound");
}

BOOST_AUTO_TEST_CASE(a_block_that_is_not_published_fails) {
  PagedTrace trace;
  trace.admit(0, 9, 3, {11, 12});
  trace.append(0, 9);
  trace.erase<trace::PrefixPublished>(1);
  BOOST_TEST(only(trace) == "prefix-sound");
}

BOOST_AUTO_TEST_CASE(a_hit_by_a_hash_that_was_not_named_or_of_another_block_fails) {
  Shared hash;
  hash.edit<trace::PrefixHit>(1, [](trace::PrefixHit& one) { one.token_hash = 99; });
  BOOST_TEST(only(hash) == "prefix-sound");
  Shared block;
  block.edit<trace::PrefixHit>(1, [](trace::PrefixHit& one) { one.block = 2; });
  BOOST_TEST(only(block) == "prefix-sound");
}

BOOST_AUTO_TEST_CASE(rows_of_a_hit_that_are_not_the_published_ones_fail) {
  Shared trace;
  const std::size_t last = trace.count(trace::EventType::StateDigest) - 1;
  trace.edit<trace::StateDigest>(last, [](trace::StateDigest& state) { ++state.k_digest; });
  BOOST_TEST(fails(trace, "prefix-sound"));
}

BOOST_AUTO_TEST_CASE(tokens_that_nobody_named_are_not_hit) {
  Shared trace;
  // As if the second request had asked for other tokens.
  trace.edit<trace::BlockTokens>(3, [](trace::BlockTokens& tokens) { tokens.token_hash = 77; });
  BOOST_TEST(fails(trace, "prefix-sound"));
}

BOOST_AUTO_TEST_SUITE_END()

// ---- admission ------------------------------------------------------------------------------------------------------

BOOST_AUTO_TEST_SUITE(admission)

BOOST_AUTO_TEST_CASE(a_reservation_one_block_short_or_long_fails) {
  for (const int off : {-1, 1}) {
    PagedTrace trace;
    trace.admit(0, 9, 3, {});
    BOOST_TEST(only(trace) == "");
    trace.edit<trace::Admitted>(0, [&](trace::Admitted& one) {
      one.reserved_blocks = static_cast<std::uint64_t>(static_cast<std::int64_t>(one.reserved_blocks) + off);
    });
    BOOST_TEST(only(trace) == "admission");
  }
}

BOOST_AUTO_TEST_CASE(an_admission_that_forgets_the_reservation_of_others_fails) {
  PagedTrace trace({.pool_blocks = 4});
  trace.admit(0, 9, 3, {});
  trace.admit(1, 4, 0, {});
  BOOST_TEST(only(trace) == "");
  PagedTrace more({.pool_blocks = 4});
  more.admit(0, 9, 3, {});
  more.admit(1, 5, 0, {});
  BOOST_TEST(only(more) == "admission");
}

BOOST_AUTO_TEST_CASE(an_append_that_takes_what_is_reserved_fails) {
  PagedTrace trace({.pool_blocks = 4});
  trace.admit(0, 9, 3, {});
  trace.append(1, 5);
  BOOST_TEST(only(trace) == "admission");
}

BOOST_AUTO_TEST_CASE(an_admitted_sequence_that_is_refused_for_memory_fails) {
  PagedTrace trace({.pool_blocks = 4});
  trace.admit(0, 9, 3, {});
  trace.append(0, 9);
  trace.refuse(0, appended(3), RefusalCode::no_memory);
  BOOST_TEST(fails(trace, "admission"));
  PagedTrace more({.pool_blocks = 4});
  more.admit(0, 9, 3, {});
  more.append(0, 12);
  more.append(1, 1);
  more.refuse(0, appended(1), RefusalCode::no_memory);  // beyond what it asked for
  BOOST_TEST(only(more) == "");
}

// What it shared before it was admitted excuses nothing afterwards.
BOOST_AUTO_TEST_CASE(a_sequence_that_was_a_fork_is_admitted_like_any_other) {
  PagedTrace trace({.pool_blocks = 4});
  trace.append(0, 4);
  trace.fork(0, 1, 4);
  trace.truncate(1, 0);
  trace.admit(1, 4, 0, {});
  BOOST_TEST(only(trace) == "");
  trace.refuse(1, appended(4), RefusalCode::no_memory);
  BOOST_TEST(fails(trace, "admission"));
}

BOOST_AUTO_TEST_SUITE_END()

// ---- stream-order ---------------------------------------------------------------------------------------------------

BOOST_AUTO_TEST_SUITE(stream_order)

BOOST_AUTO_TEST_CASE(each_wait_of_a_swap_is_needed) {
  PagedTrace trace;
  trace.append(0, 5);
  trace.swap_out(0);
  trace.swap_in(0);
  BOOST_CHECK(status(trace, "stream-order") == Status::pass);
  for (std::size_t nth = 0; nth < 4; ++nth) {
    PagedTrace without = trace;
    without.erase<trace::Wait>(nth);
    BOOST_TEST_CONTEXT("wait " << nth) BOOST_TEST(only(without) == "stream-order");
  }
}

BOOST_AUTO_TEST_CASE(a_wait_for_a_signal_that_was_never_given_fails) {
  PagedTrace trace;
  trace.append(0, 5);
  trace.swap_out(0);
  trace.edit<trace::Wait>(1, [](trace::Wait& wait) { wait.signal = 99; });
  BOOST_TEST(only(trace) == "stream-order");
}

BOOST_AUTO_TEST_CASE(blocks_given_back_before_their_copy_was_waited_for_fail) {
  PagedTrace trace;
  trace.append(0, 4);
  trace.swap_out(0);
  const trace::Wait last = trace.payload<trace::Wait>(1);
  trace.erase<trace::Wait>(1);
  trace.insert(trace.index_of(trace::EventType::BlockFree) + 1, {0, 0}, last);
  BOOST_TEST(only(trace) == "stream-order");
}

BOOST_AUTO_TEST_SUITE_END()

// ---- non-interference -----------------------------------------------------------------------------------------------

BOOST_AUTO_TEST_SUITE(non_interference)

struct TwoSequences : PagedTrace {
  TwoSequences() {
    append(0, 4);
    append(1, 4);
    close(window(0, 0, {0, 4}));
    append(1, 1);
    close(window(0, 0, {0, 4}));
  }
};

BOOST_AUTO_TEST_CASE(rows_that_stay_as_they_were_pass) {
  const TwoSequences trace;
  BOOST_CHECK(status(trace, "non-interference") == Status::pass);
}

BOOST_AUTO_TEST_CASE(rows_that_changed_by_a_call_on_another_sequence_fail) {
  TwoSequences trace;
  trace.edit<trace::WindowRun>(1, [](trace::WindowRun& run) { ++run.k_digest; });
  BOOST_TEST(fails(trace, "non-interference"));
  TwoSequences from_the_first;  // wrong before anything else happened: its own fault
  from_the_first.edit<trace::WindowRun>(0, [](trace::WindowRun& run) { ++run.k_digest; });
  BOOST_TEST(!fails(from_the_first, "non-interference"));
}

BOOST_AUTO_TEST_CASE(rows_that_are_shown_without_digests_blame_nobody) {
  TwoSequences window;
  window.edit<trace::WindowRun>(1, [](trace::WindowRun& run) { run.v_digest = 0; });
  BOOST_CHECK(status(window, "non-interference") == Status::inconclusive);
  TwoSequences never;  // nothing was ever seen right, so nothing can be said of it later
  for (const std::size_t nth : {0U, 1U})
    never.edit<trace::WindowRun>(nth, [](trace::WindowRun& run) { run.k_digest = run.v_digest = 0; });
  BOOST_CHECK(status(never, "non-interference") != Status::fail);
  for (const bool has_k : {false, true}) {
    TwoSequences state;
    const std::size_t index = state.index_of(trace::EventType::StepEnd, 3);  // of the call on the other sequence
    trace::StateDigest told{};
    told.to = 4;
    told.k_digest = has_k ? 1 : 0;
    told.reason = trace::DigestReason::at_end;
    state.insert(index + 1, {0, 0, 0}, told);
    BOOST_CHECK(status(state, "non-interference") == Status::inconclusive);
  }
}

BOOST_AUTO_TEST_SUITE_END()

// ---- accounting -----------------------------------------------------------------------------------------------------

BOOST_AUTO_TEST_SUITE(accounting)

BOOST_AUTO_TEST_CASE(each_number_is_recomputed) {
  Shared trace;
  trace.append(2, 3);
  trace.swap_out(2);
  trace.clear(0);
  trace.report();
  BOOST_CHECK(status(trace, "accounting") == Status::pass);
  for (std::size_t nth = 0; nth < 6; ++nth) {
    PagedTrace off = trace;
    off.edit<trace::Reported>(nth, [](trace::Reported& one) { ++one.value; });
    BOOST_TEST_CONTEXT("number " << nth) BOOST_TEST(fails(off, "accounting"));
  }
}

BOOST_AUTO_TEST_SUITE_END()

// ---- rules of every store -------------------------------------------------------------------------------------------

BOOST_AUTO_TEST_SUITE(paged_views)

BOOST_AUTO_TEST_CASE(a_view_over_rows_that_were_copied_or_given_back_is_stale) {
  PagedTrace trace;
  trace.append(0, 6);
  trace.fork(0, 1, 6);
  const ViewId view = trace.window(0, 0, {0, 6});
  const ViewId head = trace.window(0, 0, {0, 4});
  trace.append(0, 1);  // copies [4, 6)
  trace::Called attend{};
  attend.operation = Operation::attend;
  attend.view = view;
  attend.from = 5;
  attend.to = 6;
  attend.count = 1;
  trace.refuse(0, attend, RefusalCode::stale);
  trace.close(view);
  attend.view = head;
  PagedTrace fresh = trace;
  fresh.refuse(0, attend, RefusalCode::stale);
  fresh.close(head);
  BOOST_TEST(fails(fresh, "legal-refused"));
  trace.close(head);
  BOOST_TEST(only(trace) == "");
}

BOOST_AUTO_TEST_SUITE_END()
