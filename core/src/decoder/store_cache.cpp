#include "kvwitness/core/decoder/store_cache.hpp"

#include <algorithm>
#include <cstddef>

namespace kvwitness::core {
namespace {

/// Rows that the runs of one window can name, also those of a store that names rows twice or of other sequences.
std::size_t rows_nameable(const StoreLayout& layout) noexcept {
  std::size_t rows = 0;
  for (const LayerGeometry& layer : layout.config->layers) rows = std::max<std::size_t>(rows, layer.capacity);
  return rows * layout.config->sequences * std::max(1U, layout.max_runs);
}

}  // namespace

StoreCache::StoreCache(TracedStore& store, const AttentionPath& path, std::uint32_t tokens_max)
    : store_(&store),
      path_(&path),
      feeds_(store.config().sequences),
      scores_(rows_nameable(store.layout()) + tokens_max) {}

void StoreCache::prepare(SequenceId sequence, Source source, Position evicted_to) noexcept {
  if (sequence < feeds_.size()) feeds_[sequence] = {source, evicted_to};
}

void StoreCache::ask_from(SequenceId sequence, Position position) noexcept {
  if (sequence < feeds_.size()) feeds_[sequence].evicted_to = position;
}

StoreCache::Feed StoreCache::feed_of(SequenceId sequence) const noexcept {
  return sequence < feeds_.size() ? feeds_[sequence] : Feed{};
}

Position StoreCache::next_position(SequenceId sequence) const {
  return store_->end(sequence, static_cast<LayerIndex>(store_->config().layers.size() - 1));
}

Outcome<Done> StoreCache::append(SequenceId sequence, LayerIndex layer, const DecoderRows& rows) {
  RowsIn given;
  given.k = rows.k.data();
  given.v = rows.v.data();
  given.count = rows.count;
  given.k_raw = rows.k_raw.data();
  // The last layer's end moves last, so this is still what the decoder rotated the rows of every layer to.
  given.rotated_to = next_position(sequence);
  return store_->append(sequence, layer, given, feed_of(sequence).source);
}

Outcome<Done> StoreCache::attend(SequenceId sequence, LayerIndex layer, const AttentionInput& input,
                                 const GoldenAttention& extra, std::span<float> out) {
  const Position end = store_->end(sequence, layer);
  if (!cached_keys(input, extra, end).sinks.empty()) return refuse(trace::Operation::attend, RefusalCode::unsupported);
  const Feed feed = feed_of(sequence);
  Range keys = path_->key_range(layer, input.window, input.first_query, input.count);
  keys.to = std::min(keys.to, end);
  keys.from = std::min(std::max(keys.from, feed.evicted_to), keys.to);
  const auto view = store_->open(sequence, layer, keys);
  if (!view) return view.refusal();
  const TwoPass two_pass{extra, scores_};
  AttentionInput golden = input;
  golden.two_pass = &two_pass;
  const auto attended = store_->attend(*view, golden, *path_, out, feed.source);
  store_->close(*view);
  return attended;
}

Outcome<Done> StoreCache::truncate(SequenceId sequence, Position to) {
  return store_->truncate(sequence, to);
}

}  // namespace kvwitness::core
