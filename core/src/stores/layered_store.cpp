#include "kvwitness/core/layered_store.hpp"

#include "kvwitness/core/ring_store.hpp"
#include "kvwitness/trace/event.hpp"
#include "stores/ring_slots.hpp"

#include <algorithm>

namespace kvwitness::core {
namespace {

class LayeredStore final : public RingSlots {
 public:
  explicit LayeredStore(const StoreConfig& given)
      : RingSlots(layered_config(given), "layered", layered_capabilities(), 2) {
    for (const LayerGeometry& layer : given.layers) uniform_rows_ = std::max(uniform_rows_, layer.capacity);
    for (LayerIndex layer = 0; layer < given.layers.size(); ++layer)
      uniform_bytes_ += (k_row_bytes(given, layer) + v_row_bytes(given, layer)) * uniform_rows_ * given.sequences;
  }

  [[nodiscard]] MemoryReport memory() const noexcept override {
    MemoryReport report = RingSlots::memory();
    report.uniform_rows = uniform_rows_;
    report.uniform_bytes = uniform_bytes_;
    return report;
  }

 private:
  std::uint32_t uniform_rows_ = 0;
  std::uint64_t uniform_bytes_ = 0;
};

}  // namespace

std::uint64_t layered_capabilities() noexcept {
  return ring_capabilities() | static_cast<std::uint64_t>(trace::Capability::donors);
}

StoreConfig layered_config(const StoreConfig& config) {
  StoreConfig sized = config;
  for (LayerGeometry& layer : sized.layers) {
    if (!config.slack || !layer.window.limited) continue;
    const std::uint64_t slots = std::uint64_t{layer.window.keys} + *config.slack;
    layer.capacity = static_cast<std::uint32_t>(std::min<std::uint64_t>(slots, layer.capacity));
    // A window that no sequence outgrows never slides.
    layer.sliding = layer.window.keys <= layer.capacity;
  }
  validate(sized);
  return sized;
}

std::unique_ptr<KvStore> make_layered_store(const StoreConfig& config) {
  return std::make_unique<LayeredStore>(config);
}

std::vector<LayerGeometry> layers_in_pattern(const LayerGeometry& full, std::uint32_t count, std::uint32_t window,
                                             std::uint32_t period) {
  std::vector<LayerGeometry> layers(count, full);
  for (std::uint32_t i = 0; i < count; ++i) {
    const bool is_full = period != 0 && (i + 1) % period == 0;
    if (is_full) continue;
    layers[i].window = {window, true};
    layers[i].sliding = true;
  }
  return layers;
}

}  // namespace kvwitness::core
