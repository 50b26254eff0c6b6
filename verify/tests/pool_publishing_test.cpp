// Pools with policies of their own for what can be found: blocks of generated tokens, several by one hash; and pools of
// which nothing can be found any more.
#include "paged_cases.hpp"

#include <boost/test/unit_test.hpp>

#include <vector>

using namespace kvwitness;
using namespace kvwitness::verify;
using namespace kvwitness::verify::testing;

using trace::AdmissionPolicy;
using trace::BlockOrder;
using trace::EventType;
using trace::PublishingPolicy;

BOOST_AUTO_TEST_SUITE(pool_publishing)

// ---- blocks of generated tokens -------------------------------------------------------------------------------------

namespace {

/// A prompt of five tokens, and three that are generated; the last one fills the second block.
struct Filled : PagedTrace {
  explicit Filled(const PagedSpec& spec = {.publishing = PublishingPolicy::filled}) : PagedTrace(spec) {
    admit(0, 5, 8, {11});
    append(0, 5);
    append(0, 2);
    append(0, 1, {12});
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(blocks_of_generated_tokens_are_published_and_found) {
  Filled trace;
  trace.append(0, 1);
  BOOST_TEST(trace.admit(1, 9, 4, {11, 12}) == 8U);
  trace.append(1, 3);
  BOOST_TEST(only(trace) == "");
  BOOST_CHECK(verdict(trace, "prefix-sound").status == Status::pass);
  BOOST_TEST(fails(untold(trace), "prefix-sound"));
  const std::size_t entries = trace.count(EventType::StateDigest) - 1;
  trace.edit<trace::StateDigest>(entries, [](trace::StateDigest& state) { ++state.v_digest; });
  BOOST_TEST(fails(trace, "prefix-sound"));
}

BOOST_AUTO_TEST_CASE(a_block_that_was_named_and_filled_and_is_not_published_fails) {
  Filled trace;
  BOOST_TEST(only(trace) == "");
  trace.erase<trace::PrefixPublished>(1);
  BOOST_TEST(only(trace) == "prefix-sound");
}

BOOST_AUTO_TEST_CASE(a_block_that_is_published_before_it_is_full_fails) {
  for (const PublishingPolicy publishing : {PublishingPolicy::filled, PublishingPolicy::any}) {
    PagedTrace trace({.publishing = publishing});
    trace.admit(0, 9, 8, {11, 12});
    trace.append(0, 7);
    BOOST_TEST(only(trace) == "");
    const std::size_t end = trace.index_of(EventType::RegionMeasured, 1);
    trace.insert(end, {0, 0}, trace::PrefixPublished{12, 4, 8, trace.blocks(0)[1], 0, {}});
    BOOST_TEST(fails(trace, "prefix-sound"));
  }
}

BOOST_AUTO_TEST_CASE(names_come_in_front_of_an_append_that_leaves_their_blocks_full) {
  Filled trace;
  Filled early;
  early.erase<trace::PrefixPublished>(1);
  BOOST_TEST(only(trace) == "");
  // Named one append earlier, when a row is missing.
  const trace::BlockTokens tokens = early.payload<trace::BlockTokens>(1);
  early.erase<trace::BlockTokens>(1);
  early.insert(early.index_of(EventType::StepBegin, 2), {0, 0}, tokens);
  BOOST_TEST(fails(early, "event-grammar"));
  Filled again;
  again.insert(again.index_of(EventType::BlockTokens, 1), {0, 0}, again.payload<trace::BlockTokens>(1));
  BOOST_TEST(fails(again, "event-grammar"));
  Filled before;
  before.edit<trace::BlockTokens>(1, [](trace::BlockTokens& one) { one.from = 0, one.to = 4; });
  BOOST_TEST(fails(before, "event-grammar"));
  PagedTrace stranger({.publishing = PublishingPolicy::filled});
  stranger.append(0, 4, {11});  // was not admitted
  BOOST_TEST(fails(stranger, "event-grammar"));
}

BOOST_AUTO_TEST_CASE(drafts_that_were_taken_are_named_and_published_later) {
  PagedTrace trace({.publishing = PublishingPolicy::filled});
  trace.admit(0, 5, 8, {11});
  trace.append(0, 5);
  trace.append(0, 5);    // a token and four drafts, of which two are right
  trace.truncate(0, 8);  // the second block was full before it had a name
  trace.append(0, 1, {12});
  BOOST_TEST(trace.admit(1, 9, 4, {11, 12}) == 8U);
  BOOST_TEST(only(trace) == "");
  BOOST_CHECK(verdict(trace, "prefix-sound").status == Status::pass);
}

BOOST_AUTO_TEST_CASE(rows_that_were_written_before_they_had_a_name_are_compared_too) {
  PagedTrace trace({.publishing = PublishingPolicy::filled, .duplicates = true});
  for (const SequenceId one : {0U, 1U}) trace.admit(one, 5, 4, {11});
  for (const SequenceId one : {0U, 1U}) trace.append(one, 5);
  trace.append(0, 4);
  trace.append(1, 3, {12});
  PagedTrace other = trace;
  BOOST_CHECK(verdict(trace, "prefix-sound").status == Status::pass);
  trace.append(0, 1, {12});  // the rows were made apart
  BOOST_TEST(only(trace) == "");
  BOOST_CHECK(verdict(trace, "prefix-sound").status == Status::inconclusive);
  other.append(0, 1, {13});
  BOOST_CHECK(verdict(other, "prefix-sound").status == Status::pass);
}

BOOST_AUTO_TEST_CASE(blocks_are_named_as_far_as_a_sequence_goes_that_lets_go_of_its_beginning) {
  PagedTrace trace({.pool_blocks = 3, .admission = AdmissionPolicy::prompt, .publishing = PublishingPolicy::filled});
  trace.admit(0, 5, 30, {11});
  trace.append(0, 5);
  trace.append(0, 3, {12});
  trace.evict(0, 8);
  trace.append(0, 4, {13});
  trace.evict(0, 12);
  trace.append(0, 4, {14});
  BOOST_TEST(only(trace) == "");
}

BOOST_AUTO_TEST_CASE(generated_tokens_are_named_where_they_are_published_and_nowhere_else) {
  PagedTrace trace;
  trace.admit(0, 5, 8, {11});
  trace.append(0, 5);
  trace.append(0, 3, {12});
  BOOST_TEST(expects(trace, "event-grammar", "sequence 0 admitted, whose tokens were named"));
}

BOOST_AUTO_TEST_CASE(what_is_generated_anew_after_a_truncate_has_another_name_and_another_block) {
  Filled trace;
  trace.truncate(0, 6);
  trace.append(0, 2, {13});
  BOOST_TEST(only(trace) == "");
  BOOST_TEST((trace.blocks(0) == std::vector<std::uint32_t>{0, 2}));
  // Written to the block that can be found.
  trace.edit<trace::Append>(trace.count(EventType::Append) - 1, [](trace::Append& piece) { piece.slot = 6; });
  BOOST_TEST(fails(trace, "shared-write"));
}

BOOST_AUTO_TEST_CASE(what_is_published_may_be_the_pools_own_affair_and_the_verdict_says_so) {
  const Filled trace({.publishing = PublishingPolicy::any});
  BOOST_TEST(only(trace) == "");
  BOOST_TEST(verdict(trace, "prefix-sound").note.find("own affair") != std::string::npos);
  Filled none = trace;
  none.erase<trace::PrefixPublished>(1);
  BOOST_TEST(only(none) == "");
  Filled unnamed = trace;
  unnamed.edit<trace::PrefixPublished>(1, [](trace::PrefixPublished& one) { one.token_hash = 13; });
  BOOST_TEST(only(unnamed) == "prefix-sound");
}

BOOST_AUTO_TEST_CASE(blocks_may_be_published_when_their_sequence_ends) {
  Filled trace({.publishing = PublishingPolicy::any});
  const trace::PrefixPublished published = trace.payload<trace::PrefixPublished>(1);
  trace.clear(0);
  trace.erase<trace::PrefixPublished>(1);
  const std::size_t first = trace.index_of(EventType::BlockRelease);
  trace.insert(first, {0, 0}, published);
  BOOST_TEST(trace.admit(1, 9, 4, {11, 12}) == 8U);
  BOOST_TEST(only(trace) == "");
  BOOST_CHECK(verdict(trace, "prefix-sound").status == Status::pass);
  trace.edit<trace::PoolPolicy>(0, [](trace::PoolPolicy& one) { one.publishing = PublishingPolicy::filled; });
  BOOST_TEST(fails(trace, "prefix-sound"));
}

BOOST_AUTO_TEST_CASE(a_request_finds_no_more_than_it_names_and_may_name_the_rest_later) {
  for (const bool duplicates : {false, true}) {
    PagedTrace trace({.publishing = PublishingPolicy::filled, .duplicates = duplicates});
    trace.admit(0, 9, 3, {11, 12});
    trace.append(0, 9);
    // The block in front of its drafts is computed again.
    BOOST_TEST(trace.admit(1, 9, 3, {11}) == 4U);
    trace.append(1, 5, {12});
    BOOST_TEST(only(trace) == "");
    BOOST_TEST(trace.count(EventType::PrefixPublished) == (duplicates ? 3U : 2U));
  }
}

BOOST_AUTO_TEST_CASE(a_beam_publishes_no_block_that_its_parent_published) {
  PagedTrace trace({.publishing = PublishingPolicy::filled, .duplicates = true});
  trace.admit(0, 5, 8, {11});
  trace.append(0, 5);
  trace.admit(1, 5, 8, {13});
  trace.append(1, 5);
  trace.reorder({0, 0});
  trace.append(1, 3, {11, 12});  // the names of its parent's tokens, and of its own
  BOOST_TEST(trace.count(EventType::PrefixPublished) == 3U);
  BOOST_TEST(only(trace) == "");
  trace.erase<trace::PrefixPublished>(2);
  BOOST_TEST(only(trace) == "prefix-sound");
}

BOOST_AUTO_TEST_CASE(a_beam_publishes_what_its_parent_has_not_named) {
  PagedTrace trace({.publishing = PublishingPolicy::filled});
  trace.admit(0, 5, 8, {11});
  trace.append(0, 5);
  trace.append(0, 3);
  trace.admit(1, 5, 8, {13});
  trace.append(1, 5);
  trace.append(1, 3, {14});
  trace.reorder({0, 0});
  trace.append(1, 1, {11, 12});  // its own names went as far, and were of other blocks
  BOOST_TEST(trace.count(EventType::PrefixPublished) == 4U);
  trace.append(0, 1, {12});
  BOOST_TEST(trace.count(EventType::PrefixPublished) == 4U);
  BOOST_TEST(only(trace) == "");
}

// ---- everything cleared ---------------------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(nothing_is_found_after_everything_was_cleared) {
  for (const BlockOrder order : {BlockOrder::free_first, BlockOrder::queue}) {
    PagedTrace trace({.pool_blocks = 5, .order = order});
    trace.admit(0, 9, 3, {11, 12});
    trace.append(0, 9);
    PagedTrace found = trace;
    found.clear(0);
    const std::size_t end = found.events.size();
    found.admit(1, 9, 3, {11, 12});
    found.append(1, 1);
    BOOST_TEST(only(found) == "");
    found.insert(end, {0}, trace::BlocksCleared{});
    BOOST_TEST(fails(found, "prefix-sound"));
    trace.clear(0);
    trace.clear_cache();
    BOOST_TEST(trace.admit(1, 9, 3, {11, 12}) == 0U);
    trace.append(1, 9);  // other weights, other rows
    trace.append(2, 5);
    BOOST_TEST(only(trace) == "");
    BOOST_CHECK(verdict(trace, "prefix-sound").status == Status::pass);
    trace.erase<trace::BlocksCleared>();
    BOOST_TEST(fails(trace, "prefix-sound"));
  }
}

BOOST_AUTO_TEST_CASE(hashes_of_before_are_no_hashes_of_the_blocks_that_had_them) {
  PagedTrace trace({.pool_blocks = 5});
  trace.admit(0, 9, 3, {11, 12});
  trace.append(0, 9);
  trace.clear(0);
  trace.clear_cache();
  trace.admit(1, 5, 3, {11});
  trace.append(1, 5);
  trace.clear(1);  // block 3 is cached by the hash that block 0 had
  trace.append(2, 13);
  trace.clear(2);
  BOOST_TEST(trace.cached_blocks() == 1U);
  BOOST_TEST(only(trace) == "");
}

BOOST_AUTO_TEST_CASE(a_block_that_is_found_no_more_is_written_where_it_lies) {
  PagedTrace trace;
  trace.admit(0, 9, 3, {11, 12});
  trace.append(0, 9);
  trace.clear_cache();
  trace.truncate(0, 6);
  trace.append(0, 1);
  BOOST_TEST((trace.blocks(0) == std::vector<std::uint32_t>{0, 1}));
  BOOST_TEST(only(trace) == "");
  trace.erase<trace::BlocksCleared>();
  BOOST_TEST(fails(trace, "shared-write"));
}

BOOST_AUTO_TEST_CASE(everything_is_cleared_between_calls) {
  PagedTrace trace;
  trace.append(0, 1);
  trace.insert(trace.index_of(EventType::Append), {0}, trace::BlocksCleared{});
  BOOST_TEST(only(trace) == "event-grammar");
}

// ---- several blocks by one hash -------------------------------------------------------------------------------------

namespace {

/// The same prompt was filled by two sequences at a time: blocks 0 and 2 have its hash.
struct Doubled : PagedTrace {
  Doubled() : PagedTrace({.duplicates = true}) {
    admit(0, 5, 3, {11});
    admit(1, 5, 3, {11});
    append(0, 5);
    append(1, 5);
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(a_hash_may_find_several_blocks_and_any_of_them_is_right) {
  Doubled trace;
  trace.clear(1);  // block 2 is cached
  trace.admit(2, 5, 3, {11});
  BOOST_TEST((trace.blocks(2) == std::vector<std::uint32_t>{0}));
  BOOST_TEST(only(trace) == "");
  BOOST_CHECK(verdict(trace, "prefix-sound").status == Status::pass);
  BOOST_TEST(expects(untold(trace), "prefix-sound", "a hash that cannot be found yet"));
  const auto find_instead = [](PagedTrace& of, std::uint32_t block, std::uint32_t holders) {
    of.edit<trace::BlockHold>(0, [&](trace::BlockHold& one) { one.block = block, one.holders = holders; });
    of.edit<trace::PrefixHit>(0, [&](trace::PrefixHit& one) { one.block = block; });
    of.edit<trace::TableEntry>(of.count(EventType::TableEntry) - 1, [&](trace::TableEntry& one) { one.block = block; });
  };
  // The books of the store's own, at the end, are of the other one.
  PagedTrace other = trace;
  other.finish();
  find_instead(other, 2, 1);
  BOOST_CHECK(other.status_of("prefix-sound") == Status::pass);
  BOOST_CHECK(other.status_of("pool-conservation") == Status::pass);
  BOOST_CHECK(other.status_of("block-reference") == Status::pass);
  BOOST_TEST(other.expects("accounting", "0 cached blocks"));
  find_instead(trace, 1, 2);  // a block without a hash
  BOOST_TEST(fails(trace, "prefix-sound"));
}

BOOST_AUTO_TEST_CASE(which_of_several_blocks_was_taken_again_and_which_was_found_is_followed) {
  PagedTrace trace({.pool_blocks = 6, .admission = AdmissionPolicy::prompt, .duplicates = true});
  for (const SequenceId one : {0U, 1U, 2U}) trace.admit(one, 5, 0, {11});
  for (const SequenceId one : {0U, 1U, 2U}) trace.append(one, 5);
  trace.clear(2);
  trace.clear(1);      // blocks 4 and 2 are cached, 0 is held
  trace.append(1, 9);  // two free blocks, and block 4
  trace.clear(1);
  trace.admit(3, 5, 0, {11});
  BOOST_TEST((trace.blocks(3) == std::vector<std::uint32_t>{0}));
  BOOST_TEST(only(trace) == "");
  trace.finish();
  trace.edit<trace::BlockHold>(0, [](trace::BlockHold& one) { one.block = 2, one.holders = 1; });
  trace.edit<trace::PrefixHit>(0, [](trace::PrefixHit& one) { one.block = 2; });
  trace.edit<trace::TableEntry>(trace.count(EventType::TableEntry) - 1, [](trace::TableEntry& one) { one.block = 2; });
  BOOST_TEST(trace.expects("accounting", "0 cached blocks"));
}

BOOST_AUTO_TEST_CASE(a_hit_that_may_cost_a_block_or_not_may_be_refused_or_done) {
  PagedTrace trace({.pool_blocks = 5, .admission = AdmissionPolicy::prompt, .duplicates = true});
  for (const SequenceId one : {0U, 1U}) trace.admit(one, 5, 0, {11});
  for (const SequenceId one : {0U, 1U}) trace.append(one, 5);
  trace.clear(1);      // block 2 is cached, 0 is held
  trace.append(1, 4);  // two blocks are free, and the cached one
  for (const std::uint32_t prompt : {8U, 12U}) {
    PagedTrace done = trace;
    done.admit(2, prompt, 0, {11});  // needs one or two more, and finds block 0
    BOOST_TEST(only(done) == "");
    PagedTrace refused = trace;
    refused.emit({0, 2}, trace::BlockTokens{11, 0, 4, {}});
    refused.refuse(2, admitted(prompt, 0), RefusalCode::no_memory);
    BOOST_TEST(only(refused) == (prompt == 8 ? "legal-refused" : ""));
  }
}

BOOST_AUTO_TEST_CASE(one_of_several_blocks_is_found_after_another_was_taken_again) {
  PagedTrace trace({.pool_blocks = 4, .order = BlockOrder::queue, .duplicates = true});
  trace.admit(0, 5, 3, {11});
  trace.admit(1, 5, 3, {11});
  trace.append(0, 5);
  trace.append(1, 5);
  trace.clear(0);
  trace.clear(1);      // the queue is 1, 0 (cached), 3, 2 (cached)
  trace.append(2, 5);  // blocks 1 and 0
  BOOST_TEST(trace.admit(3, 5, 0, {11}) == 4U);
  trace.append(3, 1);
  BOOST_TEST((trace.blocks(3) == std::vector<std::uint32_t>{2, 3}));
  BOOST_TEST(only(trace) == "");
  // The one that was taken again is found no more.
  const std::size_t hit = trace.count(EventType::PrefixHit) - 1;
  trace.edit<trace::PrefixHit>(hit, [](trace::PrefixHit& one) { one.block = 0; });
  BOOST_TEST(only(trace) == "prefix-sound");
}

BOOST_AUTO_TEST_SUITE_END()
