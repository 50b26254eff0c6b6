/// Faults of which keys a query sees: the window's size, its layer, its coordinates. Most say honestly what they
/// visited; those that say what would have been right are for the rules that look at outputs only.
#include "mutants/groups.hpp"
#include "mutants/unsaid.hpp"

#include <algorithm>
#include <array>

namespace kvwitness::scenarios::mutants {

namespace {

using core::AttentionInput;
using core::Run;
using core::Visited;
using core::WindowSize;

/// A correct path but for the window that it goes by.
class OtherWindowPath : public core::AttentionPath {
 public:
  explicit OtherWindowPath(const core::StoreConfig& config) : config_(config) {}

  Range key_range(LayerIndex layer, WindowSize window, Position first, std::uint32_t count) const noexcept override {
    return AttentionPath::key_range(layer, other(layer, window, count), first, count);
  }
  void attend(LayerIndex layer, const AttentionInput& input, std::span<const Run> runs, std::span<float> out,
              std::span<Visited> visited) const noexcept override {
    AttentionInput wrong = input;
    wrong.window = other(layer, input.window, input.count);
    AttentionPath::attend(layer, wrong, runs, out, visited);
  }

 protected:
  [[nodiscard]] virtual WindowSize other(LayerIndex layer, WindowSize window, std::uint32_t count) const noexcept = 0;
  [[nodiscard]] const core::StoreConfig& config() const noexcept { return config_; }

 private:
  core::StoreConfig config_;
};

[[nodiscard]] WindowSize widened(WindowSize window) {
  return {window.keys + (window.limited ? 1U : 0U), window.limited};
}

class PlusOnePath final : public OtherWindowPath {
  using OtherWindowPath::OtherWindowPath;
  WindowSize other(LayerIndex, WindowSize window, std::uint32_t) const noexcept override { return widened(window); }
};

class PlusOneInPrefillPath final : public OtherWindowPath {
  using OtherWindowPath::OtherWindowPath;
  WindowSize other(LayerIndex, WindowSize window, std::uint32_t count) const noexcept override {
    return count > 1 ? widened(window) : window;
  }
};

class LostInDecodePath final : public OtherWindowPath {
  using OtherWindowPath::OtherWindowPath;
  WindowSize other(LayerIndex, WindowSize window, std::uint32_t count) const noexcept override {
    return count == 1 ? WindowSize{} : window;
  }
};

class OfLayerZeroPath final : public OtherWindowPath {
  using OtherWindowPath::OtherWindowPath;
  WindowSize other(LayerIndex, WindowSize, std::uint32_t) const noexcept override { return config().layers[0].window; }
};

class LostInChunkPath final : public core::AttentionPath {
 public:
  explicit LostInChunkPath(const core::StoreConfig&) {}
  void attend(LayerIndex layer, const AttentionInput& input, std::span<const Run> runs, std::span<float> out,
              std::span<Visited> visited) const noexcept override {
    AttentionInput wrong = input;
    if (input.count > 1) wrong.window = {};
    AttentionPath::attend(layer, wrong, runs, out, visited);
  }
};

/// The query rows of a chunk one by one, each by a window or position of its own.
class RowByRowPath : public core::AttentionPath {
 public:
  void attend(LayerIndex layer, const AttentionInput& input, std::span<const Run> runs, std::span<float> out,
              std::span<Visited> visited) const noexcept override {
    for (std::uint32_t i = 0; i < input.count; ++i) {
      AttentionInput row = query_row(input, i);
      change(row, i);
      AttentionPath::attend(layer, row, runs, out_row(input, out, i), visited.subspan(i, 1));
    }
  }

 protected:
  virtual void change(AttentionInput& row, std::uint32_t index) const noexcept = 0;
};

class FirstRowBoundPath final : public RowByRowPath {
 public:
  explicit FirstRowBoundPath(const core::StoreConfig&) {}
  void change(AttentionInput& row, std::uint32_t index) const noexcept override {
    if (row.window.limited) row.window.keys += index;
  }
};

class ChunkLocalPath final : public RowByRowPath {
 public:
  explicit ChunkLocalPath(const core::StoreConfig&) {}
  void change(AttentionInput& row, std::uint32_t index) const noexcept override { row.first_query = index; }
};

class NarrowMaskPath final : public RowByRowPath {
 public:
  explicit NarrowMaskPath(const core::StoreConfig&) {}
  // The mask was sized before this row was appended: its own column is missing.
  void change(AttentionInput& row, std::uint32_t) const noexcept override {
    if (row.first_query == 0) return;
    --row.first_query;
    if (row.window.limited && row.window.keys > 1) --row.window.keys;
  }
};

class MinusOnePath final : public UnsaidPath {
 public:
  explicit MinusOnePath(const core::StoreConfig&) {}
  void attend_row(LayerIndex layer, const AttentionInput& row, std::span<const Run> runs,
                  std::span<float> out) const noexcept override {
    AttentionInput wrong = row;
    if (wrong.window.keys > 1) --wrong.window.keys;
    attend_quietly(layer, wrong, runs, out);
  }
};

class NeverAppliedPath final : public UnsaidPath {
 public:
  explicit NeverAppliedPath(const core::StoreConfig&) {}
  Range key_range(LayerIndex, WindowSize, Position first, std::uint32_t count) const noexcept override {
    return {0, first + count};
  }
  void attend_row(LayerIndex layer, const AttentionInput& row, std::span<const Run> runs,
                  std::span<float> out) const noexcept override {
    AttentionInput wrong = row;
    wrong.window = {};
    attend_quietly(layer, wrong, runs, out);
  }
};

class OfGroupPath final : public UnsaidPath {
 public:
  explicit OfGroupPath(const core::StoreConfig& config) {
    for (const LayerGeometry& layer : config.layers) {
      if (layer.window.limited && (!narrowest_.limited || layer.window.keys < narrowest_.keys))
        narrowest_ = layer.window;
    }
  }
  void attend_row(LayerIndex layer, const AttentionInput& row, std::span<const Run> runs,
                  std::span<float> out) const noexcept override {
    AttentionInput wrong = row;
    if (narrowest_.limited) wrong.window = narrowest_;
    attend_quietly(layer, wrong, runs, out);
  }

 private:
  WindowSize narrowest_;
};

class BySlotPath final : public UnsaidPath {
 public:
  explicit BySlotPath(const core::StoreConfig&) {}
  // The causal triangle is laid over slots: rows behind the write position count as the future.
  void attend_row(LayerIndex layer, const AttentionInput& row, std::span<const Run> runs,
                  std::span<float> out) const noexcept override {
    Slot own = trace::kNoSlot;
    for (const Run& run : runs) {
      if (row.first_query >= run.first && row.first_query - run.first < run.count)
        own = run.slot + (row.first_query - run.first);
    }
    std::array<Run, 2> seen{};
    std::size_t used = 0;
    for (const Run& run : runs) {
      if (run.slot > own || used == seen.size()) continue;
      seen[used] = run;
      seen[used].count = std::min(run.count, own - run.slot + 1);
      ++used;
    }
    attend_quietly(layer, row, std::span(seen).first(used), out);
  }
};

}  // namespace

std::span<const Mutant> masking_mutants() {
  static const Mutant kMutants[] = {
      path_mutant<PlainFlat, PlusOnePath>({"window-plus-one", "window-off-by-one", "huggingface/transformers#39408",
                                           "window-exact", "a query sees W + 1 keys",
                                           "the count of keys was handed to a kernel that takes a distance"}),
      path_mutant<PlainFlat, PlusOneInPrefillPath>(
          {"window-plus-one-in-prefill", "window-off-by-one", "ml-explore/mlx-lm#390", "window-exact",
           "chunks see W + 1 keys, single steps W", "the prefill mask allowed one key more than the ring keeps"}),
      path_mutant<PlainRing, MinusOnePath>({"window-minus-one", "window-off-by-one", "openvinotoolkit/openvino#30714",
                                            "visible-set", "a query sees W - 1 keys and nothing says so",
                                            "two paths read the window's size one row apart"}),
      path_mutant<PlainFlat, LostInDecodePath>({"window-lost-in-decode", "window-not-applied", "karpathy/nanochat#452",
                                                "window-exact", "single steps see everything that is held",
                                                "the fallback for one token never got the window"}),
      path_mutant<PlainFlat, NeverAppliedPath>(
          {"window-never-applied", "window-not-applied", "keras-team/keras-hub#2186", "different-output",
           "no path has a window, and none says so", "the window was a setting that no layer read"}),
      path_mutant<PlainRing, LostInChunkPath>({"window-lost-in-chunk", "window-not-applied", "pytorch/executorch#21384",
                                               "window-exact",
                                               "later rows of a chunk see all keys that the first one needs",
                                               "the window existed only as eviction between chunks"}),
      path_mutant<PlainFlat, OfLayerZeroPath>(
          {"window-of-layer-zero", "window-wrong-layer", "huggingface/transformers#48482", "window-exact",
           "every layer goes by the window of layer 0", "mask and padding were sized from the first layer"}),
      path_mutant<PlainRing, OfGroupPath>({"window-of-group", "window-wrong-layer", "vllm-project/vllm#51756",
                                           "numeric-oracle",
                                           "the narrowest window is applied to all layers and nothing says so",
                                           "a cache group held windowed and global layers, and had one window"}),
      path_mutant<PlainRing, FirstRowBoundPath>({"window-bound-of-first-row", "window-tile-granular",
                                                 "pytorch/executorch#21857", "window-exact",
                                                 "all rows of a chunk go by the first row's lower bound",
                                                 "the cached part of the mask had one bound for the whole chunk"}),
      path_mutant<PlainFlat, ChunkLocalPath>(
          {"mask-chunk-local", "mask-coordinates", "NVIDIA-NeMo/Megatron-Bridge#5259", "window-exact",
           "a decode step sees key 0 only", "the query's index was local to its chunk, the keys' absolute"}),
      path_mutant<PlainRing, BySlotPath>({"mask-by-slot", "mask-coordinates",
                                          "aws-neuron/neuronx-distributed-inference#106", "numeric-oracle",
                                          "after the wrap the rows behind the write position are masked",
                                          "a mask for a linear store was laid over a rolling one"}),
      path_mutant<PlainRing, NarrowMaskPath>({"mask-one-column-short", "mask-width", "ml-explore/mlx-swift-lm#39",
                                              "window-exact", "the row of this step has no column in the mask",
                                              "the mask's width formula and the returned keys disagreed"}),
  };
  return kMutants;
}

}  // namespace kvwitness::scenarios::mutants
