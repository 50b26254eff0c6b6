/// Faults of what is kept for good and of what belongs to another layer: sinks, donors, layers sized by their windows.
#include "kvwitness/core/decoder/rope.hpp"
#include "mutants/wrapped_kinds.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

namespace kvwitness::scenarios::mutants {

namespace {

using core::AttentionInput;
using core::Run;

// ---- sinks

/// The turn of the ring begins at slot 0: it runs over the sinks.
class TurnsOverSinks final : public WrappedSinks {
 public:
  using WrappedSinks::WrappedSinks;
  Outcome<core::Appended> append(SequenceId sequence, LayerIndex layer, const core::RowsIn& rows) override {
    const auto done = WrappedSinks::append(sequence, layer, rows);
    if (!done) return done;
    const LayerGeometry& shape = geometry(layer);
    const std::uint64_t elements = shape.kv_elements();
    const Position end = extent(sequence, layer)->end;
    for (std::uint32_t i = 0; i < rows.count; ++i) {
      const Position position = end - rows.count + i;
      const Slot slot = position % shape.capacity;
      if (position < shape.capacity || slot >= shape.sinks) continue;
      std::memcpy(row_at({sequence, layer}, trace::Plane::k, slot), rows.k + i * elements, row_bytes(layer));
      std::memcpy(row_at({sequence, layer}, trace::Plane::v, slot), rows.v + i * elements, row_bytes(layer));
    }
    return done;
  }
};

/// Says that it wrote to position mod C.
class TurnsByCapacity final : public WrappedSinks {
 public:
  using WrappedSinks::WrappedSinks;
  Outcome<core::Appended> append(SequenceId sequence, LayerIndex layer, const core::RowsIn& rows) override {
    const auto done = WrappedSinks::append(sequence, layer, rows);
    if (!done) return done;
    pieces_.assign(done->pieces.begin(), done->pieces.end());
    for (core::Piece& piece : pieces_) piece.slot = piece.first % geometry(layer).capacity;
    core::Appended told = *done;
    told.pieces = pieces_;
    return told;
  }

 private:
  std::vector<core::Piece> pieces_;
};

/// An eviction on request takes the sinks with it.
class EvictsSinks final : public WrappedSinks {
 public:
  explicit EvictsSinks(const core::StoreConfig& config) : WrappedSinks(config), gone_(config.sequences) {}
  Outcome<core::Window> window(SequenceId sequence, LayerIndex layer, Range range,
                               core::WindowScratch& scratch) const override {
    auto window = WrappedSinks::window(sequence, layer, range, scratch);
    if (!window || !has_lost(sequence, layer)) return window;
    core::Window rest = *window;
    while (!rest.runs.empty() && rest.runs.front().first < range.from) rest.runs = rest.runs.subspan(1);
    return rest;
  }
  Outcome<core::Copied> read(SequenceId sequence, LayerIndex layer, Range range,
                             const core::RowsOut& out) const override {
    if (has_lost(sequence, layer) && range.from < geometry(layer).sinks)
      return core::refuse(Operation::read, RefusalCode::evicted, range, *extent(sequence, layer));
    return WrappedSinks::read(sequence, layer, range, out);
  }
  Outcome<core::Edited> evict(SequenceId sequence, Range range) override {
    const auto done = WrappedSinks::evict(sequence, range);
    if (done && !range.empty()) gone_[sequence] = true;
    return done;
  }
  Outcome<core::Edited> clear(SequenceId sequence) override {
    if (sequence < gone_.size()) gone_[sequence] = false;
    return WrappedSinks::clear(sequence);
  }

 private:
  [[nodiscard]] bool has_lost(SequenceId sequence, LayerIndex layer) const {
    const auto held = extent(sequence, layer);
    return held && gone_[sequence] && held->window_start != 0;
  }
  std::vector<bool> gone_;
};

/// A rollback among the sinks is refused like any other past the wrap.
class NoWayBackToSinks final : public WrappedSinks {
 public:
  using WrappedSinks::WrappedSinks;
  Outcome<core::Edited> truncate(SequenceId sequence, Position to) override {
    const auto held = extent(sequence, 0);
    if (held && to < geometry(0).sinks && held->window_start != 0)
      return core::refuse(Operation::truncate, RefusalCode::evicted, {to, held->end}, *held);
    return WrappedSinks::truncate(sequence, to);
  }
};

/// Keys by rank are rotated to their positions, and so it says.
class RanksArePositions final : public WrappedSinks {
 public:
  using WrappedSinks::WrappedSinks;
  Outcome<core::Window> window(SequenceId sequence, LayerIndex layer, Range range,
                               core::WindowScratch& scratch) const override {
    const auto window = WrappedSinks::window(sequence, layer, range, scratch);
    if (!window || !geometry(layer).by_rank) return window;
    core::Rope rope(*geometry(layer).rope, geometry(layer).head_dim);
    for (Run& run : scratch.runs().first(window->runs.size())) turn(*window, run, rope);
    return window;
  }

 private:
  void turn(const core::Window& window, Run& run, core::Rope& rope) const {
    const std::uint64_t elements = geometry(window.layer).kv_elements();
    std::vector<float> k(run.count * elements);
    std::vector<float> v(k.size());
    const Range rows{run.first, run.first + run.count};
    const auto raw = read(window.sequence, window.layer, rows,
                          {std::as_writable_bytes(std::span(k)), std::as_writable_bytes(std::span(v))});
    if (!raw) return;
    run.rotated_to = run.first;
    auto* out = reinterpret_cast<float*>(const_cast<std::byte*>(run.k));
    for (std::uint32_t i = 0; i < run.count; ++i) {
      rope.set_position(run.first + i);
      rope.rotate(std::span(k).subspan(i * elements, elements), {out + i * elements, elements});
    }
  }
};

/// The mask of a correct store, wrong in one respect.
class SinkPath : public core::AttentionPath {
 public:
  explicit SinkPath(const core::StoreConfig& /*config*/) {}
};

/// The sinks take their share of the window.
class SinksInsideWindow final : public SinkPath {
 public:
  using SinkPath::SinkPath;
  void attend(LayerIndex layer, const AttentionInput& input, std::span<const Run> runs, std::span<float> out,
              std::span<core::Visited> visited) const noexcept override {
    AttentionInput narrow = input;
    if (narrow.window.limited && narrow.window.keys > input.sinks) narrow.window.keys -= input.sinks;
    SinkPath::attend(layer, narrow, runs, out, visited);
  }
};

/// Columns of the mask are numbered from the sinks on, whatever lies in between.
class ColumnsFromSinks final : public SinkPath {
 public:
  using SinkPath::SinkPath;
  void attend(LayerIndex layer, const AttentionInput& input, std::span<const Run> runs, std::span<float> out,
              std::span<core::Visited> visited) const noexcept override {
    std::array<Run, kRunsMax> moved{};
    const std::size_t count = std::min(runs.size(), moved.size());
    for (std::size_t i = 0; i < count; ++i) {
      moved[i] = runs[i];
      if (runs[i].first >= input.sinks) moved[i].first += input.sinks;
    }
    SinkPath::attend(layer, input, std::span(moved).first(count), out, visited);
  }

 private:
  static constexpr std::size_t kRunsMax = 8;
};

/// The mask has no sinks: only the window is seen.
class WindowWithoutSinks final : public SinkPath {
 public:
  using SinkPath::SinkPath;
  void attend(LayerIndex layer, const AttentionInput& input, std::span<const Run> runs, std::span<float> out,
              std::span<core::Visited> visited) const noexcept override {
    AttentionInput plain = input;
    plain.sinks = 0;
    SinkPath::attend(layer, plain, runs, out, visited);
  }
};

// ---- layers

/// Every windowed layer is as large as the widest one.
class SizedByTheWidest final : public Wrapped {
 public:
  explicit SizedByTheWidest(const core::StoreConfig& config) : Wrapped(core::make_layered_store(widened(config))) {}

 private:
  static core::StoreConfig widened(const core::StoreConfig& config) {
    core::StoreConfig sized = core::layered_config(config);
    std::uint32_t widest = 0;
    for (const LayerGeometry& layer : sized.layers) widest = std::max(widest, layer.capacity);
    for (LayerGeometry& layer : sized.layers) layer.capacity = widest;
    sized.slack.reset();
    return sized;
  }
};

/// A reader looks into the layer before it, whoever its donor is.
class ReadsTheLayerBefore final : public WrappedLayers {
 public:
  using WrappedLayers::WrappedLayers;
  Outcome<core::Window> window(SequenceId sequence, LayerIndex layer, Range range,
                               core::WindowScratch& scratch) const override {
    const auto before = static_cast<LayerIndex>(layer - (is_reader(layer) ? 1 : 0));
    const auto held = extent(sequence, before);
    const bool can = is_reader(layer) && held && range.from >= held->window_start && range.to <= held->end;
    auto window = WrappedLayers::window(sequence, can ? before : layer, range, scratch);
    if (!window) return window;
    core::Window shown = *window;
    shown.layer = layer;
    return shown;
  }
};

/// A reader that is given rows takes them for its own, and does nothing with them.
class TakesRowsForReaders final : public WrappedLayers {
 public:
  using WrappedLayers::WrappedLayers;
  Outcome<core::Appended> append(SequenceId sequence, LayerIndex layer, const core::RowsIn& rows) override {
    const bool takes = sequence < config().sequences && is_reader(layer);
    return takes ? core::Appended{} : WrappedLayers::append(sequence, layer, rows);
  }
};

/// All layers attend through the window of the first one.
class WindowOfTheFirstLayer final : public core::AttentionPath {
 public:
  explicit WindowOfTheFirstLayer(const core::StoreConfig& config) : window_(core::effective_window(config.layers[0])) {}
  void attend(LayerIndex layer, const AttentionInput& input, std::span<const Run> runs, std::span<float> out,
              std::span<core::Visited> visited) const noexcept override {
    AttentionInput other = input;
    other.window = window_;
    AttentionPath::attend(layer, other, runs, out, visited);
  }

 private:
  trace::WindowSize window_;
};

// ---- the table

template <class Path>
[[nodiscard]] Mutant sink_path_mutant(const Fault& fault) {
  Mutant mutant = sink_mutant<WrappedSinks>(fault);
  mutant.kind = MutantKind::path;
  mutant.make = &path_subject<WrappedSinks, Path>;
  return mutant;
}

template <class Path>
[[nodiscard]] Mutant layered_path_mutant(const Fault& fault) {
  Mutant mutant = layered_mutant<WrappedLayers>(fault);
  mutant.kind = MutantKind::path;
  mutant.make = &path_subject<WrappedLayers, Path>;
  return mutant;
}

}  // namespace

std::span<const Mutant> keeping_mutants() {
  static const Mutant kMutants[] = {
      sink_mutant<TurnsOverSinks>({"sinks-overwritten", "early-eviction", "", "position-order",
                                   "the ring turns over the sinks' slots",
                                   "the wrap starts at slot 0, so that the sinks are lost with the first turn"}),
      sink_mutant<TurnsByCapacity>({"sinks-in-modulus", "ring-wrap-index", "", "trace-truth",
                                    "slots are counted modulo C instead of C - S",
                                    "the ring's length is the buffer's, sinks included"}),
      sink_mutant<EvictsSinks>({"sinks-evicted", "early-eviction", "", "resident-set",
                                "an eviction on request takes the sinks too",
                                "the front is everything below the position asked for"}),
      sink_mutant<NoWayBackToSinks>({"sinks-not-rolled-back-to", "legal-refused", "", "legal-refused",
                                     "a rollback among the sinks is refused once wrapped",
                                     "legality is judged by the ring's start alone"}),
      sink_mutant<RanksArePositions>({"ranks-are-positions", "rope-position", "", "rope-ledger",
                                      "keys by rank are rotated to their positions",
                                      "the rotation is that of the token, wherever it stands in the cache"}),
      sink_path_mutant<SinksInsideWindow>({"sinks-inside-window", "window-off-by-one", "", "window-exact",
                                           "the sinks take their share of the window",
                                           "the window is W keys, sinks included"}),
      sink_path_mutant<ColumnsFromSinks>({"sinks-shift-columns", "mask-coordinates", "", "window-exact",
                                          "mask columns are shifted by the sinks",
                                          "the mask's columns are numbered on from the sinks"}),
      sink_path_mutant<WindowWithoutSinks>({"sinks-not-in-mask", "window-not-applied", "", "window-exact",
                                            "the mask leaves the sinks out",
                                            "the window's lower bound cuts off what the store still holds"}),
      layered_mutant<SizedByTheWidest>({"layers-sized-alike", "memory-unbounded", "tenstorrent/tt-xla#5727",
                                        "plan-matches", "every layer is as large as the widest one",
                                        "windowed layers are sized for the whole context"}),
      layered_mutant<ReadsTheLayerBefore>({"reader-of-wrong-layer", "cross-layer-sharing", "", "donor-reads",
                                           "a reader looks into the layer before it",
                                           "the donor's index is taken to be the reader's less one"}),
      layered_mutant<TakesRowsForReaders>({"reader-is-appended-to", "cross-layer-sharing", "ROCm/hip-ep#882",
                                           "donor-reads", "an append to a reader is accepted",
                                           "layers that only read were treated as ones that append"}),
      layered_path_mutant<WindowOfTheFirstLayer>(
          {"layered-window-of-first", "window-wrong-layer", "vllm-project/vllm#51756", "window-exact",
           "all layers attend through the first one's window", "the window is taken from the group"}),
  };
  return kMutants;
}

}  // namespace kvwitness::scenarios::mutants
