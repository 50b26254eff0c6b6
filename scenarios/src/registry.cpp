#include "kvwitness/scenarios/registry.hpp"

#include "kvwitness/core/compact_store.hpp"
#include "kvwitness/core/flat_store.hpp"
#include "kvwitness/core/layered_store.hpp"
#include "kvwitness/core/paged_store.hpp"
#include "kvwitness/core/quantised_store.hpp"
#include "kvwitness/core/ring_store.hpp"
#include "kvwitness/core/sink_ring_store.hpp"
#include "kvwitness/trace/capabilities.hpp"
#include "kvwitness/trace/error.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace kvwitness::scenarios {
namespace {

template <class Make>
StoreKind correct_kind(std::string name, std::string title, std::uint64_t capabilities, Make make,
                       core::PlanStore plan) {
  const auto subject = [make](const core::StoreConfig& config) {
    return Subject{make(config), std::make_unique<core::AttentionPath>()};
  };
  return {std::move(name), std::move(title), capabilities, subject, plan};
}

}  // namespace

void StoreRegistry::add(StoreKind kind) {
  if (find(kind.name) != nullptr) throw trace::Error("the store kind '" + kind.name + "' is registered already");
  if (const std::string_view why = trace::contradiction_of(kind.capabilities); !why.empty())
    throw trace::Error(fmt::format("the store kind '{}': its capabilities contradict each other: {}", kind.name, why));
  kinds_.push_back(std::move(kind));
}

const StoreKind* StoreRegistry::find(std::string_view name) const noexcept {
  const auto found = std::ranges::find(kinds_, name, &StoreKind::name);
  return found != kinds_.end() ? &*found : nullptr;
}

StoreRegistry product_stores() {
  StoreRegistry registry;
  registry.add(correct_kind("ring", "slot = position mod capacity; slides when full", core::ring_capabilities(),
                            core::make_ring_store, core::plan_slots));
  registry.add(correct_kind("flat", "slots filled from 0; refuses when full", core::flat_capabilities(),
                            core::make_flat_store, core::plan_slots));
  registry.add(correct_kind("compact", "evicts any range; what lay behind it is renumbered",
                            core::compact_capabilities(), core::make_compact_store, core::plan_compact));
  registry.add(correct_kind("layered", "each layer as large as its window needs; layers may read another one's rows",
                            core::layered_capabilities(), core::make_layered_store, core::plan_layered));
  registry.add(correct_kind("sink-ring", "keeps the first positions for ever, and the newest in a ring behind them",
                            core::sink_ring_capabilities(), core::make_sink_ring_store, core::plan_slots));
  registry.add(correct_kind(
      "quantised", "a ring of codes, the newest rows in f32", core::quantised_capabilities(),
      [](const core::StoreConfig& config) { return core::make_quantised_store(config); }, core::plan_quantised));
  registry.add(correct_kind("paged", "blocks of one pool, shared, copied on write, found by prefix, swapped out",
                            core::paged_capabilities(), core::make_paged_store, core::plan_paged));
  return registry;
}

}  // namespace kvwitness::scenarios
