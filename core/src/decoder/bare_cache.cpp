#include "kvwitness/core/decoder/bare_cache.hpp"

#include "kvwitness/trace/assert.hpp"
#include "kvwitness/trace/error.hpp"

#include <algorithm>

namespace kvwitness::core {
namespace {

const StoreConfig& checked(const KvStore& store) {
  const StoreConfig& config = *store.layout().config;
  if (config.k_type != DType::f32) throw trace::Error("k_type: a decoder reads f32 rows");
  if (config.v_type != DType::f32) throw trace::Error("v_type: a decoder reads f32 rows");
  return config;
}

std::uint32_t capacity_max(const StoreConfig& config) noexcept {
  std::uint32_t most = 0;
  for (const LayerGeometry& layer : config.layers) most = std::max(most, layer.capacity);
  return most;
}

/// Room for the largest window; rows only for stores that copy.
WindowScratch scratch_for(const KvStore& store) {
  const StoreConfig& config = checked(store);
  std::uint64_t row_bytes = 0;
  if ((store.layout().capabilities & static_cast<std::uint64_t>(trace::Capability::zero_copy)) == 0)
    for (std::size_t l = 0; l < config.layers.size(); ++l)
      row_bytes = std::max(row_bytes, 2 * k_row_bytes(config, static_cast<LayerIndex>(l)));
  return {store.layout().max_runs, row_bytes * capacity_max(config)};
}

}  // namespace

BareCache::BareCache(KvStore& store, std::uint32_t queries_max)
    : store_(store),
      last_layer_(static_cast<LayerIndex>(store.layout().config->layers.size() - 1)),
      window_(scratch_for(store)),
      sinks_(scratch_for(store)),
      both_(2 * std::size_t{store.layout().max_runs}),
      scores_(std::size_t{capacity_max(*store.layout().config)} + queries_max),
      visited_(queries_max) {
  KVW_ASSERT(queries_max > 0);
}

Position BareCache::next_position(SequenceId sequence) const {
  // A sequence that the store does not have is refused by the append that follows.
  const auto held = store_.extent(sequence, last_layer_);
  return held ? held->end : 0;
}

Outcome<Done> BareCache::append(SequenceId sequence, LayerIndex layer, const DecoderRows& rows) {
  RowsIn given{rows.k.data(), rows.v.data(), rows.count};
  given.k_raw = rows.k_raw.data();
  const auto kept = store_.append(sequence, layer, given);
  if (!kept) return kept.refusal();
  return Done{};
}

Outcome<std::span<const Run>> BareCache::runs_for(SequenceId sequence, LayerIndex layer, const CachedKeys& keys) {
  const auto window = store_.window(sequence, layer, keys.window, window_);
  if (!window) return window.refusal();
  if (keys.sinks.empty()) return window->runs;
  const auto sinks = store_.window(sequence, layer, keys.sinks, sinks_);
  if (!sinks) return sinks.refusal();
  const auto end = std::ranges::copy(window->runs, std::ranges::copy(sinks->runs, both_.begin()).out).out;
  return std::span<const Run>(both_.begin(), end);
}

Outcome<Done> BareCache::attend(SequenceId sequence, LayerIndex layer, const AttentionInput& input,
                                const GoldenAttention& extra, std::span<float> out) {
  KVW_ASSERT(input.count > 0 && input.count <= visited_.size());
  const auto held = store_.extent(sequence, layer);
  if (!held) return held.refusal();
  const auto runs = runs_for(sequence, layer, cached_keys(input, extra, held->end));
  if (!runs) return runs.refusal();
  attend_golden(input, extra, *runs, scores_, out, std::span(visited_).first(input.count));
  last_query_ = input.count - 1;
  return Done{};
}

Outcome<Done> BareCache::truncate(SequenceId sequence, Position to) {
  const auto edited = store_.truncate(sequence, to);
  if (!edited) return edited.refusal();
  return Done{};
}

}  // namespace kvwitness::core
