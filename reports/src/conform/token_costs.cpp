#include "conform/token_costs.hpp"

#include "kvwitness/scenarios/driver.hpp"

#include <memory>
#include <span>

namespace kvwitness::reports {
namespace {

/// 64 tokens behind a window of 16; a store that does not slide has room for all of them.
constexpr std::string_view kScript = R"({
  "version": 1, "id": "conformance/costs",
  "model": {"layers": 2, "q_heads": 4, "kv_heads": 2, "head_dim": 16},
  "stores": {"sut": {"kind": "@sut", "window": 16, "capacity": 80}},
  "steps": [{"op": "decode", "count": 16}, {"op": "decode", "count": 64}]
})";
constexpr std::uint32_t kMeasuredStep = 1;

class CostCounter final : public trace::Subscriber {
 public:
  void on_batch(std::span<const trace::Event> events) override {
    for (const trace::Event& event : events) take(event);
  }
  [[nodiscard]] TokenCosts costs() const {
    TokenCosts costs = costs_;
    // What was seen in a call was seen in the token, which may have taken more.
    if (!is_unmeasured_) costs.allocations = std::max(in_calls_, in_tokens_);
    return costs;
  }

 private:
  void take(const trace::Event& event) {
    if (event.type == trace::EventType::StepBegin) {
      is_counted_ = trace::payload_of<trace::StepBegin>(event).step == kMeasuredStep;
      if (is_counted_) ++costs_.tokens;
    }
    if (event.type == trace::EventType::StepEnd) is_counted_ = false;
    if (!is_counted_) return;
    if (event.type == trace::EventType::RegionMeasured) take(trace::payload_of<trace::RegionMeasured>(event));
    if (event.type == trace::EventType::AdapterInserted) {
      ++costs_.adapters;
      costs_.copied_bytes += trace::payload_of<trace::AdapterInserted>(event).bytes_after;
    }
  }
  void take(const trace::RegionMeasured& region) {
    is_unmeasured_ = is_unmeasured_ || region.evidence == trace::Evidence::unmeasured;
    const bool is_token = region.operation == trace::Operation::decode;
    (is_token ? in_tokens_ : in_calls_) += region.allocations;
    if (is_token) return;
    ++costs_.calls;
    costs_.allocated_bytes += region.bytes;
  }

  TokenCosts costs_;
  std::uint64_t in_calls_ = 0;
  std::uint64_t in_tokens_ = 0;
  bool is_unmeasured_ = false;
  bool is_counted_ = false;
};

}  // namespace

TokenCosts token_costs(const std::string& store, const scenarios::StoreRegistry& registry) {
  const scenarios::Script script = scenarios::parse_script(kScript, "costs.jsonc", {});
  const scenarios::Case& which = script.cases.front();
  scenarios::DriveOptions drive;
  drive.sut = store;
  trace::NameTable names;
  trace::Bus bus(names, {.capacity = std::size_t{1} << 15, .clock = trace::ClockKind::none});
  CostCounter counter;
  bus.subscribe(counter);
  try {
    scenarios::drive(which, scenarios::resolved_claims(which, registry, drive), registry, bus, drive);
  } catch (const scenarios::BuildError& error) {
    TokenCosts costs;
    costs.why_not = error.message();
    return costs;
  }
  return counter.costs();
}

}  // namespace kvwitness::reports
