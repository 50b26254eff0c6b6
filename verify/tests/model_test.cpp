// The model against a cache that is simulated slot by slot: every slot carries a stamp that moves when it is written,
// moved or freed, and what is legal is found by looking at every position one by one, not by comparing bounds.
#include "kvwitness/verify/model.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <vector>

using namespace kvwitness;
using namespace kvwitness::verify;
using trace::Operation;

namespace {

struct LayerShape {
  std::uint32_t capacity;
  std::uint32_t window;  ///< 0: none
  bool sliding;
  std::uint32_t sinks;
};

struct SlotRow {
  Position position;
  Slot slot;
  std::uint64_t k;
  std::uint64_t v;
};

struct SimulatedLayer {
  LayerShape shape;
  std::vector<SlotRow> rows;
  std::vector<std::uint64_t> stamps;  ///< by slot
  Position end = 0;

  [[nodiscard]] const SlotRow* find(Position p) const {
    const auto row = std::find_if(rows.begin(), rows.end(), [&](const SlotRow& r) { return r.position == p; });
    return row == rows.end() ? nullptr : &*row;
  }
  /// Does a query at `query` see position p?
  [[nodiscard]] bool sees(Position query, Position p) const {
    const std::uint32_t turn = shape.sliding ? shape.capacity - shape.sinks : 0;
    const std::uint32_t keys = shape.window != 0 ? shape.window : turn;
    return p <= query && (p < shape.sinks || keys == 0 || query - p < keys);
  }
  /// First position behind the sinks that is held; the end where none is.
  [[nodiscard]] Position start_of_ring() const {
    for (const SlotRow& row : rows)
      if (row.position >= shape.sinks) return row.position;
    return end;
  }
  /// First position of the piece that reaches to the end.
  [[nodiscard]] Position start() const {
    const Position first = start_of_ring();
    return first <= shape.sinks ? 0 : first;
  }
};

struct SimulatedView {
  ViewId id;
  SequenceId sequence;
  LayerIndex layer;
  std::vector<std::pair<Slot, std::uint64_t>> stamps;
};

struct Simulation {
  Simulation(std::uint64_t seed, bool is_ring_store) : random(seed), is_ring(is_ring_store) {
    for (int i = 0; i < 2; ++i) {
      const std::uint32_t turn = 2 + pick(7);
      const std::uint32_t sinks = is_ring && pick(2) == 0 ? 1 + pick(3) : 0;
      shapes.push_back({turn + sinks, pick(3) == 0 ? 0 : 1 + pick(turn), is_ring && pick(4) != 0, sinks});
    }
    declare();
    for (SequenceId s = 0; s < 2; ++s) {
      for (const LayerShape& shape : shapes)
        layers[s].push_back({shape, {}, std::vector<std::uint64_t>(shape.capacity), 0});
    }
  }

  std::uint32_t pick(std::uint32_t below) { return static_cast<std::uint32_t>(random() % below); }
  template <class P>
  void tell(const trace::Subject& subject, const P& payload) {
    trace::Event event = trace::make_event(subject, payload);
    event.number = number++;
    model.apply(event);
  }
  void declare() {
    using enum trace::Capability;
    trace::StoreCreated created{};
    created.layers = 3;
    created.sequences = 2;
    for (const trace::Capability one : {truncate, front_evict, clear, zero_copy, sequences})
      created.capabilities |= static_cast<std::uint64_t>(one);
    if (is_ring) created.capabilities |= static_cast<std::uint64_t>(ring);
    tell({0}, created);
    for (LayerIndex i = 0; i < 3; ++i) {
      // The last layer reads the rows of the first.
      const LayerShape& shape = shapes[i % 2];
      tell({0, trace::kNoSequence, i}, trace::LayerDeclared{shape.capacity, shape.window, shape.window != 0,
                                                            shape.sinks, 1, 1, 4, 0, shape.sliding, 0});
      trace::LayerFormat format{};
      format.k_type = format.v_type = trace::DType::f32;
      format.donor = i % 2;
      if (i == 1) format.donor = 1;
      tell({0, trace::kNoSequence, i}, format);
    }
  }

  // ---- what is right, position by position
  RefusalCode append_law(const SimulatedLayer& layer, std::uint32_t n) const {
    if (n == 0) return RefusalCode::unsupported;
    if (!layer.shape.sliding)
      return layer.rows.size() + n > layer.shape.capacity ? RefusalCode::full : RefusalCode::none;
    std::vector<Position> all;
    for (const SlotRow& row : layer.rows) all.push_back(row.position);
    for (std::uint32_t i = 0; i < n; ++i) all.push_back(layer.end + i);
    const std::size_t lost = all.size() > layer.shape.capacity ? all.size() - layer.shape.capacity : 0;
    std::erase_if(all, [&](Position p) { return p < layer.shape.sinks; });
    for (std::size_t i = 0; i < lost; ++i) {
      if (layer.sees(layer.end, all[i]) || all[i] >= layer.end) return RefusalCode::full;
    }
    return RefusalCode::none;
  }
  RefusalCode range_law(const SimulatedLayer& layer, Position a, Position b) const {
    if (a > b) return RefusalCode::out_of_order;
    if (a < layer.start() && b > layer.shape.sinks) return RefusalCode::evicted;
    return b > layer.end ? RefusalCode::future : RefusalCode::none;
  }
  RefusalCode truncate_law(SequenceId s, Position to) {
    if (due[s] != 0) return RefusalCode::out_of_order;
    if (to > layers[s][0].end) return RefusalCode::future;
    if (to == layers[s][0].end) return RefusalCode::none;
    for (const SimulatedLayer& layer : layers[s]) {
      if (to >= layer.shape.sinks && evicted[s].count(to) != 0) return RefusalCode::evicted;
      for (Position p = 0; p <= to; ++p) {
        const bool is_missed = layer.sees(to, p) && evicted[s].count(p) == 0 && layer.find(p) == nullptr;
        if (is_missed) return RefusalCode::evicted;
      }
    }
    return RefusalCode::none;
  }
  RefusalCode evict_law(SequenceId s, Position a, Position b) {
    if (due[s] != 0 || a > b) return RefusalCode::out_of_order;
    if (b > layers[s][0].end) return RefusalCode::future;
    if (a == b) return RefusalCode::none;
    for (const SimulatedLayer& layer : layers[s]) {
      for (Position p = 0; p < a; ++p) {
        const bool stays_in_front = layer.find(p) != nullptr && p >= layer.shape.sinks;
        if (stays_in_front) return RefusalCode::unsupported;
      }
      if (layer.rows.empty() && a > layer.end) return RefusalCode::unsupported;
    }
    return RefusalCode::none;
  }

  // ---- what is done
  void append(SequenceId s, LayerIndex l, std::uint32_t n, std::vector<SlotRow>& given) {
    SimulatedLayer& layer = layers[s][l];
    for (std::uint32_t i = 0; i < n; ++i) {
      const Position p = layer.end++;
      if (layer.rows.size() == layer.shape.capacity) layer.rows.erase(layer.rows.begin() + layer.shape.sinks);
      const std::uint32_t sinks = layer.shape.sinks;
      const Slot in_ring = p < sinks ? p : sinks + (p - sinks) % (layer.shape.capacity - sinks);
      const Slot slot = is_ring ? in_ring : static_cast<Slot>(layer.rows.size());
      layer.stamps[slot] = ++stamp;
      layer.rows.push_back({p, slot, random() | 1, random() | 1});
      given.push_back(layer.rows.back());
    }
    due[s] = static_cast<LayerIndex>((l + 1) % 2);
    due_count[s] = n;
  }
  void remove(SimulatedLayer& layer, Position from, Position to) {
    for (const SlotRow& row : layer.rows) {
      if (row.position >= from && row.position < to) layer.stamps[row.slot] = ++stamp;
    }
    std::erase_if(layer.rows, [&](const SlotRow& row) { return row.position >= from && row.position < to; });
  }
  void evict(SequenceId s, Position to) {
    for (Position p = 0; p < to; ++p) evicted[s].insert(p);
    for (SimulatedLayer& layer : layers[s]) {
      const std::size_t before = layer.rows.size();
      remove(layer, layer.shape.sinks, to);
      if (is_ring || layer.rows.size() == before) continue;
      for (std::size_t i = 0; i < layer.rows.size(); ++i) {
        layer.stamps[layer.rows[i].slot] = ++stamp;
        layer.rows[i].slot = static_cast<Slot>(i);
        layer.stamps[i] = ++stamp;
      }
    }
  }

  // ---- the calls, told to the model
  void call(const trace::Subject& subject, trace::Called called, RefusalCode law, const auto& done) {
    tell(subject, called);
    const CallModel& seen = model.store(0)->call;
    BOOST_REQUIRE(seen.law.known);
    if (!seen.law.allows(law))
      BOOST_FAIL("operation " << static_cast<int>(called.operation) << " sequence " << subject.sequence << " layer "
                              << subject.layer << " from " << called.from << " to " << called.to << " count "
                              << called.count << ": model " << static_cast<int>(seen.lawful) << ", simulation "
                              << static_cast<int>(law));
    trace::RegionMeasured region{};
    region.operation = called.operation;
    region.outcome = law;
    if (law == RefusalCode::none) {
      done();
    } else {
      trace::Refused refused{};
      refused.operation = called.operation;
      refused.reason = law;
      tell(subject, refused);
    }
    tell(subject, region);
    compare();
  }
  void random_call();
  void random_append(SequenceId s);
  void random_attend();
  void compare();

  std::mt19937_64 random;
  bool is_ring;
  Model model;
  std::uint64_t number = 0;
  std::uint64_t stamp = 0;
  std::vector<LayerShape> shapes;
  std::map<SequenceId, std::vector<SimulatedLayer>> layers;
  std::map<SequenceId, LayerIndex> due;
  std::map<SequenceId, std::uint32_t> due_count;
  std::map<SequenceId, std::set<Position>> evicted;  ///< on request
  std::vector<SimulatedView> views;
  ViewId last_view = 0;
  std::set<RefusalCode> met;
};

void Simulation::random_append(SequenceId s) {
  const LayerIndex l = pick(8) == 0 ? static_cast<LayerIndex>(pick(4)) : due[s];
  const std::uint32_t n = due[s] != 0 && pick(8) != 0 ? due_count[s] : pick(4);
  trace::Called called{};
  called.operation = Operation::append;
  called.count = n;
  RefusalCode law = RefusalCode::out_of_order;
  const bool is_due = l < 2 && l == due[s] && (l == 0 || n == due_count[s]);
  if (is_due) law = append_law(layers[s][l], n);
  if (l == 2) law = RefusalCode::unsupported;
  met.insert(law);
  call({0, s, l}, called, law, [&] {
    std::vector<SlotRow> given;
    const Position first = layers[s][l].end;
    append(s, l, n, given);
    for (std::uint32_t i = 0; i < n; i += 2) {
      trace::RowDigests rows{};
      rows.first = first + i;
      rows.count = std::min(2U, n - i);
      rows.k0 = given[i].k;
      rows.v0 = given[i].v;
      rows.k1 = rows.count == 2 ? given[i + 1].k : 0;
      rows.v1 = rows.count == 2 ? given[i + 1].v : 0;
      tell({0, s, l}, rows);
    }
    for (std::uint32_t i = 0; i < n; ++i) {
      trace::Append piece{};
      piece.first = first + i;
      piece.count = 1;
      piece.slot = given[i].slot;
      tell({0, s, l}, piece);
    }
  });
}

void Simulation::random_attend() {
  if (views.empty()) return;
  const SimulatedView view = views[pick(static_cast<std::uint32_t>(views.size()))];
  const SimulatedLayer& layer = layers[view.sequence][view.layer];
  const bool is_stale = std::any_of(view.stamps.begin(), view.stamps.end(),
                                    [&](const auto& slot) { return layer.stamps[slot.first] != slot.second; });
  trace::Called called{};
  called.operation = Operation::attend;
  called.view = view.id;
  const RefusalCode law = is_stale ? RefusalCode::stale : RefusalCode::none;
  met.insert(law);
  call({0, view.sequence, view.layer}, called, law, [] {});
  if (views.size() < 6 && pick(4) != 0) return;
  std::erase_if(views, [&](const SimulatedView& one) { return one.id == view.id; });
  tell({0, view.sequence, view.layer}, trace::WindowClosed{view.id, 0, {}});
}

void Simulation::random_call() {
  const SequenceId s = pick(2);
  const auto l = static_cast<LayerIndex>(pick(2));
  const SimulatedLayer& layer = layers[s][l];
  const Position a = pick(layer.end + 2);
  const Position b = pick(4) == 0 ? pick(layer.end + 3) : a + pick(4);
  trace::Called called{};
  called.from = a;
  called.to = b;
  switch (pick(9)) {
    case 0: {
      called.operation = Operation::truncate;
      called.to = layer.end - std::min(layer.end, pick(4));
      if (pick(6) == 0) called.to = pick(3);
      if (pick(8) == 0) called.to = layer.end + pick(2);
      const RefusalCode law = truncate_law(s, called.to);
      met.insert(law);
      return call({0, s}, called, law, [&] {
        for (SimulatedLayer& one : layers[s]) {
          remove(one, called.to, trace::kNoPosition);
          one.end = called.to;
        }
        std::erase_if(evicted[s], [&](Position p) { return p >= called.to; });
      });
    }
    case 1: {
      called.operation = Operation::evict;
      called.from = pick(3) == 0 ? a : 0;
      const RefusalCode law = evict_law(s, called.from, called.to);
      met.insert(law);
      return call({0, s}, called, law, [&] {
        if (called.from < called.to) evict(s, called.to);
      });
    }
    case 2: {
      if (pick(4) != 0) return random_append(s);
      called = {};
      called.operation = Operation::clear;
      return call({0, s}, called, RefusalCode::none, [&] {
        for (SimulatedLayer& one : layers[s]) {
          remove(one, 0, trace::kNoPosition);
          one.end = 0;
        }
        due[s] = 0;
        evicted[s].clear();
      });
    }
    case 3: {
      called.operation = Operation::window;
      const RefusalCode law = range_law(layer, a, b);
      met.insert(law);
      // The first layer's rows are seen through its reader as well.
      const auto through = static_cast<LayerIndex>(l == 0 && pick(2) == 0 ? 2 : l);
      return call({0, s, through}, called, law, [&] {
        SimulatedView view{++last_view, s, l, {}};
        for (Position p = 0; p < b; ++p) {
          const bool is_seen = a < b && (p >= a || p < layer.shape.sinks);
          if (is_seen) view.stamps.emplace_back(layer.find(p)->slot, layer.stamps[layer.find(p)->slot]);
        }
        trace::WindowOpened opened{};
        opened.view = view.id;
        opened.from = a;
        opened.to = b;
        tell({0, s, through}, opened);
        views.push_back(view);
      });
    }
    case 4: return random_attend();
    default: return random_append(s);
  }
}

void Simulation::compare() {
  for (SequenceId s = 0; s < 2; ++s) {
    for (LayerIndex l = 0; l < 2; ++l) {
      const SimulatedLayer& simulated = layers[s][l];
      const LayerModel& rows = *model.layer(0, s, l);
      BOOST_REQUIRE_EQUAL(rows.end(), simulated.end);
      BOOST_REQUIRE_EQUAL(rows.start(), simulated.start());
      BOOST_REQUIRE_EQUAL(rows.rows(), simulated.rows.size());
      BOOST_REQUIRE(l == 1 || model.layer(0, s, 2) == &rows);
      LayerModel::Digests sum;
      for (const SlotRow& row : simulated.rows) {
        const ModelRow* found = rows.find(row.position);
        BOOST_REQUIRE(found != nullptr);
        BOOST_REQUIRE(found->k_digest == row.k && found->v_digest == row.v);
        sum.k += row.k;
        sum.v += row.v;
      }
      const auto digests = rows.digests();
      BOOST_REQUIRE(digests && digests->k == sum.k && digests->v == sum.v);
      if (simulated.rows.size() < 3 || !rows.sinks().empty()) continue;
      const auto inner = rows.digests({rows.start() + 1, rows.end() - 1});
      BOOST_REQUIRE(inner->k == sum.k - simulated.rows.front().k - simulated.rows.back().k);
    }
  }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(model)

BOOST_AUTO_TEST_CASE(it_agrees_with_a_cache_simulated_slot_by_slot) {
  std::set<RefusalCode> met;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Simulation simulation(seed, seed % 3 != 0);
    for (int i = 0; i < 300; ++i) {
      BOOST_TEST_CONTEXT("seed " << seed << " call " << i) simulation.random_call();
    }
    met.insert(simulation.met.begin(), simulation.met.end());
  }
  using enum RefusalCode;
  for (const RefusalCode code : {none, full, evicted, future, stale, out_of_order, unsupported})
    BOOST_CHECK_MESSAGE(met.count(code) == 1, "refusal " << static_cast<int>(code) << " was never met");
}

BOOST_AUTO_TEST_CASE(the_window_that_a_full_ring_serves_bounds_its_chunk) {
  // A full ring serves n iff C >= W + n - 1.
  for (std::uint32_t capacity = 1; capacity <= 8; ++capacity) {
    for (std::uint32_t window = 1; window <= capacity; ++window) {
      for (std::uint32_t n = 1; n <= 9; ++n) {
        Model model;
        const auto tell = [&](const trace::Subject& subject, const auto& payload) {
          model.apply(trace::make_event(subject, payload));
        };
        trace::StoreCreated created{};
        created.layers = created.sequences = 1;
        tell({0}, created);
        tell({0, trace::kNoSequence, 0}, trace::LayerDeclared{capacity, window, 1, 0, 1, 1, 1, 0, 1, 0});
        trace::Called called{};
        called.operation = Operation::append;
        called.count = 1;
        trace::RegionMeasured region{};
        region.operation = Operation::append;
        for (std::uint32_t i = 0; i < 2 * capacity; ++i) {
          trace::Event event = trace::make_event({0, 0, 0}, called);
          event.number = 10 + i;
          model.apply(event);
          tell({0, 0, 0}, region);
        }
        called.count = n;
        const Lawful law = lawful_answer(model, 0, 0, 0, called);
        BOOST_CHECK_EQUAL(law.code == RefusalCode::none, capacity >= window + n - 1);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(what_a_list_cannot_follow_is_said) {
  Model model;
  trace::StoreCreated created{};
  created.layers = created.sequences = 1;
  model.apply(trace::make_event({0}, created));
  trace::LayerDeclared layer{};
  layer.capacity = 8;
  model.apply(trace::make_event({0, trace::kNoSequence, 0}, layer));
  // Rows that go from the middle, and those behind them keep their positions.
  for (const Operation operation : {Operation::append, Operation::evict}) {
    trace::Called call{};
    call.operation = operation;
    call.count = 4;
    call.from = 1;
    call.to = 2;
    trace::RegionMeasured region{};
    region.operation = operation;
    const LayerIndex of = operation == Operation::append ? LayerIndex{0} : trace::kNoLayer;
    trace::Event called_event = trace::make_event({0, 0, of}, call);
    called_event.number = 7;
    model.apply(called_event);
    model.apply(trace::make_event({0, 0, of}, region));
  }
  BOOST_CHECK(!model.lost_track().empty());
  BOOST_CHECK(model.layer(0, 0, 0) == nullptr);
  trace::Called called{};
  called.operation = Operation::clear;
  BOOST_CHECK(!lawful_answer(model, 0, 0, 0, called).known);
}

BOOST_AUTO_TEST_CASE(a_store_of_more_cells_than_are_remembered_is_ignored) {
  Model model;
  trace::StoreCreated created{};
  created.layers = 1U << 10;
  created.sequences = (1U << 10) + 1;
  model.apply(trace::make_event({0}, created));
  BOOST_CHECK(model.store(0) == nullptr);
  created.sequences = 1U << 10;
  model.apply(trace::make_event({0}, created));
  BOOST_CHECK(model.store(0) != nullptr);
  created.layers = created.sequences = 1;
  model.apply(trace::make_event({1}, created));
  BOOST_CHECK(model.store(1) == nullptr);
}

BOOST_AUTO_TEST_SUITE_END()
