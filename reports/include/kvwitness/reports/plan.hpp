/// What a store of some kind would take for a model, before anything is built: bytes by layer and side, in all, by
/// token, and against a uniform cache.
#pragma once

#include "kvwitness/core/model_config.hpp"
#include "kvwitness/core/plan.hpp"
#include "kvwitness/scenarios/registry.hpp"

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

namespace kvwitness::reports {

/// What to plan for. `model` has at least one layer.
struct PlanRequest {
  core::ModelConfig model;
  std::uint32_t context = 0;  ///< positions of each sequence
  std::uint32_t slack = 0;    ///< rows that a layer with a window holds beyond it: of the longest append, less one
  std::uint32_t sequences = 1;
  trace::DType k_type = trace::DType::f32;
  trace::DType v_type = trace::DType::f32;
  bool rope = false;  ///< keys are rotated where they are renumbered
  // Of kinds with blocks; 0: as the kind chooses.
  std::uint32_t block = 0;        ///< rows of a block
  std::uint32_t pool_blocks = 0;  ///< blocks that all sequences share
  std::uint32_t host_blocks = 0;  ///< blocks' worth of room on the host
};

/// Layers that keep rows of their own, planned by a kind. A kind that slides holds min(window + slack, context)
/// positions in a layer with a window; all others hold the whole context.
struct PlanReport {
  std::string kind;
  bool has_blocks = false;  ///< sequences share the rows of one pool
  PlanRequest request;
  std::vector<core::LayerGeometry> layers;   ///< those with rows of their own
  std::vector<trace::LayerIndex> layer_ids;  ///< their numbers in the model
  core::StorePlan plan;                      ///< its layers count in `layers`
  /// Every layer of the model, donors' readers too, with rows for the whole context.
  std::uint64_t uniform_bytes = 0;
  /// Bytes that one more token of a sequence takes at first. What the host has room for is no part of it.
  std::uint64_t bytes_per_token = 0;
  /// The same once every layer that slides over a window is full.
  std::uint64_t bytes_per_token_later = 0;
};

/// Throws trace::Error for a kind that predicts nothing, and for a request that no store can be built from, blocks for
/// a kind without them and formats that the kind refuses among those.
[[nodiscard]] PlanReport make_plan(const scenarios::StoreKind& kind, const PlanRequest& request);

void write_plan(const PlanReport& report, std::ostream& out, bool color);
void write_plan_json(const PlanReport& report, std::ostream& out);

}  // namespace kvwitness::reports
