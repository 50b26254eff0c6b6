/// Rows that are a function of where they belong, so that a judge can recompute any row from a trace alone.
#pragma once

#include "kvwitness/trace/event.hpp"

#include <cstdint>
#include <span>
#include <string_view>

namespace kvwitness::trace {

enum class StreamKind : std::uint32_t {
  coded = 0,      ///< every element a pure function of (seed, salt, plane, layer, ordinal, head, dim)
  indicator = 1,  ///< all keys equal, values that name their ordinal: the output reveals the visible set
  random = 2,     ///< counter-based, in one of the shapes below
  external = 3,   ///< rows that no function tells (recorded tensors, a real model); not recomputable
};

/// Ill-conditioned inputs of `random` streams.
enum class RandomShape : std::uint32_t {
  uniform = 0,       ///< [-1, 1)
  large_scores = 1,  ///< q and k times 24: exp() spans its whole range
  one_hot_key = 2,   ///< one key in 16 times 32: the maximum moves late
  equal_keys = 3,    ///< all keys equal: every weight is the same
  denormals = 4,     ///< k and v times 2^-130
};

struct StreamSpec {
  NameHash name = 0;
  StreamKind kind = StreamKind::coded;
  RandomShape shape = RandomShape::uniform;
  std::uint64_t seed = 0;
  std::uint64_t salt = 0;

  friend bool operator==(const StreamSpec&, const StreamSpec&) noexcept = default;
};

/// Which row: token `ordinal` of the stream, in the plane (q, k or v) of a layer.
struct RowKey {
  Plane plane = Plane::k;
  LayerIndex layer = 0;
  std::uint32_t ordinal = 0;
};

/// Writes the row [heads * head_dim], f32, head-major. Rows are keyed by ordinal in the stream, not by position, so
/// that two stores fed the same tokens at different positions get the same rows. Generation depends only on the flat
/// index head * head_dim + dim. Not for `external` streams (asserts).
void fill_row(const StreamSpec& stream, RowKey key, std::span<float> row) noexcept;

[[nodiscard]] std::string_view to_text(StreamKind kind) noexcept;
[[nodiscard]] std::string_view to_text(RandomShape shape) noexcept;

}  // namespace kvwitness::trace
