#include "cost_meter.hpp"

#include <algorithm>

namespace kvwitness::verify {

using trace::EventType;

void CostMeter::begin(const trace::Event& event, const Moment& moment) {
  step_.begin(trace::payload_of<trace::StepBegin>(event), event, moment);
  store_ = event.store;
  token_ = calls_ = {};
  declared_ = adapters_ = copied_bytes_ = 0;
}

void CostMeter::add_region(const trace::RegionMeasured& region) noexcept {
  Regions& regions = region.operation == trace::Operation::decode ? token_ : calls_;
  ++regions.count;
  if (region.evidence == trace::Evidence::unmeasured) ++regions.unmeasured;
  if (region.evidence == trace::Evidence::observed) regions.allocations += region.allocations;
}

void CostMeter::add_allocation(const trace::Allocation& taken) noexcept {
  const bool is_heap = taken.origin == trace::Origin::heap || taken.origin == trace::Origin::mapped;
  if (is_heap) declared_ += taken.count;
}

void CostMeter::end(trace::StoreIndex store) {
  step_.end();
  if (store == trace::kNoStore) return;
  if (by_store_.size() <= store) by_store_.resize(std::size_t{store} + 1);
  const Regions& whole = token_.count != 0 ? token_ : calls_;
  const bool is_unmeasured = whole.count == 0 || whole.unmeasured != 0;
  by_store_[store].add({.decode_steps = 1,
                        .unmeasured_steps = is_unmeasured ? 1U : 0U,
                        .allocations_per_token = std::max({token_.allocations, calls_.allocations, declared_}),
                        .adapters_per_token = adapters_,
                        .copied_bytes_per_token = copied_bytes_});
}

void CostMeter::on_event(const trace::Event& event, const Moment& moment) {
  if (event.type == EventType::StepBegin) return begin(event, moment);
  if (!step_.is_counted()) return;
  switch (event.type) {
    case EventType::RegionMeasured: return add_region(trace::payload_of<trace::RegionMeasured>(event));
    case EventType::Allocation: return add_allocation(trace::payload_of<trace::Allocation>(event));
    case EventType::AdapterInserted:
      ++adapters_;
      copied_bytes_ += trace::payload_of<trace::AdapterInserted>(event).bytes_after;
      return;
    case EventType::StepEnd: return end(store_);
    default: return;
  }
}

}  // namespace kvwitness::verify
