#include "kvwitness/trace/assert.hpp"
#include "kvwitness/trace/digest.hpp"
#include "kvwitness/trace/event_table.hpp"
#include "xxh3.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>

namespace kvwitness::trace {
namespace {

constexpr std::size_t kWords = sizeof(Event) / sizeof(std::uint64_t);
constexpr std::size_t kPayloadWord = offsetof(Event, payload) / sizeof(std::uint64_t);
using Words = std::array<std::uint64_t, kWords>;

/// Bits of a record that do not enter the digest, by type id; of types that are not known only the time's.
using Masks = std::array<Words, 256>;

Masks make_masks() noexcept {
  Masks left_out{};
  for (Words& words : left_out) words[offsetof(Event, time) / sizeof(std::uint64_t)] = ~0ULL;
  for (const TypeInfo& info : all_types()) {
    for (std::size_t i = 0; i < info.canonical_mask.size(); ++i)
      left_out[static_cast<std::size_t>(info.type)][kPayloadWord + i] = ~info.canonical_mask[i];
  }
  return left_out;
}

const Masks kLeftOut = make_masks();

/// The record enters the digest as it is.
bool is_canonical(const Event& event) noexcept {
  const Words& left_out = kLeftOut[static_cast<std::size_t>(event.type)];
  const auto words = std::bit_cast<Words>(event);
  std::uint64_t other = 0;
  for (std::size_t i = 0; i < kWords; ++i) other |= words[i] & left_out[i];
  return other == 0;
}

void make_canonical(const Event& event, Words& canonical) noexcept {
  const Words& left_out = kLeftOut[static_cast<std::size_t>(event.type)];
  const auto words = std::bit_cast<Words>(event);
  for (std::size_t i = 0; i < kWords; ++i) canonical[i] = words[i] & ~left_out[i];
}

}  // namespace

/// Streaming goes through the library: inlined, it makes g++ 12 warn of reads that do not happen. Most records are
/// canonical as they are, and are handed over where they lie; others are gathered, so that a call costs little each.
struct RunDigest::State {
  XXH3_state_t* xxh = XXH3_createState();
  std::array<Words, 16> pending;
  std::size_t used = 0;

  State() { KVW_ASSERT(xxh != nullptr); }
  ~State() { XXH3_freeState(xxh); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  void hand_over() noexcept {
    XXH3_64bits_update(xxh, pending.data(), used * sizeof(Words));
    used = 0;
  }
  void gather(const Event& event) noexcept {
    make_canonical(event, pending[used++]);
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
