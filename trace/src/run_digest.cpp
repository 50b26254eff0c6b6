#include "kvwitness/trace/assert.hpp"
#include "kvwitness/trace/digest.hpp"
#include "kvwitness/trace/event_table.hpp"

#include <xxhash.h>
#include <array>

namespace kvwitness::trace {
namespace {

/// Bits of the payload that enter the digest, by type id; all of those of types that are not known.
using Masks = std::array<std::array<std::uint64_t, 5>, 256>;

Masks make_masks() noexcept {
  Masks masks;
  for (auto& mask : masks) mask.fill(~0ULL);
  for (const TypeInfo& info : all_types()) masks[static_cast<std::size_t>(info.type)] = info.canonical_mask;
  return masks;
}

const Masks kMasks = make_masks();

}  // namespace

/// Streaming goes through the library: inlined, it makes g++ 12 warn of reads that do not happen. Records are handed
/// over sixteen at a time, so that the call costs nothing per event.
struct RunDigest::State {
  XXH3_state_t* xxh = XXH3_createState();
  std::array<Event, 16> pending;
  std::size_t used = 0;

  State() { KVW_ASSERT(xxh != nullptr); }
  ~State() { XXH3_freeState(xxh); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  void hand_over() noexcept {
    XXH3_64bits_update(xxh, pending.data(), used * sizeof(Event));
    used = 0;
  }
};

RunDigest::RunDigest() : state_(std::make_unique<State>()) {
  reset();
}
RunDigest::~RunDigest() = default;

void RunDigest::add(const Event& event) noexcept {
  Event& record = state_->pending[state_->used++];
  record = event;
  record.time = 0;
  const auto& mask = kMasks[static_cast<std::size_t>(event.type)];
  for (std::size_t i = 0; i < mask.size(); ++i) record.payload[i] &= mask[i];
  if (state_->used == state_->pending.size()) state_->hand_over();
}

std::uint64_t RunDigest::value() const noexcept {
  state_->hand_over();
  return XXH3_64bits_digest(state_->xxh);
}

void RunDigest::reset() noexcept {
  state_->used = 0;
  XXH3_64bits_reset(state_->xxh);
}

}  // namespace kvwitness::trace
