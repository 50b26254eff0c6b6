/// Which decode steps a cost per token is counted in.
#pragma once

#include "kvwitness/verify/checker.hpp"
#include "kvwitness/verify/model.hpp"

#include <cstdint>

namespace kvwitness::verify {

/// The decode step that is under way. Budgets count from token `after_token` of a sequence on, the prefilled ones
/// included.
class DecodeStep {
 public:
  void begin(const trace::StepBegin& step, const Event& event, const Moment& moment) noexcept {
    const LayerModel* rows = moment.model.layer(event.store, event.sequence, 0);
    const Position token = rows == nullptr ? trace::kNoPosition : rows->end();
    is_counted_ = step.operation == trace::Operation::decode && token >= moment.claims.budgets.after_token;
    begun_ = event.number;
  }
  void end() noexcept { is_counted_ = false; }

  [[nodiscard]] bool is_counted() const noexcept { return is_counted_; }
  /// Number of its StepBegin.
  [[nodiscard]] std::uint64_t begun() const noexcept { return begun_; }

 private:
  bool is_counted_ = false;
  std::uint64_t begun_ = 0;
};

}  // namespace kvwitness::verify
