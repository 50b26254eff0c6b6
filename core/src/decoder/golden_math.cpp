#include "kvwitness/core/decoder/golden_math.hpp"

#include "kvwitness/trace/assert.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace kvwitness::core {
namespace {

constexpr std::size_t kLanes = 8;

/// The lane loop is what the compiler turns into vectors; the order of additions in a lane is the specified one.
float dot(const float* w, const float* x, std::size_t count) noexcept {
  std::array<float, kLanes> lane{};
  const std::size_t whole = count - count % kLanes;
  for (std::size_t i = 0; i < whole; i += kLanes)
    for (std::size_t l = 0; l < kLanes; ++l) lane[l] += w[i + l] * x[i + l];
  float sum = ((lane[0] + lane[1]) + (lane[2] + lane[3])) + ((lane[4] + lane[5]) + (lane[6] + lane[7]));
  for (std::size_t i = whole; i < count; ++i) sum += w[i] * x[i];
  return sum;
}

float serial_dot(const float* a, const float* b, std::size_t count) noexcept {
  float sum = 0;
  for (std::size_t i = 0; i < count; ++i) sum += a[i] * b[i];
  return sum;
}

const float* floats(const std::byte* row) noexcept { return reinterpret_cast<const float*>(row); }

/// Calls f(position, k row, v row) for every visible row, ascending.
template <class F>
void for_visible(std::span<const Run> runs, Position low, Position query, std::uint32_t sinks, F&& f) {
  for (const Run& run : runs) {
    for (std::uint32_t i = 0; i < run.count; ++i) {
      const Position position = run.first + i;
      if (position > query) return;
      if (position >= low || position < sinks) f(position, run.k_row(i), run.v_row(i));
    }
  }
}

struct QueryView {
  const float* q;   // one head
  Position position;
  Position low;
  std::uint32_t kv_head;
};

float capped(float score, float softcap) noexcept {
  if (!(softcap > 0)) return score;
  return softcap * static_cast<float>(std::tanh(static_cast<double>(score / softcap)));
}

/// Scores of one head over its visible keys; returns their count.
std::size_t score_head(const AttentionInput& input, const QueryView& query, std::uint32_t sinks, std::span<const Run> runs,
                       std::span<float> scores) noexcept {
  std::size_t seen = 0;
  const std::size_t offset = std::size_t{query.kv_head} * input.head_dim;
  for_visible(runs, query.low, query.position, sinks, [&](Position, const std::byte* k, const std::byte*) {
    KVW_ASSERT(seen < scores.size());
    const float s = serial_dot(query.q, floats(k) + offset, input.head_dim) * input.score_scale;
    scores[seen++] = capped(s, input.softcap);
  });
  return seen;
}

/// Turns scores into weights. A sink joins the maximum and the denominator, but carries no value.
void softmax(std::span<float> scores, const float* sink) noexcept {
  float top = sink != nullptr ? *sink : -std::numeric_limits<float>::infinity();
  for (const float s : scores)
    if (s > top || std::isnan(s)) top = s;
  if (top == -std::numeric_limits<float>::infinity()) {
    std::ranges::fill(scores, 0.0F);
    return;
  }
  float sum = 0;
  for (float& s : scores) {
    s = static_cast<float>(std::exp(static_cast<double>(s - top)));
    sum += s;
  }
  if (sink != nullptr) sum += static_cast<float>(std::exp(static_cast<double>(*sink - top)));
  for (float& s : scores) s /= sum;
}

}  // namespace

void project(std::span<const float> weights, std::span<const float> x, std::span<float> out) noexcept {
  KVW_ASSERT(weights.size() == x.size() * out.size());
  for (std::size_t o = 0; o < out.size(); ++o) out[o] = dot(weights.data() + o * x.size(), x.data(), x.size());
}

void rms_norm(std::span<const float> x, std::span<const float> weight, float eps, std::span<float> out) noexcept {
  KVW_ASSERT(x.size() == weight.size() && x.size() == out.size());
  float squares = 0;
  for (const float value : x) squares += value * value;
  const float mean = squares / static_cast<float>(x.size()) + eps;
  const auto inverse = static_cast<float>(1.0 / std::sqrt(static_cast<double>(mean)));
  for (std::size_t i = 0; i < x.size(); ++i) out[i] = (x[i] * inverse) * weight[i];
}

void swiglu(std::span<float> gate, std::span<const float> up) noexcept {
  KVW_ASSERT(gate.size() == up.size());
  for (std::size_t i = 0; i < gate.size(); ++i) {
    const float z = gate[i];
    gate[i] = z / (1.0F + static_cast<float>(std::exp(static_cast<double>(-z)))) * up[i];
  }
}

void add_into(std::span<float> x, std::span<const float> y) noexcept {
  KVW_ASSERT(x.size() == y.size());
  for (std::size_t i = 0; i < x.size(); ++i) x[i] += y[i];
}

std::uint32_t argmax(std::span<const float> values) noexcept {
  if (values.empty()) return 0;
  return static_cast<std::uint32_t>(std::ranges::max_element(values) - values.begin());
}

void attend_golden(const AttentionInput& input, const GoldenAttention& extra, std::span<const Run> runs,
                   std::span<float> scores, std::span<float> out, std::span<Visited> visited) noexcept {
  const std::size_t width = std::size_t{input.q_heads} * input.head_dim;
  const std::uint32_t group = input.q_heads / input.kv_heads;
  for (std::uint32_t i = 0; i < input.count; ++i) {
    const Position position = input.first_query + i;
    const Position low = trace::window_low(input.window, position);
    const std::span<float> row = out.subspan(i * width, width);
    std::ranges::fill(row, 0.0F);
    std::size_t seen = 0;
    for (std::uint32_t head = 0; head < input.q_heads; ++head) {
      const QueryView query{input.q.data() + i * width + std::size_t{head} * input.head_dim, position, low, head / group};
      seen = score_head(input, query, extra.positional_sinks, runs, scores);
      softmax(scores.first(seen), extra.sink_logits.empty() ? nullptr : &extra.sink_logits[head]);
      std::size_t at = 0;
      const std::size_t offset = std::size_t{query.kv_head} * input.head_dim;
      float* const o = row.data() + std::size_t{head} * input.head_dim;
      for_visible(runs, low, position, extra.positional_sinks, [&](Position, const std::byte*, const std::byte* v) {
        const float weight = scores[at++];
        for (std::uint32_t d = 0; d < input.head_dim; ++d) o[d] += weight * floats(v)[offset + d];
      });
    }
    Visited& told = visited[i];
    told = {};
    told.visited = static_cast<std::uint32_t>(seen);
    told.rows_read = told.visited;
    for_visible(runs, low, position, extra.positional_sinks, [&](Position p, const std::byte*, const std::byte*) {
      if (told.first_key == trace::kNoPosition) told.first_key = p;
      told.last_key = p;
    });
  }
}

}  // namespace kvwitness::core
