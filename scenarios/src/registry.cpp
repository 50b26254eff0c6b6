#include "kvwitness/scenarios/registry.hpp"

#include "kvwitness/trace/error.hpp"

#include <algorithm>

namespace kvwitness::scenarios {

void StoreRegistry::add(StoreKind kind) {
  if (find(kind.name) != nullptr) throw trace::Error("the store kind '" + kind.name + "' is registered already");
  kinds_.push_back(std::move(kind));
}

const StoreKind* StoreRegistry::find(std::string_view name) const noexcept {
  const auto found = std::ranges::find(kinds_, name, &StoreKind::name);
  return found != kinds_.end() ? &*found : nullptr;
}

}  // namespace kvwitness::scenarios
