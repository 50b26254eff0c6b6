#include "kvwitness/core/scope.hpp"

#include "kvwitness/trace/probe.hpp"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <cstring>
#include <limits>
#include <map>
#include <random>
#include <vector>

namespace kvwitness::core {
namespace {

using trace::Event;
using trace::EventType;
using trace::payload_of;

struct Setup {
  Setup() : bus(names) { bus.subscribe(recorder); }
  std::span<const Event> events() {
    bus.flush();
    return recorder.events();
  }
  trace::NameTable names;
  trace::Bus bus;
  trace::Recorder recorder;
};

/// Bytes that the events leave live, by storage id: the books as a judge keeps them. Asserts that no id comes twice.
std::map<std::uint64_t, std::uint64_t> live_by_events(std::span<const Event> events) {
  std::map<std::uint64_t, std::uint64_t> live;
  for (const Event& event : events) {
    if (event.type == EventType::Allocation) {
      const auto taken = payload_of<trace::Allocation>(event);
      BOOST_REQUIRE(live.emplace(taken.storage, taken.bytes).second);
    }
    if (event.type == EventType::ScopeReset) {
      const auto reset = payload_of<trace::ScopeReset>(event);
      std::uint64_t bytes = 0;
      for (const auto& [storage, each] : live) bytes += each;
      BOOST_TEST(reset.bytes_freed == bytes);
      BOOST_TEST(reset.count == live.size());
      BOOST_TEST(reset.live_bytes == 0U);
      live.clear();
    }
  }
  return live;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(scope)

BOOST_AUTO_TEST_CASE(an_allocation_is_told_with_its_id_site_and_subject) {
  Setup setup;
  Scope forward(setup.bus, trace::ScopeKind::forward, 1024);
  const std::span<std::byte> memory = forward.allocate(100, 55, {.store = 1, .sequence = 2, .layer = 3});
  BOOST_TEST(memory.size() == 100U);
  BOOST_REQUIRE(setup.events().size() == 1U);
  const Event& event = setup.events()[0];
  const auto told = payload_of<trace::Allocation>(event);
  BOOST_TEST(told.storage == forward.last_storage());
  BOOST_TEST(told.bytes == 100U);
  BOOST_TEST(told.site == 55U);
  BOOST_TEST(told.count == 1U);
  BOOST_TEST((told.scope == trace::ScopeKind::forward));
  BOOST_TEST((told.origin == trace::Origin::arena));
  BOOST_TEST((told.evidence == trace::Evidence::observed));
  BOOST_TEST(event.store == 1);
  BOOST_TEST(event.sequence == 2U);
  BOOST_TEST(event.layer == 3);
}

BOOST_AUTO_TEST_CASE(blocks_are_aligned_disjoint_and_writable) {
  Setup setup;
  Scope arena(setup.bus, trace::ScopeKind::model, 4096);
  std::vector<std::span<std::byte>> blocks;
  for (const std::size_t bytes : {1U, 64U, 65U, 7U, 500U}) blocks.push_back(arena.allocate(bytes));
  for (std::size_t i = 0; i < blocks.size(); ++i) std::memset(blocks[i].data(), static_cast<int>(i), blocks[i].size());
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    BOOST_TEST(reinterpret_cast<std::uintptr_t>(blocks[i].data()) % 64 == 0U);
    BOOST_TEST(std::ranges::all_of(blocks[i], [i](std::byte b) { return b == static_cast<std::byte>(i); }));
  }
}

BOOST_AUTO_TEST_CASE(exhaustion_changes_nothing_and_tells_nothing) {
  Setup setup;
  Scope arena(setup.bus, trace::ScopeKind::forward, 192);
  const std::span<std::byte> first = arena.allocate(65);
  const Ledger before = arena.ledger();
  const std::uint64_t storage = arena.last_storage();
  for (const std::size_t bytes : {std::size_t{65}, std::size_t{192}, std::numeric_limits<std::size_t>::max(),
                                  std::numeric_limits<std::size_t>::max() - 63})
    BOOST_TEST(arena.allocate(bytes).empty());
  BOOST_TEST(arena.allocate(0).empty());
  BOOST_TEST((arena.ledger() == before));
  BOOST_TEST(arena.last_storage() == storage);
  BOOST_TEST(setup.events().size() == 1U);
  BOOST_TEST(arena.free_bytes() == 64U);
  const std::span<std::byte> last = arena.allocate(64);
  BOOST_TEST(last.data() == first.data() + 128);
  BOOST_TEST(arena.free_bytes() == 0U);
}

BOOST_AUTO_TEST_CASE(a_reset_frees_everything_and_the_arena_is_as_new) {
  Setup setup;
  Scope arena(setup.bus, trace::ScopeKind::forward, 256);
  const std::byte* first = arena.allocate(10).data();
  static_cast<void>(arena.allocate(100));
  const LifeToken life = arena.life();
  arena.reset();
  BOOST_TEST(!life.alive());
  BOOST_TEST(arena.life().alive());
  BOOST_TEST(arena.generation() == 1U);
  BOOST_TEST(arena.allocate(256).data() == first);
  const auto told = payload_of<trace::ScopeReset>(setup.events()[2]);
  BOOST_TEST(told.bytes_freed == 110U);
  BOOST_TEST(told.count == 2U);
  BOOST_TEST((told.scope == trace::ScopeKind::forward));
}

BOOST_AUTO_TEST_CASE(a_reset_of_nothing_is_not_told) {
  Setup setup;
  Scope arena(setup.bus, trace::ScopeKind::forward, 256);
  arena.reset();
  arena.reset();
  BOOST_TEST(arena.generation() == 2U);
  BOOST_TEST(setup.events().empty());
}

BOOST_AUTO_TEST_CASE(its_end_closes_the_books_and_its_views) {
  Setup setup;
  LifeToken life;
  {
    Scope arena(setup.bus, trace::ScopeKind::ambient, 256);
    static_cast<void>(arena.allocate(30));
    life = arena.life();
    BOOST_TEST(live_by_events(setup.events()).size() == 1U);
  }
  BOOST_TEST(live_by_events(setup.events()).empty());
  BOOST_TEST(!life.alive());
}

BOOST_AUTO_TEST_CASE(the_ledger_agrees_with_the_books_kept_from_events) {
  for (std::uint32_t seed = 0; seed < 50; ++seed) {
    std::mt19937 random(seed);
    Setup setup;
    Scope arena(setup.bus, trace::ScopeKind::forward, 8192);
    std::uint64_t live = 0;
    std::uint64_t live_max = 0;
    std::uint64_t taken = 0;
    std::uint64_t count = 0;
    for (int action = 0; action < 200; ++action) {
      if (random() % 10 == 0) {
        arena.reset();
        live = 0;
      } else if (const auto memory = arena.allocate(1 + random() % 700); !memory.empty()) {
        live += memory.size();
        taken += memory.size();
        ++count;
        live_max = std::max(live_max, live);
      }
      BOOST_REQUIRE(arena.ledger().live_bytes == live);
      BOOST_REQUIRE(arena.ledger().allocated_bytes - arena.ledger().freed_bytes == live);
    }
    BOOST_TEST(arena.ledger().live_bytes_max == live_max);
    BOOST_TEST(arena.ledger().allocated_bytes == taken);
    BOOST_TEST(arena.ledger().allocations == count);
    std::uint64_t told = 0;
    for (const auto& [storage, bytes] : live_by_events(setup.events())) told += bytes;
    BOOST_TEST(told == live);
  }
}

BOOST_AUTO_TEST_CASE(handing_out_and_resetting_do_not_allocate) {
  if (trace::probe_state() != trace::ProbeState::measuring) return;
  Setup setup;
  Scope arena(setup.bus, trace::ScopeKind::forward, 4096);
  const trace::ProbeRegion region;
  for (int i = 0; i < 1000; ++i) {
    static_cast<void>(arena.allocate(100));
    if (i % 10 == 0) arena.reset();
  }
  BOOST_TEST(region.seen().allocations == 0U);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace kvwitness::core
