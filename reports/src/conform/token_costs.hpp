/// What a token costs on a store.
#pragma once

#include "kvwitness/reports/conformance.hpp"

#include <string>

namespace kvwitness::reports {

/// Decodes behind a full window, and counts. `why_not` says why where the kind does not build such a store.
[[nodiscard]] TokenCosts token_costs(const std::string& store, const scenarios::StoreRegistry& registry);

}  // namespace kvwitness::reports
