#include "kvwitness/trace/rows.hpp"

#include "kvwitness/trace/assert.hpp"

namespace kvwitness::trace {
namespace {

/// Finaliser of SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, OOPSLA 2014).
constexpr std::uint64_t mix(std::uint64_t x) noexcept {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

constexpr std::uint64_t kStep = 0x9e3779b97f4a7c15ULL;

/// [-1, 1) in steps of 2^-23: exact in f32.
constexpr float to_unit(std::uint64_t bits) noexcept {
  return static_cast<float>(static_cast<std::int32_t>(bits >> 40) - (1 << 23)) * 0x1p-23F;
}

std::uint64_t row_state(const StreamSpec& stream, RowKey key) noexcept {
  std::uint64_t state = mix(stream.seed + kStep * (static_cast<std::uint64_t>(stream.kind) + 1));
  state = mix(state ^ (stream.salt + kStep));
  state = mix(state ^ (static_cast<std::uint64_t>(key.plane) << 48 | static_cast<std::uint64_t>(key.layer) << 32 |
                       key.ordinal));
  return state;
}

void fill_unit(std::uint64_t state, float scale, std::span<float> row) noexcept {
  for (float& value : row) {
    state += kStep;
    value = to_unit(mix(state)) * scale;
  }
}

float random_scale(RandomShape shape, RowKey key) noexcept {
  const bool is_score_side = key.plane == Plane::q || key.plane == Plane::k;
  switch (shape) {
    case RandomShape::uniform:
    case RandomShape::equal_keys: return 1.0F;
    case RandomShape::large_scores: return is_score_side ? 24.0F : 1.0F;
    case RandomShape::one_hot_key: return key.plane == Plane::k && key.ordinal % 16 == 11 ? 32.0F : 1.0F;
    case RandomShape::denormals: return key.plane == Plane::q ? 1.0F : 0x1p-130F;
  }
  return 1.0F;
}

}  // namespace

void fill_row(const StreamSpec& stream, RowKey key, std::span<float> row) noexcept {
  KVW_ASSERT(stream.kind != StreamKind::external);
  const bool has_equal_keys = stream.kind == StreamKind::indicator ||
                              (stream.kind == StreamKind::random && stream.shape == RandomShape::equal_keys);
  if (has_equal_keys && key.plane == Plane::k) key.ordinal = 0;
  const float scale = stream.kind == StreamKind::random ? random_scale(stream.shape, key) : 1.0F;
  fill_unit(row_state(stream, key), scale, row);
}

std::string_view to_text(StreamKind kind) noexcept {
  switch (kind) {
    case StreamKind::coded: return "coded";
    case StreamKind::indicator: return "indicator";
    case StreamKind::random: return "random";
    case StreamKind::external: return "external";
  }
  return "unknown";
}

std::string_view to_text(RandomShape shape) noexcept {
  switch (shape) {
    case RandomShape::uniform: return "uniform";
    case RandomShape::large_scores: return "large-scores";
    case RandomShape::one_hot_key: return "one-hot-key";
    case RandomShape::equal_keys: return "equal-keys";
    case RandomShape::denormals: return "denormals";
  }
  return "unknown";
}

}  // namespace kvwitness::trace
