/// Judges a store of one's own by the library of scenarios, then by random scripts:
/// `own_store [--filter GLOB] [--json] [SCRIPTS]`. Exits as `kvwitness conform` does, and then as `kvwitness search`.

#include "ring_adapter.hpp"

#include <kvwitness/reports/conformance.hpp>
#include <kvwitness/reports/search.hpp>
#include <kvwitness/scenarios/registry.hpp>

#include <iostream>
#include <memory>

int main(int argc, char** argv) {
  using namespace kvwitness;
  scenarios::StoreRegistry registry = scenarios::product_stores();  // scripts compare with "flat"
  registry.add({"own-ring", "a ring of one's own", own::kCapabilities, [](const core::StoreConfig& config) {
                  return scenarios::Subject{std::make_unique<own::RingAdapter>(config),
                                            std::make_unique<core::AttentionPath>()};
                }});
  if (const int code = reports::conformance_main(argc, argv, registry, "own-ring"); code != 0) return code;
  const reports::SearchResult searched =
      reports::search(registry, {.store = "own-ring", .scripts_max = 200, .with_refusals = true});
  reports::write_search_text(searched, std::cout, false);
  return reports::exit_code(searched);
}
