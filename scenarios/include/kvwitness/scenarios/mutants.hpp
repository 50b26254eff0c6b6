/// Seeded faults: stores, attention paths and traces that are wrong on purpose, each made from a class of faults that
/// public engines have had. A rule proves its worth by killing the ones that are meant for it; see `kvwitness mutants`.
#pragma once

#include "kvwitness/scenarios/registry.hpp"
#include "kvwitness/trace/bus.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace kvwitness::scenarios {

/// Where the fault sits.
enum class MutantKind : std::uint8_t {
  store,  ///< in the store
  path,   ///< in the attention over a correct store
  trace,  ///< in what is told of a correct run; for rules about what only the seam and the driver can break
};

/// One seeded fault. Texts live as long as the program.
struct Mutant {
  std::string_view name;  ///< "ring-physical-order"; its store kind is "mutant:ring-physical-order"
  MutantKind kind = MutantKind::store;
  std::string_view fault_class;  ///< slug of the class of public faults it is made from, "control" for the canary
  std::string_view source;       ///< "project#number" of a public report of the fault; empty: none, made from the class
  std::string_view base;         ///< kind of store that it departs from, as the registry names it
  std::string_view killed_by;    ///< id of the rule that must blame it
  std::string_view title;        ///< what is wrong, one line
  std::string_view why;          ///< what the engine did, one line
  std::string_view unsearched;   ///< why no random script shows it (`kvwitness search`); empty: one may
  std::uint64_t capabilities = 0;                       ///< those of its base
  Subject (*make)(const core::StoreConfig&) = nullptr;  ///< throws trace::Error where the base refuses the shape
  /// Only for kind trace: hands a run on to `next` with the fault in it, renumbered and with RunEnd's count and digest
  /// made anew, so that only the fault can be blamed. `next` outlives the filter.
  std::unique_ptr<trace::Subscriber> (*filter)(trace::Subscriber& next) = nullptr;
};

/// All of them, grouped by where the fault sits. Made once; valid until the program ends.
[[nodiscard]] std::span<const Mutant> all_mutants();
/// Null where no mutant has that name (given without "mutant:").
[[nodiscard]] const Mutant* find_mutant(std::string_view name);
/// The mutant that every run checks its judge with: it must fail. Never null.
[[nodiscard]] const Mutant& canary_mutant();

/// "mutant:NAME".
[[nodiscard]] std::string kind_name(const Mutant& mutant);
/// `registry` with every mutant added under its kind name. One of kind trace is its correct base there: whoever judges
/// its run puts its `filter` between the bus and the judge. Throws trace::Error where a name is taken.
[[nodiscard]] StoreRegistry with_mutants(StoreRegistry registry);
/// The stores that mutants depart from, without any fault, under the names of the product's (`Mutant::base`). Some are
/// written plainly, for faults to be put in: they do as the product's do, at another cost. What blames one of them as
/// well shows no fault.
[[nodiscard]] StoreRegistry mutant_bases();

[[nodiscard]] std::string_view to_text(MutantKind kind) noexcept;

}  // namespace kvwitness::scenarios
