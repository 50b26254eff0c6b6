/// Long seeded runs of everything that a paged store does, legal or not, against a model of blocks as objects: what is
/// held, which views are stale, how many blocks are free, held and cached after every call, and in what order the store
/// says that it got there.
#include "kvwitness/core/paged_store.hpp"
#include "kvwitness/trace/error.hpp"
#include "paged_model.hpp"
#include "store_check.hpp"

#include <random>

using namespace kvwitness::core;
using namespace kvwitness::core::testing;

namespace {

/// Blocks as the store's reports make them, one change after the other. Conservation holds after each of them.
class ReportedBlocks {
 public:
  explicit ReportedBlocks(const StoreConfig& config) : config_(config), blocks_(config.pool_blocks) {}

  void follow(std::span<const BlockChange> changes) {
    for (const BlockChange& change : changes) {
      apply(change);
      const auto at = [&](State state) { return std::ranges::count(blocks_, state, &Block::state); };
      BOOST_REQUIRE(at(State::free) + at(State::held) + at(State::cached) == std::ptrdiff_t(blocks_.size()));
    }
    for (const Block& block : blocks_) BOOST_REQUIRE((block.state == State::held) == !block.holders.empty());
  }
  [[nodiscard]] PoolCounts counts() const {
    const auto at = [&](State state) {
      return static_cast<std::uint32_t>(std::ranges::count(blocks_, state, &Block::state));
    };
    return {at(State::free), at(State::held), at(State::cached), 0};
  }

 private:
  enum class State : std::uint8_t { free, held, cached };
  struct Block {
    State state = State::free;
    std::set<SequenceId> holders;
    std::uint64_t epoch = 0;
  };

  void apply(const BlockChange& change) {
    if (change.act == BlockAct::signalled || change.act == BlockAct::waited) return;
    BOOST_REQUIRE(change.block < blocks_.size());
    Block& block = blocks_[change.block];
    switch (change.act) {
      case BlockAct::taken:
        BOOST_REQUIRE(block.state == State::free);
        ++block.epoch;
        [[fallthrough]];
      case BlockAct::held:
        BOOST_REQUIRE(change.act == BlockAct::taken || block.state != State::free);
        BOOST_REQUIRE(block.holders.insert(change.sequence).second);
        block.state = State::held;
        break;
      case BlockAct::released: BOOST_REQUIRE(block.holders.erase(change.sequence) == 1U); break;
      case BlockAct::freed:
      case BlockAct::cached:
        BOOST_REQUIRE(block.holders.empty());
        BOOST_REQUIRE(block.state == State::held || change.act == BlockAct::freed);
        block.state = change.act == BlockAct::freed ? State::free : State::cached;
        break;
      case BlockAct::entered:
        BOOST_REQUIRE(block.holders.contains(change.sequence));
        BOOST_REQUIRE_EQUAL(change.value, block.epoch);
        BOOST_REQUIRE_EQUAL(change.first, change.index * config_.block);
        break;
      case BlockAct::copied: BOOST_REQUIRE(blocks_[change.from_block].holders.contains(change.sequence)); break;
      default: BOOST_REQUIRE(block.state == State::held); break;
    }
    if (change.act != BlockAct::entered && change.act != BlockAct::cached && change.act != BlockAct::copied &&
        change.act != BlockAct::swapped_out && change.act != BlockAct::swapped_in)
      BOOST_REQUIRE_EQUAL(change.holders, block.holders.size());
  }

  StoreConfig config_;
  std::vector<Block> blocks_;
};

struct HeldPages {
  SequenceId sequence = 0;
  LayerIndex layer = 0;
  Range range;
  std::vector<Position> positions;    ///< that it shows
  std::vector<std::uint64_t> stints;  ///< of their blocks
  std::vector<std::uint64_t> writes;  ///< of their rows
  WindowScratch scratch;
  Window window;
};

/// Prompts whose beginnings are shared: all of them the first two blocks, each pair the first four.
std::uint64_t text_block(std::uint32_t text, std::uint32_t index) {
  const std::uint32_t root = index < 2 ? 0 : index < 4 ? text / 2 * 2 : text;
  return root * 64 + index + 1;
}

class PagedRun {
 public:
  PagedRun(const StoreConfig& config, std::uint64_t seed)
      : config_(paged_config(config)),
        store_(make_paged_store(config)),
        model_(config_),
        reported_(config_),
        random_(seed),
        texts_(config.sequences) {}

  void run(int operations) {
    for (int i = 0; i < operations; ++i) {
      BOOST_TEST_CONTEXT("operation " << i) {
        step();
        poison(*store_, i % 2 == 0 ? PoisonFill::nan : PoisonFill::huge);
        check();
      }
    }
    for (SequenceId id = 0; id < config_.sequences; ++id) clear(id);
    BOOST_TEST(store_->paging()->counts().held == 0U);
    BOOST_TEST(store_->paging()->counts().host_used == 0U);
    BOOST_TEST(store_->memory().used_bytes == 0U);
    BOOST_TEST(stale_seen_ > 100);
    BOOST_TEST(fresh_seen_ > 100);
  }

  int restores = 0, hits = 0, copies = 0, forks = 0, reorders = 0, outs = 0, ins = 0, reclaimed = 0;
  std::map<std::pair<int, RefusalCode>, int> refused;

 private:
  enum Call { kAppend, kWindow, kTruncate, kEvict, kClear, kFork, kReorder, kAdmit, kOut, kIn, kSave, kRestore };

  std::uint32_t below(std::uint32_t n) { return static_cast<std::uint32_t>(random_() % n); }
  SequenceId any() { return below(24) == 0 ? config_.sequences : below(config_.sequences); }
  std::int64_t end(SequenceId id) { return model_.list().has(id) ? model_.list().layer(id, 0).end() : 2; }

  void step() {
    const std::uint32_t dice = below(68);
    if (dice < 34) return append(any());
    if (dice < 42) return open();
    if (dice < 45) return truncate(any());
    if (dice < 48) return evict(any());
    if (dice < 50) return clear(any());
    if (dice < 53) return fork();
    if (dice < 55) return reorder();
    if (dice < 59) return admit(any());
    if (dice < 61) return swap_out(any());
    if (dice < 64) return swap_in(any());
    if (dice < 66) return save(any());
    restore(any());
  }

  template <class T>
  void expect(Call call, const Outcome<T>& answered, RefusalCode expected) {
    BOOST_REQUIRE_EQUAL(static_cast<int>(answered.code()), static_cast<int>(expected));
    if (expected != RefusalCode::none) ++refused[{call, expected}];
    if constexpr (requires { answered->blocks; }) {
      if (!answered) return;
      reported_.follow(answered->blocks);
      for (const BlockChange& change : answered->blocks) {
        copies += change.act == BlockAct::copied && change.layer == 0 ? 1 : 0;
        reclaimed += change.act == BlockAct::freed && call == kAppend ? 1 : 0;
      }
    }
  }

  void append(SequenceId id) {
    const bool is_known = model_.list().has(id);
    const auto due = static_cast<LayerIndex>(is_known ? model_.list().due(id) : 0);
    const auto layer = below(24) == 0 ? static_cast<LayerIndex>(below(3)) : due;
    if (due == 0) rows_[id] = below(8) == 0 ? 1 + below(2 * config_.block) : 1 + below(3);
    std::vector<std::uint64_t> tags(rows_[id]);
    const std::int64_t from = is_known && layer < config_.layers.size() ? model_.list().layer(id, layer).end() : 0;
    for (std::uint32_t i = 0; i < tags.size(); ++i) tags[i] = tag(id, static_cast<std::uint32_t>(from) + i);
    const TaggedRows rows(tags);
    const RefusalCode expected = model_.append(id, layer, tags);
    expect(kAppend, store_->append(id, layer, rows.rows()), expected);
    if (expected == RefusalCode::full && due != 0) clear(id);
  }
  /// The token of a position: the text's while the sequence still follows it, else one of its own, the same in all
  /// layers.
  std::uint64_t tag(SequenceId id, std::uint32_t position) {
    if (id < texts_.size() && position < texts_[id].until)
      return text_block(texts_[id].text, position / config_.block) * config_.block + position % config_.block;
    return 100000 + below(900000);
  }

  void open() {
    HeldPages view;
    view.sequence = any();
    view.layer = static_cast<LayerIndex>(below(static_cast<std::uint32_t>(config_.layers.size())));
    std::int64_t start = 0;
    std::int64_t last = 3;
    if (model_.list().has(view.sequence)) {
      start = model_.list().layer(view.sequence, view.layer).start;
      last = model_.list().layer(view.sequence, view.layer).end();
    }
    const auto about = [&](std::int64_t low) {
      return static_cast<Position>(
          std::max<std::int64_t>(0, low - 1 + below(static_cast<std::uint32_t>(last - low + 3))));
    };
    view.range.from = about(start);
    view.range.to = about(std::min<std::int64_t>(view.range.from, last));
    view.scratch = WindowScratch(store_->layout().max_runs, 0);
    const RefusalCode expected = model_.see(view.sequence, view.layer, view.range.from, view.range.to);
    const auto window = store_->window(view.sequence, view.layer, view.range, view.scratch);
    expect(kWindow, window, expected);
    if (!window) return;
    BOOST_REQUIRE(shows(*window, model_.list().layer(view.sequence, view.layer)));
    view.window = *window;
    for (const Position p : model_.list().layer(view.sequence, view.layer).seen(view.range.from, view.range.to)) {
      view.stints.push_back(model_.stint(view.sequence, p / config_.block));
      view.writes.push_back(model_.written(view.sequence, p));
      view.positions.push_back(p);
    }
    if (views_.size() == 12) views_.erase(views_.begin() + below(12));
    views_.push_back(std::move(view));
  }

  void truncate(SequenceId id) {
    const auto to = static_cast<Position>(std::max<std::int64_t>(0, end(id) + 1 - below(8)));
    const std::int64_t before = end(id);
    const RefusalCode expected = model_.truncate(id, to);
    expect(kTruncate, store_->truncate(id, to), expected);
    if (expected == RefusalCode::none && to < before) texts_[id].until = std::min(texts_[id].until, to);
  }

  void evict(SequenceId id) {
    const std::int64_t start = model_.list().has(id) ? model_.list().layer(id, 0).start : 0;
    const auto from = static_cast<Position>(below(4) == 0 ? start + below(3) : 0);
    const auto to = static_cast<Position>(start + below(6));
    const RefusalCode expected = model_.evict(id, from, to);
    expect(kEvict, store_->evict(id, {from, to}), expected);
  }

  void clear(SequenceId id) {
    const RefusalCode expected = model_.clear(id);
    expect(kClear, store_->clear(id), expected);
    if (expected != RefusalCode::none) return;
    texts_[id] = {};
  }

  void fork() {
    const SequenceId parent = any();
    const SequenceId child = any();
    const auto to = static_cast<Position>(std::max<std::int64_t>(0, end(parent) + 1 - below(6)));
    if (below(2) == 0 && child < config_.sequences) clear(child);
    const RefusalCode expected = model_.fork(parent, child, to);
    expect(kFork, store_->forking()->fork(parent, child, to), expected);
    if (expected != RefusalCode::none) return;
    forks += to > 0 ? 1 : 0;
  }

  void reorder() {
    std::vector<SequenceId> parents(1 + below(config_.sequences));
    for (SequenceId& parent : parents) parent = below(static_cast<std::uint32_t>(parents.size()));
    const RefusalCode expected = model_.reorder(parents);
    expect(kReorder, store_->forking()->reorder(parents), expected);
    if (expected != RefusalCode::none) return;
    for (SequenceId beam = 0; beam < parents.size(); ++beam) {
      if (parents[beam] == beam) continue;
      texts_[beam] = {};
    }
    ++reorders;
  }

  void admit(SequenceId id) {
    if (below(4) != 0 && id < config_.sequences) clear(id);
    PromptRequest request;
    request.prompt = below(config_.block * 7);
    request.generated = below(12);
    const std::uint32_t text = below(6);
    std::vector<std::uint64_t> hashes;
    std::vector<std::uint64_t> tags;
    for (std::uint32_t p = 0; p < request.prompt; ++p)
      tags.push_back(text_block(text, p / config_.block) * config_.block + p % config_.block);
    for (std::uint32_t index = 0; index < request.prompt / config_.block; ++index)
      hashes.push_back(text_block(text, index));
    hashes.resize(std::min<std::size_t>(hashes.size(), below(8) == 0 ? 2 : config_.pool_blocks));
    request.hashes = hashes;
    std::int64_t hit = 0;
    const RefusalCode expected = model_.admit(id, request, tags, hit);
    const auto admitted = store_->paging()->admit(id, request);
    expect(kAdmit, admitted, expected);
    if (!admitted) return;
    BOOST_REQUIRE_EQUAL(admitted->hit, hit);
    BOOST_REQUIRE(hit < request.prompt || request.prompt == 0);
    hits += hit > 0 ? 1 : 0;
    texts_[id] = {text, request.prompt};
  }

  void swap_out(SequenceId id) {
    const RefusalCode expected = model_.swap_out(id);
    expect(kOut, store_->paging()->swap_out(id), expected);
    outs += expected == RefusalCode::none ? 1 : 0;
  }
  void swap_in(SequenceId id) {
    const RefusalCode expected = model_.swap_in(id);
    expect(kIn, store_->paging()->swap_in(id), expected);
    ins += expected == RefusalCode::none ? 1 : 0;
  }

  void save(SequenceId id) {
    ListSequence rows;
    const RefusalCode expected = model_.save(id, rows);
    const auto bytes = store_->saving()->saved_bytes(id);
    expect(kSave, bytes, expected);
    if (!bytes) return;
    std::vector<std::byte> file(*bytes);
    BOOST_REQUIRE(store_->saving()->save(id, file).ok());
    files_.push_back({std::move(file), std::move(rows)});
    if (files_.size() > 4) files_.erase(files_.begin());
  }
  void restore(SequenceId id) {
    if (files_.empty()) return;
    const File& file = files_[below(static_cast<std::uint32_t>(files_.size()))];
    const RefusalCode expected = model_.restore(id, file.rows);
    expect(kRestore, store_->saving()->restore(id, file.bytes), expected);
    if (expected != RefusalCode::none) return;
    texts_[id] = {};
    restores += file.rows.layers[0].end() > 0 ? 1 : 0;
    // Which blocks the rows lie in is no part of a file.
    std::vector<std::byte> again(file.bytes.size());
    BOOST_REQUIRE(store_->saving()->save(id, again).ok());
    BOOST_REQUIRE(again == file.bytes);
  }

  void check() {
    const PoolCounts counts = store_->paging()->counts();
    BOOST_REQUIRE(counts == model_.counts());
    PoolCounts told = reported_.counts();
    told.host_used = counts.host_used;
    BOOST_REQUIRE(counts == told);
    for (SequenceId id = 0; id < config_.sequences; ++id) {
      BOOST_REQUIRE_EQUAL(store_->paging()->is_out(id), model_.sequence(id).is_out);
      if (model_.sequence(id).is_out) continue;
      for (LayerIndex layer = 0; layer < config_.layers.size(); ++layer)
        BOOST_REQUIRE(holds_as_modelled(*store_, model_.list(), id, layer));
    }
    check_views();
  }

  void check_views() {
    for (const HeldPages& view : views_) {
      const ListLayer& rows = model_.list().layer(view.sequence, view.layer);
      bool is_stale = false;
      std::size_t i = 0;
      for (const Position p : view.positions) {
        is_stale = is_stale || !rows.holds(p) || model_.stint(view.sequence, p / config_.block) != view.stints[i] ||
                   model_.written(view.sequence, p) != view.writes[i];
        ++i;
      }
      ++(is_stale ? stale_seen_ : fresh_seen_);
      BOOST_REQUIRE_EQUAL(static_cast<int>(store_->still_valid(view.window).code()),
                          static_cast<int>(is_stale ? RefusalCode::stale : RefusalCode::none));
      if (!is_stale) BOOST_REQUIRE(shows(view.window, rows));
    }
  }

  struct File {
    std::vector<std::byte> bytes;
    ListSequence rows;
  };
  struct Text {
    std::uint32_t text = 0;
    Position until = 0;  ///< tokens from there on are not the text's
  };

  StoreConfig config_;
  std::unique_ptr<KvStore> store_;
  PagedModel model_;
  ReportedBlocks reported_;
  std::mt19937_64 random_;
  std::vector<Text> texts_;
  std::map<SequenceId, std::uint32_t> rows_;
  std::vector<HeldPages> views_;
  std::vector<File> files_;
  int stale_seen_ = 0;
  int fresh_seen_ = 0;
};

StoreConfig pool_of(std::vector<LayerGeometry> layers, std::uint32_t block, std::uint32_t blocks,
                    std::uint32_t host_blocks = 9) {
  StoreConfig config;
  config.layers = std::move(layers);
  config.sequences = 4;
  config.block = block;
  config.pool_blocks = blocks;
  config.host_blocks = host_blocks;
  return config;
}

void require_everything(const PagedRun& run) {
  BOOST_TEST(run.hits > 10);
  BOOST_TEST(run.copies > 10);
  BOOST_TEST(run.forks > 10);
  BOOST_TEST(run.reorders > 10);
  BOOST_TEST(run.outs > 5);
  BOOST_TEST(run.ins > 5);
  BOOST_TEST(run.reclaimed > 5);
  BOOST_TEST(run.restores > 10);
  const auto refused = [&](int call, RefusalCode code) {
    const auto at = run.refused.find({call, code});
    return at == run.refused.end() ? 0 : at->second;
  };
  BOOST_TEST(refused(0, RefusalCode::no_memory) > 0);
  BOOST_TEST(refused(0, RefusalCode::evicted) > 0);
  BOOST_TEST(refused(7, RefusalCode::no_memory) > 0);
  BOOST_TEST(refused(8, RefusalCode::no_memory) > 0);
  BOOST_TEST(refused(9, RefusalCode::no_memory) > 0);
  BOOST_TEST(refused(10, RefusalCode::evicted) > 0);
  BOOST_TEST(refused(11, RefusalCode::no_memory) > 0);
}

LayerGeometry with_sinks(LayerGeometry layer, std::uint32_t sinks) {
  layer.sinks = sinks;
  return layer;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(paged_random)

BOOST_AUTO_TEST_CASE(full_causal_layers_in_a_tight_pool) {
  for (const std::uint64_t seed : {1U, 2U}) {
    PagedRun run(pool_of({small_layer(40, {}, false), small_layer(44, {6, true}, false)}, 4, 17), seed);
    run.run(8000);
    require_everything(run);
  }
}

BOOST_AUTO_TEST_CASE(windows_that_slide_in_a_tight_pool) {
  for (const std::uint64_t seed : {3U, 4U}) {
    PagedRun run(pool_of({small_layer(9, {5, true}, true), small_layer(6, {}, true)}, 4, 8, 2), seed);
    run.run(8000);
    require_everything(run);
  }
}

BOOST_AUTO_TEST_CASE(a_block_that_divides_no_window_and_one_larger_than_the_window) {
  PagedRun odd(pool_of({small_layer(11, {7, true}, true), small_layer(13, {8, true}, true)}, 3, 19), 5);
  odd.run(8000);
  PagedRun large(pool_of({small_layer(6, {2, true}, true), small_layer(5, {1, true}, true)}, 8, 7), 6);
  large.run(8000);
}

BOOST_AUTO_TEST_CASE(a_full_layer_keeps_the_blocks_that_a_sliding_one_dropped) {
  PagedRun run(pool_of({small_layer(6, {3, true}, true), small_layer(30, {}, false)}, 2, 30), 7);
  run.run(8000);
}

BOOST_AUTO_TEST_CASE(sinks_stay_in_their_blocks_while_windows_move_on) {
  for (const std::uint64_t seed : {10U, 11U}) {
    PagedRun run(
        pool_of({with_sinks(small_layer(12, {5, true}, true), 3), with_sinks(small_layer(11, {}, true), 3)}, 4, 11, 4),
        seed);
    run.run(8000);
    require_everything(run);
  }
  // Sinks that fill no block, that fill more than one, and that differ between layers.
  PagedRun one(pool_of({with_sinks(small_layer(9, {3, true}, true), 1)}, 4, 12), 12);
  one.run(6000);
  PagedRun more(pool_of({with_sinks(small_layer(14, {4, true}, true), 5)}, 2, 24), 13);
  more.run(6000);
  PagedRun mixed(pool_of({with_sinks(small_layer(10, {4, true}, true), 5), small_layer(6, {2, true}, true),
                          with_sinks(small_layer(30, {7, true}, false), 2)},
                         3, 34),
                 14);
  mixed.run(6000);
}

/// A token under way may be in the first layer only, while another layer still holds all that it can.
BOOST_AUTO_TEST_CASE(a_chunk_that_only_the_first_layer_has_room_for) {
  const std::vector<LayerGeometry> layers{small_layer(4, {1, true}, true), small_layer(12, {}, false)};
  for (const std::uint32_t block : {1U, 2U, 5U}) {
    const auto store = make_paged_store(pool_of(layers, block, 0, 0));
    for (std::uint64_t tag = 0; tag < 12; ++tag)
      for (LayerIndex layer = 0; layer < 2; ++layer)
        BOOST_REQUIRE(store->append(0, layer, TaggedRows({tag}).rows()).ok());
    const TaggedRows chunk({12, 13, 14, 15});
    BOOST_TEST(store->append(0, 0, chunk.rows()).ok());
    BOOST_TEST((store->append(0, 1, chunk.rows()).code() == RefusalCode::full));
    BOOST_TEST(store->paging()->counts().held == (16 + block - 1) / block);
    WindowScratch scratch(store->layout().max_runs, 0);
    const auto all = store->window(0, 1, {0, 12}, scratch);
    BOOST_REQUIRE(all.ok());
    BOOST_TEST(is_row(all->runs.front().k_row(0), 0, Plane::k));
    BOOST_TEST(store->clear(0).ok());
    BOOST_TEST(store->paging()->counts().held == 0U);
  }
  PagedRun run(pool_of({small_layer(6, {2, true}, true), small_layer(10, {}, false)}, 2, 40), 9);
  run.run(4000);
}

BOOST_AUTO_TEST_CASE(one_row_a_block_of_one_layer) {
  PagedRun run(pool_of({small_layer(7, {4, true}, true)}, 1, 20), 8);
  run.run(8000);
}

BOOST_AUTO_TEST_SUITE_END()
