#include "kvwitness/core/sink_ring_store.hpp"

#include "kvwitness/core/ring_store.hpp"
#include "kvwitness/trace/event.hpp"
#include "ring_slots.hpp"

namespace kvwitness::core {
namespace {

class SinkRingStore final : public RingSlots {
 public:
  explicit SinkRingStore(const StoreConfig& config) : RingSlots(config, "sink-ring", sink_ring_capabilities(), 3) {}
};

}  // namespace

std::uint64_t sink_ring_capabilities() noexcept {
  return ring_capabilities() | static_cast<std::uint64_t>(trace::Capability::sinks);
}

std::unique_ptr<KvStore> make_sink_ring_store(const StoreConfig& config) {
  return std::make_unique<SinkRingStore>(config);
}

}  // namespace kvwitness::core
