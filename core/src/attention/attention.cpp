#include "kvwitness/core/attention.hpp"

#include "attention/window_walk.hpp"
#include "kvwitness/core/blocked_attention.hpp"
#include "kvwitness/core/decoder/golden_attention.hpp"
#include "kvwitness/trace/assert.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace kvwitness::core {
namespace {

constexpr float kNoScore = -std::numeric_limits<float>::infinity();
/// Query heads whose running state fits the stack at once; K and V rows are read once for all of them.
constexpr std::uint32_t kHeadsAtOnce = 64;
constexpr std::uint32_t kLanes = 8;

/// Dot product in a fixed order that depends on the length only.
float dot(const float* a, const float* b, std::uint32_t count) noexcept {
  std::array<float, kLanes> lanes{};
  std::uint32_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    for (std::uint32_t lane = 0; lane < kLanes; ++lane) lanes[lane] += a[i + lane] * b[i + lane];
  for (std::uint32_t lane = 0; i + lane < count; ++lane) lanes[lane] += a[i + lane] * b[i + lane];
  for (std::uint32_t half = kLanes / 2; half > 0; half /= 2)
    for (std::uint32_t lane = 0; lane < half; ++lane) lanes[lane] += lanes[lane + half];
  return lanes[0];
}

float score_of(const AttentionInput& input, const float* q, const float* k) noexcept {
  const float score = dot(q, k, input.head_dim) * input.score_scale;
  return input.softcap > 0 ? input.softcap * std::tanh(score / input.softcap) : score;
}

/// exp(score - max). A score of -inf weighs nothing also where the maximum is -inf; equal scores weigh 1 also at +inf.
float weight_of(float score, float max) noexcept {
  if (score == kNoScore) return 0;
  return score == max ? 1.0F : std::exp(score - max);
}

/// Running maximum and denominator of a query head; the numerator is the caller's row.
struct Running {
  float max = kNoScore;
  float sum = 0;
};

void add_key(Running& running, float score, const float* v, std::span<float> row) noexcept {
  if (score > running.max) {
    const float shrink = weight_of(running.max, score);
    running.max = score;
    running.sum = running.sum * shrink + 1.0F;
    for (std::size_t d = 0; d < row.size(); ++d) row[d] = row[d] * shrink + v[d];
    return;
  }
  const float weight = weight_of(score, running.max);
  running.sum += weight;
  for (std::size_t d = 0; d < row.size(); ++d) row[d] += weight * v[d];
}

/// Query heads [first, first+count) of one query row.
struct HeadBlock {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
  std::array<Running, kHeadsAtOnce> running{};
};

void add_row(const AttentionInput& input, const float* q, const float* k, const float* v, HeadBlock& heads,
             std::span<float> out) noexcept {
  const std::uint32_t group = input.q_heads / input.kv_heads;
  const std::size_t dim = input.head_dim;
  for (std::uint32_t i = 0; i < heads.count; ++i) {
    const std::size_t head = heads.first + i;
    const std::size_t kv = head / group * dim;
    add_key(heads.running[i], score_of(input, q + head * dim, k + kv), v + kv, out.subspan(head * dim, dim));
  }
}

void finish(HeadBlock& heads, std::size_t dim, std::span<float> out) noexcept {
  for (std::uint32_t i = 0; i < heads.count; ++i) {
    const float sum = heads.running[i].sum;
    // Without any weight the row is zero already; a NaN in it has to stay.
    if (sum == 0) continue;
    for (float& value : out.subspan((heads.first + i) * dim, dim)) value /= sum;
  }
}

HeadBlock heads_from(const AttentionInput& input, std::uint32_t first) noexcept {
  HeadBlock heads{first, std::min(kHeadsAtOnce, input.q_heads - first), {}};
  if (input.sink_logits.empty()) return heads;
  for (std::uint32_t i = 0; i < heads.count; ++i) {
    // A sink is a key without a value.
    const float sink = input.sink_logits[first + i];
    heads.running[i] = {sink, sink == kNoScore ? 0.0F : 1.0F};
  }
  return heads;
}

Visited attend_query(const AttentionInput& input, std::uint32_t index, std::span<const Run> runs,
                     std::span<float> out) noexcept {
  const Sight sight = sight_of(input, input.first_query + index);
  const float* q = input.q.data() + index * out.size();
  std::fill(out.begin(), out.end(), 0.0F);
  const Visited visited = seen_keys(runs, sight);
  if (visited.visited == 0) return visited;
  for (std::uint32_t first = 0; first < input.q_heads; first += kHeadsAtOnce) {
    HeadBlock heads = heads_from(input, first);
    for (const Run& run : runs) {
      for (const Overlap rows : seen_rows(run, sight))
        for (std::uint32_t i = rows.from; i < rows.to; ++i)
          add_row(input, q, k_values(input, run, i), v_values(input, run, i), heads, out);
    }
    finish(heads, input.head_dim, out);
  }
  return visited;
}

const float* values_of(const RowCode* code, const std::byte* row, std::span<float> room) noexcept {
  if (code == nullptr || code->type == DType::f32) return reinterpret_cast<const float*>(row);
  decode_row(*code, {row, row_bytes(*code, room.size())}, room);
  return room.data();
}

}  // namespace

const float* k_values(const AttentionInput& input, const Run& run, std::uint32_t i) noexcept {
  return values_of(run.k_code, run.k_row(i), input.row_room.first(input.row_room.size() / 2));
}

const float* v_values(const AttentionInput& input, const Run& run, std::uint32_t i) noexcept {
  return values_of(run.v_code, run.v_row(i), input.row_room.last(input.row_room.size() / 2));
}

void attend_online(const AttentionInput& input, std::span<const Run> runs, std::span<float> out,
                   std::span<Visited> visited) noexcept {
  KVW_ASSERT(input.kv_heads > 0 && input.q_heads % input.kv_heads == 0);
  const std::size_t row = std::size_t{input.q_heads} * input.head_dim;
  KVW_ASSERT(input.q.size() >= row * input.count && out.size() >= row * input.count && visited.size() >= input.count);
  for (std::uint32_t i = 0; i < input.count; ++i) visited[i] = attend_query(input, i, runs, out.subspan(i * row, row));
}

Range AttentionPath::key_range(LayerIndex, WindowSize window, Position first, std::uint32_t count) const noexcept {
  return {trace::window_low(window, first), first + count};
}

trace::KernelKind AttentionPath::kernel(const AttentionInput& input) const noexcept {
  if (input.two_pass != nullptr) return trace::KernelKind::golden;
  const std::size_t room = block_room_bytes(input.q_heads, input.kv_heads, input.head_dim, input.count);
  return input.block_room.size() >= room ? trace::KernelKind::blocked : trace::KernelKind::online;
}

void AttentionPath::attend(LayerIndex, const AttentionInput& input, std::span<const Run> runs, std::span<float> out,
                           std::span<Visited> visited) const noexcept {
  if (input.two_pass != nullptr)
    attend_golden(input, input.two_pass->extra, runs, input.two_pass->scores, out, visited);
  else if (AttentionPath::kernel(input) == trace::KernelKind::blocked)
    attend_blocked(input, runs, out, visited);
  else
    attend_online(input, runs, out, visited);
}

}  // namespace kvwitness::core
