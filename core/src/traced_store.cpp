#include "kvwitness/core/traced_store.hpp"

#include "kvwitness/trace/error.hpp"
#include "traced_call.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace kvwitness::core {

using trace::Evidence;
using trace::Operation;

namespace {

StoreLayout checked_layout(const KvStore& store) {
  StoreLayout layout = store.layout();
  if (layout.config == nullptr) throw trace::Error(fmt::format("store {}: it tells no configuration", layout.kind));
  validate(*layout.config);
  const auto& layers = layout.config->layers;
  const auto widest =
      std::max_element(layers.begin(), layers.end(),
                       [](const LayerGeometry& a, const LayerGeometry& b) { return a.capacity < b.capacity; });
  // Every run has a row, so that more runs than slots cannot be meant.
  layout.max_runs = std::clamp(layout.max_runs, 1U, widest->capacity);
  return layout;
}

/// 0 where theta alone does not say how far a key is rotated.
std::uint64_t rope_theta_bits(const LayerGeometry& layer) noexcept {
  const bool is_plain =
      layer.rope && layer.rope->scaling == RopeScaling::none && layer.rope->inverse_frequencies.empty();
  return is_plain ? trace::to_bits(layer.rope->theta) : 0;
}

}  // namespace

// ---- life -----------------------------------------------------------------------------------------------------------

TracedStore::TracedStore(KvStore& store, trace::Bus& bus, trace::StoreIndex index, const TracedOptions& options)
    : store_(&store),
      bus_(&bus),
      layout_(checked_layout(store)),
      index_(index),
      options_(options),
      evidence_(trace::probe_state() == trace::ProbeState::measuring ? Evidence::observed : Evidence::unmeasured) {
  report_names_ = {bus.names().intern("reserved-bytes"), bus.names().intern("used-bytes"),
                   bus.names().intern("resident-positions")};
  reserve_rooms();
  declare_store();
  declare_storages();
}

TracedStore::~TracedStore() {
  for (const View& view : views_)
    if (view.id != 0) close(view.id);
  for (const Declaration& storage : storages_) {
    trace::Free told{};
    told.storage = storage.id;
    told.bytes = storage.use.bytes;
    told.count = 1;
    told.scope = trace::ScopeKind::model;
    told.origin = trace::Origin::store;
    told.evidence = Evidence::declared;
    bus_->emit({index_, trace::kNoSequence, storage.use.layer}, told);
  }
}

void TracedStore::reserve_rooms() {
  const std::size_t layers = config().layers.size();
  std::uint64_t copy_bytes = 0;
  std::uint64_t k_row = 0;
  std::uint64_t v_row = 0;
  for (LayerIndex layer = 0; layer < layers; ++layer) {
    const std::uint64_t k = k_row_bytes(config(), layer);
    const std::uint64_t v = v_row_bytes(config(), layer);
    copy_bytes = std::max(copy_bytes, (k + v) * config().layers[layer].capacity);
    k_row = std::max(k_row, k);
    v_row = std::max(v_row, v);
  }
  if (can(layout_, trace::Capability::zero_copy)) copy_bytes = 0;
  views_.resize(options_.views_max);
  for (View& view : views_) {
    view.scratch = WindowScratch(layout_.max_runs, copy_bytes);
    view.readable.reserve(layout_.max_runs);
  }
  visited_.resize(options_.queries_max);
  accepted_.resize(layers * config().sequences);
  edits_.resize(config().sequences);
  moved_.resize(layers);
  state_k_.resize(k_row * kRowsAtOnce);
  state_v_.resize(v_row * kRowsAtOnce);
}

void TracedStore::declare_store() {
  const auto layers = static_cast<LayerIndex>(config().layers.size());
  trace::StoreCreated created{};
  created.name = bus_->names().intern(options_.name);
  created.kind = bus_->names().intern(layout_.kind);
  created.capabilities = layout_.capabilities;
  created.layers = layers;
  created.sequences = config().sequences;
  bus_->emit({index_}, created);
  for (LayerIndex layer = 0; layer < layers; ++layer) {
    const LayerGeometry& geometry = config().layers[layer];
    trace::LayerDeclared declared{};
    declared.capacity = geometry.capacity;
    declared.window = geometry.window.keys;
    declared.limited = geometry.window.limited ? 1 : 0;
    declared.q_heads = geometry.q_heads;
    declared.kv_heads = geometry.kv_heads;
    declared.head_dim = geometry.head_dim;
    declared.sliding = geometry.sliding ? 1 : 0;
    declared.rope = geometry.rope ? 1 : 0;
    bus_->emit({index_, trace::kNoSequence, layer}, declared);
  }
  for (LayerIndex layer = 0; layer < layers; ++layer) {
    trace::LayerFormat format{};
    format.k_row_bytes = k_row_bytes(config(), layer);
    format.v_row_bytes = v_row_bytes(config(), layer);
    format.score_scale_bits = trace::to_bits(score_scale(config(), layer));
    format.softcap_bits = trace::to_bits(config().softcap);
    format.k_type = config().k_type;
    format.v_type = config().v_type;
    format.donor = layer;
    format.rope_theta_bits = rope_theta_bits(config().layers[layer]);
    bus_->emit({index_, trace::kNoSequence, layer}, format);
  }
}

void TracedStore::declare_storages() {
  const trace::NameHash site = bus_->names().intern("kv-storage");
  for (const StorageUse& use : store_->memory().storages) {
    storages_.push_back({next_storage_id(), use});
    trace::Allocation told{};
    told.storage = storages_.back().id;
    told.bytes = use.bytes;
    told.site = site;
    told.count = 1;
    told.scope = trace::ScopeKind::model;
    told.origin = trace::Origin::store;
    told.evidence = Evidence::declared;
    told.plane = use.plane;
    bus_->emit({index_, trace::kNoSequence, use.layer}, told);
  }
}

// ---- state ----------------------------------------------------------------------------------------------------------

void TracedStore::digest_state(SequenceId sequence, trace::DigestReason reason, std::uint32_t step) {
  if (!bus_->active() || !knows(sequence, 0)) return;
  const auto layers = static_cast<LayerIndex>(config().layers.size());
  bool holds_something = reason != trace::DigestReason::at_end;
  for (LayerIndex layer = 0; layer < layers && !holds_something; ++layer) {
    const auto held = extent_or_refusal(sequence, layer);
    holds_something = !held || held->window_start != held->end;
  }
  for (LayerIndex layer = 0; layer < layers && holds_something; ++layer) {
    const auto held = extent_or_refusal(sequence, layer);
    digest_layer(sequence, layer, held ? *held : Extent{}, reason, step);
  }
}

void TracedStore::digest_layer(SequenceId sequence, LayerIndex layer, Extent held, trace::DigestReason reason,
                               std::uint32_t step) {
  trace::StateDigest told{};
  if (!digest_rows(sequence, layer, held, told)) told.k_digest = told.v_digest = 0;
  told.from = held.window_start;
  told.to = held.end;
  told.reason = reason;
  told.step = step;
  bus_->emit({index_, sequence, layer}, told);
}

bool TracedStore::digest_rows(SequenceId sequence, LayerIndex layer, Extent held, trace::StateDigest& told) {
  // An extent that no layer of this capacity can have is not worth walking.
  if (held.end < held.window_start || held.end - held.window_start > config().layers[layer].capacity) return false;
  const std::uint64_t k_row = k_row_bytes(config(), layer);
  const std::uint64_t v_row = v_row_bytes(config(), layer);
  for (Position p = held.window_start; p < held.end;) {
    const std::uint32_t rows = std::min(kRowsAtOnce, held.end - p);
    const RowsOut out{std::span(state_k_).first(rows * k_row), std::span(state_v_).first(rows * v_row)};
    const auto copied = guarded<Copied>(Operation::read, [&] {
      return store_->read(sequence, layer, {p, p + rows}, out);
    });
    if (!copied) return false;
    told.k_digest += trace::rows_digest(out.k.data(), k_row, k_row, p, rows);
    told.v_digest += trace::rows_digest(out.v.data(), v_row, v_row, p, rows);
    p += rows;
  }
  return true;
}

void TracedStore::report_memory() {
  const MemoryReport report = store_->memory();
  const auto tell = [&](trace::NameHash what, std::uint64_t value, trace::Unit unit) {
    trace::Reported told{};
    told.what = what;
    told.value = value;
    told.unit = unit;
    bus_->emit({index_}, told);
  };
  tell(report_names_.reserved_bytes, report.reserved_bytes, trace::Unit::bytes);
  tell(report_names_.used_bytes, report.used_bytes, trace::Unit::bytes);
  tell(report_names_.resident_positions, report.resident_positions, trace::Unit::positions);
}

}  // namespace kvwitness::core
