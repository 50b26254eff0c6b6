/// A store that keeps its rows as codes, and the newest ones in full precision.
#pragma once

#include "kvwitness/core/kv_store.hpp"

#include <memory>
#include <span>

namespace kvwitness::core {

/// What a quantised store can do; bits of trace::Capability.
[[nodiscard]] std::uint64_t quantised_capabilities() noexcept;

/// The site where rows become codes. Policies that code too early, along other borders or by another row's code are
/// seeded faults, see scenarios/mutants.
class QuantisePolicy {
 public:
  QuantisePolicy() = default;
  QuantisePolicy(const QuantisePolicy&) = delete;
  QuantisePolicy& operator=(const QuantisePolicy&) = delete;
  virtual ~QuantisePolicy() = default;

  /// Where a layer's codes end after an append of `count` rows that made its end `end`. The store takes it as far as it
  /// has room: never below what is coded already, never past the end.
  [[nodiscard]] virtual Position border(const StoreConfig& config, Position end, std::uint32_t count) const noexcept;
  /// Codes one row of a plane (k or v): `bytes` as long as the plane's rows.
  virtual void encode(const StoreConfig& config, Plane plane, std::span<const float> row,
                      std::span<std::byte> bytes) const noexcept;
};

/// Slot of position p = p mod capacity, as in a ring store; layers may slide. Rows below `coded_end` lie in the planes
/// of codes, the others in planes of f32 that hold `recent_slots` rows, at p mod recent_slots. Each row is coded once,
/// from the row that was given, by the append that makes the end reach so far; that rewrites its slot, and so a held
/// window over it is stale. A window is runs of codes and then of f32 rows, up to four. Rows that are f32 on
/// both sides are coded as they are: nothing is quantised then. Memory is allocated here and never again. Throws
/// trace::Error naming the field: what `validate` refuses.
[[nodiscard]] std::unique_ptr<KvStore> make_quantised_store(const StoreConfig& config);
/// The policy outlives the store.
[[nodiscard]] std::unique_ptr<KvStore> make_quantised_store(const StoreConfig& config, const QuantisePolicy& policy);

}  // namespace kvwitness::core
