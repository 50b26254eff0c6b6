/// Judges a store of one's own by the library of scenarios, then by random scripts: `own_store [LIBRARY [FILTER]]`.
/// Exits as `kvwitness run` does, and then as `kvwitness search` does.

#include "ring_adapter.hpp"

#include <kvwitness/reports/search.hpp>
#include <kvwitness/reports/selection.hpp>
#include <kvwitness/reports/suite.hpp>
#include <kvwitness/reports/text.hpp>
#include <kvwitness/scenarios/registry.hpp>
#include <kvwitness/trace/error.hpp>

#include <iostream>
#include <memory>

int main(int argc, char** argv) {
  using namespace kvwitness;
  try {
    scenarios::StoreRegistry registry = scenarios::product_stores();  // scripts compare with "flat"
    registry.add({"own-ring", "a ring of one's own", own::kCapabilities, [](const core::StoreConfig& config) {
                    return scenarios::Subject{std::make_unique<own::RingAdapter>(config),
                                              std::make_unique<core::AttentionPath>()};
                  }});
    reports::SuiteOptions options;
    options.stores = {"own-ring"};
    if (argc > 2) options.filter = argv[2];
    const std::filesystem::path library = argc > 1 ? std::filesystem::path(argv[1]) : reports::default_library();
    const reports::SuiteResult result = reports::run_suite({library}, registry, options);
    reports::write_text(result, std::cout);
    if (const int code = reports::exit_code(result); code != 0) return code;
    const reports::SearchResult searched =
        reports::search(registry, {.store = "own-ring", .scripts_max = 200, .with_refusals = true});
    reports::write_search_text(searched, std::cout, false);
    return reports::exit_code(searched);
  } catch (const trace::Error& error) {
    std::cerr << error.what() << "\n";
    return static_cast<int>(reports::ExitCode::invalid_input);
  }
}
