#include "kvwitness/core/rope_config.hpp"

#include "kvwitness/trace/error.hpp"

#include <fmt/format.h>

#include <cmath>

namespace kvwitness::core {

void validate(const RopeConfig& rope, std::uint32_t head_dim, std::string_view name) {
  const auto refuse_field = [name](std::string_view field, std::string_view why) {
    throw trace::Error(fmt::format("{}.{}: {}", name, field, why));
  };
  if (head_dim % 2 != 0)
    throw trace::Error(fmt::format("{}: head_dim {} is odd; rotary pairs need an even one", name, head_dim));
  // Below 1 the pairs turn ever faster, until the angles of far positions have no digits left.
  if (!(rope.theta >= 1) || !std::isfinite(rope.theta)) refuse_field("theta", "must be finite, and 1 or more");
  if (!(rope.factor > 0) || !std::isfinite(rope.factor)) refuse_field("factor", "must be finite and above 0");
  if (rope.scaling == RopeScaling::llama3 && !(rope.high_freq_factor > rope.low_freq_factor))
    refuse_field("high_freq_factor", "must be above low_freq_factor");
  if (!rope.inverse_frequencies.empty() && rope.inverse_frequencies.size() != head_dim / 2)
    refuse_field("inverse_frequencies",
                 fmt::format("{} values for head_dim {}", rope.inverse_frequencies.size(), head_dim));
}

}  // namespace kvwitness::core
