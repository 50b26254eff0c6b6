// Blocks of sinks, counted by hand: blocks of 4 rows, 5 sinks, windows of 4 keys in 6 slots behind them.
#include "kvwitness/verify/model.hpp"
#include "kvwitness/verify/pages_model.hpp"

#include <boost/test/unit_test.hpp>

using namespace kvwitness;
using namespace kvwitness::verify;

namespace {

constexpr std::uint64_t kKeys[] = {4};

PagesModel pool_with_sinks(std::uint32_t blocks = 12) {
  return {{blocks, 4, 4, 0, {}},
          {.layers = 1, .sequences = 2, .all_slide = true, .slots_max = 6, .chunk_max = 3, .sinks_max = 5}};
}

/// Names the first `blocks` blocks of a prompt, the same for each sequence.
void name(PagesModel& pages, SequenceId sequence, std::uint32_t blocks) {
  for (std::uint32_t i = 0; i < blocks; ++i) pages.name(sequence, {100 + i, (i + 1) * 4});
}

/// Six blocks that were computed once and are held by nobody now.
PagesModel pool_of_six_cached() {
  PagesModel pages = pool_with_sinks();
  name(pages, 0, 6);
  pages.admit(0, {}, 30);
  pages.set_table(0, pages.pages_of(0, 24), 24);
  pages.publish(0, 0, 24);
  pages.end_call();
  pages.clear(0);
  BOOST_REQUIRE_EQUAL(pages.cached(), 6U);
  name(pages, 1, 6);
  return pages;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(pages_sinks)

BOOST_AUTO_TEST_CASE(a_table_has_the_sinks_blocks_and_the_windows) {
  PagesModel pages = pool_with_sinks();
  // Position 3 is the next one: one block, of sinks. At 26 with nothing held from 5 to 19: blocks 0 and 1, and 5 and 6.
  BOOST_CHECK((pages.pages_of(0, 3) == PageRange{1, 1, 1}));
  const PageRange apart = pages.pages_of(20, 26);
  BOOST_CHECK((apart == PageRange{5, 7, 2}));
  BOOST_CHECK_EQUAL(apart.count(), 4U);
  BOOST_CHECK(apart.has(1) && !apart.has(2) && !apart.has(4) && apart.has(5) && !apart.has(7));
  BOOST_CHECK(!apart.is_whole());
  BOOST_CHECK(pages.pages_of(9, 26).is_whole());
  pages.set_table(0, pages.pages_of(0, 26), 26);
  BOOST_CHECK_EQUAL(pages.held(), 7U);
  pages.set_table(0, apart, 26);
  BOOST_CHECK_EQUAL(pages.held(), 4U);
  BOOST_CHECK((pages.extended(0, 30) == PageRange{5, 8, 2}));
  // Taken back to among the sinks: nothing lies behind them any more.
  pages.set_table(0, pages.pages_of(0, 3), 3);
  BOOST_CHECK_EQUAL(pages.held(), 1U);
  BOOST_CHECK((pages.extended(0, 9) == PageRange{2, 3, 2}));
  pages.clear(0);
  BOOST_CHECK_EQUAL(pages.held(), 0U);
}

// However long a request is: 2 blocks of sinks, and the 6 + 3 rows of a window and a chunk, which lie in 3 blocks at
// most.
BOOST_AUTO_TEST_CASE(a_request_reserves_blocks_for_its_sinks) {
  BOOST_CHECK_EQUAL(pool_with_sinks().peak(1000), 5U);
  BOOST_CHECK_EQUAL(pool_with_sinks().peak(7), 2U);
}

// The query at 24 sees positions 0 to 4 and 21 to 23: blocks 0, 1 and 5.
BOOST_AUTO_TEST_CASE(a_hit_needs_the_sinks_and_the_window) {
  PagesModel pages = pool_of_six_cached();
  const PrefixFound found = pages.longest_hit(1, 25, kKeys);
  BOOST_CHECK_EQUAL(found.end, 24U);
  BOOST_CHECK((found.pages == PageRange{5, 6, 2}));
  BOOST_CHECK_EQUAL(found.cached, 3U);
  pages.take_again(103);  // block 3, which the query at 24 does not see
  BOOST_CHECK_EQUAL(pages.longest_hit(1, 25, kKeys).end, 24U);
  pages.take_again(101);  // the second block of sinks: only a query at 4 sees nothing of it
  BOOST_CHECK_EQUAL(pages.longest_hit(1, 25, kKeys).end, 4U);
}

BOOST_AUTO_TEST_CASE(what_a_sequence_gives_back_is_there_for_its_restore) {
  PagesModel pages = pool_with_sinks(5);
  pages.set_table(0, pages.pages_of(0, 12), 12);
  BOOST_CHECK_EQUAL(pages.available_instead(1), 2U);
  BOOST_CHECK_EQUAL(pages.available_instead(0), 5U);
  pages.share(0, 1, pages.pages_of(0, 8));  // two of its blocks have another holder now
  BOOST_CHECK_EQUAL(pages.available_instead(0), 3U);
}

BOOST_AUTO_TEST_CASE(rows_of_sinks_lie_apart_from_what_was_found_behind_them) {
  LayerModel rows(2);
  rows.append({1, 10});
  rows.append({2, 20});
  rows.skip_to(8);
  rows.append({3, 30});
  BOOST_CHECK((rows.held() == Range{8, 9}));
  BOOST_CHECK((rows.sinks() == Range{0, 2}));
  BOOST_CHECK_EQUAL(rows.digests()->k, 6U);
  BOOST_CHECK_EQUAL(rows.find(1)->v_digest, 20U);
  BOOST_CHECK(rows.find(2) == nullptr);
}

BOOST_AUTO_TEST_SUITE_END()
