#include "kvwitness/core/decoder/golden_attention.hpp"

#include "kvwitness/trace/assert.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace kvwitness::core {
namespace {

constexpr float kNoScore = -std::numeric_limits<float>::infinity();

/// Keys that one query sees: positions [low, position], and those below `sinks`.
struct Sight {
  Position low;
  Position position;
  std::uint32_t sinks;
};

/// Calls f(row index) for the rows of a run that are seen, ascending.
template <class F>
void for_visible_rows(const Run& run, const Sight& sight, F&& f) {
  const std::uint64_t first = run.first;
  const std::uint64_t end = std::min(first + run.count, std::uint64_t{sight.position} + 1);
  const std::uint64_t sinks_end = std::min<std::uint64_t>(end, sight.sinks);
  for (std::uint64_t p = first; p < sinks_end; ++p) f(static_cast<std::uint32_t>(p - first));
  for (std::uint64_t p = std::max({first, sinks_end, std::uint64_t{sight.low}}); p < end; ++p)
    f(static_cast<std::uint32_t>(p - first));
}

/// Calls f(run, row index) for every visible key, ascending in position: the cached ones, then the drafts.
template <class F>
void for_visible(std::span<const Run> runs, std::span<const Run> drafts, const Sight& sight, F&& f) {
  for (const auto list : {runs, drafts})
    for (const Run& run : list) for_visible_rows(run, sight, [&](std::uint32_t row) { f(run, row); });
}

float serial_dot(const float* a, const float* b, std::size_t count) noexcept {
  float sum = 0;
  for (std::size_t i = 0; i < count; ++i) sum += a[i] * b[i];
  return sum;
}

float capped(float score, float softcap) noexcept {
  if (!(softcap > 0)) return score;
  return softcap * static_cast<float>(std::tanh(static_cast<double>(score / softcap)));
}

/// Turns scores into weights. A sink joins the maximum and the denominator, but carries no value.
void softmax(std::span<float> scores, const float* sink) noexcept {
  float top = sink != nullptr ? *sink : kNoScore;
  for (const float s : scores)
    if (s > top || std::isnan(s)) top = s;
  if (top == kNoScore) {
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

/// One query row over all its heads.
class QueryRow {
 public:
  QueryRow(const AttentionInput& input, const GoldenAttention& extra, std::span<const Run> runs, std::uint32_t index)
      : input_(input), extra_(extra), runs_(runs), q_(input.q.data() + index * width()) {
    const Position position = input.first_query + index;
    sight_ = {trace::window_low(input.window, position), position, std::max(input.sinks, extra.positional_sinks)};
  }

  /// Of the cached keys; drafts are no rows of the store.
  [[nodiscard]] Visited visited() const noexcept {
    Visited told;
    for_visible(runs_, {}, sight_,
                [&](const Run& run, std::uint32_t row) { told.add(run.first + row, run.first + row + 1); });
    return told;
  }

  [[nodiscard]] std::size_t visible_drafts() const noexcept {
    std::size_t count = 0;
    for_visible({}, extra_.drafts, sight_, [&](const Run& /*run*/, std::uint32_t /*row*/) { ++count; });
    return count;
  }

  /// `scores` has one entry for each visible key.
  void attend(std::span<float> scores, std::span<float> out) const noexcept {
    std::ranges::fill(out, 0.0F);
    for (std::uint32_t head = 0; head < input_.q_heads; ++head) {
      score(head, scores);
      softmax(scores, input_.sink_logits.empty() ? nullptr : &input_.sink_logits[head]);
      add_values(head, scores, out.subspan(std::size_t{head} * input_.head_dim, input_.head_dim));
    }
  }

 private:
  [[nodiscard]] std::size_t width() const noexcept { return std::size_t{input_.q_heads} * input_.head_dim; }
  [[nodiscard]] std::size_t kv_offset(std::uint32_t head) const noexcept {
    return std::size_t{head / (input_.q_heads / input_.kv_heads)} * input_.head_dim;
  }

  void score(std::uint32_t head, std::span<float> scores) const noexcept {
    const float* const q = q_ + std::size_t{head} * input_.head_dim;
    const std::size_t offset = kv_offset(head);
    std::size_t at = 0;
    for_visible(runs_, extra_.drafts, sight_, [&](const Run& run, std::uint32_t row) {
      const float s = serial_dot(q, k_values(input_, run, row) + offset, input_.head_dim) * input_.score_scale;
      scores[at++] = capped(s, input_.softcap);
    });
  }

  void add_values(std::uint32_t head, std::span<const float> weights, std::span<float> out) const noexcept {
    const std::size_t offset = kv_offset(head);
    std::size_t at = 0;
    for_visible(runs_, extra_.drafts, sight_, [&](const Run& run, std::uint32_t row) {
      const float weight = weights[at++];
      const float* const v = v_values(input_, run, row) + offset;
      for (std::size_t d = 0; d < out.size(); ++d) out[d] += weight * v[d];
    });
  }

  const AttentionInput& input_;
  const GoldenAttention& extra_;
  std::span<const Run> runs_;
  const float* q_;
  Sight sight_{};
};

}  // namespace

CachedKeys cached_keys(const AttentionInput& input, const GoldenAttention& extra, Position end) noexcept {
  CachedKeys keys;
  keys.window.to = std::min(input.first_query + input.count, end);
  keys.window.from = std::min(trace::window_low(input.window, input.first_query), keys.window.to);
  keys.sinks.to = std::min<Position>(extra.positional_sinks, keys.window.from);
  return keys;
}

void attend_golden(const AttentionInput& input, const GoldenAttention& extra, std::span<const Run> runs,
                   std::span<float> scores, std::span<float> out, std::span<Visited> visited) noexcept {
  const std::size_t width = std::size_t{input.q_heads} * input.head_dim;
  for (std::uint32_t i = 0; i < input.count; ++i) {
    const QueryRow row(input, extra, runs, i);
    visited[i] = row.visited();
    const std::size_t seen = visited[i].visited + row.visible_drafts();
    KVW_ASSERT(seen <= scores.size());
    row.attend(scores.first(seen), out.subspan(i * width, width));
  }
}

}  // namespace kvwitness::core
