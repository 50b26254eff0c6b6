/// Attention that a store computes itself, as a kernel of its own does. What it saw cannot be looked into; it is judged
/// from outside, by its outputs.
#pragma once

#include "kvwitness/core/attention.hpp"
#include "kvwitness/core/kv_store.hpp"

#include <span>

namespace kvwitness::core {

/// Of stores with the capability `attend`.
class Attending {
 public:
  Attending() = default;
  Attending(const Attending&) = delete;
  Attending& operator=(const Attending&) = delete;
  virtual ~Attending() = default;

  /// Attention of the input's queries, the last ones of the layer, over what the layer holds: each sees the sinks, and
  /// its window as far as that is held. `out` [count][q_heads * head_dim]; zeros of a query that sees no key. Queries
  /// come rotated where the layer's keys do.
  virtual Outcome<Done> attend(SequenceId sequence, LayerIndex layer, const AttentionInput& input,
                               std::span<float> out) const = 0;
};

}  // namespace kvwitness::core
