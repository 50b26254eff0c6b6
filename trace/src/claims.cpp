#include "kvwitness/trace/claims.hpp"

#include "kvwitness/trace/event_table.hpp"

namespace kvwitness::trace {
namespace {

constexpr WitnessInfo kWitnesses[] = {
    {"window.opened", "a window was handed out"},
    {"window.wrapped",
     "a window that crossed the end of a ring: of several runs, or copied from slots that turn round"},
    {"window.partial", "a window with fewer keys than its layer's window"},
    {"append.any", "rows were appended"},
    {"append.chunk", "more than one row was appended in one call"},
    {"append.wrapped", "one append wrote on both sides of a ring's end"},
    {"append.overwrote", "an append overwrote older positions"},
    {"append.first", "the first token of a sequence was appended"},
    {"append.coded", "rows of a quantised store were coded"},
    {"edit.moved_or_removed", "an edit moved or removed at least one position"},
    {"edit.truncated", "a truncate took back at least one position"},
    {"edit.evicted", "an evict removed at least one position"},
    {"edit.cleared", "a sequence that held something was cleared"},
    {"edit.restored", "a sequence was restored from a file"},
    {"memory.poisoned", "memory that nobody may see was filled"},
    {"refused.any", "a call was refused"},
    {"refused.full", "a call was refused: full"},
    {"refused.evicted", "a call was refused: evicted"},
    {"refused.future", "a call was refused: future"},
    {"refused.stale", "a call was refused: stale"},
    {"refused.unknown-sequence", "a call was refused: unknown-sequence"},
    {"refused.out-of-order", "a call was refused: out-of-order"},
    {"refused.unsupported", "a call was refused: unsupported"},
    {"refused.no-memory", "a call was refused: no-memory"},
    {"refused.corrupt", "a call was refused: corrupt"},
    {"sequence.forked", "a fork shared a block, or copied rows"},
    {"sequence.reordered", "a beam became what another one was"},
    {"sequence.admitted", "a request was admitted"},
    {"sequence.swapped_out", "a block's rows went to the host"},
    {"sequence.swapped_in", "a block's rows came back from the host"},
    {"prefix.hit", "a block of a prompt was found, and not computed again"},
    {"block.copied", "an append copied a block before it wrote to it, for others hold or can find it"},
    {"block.reused", "a cached block was taken for other rows"},
    {"view.held", "attention over a view that was opened before a later append"},
    {"view.stale_refused", "attention over a stale view was refused"},
    {"adapter.inserted", "a copy or conversion stood between the store and its reader"},
    {"attention.step", "attention ran"},
    {"attention.limited", "a query visited fewer keys than there were positions up to it, or has a window of fewer"},
    {"attention.chunk", "attention ran for more than one query in one call"},
    {"sequences.interleaved", "an append to one sequence followed an append to another that went on later"},
    {"phase.by_exception", "a phase was closed by an exception"},
    {"region.measured", "the probe measured a call"},
    {"layers.windows_differ", "two layers have different windows"},
    {"scope.reset", "a memory scope was reset"},
    {"tensor.recorded", "a tensor was recorded"},
};

}  // namespace

std::vector<WitnessInfo> known_witnesses() {
  return {std::begin(kWitnesses), std::end(kWitnesses)};
}

std::string_view to_text(Comparison by) noexcept {
  switch (by) {
    case Comparison::bits: return "bits";
    case Comparison::max_ulp: return "max_ulp";
    case Comparison::abs_rel: return "abs_rel";
    case Comparison::cosine_min: return "cosine_min";
  }
  return "unknown";
}

}  // namespace kvwitness::trace
