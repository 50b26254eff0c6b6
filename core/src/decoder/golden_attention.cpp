#include "kvwitness/core/decoder/golden_attention.hpp"

#include "decoder/golden_kernels.hpp"
#include "kvwitness/trace/assert.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace kvwitness::core {
namespace {

/// Keys that one query sees: positions [low, position], and those below `sinks`.
struct Sight {
  Position low;
  Position position;
  std::uint32_t sinks;
};

/// Rows [from, to) of a run.
struct Overlap {
  std::uint32_t from = 0;
  std::uint32_t to = 0;
};

/// Rows of a run that are seen: those below the sinks' end, then those in the window.
std::array<Overlap, 2> visible_rows(const Run& run, const Sight& sight) noexcept {
  const std::uint64_t first = run.first;
  const std::uint64_t end = std::max(first, std::min(first + run.count, std::uint64_t{sight.position} + 1));
  const std::uint64_t sinks_end = std::clamp<std::uint64_t>(sight.sinks, first, end);
  const std::uint64_t low = std::clamp<std::uint64_t>(sight.low, sinks_end, end);
  const auto row = [first](std::uint64_t position) { return static_cast<std::uint32_t>(position - first); };
  return {Overlap{0, row(sinks_end)}, Overlap{row(low), row(end)}};
}

/// Calls f(run, rows) for all that is visible, ascending in position: the cached rows, then the drafts.
template <class F>
void for_visible(std::span<const Run> runs, std::span<const Run> drafts, const Sight& sight, F&& f) {
  for (const auto list : {runs, drafts})
    for (const Run& run : list)
      for (const Overlap rows : visible_rows(run, sight))
        if (rows.from < rows.to) f(run, rows);
}

void cap(std::span<float> scores, float softcap) noexcept {
  if (!(softcap > 0)) return;
  for (float& s : scores) s = softcap * static_cast<float>(std::tanh(static_cast<double>(s / softcap)));
}

bool is_f32(const RowCode* code) noexcept {
  return code == nullptr || code->type == DType::f32;
}

/// One query row over all its heads. Heads of a group go over their rows together, as many as there is scratch for.
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
                [&](const Run& run, Overlap rows) { told.add(run.first + rows.from, run.first + rows.to); });
    return told;
  }

  [[nodiscard]] std::size_t visible_drafts() const noexcept {
    std::size_t count = 0;
    for_visible({}, extra_.drafts, sight_, [&](const Run& /*run*/, Overlap rows) { count += rows.to - rows.from; });
    return count;
  }

  /// `seen` is the number of visible keys, for each of which `scores` has an entry.
  void attend(std::size_t seen, std::span<float> scores, std::span<float> out) const noexcept {
    std::ranges::fill(out, 0.0F);
    if (seen == 0) return;
    const std::size_t group = input_.q_heads / input_.kv_heads;
    const std::size_t together = std::min(group, scores.size() / seen);
    for (std::size_t head = 0; head < input_.q_heads; head += group)
      for (std::size_t h = 0; h < group; h += together)
        attend_heads(head + h, {scores.data(), seen, std::min(together, group - h)}, out.data());
  }

 private:
  [[nodiscard]] std::size_t width() const noexcept { return std::size_t{input_.q_heads} * input_.head_dim; }
  [[nodiscard]] std::size_t kv_offset(std::size_t head) const noexcept {
    return head / (input_.q_heads / input_.kv_heads) * input_.head_dim;
  }

  /// Heads [head, head + scores.count), all of one kv head.
  void attend_heads(std::size_t head, GoldenHeads<float> scores, float* out) const noexcept {
    const GoldenKernels& kernels = golden_kernels();
    const std::size_t dim = input_.head_dim;
    score(head, scores);
    cap({scores.first, scores.stride * scores.count}, input_.softcap);
    kernels.softmax(scores, scores.stride, input_.sink_logits.empty() ? nullptr : &input_.sink_logits[head]);
    GoldenHeads<const float> weights{scores.first, scores.stride, scores.count};
    for_rows(kv_offset(head), Side::v, [&](const GoldenRows& rows) {
      kernels.add(weights, rows, dim, {out + head * dim, dim, scores.count});
      weights.first += rows.count;
    });
  }

  void score(std::size_t head, GoldenHeads<float> scores) const noexcept {
    const std::size_t dim = input_.head_dim;
    for_rows(kv_offset(head), Side::k, [&](const GoldenRows& rows) {
      golden_kernels().score({q_ + head * dim, dim, scores.count}, rows, dim, input_.score_scale, scores);
      scores.first += rows.count;
    });
  }

  enum class Side : std::uint8_t { k, v };

  /// Calls f(rows) for the visible rows of a kv head, as many at a time as lie as f32 one after the other.
  template <class F>
  void for_rows(std::size_t offset, Side side, F&& f) const noexcept {
    for_visible(runs_, extra_.drafts, sight_, [&](const Run& run, Overlap rows) {
      const auto values = [&](std::uint32_t row) {
        const float* const first = side == Side::k ? k_values(input_, run, row) : v_values(input_, run, row);
        return reinterpret_cast<const std::byte*>(first + offset);
      };
      const std::size_t stride = side == Side::k ? run.k_stride_bytes : run.v_stride_bytes;
      if (is_f32(side == Side::k ? run.k_code : run.v_code)) {
        f(GoldenRows{values(rows.from), stride, rows.to - rows.from});
        return;
      }
      for (std::uint32_t row = rows.from; row < rows.to; ++row) f(GoldenRows{values(row), 0, 1});
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
    row.attend(seen, scores, out.subspan(i * width, width));
  }
}

}  // namespace kvwitness::core
