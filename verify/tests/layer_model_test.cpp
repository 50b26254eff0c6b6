/// Rows of a layer, held to a plain list of their slots.
#include "kvwitness/verify/model.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

using namespace kvwitness;
using verify::LayerModel;
using verify::Position;
using verify::Range;
using verify::Slot;

namespace {

/// The rows of [start, start + slots.size()).
struct PlainList {
  Position start = 0;
  std::vector<Slot> slots;

  [[nodiscard]] Position end() const { return start + static_cast<Position>(slots.size()); }
  [[nodiscard]] bool lie_from(Slot slot, Range range) const {
    if (slot == trace::kNoSlot || range.from < start || range.to > end()) return false;
    for (Position p = range.from; p < range.to; ++p) {
      if (slots[p - start] != slot + (p - range.from)) return false;
    }
    return true;
  }
};

/// Changes both in the same way, at random; mostly as stores do: rows are appended, and get their slots in order.
class Changes {
 public:
  explicit Changes(std::uint32_t seed) : random_(seed) {}

  void make_one() {
    switch (below(8)) {
      case 0: return drop_below();
      case 1: return drop_from();
      case 2: return set_some_slots();
      case 3: return take_some_out();
      case 4: return forget();
      default: return append();
    }
  }
  /// A range that is held, and where its first row lies or might.
  void compare() {
    if (list.slots.empty()) return;
    const Position from = list.start + below(static_cast<std::uint32_t>(list.slots.size()));
    const Position to = from + 1 + below(list.end() - from);
    const Slot first = list.slots[from - list.start];
    for (const Slot slot : {first, first + 1, trace::kNoSlot}) {
      const bool is_so = list.lie_from(slot, {from, to});
      const bool is_told = rows.lie_from(slot, {from, to});
      BOOST_TEST((!is_told || is_so));
      told += is_told ? 1 : 0;
      so += is_so ? 1 : 0;
    }
    BOOST_TEST(!rows.lie_from(first, {from, list.end() + 1}));
  }

  PlainList list;
  LayerModel rows;
  std::size_t told = 0;
  std::size_t so = 0;

 private:
  std::uint32_t below(std::uint32_t limit) { return static_cast<std::uint32_t>(random_() % limit); }

  void append() {
    const Position first = list.end();
    for (std::uint32_t left = 1 + below(6); left > 0; --left) {
      rows.append({.k_digest = 1, .v_digest = 1});
      list.slots.push_back(trace::kNoSlot);
    }
    Slot slot = below(4) == 0 ? below(100) : first;
    for (Position p = first; p < list.end(); ++p) set_slot(p, slot++);
  }
  void set_slot(Position position, Slot slot) {
    rows.set_slot(position, slot);
    list.slots[position - list.start] = slot;
  }
  void set_some_slots() {
    if (list.slots.empty()) return;
    const Position from =
        below(2) == 0 ? list.start : list.start + below(static_cast<std::uint32_t>(list.slots.size()));
    const Position to = below(2) == 0 ? list.end() : std::min(list.end(), from + 1 + below(4));
    Slot slot = below(100);
    for (Position p = from; p < to; ++p) set_slot(p, slot++);
  }
  void drop_below() {
    if (list.slots.size() < 2) return;
    const std::uint32_t count = below(static_cast<std::uint32_t>(list.slots.size()));
    rows.drop_below(list.start + count);
    list.slots.erase(list.slots.begin(), list.slots.begin() + count);
    list.start += count;
  }
  void drop_from() {
    if (list.slots.empty()) return;
    const std::uint32_t count = below(static_cast<std::uint32_t>(list.slots.size()));
    rows.drop_from(list.start + count);
    list.slots.resize(count);
  }
  void take_some_out() {
    if (list.slots.size() < 4) return;
    const std::uint32_t from = below(static_cast<std::uint32_t>(list.slots.size()) - 2);
    rows.close_gap({list.start + from, list.start + from + 2}, [](Position /*position*/, verify::ModelRow& /*row*/) {});
    list.slots.erase(list.slots.begin() + from, list.slots.begin() + from + 2);
  }
  void forget() {
    if (below(4) != 0) return;
    rows.rewrite(7);
    std::fill(list.slots.begin(), list.slots.end(), trace::kNoSlot);
  }

  std::mt19937 random_;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(layer_model)

BOOST_AUTO_TEST_CASE(rows_lie_from_a_slot_where_a_list_says_so) {
  std::size_t told = 0;
  std::size_t so = 0;
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    Changes changes(seed);
    for (int i = 0; i < 60; ++i) {
      changes.make_one();
      for (int j = 0; j < 4; ++j) changes.compare();
    }
    told += changes.told;
    so += changes.so;
  }
  BOOST_TEST(so > 10'000U);
  // What is not told is looked up row by row; it is to be rare.
  BOOST_TEST(told > so / 2);
}

/// The order of a ring: appended one by one, dropped in front, one break where it wraps.
BOOST_AUTO_TEST_CASE(both_pieces_of_a_wrapped_ring_are_told) {
  constexpr std::uint32_t kCapacity = 8;
  LayerModel rows;
  for (Position p = 0; p < 5 * kCapacity; ++p) {
    if (p >= kCapacity) rows.drop_below(p + 1 - kCapacity);
    rows.append({.k_digest = 1, .v_digest = 1});
    rows.set_slot(p, p % kCapacity);
    const Position round = p / kCapacity * kCapacity;
    BOOST_TEST(rows.lie_from(0, {round, p + 1}));
    if (rows.start() < round) {
      BOOST_TEST(rows.lie_from(rows.start() % kCapacity, {rows.start(), round}));
      BOOST_TEST(!rows.lie_from(rows.start() % kCapacity, {rows.start(), p + 1}));
    }
  }
}

/// An eviction moves all that is left to new slots, in ascending order.
BOOST_AUTO_TEST_CASE(rows_that_all_moved_are_told_again) {
  LayerModel rows;
  for (Position p = 0; p < 20; ++p) {
    rows.append({.k_digest = 1, .v_digest = 1});
    rows.set_slot(p, p);
  }
  rows.drop_below(5);
  BOOST_TEST(rows.lie_from(5, {5, 20}));
  for (Position p = 5; p < 20; ++p) rows.set_slot(p, p - 5);
  BOOST_TEST(rows.lie_from(0, {5, 20}));
  BOOST_TEST(!rows.lie_from(5, {5, 20}));
  rows.set_slot(10, 40);
  BOOST_TEST(rows.lie_from(0, {5, 10}));
  BOOST_TEST(!rows.lie_from(0, {5, 12}));
  BOOST_TEST(!rows.lie_from(0, {5, 20}));
  // Rows that are told to lie where they lay are known again, and so are those that come instead of what was dropped.
  for (Position p = 10; p < 20; ++p) rows.set_slot(p, p - 5);
  BOOST_TEST(rows.lie_from(0, {5, 20}));
  rows.set_slot(10, 40);
  rows.drop_from(8);
  for (Position p = 8; p < 20; ++p) rows.append({.k_digest = 1, .v_digest = 1, .slot = p - 5});
  BOOST_TEST(rows.lie_from(0, {5, 20}));
}

BOOST_AUTO_TEST_SUITE_END()
