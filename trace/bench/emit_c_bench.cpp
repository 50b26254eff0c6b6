/// What an event costs an engine that writes its trace by kvwitness/emit.h: into the ring, and out of it as a line.
#include "emit_chunks.hpp"
#include "kvwitness/emit.h"
#include "rows.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <vector>

namespace kvwitness::trace::bench {
namespace {

constexpr int kChunks = 500;

/// The least that a recorder does: a record in a ring, and where the next one goes.
struct BareRing {
  kvw_record* records;
  std::uint64_t next;

  void store(std::uint32_t i) noexcept {
    kvw_record& record = records[next % kChunk];
    record = {next, 0, 0, 0, 0, KVW_APPEND, {128, i, i, kvw_pair(i, 1), kvw_pair(i, 0)}};
    ++next;
  }
};

void emit_in_c(benchmark::State& state) {
  std::FILE* nowhere = std::fopen("/dev/null", "w");
  if (nowhere == nullptr) return state.SkipWithError("no /dev/null");
  std::vector<kvw_record> ring(kChunk + 64);
  std::vector<kvw_record> records(kChunk);
  BareRing bare{records.data(), 0};
  kvw_emitter emitter;
  kvw_begin(&emitter, nowhere, ring.data(), ring.size(), "bench", "bench");
  double ours = 1e30;
  double theirs = 1e30;
  double draining = 1e30;
  for (auto _ : state) {
    const auto store = [&bare](std::uint32_t i) {
      bare.store(i);
      benchmark::ClobberMemory();
    };
    theirs = std::min(theirs, fastest_chunk_s(kChunks, store, [] {}));
    const auto emit = [&emitter](std::uint32_t i) {
      kvw_appended(&emitter, i, 1, i, 0, 128, i, i);
      benchmark::ClobberMemory();
    };
    ours = std::min(ours, fastest_chunk_s(kChunks, emit, [&] {
                      const double start = cpu_s();
                      (void)kvw_drain(&emitter);
                      draining = std::min(draining, cpu_s() - start);
                    }));
  }
  tell_row(state, {ours, theirs}, kChunk, 0.0);
  state.counters["ns_line"] = draining / kChunk * 1e9;
  std::fclose(nowhere);
}

BENCHMARK(emit_in_c)->Name("trace/emit-in-c/ring-store");

}  // namespace
}  // namespace kvwitness::trace::bench
