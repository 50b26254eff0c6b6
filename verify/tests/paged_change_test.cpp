// One claim about blocks changed, told twice or put elsewhere, where no other rule would see it: the rule that does,
// and the nearest trace that is right.
#include "paged_cases.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <functional>

using namespace kvwitness;
using namespace kvwitness::verify;
using namespace kvwitness::verify::testing;
using trace::EventType;

namespace {

template <class P>
std::string with(PagedTrace trace, std::size_t nth, const std::function<void(P&)>& change) {
  trace.edit<P>(nth, change);
  return only(trace);
}

template <class P>
std::string twice(PagedTrace trace, std::size_t nth = 0) {
  const std::size_t at = trace.index_of(trace::kTypeOf<P>, nth);
  trace.events.insert(trace.events.begin() + static_cast<std::ptrdiff_t>(at), trace.events[at]);
  return only(trace);
}

/// The event stands behind the one that follows it.
std::string later(PagedTrace trace, std::size_t at) {
  std::swap(trace.events[at], trace.events[at + 1]);
  return only(trace);
}

/// Two full blocks and one row of sequence 0, which are swapped out and in again.
struct Swapped : PagedTrace {
  Swapped() {
    append(0, 9);
    swap_out(0);
    swap_in(0);
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(paged_change)

// ---- blocks ---------------------------------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(a_claim_about_a_holder_is_told_of_its_table) {
  BOOST_TEST(only(Forked()) == "");
  for (const EventType type : {EventType::BlockAlloc, EventType::BlockHold, EventType::BlockRelease}) {
    // A fork and a reorder are about several sequences, so that the grammar allows each of them.
    PagedTrace trace;
    trace.append(0, 2);
    trace.append(1, 2);
    trace.reorder({1, 0});
    BOOST_TEST(only(trace) == "");
    Event& event = trace.events[trace.index_of(type, trace.count(type) - 1)];
    event.sequence ^= 1U;
    BOOST_TEST(expects(trace, "pool-conservation", "the holder"));
    if (type != EventType::BlockAlloc) BOOST_TEST(only(trace) == "pool-conservation");
  }
}

BOOST_AUTO_TEST_CASE(a_block_that_is_free_or_cached_has_no_holder) {
  PagedTrace trace;
  trace.append(0, 5);
  trace.clear(0);
  BOOST_TEST(only(trace) == "");
  BOOST_TEST(with<trace::BlockFree>(trace, 0, [](auto& claim) { claim.holder = 0; }) == "pool-conservation");
  BOOST_TEST(with<trace::BlockFree>(trace, 1, [](auto& claim) { claim.holders = 1; }) == "pool-conservation");
  Shared cached;
  cached.clear(0);
  cached.clear(1);
  BOOST_TEST(only(cached) == "");
  BOOST_TEST(with<trace::BlockCached>(cached, 0, [](auto& claim) { claim.holders = 1; }) == "pool-conservation");
}

// ---- table entries --------------------------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(an_entry_is_told_with_the_rows_that_it_has_in_use) {
  const auto off = [](const PagedTrace& trace, std::size_t nth) {
    return with<trace::TableEntry>(trace, nth, [](auto& entry) { entry.rows += entry.rows == 0 ? 1 : -1; });
  };
  PagedTrace appended;
  appended.append(0, 9);
  for (const std::size_t nth : {0U, 1U, 2U}) BOOST_TEST(off(appended, nth) == "block-reference");
  const Forked forked;  // entries 0 and 1 of the parent, then the child's, then its copy on write
  BOOST_TEST(forked.payload<trace::TableEntry>(3).rows == 2U);
  BOOST_TEST(forked.payload<trace::TableEntry>(4).rows == 2U);
  for (const std::size_t nth : {2U, 3U, 4U}) BOOST_TEST(off(forked, nth) == "block-reference");
  const Swapped swapped;
  BOOST_TEST(swapped.payload<trace::TableEntry>(5).rows == 1U);
  for (const std::size_t nth : {3U, 5U}) BOOST_TEST(off(swapped, nth) == "block-reference");
  const Shared admitted;
  BOOST_TEST(off(admitted, admitted.count(EventType::TableEntry) - 1) == "block-reference");
  PagedTrace reordered;
  reordered.append(0, 3);
  reordered.append(1, 2);
  reordered.reorder({0, 0});
  BOOST_TEST(reordered.payload<trace::TableEntry>(2).rows == 3U);
  BOOST_TEST(off(reordered, 2) == "block-reference");
}

BOOST_AUTO_TEST_CASE(an_entry_is_told_once) {
  PagedTrace appended;
  appended.append(0, 5);
  BOOST_TEST(twice<trace::TableEntry>(appended) == "block-reference");
  BOOST_TEST(twice<trace::TableEntry>(Forked(), 4) == "block-reference");  // the copy on write
  BOOST_TEST(twice<trace::TableEntry>(Swapped(), 3) == "block-reference");
  BOOST_TEST(twice<trace::TableEntry>(Shared(), 3) == "block-reference");
}

BOOST_AUTO_TEST_CASE(a_block_has_one_entry_in_a_table) {
  PagedTrace trace;
  trace.append(0, 5);
  trace.edit<trace::TableEntry>(1, [](auto& entry) { entry.block = 0; });
  BOOST_TEST(expects(trace, "block-reference", "one entry for block 0 in the table of sequence 0"));
}

// ---- order in a call ------------------------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(blocks_are_told_between_the_rows_given_and_what_was_done) {
  const Shared shared;
  const std::size_t rows = shared.index_of(EventType::RowDigests, 8);  // the ninth, in front of the blocks
  BOOST_TEST((shared.events[rows + 1].type == EventType::BlockAlloc));
  BOOST_TEST(later(shared, rows) == "event-grammar");
  const std::size_t published = shared.index_of(EventType::PrefixPublished, 1);
  BOOST_TEST((shared.events[published + 1].type == EventType::Append));
  BOOST_TEST(later(shared, published) == "event-grammar");
  PagedTrace cleared;
  cleared.append(0, 2);
  cleared.clear(0);
  BOOST_TEST(later(cleared, cleared.index_of(EventType::BlockFree)) == "event-grammar");
  const Forked forked;
  const std::size_t fork = forked.index_of(EventType::Fork);
  BOOST_TEST(later(forked, fork - 1) == "block-reference event-grammar");  // what it shared is counted there as well
}

BOOST_AUTO_TEST_CASE(swaps_copy_blocks_in_any_order) {
  const Swapped trace;
  BOOST_TEST(later(trace, trace.index_of(EventType::SwapOut)) == "");
  BOOST_TEST(later(trace, trace.index_of(EventType::SwapIn)) == "");
}

// ---- prompts --------------------------------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(tokens_are_named_block_by_block_in_front_of_their_admission) {
  PagedTrace named;
  named.admit(0, 9, 3, {11, 12});
  BOOST_TEST(only(named) == "");
  using Tokens = trace::BlockTokens;
  BOOST_TEST(with<Tokens>(named, 0, [](auto& tokens) { tokens.from = 1; }) == "event-grammar");
  BOOST_TEST(with<Tokens>(named, 1, [](auto& tokens) { tokens.from = 0; }) == "event-grammar");
  BOOST_TEST(with<Tokens>(named, 1, [](auto& tokens) { tokens.from = 0, tokens.to = 4; }) == "event-grammar");
  BOOST_TEST(with<Tokens>(named, 1, [](auto& tokens) { tokens.from = 8, tokens.to = 12; }) == "event-grammar");
  BOOST_TEST(twice<Tokens>(named, 1) == "event-grammar");
  BOOST_TEST(later(named, named.index_of(EventType::BlockTokens)) == "event-grammar");  // the second one first
  BOOST_TEST(expects(named, "event-grammar", "") == false);
  PagedTrace between;
  between.admit(0, 9, 3, {11});
  between.edit<Tokens>(0, [](auto& tokens) { tokens.from = 2, tokens.to = 6; });
  BOOST_TEST(expects(between, "event-grammar", "the tokens of one block of 4"));
  // A block of which nobody named the tokens is left out.
  PagedTrace second = named;
  second.erase<Tokens>(0);
  BOOST_TEST(only(second) == "");
}

BOOST_AUTO_TEST_CASE(tokens_are_named_of_the_sequence_that_is_admitted_next) {
  PagedTrace trace;
  trace.append(1, 1);
  trace.admit(0, 5, 1, {11});
  const std::size_t tokens = trace.index_of(EventType::BlockTokens);
  PagedTrace early = trace;  // in front of another call
  std::rotate(early.events.begin() + static_cast<std::ptrdiff_t>(early.index_of(EventType::StepBegin)),
              early.events.begin() + static_cast<std::ptrdiff_t>(tokens),
              early.events.begin() + static_cast<std::ptrdiff_t>(tokens + 1));
  BOOST_TEST(expects(early, "event-grammar", "sequence 0 admitted, whose tokens were named"));
  PagedTrace inside = trace;  // behind Called
  std::swap(inside.events[tokens], inside.events[inside.index_of(EventType::Called, 1)]);
  BOOST_TEST(expects(inside, "event-grammar", "BlockTokens outside of calls"));
  PagedTrace other = trace;
  other.events[tokens].sequence = 2;
  BOOST_TEST(expects(other, "event-grammar", "sequence 2 admitted, whose tokens were named"));
  PagedTrace never = trace;
  never.append(2, 1);
  never.emit({0, 3}, trace::BlockTokens{11, 0, 4, {}});
  BOOST_TEST(expects(never, "event-grammar", "sequence 3 admitted, whose tokens were named"));
  PagedTrace too_far;
  too_far.admit(0, 9, 3, {11, 12});
  too_far.edit<trace::Called>(0, [](auto& called) { called.to = 7; });
  BOOST_TEST(expects(too_far, "event-grammar", "tokens named of a prompt of 7"));
}

BOOST_AUTO_TEST_CASE(no_more_blocks_are_named_than_the_pool_has) {
  PagedTrace trace({.pool_blocks = 1});
  trace::Called called{};
  called.operation = Operation::admit;
  called.to = 9;
  trace.emit({0, 0}, trace::BlockTokens{11, 0, 4, {}});
  trace.refuse(0, called, RefusalCode::no_memory);
  BOOST_TEST(only(trace) == "");
  trace.insert(trace.index_of(EventType::BlockTokens) + 1, {0, 0}, trace::BlockTokens{12, 4, 8, {}});
  BOOST_TEST(only(trace) == "event-grammar");
}

BOOST_AUTO_TEST_CASE(the_request_that_was_called_for_is_admitted) {
  BOOST_TEST(with<trace::Admitted>(Shared(), 0, [](auto& admitted) { ++admitted.request; }) == "event-grammar");
}

// ---- workloads ------------------------------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(a_workload_waits_for_room_and_a_script_does_not) {
  const auto asked = [](Operation operation, std::string_view step) {
    PagedTrace trace({.pool_blocks = 2, .host_blocks = 0});
    trace.append(0, 8);
    trace::Called called{};
    called.operation = operation;
    if (operation == Operation::admit) called.to = 5;
    if (operation == Operation::append) called.count = 1;
    trace.refuse(operation == Operation::admit ? 1 : 0, called, RefusalCode::no_memory);
    trace.erase<trace::Expected>();
    trace.claims.steps[0].operation = step;
    return only(trace);
  };
  for (const Operation operation : {Operation::admit, Operation::swap_out}) {
    BOOST_TEST(asked(operation, "workload") == "");
    BOOST_TEST(asked(operation, "decode") == "expected-outcome");
  }
  BOOST_TEST(asked(Operation::append, "workload") == "expected-outcome");
}

// ---- declarations ---------------------------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(layers_of_a_pool_are_declared_in_its_blocks) {
  PagedTrace trace({.layers = 2});
  trace.append(0, 2);
  BOOST_TEST(only(trace) == "");
  BOOST_TEST(with<trace::LayerDeclared>(trace, 1, [](auto& layer) { ++layer.block; }) == "event-grammar");
  BOOST_TEST(with<trace::LayerDeclared>(trace, 0, [](auto& layer) { layer.block = 0; }) == "event-grammar");
  trace.erase<trace::PoolDeclared>();
  BOOST_TEST(expects(trace, "event-grammar", "a pool of a store that is paged"));
}

BOOST_AUTO_TEST_SUITE_END()
