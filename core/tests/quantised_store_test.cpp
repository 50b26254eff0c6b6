/// The quantised store against the list model: which rows are codes and which are f32, at any time, however they came.
#include "kvwitness/core/quantised_store.hpp"

#include "kvwitness/trace/digest.hpp"
#include "kvwitness/trace/error.hpp"
#include "traced_bench.hpp"

#include <boost/test/data/test_case.hpp>

#include <map>
#include <random>
#include <set>

using namespace kvwitness::core;
using namespace kvwitness::core::testing;
namespace trace = kvwitness::trace;
namespace data = boost::unit_test::data;

namespace {

StoreConfig coded_config(const LayerGeometry& layer, std::uint32_t recent, std::uint32_t group,
                         std::size_t layers = 1) {
  StoreConfig config = config_of(layers, layer, 2);
  config.k_type = DType::f16;
  config.v_type = DType::bf16;
  config.recent = recent;
  config.quantise_group = group;
  return config;
}

/// Largest multiple of the group that leaves `recent` rows behind it, by trying all.
std::int64_t border_of(const StoreConfig& config, std::int64_t end) {
  std::int64_t border = 0;
  for (std::int64_t b = 0; b + config.recent <= end; b += config.quantise_group) border = b;
  return border;
}

std::vector<std::byte> row_of(const StoreConfig& config, std::uint64_t tag, Plane plane, bool is_code) {
  std::vector<float> row(kElements);
  fill(tag, plane, row.data());
  const RowCode code = is_code ? row_code(config, plane) : RowCode{};
  std::vector<std::byte> bytes(row_bytes(code, kElements));
  encode_row(code, row, bytes);
  return bytes;
}

/// What is held, of one layer of one sequence: the list model's rows, and which of them are codes.
struct CodedLayer {
  std::set<std::int64_t> codes;
};

class CodedWorld {
 public:
  explicit CodedWorld(const StoreConfig& config)
      : config_(config), store_(make_quantised_store(config)), model_(config), layers_(config.layers.size()) {}

  void append(std::uint32_t count) {
    for (LayerIndex layer = 0; layer < layers_.size(); ++layer) {
      std::vector<std::uint64_t> tags(count);
      for (std::uint32_t i = 0; i < count; ++i) tags[i] = next_tag_ + i;
      const TaggedRows rows(tags);
      const RefusalCode expected = model_.append(0, layer, tags);
      const auto appended = store_->append(0, layer, rows.rows());
      BOOST_REQUIRE((appended.code() == expected));
      if (appended.ok()) check_quantised(*appended, layer);
      if (!appended.ok()) return;
    }
    next_tag_ += count;
    poison(*store_, next_tag_ % 2 == 0 ? PoisonFill::nan : PoisonFill::huge);
  }

  void truncate(std::int64_t to) {
    const std::int64_t end = model_.layer(0, 0).end();
    ListModel after = model_;
    RefusalCode expected = after.truncate(0, to);
    if (expected == RefusalCode::none && to < end && lost_in_full(to)) expected = RefusalCode::evicted;
    BOOST_REQUIRE((store_->truncate(0, static_cast<Position>(to)).code() == expected));
    if (expected != RefusalCode::none) return;
    model_ = after;
    for (CodedLayer& layer : layers_) layer.codes.erase(layer.codes.lower_bound(to), layer.codes.end());
    accepted_truncations_ += to < end ? 1 : 0;
  }

  void evict(std::int64_t to) {
    BOOST_REQUIRE((store_->evict(0, {0, static_cast<Position>(to)}).code() == model_.evict(0, 0, to)));
  }

  void clear() {
    BOOST_REQUIRE((store_->clear(0).code() == model_.clear(0)));
    for (CodedLayer& layer : layers_) layer = {};
  }

  void save() {
    file_.resize(store_->saving()->saved_bytes(0).value());
    BOOST_REQUIRE_EQUAL(store_->saving()->save(0, file_)->bytes, file_.size());
    saved_ = {model_.sequence(0), layers_};
  }

  /// The new store has its rows at other slots.
  void restore_into_a_wider_store() {
    if (file_.empty()) return;
    for (LayerGeometry& layer : config_.layers) layer.capacity += 3;
    store_ = make_quantised_store(config_);
    model_ = ListModel(config_);
    restore();
  }

  void restore() {
    if (file_.empty()) return;
    BOOST_REQUIRE(store_->saving()->restore(0, file_).ok());
    model_.sequence(0) = saved_.rows;
    layers_ = saved_.layers;
    std::vector<std::byte> again(store_->saving()->saved_bytes(0).value());
    BOOST_REQUIRE(store_->saving()->save(0, again).ok());
    BOOST_REQUIRE(again == file_);
  }

  void check() const {
    std::uint64_t used = 0;
    for (LayerIndex layer = 0; layer < layers_.size(); ++layer) used += check_layer(layer);
    BOOST_REQUIRE_EQUAL(store_->memory().used_bytes, used);
  }

  [[nodiscard]] std::int64_t end() const { return model_.layer(0, 0).end(); }
  [[nodiscard]] int accepted_truncations() const { return accepted_truncations_; }

 private:
  void check_quantised(const Appended& appended, LayerIndex layer) {
    const ListLayer& rows = model_.layer(0, layer);
    std::set<std::int64_t> expected;
    for (std::int64_t p = rows.start; p < border_of(config_, rows.end()); ++p)
      if (layers_[layer].codes.insert(p).second) expected.insert(p);
    std::set<std::int64_t> told;
    for (Position p = appended.quantised.from; p < appended.quantised.to; ++p) told.insert(p);
    BOOST_REQUIRE(told == expected);
  }

  /// A row that would have to be f32 is a code, in some layer.
  [[nodiscard]] bool lost_in_full(std::int64_t to) const {
    for (LayerIndex layer = 0; layer < layers_.size(); ++layer) {
      for (std::int64_t p = std::max(model_.layer(0, layer).start, border_of(config_, to)); p < to; ++p)
        if (layers_[layer].codes.contains(p)) return true;
    }
    return false;
  }

  /// Bytes of its rows.
  [[nodiscard]] std::uint64_t check_layer(LayerIndex layer) const {
    const ListLayer& rows = model_.layer(0, layer);
    const Range all{static_cast<Position>(rows.start), static_cast<Position>(rows.end())};
    WindowScratch scratch(store_->layout().max_runs, 0);
    const auto window = store_->window(0, layer, all, scratch);
    BOOST_REQUIRE(window.ok());
    BOOST_REQUIRE_EQUAL(window->copied_bytes, 0U);
    std::vector<std::byte> k;
    std::vector<std::byte> v;
    std::int64_t next = rows.start;
    for (const Run& run : window->runs) {
      BOOST_REQUIRE_EQUAL(run.first, next);
      BOOST_REQUIRE_EQUAL(run.slot, run.first % config_.layers[layer].capacity);
      BOOST_REQUIRE(lies_in_declared_storage(*store_, run));
      for (std::uint32_t i = 0; i < run.count; ++i, ++next) {
        const bool is_code = layers_[layer].codes.contains(next);
        BOOST_REQUIRE_EQUAL(is_code, run.k_code != nullptr);
        BOOST_REQUIRE_EQUAL(is_code, run.v_code != nullptr);
        check_row(rows.tags[next], is_code, run.k_row(i), run.v_row(i));
        const auto key = row_of(config_, rows.tags[next], Plane::k, is_code);
        const auto value = row_of(config_, rows.tags[next], Plane::v, is_code);
        k.insert(k.end(), key.begin(), key.end());
        v.insert(v.end(), value.begin(), value.end());
      }
    }
    BOOST_REQUIRE_EQUAL(next, rows.end());
    check_read(layer, all, k, v);
    return k.size() + v.size();
  }

  void check_row(std::uint64_t tag, bool is_code, const std::byte* k, const std::byte* v) const {
    const auto key = row_of(config_, tag, Plane::k, is_code);
    const auto value = row_of(config_, tag, Plane::v, is_code);
    BOOST_REQUIRE(std::equal(key.begin(), key.end(), k));
    BOOST_REQUIRE(std::equal(value.begin(), value.end(), v));
  }

  void check_read(LayerIndex layer, Range all, const std::vector<std::byte>& k, const std::vector<std::byte>& v) const {
    BOOST_REQUIRE_EQUAL(range_bytes(config_, layer, Plane::k, all, all.to), k.size());
    std::vector<std::byte> k_read(k.size());
    std::vector<std::byte> v_read(v.size());
    const auto copied = store_->read(0, layer, all, {k_read, v_read});
    BOOST_REQUIRE(copied.ok());
    BOOST_REQUIRE_EQUAL(copied->bytes, k.size() + v.size());
    BOOST_REQUIRE(k_read == k && v_read == v);
    if (k.empty()) return;
    BOOST_REQUIRE((store_->read(0, layer, all, {std::span(k_read).first(k.size() - 1), v_read}).code() ==
                   RefusalCode::no_memory));
  }

  StoreConfig config_;
  std::unique_ptr<KvStore> store_;
  ListModel model_;
  std::vector<CodedLayer> layers_;
  std::uint64_t next_tag_ = 1;
  int accepted_truncations_ = 0;
  std::vector<std::byte> file_;  ///< empty: nothing was saved yet
  struct Saved {
    ListSequence rows;
    std::vector<CodedLayer> layers;
  };
  Saved saved_;  ///< what `file_` must be
};

/// A store that only copies: its windows are the default's.
class Copying final : public KvStore {
 public:
  explicit Copying(const StoreConfig& config) : inner_(make_quantised_store(config)) {}
  [[nodiscard]] StoreLayout layout() const noexcept override {
    StoreLayout layout = inner_->layout();
    layout.capabilities &= ~static_cast<std::uint64_t>(trace::Capability::zero_copy);
    return layout;
  }
  [[nodiscard]] MemoryReport memory() const noexcept override { return inner_->memory(); }
  [[nodiscard]] Outcome<Extent> extent(SequenceId s, LayerIndex l) const override { return inner_->extent(s, l); }
  Outcome<Appended> append(SequenceId s, LayerIndex l, const RowsIn& rows) override {
    return inner_->append(s, l, rows);
  }
  Outcome<Copied> read(SequenceId s, LayerIndex l, Range range, const RowsOut& out) const override {
    return inner_->read(s, l, range, out);
  }
  Outcome<Edited> truncate(SequenceId s, Position to) override { return inner_->truncate(s, to); }
  Outcome<Edited> evict(SequenceId s, Range range) override { return inner_->evict(s, range); }
  Outcome<Edited> clear(SequenceId s) override { return inner_->clear(s); }

 private:
  std::unique_ptr<KvStore> inner_;
};

std::string complaint(const StoreConfig& config) {
  try {
    static_cast<void>(make_quantised_store(config));
  } catch (const trace::Error& error) {
    return error.what();
  }
  return {};
}

}  // namespace

BOOST_AUTO_TEST_SUITE(quantised_store)

BOOST_DATA_TEST_CASE(random_calls_leave_the_rows_that_the_model_has, data::xrange(120), seed) {
  std::mt19937 dice(static_cast<std::uint32_t>(seed));
  const auto below = [&](std::uint32_t count) { return static_cast<std::uint32_t>(dice() % count); };
  const bool slides = below(2) == 0;
  const std::uint32_t capacity = 4 + below(12);
  const LayerGeometry layer =
      small_layer(capacity, slides ? WindowSize{1 + below(capacity), true} : WindowSize{}, slides);
  CodedWorld world(coded_config(layer, below(8), 1 + below(5), 1 + below(2)));
  for (int step = 0; step < 60; ++step) {
    const std::uint32_t kind = below(10);
    if (kind < 6) world.append(1 + below(4));
    if (kind == 6 || kind == 7) world.truncate(std::max<std::int64_t>(0, world.end() - below(5)));
    if (kind == 8) world.evict(below(static_cast<std::uint32_t>(world.end()) + 1));
    if (kind == 9 && below(4) == 0) world.clear();
    world.check();
  }
}

BOOST_DATA_TEST_CASE(restored_codes_are_the_ones_that_were_saved, data::xrange(60), seed) {
  std::mt19937 dice(static_cast<std::uint32_t>(seed) + 1000);
  const auto below = [&](std::uint32_t count) { return static_cast<std::uint32_t>(dice() % count); };
  // The window is declared, so that it means the same in a wider store.
  const std::uint32_t capacity = 4 + below(12);
  const bool slides = below(2) == 0;
  const WindowSize window = slides ? WindowSize{1 + below(capacity), true} : WindowSize{};
  CodedWorld world(coded_config(small_layer(capacity, window, slides), below(8), 1 + below(5), 1 + below(2)));
  for (int step = 0; step < 60; ++step) {
    const std::uint32_t kind = below(12);
    if (kind < 6) world.append(1 + below(4));
    if (kind == 6 || kind == 7) world.truncate(std::max<std::int64_t>(0, world.end() - below(5)));
    if (kind == 8) world.evict(below(static_cast<std::uint32_t>(world.end()) + 1));
    if (kind == 9) world.save();
    if (kind == 10) world.restore();
    if (kind == 11) world.restore_into_a_wider_store();
    world.check();
  }
}

// 64 elements as q8-0 are 2 blocks of 34 bytes, as f32 256 bytes. With R = 3 and G = 4, 9 rows are 4 codes and 5 f32.
BOOST_AUTO_TEST_CASE(codes_are_saved_as_codes) {
  StoreConfig config;
  config.layers = {{.q_heads = 2, .kv_heads = 1, .head_dim = 64, .window = {}, .capacity = 16}};
  config.k_type = DType::q8_0;
  config.v_type = DType::q4_0;
  config.recent = 3;
  config.quantise_group = 4;
  const auto store = make_quantised_store(config);
  const std::vector<float> rows(9 * 64, 0.5F);
  BOOST_REQUIRE(store->append(0, 0, {rows.data(), rows.data(), 9}).ok());
  BOOST_TEST(store->saving()->saved_bytes(0).value() == 40U + 8 + 4 * 68 + 5 * 256 + 4 * 36 + 5 * 256 + 8);
  std::vector<std::byte> file(store->saving()->saved_bytes(0).value());
  BOOST_REQUIRE(store->saving()->save(0, file).ok());
  const auto restored_by = [&](auto change) {
    StoreConfig other = config;
    change(other);
    return make_quantised_store(other)->saving()->restore(0, file).code();
  };
  BOOST_TEST((restored_by([](StoreConfig&) {}) == RefusalCode::none));
  BOOST_TEST((restored_by([](StoreConfig& other) { other.k_type = DType::f16; }) == RefusalCode::unsupported));
  BOOST_TEST((restored_by([](StoreConfig& other) { other.recent = 2; }) == RefusalCode::unsupported));
  BOOST_TEST((restored_by([](StoreConfig& other) { other.quantise_group = 2; }) == RefusalCode::unsupported));
  BOOST_TEST((restored_by([](StoreConfig& other) { other.layers[0].capacity = 8; }) == RefusalCode::unsupported));
}

// KV022: with R = 4, an append of 10 leaves positions 6 to 9 alone. KV059: 20 single appends leave 4 as well.
BOOST_AUTO_TEST_CASE(the_newest_rows_stay_in_full) {
  for (const std::uint32_t chunk : {10U, 1U, 3U}) {
    const auto store = make_quantised_store(coded_config(small_layer(32, {}, false), 4, 1));
    Position end = 0;
    for (; end < 20; end += chunk) {
      const TaggedRows rows(std::vector<std::uint64_t>(chunk, 3));
      BOOST_REQUIRE(store->append(0, 0, rows.rows()).ok());
    }
    WindowScratch scratch(store->layout().max_runs, 0);
    const auto window = store->window(0, 0, {0, end}, scratch);
    BOOST_REQUIRE(window.ok());
    BOOST_REQUIRE_EQUAL(window->runs[0].count, end - 4);
    BOOST_TEST(window->runs[0].k_code != nullptr);
    BOOST_TEST(window->runs[1].k_code == nullptr);
  }
}

// With R = 2, G = 4: the border is at 4 from end 6 on, at 8 from end 10 on. An end of 9 takes back to 6, not to 5.
BOOST_AUTO_TEST_CASE(a_rollback_that_needs_rows_in_full_is_refused) {
  const auto store = make_quantised_store(coded_config(small_layer(32, {}, false), 2, 4));
  const TaggedRows rows(std::vector<std::uint64_t>(9, 5));
  BOOST_REQUIRE(store->append(0, 0, rows.rows()).ok());
  BOOST_TEST((store->truncate(0, 5).code() == RefusalCode::evicted));
  BOOST_TEST((store->truncate(0, 4).code() == RefusalCode::evicted));
  BOOST_TEST(store->truncate(0, 6).ok());
  BOOST_TEST(store->truncate(0, 0).ok());
  BOOST_TEST(store->extent(0, 0)->end == 0U);
}

// What is evicted need not be held in any form: after it, an empty sequence can still be taken back to its end.
BOOST_AUTO_TEST_CASE(rows_that_are_gone_are_not_missed_by_a_rollback) {
  const auto store = make_quantised_store(coded_config(small_layer(32, {}, false), 2, 4));
  const TaggedRows rows(std::vector<std::uint64_t>(9, 5));
  BOOST_REQUIRE(store->append(0, 0, rows.rows()).ok());
  BOOST_REQUIRE(store->evict(0, {0, 5}).ok());
  BOOST_TEST(store->truncate(0, 5).ok());
}

BOOST_AUTO_TEST_CASE(rows_that_are_f32_on_both_sides_are_kept_as_they_are) {
  const auto store = make_quantised_store(config_of(1, small_layer(4, {3, true}, true)));
  ListModel model(*store->layout().config);
  for (std::uint64_t tag = 0; tag < 11; ++tag) {
    const TaggedRows rows({tag});
    const auto appended = store->append(0, 0, rows.rows());
    BOOST_REQUIRE(appended.ok());
    BOOST_TEST(appended->quantised.empty());
    BOOST_REQUIRE((model.append(0, 0, {tag}) == RefusalCode::none));
    WindowScratch scratch(store->layout().max_runs, 0);
    const auto held = *store->extent(0, 0);
    BOOST_TEST(shows(*store->window(0, 0, {held.window_start, held.end}, scratch), model.layer(0, 0)));
  }
  BOOST_TEST(store->truncate(0, 10).ok());
}

BOOST_AUTO_TEST_CASE(coding_a_row_makes_views_over_it_stale_and_no_others) {
  const auto store = make_quantised_store(coded_config(small_layer(8, {}, false), 2, 1));
  const TaggedRows four(std::vector<std::uint64_t>(4, 5));
  const TaggedRows one(std::vector<std::uint64_t>(1, 5));
  BOOST_REQUIRE(store->append(0, 0, four.rows()).ok());  // 0, 1 are codes
  WindowScratch scratches[3] = {{4, 0}, {4, 0}, {4, 0}};
  const auto codes = store->window(0, 0, {0, 2}, scratches[0]);
  const auto oldest = store->window(0, 0, {2, 3}, scratches[1]);
  const auto newest = store->window(0, 0, {3, 4}, scratches[2]);
  BOOST_REQUIRE(store->append(0, 0, one.rows()).ok());  // 2 becomes a code
  BOOST_TEST(store->still_valid(*codes).ok());
  BOOST_TEST((store->still_valid(*oldest).code() == RefusalCode::stale));
  BOOST_TEST(store->still_valid(*newest).ok());
}

/// The same by the default, which knows nothing but what is held.
BOOST_AUTO_TEST_CASE(copies_of_rows_that_became_codes_are_stale) {
  Copying store(coded_config(small_layer(8, {}, false), 2, 1));
  const TaggedRows four(std::vector<std::uint64_t>(4, 5));
  const TaggedRows one(std::vector<std::uint64_t>(1, 5));
  BOOST_REQUIRE(store.append(0, 0, four.rows()).ok());
  WindowScratch scratches[3] = {{2, 256}, {2, 256}, {2, 256}};
  const auto codes = store.window(0, 0, {0, 2}, scratches[0]);
  const auto oldest = store.window(0, 0, {1, 3}, scratches[1]);
  const auto newest = store.window(0, 0, {3, 4}, scratches[2]);
  BOOST_REQUIRE_EQUAL(oldest->runs.size(), 2U);
  BOOST_REQUIRE(store.append(0, 0, one.rows()).ok());
  BOOST_TEST(store.still_valid(*codes).ok());
  BOOST_TEST((store.still_valid(*oldest).code() == RefusalCode::stale));
  BOOST_TEST(store.still_valid(*newest).ok());
}

BOOST_AUTO_TEST_CASE(configurations_that_make_no_sense_are_refused) {
  StoreConfig config = coded_config(small_layer(8, {}, false), 2, 4);
  BOOST_TEST(complaint(config).empty());
  config.quantise_group = 0;
  BOOST_TEST(complaint(config).starts_with("quantise_group: 0"));
  config.quantise_group = 1;
  config.k_type = config.v_type = DType::f32;
  BOOST_TEST(complaint(config).starts_with("recent: 2"));
  config.recent = 0;
  BOOST_TEST(complaint(config).empty());
  config.k_type = DType::rotated;
  config.k_rotated.bits = 5;
  BOOST_TEST(complaint(config).starts_with("k_rotated.bits: 5"));
}

// ---- through the seam -----------------------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(codes_are_declared_and_their_digests_told) {
  const StoreConfig config = coded_config(small_layer(8, {}, false), 2, 1);
  Bench bench(make_quantised_store(config));
  const auto codes = Bench::all<trace::LayerCode>(bench.events());
  BOOST_REQUIRE_EQUAL(codes.size(), 2U);
  BOOST_TEST((codes[0].plane == Plane::k && codes[0].code == DType::f16));
  BOOST_TEST((codes[1].plane == Plane::v && codes[1].code == DType::bf16));
  BOOST_TEST(codes[0].recent == 2U);
  BOOST_TEST(codes[1].quantise_group == 1U);
  BOOST_REQUIRE(bench.append(2).ok());
  BOOST_TEST(bench.types() == "Called RowDigests Append RegionMeasured");
  BOOST_REQUIRE(bench.append(3).ok());
  const auto events = bench.events();
  BOOST_TEST(Bench::types_of(events) ==
             "Called RowDigests RowDigests Append Quantise RowDigests RowDigests RegionMeasured");
  const auto quantise = Bench::all<trace::Quantise>(events)[0];
  BOOST_TEST(quantise.first == 0U);
  BOOST_TEST(quantise.count == 3U);
  BOOST_TEST((quantise.k_type == DType::f16));
  const auto told = Bench::all<trace::RowDigests>(events);
  BOOST_TEST(told[2].first == 0U);
  BOOST_TEST(told[2].k1 == trace::row_digest(row_of(config, 1, Plane::k, true), 1));
  BOOST_TEST(told[3].first == 2U);
  BOOST_TEST(told[3].count == 1U);
  BOOST_TEST(told[3].v0 == trace::row_digest(row_of(config, 2, Plane::v, true), 2));
}

/// Attention over the same rows, straight over codes, over a decoded copy, and over windows that a store copied out.
BOOST_AUTO_TEST_CASE(direct_and_decoded_attention_agree_to_the_bit) {
  const StoreConfig config = coded_config(small_layer(8, {5, true}, true), 2, 1);
  Bench direct(make_quantised_store(config));
  Bench copying(std::make_unique<Copying>(config));
  Scope scope(direct.bus, trace::ScopeKind::forward, 4096);
  const std::vector<float> q{0.25F, -1, 2, 0.5F};
  const AttentionPath path;
  for (Position p = 0; p < 19; ++p) {
    BOOST_REQUIRE(direct.append(1).ok());
    BOOST_REQUIRE(copying.append(1).ok());
    const Range keys{trace::window_low({5, true}, p), p + 1};
    AttentionInput input = input_at(q, p);
    input.window = {5, true};
    const auto view = direct.traced->open(0, 0, keys);
    const auto copied = copying.traced->open(0, 0, keys);
    BOOST_REQUIRE(view.ok() && copied.ok());
    direct.events();
    const auto decoded = direct.traced->gather(*view, scope);
    BOOST_REQUIRE(decoded.ok());
    const auto adapters = Bench::all<trace::AdapterInserted>(direct.events());
    BOOST_REQUIRE_EQUAL(adapters.size(), 2U);
    BOOST_TEST((adapters[0].kind == trace::AdapterKind::dequantize));
    BOOST_TEST(adapters[0].bytes_before == range_bytes(config, 0, Plane::k, keys, p + 1));
    BOOST_TEST(adapters[1].bytes_after == keys.count() * kRowBytes);
    BOOST_TEST((adapters[1].from_type == DType::bf16 && adapters[1].to_type == DType::f32));
    std::vector<float> outs[3] = {std::vector<float>(kElements), std::vector<float>(kElements),
                                  std::vector<float>(kElements)};
    BOOST_REQUIRE(direct.traced->attend(*view, input, path, outs[0]).ok());
    BOOST_REQUIRE(direct.traced->attend(*decoded, input, path, outs[1]).ok());
    BOOST_REQUIRE(copying.traced->attend(*copied, input, path, outs[2]).ok());
    BOOST_TEST(outs[0] == outs[1]);
    BOOST_TEST(outs[0] == outs[2]);
    for (Bench* bench : {&direct, &copying}) bench->traced->close(bench == &direct ? *view : *copied);
    direct.traced->close(*decoded);
    scope.reset();
  }
}

BOOST_AUTO_TEST_SUITE_END()
