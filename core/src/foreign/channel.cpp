#include "foreign/channel.hpp"

#include "kvwitness/trace/capabilities.hpp"
#include "kvwitness/trace/error.hpp"

#include <fmt/format.h>

namespace kvwitness::core {

using trace::LossKind;

Channel::Channel(const ForeignCommand& command) : command_(command), child_(command.argv) {}

std::optional<wire::Json> Channel::exchange(std::string_view operation, wire::Json request) {
  use_.reset();
  if (lost_) return std::nullopt;
  const std::uint64_t id = next_id_++;
  request["id"] = id;
  request["op"] = operation;
  trace::Loss loss;
  if (!child_.exchange(request.dump(), answer_, command_.time_limit, loss)) {
    const bool is_early = loss.kind == LossKind::garbled;
    lose(operation, loss, is_early ? "it answered before it was asked: " + wire::excerpt(answer_) : to_text(loss));
    return std::nullopt;
  }
  try {
    wire::Json answer = wire::parse_message(answer_, id);
    if (wire::has(answer, "overran")) {
      lose(operation, {LossKind::overran, 0}, "it wrote outside of " + wire::text_of(answer, "overran"));
      return std::nullopt;
    }
    if (command_.counts_allocations && wire::has(answer, "allocations"))
      use_ = HeapUse{wire::number_of(answer, "allocations", UINT64_MAX), wire::number_of(answer, "bytes", UINT64_MAX)};
    return answer;
  } catch (const wire::WireError& error) {
    lose(operation, {error.kind(), 0}, error.what());
    return std::nullopt;
  }
}

void Channel::lose(std::string_view operation, trace::Loss loss, std::string_view why) {
  lost_ = LostStore{loss, fmt::format("{}: {}", operation, why)};
  use_.reset();
  child_.end();
}

ForeignHello hello_of(const wire::Json& answer) {
  const std::uint64_t version = wire::number_of(answer, "protocol", UINT32_MAX);
  if (version != wire::kProtocolVersion)
    throw wire::WireError(LossKind::misshapen, fmt::format("it speaks version {} of the store protocol, not {}",
                                                           version, wire::kProtocolVersion));
  ForeignHello hello;
  hello.name = wire::text_of(answer, "name");
  hello.capabilities = wire::capabilities_of(answer);
  const std::uint64_t beyond = hello.capabilities & ~wire::carried_capabilities();
  if (beyond != 0)
    throw wire::WireError(LossKind::misshapen, fmt::format("it declares what the store protocol does not carry: {}",
                                                           wire::capabilities_json(beyond).dump()));
  if (const std::string_view why = trace::contradiction_of(hello.capabilities); !why.empty())
    throw wire::WireError(LossKind::misshapen, fmt::format("its capabilities contradict each other: {}", why));
  if (wire::has(answer, "windows")) hello.has_windows = wire::flag_of(answer, "windows");
  if (wire::has(answer, "counts_allocations")) hello.is_measured = wire::flag_of(answer, "counts_allocations");
  return hello;
}

ForeignHello ask_foreign(const ForeignCommand& command) {
  Channel channel(command);
  ForeignHello hello;
  const bool answered = channel.ask("hello", {{"protocol", wire::kProtocolVersion}},
                                    [&](const wire::Json& answer) { hello = hello_of(answer); });
  hello.is_measured = hello.is_measured && command.counts_allocations;
  if (answered) return hello;
  std::string shown;
  for (const std::string& argument : command.argv) shown += (shown.empty() ? "" : " ") + argument;
  throw trace::Error(fmt::format("'{}' is no store that can be asked: {}", shown, channel.lost()->text));
}

}  // namespace kvwitness::core
