#include "kvwitness/core/ring_store.hpp"

#include "kvwitness/trace/event.hpp"
#include "stores/ring_slots.hpp"

namespace kvwitness::core {
namespace {

class RingStore final : public RingSlots {
 public:
  explicit RingStore(const StoreConfig& config) : RingSlots(config, "ring", ring_capabilities(), 2) {}
};

}  // namespace

std::uint64_t ring_capabilities() noexcept {
  using enum trace::Capability;
  std::uint64_t bits = 0;
  for (const auto capability : {ring, sliding, truncate, front_evict, clear, zero_copy, sequences, held_views, save})
    bits |= static_cast<std::uint64_t>(capability);
  return bits;
}

std::unique_ptr<KvStore> make_ring_store(const StoreConfig& config) {
  return std::make_unique<RingStore>(config);
}

}  // namespace kvwitness::core
