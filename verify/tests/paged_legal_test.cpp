// Whatever a correct paged store does is blamed by no rule, and its law is that of blocks counted by hand.
#include "kvwitness/verify/model.hpp"
#include "kvwitness/verify/pages_model.hpp"
#include "paged_cases.hpp"

#include <boost/test/unit_test.hpp>

#include <random>
#include <string>
#include <vector>

using namespace kvwitness;
using namespace kvwitness::verify;
using namespace kvwitness::verify::testing;

namespace {

/// What failed and why, for the log.
std::string blame(const PagedTrace& trace) {
  PagedTrace copy = trace;
  copy.finish();
  std::string text;
  for (const RuleVerdict& rule : copy.verdict().rules) {
    if (rule.status == Status::inconclusive) text += rule.rule + " inconclusive: " + rule.note + "; ";
    if (rule.status == Status::fail && !rule.shown.empty()) {
      const Violation& one = rule.shown.front();
      text += rule.rule + " at " + std::to_string(one.event) + ": " + one.expected + " / " + one.observed + "; ";
    }
  }
  return text;
}

Lawful law_of(const PagedTrace& trace, SequenceId sequence, LayerIndex layer, const trace::Called& called) {
  Model model;
  std::uint64_t number = 0;
  for (Event event : trace.events) {
    event.number = number++;
    model.apply(event);
  }
  return lawful_answer(model, 0, sequence, layer, called);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(paged_legal)

BOOST_AUTO_TEST_CASE(appends_windows_and_edits_pass) {
  PagedTrace trace({.layers = 2});
  trace.append(0, 6);
  const ViewId view = trace.window(0, 1, {1, 6});
  trace.append(1, 3);
  trace.append(0, 1);
  trace.close(view);
  trace.truncate(0, 5);
  trace.evict(0, 4);
  trace.append(0, 4);
  trace.clear(1);
  BOOST_TEST(blame(trace) == "");
}

// Layer 1 was not given the rows of the token yet: the swap is against the law, and so is all that comes of it.
BOOST_AUTO_TEST_CASE(a_swap_in_the_middle_of_a_token_is_survived_and_blamed) {
  PagedTrace trace({.layers = 2});
  trace.admit(0, 9, 3, {11, 12});
  trace.append(0, 6);
  std::erase_if(trace.events, [](const Event& event) {
    using enum trace::EventType;
    return event.layer == 1 &&
           (event.type == Called || event.type == RowDigests || event.type == Append || event.type == RegionMeasured);
  });
  trace.swap_out(0);
  trace.swap_in(0);
  BOOST_TEST(fails(trace, "admission"));
}

BOOST_AUTO_TEST_CASE(a_block_whose_rows_are_all_evicted_stays_for_the_next_row) {
  PagedTrace trace;
  trace.append(0, 6);
  trace.evict(0, 6);
  BOOST_TEST(trace.blocks(0).size() == 1U);
  trace.append(0, 1);
  trace.evict(0, 7);
  trace.append(0, 1);
  trace.evict(0, 8);
  BOOST_TEST(trace.blocks(0).empty());
  trace.append(0, 1);
  BOOST_TEST(blame(trace) == "");
}

BOOST_AUTO_TEST_CASE(sliding_layers_give_back_blocks_that_left_them) {
  PagedTrace trace({.block = 3, .layers = 2, .capacity = 5, .window = 4, .sliding = true});
  for (int i = 0; i < 20; ++i) trace.append(0, 1);
  BOOST_TEST(trace.blocks(0).size() <= 3U);
  BOOST_TEST(blame(trace) == "");
}

BOOST_AUTO_TEST_CASE(forks_copy_on_write_and_reorders_pass) {
  PagedTrace trace({.pool_blocks = 16, .layers = 2});
  trace.append(0, 6);
  trace.fork(0, 1, 6);
  trace.fork(0, 2, 5);
  trace.append(1, 1);
  trace.append(0, 3);
  trace.append(2, 2);
  trace.reorder({1, 1, 0});
  trace.append(0, 1);
  trace.append(1, 1);
  trace.reorder({0, 1, 2});
  trace.clear(2);
  trace.clear(1);
  trace.clear(0);
  BOOST_TEST(trace.free_blocks() == 16U);
  BOOST_TEST(blame(trace) == "");
}

BOOST_AUTO_TEST_CASE(prefixes_are_published_found_cached_and_taken_again) {
  PagedTrace trace({.pool_blocks = 5});
  trace.admit(0, 10, 2, {11, 12});
  trace.append(0, 10);
  BOOST_TEST(trace.admit(1, 10, 2, {11, 12}) == 8U);
  trace.append(1, 2);
  trace.clear(1);
  trace.clear(0);
  BOOST_TEST(trace.cached_blocks() == 2U);
  BOOST_TEST(trace.admit(2, 8, 0, {11, 12}) == 4U);  // never the whole prompt
  trace.append(2, 4);
  trace.append(3, 12);  // takes the cached block again
  BOOST_TEST(blame(trace) == "");
}

BOOST_AUTO_TEST_CASE(a_hit_needs_only_what_the_window_sees) {
  PagedTrace trace({.block = 2, .pool_blocks = 6, .capacity = 4, .window = 3, .sliding = true});
  trace.admit(0, 8, 4, {1, 2, 3, 4});
  for (int i = 0; i < 8; ++i) trace.append(0, 1);
  trace.clear(0);
  trace.append(1, 1);
  BOOST_TEST(trace.admit(2, 9, 1, {1, 2, 3, 4}) == 8U);
  BOOST_TEST(trace.blocks(2).size() == 1U);
  trace.append(2, 1);
  BOOST_TEST(blame(trace) == "");
}

BOOST_AUTO_TEST_CASE(what_was_swapped_out_comes_back) {
  PagedTrace trace({.pool_blocks = 16, .layers = 2});
  trace.admit(0, 10, 4, {21, 22});
  trace.append(0, 7);
  const ViewId view = trace.window(0, 0, {0, 4});
  trace.swap_out(0);
  trace.close(view);
  trace.refuse(0, appended(1), RefusalCode::evicted);
  trace.append(1, 9);
  trace.report();
  trace.swap_in(0);
  trace.append(0, 1);
  BOOST_TEST(trace.admit(2, 9, 1, {21, 22}) == 8U);
  trace.swap_out(1);
  trace.clear(1);
  BOOST_TEST(blame(trace) == "");
}

/// Of a run over a pool, the verdict says how tight it was.
BOOST_AUTO_TEST_CASE(the_verdict_counts_admissions_and_swaps) {
  PagedTrace trace;
  trace.admit(0, 5, 3, {});
  trace.append(0, 5);
  trace.swap_out(0);
  trace.swap_in(0);
  trace.swap_out(0);
  trace.finish();
  const std::vector<std::string> notes = trace.verdict().notes;
  BOOST_REQUIRE(!notes.empty());
  BOOST_TEST(notes.back() == "1 admissions and 0 refused; 2 sequences swapped out and 1 in");
}

BOOST_AUTO_TEST_CASE(a_truncate_into_what_is_published_copies_before_it_writes) {
  PagedTrace trace;
  trace.admit(0, 9, 3, {31, 32});
  trace.append(0, 9);
  trace.truncate(0, 6);
  trace.append(0, 1);
  BOOST_TEST(trace.cached_blocks() == 1U);
  trace.append(0, 3);  // the block that is full again is of other tokens
  BOOST_TEST(trace.admit(1, 9, 1, {31, 32}) == 8U);
  BOOST_TEST(blame(trace) == "");
}

BOOST_AUTO_TEST_CASE(an_append_is_refused_for_memory_iff_blocks_are_missing) {
  PagedTrace trace({.pool_blocks = 3});
  trace.append(0, 5);  // 2 blocks
  BOOST_CHECK(law_of(trace, 0, 0, appended(7)).code == RefusalCode::none);
  BOOST_CHECK(law_of(trace, 0, 0, appended(8)).code == RefusalCode::no_memory);
  BOOST_CHECK(law_of(trace, 1, 0, appended(5)).code == RefusalCode::no_memory);
  trace.fork(0, 1, 5);
  BOOST_CHECK(law_of(trace, 1, 0, appended(3)).code == RefusalCode::none);  // the copy takes the last block
  BOOST_CHECK(law_of(trace, 1, 0, appended(4)).code == RefusalCode::no_memory);
  trace.refuse(1, appended(4), RefusalCode::no_memory);
  BOOST_TEST(blame(trace) == "");
}

BOOST_AUTO_TEST_CASE(reservations_of_others_are_not_free) {
  PagedTrace trace({.pool_blocks = 4});
  trace.admit(0, 4, 8, {});  // 3 blocks
  BOOST_CHECK(law_of(trace, 1, 0, appended(4)).code == RefusalCode::none);
  BOOST_CHECK(law_of(trace, 1, 0, appended(5)).code == RefusalCode::no_memory);
  trace::Called admit{};
  admit.operation = Operation::admit;
  admit.to = 4;
  admit.count = 1;
  BOOST_CHECK(law_of(trace, 1, trace::kNoLayer, admit).code == RefusalCode::no_memory);
  admit.count = 0;
  BOOST_CHECK(law_of(trace, 1, trace::kNoLayer, admit).code == RefusalCode::none);
  trace.append(1, 4);
  BOOST_CHECK(law_of(trace, 0, 0, appended(12)).code == RefusalCode::none);
  BOOST_CHECK(law_of(trace, 0, 0, appended(13)).code == RefusalCode::no_memory);
}

BOOST_AUTO_TEST_CASE(forks_swaps_and_reorders_are_refused_for_their_reasons) {
  PagedTrace trace({.host_blocks = 1});
  trace.append(0, 6);
  trace::Called fork{};
  fork.operation = Operation::fork;
  fork.ordinal = 1;
  fork.to = 7;
  BOOST_CHECK(law_of(trace, 0, trace::kNoLayer, fork).code == RefusalCode::future);
  fork.to = 6;
  BOOST_CHECK(law_of(trace, 0, trace::kNoLayer, fork).code == RefusalCode::none);
  fork.ordinal = PagedTrace::kSequences;
  BOOST_CHECK(law_of(trace, 0, trace::kNoLayer, fork).code == RefusalCode::unknown_sequence);
  trace.append(1, 1);
  fork.ordinal = 1;
  BOOST_CHECK(law_of(trace, 0, trace::kNoLayer, fork).code == RefusalCode::out_of_order);
  trace::Called swap{};
  swap.operation = Operation::swap_out;
  BOOST_CHECK(law_of(trace, 0, trace::kNoLayer, swap).code == RefusalCode::no_memory);
  BOOST_CHECK(law_of(trace, 2, trace::kNoLayer, swap).code == RefusalCode::out_of_order);
  BOOST_CHECK(law_of(trace, 1, trace::kNoLayer, swap).code == RefusalCode::none);
  trace.swap_out(1);
  // A sequence that there is not comes before one that is out.
  fork.ordinal = PagedTrace::kSequences;
  BOOST_CHECK(law_of(trace, 1, trace::kNoLayer, fork).code == RefusalCode::unknown_sequence);
  fork.ordinal = 2;
  BOOST_CHECK(law_of(trace, 1, trace::kNoLayer, fork).code == RefusalCode::evicted);
  swap.operation = Operation::swap_in;
  BOOST_CHECK(law_of(trace, 0, trace::kNoLayer, swap).code == RefusalCode::out_of_order);
  BOOST_CHECK(law_of(trace, 1, trace::kNoLayer, swap).code == RefusalCode::none);
  trace::Called reorder{};
  reorder.operation = Operation::reorder;
  reorder.count = 2;
  BOOST_CHECK(law_of(trace, 0, trace::kNoLayer, reorder).code == RefusalCode::evicted);
}

BOOST_AUTO_TEST_CASE(random_calls_of_a_correct_store_blame_nobody) {
  for (std::uint32_t seed = 0; seed < 60; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
    const bool slides = below(2) == 0;
    PagedTrace trace({.block = 1 + below(5),
                      .pool_blocks = 200,
                      .host_blocks = 200,
                      .layers = 1 + below(2),
                      .capacity = slides ? 8U : 64U,
                      .window = slides ? 1 + below(6) : 0U,
                      .sliding = slides});
    for (int step = 0; step < 40; ++step) {
      const SequenceId s = below(PagedTrace::kSequences);
      const SequenceId other = below(PagedTrace::kSequences);
      const std::uint32_t what = below(8);
      if (what < 3 && !trace.is_out(s) && trace.end(s) < 50) trace.append(s, 1 + below(2));
      if (what == 3) {
        trace.clear(s);
        trace.admit(s, 20, 4, {101, 102, 103});
      }
      if (what == 4 && !trace.is_out(s) && trace.end(s) > trace.start(s) && !slides)
        trace.truncate(s, trace.start(s) + below(trace.end(s) - trace.start(s) + 1));
      if (what == 5 && other != s && !trace.is_out(s) && !trace.is_out(other)) {
        trace.clear(other);
        trace.fork(s, other, trace.end(s));
      }
      if (what == 6 && trace.is_out(s))
        trace.swap_in(s);
      else if (what == 6 && !trace.blocks(s).empty())
        trace.swap_out(s);
      if (what == 7 && !trace.is_out(0) && !trace.is_out(1) && !trace.is_out(2))
        trace.reorder({below(3), below(3), below(3)});
    }
    BOOST_TEST_CONTEXT("seed " << seed) BOOST_TEST(blame(trace) == "");
  }
}

BOOST_AUTO_TEST_SUITE_END()
