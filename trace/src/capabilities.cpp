#include "kvwitness/trace/capabilities.hpp"

#include "kvwitness/trace/event.hpp"

namespace kvwitness::trace {
namespace {

bool has(std::uint64_t capabilities, Capability one) noexcept {
  return (capabilities & static_cast<std::uint64_t>(one)) != 0;
}

}  // namespace

std::string_view exclusion_among(std::uint64_t capabilities) noexcept {
  if (!has(capabilities, Capability::renumbers)) return {};
  if (has(capabilities, Capability::front_evict))
    return "renumbers excludes front-evict, after which positions stay; middle-evict evicts the front as well";
  if (has(capabilities, Capability::sliding))
    return "renumbers excludes sliding, where what is overwritten leaves its position free";
  if (has(capabilities, Capability::sinks))
    return "renumbers excludes sinks, which keep the first positions whatever is evicted";
  return {};
}

std::string_view contradiction_of(std::uint64_t capabilities) noexcept {
  if (has(capabilities, Capability::renumbers) && !has(capabilities, Capability::middle_evict))
    return "renumbers needs middle-evict, which evicts the front as well";
  if (has(capabilities, Capability::fork) && !has(capabilities, Capability::sequences))
    return "fork needs sequences: a child is another one";
  return exclusion_among(capabilities);
}

}  // namespace kvwitness::trace
