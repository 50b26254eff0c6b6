/// Long seeded runs of every operation, legal or not, against the list model; held views against what it lost.
#include "store_check.hpp"

#include <random>

using namespace kvwitness::core;
using namespace kvwitness::core::testing;

namespace {

/// A window that is held while the store goes on, and the rows that it was opened over.
struct HeldView {
  SequenceId sequence = 0;
  LayerIndex layer = 0;
  Range range;
  std::vector<Position> positions;  ///< sinks included
  std::vector<std::uint64_t> tags;
  WindowScratch scratch{3, 0};
  Window window;
  bool was_moved = false;
};

class RandomRun {
 public:
  RandomRun(const std::string& kind, const StoreConfig& config, std::uint64_t seed)
      : kind_(kind), config_(config), store_(make(kind, config)), model_(config, kind == "compact"), random_(seed) {}

  void run(int operations) {
    for (int i = 0; i < operations; ++i) {
      BOOST_TEST_CONTEXT("operation " << i) {
        step();
        // Whatever lies where no row does: the model's rows are found all the same, now and after what comes.
        poison(*store_, below(2) == 0 ? PoisonFill::nan : PoisonFill::huge);
        BOOST_REQUIRE(holds_as_modelled(*store_, model_));
        check_views();
      }
    }
    BOOST_TEST(stale_seen_ > 0);
    BOOST_TEST(fresh_seen_ > 0);
    BOOST_TEST(refused_ > 0);
  }

 private:
  std::uint32_t below(std::uint32_t n) { return static_cast<std::uint32_t>(random_() % n); }
  /// Now and then one that the store does not have.
  SequenceId any_sequence() { return below(16) == 0 ? config_.sequences : below(config_.sequences); }

  void step() {
    const std::uint32_t dice = below(32);
    if (dice < 20) return append();
    if (dice < 26) return open();
    if (dice < 28) return truncate();
    if (dice < 31) return evict();
    clear();
  }

  void expect(RefusalCode answered, RefusalCode expected) {
    BOOST_REQUIRE_EQUAL(static_cast<int>(answered), static_cast<int>(expected));
    refused_ += expected == RefusalCode::none ? 0 : 1;
  }

  void append() {
    const SequenceId sequence = any_sequence();
    const auto due = static_cast<LayerIndex>(model_.has(sequence) ? model_.due(sequence) : 0);
    const auto layers = static_cast<std::uint32_t>(config_.layers.size());
    const auto layer = below(12) == 0 ? static_cast<LayerIndex>(below(layers + 1)) : due;
    // Mostly the count of the token under way, for the token to get on.
    if (due == 0) rows_ = below(8) == 0 ? below(config_.layers[0].capacity + 2) : 1 + below(3);
    std::vector<std::uint64_t> tags(below(16) == 0 ? rows_ + 1 : rows_);
    for (std::uint64_t& tag : tags) tag = next_tag_++;
    const TaggedRows rows(tags);
    const RefusalCode expected = model_.append(sequence, layer, tags);
    expect(store_->append(sequence, layer, rows.rows()).code(), expected);
    // A token that no layer can take any more would block the sequence for ever.
    if (expected == RefusalCode::full && due != 0) clear_sequence(sequence);
  }

  void open() {
    HeldView view;
    view.sequence = any_sequence();
    view.layer = static_cast<LayerIndex>(below(static_cast<std::uint32_t>(config_.layers.size())));
    std::int64_t start = 0;
    std::int64_t end = 3;
    if (model_.has(view.sequence)) {
      start = model_.layer(view.sequence, view.layer).start;
      end = model_.layer(view.sequence, view.layer).end();
    }
    const auto about = [&](std::int64_t low) {
      return static_cast<Position>(
          std::max<std::int64_t>(0, low - 1 + below(static_cast<std::uint32_t>(end - low + 3))));
    };
    view.range.from = about(start);
    view.range.to = about(std::min<std::int64_t>(view.range.from, end));
    const RefusalCode expected = model_.see(view.sequence, view.layer, view.range.from, view.range.to);
    const auto window = store_->window(view.sequence, view.layer, view.range, view.scratch);
    expect(window.code(), expected);
    if (!window.ok()) return;
    view.window = *window;
    const ListLayer& rows = model_.layer(view.sequence, view.layer);
    view.positions = rows.seen(view.range.from, view.range.to);
    for (const Position p : view.positions) view.tags.push_back(rows.tags[p]);
    BOOST_REQUIRE(shows(*window, model_.layer(view.sequence, view.layer)));
    if (views_.size() == 12) views_.erase(views_.begin() + below(12));
    views_.push_back(std::move(view));
  }

  void truncate() {
    const SequenceId sequence = any_sequence();
    const std::int64_t end = model_.has(sequence) ? model_.layer(sequence, 0).end() : 2;
    // Now and then down to where sinks are.
    const auto to = static_cast<Position>(below(6) == 0 ? below(4) : std::max<std::int64_t>(0, end + 1 - below(6)));
    expect(store_->truncate(sequence, to).code(), model_.truncate(sequence, to));
  }

  void evict() {
    const SequenceId sequence = any_sequence();
    const std::int64_t start = model_.has(sequence) ? model_.layer(sequence, 0).start : 0;
    auto from = static_cast<Position>(below(4) == 0 ? start + below(3) : 0);
    auto to = static_cast<Position>(start + below(4));
    if (kind_ == "compact") {
      const std::int64_t end = model_.has(sequence) ? model_.layer(sequence, 0).end() : 2;
      from = below(static_cast<std::uint32_t>(end) + 2);
      to = from + below(4) - (from > 0 && below(8) == 0 ? 1 : 0);
    }
    const std::int64_t before = start;
    expect(store_->evict(sequence, {from, to}).code(), model_.evict(sequence, from, to));
    // A flat store moves its survivors down: every row of every layer whose front went.
    if (kind_ != "flat" || !model_.has(sequence) || model_.layer(sequence, 0).start == before) return;
    for (HeldView& view : views_) view.was_moved = view.was_moved || view.sequence == sequence;
  }

  void clear() { clear_sequence(any_sequence()); }
  void clear_sequence(SequenceId sequence) { expect(store_->clear(sequence).code(), model_.clear(sequence)); }

  /// Stale exactly when a row of the view is no longer where it was.
  void check_views() {
    for (const HeldView& view : views_) {
      const ListLayer& rows = model_.layer(view.sequence, view.layer);
      bool is_stale = view.was_moved && !view.range.empty();
      for (std::size_t i = 0; i < view.positions.size(); ++i) {
        const Position p = view.positions[i];
        is_stale = is_stale || !rows.holds(p) || rows.tags[p] != view.tags[i];
      }
      ++(is_stale ? stale_seen_ : fresh_seen_);
      const RefusalCode answered = store_->still_valid(view.window).code();
      BOOST_REQUIRE_EQUAL(static_cast<int>(answered),
                          static_cast<int>(is_stale ? RefusalCode::stale : RefusalCode::none));
      if (!is_stale) BOOST_REQUIRE(shows(view.window, rows));
    }
  }

  std::string kind_;
  StoreConfig config_;
  std::unique_ptr<KvStore> store_;
  ListModel model_;
  std::mt19937_64 random_;
  std::vector<HeldView> views_;
  std::uint64_t next_tag_ = 1;
  std::uint32_t rows_ = 1;
  int stale_seen_ = 0;
  int fresh_seen_ = 0;
  int refused_ = 0;
};

StoreConfig mixed(bool sliding) {
  StoreConfig config;
  if (sliding) {
    config.layers = {small_layer(7, {4, true}, true), small_layer(5, {}, true), small_layer(40, {}, false)};
  } else {
    config.layers = {small_layer(7, {4, true}, false), small_layer(9, {}, false)};
  }
  config.sequences = 3;
  return config;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(store_random)

BOOST_AUTO_TEST_CASE(ten_thousand_operations_on_a_ring) {
  StoreConfig config = mixed(true);
  config.layers.pop_back();
  for (const std::uint64_t seed : {1U, 2U, 3U}) RandomRun("ring", config, seed).run(10000);
}

BOOST_AUTO_TEST_CASE(ten_thousand_operations_on_a_ring_with_a_layer_that_fills_up) {
  RandomRun("ring", mixed(true), 4).run(10000);
}

BOOST_AUTO_TEST_CASE(ten_thousand_operations_on_a_flat_store) {
  for (const std::uint64_t seed : {5U, 6U}) RandomRun("flat", mixed(false), seed).run(10000);
}

BOOST_AUTO_TEST_CASE(ten_thousand_operations_on_a_compact_store) {
  for (const std::uint64_t seed : {7U, 8U}) RandomRun("compact", mixed(false), seed).run(10000);
}

BOOST_AUTO_TEST_CASE(ten_thousand_operations_on_a_sink_ring) {
  StoreConfig config = mixed(true);
  config.layers.pop_back();
  config.layers[0].capacity = 9;
  config.layers[0].sinks = 3;
  config.layers[1].sinks = 1;
  for (const std::uint64_t seed : {9U, 10U}) RandomRun("sink-ring", config, seed).run(10000);
  config.layers[0].sliding = false;
  RandomRun("sink-ring", config, 11).run(10000);
  config = mixed(true);
  config.layers.pop_back();
  config.layers[0].sinks = 2;  // beside a layer without any
  RandomRun("sink-ring", config, 12).run(10000);
}

BOOST_AUTO_TEST_CASE(ten_thousand_operations_on_a_layered_store) {
  StoreConfig config = mixed(true);
  for (const LayerIndex donor : {LayerIndex{1}, LayerIndex{0}, LayerIndex{2}}) {
    config.layers.push_back(config.layers[donor]);
    config.layers.back().donor = donor;
  }
  RandomRun("layered", config, 13).run(10000);
  std::swap(config.layers[1], config.layers[3]);  // a reader between two layers with rows of their own
  config.layers[1].donor = 0;
  config.layers[1] = config.layers[0];
  config.layers[1].donor = 0;
  config.layers[3].donor.reset();
  RandomRun("layered", config, 14).run(10000);
}

BOOST_AUTO_TEST_SUITE_END()
