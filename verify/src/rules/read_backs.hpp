/// States that are read back after a call, layer by layer, and those that never were.
#pragma once

#include "kvwitness/verify/checker.hpp"
#include "kvwitness/verify/model.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace kvwitness::verify {

class ReadBacks {
 public:
  /// The layers of the sequence come next. `cause`: number of the event that they are read back for.
  void await(StoreIndex store, SequenceId sequence, std::uint64_t cause, std::size_t layers) {
    if (store >= awaited_.size()) awaited_.resize(std::size_t{store} + 1);
    awaited_[store] = {sequence, cause, layers};
  }

  /// The cause of the state that the event tells; nothing where it is not awaited.
  [[nodiscard]] std::optional<std::uint64_t> take(const Event& event) noexcept {
    if (event.store >= awaited_.size()) return std::nullopt;
    Awaited& awaited = awaited_[event.store];
    if (awaited.layers == 0 || awaited.sequence != event.sequence) return std::nullopt;
    --awaited.layers;
    return awaited.cause;
  }

  /// True where the rows found are known to be others than the layer's. Where either was not told, that is counted.
  [[nodiscard]] bool are_others(const trace::StateDigest& state, const LayerModel& layer) {
    const auto digests = layer.digests();
    if (!digests || state.k_digest == 0 || state.v_digest == 0) {
      ++not_told_;
      return false;
    }
    return digests->k != state.k_digest || digests->v != state.v_digest;
  }

  /// The store does something else: what did not come by now never does.
  void settle(StoreIndex store) noexcept {
    if (store >= awaited_.size()) return;
    not_told_ += awaited_[store].layers;
    awaited_[store].layers = 0;
  }

  /// Layers that were not read back, or without digests. The run has ended.
  [[nodiscard]] std::uint64_t not_told() noexcept {
    for (std::size_t store = 0; store < awaited_.size(); ++store) settle(static_cast<StoreIndex>(store));
    return not_told_;
  }

 private:
  struct Awaited {
    SequenceId sequence = 0;
    std::uint64_t cause = 0;
    std::size_t layers = 0;  ///< that were not read back yet
  };
  std::vector<Awaited> awaited_;  ///< by store
  std::uint64_t not_told_ = 0;
};

}  // namespace kvwitness::verify
