#include "kvwitness/core/flat_store.hpp"

#include "kvwitness/trace/error.hpp"
#include "kvwitness/trace/event.hpp"
#include "stores/slot_store.hpp"

#include <fmt/format.h>

namespace kvwitness::core {
namespace {

const StoreConfig& without_sliding(const StoreConfig& config) {
  for (std::size_t i = 0; i < config.layers.size(); ++i) {
    if (config.layers[i].sliding)
      throw trace::Error(fmt::format("layers[{}].sliding: a flat store never overwrites; use a ring", i));
  }
  return config;
}

class FlatStore final : public SlotStore {
 public:
  explicit FlatStore(const StoreConfig& config) : SlotStore(without_sliding(config), "flat", flat_capabilities(), 1) {}

 private:
  [[nodiscard]] Slot slot_of(const Place& place, Position position) const noexcept override {
    return position - place.held.window_start;
  }

  void drop(const Place& place, Range range) noexcept override {
    const Extent held = place.held;
    touch(place, {held.window_start, held.end});
    const Position to = range.to;
    if (to == held.end) return;
    move_rows({place.layer, to, to, to - held.window_start, 0, held.end - to, 0}, place.sequence);
  }
};

}  // namespace

std::uint64_t flat_capabilities() noexcept {
  using enum trace::Capability;
  std::uint64_t bits = 0;
  for (const auto capability : {truncate, front_evict, clear, zero_copy, sequences, held_views, save})
    bits |= static_cast<std::uint64_t>(capability);
  return bits;
}

std::unique_ptr<KvStore> make_flat_store(const StoreConfig& config) {
  return std::make_unique<FlatStore>(config);
}

}  // namespace kvwitness::core
