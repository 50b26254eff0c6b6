#include "mutants/unsaid.hpp"

#include <algorithm>

namespace kvwitness::scenarios::mutants {

namespace {

/// Keys that the query sees of the runs it was given, by the declared window.
[[nodiscard]] core::Visited lawful(const core::AttentionInput& row, std::span<const core::Run> runs) noexcept {
  if (runs.empty()) return {};
  const core::Position low = std::max(trace::window_low(row.window, row.first_query), runs.front().first);
  if (low > row.first_query) return {};
  const std::uint32_t keys = row.first_query - low + 1;
  return {low, row.first_query, keys, keys};
}

}  // namespace

core::AttentionInput query_row(const core::AttentionInput& input, std::uint32_t index) noexcept {
  const std::size_t elements = std::size_t{input.q_heads} * input.head_dim;
  core::AttentionInput row = input;
  row.q = input.q.subspan(index * elements, elements);
  row.first_query = input.first_query + index;
  row.count = 1;
  return row;
}

std::span<float> out_row(const core::AttentionInput& input, std::span<float> out, std::uint32_t index) noexcept {
  const std::size_t elements = std::size_t{input.q_heads} * input.head_dim;
  return out.subspan(index * elements, elements);
}

void UnsaidPath::attend(core::LayerIndex layer, const core::AttentionInput& input, std::span<const core::Run> runs,
                        std::span<float> out, std::span<core::Visited> visited) const noexcept {
  for (std::uint32_t i = 0; i < input.count; ++i) {
    const core::AttentionInput row = query_row(input, i);
    attend_row(layer, row, runs, out_row(input, out, i));
    visited[i] = lawful(row, runs);
  }
}

void UnsaidPath::attend_quietly(core::LayerIndex layer, const core::AttentionInput& row,
                                std::span<const core::Run> runs, std::span<float> out) const noexcept {
  core::Visited unsaid;
  AttentionPath::attend(layer, row, runs, out, std::span(&unsaid, 1));
}

}  // namespace kvwitness::scenarios::mutants
