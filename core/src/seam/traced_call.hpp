/// Private parts of the seam that its source files share.
#pragma once

#include "kvwitness/core/lifetime.hpp"
#include "kvwitness/core/traced_store.hpp"
#include "kvwitness/trace/probe.hpp"

#include <new>
#include <optional>

namespace kvwitness::core {

/// Rows read back at a time for digests of what lies in the store.
inline constexpr std::uint32_t kRowsAtOnce = 64;

/// One call of the store, as it is told.
struct TracedStore::Call {
  trace::Operation operation = trace::Operation::none;
  trace::Subject subject{};
  Range asked{};
  Range rotated{};  ///< positions that the keys of an append were rotated to
  trace::ViewId view = 0;
  std::uint32_t count = 0;
  Source source{};
  std::uint64_t file = 0;  ///< digest of the file that a restore is given
  trace::ProbeReading seen{};
  std::uint64_t faults = 0;
  std::optional<trace::Evidence> evidence{};  ///< none: the store was not called
};

/// A held window.
struct TracedStore::View {
  trace::ViewId id = 0;  ///< 0: free
  trace::Subject subject;
  WindowScratch scratch;
  std::vector<Run> readable;  ///< as far as each run may be read, in the order of the runs told
  Window source;              ///< as the store returned it, for it to recognise; of a copy: what it was copied from
  Window window;              ///< with the readable runs
  std::uint64_t changes = 0;  ///< of the store, when the runs were last told
  std::uint64_t edits = 0;    ///< of the sequence, when the view was opened
  LifeToken life;             ///< of the scope that a gathered copy lies in
  bool gathered = false;
};

[[nodiscard]] inline bool can(const StoreLayout& layout, trace::Capability capability) noexcept {
  return (layout.capabilities & static_cast<std::uint64_t>(capability)) != 0;
}

/// The runs of a window that a store returned, as far as they lie where runs were to be put.
[[nodiscard]] std::span<const Run> runs_within(std::span<const Run> runs, std::span<const Run> room) noexcept;

/// How many of `count` rows of `row_bytes`, the first at `row` and `stride_bytes` apart, lie in `memory` one after the
/// other from the first.
[[nodiscard]] std::uint32_t rows_within(std::span<const std::byte> memory, const std::byte* row,
                                        std::size_t stride_bytes, std::uint64_t row_bytes,
                                        std::uint32_t count) noexcept;

/// Digest of the rows of `range` as a layer that ends at `end` holds them, contiguous in `bytes`: codes, then f32 rows.
[[nodiscard]] std::uint64_t held_digest(const StoreConfig& config, LayerIndex layer, Plane plane, Range range,
                                        Position end, std::span<const std::byte> bytes) noexcept;

/// Runs `call` of foreign code: what it throws becomes a refusal.
template <class T, class F>
Outcome<T> guarded(trace::Operation operation, F&& call) noexcept {
  try {
    return call();
  } catch (const std::bad_alloc&) {
    return refuse(operation, RefusalCode::no_memory);
  } catch (...) {
    return refuse(operation, RefusalCode::corrupt);
  }
}

template <class T, class F>
Outcome<T> TracedStore::measured(Call& call, F&& body) {
  // A gather's scope tells its allocations from inside the region.
  constexpr std::size_t kEventsInside = 8;
  bus_->reserve(kEventsInside);
  // A system call each, so only where somebody listens, and nobody around this call counts them already.
  const bool counts_faults = bus_->active() && !bus_->is_in_region();
  const std::uint64_t faults = counts_faults ? trace::thread_minor_faults() : 0;
  bus_->enter_region();
  const trace::ProbeRegion region;
  const Outcome<T> outcome = guarded<T>(call.operation, body);
  call.seen = region.seen();
  // What other threads took may have been for this call: then nobody has seen what it took.
  call.evidence = region.foreign_allocations() == 0 ? evidence_ : trace::Evidence::unmeasured;
  bus_->leave_region();
  call.faults = counts_faults ? trace::thread_minor_faults() - faults : 0;
  if (outside_ != nullptr) take_use_outside(call);
  return outcome;
}

}  // namespace kvwitness::core
