#include "script/stage_needs.hpp"

#include "script/walk.hpp"

#include <algorithm>

namespace kvwitness::scenarios {
namespace {

using trace::Operation;

void add_step(const Step& step, std::size_t layers, StageNeeds& needs) {
  switch (step.operation) {
    case Operation::append: needs.rows_max = std::max(needs.rows_max, rows_at_once(step)); break;
    case Operation::prefill:
      needs.rows_max = std::max(needs.rows_max, rows_at_once(step));
      needs.queries_max = std::max(needs.queries_max, rows_at_once(step));
      break;
    case Operation::verify:
      needs.rows_max = std::max(needs.rows_max, step.count);
      needs.queries_max = std::max(needs.queries_max, step.count);
      break;
    case Operation::decode:
      if (step.batch)
        needs.queries_max = std::max(needs.queries_max, static_cast<std::uint32_t>(step.interleaved.size()));
      break;
    case Operation::workload: needs.rows_max = std::max(needs.rows_max, kChunkDefault); break;
    case Operation::attend: needs.queries_max = std::max(needs.queries_max, step.count); break;
    case Operation::window:
      if (!step.as.empty())
        needs.held_max += (step.layer ? 1 : layers) * std::max<std::size_t>(1, step.interleaved.size());
      break;
    case Operation::read: needs.reads = true; break;
    default: break;
  }
  needs.names_spans |= !step.span.empty();
  needs.gathers |= step.path == AttentionSource::gather;
}

}  // namespace

StageNeeds needs_of(std::span<const Step> steps, std::size_t layers) {
  StageNeeds needs;
  for_each_step(steps, [&](const Step& step, std::uint64_t /*times*/) { add_step(step, layers, needs); });
  return needs;
}

bool expects_refusal(const Step& step) noexcept {
  return step.expect.value_or(trace::RefusalCode::none) != trace::RefusalCode::none;
}

std::uint32_t rows_at_once(const Step& step) noexcept {
  if (step.layer || expects_refusal(step)) return std::max(1U, step.count);
  const std::uint32_t chunk = step.chunk != 0 ? step.chunk : kChunkDefault;
  return std::clamp(step.count, 1U, chunk);
}

}  // namespace kvwitness::scenarios
