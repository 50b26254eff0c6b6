/// The stores that mutants depart from.
#include "kvwitness/scenarios/mutants.hpp"
#include "mutants/groups.hpp"
#include "mutants/plain_paged.hpp"

namespace kvwitness::scenarios {

StoreRegistry mutant_bases() {
  const StoreRegistry products = product_stores();
  StoreRegistry bases;
  for (StoreKind kind : products.all()) {
    if (kind.name == "ring") kind.make = &mutants::store_subject<mutants::PlainRing>;
    if (kind.name == "flat") kind.make = &mutants::store_subject<mutants::PlainFlat>;
    if (kind.name == "compact") kind.make = &mutants::store_subject<mutants::PlainCompact>;
    if (kind.name == "paged") kind.make = &mutants::store_subject<mutants::PlainPaged>;
    bases.add(std::move(kind));
  }
  return bases;
}

}  // namespace kvwitness::scenarios
