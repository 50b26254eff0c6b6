#include "kvwitness/scenarios/mutants.hpp"
#include "kvwitness/trace/assert.hpp"
#include "mutants/groups.hpp"

#include <algorithm>
#include <vector>

namespace kvwitness::scenarios {

namespace {

[[nodiscard]] std::vector<Mutant> collect() {
  std::vector<Mutant> all;
  for (const std::span<const Mutant> group :
       {mutants::addressing_mutants(), mutants::compacting_mutants(), mutants::masking_mutants(),
        mutants::decoding_mutants(),   mutants::sharing_mutants(),    mutants::padding_mutants(),
        mutants::numeric_mutants(),    mutants::relativity_mutants(), mutants::lifetime_mutants(),
        mutants::legality_mutants(),   mutants::bounds_mutants(),     mutants::sizes_mutants(),
        mutants::accounting_mutants(), mutants::planning_mutants(),   mutants::quantising_mutants(),
        mutants::saving_mutants(),     mutants::keeping_mutants(),    mutants::pages_mutants(),
        mutants::crossing_mutants(),   mutants::forking_mutants(),    mutants::neighbour_mutants(),
        mutants::case_mutants(),       mutants::losing_mutants(),     mutants::trace_mutants()}) {
    all.insert(all.end(), group.begin(), group.end());
  }
  return all;
}

}  // namespace

std::span<const Mutant> all_mutants() {
  static const std::vector<Mutant> kAll = collect();
  return kAll;
}

const Mutant* find_mutant(std::string_view name) {
  const std::span<const Mutant> all = all_mutants();
  const auto found = std::ranges::find(all, name, &Mutant::name);
  return found != all.end() ? &*found : nullptr;
}

const Mutant& canary_mutant() {
  const Mutant* canary = find_mutant("canary");
  KVW_ASSERT(canary != nullptr);
  return *canary;
}

std::string kind_name(const Mutant& mutant) {
  return "mutant:" + std::string(mutant.name);
}

StoreRegistry with_mutants(StoreRegistry registry) {
  for (const Mutant& mutant : all_mutants()) {
    const StoreKind* base = registry.find(mutant.base);
    registry.add({kind_name(mutant), std::string(mutant.title), mutant.capabilities, mutant.make,
                  base == nullptr ? nullptr : base->plan});
  }
  return registry;
}

std::string_view to_text(MutantKind kind) noexcept {
  switch (kind) {
    case MutantKind::store: return "store";
    case MutantKind::path: return "path";
    case MutantKind::trace: return "trace";
  }
  return "";
}

}  // namespace kvwitness::scenarios
