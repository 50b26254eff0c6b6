/// Counts what decode steps cost.
#pragma once

#include "kvwitness/verify/checker.hpp"
#include "kvwitness/verify/costs.hpp"

#include "decode_step.hpp"

#include <vector>

namespace kvwitness::verify {

/// Counts as the rules zero-alloc-per-token and adapter-priced do, so that a budget means the same to all three.
class CostMeter {
 public:
  void on_event(const trace::Event& event, const Moment& moment);
  /// By the store's index; a store beyond the end had no decode step.
  [[nodiscard]] const std::vector<Costs>& by_store() const noexcept { return by_store_; }

 private:
  struct Regions {
    std::uint64_t count = 0;
    std::uint64_t unmeasured = 0;
    std::uint64_t allocations = 0;
  };

  void begin(const trace::Event& event, const Moment& moment);
  void add_region(const trace::RegionMeasured& region) noexcept;
  void add_allocation(const trace::Allocation& taken) noexcept;
  void end(trace::StoreIndex store);

  DecodeStep step_;
  Regions token_;  ///< the whole token's region
  Regions calls_;  ///< sum over the calls of the step
  std::uint64_t declared_ = 0;
  std::uint64_t adapters_ = 0;
  std::uint64_t copied_bytes_ = 0;
  trace::StoreIndex store_ = trace::kNoStore;
  std::vector<Costs> by_store_;
};

}  // namespace kvwitness::verify
