/// Stores in another process as kinds of the registry.
#pragma once

#include "kvwitness/core/foreign_store.hpp"
#include "kvwitness/scenarios/registry.hpp"

#include <string>

namespace kvwitness::scenarios {

/// The kind of a foreign store, under the name that it gives itself: a process for each store that is built. `replay`:
/// how the program is told of it ("conform --exec 'python3 mine.py'").
[[nodiscard]] StoreKind foreign_kind(const core::ForeignCommand& command, const core::ForeignHello& hello,
                                     std::string replay);

}  // namespace kvwitness::scenarios
