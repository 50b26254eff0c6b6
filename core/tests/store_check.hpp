/// Compares a store with the list model, row by row.
#pragma once

#include "kvwitness/core/compact_store.hpp"
#include "kvwitness/core/flat_store.hpp"
#include "kvwitness/core/layered_store.hpp"
#include "kvwitness/core/paged_store.hpp"
#include "kvwitness/core/poison.hpp"
#include "kvwitness/core/ring_store.hpp"
#include "kvwitness/core/sink_ring_store.hpp"
#include "list_model.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace kvwitness::core::testing {

inline bool is_row(const std::byte* row, std::uint64_t tag, Plane plane) {
  float expected[kElements];
  fill(tag, plane, expected);
  return std::memcmp(row, expected, sizeof expected) == 0;
}

/// The rows of a window are the model's, oldest first, sinks before the range, and none else.
inline bool shows(const Window& window, const ListLayer& rows) {
  const std::vector<Position> expected = rows.seen(window.range.from, window.range.to);
  std::size_t next = 0;
  for (const Run& run : window.runs) {
    if (run.count == 0) return false;
    for (std::uint32_t i = 0; i < run.count; ++i, ++next) {
      if (next == expected.size() || expected[next] != run.first + i) return false;
      const std::uint64_t tag = rows.tags[expected[next]];
      if (!is_row(run.k_row(i), tag, Plane::k) || !is_row(run.v_row(i), tag, Plane::v)) return false;
    }
  }
  return next == expected.size();
}

/// Ring: slot = position mod capacity, behind the sinks, which have the first slots. Flat: counted from window_start.
inline bool has_lawful_slots(const Window& window, const LayerGeometry& layer, bool is_ring, Position start) {
  for (const Run& run : window.runs) {
    const std::uint32_t turn = layer.capacity - layer.sinks;
    const Slot in_ring = run.first < layer.sinks ? run.first : layer.sinks + (run.first - layer.sinks) % turn;
    if (run.slot != (is_ring ? in_ring : run.first - start)) return false;
  }
  return true;
}

inline bool lies_in_declared_storage(const KvStore& store, const Run& run) {
  bool k = false;
  bool v = false;
  for (const StorageUse& use : store.memory().storages) {
    const auto holds = [&](const std::byte* row, std::size_t stride) {
      return row >= use.base && row + run.count * stride <= use.base + use.bytes;
    };
    k = k || (use.plane == Plane::k && holds(run.k, run.k_stride_bytes));
    v = v || (use.plane == Plane::v && holds(run.v, run.v_stride_bytes));
  }
  return k && v;
}

/// One layer of one sequence, through extent, window and read.
inline bool holds_as_modelled(const KvStore& store, const ListModel& model, SequenceId sequence, LayerIndex layer) {
  const ListLayer& rows = model.layer(sequence, layer);
  const auto held = store.extent(sequence, layer);
  if (!held || held->window_start != rows.start || held->end != rows.end()) return false;
  WindowScratch scratch(store.layout().max_runs, 0);
  const auto window = store.window(sequence, layer, {held->window_start, held->end}, scratch);
  if (!window || window->copied_bytes != 0 || !shows(*window, rows)) return false;
  const bool is_ring = store.layout().kind != "flat" && store.layout().kind != "compact";
  const bool is_paged = store.layout().kind == "paged";
  if (!is_paged && !has_lawful_slots(*window, store.layout().config->layers[layer], is_ring, held->window_start))
    return false;
  for (const Run& run : window->runs)
    if (!lies_in_declared_storage(store, run)) return false;

  const std::size_t count = held->end - held->window_start;
  std::vector<std::byte> k(count * kElements * sizeof(float));
  std::vector<std::byte> v(k.size());
  const auto copied = store.read(sequence, layer, {held->window_start, held->end}, {k, v});
  if (!copied || copied->bytes != k.size() + v.size()) return false;
  const std::size_t row_bytes = kElements * sizeof(float);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t tag = rows.tags[held->window_start + i];
    if (!is_row(&k[i * row_bytes], tag, Plane::k) || !is_row(&v[i * row_bytes], tag, Plane::v)) return false;
  }
  return true;
}

inline bool holds_as_modelled(const KvStore& store, const ListModel& model) {
  const StoreConfig& config = *store.layout().config;
  std::uint64_t positions = 0;
  for (SequenceId sequence = 0; sequence < config.sequences; ++sequence) {
    for (LayerIndex layer = 0; layer < config.layers.size(); ++layer) {
      if (!holds_as_modelled(store, model, sequence, layer)) return false;
      const ListLayer& rows = model.layer(sequence, layer);
      for (std::int64_t p = 0; p < rows.end() && !config.layers[layer].donor; ++p) positions += rows.holds(p) ? 1 : 0;
    }
  }
  const MemoryReport memory = store.memory();
  // Blocks are in use as a whole.
  const bool is_paged = store.layout().kind == "paged";
  return memory.resident_positions == positions &&
         (is_paged || memory.used_bytes == positions * 2 * kElements * sizeof(float));
}

/// Fills what the store says that nobody may see. Returns how many bytes.
inline std::uint64_t poison(KvStore& store, PoisonFill fill) {
  KeptRows kept;
  BOOST_REQUIRE(store.rows_kept(kept).ok());
  std::ranges::sort(kept, std::less<>(), &std::span<const std::byte>::data);
  return fill_dead_memory(store.memory(), kept, fill);
}

inline std::unique_ptr<KvStore> make(const std::string& kind, const StoreConfig& config) {
  if (kind == "compact") return make_compact_store(config);
  if (kind == "layered") return make_layered_store(config);
  if (kind == "sink-ring") return make_sink_ring_store(config);
  if (kind == "paged") return make_paged_store(config);
  return kind == "ring" ? make_ring_store(config) : make_flat_store(config);
}

}  // namespace kvwitness::core::testing
