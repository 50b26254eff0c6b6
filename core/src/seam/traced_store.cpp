#include "kvwitness/core/traced_store.hpp"

#include "kvwitness/core/blocked_attention.hpp"
#include "kvwitness/core/outside.hpp"
#include "kvwitness/trace/error.hpp"
#include "seam/traced_call.hpp"

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
      outside_(store.outside()),
      attending_(can(store.layout(), trace::Capability::attend) ? store.attending() : nullptr),
      bus_(&bus),
      layout_(checked_layout(store)),
      index_(index),
      options_(options),
      evidence_(trace::probe_state() == trace::ProbeState::measuring ? Evidence::observed : Evidence::unmeasured) {
  report_names_ = {bus.names().intern("reserved-bytes"), bus.names().intern("used-bytes"),
                   bus.names().intern("resident-positions")};
  report_names_.uniform_rows = bus.names().intern("uniform-rows");
  report_names_.uniform_bytes = bus.names().intern("uniform-bytes");
  report_names_.poisoned_bytes = bus.names().intern("poisoned-bytes");
  reserve_rooms();
  k_code_ = row_code(config(), Plane::k);
  v_code_ = row_code(config(), Plane::v);
  declare_store();
  declare_codes();
  declare_pool();
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
  // f32 rows that are copied behind codes begin at a multiple of their size, on both sides.
  constexpr std::uint64_t kRoomBetweenCopies = 4 * sizeof(float);
  std::uint64_t copy_bytes = 0;
  std::uint64_t k_row = 0;
  std::uint64_t v_row = 0;
  std::uint64_t all_rows = 0;
  for (LayerIndex layer = 0; layer < layers; ++layer) {
    const std::uint64_t k = k_row_bytes(config(), layer);
    const std::uint64_t v = v_row_bytes(config(), layer);
    const std::uint64_t f32 = config().layers[layer].kv_elements() * sizeof(float);
    const bool is_copied = !can(layout_, trace::Capability::zero_copy) || config().layers[layer].by_rank;
    if (is_copied)
      copy_bytes = std::max(copy_bytes, (k + v) * config().layers[layer].capacity +
                                            2 * f32 * recent_slots(config(), layer) + kRoomBetweenCopies);
    all_rows += (k + v) * config().layers[layer].capacity * config().sequences;
    k_row = std::max({k_row, k, f32});
    v_row = std::max({v_row, v, f32});
  }
  row_room_.resize(2 * std::max(k_row, v_row) / sizeof(float));
  rows_in_cache_ = stays_in_cache(all_rows);
  std::size_t block_room = 0;
  for (const LayerGeometry& layer : config().layers)
    block_room =
        std::max(block_room, block_room_bytes(layer.q_heads, layer.kv_heads, layer.head_dim, options_.queries_max));
  block_room_.resize(block_room);
  views_.resize(options_.views_max);
  for (View& view : views_) {
    view.scratch = WindowScratch(layout_.max_runs, copy_bytes);
    view.readable.reserve(layout_.max_runs);
  }
  visited_.resize(options_.queries_max);
  accepted_.resize(layers * config().sequences);
  accepted_before_.resize(accepted_.size());
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
    declared.sinks = geometry.sinks;
    const trace::KeyRotation rotation = geometry.by_rank ? trace::KeyRotation::ranks : trace::KeyRotation::positions;
    declared.rope = geometry.rope ? static_cast<std::uint32_t>(rotation) : 0;
    declared.block = store_->paging() != nullptr ? config().block : 0;
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
    format.donor = owner_of(config(), layer);
    format.rope_theta_bits = rope_theta_bits(config().layers[layer]);
    bus_->emit({index_, trace::kNoSequence, layer}, format);
  }
}

void TracedStore::declare_codes() {
  if (!is_coded(config())) return;
  for (LayerIndex layer = 0; layer < config().layers.size(); ++layer) {
    for (const Plane plane : {Plane::k, Plane::v}) {
      const RowCode& code = plane == Plane::k ? k_code_ : v_code_;
      const bool is_rotated = code.type == DType::rotated;
      trace::LayerCode told{};
      told.plane = plane;
      told.code = code.type;
      told.recent = config().recent;
      told.quantise_group = config().quantise_group;
      told.seed = is_rotated ? code.rotated.seed : 0;
      told.bits = is_rotated ? static_cast<std::uint16_t>(code.rotated.bits) : std::uint16_t{0};
      told.block = is_rotated ? code.rotated.group : 0;
      told.residual_bits = is_rotated ? code.rotated.residual_bits : 0;
      bus_->emit({index_, trace::kNoSequence, layer}, told);
    }
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
    holds_something = !held || rows_held(config().layers[layer], *held) != 0;
  }
  for (LayerIndex layer = 0; layer < layers && holds_something; ++layer) {
    const auto held = extent_or_refusal(sequence, layer);
    digest_layer(sequence, layer, held ? *held : Extent{}, reason, step);
  }
  tell_loss(sequence, trace::kNoLayer);
}

void TracedStore::tell_loss(SequenceId sequence, LayerIndex layer) {
  const LostStore* lost = outside_ == nullptr || is_loss_told_ ? nullptr : outside_->lost();
  if (lost == nullptr) return;
  is_loss_told_ = true;
  trace::Mark told{};
  told.label = bus_->names().intern(lost->text);
  told.value = trace::loss_value(lost->loss);
  bus_->emit({index_, sequence, layer}, told);
}

void TracedStore::digest_layer(SequenceId sequence, LayerIndex layer, Extent held, trace::DigestReason reason,
                               std::uint32_t step) {
  trace::StateDigest told{};
  if (is_out(sequence)) held.window_start = held.end;
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
  const Range sinks = sinks_before(config().layers[layer].sinks, held.window_start);
  return add_rows(sequence, layer, sinks, held.end, told) &&
         add_rows(sequence, layer, {held.window_start, held.end}, held.end, told);
}

bool TracedStore::add_rows(SequenceId sequence, LayerIndex layer, Range rows, Position end, trace::StateDigest& told) {
  for (Position p = rows.from; p < rows.to; p += std::min(kRowsAtOnce, rows.to - p)) {
    const Range read{p, p + std::min(kRowsAtOnce, rows.to - p)};
    const RowsOut out{std::span(state_k_).first(range_bytes(config(), layer, Plane::k, read, end)),
                      std::span(state_v_).first(range_bytes(config(), layer, Plane::v, read, end))};
    const auto copied = guarded<Copied>(Operation::read, [&] { return store_->read(sequence, layer, read, out); });
    if (!copied) return false;
    told.k_digest += held_digest(config(), layer, Plane::k, read, end, out.k);
    told.v_digest += held_digest(config(), layer, Plane::v, read, end, out.v);
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
  if (report.uniform_rows != 0) {
    tell(report_names_.uniform_rows, report.uniform_rows, trace::Unit::positions);
    tell(report_names_.uniform_bytes, report.uniform_bytes, trace::Unit::bytes);
  }
  report_pool();
  tell_loss(trace::kNoSequence, trace::kNoLayer);
}

}  // namespace kvwitness::core
