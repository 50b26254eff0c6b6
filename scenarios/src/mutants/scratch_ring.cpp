#include "mutants/scratch_ring.hpp"

#include <algorithm>
#include <cstring>

namespace kvwitness::scenarios::mutants {

ScratchRing::ScratchRing(const core::StoreConfig& config, Scratch scratch) : PlainRing(config), scratch_(scratch) {
  std::uint64_t longest = 0;
  for (LayerIndex layer = 0; layer < layers(); ++layer)
    longest = std::max(longest, geometry(layer).capacity * (k_bytes(layer) + v_bytes(layer)));
  rows_.resize(longest);
  const core::MemoryReport report = PlainRing::memory();
  storages_.assign(report.storages.begin(), report.storages.end());
  if (scratch_ == Scratch::declared) storages_.push_back({0, trace::Plane::both, rows_.size(), rows_.data()});
}

core::MemoryReport ScratchRing::memory() const noexcept {
  core::MemoryReport report = PlainRing::memory();
  report.storages = storages_;
  if (scratch_ == Scratch::declared) report.reserved_bytes += rows_.size();
  return report;
}

Outcome<core::Done> ScratchRing::still_valid(const core::Window&) const {
  return core::Done{};
}

std::size_t ScratchRing::fill_runs(Cell cell, Range range, std::span<core::Run> runs) const noexcept {
  if (range.empty()) return 0;
  std::byte* k = rows_.data();
  std::byte* v = k + range.count() * k_bytes(cell.layer);
  for (std::uint32_t i = 0; i < range.count(); ++i) {
    const Slot slot = slot_of(cell, range.from + i);
    std::memcpy(k + i * k_bytes(cell.layer), k_at(cell, slot), k_bytes(cell.layer));
    std::memcpy(v + i * v_bytes(cell.layer), v_at(cell, slot), v_bytes(cell.layer));
  }
  runs[0] = {range.from, range.count(), slot_of(cell, range.from), k, v, k_bytes(cell.layer), v_bytes(cell.layer)};
  return 1;
}

}  // namespace kvwitness::scenarios::mutants
