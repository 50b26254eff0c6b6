/// What a correct store holds and answers, as lists of rows: every row ever appended, and where the held part starts.
/// Written from the law in trace/events.md; it shares no arithmetic with the stores.
#pragma once

#include "kvwitness/core/geometry.hpp"
#include "kvwitness/core/kv_store.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace kvwitness::core::testing {

/// Elements of a model's row; exact in f32 while the tag is below 2^20.
inline constexpr std::uint32_t kElements = 4;

/// Row number `tag` of a test: no two rows are the same, nor a row's K and V.
inline void fill(std::uint64_t tag, Plane plane, float* row) {
  for (std::uint32_t i = 0; i < kElements; ++i) row[i] = static_cast<float>(tag * 8 + (plane == Plane::v ? 4 : 0) + i);
}

/// Positions [start, end) are held, and the sinks: those below `sinks`, which nothing but a rollback takes.
struct ListLayer {
  std::vector<std::uint64_t> tags;  ///< by position, from 0
  std::int64_t start = 0;
  std::int64_t sinks = 0;

  [[nodiscard]] std::int64_t end() const { return static_cast<std::int64_t>(tags.size()); }
  [[nodiscard]] bool holds(std::int64_t position) const {
    return position < end() && (position >= start || position < sinks);
  }
  /// Positions that a window of [from, to) hands out.
  [[nodiscard]] std::vector<Position> seen(Position from, Position to) const {
    std::vector<Position> positions;
    for (Position p = 0; p < to; ++p)
      if (from < to && (p >= from || p < sinks)) positions.push_back(p);
    return positions;
  }
};

struct ListSequence {
  std::vector<ListLayer> layers;
  std::int64_t evicted_to = 0;
  std::size_t due = 0;
  std::uint32_t rows = 0;
};

class ListModel {
 public:
  /// `renumbers`: what lies behind an evicted range takes its positions.
  explicit ListModel(const StoreConfig& config, bool renumbers = false)
      : config_(config), renumbers_(renumbers), sequences_(config.sequences) {
    for (ListSequence& sequence : sequences_) sequence = empty();
  }

  [[nodiscard]] bool has(SequenceId sequence) const { return sequence < sequences_.size(); }
  [[nodiscard]] const ListLayer& layer(SequenceId sequence, LayerIndex layer) const {
    return sequences_[sequence].layers[config_.layers[layer].donor.value_or(layer)];
  }
  /// For models that make a sequence what another one is.
  [[nodiscard]] ListSequence& sequence(SequenceId sequence) { return sequences_[sequence]; }
  [[nodiscard]] std::size_t due(SequenceId sequence) const { return sequences_[sequence].due; }

  [[nodiscard]] RefusalCode append(SequenceId id, LayerIndex l, const std::vector<std::uint64_t>& tags) {
    if (!has(id)) return RefusalCode::unknown_sequence;
    ListSequence& on = sequences_[id];
    const auto n = static_cast<std::int64_t>(tags.size());
    if (l < on.layers.size() && config_.layers[l].donor) return RefusalCode::unsupported;
    if (l >= on.layers.size() || l != on.due || (l != 0 && n != on.rows)) return RefusalCode::out_of_order;
    if (n == 0) return RefusalCode::unsupported;
    ListLayer& rows = on.layers[l];
    const LayerGeometry& geometry = config_.layers[l];
    // Oldest rows go one by one until the new ones fit; one that any of the new queries sees may not.
    ListLayer after = rows;
    after.tags.insert(after.tags.end(), tags.begin(), tags.end());
    while (held(after) > static_cast<std::int64_t>(geometry.capacity)) {
      const std::int64_t lost = std::max(after.start, after.sinks);
      if (!geometry.sliding || lost > rows.end() - window(l) || lost >= rows.end()) return RefusalCode::full;
      after.start = lost + 1;
    }
    rows = after;
    do on.due = (on.due + 1U) % on.layers.size();
    while (config_.layers[on.due].donor);
    on.rows = static_cast<std::uint32_t>(n);
    return RefusalCode::none;
  }

  [[nodiscard]] RefusalCode see(SequenceId id, LayerIndex l, std::int64_t from, std::int64_t to) const {
    if (!has(id)) return RefusalCode::unknown_sequence;
    if (l >= config_.layers.size() || from > to) return RefusalCode::out_of_order;
    if (from < layer(id, l).start && to > layer(id, l).sinks) return RefusalCode::evicted;
    return to > layer(id, l).end() ? RefusalCode::future : RefusalCode::none;
  }

  [[nodiscard]] RefusalCode truncate(SequenceId id, std::int64_t to) {
    if (!has(id)) return RefusalCode::unknown_sequence;
    ListSequence& on = sequences_[id];
    if (on.due != 0) return RefusalCode::out_of_order;
    if (to > on.layers[0].end()) return RefusalCode::future;
    if (to == on.layers[0].end()) return RefusalCode::none;
    for (LayerIndex l = 0; l < on.layers.size(); ++l) {
      if (config_.layers[l].donor || to < on.layers[l].sinks) continue;
      if (to < on.evicted_to) return RefusalCode::evicted;
      const bool is_limited = config_.layers[l].window.limited || config_.layers[l].sliding;
      const std::int64_t needed = is_limited ? to - window(l) + 1 : 0;
      if (on.layers[l].start > std::max({needed, on.evicted_to, std::int64_t{0}})) return RefusalCode::evicted;
    }
    for (ListLayer& rows : on.layers) {
      if (to < rows.end()) rows.tags.resize(static_cast<std::size_t>(to));
      if (to < rows.sinks) rows.start = 0;
    }
    on.evicted_to = std::min(on.evicted_to, to);
    return RefusalCode::none;
  }

  [[nodiscard]] RefusalCode evict(SequenceId id, std::int64_t from, std::int64_t to) {
    if (!has(id)) return RefusalCode::unknown_sequence;
    ListSequence& on = sequences_[id];
    if (on.due != 0 || from > to) return RefusalCode::out_of_order;
    if (to > on.layers[0].end()) return RefusalCode::future;
    if (from == to) return RefusalCode::none;
    if (renumbers_) {
      for (ListLayer& rows : on.layers) rows.tags.erase(rows.tags.begin() + from, rows.tags.begin() + to);
      return RefusalCode::none;
    }
    for (LayerIndex l = 0; l < on.layers.size(); ++l)
      if (from > std::max(layer(id, l).start, layer(id, l).sinks)) return RefusalCode::unsupported;
    for (ListLayer& rows : on.layers)
      if (to > rows.sinks) rows.start = std::max(rows.start, to);
    on.evicted_to = std::max(on.evicted_to, to);
    return RefusalCode::none;
  }

  [[nodiscard]] RefusalCode clear(SequenceId id) {
    if (!has(id)) return RefusalCode::unknown_sequence;
    sequences_[id] = empty();
    return RefusalCode::none;
  }

 private:
  [[nodiscard]] ListSequence empty() const {
    ListSequence sequence;
    for (const LayerGeometry& layer : config_.layers) sequence.layers.push_back({{}, 0, layer.sinks});
    return sequence;
  }

  /// Rows that a layer holds.
  [[nodiscard]] static std::int64_t held(const ListLayer& rows) {
    std::int64_t count = 0;
    for (std::int64_t p = 0; p < rows.end(); ++p) count += rows.holds(p) ? 1 : 0;
    return count;
  }

  /// Keys that a query of the layer sees; longer than any run where the layer is full causal.
  [[nodiscard]] std::int64_t window(LayerIndex l) const {
    const LayerGeometry& geometry = config_.layers[l];
    if (geometry.window.limited) return geometry.window.keys;
    return geometry.sliding ? std::int64_t{geometry.capacity} - geometry.sinks : std::int64_t{1} << 40;
  }

  StoreConfig config_;
  bool renumbers_;
  std::vector<ListSequence> sequences_;
};

/// A layer of one kv head of kElements.
inline LayerGeometry small_layer(std::uint32_t capacity, WindowSize window, bool sliding) {
  return {
      .q_heads = 1, .kv_heads = 1, .head_dim = kElements, .window = window, .capacity = capacity, .sliding = sliding};
}

/// K and V rows of tags, as a store takes them.
struct TaggedRows {
  explicit TaggedRows(const std::vector<std::uint64_t>& tags) : k(tags.size() * kElements), v(tags.size() * kElements) {
    for (std::size_t i = 0; i < tags.size(); ++i) {
      fill(tags[i], Plane::k, k.data() + i * kElements);
      fill(tags[i], Plane::v, v.data() + i * kElements);
    }
  }
  [[nodiscard]] RowsIn rows() const { return {k.data(), v.data(), static_cast<std::uint32_t>(k.size() / kElements)}; }

  std::vector<float> k;
  std::vector<float> v;
};

}  // namespace kvwitness::core::testing
