#include "kvwitness/trace/assert.hpp"
#include "kvwitness/trace/digest.hpp"
#include "kvwitness/trace/event_table.hpp"
#include "xxh3.hpp"

#include <algorithm>
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

/// The record enters the digest as it is.
bool is_canonical(const Event& event) noexcept {
  const auto& mask = kMasks[static_cast<std::size_t>(event.type)];
  std::uint64_t other = event.time;
  for (std::size_t i = 0; i < mask.size(); ++i) other |= event.payload[i] & ~mask[i];
  return other == 0;
}

Event made_canonical(Event event) noexcept {
  const auto& mask = kMasks[static_cast<std::size_t>(event.type)];
  event.time = 0;
  for (std::size_t i = 0; i < mask.size(); ++i) event.payload[i] &= mask[i];
  return event;
}

}  // namespace

/// Streaming goes through the library: inlined, it makes g++ 12 warn of reads that do not happen. Most records are
/// canonical as they are, and are handed over where they lie; others are gathered, so that a call costs little each.
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
  void gather(const Event& event) noexcept {
    pending[used++] = made_canonical(event);
    if (used == pending.size()) hand_over();
  }
};

RunDigest::RunDigest() : state_(std::make_unique<State>()) {
  reset();
}
RunDigest::~RunDigest() = default;

void RunDigest::add(std::span<const Event> events) noexcept {
  // So few are cheaper to gather than to hand over by themselves.
  constexpr std::ptrdiff_t kWorthACall = 8;
  for (auto at = events.begin(); at != events.end();) {
    const auto end = std::find_if_not(at, events.end(), is_canonical);
    if (end - at >= kWorthACall) {
      state_->hand_over();
      XXH3_64bits_update(state_->xxh, &*at, static_cast<std::size_t>(end - at) * sizeof(Event));
    } else {
      std::for_each(at, end, [this](const Event& event) { state_->gather(event); });
    }
    at = end;
    if (at != events.end()) state_->gather(*at++);
  }
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
