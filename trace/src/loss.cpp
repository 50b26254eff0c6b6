#include "kvwitness/trace/loss.hpp"

#include <fmt/format.h>

#include <cstring>

namespace kvwitness::trace {
namespace {

std::string signal_text(std::uint32_t signal) {
  const char* name = sigabbrev_np(static_cast<int>(signal));
  return name == nullptr ? fmt::format("signal {}", signal) : fmt::format("signal {} (SIG{})", signal, name);
}

}  // namespace

std::uint64_t loss_value(Loss loss) noexcept {
  return std::uint64_t{static_cast<std::uint32_t>(loss.kind)} << 32 | loss.detail;
}

Loss loss_of(std::uint64_t value) noexcept {
  return {static_cast<LossKind>(value >> 32), static_cast<std::uint32_t>(value)};
}

std::string to_text(Loss loss) {
  switch (loss.kind) {
    case LossKind::none: break;
    case LossKind::ended: return fmt::format("its process ended with status {}", loss.detail);
    case LossKind::killed: return "its process was killed by " + signal_text(loss.detail);
    case LossKind::silent: return fmt::format("no answer within {} ms", loss.detail);
    case LossKind::garbled: return "what came was no answer to what was asked";
    case LossKind::too_long: return "an answer longer than the protocol takes";
    case LossKind::misshapen: return "an answer without what the operation returns";
    case LossKind::closed: return "it closed its output and lived on";
    case LossKind::overran: return "it wrote outside of the room that it was given";
  }
  return "a loss of no kind that this reader knows";
}

}  // namespace kvwitness::trace
