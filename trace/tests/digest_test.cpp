#include "kvwitness/trace/digest.hpp"

#include "kvwitness/trace/event_table.hpp"
#include "random_events.hpp"

#include <array>
#include <boost/test/unit_test.hpp>
#include <numeric>
#include <vector>

namespace kvwitness::trace {

BOOST_AUTO_TEST_SUITE(digest)

/// Published test vectors of xxHash 0.8 (XXH3_64bits of nothing, with the seeds 0 and PRIME64).
BOOST_AUTO_TEST_CASE(bytes_are_hashed_as_xxhash_specifies) {
  BOOST_TEST(digest_bytes({}) == 0x2D06800538D394C2ULL);
  BOOST_TEST(digest_bytes({}, 0x9E3779B185EBCA8DULL) == 0xA8A6B918B2F0364AULL);
}

/// Test vectors of xxHash 0.8's own sanity test, on its buffer, of lengths that are hashed in different ways.
BOOST_AUTO_TEST_CASE(long_pieces_are_hashed_as_xxhash_specifies) {
  constexpr std::uint64_t kPrime64 = 0x9E3779B185EBCA8DULL;
  std::array<std::byte, 2367> buffer{};
  std::uint64_t generator = 2654435761U;
  for (std::byte& byte : buffer) {
    byte = static_cast<std::byte>(generator >> 56U);
    generator *= kPrime64;
  }
  struct Vector {
    std::size_t bytes;
    std::uint64_t seed;
    std::uint64_t digest;
  };
  for (const Vector& vector : {Vector{403, 0, 0xCDEB804D65C6DEA4ULL},
                               {403, kPrime64, 0x6259F6ECFD6443FDULL},
                               {512, 0, 0x617E49599013CB6BULL},
                               {512, kPrime64, 0x3CE457DE14C27708ULL},
                               {2048, 0, 0xDD59E2C3A5F038E0ULL},
                               {2048, kPrime64, 0x66F81670669ABABCULL},
                               {2240, 0, 0x6E73A90539CF2948ULL},
                               {2240, kPrime64, 0x757BA8487D1B5247ULL},
                               {2367, 0, 0xCB37AEB9E5D361EDULL},
                               {2367, kPrime64, 0xD2DB3415B942B42AULL}}) {
    BOOST_TEST(digest_bytes(std::span(buffer).first(vector.bytes), vector.seed) == vector.digest,
               vector.bytes << " bytes");
  }
}

BOOST_AUTO_TEST_CASE(rows_add_up_over_ranges_and_keep_their_places) {
  std::array<float, 24> rows{};
  std::iota(rows.begin(), rows.end(), 0.0F);
  const auto* bytes = reinterpret_cast<const std::byte*>(rows.data());
  constexpr std::size_t kRow = 4 * sizeof(float);
  const std::uint64_t all = rows_digest(bytes, kRow, kRow, 10, 6);
  BOOST_TEST(rows_digest(bytes, kRow, kRow, 10, 2) + rows_digest(bytes + 2 * kRow, kRow, kRow, 12, 4) == all);
  BOOST_TEST(rows_digest(bytes, kRow, kRow, 11, 6) != all);
  std::swap_ranges(rows.begin(), rows.begin() + 4, rows.begin() + 4);
  BOOST_TEST(rows_digest(bytes, kRow, kRow, 10, 6) != all);
  BOOST_TEST(rows_digest(bytes, kRow, kRow, 10, 0) == 0U);
}

BOOST_AUTO_TEST_CASE(the_stride_skips_what_does_not_belong_to_the_row) {
  std::array<float, 8> rows = {1, 2, 99, 98, 3, 4, 97, 96};
  const std::array<float, 4> packed = {1, 2, 3, 4};
  BOOST_TEST(rows_digest(reinterpret_cast<const std::byte*>(rows.data()), 16, 8, 5, 2) ==
             rows_digest(reinterpret_cast<const std::byte*>(packed.data()), 8, 8, 5, 2));
}

/// Whatever the batches, the digest is that of all canonical records in one piece.
BOOST_AUTO_TEST_CASE(the_run_digest_is_that_of_the_records_in_one_piece) {
  NameTable names;
  RandomEvents random(names, 1);
  RunDigest digest;
  std::vector<Event> records;
  BOOST_TEST(digest.value() == digest_bytes({}));
  for (int round = 0; round < 3; ++round) {
    for (const TypeInfo& info : all_types()) {
      const Event event = random.event(info, records.size());
      digest.add(event);
      records.push_back(canonical(event));
      BOOST_REQUIRE(digest.value() == digest_bytes(std::as_bytes(std::span(records))));
    }
  }
  digest.add(records.front());
  digest.reset();
  BOOST_TEST(digest.value() == digest_bytes({}));
}

/// Pieces in which canonical records and others alternate, in stretches of every length.
BOOST_AUTO_TEST_CASE(the_run_digest_does_not_depend_on_how_many_are_added_at_once) {
  NameTable names;
  RandomEvents random(names, 2);
  std::vector<Event> events;
  for (std::size_t stretch = 0; stretch < 40; ++stretch) {
    events.push_back(random.event(*type_info(EventType::StepEnd), events.size()));
    events.back().time = 1;
    for (std::size_t i = 0; i < stretch; ++i)
      events.push_back(canonical(random.event(*type_info(EventType::WindowRun), events.size())));
  }
  RunDigest one_by_one;
  for (const Event& event : events) one_by_one.add(event);
  for (const std::size_t piece : {1U, 3U, 17U, 100U, 1000U}) {
    RunDigest digest;
    for (std::span<const Event> left(events); !left.empty(); left = left.subspan(std::min(piece, left.size())))
      digest.add(left.first(std::min(piece, left.size())));
    BOOST_TEST(digest.value() == one_by_one.value());
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace kvwitness::trace
