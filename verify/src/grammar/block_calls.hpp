/// What paged stores tell inside their calls.
#pragma once

#include "kvwitness/trace/event.hpp"
#include "kvwitness/verify/checker.hpp"

#include <cstdint>

namespace kvwitness::verify::grammar {

/// Claims about blocks, tables and tiers. Their subject is a sequence whose table it is, and no layer.
inline constexpr TypeSet kBlockClaims{
    trace::EventType::BlockAlloc,   trace::EventType::BlockFree,       trace::EventType::BlockHold,
    trace::EventType::BlockRelease, trace::EventType::BlockCached,     trace::EventType::TableEntry,
    trace::EventType::PrefixHit,    trace::EventType::PrefixPublished, trace::EventType::SwapOut,
    trace::EventType::SwapIn,       trace::EventType::Signal,          trace::EventType::Wait};

/// The calls that only stores with blocks have.
[[nodiscard]] constexpr bool is_block_call(trace::Operation operation) noexcept {
  using enum trace::Operation;
  return operation == fork || operation == reorder || operation == admit || operation == swap_out ||
         operation == swap_in;
}

/// Of kBlockClaims, those that may stand in a call.
[[nodiscard]] constexpr TypeSet block_claims_of(trace::Operation operation) noexcept {
  using enum trace::EventType;
  using trace::Operation;
  switch (operation) {
    case Operation::append: return {BlockAlloc, BlockRelease, BlockFree, BlockCached, TableEntry, PrefixPublished};
    case Operation::truncate:
    case Operation::evict: return {BlockRelease, BlockFree, BlockCached};
    case Operation::clear: return {BlockRelease, BlockFree, BlockCached, PrefixPublished};
    case Operation::restore: return {BlockAlloc, BlockRelease, BlockFree, BlockCached, TableEntry};
    case Operation::fork: return {BlockHold, TableEntry};
    case Operation::reorder: return {BlockHold, BlockRelease, BlockFree, BlockCached, TableEntry};
    case Operation::admit: return {BlockHold, PrefixHit, TableEntry};
    case Operation::swap_out: return {BlockRelease, BlockFree, BlockCached, SwapOut, Signal, Wait};
    case Operation::swap_in: return {BlockAlloc, BlockFree, TableEntry, SwapIn, Signal, Wait};
    default: return {};
  }
}

/// True where the claim's sequence is one that the call is about.
[[nodiscard]] constexpr bool is_of_call(const trace::Event& event, const trace::Called& called,
                                        trace::SequenceId subject) noexcept {
  if (event.layer != trace::kNoLayer) return false;
  if (called.operation == trace::Operation::reorder) return event.sequence < called.count;
  const bool is_child = called.operation == trace::Operation::fork && event.sequence == called.ordinal;
  return event.sequence == subject || is_child;
}

/// Sequences [first, end) whose states are read back after the call was done.
struct ReadBack {
  trace::SequenceId first = 0;
  trace::SequenceId end = 0;
};
[[nodiscard]] constexpr ReadBack read_back_after(const trace::Called& called, trace::SequenceId subject) noexcept {
  const bool is_of_all = called.operation == trace::Operation::reorder || called.operation == trace::Operation::poison;
  if (is_of_all) return {0, called.count};
  if (called.operation == trace::Operation::fork) return {called.ordinal, called.ordinal + 1};
  return {subject, subject + 1};
}

}  // namespace kvwitness::verify::grammar
