#include "kvwitness/core/plan.hpp"

#include "kvwitness/core/paged_store.hpp"
#include "kvwitness/trace/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

namespace kvwitness::core {
namespace {

constexpr std::uint64_t kBytesMax = std::numeric_limits<std::int64_t>::max();

/// A code's blocks: `values` of them take `bytes`, of which `scales` are no values.
struct Block {
  std::uint64_t values = 1;
  std::uint64_t bytes = 0;
  std::uint64_t scales = 0;
};

/// f16, bf16: IEEE 754 binary16 and its upper half of binary32. Source of q8_0 and q4_0: ggml's blocks of 32 values
/// with one f16 scale. rotated: an f32 scale a group, and another one for its residual.
Block block_of(DType type, const RotatedCode& rotated = {}) {
  switch (type) {
    case DType::f32: return {1, 4, 0};
    case DType::f16:
    case DType::bf16: return {1, 2, 0};
    case DType::q8_0: return {32, 32 + 2, 2};
    case DType::q4_0: return {32, 16 + 2, 2};
    case DType::rotated: {
      const std::uint64_t scales = rotated.residual_bits == 0 ? 4 : 4 + 4;
      return {rotated.group, scales + rotated.group / 8 * (rotated.bits + rotated.residual_bits), scales};
    }
    case DType::none: break;
  }
  throw trace::Error(fmt::format("no plan for rows of {}", trace::to_text(type)));
}

std::uint64_t product(std::uint64_t a, std::uint64_t b) {
  std::uint64_t result = 0;
  if (!__builtin_mul_overflow(a, b, &result) && result <= kBytesMax) return result;
  throw trace::Error(fmt::format("the plan's {} x {} bytes do not fit into 63 bits", a, b));
}

std::uint64_t sum(std::uint64_t a, std::uint64_t b) {
  // Both are at most kBytesMax, so that their sum cannot wrap.
  if (a + b <= kBytesMax) return a + b;
  throw trace::Error(fmt::format("the plan's {} + {} bytes do not fit into 63 bits", a, b));
}

class Planner {
 public:
  explicit Planner(const StoreConfig& config) : config_(&config) { validate(config); }

  void add(LayerIndex layer, Plane plane, DType type) {
    const LayerGeometry& shape = config_->layers[layer];
    const Block block = block_of(type);
    const std::uint64_t slots = product(rows_of(shape), config_->sequences);
    const std::uint64_t blocks = product(slots, std::uint64_t{shape.kv_heads} * shape.head_dim / block.values);
    plan_.planes.push_back({layer, plane, slots, product(blocks, block.bytes), product(blocks, block.scales)});
    plan_.bytes = sum(plan_.bytes, plan_.planes.back().bytes);
  }

  /// Windows of one sequence are gathered at a time.
  void add_scratch(const PlannedPlane& plane) {
    plan_.scratch_bytes = sum(plan_.scratch_bytes, plane.bytes / config_->sequences);
  }

  void add_rows(LayerIndex layer) {
    add(layer, Plane::k, config_->k_type);
    add_scratch(plan_.planes.back());
    add(layer, Plane::v, config_->v_type);
    add_scratch(plan_.planes.back());
  }

  /// One side, as codes and f32 rows beside them. Gathered, all of them are f32.
  void add_coded(LayerIndex layer, Plane plane) {
    const LayerGeometry& shape = config_->layers[layer];
    const bool is_k = plane == Plane::k;
    const Block block =
        is_k ? block_of(config_->k_type, config_->k_rotated) : block_of(config_->v_type, config_->v_rotated);
    const std::uint64_t elements = std::uint64_t{shape.kv_heads} * shape.head_dim;
    const std::uint64_t beside =
        std::min<std::uint64_t>(sum(config_->recent, config_->quantise_group - 1), shape.capacity);
    const bool is_coded = config_->k_type != DType::f32 || config_->v_type != DType::f32;
    const std::uint64_t slots = product(shape.capacity, config_->sequences);
    const std::uint64_t f32_rows = is_coded ? product(beside, config_->sequences) : 0;
    const std::uint64_t blocks = product(slots, elements / block.values);
    const std::uint64_t bytes = sum(product(blocks, block.bytes), product(product(f32_rows, elements), 4));
    plan_.planes.push_back({layer, plane, slots + f32_rows, bytes, product(blocks, block.scales)});
    plan_.bytes = sum(plan_.bytes, bytes);
    plan_.scratch_bytes = sum(plan_.scratch_bytes, product(product(shape.capacity, elements), 4));
  }

  /// A reader's windows are gathered like any other's, though it has no rows of its own.
  void add_windows_of_reader(LayerIndex layer) {
    StorePlan kept = std::exchange(plan_, {});
    add_rows(layer);
    kept.scratch_bytes = sum(kept.scratch_bytes, plan_.scratch_bytes);
    plan_ = std::move(kept);
  }

  /// The pool's rows, which all sequences share, and those on the host, K and V together.
  void add_pool(LayerIndex layer, std::uint64_t pool_rows, std::uint64_t host_rows) {
    const LayerGeometry& shape = config_->layers[layer];
    const std::uint64_t row = product(std::uint64_t{shape.kv_heads} * shape.head_dim, 4);
    for (const Plane plane : {Plane::k, Plane::v}) {
      plan_.planes.push_back({layer, plane, pool_rows, product(pool_rows, row), 0});
      plan_.bytes = sum(plan_.bytes, plan_.planes.back().bytes);
      plan_.scratch_bytes = sum(plan_.scratch_bytes, product(shape.capacity, row));
    }
    if (host_rows == 0) return;
    plan_.planes.push_back({layer, Plane::both, host_rows, product(product(host_rows, row), 2), 0});
    plan_.bytes = sum(plan_.bytes, plan_.planes.back().bytes);
  }

  [[nodiscard]] StorePlan take() { return std::move(plan_); }

 private:
  /// Of one sequence.
  [[nodiscard]] std::uint64_t rows_of(const LayerGeometry& shape) const noexcept {
    const bool is_sized = config_->slack && shape.window.limited;
    const std::uint64_t needed = is_sized ? std::uint64_t{shape.window.keys} + *config_->slack : shape.capacity;
    return std::min<std::uint64_t>(needed, shape.capacity);
  }

  const StoreConfig* config_;
  StorePlan plan_;
};

/// Blocks that every sequence has where its rows are as many as can be, and lie across as many blocks as they can:
/// those of the sinks, those of the widest layer's other rows, and besides what an append may bring to a first layer
/// that slides, before the others have it.
std::uint64_t ample_pool(const StoreConfig& config, std::uint64_t block) {
  const auto blocks = [&](std::uint64_t rows) { return rows / block + (rows % block != 0 ? 1 : 0); };
  std::uint64_t rows = 0;
  std::uint64_t sinks = 0;
  for (const LayerGeometry& shape : config.layers) {
    rows = std::max<std::uint64_t>(rows, shape.capacity - shape.sinks);
    sinks = std::max<std::uint64_t>(sinks, shape.sinks);
  }
  const LayerGeometry& first = config.layers.front();
  const std::uint64_t room = first.capacity - first.sinks;
  if (first.sliding) rows += room - (first.window.limited ? first.window.keys : room) + 1;
  // The first row is the last one of its block; those behind it fill blocks from their beginning.
  return product(blocks(sinks) + 1 + blocks(rows - 1), config.sequences);
}

}  // namespace

StorePlan plan_slots(const StoreConfig& config) {
  Planner planner(config);
  for (LayerIndex layer = 0; layer < config.layers.size(); ++layer) planner.add_rows(layer);
  return planner.take();
}

StorePlan plan_quantised(const StoreConfig& config) {
  Planner planner(config);
  for (LayerIndex layer = 0; layer < config.layers.size(); ++layer) {
    planner.add_coded(layer, Plane::k);
    planner.add_coded(layer, Plane::v);
  }
  return planner.take();
}

StorePlan plan_layered(const StoreConfig& config) {
  Planner planner(config);
  for (LayerIndex layer = 0; layer < config.layers.size(); ++layer) {
    if (config.layers[layer].donor)
      planner.add_windows_of_reader(layer);
    else
      planner.add_rows(layer);
  }
  return planner.take();
}

StorePlan plan_paged(const StoreConfig& config) {
  for (const DType type : {config.k_type, config.v_type})
    if (type != DType::f32) throw trace::Error(fmt::format("no plan for paged rows of {}", trace::to_text(type)));
  Planner planner(config);
  const std::uint64_t block = config.block != 0 ? config.block : kBlockDefault;
  const std::uint64_t pool = config.pool_blocks != 0 ? config.pool_blocks : ample_pool(config, block);
  for (LayerIndex layer = 0; layer < config.layers.size(); ++layer)
    planner.add_pool(layer, product(pool, block), product(config.host_blocks, block));
  return planner.take();
}

StorePlan plan_compact(const StoreConfig& config) {
  Planner planner(config);
  for (LayerIndex layer = 0; layer < config.layers.size(); ++layer) {
    planner.add_rows(layer);
    if (config.layers[layer].rope) planner.add(layer, Plane::k_raw, config.k_type);
  }
  return planner.take();
}

}  // namespace kvwitness::core
