// Pools with policies of their own for what can be found, and for blocks ahead of rows: generated tokens, several
// blocks by one hash, lookahead; and cells.
#include "paged_cases.hpp"

#include <boost/test/unit_test.hpp>

#include <string_view>
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
  BOOST_TEST(fails(untold(trace), "prefix-sound"));
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

// ---- blocks ahead of their rows -------------------------------------------------------------------------------------

namespace {

/// Three tokens and room for three drafts: two blocks.
struct Ahead : PagedTrace {
  explicit Ahead(const PagedSpec& spec = {.lookahead = 3}) : PagedTrace(spec) { append(0, 3); }
};

}  // namespace

BOOST_AUTO_TEST_CASE(a_table_may_have_blocks_ahead_of_its_rows) {
  Ahead trace;
  BOOST_TEST(trace.blocks(0).size() == 2U);
  trace.append(0, 4);
  trace.truncate(0, 4);
  BOOST_TEST(trace.blocks(0).size() == 3U);
  trace.append(0, 1);
  trace.append(0, 4);
  trace.clear(0);
  trace.append(1, 1);
  BOOST_TEST(only(trace) == "");
  BOOST_TEST(only(untold(trace)) == "block-reference pool-conservation");
}

BOOST_AUTO_TEST_CASE(more_blocks_ahead_than_the_policy_says_fail) {
  Ahead trace({.lookahead = 5});
  BOOST_TEST(only(trace) == "");
  PagedTrace other = trace;
  other.edit<trace::PoolPolicy>(0, [](trace::PoolPolicy& one) { one.lookahead = 1; });
  BOOST_TEST(fails(other, "block-reference"));
  trace.edit<trace::PoolPolicy>(0, [](trace::PoolPolicy& one) { one.lookahead = 2; });
  BOOST_TEST(only(trace) == "");
}

BOOST_AUTO_TEST_CASE(blocks_ahead_that_are_never_given_back_fail) {
  Ahead trace;
  trace.clear(0);
  BOOST_TEST(only(trace) == "");
  trace.erase<trace::BlockRelease>();
  trace.erase<trace::BlockFree>();
  BOOST_TEST(fails(trace, "pool-conservation"));
  BOOST_TEST(fails(trace, "block-reference"));
}

BOOST_AUTO_TEST_CASE(a_truncate_gives_blocks_ahead_back_or_keeps_them) {
  Ahead trace;
  trace.append(0, 4);
  trace.truncate(0, 3);
  PagedTrace given_back = trace;
  const std::size_t end = given_back.index_of(EventType::Truncate);
  given_back.insert(end, {0, 0}, trace::BlockFree{trace::kNoSequence, trace.blocks(0)[2], 0, {}});
  given_back.insert(end, {0, 0}, trace::BlockRelease{0, trace.blocks(0)[2], 0, {}});
  BOOST_TEST(only(trace) == "");
  for (const std::string_view rule : {"block-reference", "pool-conservation"})
    BOOST_CHECK(given_back.status_of(rule) == Status::pass);
  // The one that rows lie in.
  PagedTrace lost = trace;
  lost.insert(end, {0, 0}, trace::BlockFree{trace::kNoSequence, trace.blocks(0)[0], 0, {}});
  lost.insert(end, {0, 0}, trace::BlockRelease{0, trace.blocks(0)[0], 0, {}});
  BOOST_TEST(lost.expects("block-reference", "entries [0, 2)"));
}

BOOST_AUTO_TEST_CASE(a_block_that_can_be_found_is_no_place_for_rows_to_come) {
  PagedTrace trace({.publishing = PublishingPolicy::filled, .lookahead = 3});
  trace.admit(0, 9, 8, {11, 12});
  trace.append(0, 9);
  trace.truncate(0, 4);  // into the prompt: block 1 is published
  trace.append(0, 4, {13});
  BOOST_TEST(only(trace) == "");
  PagedTrace kept = trace;
  kept.erase<trace::BlockRelease>(1);
  kept.erase<trace::BlockCached>(0);
  BOOST_TEST(fails(kept, "block-reference"));
}

BOOST_AUTO_TEST_CASE(an_append_may_be_refused_for_want_of_blocks_ahead_and_no_other) {
  for (const std::uint32_t pool_blocks : {2U, 3U}) {
    Ahead trace({.pool_blocks = pool_blocks, .lookahead = 4});
    PagedTrace done({.pool_blocks = pool_blocks});
    trace.refuse(0, appended(2), RefusalCode::no_memory);
    BOOST_TEST(fails(trace, "legal-refused") == (pool_blocks == 3));
  }
  Ahead longer({.pool_blocks = 2, .lookahead = 4});
  longer.refuse(0, appended(6), RefusalCode::no_memory);
  BOOST_TEST(only(longer) == "");
}

BOOST_AUTO_TEST_CASE(an_admission_may_be_refused_for_want_of_blocks_ahead) {
  for (const std::uint32_t lookahead : {0U, 1U}) {
    PagedTrace trace({.pool_blocks = 2, .admission = AdmissionPolicy::prompt, .lookahead = lookahead});
    PagedTrace done = trace;
    trace.refuse(0, admitted(8, 0), RefusalCode::no_memory);
    BOOST_TEST(only(trace) == (lookahead == 0 ? "legal-refused" : ""));
    done.admit(0, 8, 0, {11, 12});
    BOOST_TEST(only(done) == "");
  }
}

BOOST_AUTO_TEST_CASE(a_reservation_covers_the_blocks_ahead) {
  PagedTrace trace({.pool_blocks = 3, .lookahead = 3});
  trace.admit(0, 5, 4, {11});
  BOOST_TEST((trace.payload<trace::Admitted>().reserved_blocks == 3U));
  trace.append(0, 5);
  trace.append(0, 4);
  BOOST_TEST(only(trace) == "");
}

// ---- cells ----------------------------------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(a_unified_cache_of_cells_is_a_pool_of_blocks_of_one_row) {
  PagedTrace trace({.block = 1, .pool_blocks = 12, .layers = 2, .order = BlockOrder::any});
  trace.append(0, 4);
  trace.fork(0, 1, 3);  // cells of both
  trace.append(1, 2);
  trace.append(0, 1);
  trace.evict(0, 2);  // sequence 1 has them still
  trace.close(trace.window(1, 1, {0, 5}));
  trace.truncate(1, 4);
  trace.append(2, 3);
  trace.reorder({1, 1});
  trace.append(0, 1);
  trace.clear(1);
  trace.append(1, 2);
  BOOST_TEST(only(trace) == "");
  BOOST_CHECK(verdict(trace, "shared-write").status == Status::pass);
  BOOST_TEST(trace.count(EventType::Move) == 0U);
  // The fork writes its first row to a cell that it shares.
  PagedTrace shared({.block = 1, .pool_blocks = 12, .order = BlockOrder::any});
  shared.append(0, 4);
  shared.fork(0, 1, 3);
  shared.append(1, 1);
  BOOST_TEST(only(shared) == "");
  shared.edit<trace::Append>(shared.count(EventType::Append) - 1,
                             [&](trace::Append& piece) { piece.slot = shared.blocks(0)[2]; });
  BOOST_TEST(fails(shared, "shared-write"));
}

BOOST_AUTO_TEST_SUITE_END()
