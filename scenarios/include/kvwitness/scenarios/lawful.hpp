/// Whether a script asks only for what the law grants: which call of it a correct store would not answer as expected.
#pragma once

#include "kvwitness/scenarios/registry.hpp"
#include "kvwitness/scenarios/script.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace kvwitness::scenarios {

/// A step that a correct store would not answer as the script expects, or of which the law cannot say so beforehand.
struct Misstep {
  /// Place in Case::steps; of a step inside a repeat, the repeat's. Absent: it is the stores or the claims.
  std::optional<std::size_t> step;
  /// What a correct store answers instead of what is expected. Absent: that cannot be told.
  std::optional<trace::RefusalCode> answer;
  std::string why;  ///< "truncate is refused evicted, ok is expected"
};

/// Follows the case on lists of rows (trace/events.md, "What a correct store does"), without building any store.
/// `sut_capabilities` (bits of trace::Capability) stand for those of "@sut"; other kinds are looked up in `registry`.
///
/// Nothing where every call is answered as expected, and every claim can be kept: shapes fit the capabilities, no
/// budget forbids the copies that a step asks for, and stores whose outputs must be the same have the same windows and
/// the same work. What lists do not follow (decoders, workloads, `clone`, `verify`, `compare`, and operations that need
/// a capability of which no list is kept) is a misstep: it may be legal, but that cannot be told here.
[[nodiscard]] std::optional<Misstep> first_misstep(const Case& which, std::uint64_t sut_capabilities,
                                                   const StoreRegistry& registry);

/// What the law has the stores hold after each step of a case of which it grants every call: the positions of each
/// layer, besides its sinks, sequence by sequence, store by store. Capabilities by which other positions are held mean
/// something else by the script, although they may grant it as well.
[[nodiscard]] std::vector<trace::Range> lawful_extents(const Case& which, std::uint64_t sut_capabilities,
                                                       const StoreRegistry& registry);

}  // namespace kvwitness::scenarios
