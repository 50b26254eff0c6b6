/// Paths that compute something else than they say: what they report as visited is what would have been right.
#pragma once

#include "kvwitness/core/attention.hpp"

#include <cstdint>
#include <span>

namespace kvwitness::scenarios::mutants {

/// Query row `index` of an input, as an input of its own.
[[nodiscard]] core::AttentionInput query_row(const core::AttentionInput& input, std::uint32_t index) noexcept;
/// Output row `index`: [q_heads * head_dim].
[[nodiscard]] std::span<float> out_row(const core::AttentionInput& input, std::span<float> out,
                                       std::uint32_t index) noexcept;

/// Calls `attend_row` for each query and reports the lawful keys whatever it did.
class UnsaidPath : public core::AttentionPath {
 public:
  void attend(core::LayerIndex layer, const core::AttentionInput& input, std::span<const core::Run> runs,
              std::span<float> out, std::span<core::Visited> visited) const noexcept final;

 protected:
  /// `row` has one query; `out` [q_heads * head_dim].
  virtual void attend_row(core::LayerIndex layer, const core::AttentionInput& row, std::span<const core::Run> runs,
                          std::span<float> out) const noexcept = 0;
  /// The correct kernel over what it is given, its report dropped.
  void attend_quietly(core::LayerIndex layer, const core::AttentionInput& row, std::span<const core::Run> runs,
                      std::span<float> out) const noexcept;
};

}  // namespace kvwitness::scenarios::mutants
