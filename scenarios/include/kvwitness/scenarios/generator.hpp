/// Seeded random scripts that are legal by construction: a correct store must be blamed for none of them.
#pragma once

#include "kvwitness/scenarios/script.hpp"

#include <cstdint>
#include <string>

namespace kvwitness::scenarios {

struct GeneratorOptions {
  /// What the store under test can do (bits of trace::Capability); nothing else is asked of it.
  std::uint64_t capabilities = 0;
  /// Mixes in calls that must be refused, each with the refusal that it expects. Without them every call is legal.
  bool with_refusals = false;
  std::uint32_t steps = 24;  ///< operations of the script, about
};

/// The text of a script whose store "sut" is of kind "@sut". A function of its arguments alone. Which operations occur
/// is drawn per script (swarm testing: Groce et al., ISSTA 2012), so that rare mixtures come up; sizes are drawn around
/// windows and capacities. What is legal is decided by a list model of its own. Some scripts ask for more than the
/// standing rules: the outputs of a flat store "ref" that is fed the same, or that no decode step allocates or copies.
[[nodiscard]] std::string random_script(std::uint64_t seed, const GeneratorOptions& options);

/// The case of `random_script`. Its file is named after the seed and does not exist.
[[nodiscard]] Case random_case(std::uint64_t seed, const GeneratorOptions& options);

/// A case of legal calls only.
[[nodiscard]] Case random_legal_case(std::uint64_t seed, std::uint64_t capabilities);

}  // namespace kvwitness::scenarios
