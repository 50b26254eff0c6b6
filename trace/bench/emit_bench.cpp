/// What an event costs where it happens: Bus::emit against the least that any recorder does, which is to write a record
/// of the same size into a ring of its own, and, stamped, to read the clock as well.
#include "emit_chunks.hpp"
#include "kvwitness/trace/bus.hpp"
#include "rows.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace kvwitness::trace::bench {
namespace {

constexpr int kChunks = 2000;

/// Forgets what it gets: what a subscriber does with events is measured elsewhere.
class Nobody final : public Subscriber {
 public:
  void on_batch(std::span<const Event> events) override { benchmark::DoNotOptimize(events.data()); }
};

Append appended(std::uint32_t i) noexcept {
  return {.bytes = 128, .k_digest = i, .v_digest = i, .first = i, .count = 1, .slot = i, .held_from = 0};
}

constexpr Subject kSubject{.store = 0, .sequence = 0, .layer = 1};

std::uint64_t ticks() noexcept {
#if defined(__x86_64__)
  return __rdtsc();
#else
  return 0;
#endif
}

/// A ring that is never read; records are made where they lie.
class Ring {
 public:
  void store(const Append& append, std::uint64_t time) noexcept {
    Event& record = records_[next_ % kChunk];
    record.number = next_++;
    record.time = time;
    record.sequence = kSubject.sequence;
    record.layer = kSubject.layer;
    record.store = kSubject.store;
    record.type = EventType::Append;
    std::memcpy(record.payload.data(), &append, sizeof append);
  }

 private:
  std::vector<Event> records_ = std::vector<Event>(kChunk);
  std::uint64_t next_ = 0;
};

void tell_emit(benchmark::State& state, ClockKind clock, double goal) {
  NameTable names;
  Bus bus(names, {.capacity = kChunk + 64, .batch = kChunk, .clock = clock});
  Nobody nobody;
  bus.subscribe(nobody);
  bus.begin_run({});
  Ring ring;
  const bool is_stamped = clock != ClockKind::none;
  double ours = 1e30;
  double theirs = 1e30;
  for (auto _ : state) {
    theirs =
        std::min(theirs, is_stamped ? fastest_chunk_s(
                                          kChunks, [&](std::uint32_t i) { ring.store(appended(i), ticks()); }, [] {})
                                    : fastest_chunk_s(
                                          kChunks, [&](std::uint32_t i) { ring.store(appended(i), 0); }, [] {}));
    const auto flush = [&bus] { bus.flush(); };
    ours = std::min(ours, is_stamped
                              ? fastest_chunk_s(
                                    kChunks, [&](std::uint32_t i) { bus.emit_stamped(kSubject, appended(i)); }, flush)
                              : fastest_chunk_s(
                                    kChunks, [&](std::uint32_t i) { bus.emit(kSubject, appended(i)); }, flush));
  }
  tell_row(state, {ours, theirs}, kChunk, goal);
}

BENCHMARK_CAPTURE(tell_emit, unstamped, ClockKind::none, 1.5)->Name("trace/emit/ring-store");
BENCHMARK_CAPTURE(tell_emit, stamped, ClockKind::tsc, 1.3)->Name("trace/emit-stamped/ring-store-and-rdtsc");

}  // namespace
}  // namespace kvwitness::trace::bench
