/// What a store will take, predicted from its configuration before it is built.
///
/// A prediction is worth something only where it can be wrong: these formulas are the plan's own, and share nothing
/// with what the stores call to size themselves. A rule compares both, line by line. A kind of store adds one function
/// here.
#pragma once

#include "kvwitness/core/geometry.hpp"

#include <cstdint>
#include <vector>

namespace kvwitness::core {

/// One plane of one layer, over all sequences.
struct PlannedPlane {
  LayerIndex layer = 0;
  Plane plane = Plane::k;
  std::uint64_t slots = 0;  ///< rows
  std::uint64_t bytes = 0;
  std::uint64_t scale_bytes = 0;  ///< of `bytes`, what a code's scales take

  friend bool operator==(const PlannedPlane&, const PlannedPlane&) = default;
};

struct StorePlan {
  std::vector<PlannedPlane> planes;  ///< layer by layer
  std::uint64_t bytes = 0;           ///< of all planes
  /// Forward scratch: K and V of the longest window that each layer can have, where a token's windows are all gathered.
  std::uint64_t scratch_bytes = 0;
};

/// How a kind of store predicts itself. Throws trace::Error where the configuration is not valid, or its bytes do not
/// fit into 63 bits.
using PlanStore = StorePlan (*)(const StoreConfig& config);

/// Stores that keep `capacity` rows of K and V per layer and sequence: flat, ring and sink-ring.
[[nodiscard]] StorePlan plan_slots(const StoreConfig& config);
/// Layered stores: nothing for layers with a donor; where there is a slack, a windowed layer keeps no more rows than
/// its window and the slack.
[[nodiscard]] StorePlan plan_layered(const StoreConfig& config);
/// As `plan_slots`, and the keys before rotation once more for layers with rope.
[[nodiscard]] StorePlan plan_compact(const StoreConfig& config);
/// Rows of K and V in the codes of their sides, and beside them f32 rows: the recent ones and all but one of a group,
/// at most `capacity`. Where both sides are f32, as `plan_slots`.
[[nodiscard]] StorePlan plan_quantised(const StoreConfig& config);
/// Stores of blocks: in each layer the rows of the pool's blocks, whatever the sequences are, and those of the host's
/// in a plane of their own, K and V together. A pool that is left open is enough for every sequence at its longest.
/// Rows are f32; throws trace::Error for others.
[[nodiscard]] StorePlan plan_paged(const StoreConfig& config);

}  // namespace kvwitness::core
