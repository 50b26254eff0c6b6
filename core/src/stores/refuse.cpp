#include "kvwitness/core/kv_store.hpp"

namespace kvwitness::core {

trace::Refused refuse(trace::Operation operation, RefusalCode reason, Range asked, Extent held) noexcept {
  trace::Refused refused{};
  refused.operation = operation;
  refused.reason = reason;
  refused.asked_from = asked.from;
  refused.asked_to = asked.to;
  refused.held_from = held.window_start;
  refused.held_to = held.end;
  return refused;
}

}  // namespace kvwitness::core
