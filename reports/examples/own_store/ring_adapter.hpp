/// The ring behind kvwitness' interface: what it did, in the interface's words, and what it cannot do. It hands out no
/// memory of its own, so windows are copied by the interface's default, and the copies are priced.
#pragma once

#include "ring.hpp"

#include <kvwitness/core/kv_store.hpp>
#include <kvwitness/trace/error.hpp>

#include <cstring>

namespace own {

using namespace kvwitness::core;
using kvwitness::trace::Capability;
using kvwitness::trace::Operation;
using kvwitness::trace::Plane;

inline constexpr auto kCapabilities = static_cast<std::uint64_t>(Capability::ring) |
                                      static_cast<std::uint64_t>(Capability::sliding) |
                                      static_cast<std::uint64_t>(Capability::clear);

class RingAdapter final : public KvStore {
 public:
  explicit RingAdapter(const StoreConfig& config) : config_(config) {
    validate(config_);
    if (config_.sequences != 1) throw kvwitness::trace::Error("sequences: this ring holds one");
    rings_.reserve(config_.layers.size());
    for (const LayerGeometry& layer : config_.layers) rings_.emplace_back(layer.capacity, layer.kv_elements());
    for (LayerIndex l = 0; l < rings_.size(); ++l) {
      storages_.push_back({l, Plane::k, rings_[l].all_k().size() * 4, as_bytes(rings_[l].all_k().data())});
      storages_.push_back({l, Plane::v, rings_[l].all_v().size() * 4, as_bytes(rings_[l].all_v().data())});
    }
    pieces_.reserve(max_rows());
    lost_.reserve(max_rows());
  }

  StoreLayout layout() const noexcept override { return {"own-ring", &config_, kCapabilities, 1}; }

  MemoryReport memory() const noexcept override {
    MemoryReport report{storages_, 0, 0, 0};
    for (const StorageUse& storage : storages_) report.reserved_bytes += storage.bytes;
    for (LayerIndex l = 0; l < rings_.size(); ++l) {
      const std::uint64_t held = rings_[l].end() - rings_[l].begin();
      report.resident_positions += held;
      report.used_bytes += held * (k_row_bytes(config_, l) + v_row_bytes(config_, l));
    }
    return report;
  }

  Outcome<Extent> extent(SequenceId s, LayerIndex l) const override {
    if (s != 0) return refuse(Operation::read, RefusalCode::unknown_sequence);
    if (l >= rings_.size()) return refuse(Operation::read, RefusalCode::out_of_order);
    return Extent{rings_[l].begin(), rings_[l].end()};
  }

  Outcome<Appended> append(SequenceId s, LayerIndex l, const RowsIn& rows) override {
    const auto held = extent(s, l);
    if (!held) return refuse(Operation::append, held.code());
    if (l != due_ || (l > 0 && rows.count != count_))
      return refuse(Operation::append, RefusalCode::out_of_order, {}, *held);
    if (rows.count == 0) return refuse(Operation::append, RefusalCode::unsupported, {}, *held);
    if (rows.count > longest_append(config_.layers[l], *held))
      return refuse(Operation::append, RefusalCode::full, {}, *held);
    Ring& ring = rings_[l];
    const std::size_t width = config_.layers[l].kv_elements();
    pieces_.clear();
    lost_.clear();
    for (std::uint32_t i = 0; i < rows.count; ++i) {
      const Position p = ring.end();
      if (const Position oldest = ring.begin(); p - oldest == config_.layers[l].capacity)
        lost_.push_back({oldest, 1, ring.slot(p)});
      pieces_.push_back({p, 1, ring.slot(p)});
      ring.push(rows.k + i * width, rows.v + i * width);
    }
    due_ = static_cast<LayerIndex>((l + 1U) % rings_.size());
    count_ = rows.count;
    return Appended{pieces_, lost_, {}};
  }

  Outcome<Copied> read(SequenceId s, LayerIndex l, Range range, const RowsOut& out) const override {
    const auto held = extent(s, l);
    if (!held) return refuse(Operation::read, held.code(), range);
    if (range.from > range.to) return refuse(Operation::read, RefusalCode::out_of_order, range, *held);
    if (range.from < held->window_start) return refuse(Operation::read, RefusalCode::evicted, range, *held);
    if (range.to > held->end) return refuse(Operation::read, RefusalCode::future, range, *held);
    const std::size_t bytes = config_.layers[l].kv_elements() * sizeof(float);
    if (std::min(out.k.size(), out.v.size()) < range.count() * bytes)
      return refuse(Operation::read, RefusalCode::no_memory, range, *held);
    for (std::uint32_t i = 0; i < range.count(); ++i) {
      std::memcpy(out.k.data() + i * bytes, rings_[l].k(range.from + i), bytes);
      std::memcpy(out.v.data() + i * bytes, rings_[l].v(range.from + i), bytes);
    }
    return Copied{2 * range.count() * bytes, {}};
  }

  Outcome<Edited> truncate(SequenceId s, Position to) override { return cannot(s, Operation::truncate, {to, to}); }
  Outcome<Edited> evict(SequenceId s, Range range) override { return cannot(s, Operation::evict, range); }

  Outcome<Edited> clear(SequenceId s) override {
    if (s != 0) return refuse(Operation::clear, RefusalCode::unknown_sequence);
    std::uint32_t freed = 0;
    for (Ring& ring : rings_) {
      freed = std::max(freed, ring.end() - ring.begin());
      ring.clear();
    }
    due_ = 0;
    return Edited{freed, {}, {}};
  }

 private:
  static const std::byte* as_bytes(const float* values) { return reinterpret_cast<const std::byte*>(values); }
  static Outcome<Edited> cannot(SequenceId s, Operation what, Range asked) {
    return refuse(what, s != 0 ? RefusalCode::unknown_sequence : RefusalCode::unsupported, asked);
  }
  std::uint32_t max_rows() const {
    std::uint32_t rows = 0;
    for (const LayerGeometry& layer : config_.layers) rows = std::max(rows, layer.capacity);
    return rows;
  }

  StoreConfig config_;
  std::vector<Ring> rings_;  // by layer
  std::vector<StorageUse> storages_;
  std::vector<Piece> pieces_, lost_;
  LayerIndex due_ = 0;  // layer that is next to get the rows under way
  std::uint32_t count_ = 0;
};

}  // namespace own
