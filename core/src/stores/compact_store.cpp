#include "kvwitness/core/compact_store.hpp"

#include "kvwitness/core/decoder/rope.hpp"
#include "kvwitness/trace/error.hpp"
#include "kvwitness/trace/event.hpp"
#include "stores/slot_store.hpp"

#include <fmt/format.h>

#include <cstring>
#include <optional>

namespace kvwitness::core {
namespace {

const StoreConfig& without_sliding(const StoreConfig& config) {
  for (std::size_t i = 0; i < config.layers.size(); ++i) {
    if (config.layers[i].sliding)
      throw trace::Error(fmt::format("layers[{}].sliding: a compact store never overwrites; use a ring", i));
  }
  return config;
}

class CompactStore final : public SlotStore {
 public:
  explicit CompactStore(const StoreConfig& store_config)
      : SlotStore(without_sliding(store_config), "compact", compact_capabilities(), 1, Survivors::renumbered),
        raw_(config().layers.size()) {
    for (LayerIndex layer = 0; layer < raw_.size(); ++layer) {
      if (!geometry(layer).rope) continue;
      raw_[layer].keys = allocate_plane(layer, Plane::k_raw);
      raw_[layer].rope.emplace(*geometry(layer).rope, geometry(layer).head_dim);
    }
  }

  Outcome<Appended> append(SequenceId sequence, LayerIndex layer, const RowsIn& rows) override {
    const bool keeps_raw = layer < raw_.size() && raw_[layer].rope;
    if (keeps_raw && rows.k_raw == nullptr) {
      const auto allowed = may_append(sequence, layer, rows.count);
      if (!allowed) return allowed.refusal();
      const Extent held = place(sequence, layer).held;
      return refuse(trace::Operation::append, RefusalCode::unsupported, {held.end, held.end + rows.count}, held);
    }
    const auto appended = SlotStore::append(sequence, layer, rows);
    if (appended && keeps_raw)
      std::memcpy(raw_row(place(sequence, layer), appended->pieces[0].slot), rows.k_raw,
                  rows.count * k_row_bytes(config(), layer));
    return appended;
  }

  Outcome<Copied> read_raw(SequenceId sequence, LayerIndex layer, Range range, std::span<float> k_raw) const override {
    const auto allowed = may_see(sequence, layer, range, trace::Operation::read);
    if (!allowed) return allowed.refusal();
    const Extent held = place(sequence, layer).held;
    if (!raw_[layer].rope) return refuse(trace::Operation::read, RefusalCode::unsupported, range, held);
    const std::uint64_t bytes = range.count() * k_row_bytes(config(), layer);
    if (k_raw.size_bytes() < bytes) return refuse(trace::Operation::read, RefusalCode::no_memory, range, held);
    const std::uint64_t first = row_offset(config(), layer, Plane::k_raw, sequence, range.from);
    std::memcpy(k_raw.data(), raw_[layer].keys.get() + first, bytes);
    return Copied{bytes, {}};
  }

 private:
  /// Keys of a layer before rotation; empty where it has no rope.
  struct RawKeys {
    Block keys;  ///< laid out as the rotated ones
    std::optional<Rope> rope;
  };

  [[nodiscard]] Slot slot_of(const Place& /*place*/, Position position) const noexcept override { return position; }

  void drop(const Place& place, Range range) noexcept override {
    touch(place, {range.from, place.held.end});
    const std::uint32_t survivors = place.held.end - range.to;
    if (survivors == 0) return;
    move_rows({place.layer, range.to, range.from, range.to, range.from, survivors, 0}, place.sequence);
    if (!raw_[place.layer].rope) return;
    std::memmove(raw_row(place, range.from), raw_row(place, range.to), survivors * k_row_bytes(config(), place.layer));
    rotate(place, range.from, survivors);
  }

  void rotate(const Place& place, Position first, std::uint32_t count) noexcept {
    Rope& rope = *raw_[place.layer].rope;
    const std::uint64_t elements = geometry(place.layer).kv_elements();
    for (Position p = first; p < first + count; ++p) {
      rope.set_position(p);
      rope.rotate({reinterpret_cast<const float*>(raw_row(place, p)), elements},
                  {reinterpret_cast<float*>(k_row(place, p)), elements});
    }
    note_rotated({.layer = place.layer, .position = first, .slot = first, .applied = first, .count = count});
  }

  [[nodiscard]] std::byte* raw_keys(LayerIndex layer) const noexcept override { return raw_[layer].keys.get(); }

  [[nodiscard]] std::byte* raw_row(const Place& place, Slot slot) noexcept {
    return raw_[place.layer].keys.get() + row_offset(config(), place.layer, Plane::k_raw, place.sequence, slot);
  }

  std::vector<RawKeys> raw_;
};

}  // namespace

std::uint64_t compact_capabilities() noexcept {
  using enum trace::Capability;
  std::uint64_t bits = 0;
  for (const auto capability : {truncate, middle_evict, renumbers, clear, zero_copy, sequences, held_views, save})
    bits |= static_cast<std::uint64_t>(capability);
  return bits;
}

std::unique_ptr<KvStore> make_compact_store(const StoreConfig& config) {
  return std::make_unique<CompactStore>(config);
}

}  // namespace kvwitness::core
