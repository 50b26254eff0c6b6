// Pools whose tables have blocks ahead of their rows, and a unified cache of cells.
#include "paged_cases.hpp"

#include <boost/test/unit_test.hpp>

#include <string_view>

using namespace kvwitness;
using namespace kvwitness::verify;
using namespace kvwitness::verify::testing;

using trace::AdmissionPolicy;
using trace::BlockOrder;
using trace::EventType;
using trace::PublishingPolicy;

BOOST_AUTO_TEST_SUITE(pool_lookahead)

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

BOOST_AUTO_TEST_CASE(beams_with_blocks_ahead_are_not_followed) {
  Ahead trace;
  trace.append(1, 3);
  trace.reorder({0, 0});
  trace.finish();
  BOOST_CHECK(trace.verdict().status == Status::inconclusive);
}

BOOST_AUTO_TEST_CASE(a_reservation_covers_the_blocks_ahead) {
  PagedTrace trace({.pool_blocks = 5, .lookahead = 4});
  trace.admit(0, 5, 4, {11});
  BOOST_TEST((trace.payload<trace::Admitted>().reserved_blocks == 4U));
  trace.append(0, 5);
  trace.evict(0, 4);
  BOOST_TEST(trace.blocks(0).size() == 2U);  // and one block more for what it announced
  trace.admit(1, 1, 0, {});
  BOOST_TEST(only(trace) == "");
  trace.refuse(2, admitted(1, 0), RefusalCode::no_memory);
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
