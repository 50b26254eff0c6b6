#include "kvwitness/reports/search.hpp"
#include "kvwitness/reports/selection.hpp"
#include "kvwitness/scenarios/mutants.hpp"
#include "kvwitness/trace/error.hpp"
#include "kvwitness/trace/probe.hpp"

#include <algorithm>
#include <chrono>

namespace kvwitness::reports {
namespace {

/// A shape that every kind builds.
core::StoreConfig plain_shape() {
  core::LayerGeometry layer;
  layer.capacity = 4;
  layer.q_heads = 1;
  layer.kv_heads = 1;
  layer.head_dim = 4;
  core::StoreConfig config;
  config.layers = {layer};
  return config;
}

SearchedMutant search_mutant(const scenarios::Mutant& mutant, const scenarios::StoreRegistry& registry,
                             const SearchOptions& options) {
  SearchedMutant result;
  result.name = mutant.name;
  result.fault_class = mutant.fault_class;
  result.killed_by = mutant.killed_by;
  result.search.store = scenarios::kind_name(mutant);
  result.search.seed = options.seed;
  result.why = out_of_reach(mutant);
  if (!result.why.empty()) {
    result.fate = SearchFate::out_of_reach;
    return result;
  }
  const bool is_measured = trace::probe_state() == trace::ProbeState::measuring;
  if (mutant.killed_by == "zero-alloc-per-token" && !is_measured) {
    result.fate = SearchFate::not_measured;
    result.why = "this build has no probe";
    return result;
  }
  SearchOptions own = options;
  own.store = result.search.store;
  own.corpus.clear();
  result.search = search(registry, own);
  result.fate = result.search.finding ? SearchFate::found : SearchFate::not_found;
  if (!result.search.finding) result.why = "no script that failed was generated";
  return result;
}

}  // namespace

std::string out_of_reach(const scenarios::Mutant& mutant) {
  if (!mutant.unsearched.empty()) return std::string(mutant.unsearched);
  const scenarios::Subject subject = mutant.make(plain_shape());
  if (subject.make_cache != nullptr)
    return "the fault is in what a decoder works through, and no script generated decodes";
  if (subject.make_ledger != nullptr) return "the fault is in the ledger of spans, and no script generated names spans";
  return {};
}

MutantSearch search_mutants(const MutantSearchOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  const scenarios::StoreRegistry registry = scenarios::with_mutants(scenarios::product_stores());
  MutantSearch searched;
  for (const scenarios::Mutant& mutant : scenarios::all_mutants()) {
    if (options.mutants.empty() || glob_matches(options.mutants, mutant.name))
      searched.mutants.push_back(search_mutant(mutant, registry, options.search));
  }
  searched.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return searched;
}

int exit_code(const MutantSearch& searched) noexcept {
  const auto any = [&](SearchFate fate) {
    return std::ranges::find(searched.mutants, fate, &SearchedMutant::fate) != searched.mutants.end();
  };
  if (searched.mutants.empty()) return static_cast<int>(ExitCode::nothing_selected);
  if (any(SearchFate::not_found)) return static_cast<int>(ExitCode::vacuous);
  return static_cast<int>(any(SearchFate::not_measured) ? ExitCode::inconclusive : ExitCode::pass);
}

std::string_view to_text(SearchFate fate) noexcept {
  switch (fate) {
    case SearchFate::found: return "found";
    case SearchFate::not_found: return "not found";
    case SearchFate::not_measured: return "not measured";
    case SearchFate::out_of_reach: return "out of reach";
  }
  return "unknown";
}

}  // namespace kvwitness::reports
