#include "kvwitness/core/ring_store.hpp"

#include "kvwitness/trace/event.hpp"
#include "slot_store.hpp"

namespace kvwitness::core {
namespace {

class RingStore final : public SlotStore {
 public:
  explicit RingStore(const StoreConfig& config) : SlotStore(config, "ring", ring_capabilities(), 2) {}

 private:
  [[nodiscard]] Slot slot_of(const Place& place, Position position) const noexcept override {
    return position % geometry(place.layer).capacity;
  }
  void drop(const Place& place, Range range) noexcept override { touch(place, range); }
};

}  // namespace

std::uint64_t ring_capabilities() noexcept {
  using enum trace::Capability;
  std::uint64_t bits = 0;
  for (const auto capability : {ring, sliding, truncate, front_evict, clear, zero_copy, sequences, held_views})
    bits |= static_cast<std::uint64_t>(capability);
  return bits;
}

std::unique_ptr<KvStore> make_ring_store(const StoreConfig& config) {
  return std::make_unique<RingStore>(config);
}

}  // namespace kvwitness::core
