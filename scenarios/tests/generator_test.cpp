#include "kvwitness/scenarios/generator.hpp"

#include "kvwitness/scenarios/registry.hpp"
#include "list_model.hpp"
#include "run_case.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <set>

using namespace kvwitness;
using namespace kvwitness::scenarios;
using namespace kvwitness::scenarios::testing;

namespace {

constexpr std::uint64_t kSeeds = 150;

core::StoreConfig one_layer(std::uint32_t window, std::uint32_t capacity, bool sliding) {
  core::LayerGeometry layer;
  layer.window = {window, window != 0};
  layer.capacity = capacity;
  layer.sliding = sliding;
  core::StoreConfig config;
  config.layers = {layer};
  return config;
}

/// What the runs of many seeds had in them.
struct Seen {
  std::set<trace::Operation> operations;
  std::set<trace::RefusalCode> refusals;
  std::set<trace::SequenceId> sequences;
  std::uint64_t wrapped = 0;
  std::uint64_t chunks = 0;
  std::uint64_t overwrites = 0;
};

void look_at(const std::vector<trace::Event>& events, Seen& seen) {
  for (const trace::Event& event : events) {
    if (event.type == trace::EventType::Called) {
      const auto called = trace::payload_of<trace::Called>(event);
      seen.operations.insert(called.operation);
      seen.sequences.insert(event.sequence);
      seen.chunks += called.operation == trace::Operation::append && called.count > 1 ? 1 : 0;
    } else if (event.type == trace::EventType::Refused) {
      seen.refusals.insert(trace::payload_of<trace::Refused>(event).reason);
    } else if (event.type == trace::EventType::WindowOpened) {
      seen.wrapped += trace::payload_of<trace::WindowOpened>(event).runs > 1 ? 1 : 0;
    } else if (event.type == trace::EventType::Overwrite) {
      ++seen.overwrites;
    }
  }
}

Seen run_seeds(const StoreKind& kind, bool with_refusals) {
  const StoreRegistry registry = product_stores();
  Seen seen;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const GeneratorOptions options{kind.capabilities, with_refusals};
    const auto events = run_case(random_case(seed, options), kind.name, registry);
    const auto surprise = first_surprise(events);
    BOOST_TEST(!surprise, kind.name << ", seed " << seed << ", " << surprise.value_or("") << "\n"
                                    << random_script(seed, options));
    look_at(events, seen);
  }
  return seen;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(random_scripts)

BOOST_AUTO_TEST_CASE(a_script_is_a_function_of_its_seed) {
  const GeneratorOptions options{~std::uint64_t{0}, true};
  BOOST_TEST(random_script(7, options) == random_script(7, options));
  std::set<std::string> texts;
  for (std::uint64_t seed = 0; seed < 50; ++seed) texts.insert(random_script(seed, options));
  BOOST_TEST(texts.size() == 50U);
}

BOOST_AUTO_TEST_CASE(legal_scripts_are_served_by_every_store) {
  const StoreRegistry registry = product_stores();
  for (const StoreKind& kind : registry.all()) {
    const Seen seen = run_seeds(kind, false);
    BOOST_TEST(seen.refusals.empty());
    using enum trace::Operation;
    for (const trace::Operation operation : {append, window, gather, attend, read, truncate, evict, clear})
      BOOST_TEST(seen.operations.contains(operation), trace::to_text(operation) << " never came up on " << kind.name);
    BOOST_TEST(seen.sequences.size() >= 3U);
    BOOST_TEST(seen.chunks > kSeeds);
  }
}

BOOST_AUTO_TEST_CASE(rings_are_driven_round) {
  const StoreRegistry registry = product_stores();
  const Seen seen = run_seeds(*registry.find("ring"), false);
  BOOST_TEST(seen.wrapped > kSeeds);
  BOOST_TEST(seen.overwrites > kSeeds);
}

BOOST_AUTO_TEST_CASE(unlawful_calls_meet_every_refusal) {
  const StoreRegistry registry = product_stores();
  for (const StoreKind& kind : registry.all()) {
    const Seen seen = run_seeds(kind, true);
    using enum trace::RefusalCode;
    // Where any range can be evicted and what lies behind it is renumbered, nothing is ever missing, and no eviction is
    // beyond the store.
    const bool misses_nothing = (kind.capabilities & static_cast<std::uint64_t>(trace::Capability::renumbers)) != 0;
    for (const trace::RefusalCode code : {full, evicted, future, stale, unknown_sequence, out_of_order, unsupported}) {
      if (misses_nothing && (code == evicted || code == unsupported)) continue;
      BOOST_TEST(seen.refusals.contains(code), trace::to_text(code) << " never came up on " << kind.name);
    }
  }
}

BOOST_AUTO_TEST_CASE(nothing_is_asked_that_a_store_cannot_do) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    for (const bool with_refusals : {false, true}) {
      const Case bare = random_case(seed, {0, with_refusals});
      BOOST_TEST(bare.stores.front().config.sequences == 1U);
      BOOST_TEST(std::ranges::none_of(bare.stores.front().config.layers, &core::LayerGeometry::sliding));
      for (const Step& step : bare.steps) {
        using enum trace::Operation;
        const bool needs_more = step.operation == truncate || step.operation == evict || step.operation == trim ||
                                step.operation == release || !step.use.empty();
        const bool clears = step.operation == clear && step.expect != trace::RefusalCode::unknown_sequence;
        const bool is_foreign = step.expect == trace::RefusalCode::unknown_sequence;
        BOOST_TEST(((!needs_more && !clears) || is_foreign), random_script(seed, {0, with_refusals}));
      }
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(list_model)

// W = 4, C = 8, 20 tokens: held [12, 20). A query at 15 sees [12, 15]; one at 14 would see 11.
BOOST_AUTO_TEST_CASE(a_wrapped_ring_can_be_rolled_back_by_its_spare_slots) {
  ListModel model(one_layer(4, 8, true), ListSurvivors::stay);
  model.append_all(0, 20);
  BOOST_TEST(model.layer(0, 0).start == 12U);
  BOOST_TEST(model.deepest_truncate(0) == 15U);
}

BOOST_AUTO_TEST_CASE(a_full_ring_serves_chunks_of_its_spare_slots_and_one) {
  ListModel model(one_layer(4, 8, true), ListSurvivors::stay);
  BOOST_TEST(model.longest_append(0) == 8U);
  model.append_all(0, 20);
  BOOST_TEST(model.longest_append(0) == 5U);
}

BOOST_AUTO_TEST_CASE(a_layer_that_does_not_slide_has_room_for_the_rest) {
  ListModel model(one_layer(0, 8, false), ListSurvivors::stay);
  model.append_all(0, 5);
  BOOST_TEST(model.room(0) == 3U);
  BOOST_TEST(model.deepest_truncate(0) == 0U);
  model.evict(0, {0, 2});
  BOOST_TEST(model.room(0) == 5U);
  BOOST_TEST(model.deepest_truncate(0) == 2U);
}

BOOST_AUTO_TEST_CASE(a_view_is_stale_when_its_rows_are_gone_moved_or_others) {
  ListModel ring(one_layer(4, 8, true), ListSurvivors::stay);
  ListModel flat(one_layer(4, 16, false), ListSurvivors::move);
  for (ListModel* model : {&ring, &flat}) {
    model->append_all(0, 8);
    const ListView view = model->open(0, 0, {4, 8});
    BOOST_TEST(!model->is_stale(view));
    model->evict(0, {0, 2});
    BOOST_TEST(model->is_stale(view) == (model == &flat));
    const ListView again = model->open(0, 0, {4, 8});
    model->truncate(0, 7);
    model->append_all(0, 1);
    BOOST_TEST(model->is_stale(again));
  }
}

// Positions 0 .. 7 without [2, 5): what lay at 5, 6, 7 lies at 2, 3, 4.
BOOST_AUTO_TEST_CASE(renumbered_survivors_take_the_positions_of_what_was_evicted) {
  ListModel model(one_layer(0, 16, false), ListSurvivors::renumbered);
  model.append_all(0, 8);
  const ListView below = model.open(0, 0, {0, 2});
  const ListView behind = model.open(0, 0, {6, 8});
  model.evict(0, {2, 5});
  BOOST_TEST(model.layer(0, 0).start == 0U);
  BOOST_TEST(model.end(0) == 5U);
  BOOST_TEST(model.room(0) == 11U);
  BOOST_TEST(!model.is_stale(below));
  BOOST_TEST(model.is_stale(behind));
  BOOST_TEST(model.deepest_truncate(0) == 0U);
}

BOOST_AUTO_TEST_SUITE_END()
