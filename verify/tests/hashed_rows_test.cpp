// A hash stands for tokens: what is written under it again has the same rows.
#include "rules/hashed_rows.hpp"
#include "kvwitness/trace/names.hpp"
#include "paged_cases.hpp"

#include <boost/test/unit_test.hpp>

#include <cstdint>
#include <string>

using namespace kvwitness;
using namespace kvwitness::verify;
using namespace kvwitness::verify::testing;

namespace {

Status prefix_sound(const PagedTrace& trace) {
  PagedTrace whole = trace;
  whole.finish();
  return whole.status_of("prefix-sound");
}

/// Two requests with the same first block are filled beside each other; the second one's is not published.
struct FilledTwice : PagedTrace {
  FilledTwice() {
    admit(0, 9, 3, {11, 12});
    admit(1, 9, 3, {11, 13});
    append(0, 9);
    append(1, 9);
  }
  /// The row at a position of sequence 1 is another one.
  void change(Position position) {
    edit<trace::RowDigests>(9 + position, [](trace::RowDigests& rows) { rows.v0 ^= 1; });
  }
  void name_streams() {
    for (std::size_t nth = 0; nth < count(trace::EventType::Called); ++nth) {
      edit<trace::Called>(nth, [](trace::Called& called) {
        if (called.operation == Operation::append) called.stream = trace::hash_name("tokens");
      });
    }
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(hashed_rows)

BOOST_AUTO_TEST_CASE(a_hash_stands_for_the_same_rows_wherever_they_are_written) {
  FilledTwice same;
  BOOST_CHECK(prefix_sound(same) == Status::pass);
  same.change(4);  // in the second block, which has a hash of its own
  BOOST_CHECK(prefix_sound(same) == Status::pass);
  FilledTwice unknown;
  unknown.change(3);
  BOOST_CHECK(prefix_sound(unknown) == Status::inconclusive);
  FilledTwice known;
  known.name_streams();
  BOOST_CHECK(prefix_sound(known) == Status::pass);
  known.change(3);
  BOOST_TEST(expects(known, "prefix-sound", "the rows that hash 0xb stood for before"));
}

/// The block was taken again in between, so that nothing but the hash is left of it.
BOOST_AUTO_TEST_CASE(a_hash_that_is_published_again_stands_for_the_rows_of_the_first_time) {
  const auto published_twice = [] {
    PagedTrace trace({.pool_blocks = 3});
    trace.admit(0, 9, 3, {11, 12});
    trace.append(0, 9);
    trace.clear(0);
    trace.append(1, 12);
    trace.clear(1);
    trace.admit(0, 9, 3, {11, 12});
    trace.append(0, 9);
    return trace;
  };
  PagedTrace trace = published_twice();
  BOOST_REQUIRE_EQUAL(trace.count(trace::EventType::PrefixPublished), 4U);
  BOOST_CHECK(prefix_sound(trace) == Status::pass);
  trace.edit<trace::RowDigests>(trace.count(trace::EventType::RowDigests) - 3, [](auto& rows) { rows.k0 ^= 1; });
  BOOST_CHECK(prefix_sound(trace) == Status::inconclusive);
}

BOOST_AUTO_TEST_CASE(blocks_found_by_hashes_of_rows_that_nobody_knows_are_taken_on_trust) {
  Shared trace;
  trace.finish();
  const std::string note = trace.verdict_of("prefix-sound").note;
  BOOST_TEST(note.starts_with("that "), note);
  BOOST_TEST(note.find("taken on trust") != std::string::npos, note);
}

/// A trace may name any number of hashes; what is remembered has a bound, and what is beyond it is counted.
BOOST_AUTO_TEST_CASE(only_so_many_hashes_are_remembered) {
  HashedRows rows;
  const HashedBlock block{{1, 2}, false, 3};
  for (std::uint64_t hash = 0; hash < HashedRows::kHashesMax; ++hash)
    BOOST_REQUIRE(rows.meet(0, hash, block) == nullptr);
  BOOST_TEST(rows.left_out() == 0U);
  BOOST_TEST((rows.meet(0, HashedRows::kHashesMax, block) == nullptr));
  BOOST_TEST((rows.meet(1, 0, block) == nullptr));
  BOOST_TEST(rows.left_out() == 2U);
  BOOST_REQUIRE(rows.meet(0, 0, {}) != nullptr);
  BOOST_TEST(rows.meet(0, 0, {})->number == 3U);
  BOOST_TEST(rows.left_out() == 2U);
}

BOOST_AUTO_TEST_SUITE_END()
