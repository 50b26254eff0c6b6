#include "kvwitness/core/sink_ring_store.hpp"

#include "kvwitness/core/decoder/rope.hpp"
#include "kvwitness/core/ring_store.hpp"
#include "kvwitness/trace/event.hpp"
#include "stores/ring_slots.hpp"
#include "stores/rows_kept.hpp"

#include <cstring>
#include <optional>
#include <vector>

namespace kvwitness::core {
namespace {

using trace::Operation;

class SinkRingStore final : public RingSlots {
 public:
  explicit SinkRingStore(const StoreConfig& store_config)
      : RingSlots(store_config, "sink-ring", sink_ring_capabilities(), 3), ropes_(config().layers.size()) {
    for (LayerIndex layer = 0; layer < ropes_.size(); ++layer)
      if (geometry(layer).by_rank) ropes_[layer].emplace(*geometry(layer).rope, geometry(layer).head_dim);
  }

  Outcome<Window> window(SequenceId sequence, LayerIndex layer, Range range, WindowScratch& scratch) const override {
    const auto lying = RingSlots::window(sequence, layer, range, scratch);
    if (!lying || !is_by_rank(layer)) return lying;
    return turned(*lying, scratch);
  }

  /// Windows by rank are copies; what lies in the ring is kept.
  Outcome<Done> rows_kept(KeptRows& kept) const override {
    for (SequenceId sequence = 0; sequence < config().sequences; ++sequence) {
      const auto lying = [&](LayerIndex layer, Range range, WindowScratch& scratch) {
        return RingSlots::window(sequence, layer, range, scratch);
      };
      const auto done = keep_sequence(*this, sequence, kept, lying);
      if (!done) return done;
    }
    return Done{};
  }

  Outcome<Done> still_valid(const Window& window) const override {
    if (!is_by_rank(window.layer)) return RingSlots::still_valid(window);
    const auto held = extent(window.sequence, window.layer);
    if (!held) return held.refusal();
    if (is_fresh(place(window.sequence, window.layer), window.range, window.generation)) return Done{};
    return refuse(Operation::attend, RefusalCode::stale, window.range, *held);
  }

 private:
  [[nodiscard]] bool is_by_rank(LayerIndex layer) const noexcept { return layer < ropes_.size() && ropes_[layer]; }

  /// Copies a window's rows behind each other into the scratch, keys rotated to their ranks.
  [[nodiscard]] Outcome<Window> turned(Window window, WindowScratch& scratch) const {
    Rope& rope = *ropes_[window.layer];
    const std::uint64_t elements = geometry(window.layer).kv_elements();
    const std::size_t row = elements * sizeof(float);
    std::size_t rows = 0;
    for (const Run& run : window.runs) rows += run.count;
    if (2 * rows * row > scratch.rows().size())
      return refuse(Operation::window, RefusalCode::no_memory, window.range, place(window.sequence, window.layer).held);
    std::byte* const k = scratch.rows().data();
    std::byte* const v = k + rows * row;
    Position rank = 0;
    for (Run& run : scratch.runs().first(window.runs.size())) {
      const Run lying = run;
      run.slot = trace::kNoSlot;
      run.k = k + rank * row;
      run.v = v + rank * row;
      run.rotated_to = rank;
      std::memcpy(v + rank * row, lying.v, lying.count * row);
      for (std::uint32_t i = 0; i < lying.count; ++i, ++rank) {
        rope.set_position(rank);
        rope.rotate({reinterpret_cast<const float*>(lying.k_row(i)), elements},
                    {reinterpret_cast<float*>(k + rank * row), elements});
      }
    }
    window.copied_bytes = 2 * rows * row;
    return window;
  }

  mutable std::vector<std::optional<Rope>> ropes_;  ///< [layer]; of layers by rank
};

}  // namespace

std::uint64_t sink_ring_capabilities() noexcept {
  return ring_capabilities() | static_cast<std::uint64_t>(trace::Capability::sinks);
}

std::unique_ptr<KvStore> make_sink_ring_store(const StoreConfig& config) {
  return std::make_unique<SinkRingStore>(config);
}

}  // namespace kvwitness::core
