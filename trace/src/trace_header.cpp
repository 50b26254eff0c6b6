#include "kvwitness/trace/trace_header.hpp"

#include "claims_json.hpp"
#include "json_object.hpp"
#include "kvwitness/trace/error.hpp"
#include "kvwitness/trace/event_table.hpp"

namespace kvwitness::trace {
namespace {

using nlohmann::json;

void require_version(JsonObject& object) {
  std::uint64_t version = 0;
  object.require("version");
  object.get("version", version);
  if (version == 0) throw Error(object.path("version") + ": there is no version 0");
  if (version > kEventVersion)
    throw Error(object.path("version") + ": " + std::to_string(version) + " is newer than this reader, which knows " +
                std::to_string(kEventVersion));
}

ClockKind clock_from(JsonObject& object) {
  const std::string text = object.text(object.require("clock"), "clock");
  const auto value = value_of(clock_texts(), text);
  if (!value) throw Error(object.path("clock") + ": '" + text + "' is no clock");
  return static_cast<ClockKind>(*value);
}

TraceHeader header_from(const json& value) {
  if (!value.is_object() || !value.contains("kvwitness") || value["kvwitness"] != "trace")
    throw Error("header: not the header of a trace: no \"kvwitness\":\"trace\"");
  TraceHeader out;
  JsonObject object(value, "header");
  object.take("kvwitness");
  require_version(object);
  object.get_required("producer", out.producer);
  out.clock = clock_from(object);
  out.claims = claims_from(object.require("claims"), "claims");
  object.finish();
  return out;
}

}  // namespace

std::string_view this_producer() noexcept {
  return "kvwitness " KVWITNESS_VERSION;
}

std::string header_to_json(const TraceHeader& header) {
  return dump({{"kvwitness", "trace"},
               {"version", kEventVersion},
               {"producer", header.producer},
               {"clock", to_text(header.clock)},
               {"claims", claims_to(header.claims)}});
}

TraceHeader header_from_json(std::string_view text, const std::string& file, std::uint64_t byte) {
  try {
    return header_from(parse_strict(text));
  } catch (const Error& error) {
    throw Error(Location{file, {}, {}, byte + error.location().byte.value_or(0)}, error.message());
  }
}

}  // namespace kvwitness::trace
