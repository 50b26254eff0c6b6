/// Carries out the steps of a case.
#pragma once

#include "stage/stage.hpp"
#include "stage/token_work.hpp"

#include <span>
#include <vector>

namespace kvwitness::scenarios {

class StepRunner {
 public:
  explicit StepRunner(Stage& stage) : stage_(&stage) {}

  /// Throws trace::Error only for what could not be loaded (a workload file that changed meanwhile).
  void run(std::span<const Step> steps);

 private:
  void run_step(const Step& step);
  void run_repeat(const Step& step);
  void run_tokens(const Step& step);
  void run_compare(const Step& step);
  void run_mark(const Step& step);

  /// One turn of a store and sequence in append, prefill or decode; false where nothing is left to do for it.
  struct Turn;
  [[nodiscard]] std::vector<Turn> turns_of(const Step& step);
  [[nodiscard]] bool take_turn(const Step& step, Turn& turn);
  [[nodiscard]] std::uint32_t rows_of_turn(const Step& step, const Turn& turn);
  /// Attention that is left out of some steps runs where any store of the case wraps: all have the same outputs then.
  [[nodiscard]] bool crosses_any_capacity(trace::Position position) const;
  static void name_span(const Step& step, const Turn& turn);
  trace::RefusalCode append_rows(const TokenTask& task);

  /// Runs `call(store, sequence, span)` as a step of its own for every sequence and store; it returns the step's
  /// outcome.
  template <class F>
  void for_each_subject(const Step& step, F&& call);
  /// Runs `call(layer)` for the step's layer or for all of them; done unless one of them was not.
  template <class F>
  trace::StepOutcome for_each_layer(const Step& step, const StoreRun& store, F&& call);

  trace::StepOutcome open_window(const Step& step, StoreRun& store, const StepSpan& span);
  trace::StepOutcome read_rows(const Step& step, StoreRun& store, const StepSpan& span);
  /// Tells the K rows of a range that was read.
  void record_keys(const Step& step, const StoreRun& store, trace::Subject subject, trace::Range range);
  trace::StepOutcome attend(const Step& step, StoreRun& store, const StepSpan& span);
  trace::StepOutcome attend_layer(const Step& step, StoreRun& store, const StepSpan& span, trace::LayerIndex layer);
  /// Evicts what is left of a named span, wherever it lies by now.
  trace::StepOutcome evict_span(const Step& step, StoreRun& store, const StepSpan& span);
  trace::StepOutcome edit(const Step& step, StoreRun& store, const StepSpan& span);

  Stage* stage_;
};

}  // namespace kvwitness::scenarios
