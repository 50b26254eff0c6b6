#include "kvwitness/core/storage.hpp"

#include "kvwitness/core/scope.hpp"
#include "kvwitness/trace/error.hpp"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <utility>

namespace kvwitness::core {

BOOST_AUTO_TEST_SUITE(storage)

BOOST_AUTO_TEST_CASE(it_is_aligned_cleared_and_as_large_as_asked) {
  for (const std::uint64_t bytes : {1U, 63U, 64U, 65U, 4097U}) {
    Storage storage(bytes, 1);
    BOOST_TEST(storage.size_bytes() == bytes);
    BOOST_TEST(storage.bytes().size() == bytes);
    BOOST_TEST(reinterpret_cast<std::uintptr_t>(storage.bytes().data()) % 64 == 0U);
    BOOST_TEST(std::ranges::all_of(storage.bytes(), [](std::byte b) { return b == std::byte{0}; }));
    std::ranges::fill(storage.bytes(), std::byte{0xff});  // the next one may get the same memory
  }
  BOOST_TEST(Storage(7, 12).size_bytes() == 84U);
  for (const std::uint64_t bytes : {(std::uint64_t{2} << 20) - 1, std::uint64_t{2} << 20, std::uint64_t{5} << 20}) {
    const Storage large(bytes, 1);
    const std::uintptr_t alignment = bytes < (std::uint64_t{2} << 20) ? 64 : std::uintptr_t{2} << 20;
    BOOST_TEST(reinterpret_cast<std::uintptr_t>(large.bytes().data()) % alignment == 0U);
    BOOST_TEST(std::ranges::all_of(large.bytes(), [](std::byte b) { return b == std::byte{0}; }));
  }
}

BOOST_AUTO_TEST_CASE(ids_count_up_from_the_restart) {
  restart_storage_ids();
  const Storage first(1, 8);
  const Storage second(1, 8);
  BOOST_TEST(first.id() == 1U);
  BOOST_TEST(second.id() == 2U);
  BOOST_TEST(next_storage_id() == 3U);
  restart_storage_ids();
  BOOST_TEST(Storage(1, 8).id() == 1U);
}

BOOST_AUTO_TEST_CASE(sizes_past_63_bits_are_refused_with_their_numbers) {
  const auto names_sizes = [](const trace::Error& error) {
    return std::string(error.what()) == "storage: 4294967296 x 2147483648 bytes do not fit into 63 bits";
  };
  // 2^63 exactly; a product in 32 or 64 bits that wraps would be small.
  BOOST_CHECK_EXCEPTION(Storage(1ULL << 32, 1ULL << 31), trace::Error, names_sizes);
  BOOST_CHECK_THROW(Storage(1ULL << 32, 1ULL << 32), trace::Error);
  BOOST_CHECK_THROW(Storage(~0ULL, 2), trace::Error);
}

BOOST_AUTO_TEST_CASE(closing_ends_its_views_and_happens_once) {
  Storage storage(4, 4);
  const LifeToken life = storage.life();
  BOOST_TEST(!storage.closed());
  storage.close();
  BOOST_TEST(storage.closed());
  BOOST_TEST(storage.id() == 0U);
  BOOST_TEST(storage.bytes().empty());
  BOOST_TEST(!life.alive());
  BOOST_TEST(!storage.life().alive());
  storage.close();
  BOOST_TEST(storage.closed());
}

BOOST_AUTO_TEST_CASE(none_was_ever_open) {
  const Storage none;
  BOOST_TEST(none.closed());
  BOOST_TEST(!none.life().alive());
  const Storage empty(0, 16);
  BOOST_TEST(!empty.closed());
  BOOST_TEST(empty.bytes().empty());
}

BOOST_AUTO_TEST_CASE(moving_keeps_the_block_and_its_views) {
  Storage from(1, 64);
  const std::byte* block = from.bytes().data();
  const std::uint64_t id = from.id();
  const LifeToken life = from.life();
  Storage to(std::move(from));
  BOOST_TEST(to.bytes().data() == block);
  BOOST_TEST(to.id() == id);
  BOOST_TEST(life.alive());
  BOOST_TEST(from.closed());  // NOLINT(bugprone-use-after-move): what is left of it is defined
  BOOST_TEST(!from.life().alive());

  Storage replaced(1, 32);
  const LifeToken replaced_life = replaced.life();
  replaced = std::move(to);
  BOOST_TEST(!replaced_life.alive());
  BOOST_TEST(life.alive());
  BOOST_TEST(replaced.id() == id);
  replaced.close();
  BOOST_TEST(!life.alive());
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace kvwitness::core
