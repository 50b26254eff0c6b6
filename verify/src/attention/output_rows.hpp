/// Recorded outputs with the attention that they are the answer of.
#pragma once

#include "attention/attend_calls.hpp"
#include "kvwitness/verify/attention_oracle.hpp"
#include "kvwitness/verify/checker.hpp"
#include "kvwitness/verify/model.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace kvwitness::verify {

/// An output row whose values were all told.
struct OutputRow {
  const Event& event;  ///< the TensorRecorded
  const trace::TensorRecorded& recorded;
  std::span<const float> values;
  const AttendCall& call;
};

/// Puts TensorRecorded and its TensorValues together. One row at a time, as the grammar has it: a row whose values stop
/// short is dropped, for it was told by its digest only.
class OutputRows {
 public:
  void on(const trace::StepBegin& step, const Event& event) noexcept { calls_.on(step, event); }
  void on(const trace::Called& called, const Event& event, const Moment& moment) { calls_.on(called, event, moment); }
  void on(const trace::TensorRecorded& recorded, const Event& event);
  /// The row that these values complete. Valid until the next event.
  [[nodiscard]] std::optional<OutputRow> on(const trace::TensorValues& values);

  /// Outputs of an attend that were told without any value.
  [[nodiscard]] std::uint64_t untold() const noexcept { return untold_ + (is_open_ && values_.empty() ? 1 : 0); }
  /// Outputs that no attend of their sequence, layer and position came before.
  [[nodiscard]] std::uint64_t unattributed() const noexcept { return unattributed_; }

 private:
  AttendCalls calls_;
  Event event_;
  trace::TensorRecorded recorded_{};
  AttendCall call_;  ///< other calls may come before the values
  std::vector<float> values_;
  bool is_open_ = false;
  std::uint64_t unattributed_ = 0;
  std::uint64_t untold_ = 0;
};

/// Shape of a declared layer's attention; nullopt where the declaration makes no sense (heads that do not divide, rows
/// beyond 2^20 elements).
[[nodiscard]] std::optional<OracleShape> shape_of(const StoreModel& store, LayerIndex layer) noexcept;

/// The layer that an output row belongs to, as the model has it.
struct OutputLayer {
  OracleShape shape;
  const trace::LayerDeclared& declared;
  const trace::LayerFormat& format;
  const LayerModel& rows;
  LayerIndex owner = 0;  ///< the layer that the rows were given to: a reader's donor
};
/// nullopt where the model does not follow it, or the row has another number of elements than the layer's queries.
[[nodiscard]] std::optional<OutputLayer> layer_of(const OutputRow& row, const Model& model);

}  // namespace kvwitness::verify
