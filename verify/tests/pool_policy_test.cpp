// Pools that hand out, promise and publish their blocks in other ways than a pool without PoolPolicy: what is right by
// the policy that they tell, and the smallest fault within it.
#include "paged_cases.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <string>
#include <string_view>

using namespace kvwitness;
using namespace kvwitness::verify;
using namespace kvwitness::verify::testing;

using trace::AdmissionPolicy;
using trace::BlockOrder;
using trace::EventType;

namespace {

/// The nth block that was taken is another one, in all that is told of it; `epoch`: how often that one was taken.
void take_instead(PagedTrace& trace, std::size_t nth, std::uint32_t block, std::uint64_t epoch) {
  const std::uint32_t before = trace.payload<trace::BlockAlloc>(nth).block;
  trace.edit<trace::BlockAlloc>(nth, [&](trace::BlockAlloc& taken) { taken.block = block; });
  for (std::size_t i = trace.index_of(EventType::BlockAlloc, nth); i < trace.events.size(); ++i) {
    Event& event = trace.events[i];
    if (event.type == EventType::TableEntry) {
      auto entry = trace::payload_of<trace::TableEntry>(event);
      if (entry.block != before) continue;
      entry.block = block;
      entry.epoch = epoch;
      event.payload = trace::make_event({}, entry).payload;
    } else if (event.type == EventType::Append) {
      auto piece = trace::payload_of<trace::Append>(event);
      if (piece.slot / 4 == before) piece.slot = block * 4 + piece.slot % 4;
      event.payload = trace::make_event({}, piece).payload;
    }
  }
}

/// Four blocks of which sequence 0 had three, two published, and sequence 1 the fourth: the queue is 2 (free), 1, 0
/// (cached), 3 (free).
struct Queued : PagedTrace {
  explicit Queued(BlockOrder order = BlockOrder::queue) : PagedTrace({.pool_blocks = 4, .order = order}) {
    admit(0, 9, 3, {11, 12});
    append(0, 9);
    clear(0);
    append(1, 1);
    clear(1);
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(pool_policies)

// ---- one queue of free and cached blocks ----------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(blocks_are_taken_from_the_head_of_the_queue_cached_or_not) {
  Queued trace;
  trace.append(2, 9);
  BOOST_TEST((trace.blocks(2) == std::vector<std::uint32_t>{2, 1, 0}));
  BOOST_TEST(only(trace) == "");
  BOOST_CHECK(verdict(trace, "pool-conservation").status == Status::pass);
  BOOST_TEST(only(untold(trace)) == "pool-conservation");
}

BOOST_AUTO_TEST_CASE(a_block_that_is_not_the_head_of_the_queue_fails) {
  Queued trace;
  trace.append(2, 1);
  BOOST_TEST(only(trace) == "");
  take_instead(trace, 4, 3, 2);  // free, but let go last
  BOOST_TEST(only(trace) == "pool-conservation");
  BOOST_TEST(only(untold(trace)) == "");
  Queued cached;
  cached.append(2, 5);  // blocks 2 and 1
  const std::size_t dropped = cached.count(EventType::BlockFree) - 1;
  cached.edit<trace::BlockFree>(dropped, [](trace::BlockFree& one) { one.block = 0; });
  take_instead(cached, 5, 0, 2);
  BOOST_TEST(only(cached) == "pool-conservation");
}

BOOST_AUTO_TEST_CASE(a_pool_that_keeps_cached_blocks_while_some_are_free_has_no_queue) {
  Queued trace(BlockOrder::free_first);
  trace.append(2, 5);
  BOOST_TEST(only(trace) == "");
  trace::PoolPolicy policy{};
  policy.order = BlockOrder::queue;
  trace.insert(trace.index_of(EventType::PoolDeclared) + 1, {0}, policy);
  BOOST_TEST(only(trace) == "pool-conservation");
}

BOOST_AUTO_TEST_CASE(a_hit_takes_cached_blocks_out_of_the_middle_of_the_queue) {
  Queued trace;
  BOOST_TEST(trace.admit(2, 9, 3, {11, 12}) == 8U);
  trace.append(2, 1);
  trace.append(3, 1);
  BOOST_TEST((trace.blocks(2) == std::vector<std::uint32_t>{0, 1, 2}));
  BOOST_TEST((trace.blocks(3) == std::vector<std::uint32_t>{3}));
  BOOST_TEST(only(trace) == "");
  take_instead(trace, 5, 1, 2);  // found, and held again
  BOOST_TEST(fails(trace, "pool-conservation"));
}

BOOST_AUTO_TEST_CASE(blocks_that_were_never_taken_head_the_queue) {
  PagedTrace trace({.pool_blocks = 3, .order = BlockOrder::queue});
  trace.append(0, 1);
  trace.clear(0);
  trace.append(1, 1);
  PagedTrace other = trace;
  take_instead(other, 1, 2, 1);  // of those, any
  BOOST_TEST(only(trace) == "");
  BOOST_TEST(only(other) == "");
  take_instead(trace, 1, 0, 2);
  BOOST_TEST(only(trace) == "pool-conservation");
}

BOOST_AUTO_TEST_CASE(a_cached_block_is_dropped_for_somebody_who_takes_it) {
  PagedTrace trace({.pool_blocks = 2, .order = BlockOrder::queue});
  trace.admit(0, 5, 3, {11});
  trace.append(0, 5);
  trace.clear(0);  // queue: 1 (free), 0 (cached)
  trace.append(1, 1);
  BOOST_TEST(only(trace) == "");
  trace.insert(trace.index_of(EventType::BlockAlloc, 2), {0, 1}, trace::BlockFree{trace::kNoSequence, 0, 0, {}});
  BOOST_TEST(expects(trace, "pool-conservation", "block 0 taken in the call that dropped it"));
}

BOOST_AUTO_TEST_CASE(blocks_may_be_dropped_together_before_they_are_taken) {
  Queued trace;
  trace.append(2, 9);
  const std::size_t second = trace.count(EventType::BlockFree) - 1;
  const trace::BlockFree dropped = trace.payload<trace::BlockFree>(second);
  trace.erase<trace::BlockFree>(second);
  trace.insert(trace.index_of(EventType::BlockFree, second - 1), {0, 2}, dropped);
  BOOST_TEST(only(trace) == "");
}

// ---- any order ------------------------------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(which_block_is_taken_is_the_affair_of_a_pool_of_any_order_and_the_verdict_says_so) {
  PagedTrace trace({.pool_blocks = 4, .order = BlockOrder::any});
  trace.admit(0, 9, 3, {11, 12});
  trace.append(0, 9);
  trace.clear(0);
  trace.append(1, 5);  // what was let go last: cached blocks, while others are free
  BOOST_TEST(only(trace) == "");
  const RuleVerdict kept = verdict(trace, "pool-conservation");
  BOOST_CHECK(kept.status == Status::pass);
  BOOST_TEST(kept.note.find("own affair") != std::string::npos);
  BOOST_TEST(only(untold(trace)) == "pool-conservation");
}

BOOST_AUTO_TEST_CASE(a_pool_of_any_order_takes_no_block_that_is_held_and_keeps_its_books) {
  PagedTrace trace({.pool_blocks = 4, .order = BlockOrder::any});
  trace.append(0, 1);
  trace.append(1, 1);
  PagedTrace held = trace;
  take_instead(held, 1, 3, 2);
  BOOST_TEST(fails(held, "pool-conservation"));
  PagedTrace kept = trace;
  kept.clear(1);
  BOOST_TEST(only(kept) == "");
  kept.erase<trace::BlockRelease>();
  kept.erase<trace::BlockFree>();
  BOOST_TEST(fails(kept, "pool-conservation"));
}

// ---- admission without a reservation --------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(a_request_is_admitted_when_its_prompt_fits_and_preempted_when_no_block_is_left) {
  PagedTrace trace({.pool_blocks = 4, .admission = AdmissionPolicy::prompt});
  trace.admit(0, 5, 20, {11});
  trace.append(0, 5);
  trace.admit(1, 5, 20, {13});
  trace.append(1, 5);
  trace.append(0, 3);
  trace.refuse(0, appended(1), RefusalCode::no_memory);
  trace.clear(1);
  trace.append(0, 1);
  trace.refuse(1, admitted(9, 20), RefusalCode::no_memory);
  BOOST_TEST(only(trace) == "");
  BOOST_CHECK(verdict(trace, "admission").status == Status::pass);
  BOOST_TEST(fails(untold(trace), "admission"));
}

BOOST_AUTO_TEST_CASE(an_admission_beyond_what_fits_fails) {
  PagedTrace trace({.pool_blocks = 2, .admission = AdmissionPolicy::prompt});
  PagedTrace other = trace;
  trace.admit(0, 8, 50, {11, 12});
  BOOST_TEST(only(trace) == "");
  other.admit(0, 9, 50, {11, 12});
  BOOST_TEST(only(other) == "admission");
}

BOOST_AUTO_TEST_CASE(cached_blocks_that_a_request_finds_are_not_there_for_its_other_blocks) {
  PagedTrace trace({.pool_blocks = 3, .admission = AdmissionPolicy::prompt});
  trace.admit(0, 5, 3, {11});
  trace.append(0, 5);
  trace.clear(0);
  trace.append(1, 4);  // one block is free, one is cached
  PagedTrace other = trace;
  trace.admit(2, 8, 50, {11, 12});
  BOOST_TEST(only(trace) == "");
  other.admit(2, 9, 50, {11, 12});
  BOOST_TEST(only(other) == "admission");
}

BOOST_AUTO_TEST_CASE(a_request_whose_prompt_fits_is_not_refused) {
  PagedTrace trace({.pool_blocks = 2, .admission = AdmissionPolicy::prompt});
  trace.refuse(0, admitted(8, 50), RefusalCode::no_memory);
  BOOST_TEST(fails(trace, "legal-refused"));
  PagedTrace other({.pool_blocks = 2, .admission = AdmissionPolicy::prompt});
  other.refuse(0, admitted(9, 50), RefusalCode::no_memory);
  BOOST_TEST(only(other) == "");
}

BOOST_AUTO_TEST_CASE(an_append_is_not_refused_while_a_block_is_left) {
  PagedTrace trace({.pool_blocks = 2, .admission = AdmissionPolicy::prompt});
  trace.admit(0, 4, 50, {11});
  trace.append(0, 4);
  PagedTrace other = trace;
  trace.refuse(0, appended(1), RefusalCode::no_memory);
  BOOST_TEST(only(trace) == "legal-refused");
  other.append(1, 1);
  other.refuse(0, appended(1), RefusalCode::no_memory);
  BOOST_TEST(only(other) == "");
}

BOOST_AUTO_TEST_CASE(what_is_not_reserved_is_not_told_to_be) {
  PagedTrace trace({.admission = AdmissionPolicy::prompt});
  trace.admit(0, 5, 20, {11});
  BOOST_TEST(only(trace) == "");
  PagedTrace reserved = trace;
  reserved.edit<trace::Admitted>(0, [](trace::Admitted& one) { one.reserved_blocks = 7; });
  BOOST_TEST(only(reserved) == "admission");
  trace.edit<trace::Admitted>(0, [](trace::Admitted& one) { one.peak_blocks = 7; });
  BOOST_TEST(only(trace) == "admission");
}

BOOST_AUTO_TEST_CASE(a_sequence_that_comes_back_reserves_nothing_either) {
  PagedTrace trace({.pool_blocks = 3, .admission = AdmissionPolicy::prompt});
  trace.admit(0, 5, 20, {11});
  trace.append(0, 5);
  trace.swap_out(0);
  trace.append(1, 4);
  trace.swap_in(0);
  BOOST_TEST(only(trace) == "");
  BOOST_TEST(fails(untold(trace), "admission"));
}

BOOST_AUTO_TEST_CASE(a_request_may_be_admitted_by_the_chunk_that_it_begins_with) {
  PagedTrace trace({.pool_blocks = 2, .admission = AdmissionPolicy::chunk});
  PagedTrace whole = trace;
  PagedTrace longer = trace;
  PagedTrace by_prompt({.admission = AdmissionPolicy::prompt});
  trace.admit(0, 20, 20, {11, 12}, 8);
  trace.append(0, 8);
  trace.refuse(0, appended(8), RefusalCode::no_memory);
  BOOST_TEST(only(trace) == "");
  longer.admit(0, 20, 20, {11, 12}, 9);
  BOOST_TEST(only(longer) == "admission");
  whole.admit(0, 20, 20, {11, 12});  // no chunk is told: it is the prompt
  BOOST_TEST(only(whole) == "admission");
  by_prompt.admit(0, 20, 20, {11, 12}, 8);
  BOOST_TEST(only(by_prompt) == "event-grammar");
}

BOOST_AUTO_TEST_CASE(a_chunk_begins_behind_what_is_found) {
  PagedTrace trace({.pool_blocks = 4, .admission = AdmissionPolicy::chunk});
  trace.admit(0, 5, 3, {11});
  trace.append(0, 5);  // two blocks are left
  PagedTrace other = trace;
  trace.admit(1, 20, 20, {11, 12}, 8);
  BOOST_TEST(only(trace) == "");
  other.admit(1, 20, 20, {11, 12}, 9);
  BOOST_TEST(only(other) == "admission");
}

// ---- how it is told -------------------------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(a_policy_is_told_once_behind_the_pool_and_in_front_of_the_first_call) {
  PagedTrace trace({.lookahead = 3});
  trace.append(0, 3);
  const auto policy = trace.payload<trace::PoolPolicy>();
  PagedTrace twice = trace;
  twice.insert(twice.index_of(EventType::PoolPolicy), {0}, policy);
  BOOST_TEST(only(twice) == "event-grammar");
  PagedTrace late;
  late.append(0, 1);
  late.emit({0}, policy);
  BOOST_TEST(only(late) == "event-grammar");
  PagedTrace without = trace;
  without.erase<trace::PoolDeclared>();
  BOOST_TEST(expects(without, "event-grammar", "the policy of a pool behind its declaration"));
  PagedTrace nobodys = trace;
  nobodys.insert(nobodys.index_of(EventType::PoolPolicy), {}, policy);
  BOOST_TEST(only(nobodys) == "event-grammar");
}

BOOST_AUTO_TEST_SUITE_END()
