#include "kvwitness/scenarios/foreign.hpp"

#include <utility>

namespace kvwitness::scenarios {

StoreKind foreign_kind(const core::ForeignCommand& command, const core::ForeignHello& hello, std::string replay) {
  StoreKind kind;
  kind.name = hello.name;
  kind.title = "a store in another process";
  kind.capabilities = hello.capabilities;
  kind.make = [command, hello](const core::StoreConfig& config) {
    return Subject{core::make_foreign_store(command, hello, config), std::make_unique<core::AttentionPath>()};
  };
  kind.replay = std::move(replay);
  kind.is_measured = hello.is_measured;
  return kind;
}

}  // namespace kvwitness::scenarios
