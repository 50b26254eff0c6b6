/// The allocation probe: exact counts of heap and mmap calls of the calling thread.
///
/// The interposer itself (target kvwitness::probe) is linked into executables only. Libraries ask here, and get
/// `unmeasured` where it is not linked, where its canary failed, or under sanitizers.
#pragma once

#include "kvwitness/trace/event.hpp"

#include <cstdint>
#include <string_view>

namespace kvwitness::trace {

/// Totals of one thread since it started. Never averaged: 99 allocations in 100 steps are not 0. Calls count, whether
/// or not they got memory; a realloc or mremap that moves or resizes a block is one allocation and one free.
struct ProbeReading {
  std::uint64_t allocations = 0;  ///< malloc family, operator new and mmap
  std::uint64_t frees = 0;        ///< of blocks; free(nullptr) is none
  std::uint64_t bytes = 0;        ///< asked for

  friend bool operator==(const ProbeReading&, const ProbeReading&) noexcept = default;
};

enum class ProbeState : std::uint32_t {
  not_linked = 0,
  canary_failed = 1,  ///< the interposer is there, but did not see everything that it must see
  measuring = 2,
};

/// Runs the canary once (malloc, new, aligned new, memalign, mmap, a worker thread) and remembers what it saw. The
/// first call allocates and starts a thread, so it is made before anything is measured.
[[nodiscard]] ProbeState probe_state();
/// The same for people: "measuring", or why not and which call went uncounted. Lives as long as the process.
[[nodiscard]] std::string_view probe_state_text();

/// Totals of the calling thread; zeros where nothing is measured. No allocation, no lock.
[[nodiscard]] ProbeReading probe_reading() noexcept;

/// Allocations of all threads of the process so far, the calling one included; 0 where nothing is measured.
[[nodiscard]] std::uint64_t probe_process_allocations() noexcept;

/// Minor page faults of the calling thread; evidence, never a verdict.
[[nodiscard]] std::uint64_t thread_minor_faults() noexcept;

/// What happened since it was made, on the thread that made it; asked on that thread.
class ProbeRegion {
 public:
  ProbeRegion() noexcept : start_(probe_reading()), process_start_(probe_process_allocations()) {}

  [[nodiscard]] ProbeReading seen() const noexcept {
    const ProbeReading now = probe_reading();
    return {now.allocations - start_.allocations, now.frees - start_.frees, now.bytes - start_.bytes};
  }
  /// Allocations that other threads made meanwhile. Nobody can tell whether they were made on behalf of the region, so
  /// a region with foreign allocations is not measured: a store that allocates on a thread of its own must not look
  /// clean.
  [[nodiscard]] std::uint64_t foreign_allocations() const noexcept {
    return probe_process_allocations() - process_start_ - seen().allocations;
  }

 private:
  ProbeReading start_;
  std::uint64_t process_start_;
};

}  // namespace kvwitness::trace
