#include "kvwitness/scenarios/generator.hpp"

#include "generator/list_model.hpp"
#include "kvwitness/scenarios/registry.hpp"
#include "run_case.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

using namespace kvwitness;
using namespace kvwitness::scenarios;
using namespace kvwitness::scenarios::testing;

namespace {

constexpr std::uint64_t kSeeds = 200;

core::StoreConfig one_layer(std::uint32_t window, std::uint32_t capacity, bool sliding) {
  core::LayerGeometry layer;
  layer.window = {window, window != 0};
  layer.capacity = capacity;
  layer.sliding = sliding;
  core::StoreConfig config;
  config.layers = {layer};
  return config;
}

/// One full causal layer, or with a window, in blocks of 4; as many sequences share a pool, with 3 blocks on the host.
ListModel with_pool(std::uint32_t blocks, std::uint32_t sequences, std::uint32_t window = 0) {
  core::StoreConfig config = one_layer(window, 64, false);
  config.block = 4;
  config.pool_blocks = blocks;
  config.host_blocks = 3;
  config.sequences = sequences;
  return {config, ListSurvivors::stay};
}

/// What the runs of many seeds had in them.
struct Seen {
  std::set<trace::Operation> operations;
  std::set<trace::RefusalCode> refusals;
  std::set<trace::SequenceId> sequences;
  std::uint64_t wrapped = 0;
  std::uint64_t chunks = 0;
  std::uint64_t overwrites = 0;
  std::uint64_t reused = 0;  ///< blocks that nobody held, and that were freed to be taken
  std::map<trace::EventType, std::uint64_t> told;
};

void look_at(const std::vector<trace::Event>& events, Seen& seen) {
  std::optional<std::uint32_t> released;
  for (const trace::Event& event : events) {
    ++seen.told[event.type];
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
    } else if (event.type == trace::EventType::BlockFree) {
      // Without a release just before it, the block was cached.
      seen.reused += released != trace::payload_of<trace::BlockFree>(event).block ? 1 : 0;
      released.reset();
    } else if (event.type == trace::EventType::BlockRelease) {
      released = trace::payload_of<trace::BlockRelease>(event).block;
    }
  }
}

Seen run_seeds(const StoreKind& kind, bool with_refusals, std::uint64_t seeds = kSeeds) {
  const StoreRegistry registry = product_stores();
  Seen seen;
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
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

// Each attribute that a store is told, drawn of every kind that can have it.
BOOST_AUTO_TEST_CASE(scores_heads_and_rotations_of_every_sort_are_drawn) {
  const StoreRegistry registry = product_stores();
  for (const StoreKind& kind : registry.all()) {
    std::set<double> scales, caps, thetas;
    std::set<std::pair<std::uint32_t, std::uint32_t>> heads;
    for (std::uint64_t seed = 0; seed < 2 * kSeeds; ++seed) {
      const core::StoreConfig config = random_legal_case(seed, kind.capabilities).stores.front().config;
      scales.insert(config.score_scale);
      caps.insert(config.softcap);
      heads.insert({config.layers.front().q_heads, config.layers.front().kv_heads});
      for (const core::LayerGeometry& layer : config.layers)
        if (layer.rope) thetas.insert(layer.rope->theta);
    }
    BOOST_TEST(scales.size() == 5U, kind.name);
    BOOST_TEST(caps.size() == 4U, kind.name);
    BOOST_TEST(heads.size() == 8U, kind.name << " " << heads.size());
    BOOST_TEST(thetas.size() == 4U, kind.name);
  }
}

BOOST_AUTO_TEST_CASE(rings_are_driven_round) {
  const StoreRegistry registry = product_stores();
  const Seen seen = run_seeds(*registry.find("ring"), false);
  BOOST_TEST(seen.wrapped > kSeeds);
  BOOST_TEST(seen.overwrites > kSeeds);
}

// What sequences share blocks for: each of these is no more than a few draws away in most scripts. Only a pool that is
// full takes cached blocks for other rows; that is the rarest.
BOOST_AUTO_TEST_CASE(blocks_are_shared_copied_found_and_swapped) {
  const StoreRegistry registry = product_stores();
  for (const bool with_refusals : {false, true}) {
    Seen seen = run_seeds(*registry.find("paged"), with_refusals, 2 * kSeeds);
    using enum trace::Operation;
    for (const trace::Operation operation : {fork, reorder, admit, swap_out, swap_in})
      BOOST_TEST(seen.operations.contains(operation), trace::to_text(operation) << " never came up");
    using enum trace::EventType;
    for (const trace::EventType type :
         {Fork, Reorder, Admitted, BlockHold, BlockCached, PrefixPublished, PrefixHit, SwapOut, SwapIn, Move})
      BOOST_TEST(seen.told[type] > 10U, trace::to_text(type) << " was told " << seen.told[type] << " times");
    // Cached blocks that are taken for other rows.
    BOOST_TEST(seen.reused > 10U);
    BOOST_TEST(seen.refusals.contains(trace::RefusalCode::no_memory) == with_refusals);
  }
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

// Stores without blocks copy the rows; no store of the product's does, but others' do.
BOOST_AUTO_TEST_CASE(stores_that_copy_rows_are_forked_too) {
  using enum trace::Capability;
  std::uint64_t capabilities = 0;
  for (const trace::Capability one : {truncate, front_evict, clear, sequences, fork, save})
    capabilities |= static_cast<std::uint64_t>(one);
  for (const bool with_refusals : {false, true}) {
    std::map<trace::RefusalCode, std::uint32_t> answers;
    for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
      const Case one = random_case(seed, {capabilities, with_refusals});
      for (const Step& step : one.steps)
        if (step.operation == trace::Operation::fork) ++answers[step.expect.value_or(trace::RefusalCode::none)];
    }
    BOOST_TEST(answers[trace::RefusalCode::none] > 10U);
    BOOST_TEST((answers[trace::RefusalCode::out_of_order] > 10U) == with_refusals);
  }
}

// What one sequence's half-written token must not be bound by.
BOOST_AUTO_TEST_CASE(others_are_edited_between_the_layers_of_a_token) {
  const StoreRegistry registry = product_stores();
  for (const StoreKind& kind : registry.all()) {
    std::set<trace::Operation> between;
    for (std::uint64_t seed = 0; seed < 2 * kSeeds; ++seed) {
      std::optional<trace::SequenceId> half;
      const Case one = random_case(seed, {kind.capabilities, false});
      const std::size_t layers = one.stores.front().config.layers.size();
      for (const Step& step : one.steps) {
        if (step.operation == trace::Operation::append && step.layer)
          half = *step.layer + 1U < layers ? std::optional(step.sequence) : std::nullopt;
        else if (half && *half != step.sequence)
          between.insert(step.operation);
      }
    }
    using enum trace::Operation;
    for (const trace::Operation operation : {truncate, evict, clear, save, restore})
      BOOST_TEST(between.contains(operation), trace::to_text(operation) << " never came up on " << kind.name);
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

// A layer that reads another's rows has none to wait for.
BOOST_AUTO_TEST_CASE(a_sequence_with_readers_forks_between_tokens) {
  core::StoreConfig config = one_layer(0, 8, false);
  config.layers.push_back(config.layers.front());
  config.layers.back().donor = 0;
  config.layers.push_back(config.layers.front());
  config.sequences = 2;
  ListModel model(config, ListSurvivors::stay);
  model.append(0, 0, 3);
  BOOST_TEST((model.why_no_fork(0, 1, 2) == ListReasons{trace::RefusalCode::out_of_order}));
  model.append(0, 2, 3);
  BOOST_TEST(model.why_no_fork(0, 1, 2).empty());
  model.fork(0, 1, 2);
  BOOST_TEST(model.end(1) == 2U);
}

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

// An eviction that ends inside the sinks takes nothing, also where survivors of others would move.
BOOST_AUTO_TEST_CASE(sinks_stay_and_can_be_cut_below_an_eviction) {
  core::StoreConfig config = one_layer(4, 8, false);
  config.layers[0].sinks = 4;
  ListModel model(config, ListSurvivors::move);
  model.append_all(0, 8);
  model.evict(0, {0, 3});
  BOOST_TEST(model.layer(0, 0).start == 0U);
  BOOST_TEST(model.may_truncate(0, 2));
  model.truncate(0, 2);
  BOOST_TEST(model.end(0) == 2U);
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

// Blocks of 4. Both sequences have the block of positions 4 and 5, so the next row needs a copy of it.
BOOST_AUTO_TEST_CASE(a_shared_block_is_copied_by_who_writes_to_it) {
  ListModel model = with_pool(4, 2);
  model.append_all(0, 6);
  model.fork(0, 1, 6);
  const ListView first = model.open(1, 0, {0, 4});
  const ListView last = model.open(1, 0, {4, 6});
  BOOST_TEST(model.longest_with_blocks(1, 100) == 6U);  // of 4 blocks 2 are left: a copy and one behind it
  model.append_all(1, 1);
  BOOST_TEST(!model.is_stale(first));
  BOOST_TEST(model.is_stale(last));
  BOOST_TEST(model.longest_with_blocks(0, 100) == 6U);  // its block is its own now, and one is left
  BOOST_TEST((model.why_no_fork(0, 1, 6) == ListReasons{trace::RefusalCode::out_of_order}));
  BOOST_TEST((model.why_no_fork(0, 2, 6) == ListReasons{trace::RefusalCode::unknown_sequence}));
}

// A prompt of 9 tokens in blocks of 4: both full blocks can be found. One that differs in token 5 finds the first
// alone; the last token is computed, whatever there is.
BOOST_AUTO_TEST_CASE(prompts_begin_with_the_blocks_that_are_found) {
  ListModel model = with_pool(8, 3);
  ListRequest request{{"", {1, 2, 3, 4, 5, 6, 7, 8, 9}}, 3};
  BOOST_TEST(model.admit(0, request) == 0U);
  // 12 rows are 3 blocks; others have 5 left.
  BOOST_TEST(model.longest_with_blocks(1, 100) == 20U);
  model.append_all(0, 9);
  BOOST_TEST(model.longest_with_blocks(1, 100) == 20U);
  model.clear(0);
  BOOST_TEST(model.longest_with_blocks(1, 100) == 32U);
  BOOST_TEST(model.admit(1, request) == 8U);
  request.prompt.tokens[5] = 60;
  BOOST_TEST(model.admit(2, request) == 4U);
  request.prompt.tokens = {1, 2, 3, 4};
  BOOST_TEST(model.admit(0, request) == 0U);
}

// Cached blocks go to others, the one that was cached first before the others: a prefix loses its end first.
BOOST_AUTO_TEST_CASE(what_was_cached_first_is_taken_first) {
  ListModel model = with_pool(3, 2);
  const ListRequest request{{"", {1, 2, 3, 4, 5, 6, 7, 8, 9}}, 0};
  static_cast<void>(model.admit(0, request));
  model.append_all(0, 9);
  model.clear(0);
  model.append_all(1, 8);
  model.clear(1);
  BOOST_TEST(model.admit(0, request) == 4U);
}

// A window of 5: a query at 8 sees [4, 8) besides itself, and nothing of the first block.
BOOST_AUTO_TEST_CASE(a_window_needs_no_more_blocks_than_it_sees) {
  ListModel model = with_pool(8, 2, 5);
  const ListRequest request{{"", {1, 2, 3, 4, 5, 6, 7, 8, 9}}, 0};
  static_cast<void>(model.admit(0, request));
  model.append_all(0, 9);
  BOOST_TEST(model.admit(1, request) == 8U);
  BOOST_TEST(model.layer(1, 0).start == 4U);
  BOOST_TEST(model.pages(1).blocks.size() == 1U);
}

BOOST_AUTO_TEST_CASE(who_is_out_takes_blocks_of_the_host) {
  ListModel model = with_pool(4, 2);
  model.append_all(0, 12);
  BOOST_TEST((model.why_no_swap_out(1) == ListReasons{trace::RefusalCode::out_of_order}));
  BOOST_TEST((model.why_no_swap_in(0) == ListReasons{trace::RefusalCode::out_of_order}));
  const ListView view = model.open(0, 0, {0, 2});
  model.swap_out(0);
  BOOST_TEST(model.is_stale(view));
  model.append_all(1, 8);
  // All 3 blocks on the host are taken, and 2 of the 4 in the pool.
  BOOST_TEST((model.why_no_swap_out(1) == ListReasons{trace::RefusalCode::no_memory}));
  BOOST_TEST((model.why_no_swap_in(0) == ListReasons{trace::RefusalCode::no_memory}));
  model.truncate(1, 4);
  BOOST_TEST(model.why_no_swap_in(0).empty());
}

// Beam 0 becomes what beam 1 is: the block that both have stays, and so do views over its rows.
BOOST_AUTO_TEST_CASE(beams_keep_the_blocks_that_both_have) {
  ListModel model = with_pool(8, 2);
  model.append_all(0, 6);
  model.fork(0, 1, 4);
  model.append_all(1, 2);
  const ListView first = model.open(0, 0, {0, 4});
  const ListView last = model.open(0, 0, {4, 6});
  const std::vector<trace::SequenceId> parents{1, 1};
  model.reorder(parents);
  BOOST_TEST(!model.is_stale(first));
  BOOST_TEST(model.is_stale(last));
  BOOST_TEST(model.pages(0).blocks == model.pages(1).blocks);
}

BOOST_AUTO_TEST_SUITE_END()
