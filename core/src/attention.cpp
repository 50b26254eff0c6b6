#include "kvwitness/core/attention.hpp"

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

/// Rows of `run` that lie in [low, high], as indices [from, to).
struct Overlap {
  std::uint32_t from = 0;
  std::uint32_t to = 0;
};
Overlap overlap(const Run& run, Position low, Position high) noexcept {
  const std::uint64_t end = std::min(std::uint64_t{run.first} + run.count, std::uint64_t{high} + 1);
  const std::uint64_t from = std::max<std::uint64_t>(run.first, low);
  if (from >= end) return {};
  return {static_cast<std::uint32_t>(from - run.first), static_cast<std::uint32_t>(end - run.first)};
}

/// What one query sees: positions [low, query], and the sinks.
struct Sight {
  Position low = 0;
  Position query = 0;
  std::uint32_t sinks = 0;
};

/// Rows of a run that are seen: as sinks, then in the window.
std::array<Overlap, 2> seen_rows(const Run& run, const Sight& sight) noexcept {
  if (sight.sinks == 0) return {Overlap{}, overlap(run, sight.low, sight.query)};
  return {overlap(run, 0, std::min(sight.query, sight.sinks - 1)),
          overlap(run, std::max(sight.low, sight.sinks), sight.query)};
}

void finish(HeadBlock& heads, std::size_t dim, std::span<float> out) noexcept {
  for (std::uint32_t i = 0; i < heads.count; ++i) {
    const float sum = heads.running[i].sum;
    // Without any weight the row is zero already; a NaN in it has to stay.
    if (sum == 0) continue;
    for (float& value : out.subspan((heads.first + i) * dim, dim)) value /= sum;
  }
}

Visited attend_query(const AttentionInput& input, std::uint32_t index, std::span<const Run> runs,
                     std::span<float> out) noexcept {
  const Position query = input.first_query + index;
  const Sight sight{trace::window_low(input.window, query), query, input.sinks};
  const float* q = input.q.data() + index * out.size();
  std::fill(out.begin(), out.end(), 0.0F);
  Visited visited;
  for (const Run& run : runs)
    for (const Overlap rows : seen_rows(run, sight)) visited.add(run.first + rows.from, run.first + rows.to);
  for (std::uint32_t first = 0; first < input.q_heads; first += kHeadsAtOnce) {
    HeadBlock heads{first, std::min(kHeadsAtOnce, input.q_heads - first), {}};
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

void Visited::add(Position first, Position end) noexcept {
  if (first >= end) return;
  if (visited == 0)
    first_key = first;
  else if (first > last_key + 1 && gap.empty())
    gap = {last_key + 1, first};
  last_key = end - 1;
  visited += end - first;
  rows_read = visited;
}

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

void AttentionPath::attend(LayerIndex, const AttentionInput& input, std::span<const Run> runs, std::span<float> out,
                           std::span<Visited> visited) const noexcept {
  if (input.two_pass != nullptr)
    attend_golden(input, input.two_pass->extra, runs, input.two_pass->scores, out, visited);
  else
    attend_online(input, runs, out, visited);
}

}  // namespace kvwitness::core
