/// Faults of where a query stands in relation to its keys. What a query visits is right, so that only outputs tell.
#include "kvwitness/core/decoder/rope.hpp"
#include "mutants/groups.hpp"
#include "mutants/unsaid.hpp"

#include <algorithm>
#include <optional>
#include <vector>

namespace kvwitness::scenarios::mutants {

namespace {

using core::AttentionInput;
using core::Run;

/// Turns each query once more before it attends, in layers whose keys are rotated.
class TurnedQueryPath : public UnsaidPath {
 public:
  explicit TurnedQueryPath(const core::StoreConfig& config) {
    std::size_t widest = 0;
    for (const LayerGeometry& layer : config.layers) {
      ropes_.emplace_back();
      widest = std::max<std::size_t>(widest, layer.q_elements());
    }
    query_.resize(widest);
  }

 protected:
  void attend_row(LayerIndex layer, const AttentionInput& row, std::span<const Run> runs,
                  std::span<float> out) const noexcept override {
    if (!ropes_[layer] || runs.empty()) return attend_quietly(layer, row, runs, out);
    ropes_[layer]->set_position(turned_by(row, runs));
    AttentionInput turned = row;
    turned.q = std::span(query_).first(row.q.size());
    ropes_[layer]->rotate(row.q, query_);
    attend_quietly(layer, turned, runs, out);
  }
  /// How far, in positions.
  [[nodiscard]] virtual Position turned_by(const AttentionInput& row, std::span<const Run> runs) const noexcept = 0;
  /// By what angles a layer's queries are turned.
  void turn(LayerIndex layer, const core::RopeConfig& by, std::uint32_t head_dim) {
    ropes_[layer].emplace(by, head_dim);
  }

 private:
  mutable std::vector<std::optional<core::Rope>> ropes_;  ///< [layer]
  mutable std::vector<float> query_;
};

/// The angles of a layer, or those that undo them.
[[nodiscard]] core::RopeConfig angles_of(const LayerGeometry& layer, double times) {
  core::RopeConfig by = *layer.rope;
  const core::Rope rope(by, layer.head_dim);
  by = {};
  for (const double frequency : rope.inverse_frequencies()) by.inverse_frequencies.push_back(times * frequency);
  return by;
}

/// By the angles of its own layer, forwards or backwards.
class OwnAnglesPath : public TurnedQueryPath {
 public:
  OwnAnglesPath(const core::StoreConfig& config, double times) : TurnedQueryPath(config) {
    for (LayerIndex layer = 0; layer < config.layers.size(); ++layer) {
      const LayerGeometry& geometry = config.layers[layer];
      if (geometry.rope) turn(layer, angles_of(geometry, times), geometry.head_dim);
    }
  }
};

class RotatedTwicePath final : public OwnAnglesPath {
 public:
  explicit RotatedTwicePath(const core::StoreConfig& config) : OwnAnglesPath(config, 1) {}

 private:
  Position turned_by(const AttentionInput& row, std::span<const Run>) const noexcept override {
    return row.first_query;
  }
};

class KeysByRankPath final : public OwnAnglesPath {
 public:
  explicit KeysByRankPath(const core::StoreConfig& config) : OwnAnglesPath(config, 1) {}

 private:
  // Keys that stand at their ranks in the window are nearer to 0 by what lies in front of it.
  Position turned_by(const AttentionInput&, std::span<const Run> runs) const noexcept override {
    return runs.front().first;
  }
};

class ByRowsHeldPath final : public OwnAnglesPath {
 public:
  explicit ByRowsHeldPath(const core::StoreConfig& config) : OwnAnglesPath(config, -1) {}

 private:
  Position turned_by(const AttentionInput&, std::span<const Run> runs) const noexcept override {
    return runs.front().first;
  }
};

/// From the angles of its own layer to those of the first.
class OtherThetaPath final : public TurnedQueryPath {
 public:
  explicit OtherThetaPath(const core::StoreConfig& config) : TurnedQueryPath(config) {
    const LayerGeometry& first = config.layers.front();
    for (LayerIndex layer = 1; layer < config.layers.size(); ++layer) {
      const LayerGeometry& geometry = config.layers[layer];
      if (!geometry.rope || !first.rope || geometry.head_dim != first.head_dim) continue;
      core::RopeConfig by = angles_of(first, 1);
      const core::RopeConfig own = angles_of(geometry, 1);
      for (std::size_t i = 0; i < own.inverse_frequencies.size(); ++i)
        by.inverse_frequencies[i] -= own.inverse_frequencies[i];
      turn(layer, by, geometry.head_dim);
    }
  }

 private:
  Position turned_by(const AttentionInput& row, std::span<const Run>) const noexcept override {
    return row.first_query;
  }
};

}  // namespace

std::span<const Mutant> relativity_mutants() {
  static const Mutant kMutants[] = {
      path_mutant<PlainFlat, RotatedTwicePath>({"query-rotated-twice", "rope-position", "", "suffix-relativity",
                                                "queries are rotated by their positions, and once more",
                                                "a kernel that rotates was given a query that was rotated already"}),
      path_mutant<PlainFlat, KeysByRankPath>({"keys-by-rank-query-by-position", "rope-position",
                                              "huggingface/transformers#35350", "suffix-relativity",
                                              "keys stand at their ranks in the window, the query at its position",
                                              "survivors were renumbered, and the query went on counting tokens"}),
      path_mutant<PlainFlat, ByRowsHeldPath>(
          {"query-by-rows-held", "rope-position", "rajveer43/VeloxQuant-MLX#196", "suffix-relativity",
           "a query stands at the number of rows that its window has", "the count of rows was taken for the position"}),
      path_mutant<PlainFlat, OtherThetaPath>({"theta-of-layer-zero", "rope-position", "", "suffix-relativity",
                                              "queries of every layer are rotated by the angles of the first",
                                              "one table of angles was made for layers that differ in theta"}),
  };
  return kMutants;
}

}  // namespace kvwitness::scenarios::mutants
