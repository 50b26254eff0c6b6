#include "kvwitness/core/poison.hpp"
#include "seam/traced_call.hpp"

#include <algorithm>
#include <bit>
#include <functional>

namespace kvwitness::core {

using trace::Operation;

namespace {

/// Sorted by address, as fill_dead_memory wants them.
Outcome<Done> rows_to_spare(const KvStore& store, const StoreLayout& layout, KeptRows& kept) {
  // Only a store whose windows name its own memory can say where its rows lie.
  if (!can(layout, trace::Capability::zero_copy)) return refuse(Operation::poison, RefusalCode::unsupported);
  const auto known = store.rows_kept(kept);
  std::ranges::sort(kept, std::less<>(), &std::span<const std::byte>::data);
  return known;
}

}  // namespace

Outcome<Done> TracedStore::poison(PoisonFill fill) {
  Call call{.operation = Operation::poison,
            .subject = {index_, 0, trace::kNoLayer},
            .count = config().sequences,
            .source = {.stream = 0, .ordinal = static_cast<std::uint32_t>(fill)}};
  begin(call);
  KeptRows kept;
  const auto known = guarded<Done>(call.operation, [&] { return rows_to_spare(*store_, layout_, kept); });
  std::uint64_t filled = 0;
  const auto done = measured<Done>(call, [&]() -> Outcome<Done> {
    if (known) filled = fill_dead_memory(store_->memory(), kept, fill);
    return known;
  });
  if (!done) return refused(call, done.refusal());
  trace::Counter told{};
  told.name = report_names_.poisoned_bytes;
  told.value_bits = std::bit_cast<std::uint64_t>(static_cast<double>(filled));
  told.unit = trace::Unit::bytes;
  bus_->emit(call.subject, told);
  end(call, RefusalCode::none);
  for (SequenceId sequence = 0; sequence < config().sequences; ++sequence)
    digest_state(sequence, trace::DigestReason::after_edit);
  return Done{};
}

}  // namespace kvwitness::core
