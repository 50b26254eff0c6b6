#include "driver/step_runner.hpp"

#include "kvwitness/trace/phase.hpp"
#include "script/stage_needs.hpp"
#include "stage/decoder_work.hpp"
#include "stage/measured_step.hpp"
#include "stage/paging_work.hpp"
#include "stage/save_work.hpp"
#include "workload/workload.hpp"

#include <algorithm>
#include <optional>

namespace kvwitness::scenarios {
namespace {

using trace::Operation;
using trace::RefusalCode;
using trace::StepOutcome;

std::vector<trace::SequenceId> sequences_of(const Step& step) {
  if (!step.interleaved.empty()) return step.interleaved;
  return {step.sequence};
}

/// What a layer's range is where a step leaves it out: what the newest token sees.
trace::Range range_of(const Step& step, StoreRun& store, trace::SequenceId sequence, trace::LayerIndex layer) {
  const trace::Range newest = store.newest_window(sequence, layer);
  return {step.from.value_or(newest.from), step.to.value_or(newest.to)};
}

/// Positions that no layer's newest token sees.
trace::Range unseen(StoreRun& store, trace::SequenceId sequence) {
  trace::Position to = trace::kNoPosition;
  for (trace::LayerIndex layer = 0; layer < store.layers(); ++layer)
    to = std::min(to, store.newest_window(sequence, layer).from);
  return {0, to};
}

/// Of a step that found nothing to do: what it expects of its call was never asked.
StepOutcome without_call(const Step& step) {
  return step.expect ? StepOutcome::aborted : StepOutcome::done;
}

}  // namespace

/// What is left to do for a store and sequence.
struct StepRunner::Turn {
  StoreRun* store = nullptr;
  trace::SequenceId sequence = 0;
  std::size_t stream = 0;
  std::uint32_t left = 0;
  std::uint32_t taken = 0;
  trace::Position begin = 0;  ///< of the rows that the step adds, in the ledger of spans
};

void StepRunner::run(std::span<const Step> steps) {
  for (const Step& step : steps) run_step(step);
}

void StepRunner::run_step(const Step& step) {
  const auto with = [&](StepOutcome (StepRunner::*call)(const Step&, StoreRun&, const StepSpan&)) {
    for_each_subject(step, [&](StoreRun& store, const StepSpan& span) { return (this->*call)(step, store, span); });
  };
  switch (step.operation) {
    case Operation::append:
    case Operation::prefill:
    case Operation::decode: return run_tokens(step);
    case Operation::window: return with(&StepRunner::open_window);
    case Operation::read: return with(&StepRunner::read_rows);
    case Operation::attend: return with(&StepRunner::attend);
    case Operation::release:
      return for_each_subject(step, [&](StoreRun& store, const StepSpan& span) {
        store.release(step.use, span.subject.sequence);
        return StepOutcome::done;
      });
    case Operation::verify:
      return for_each_subject(
          step, [&](StoreRun& store, const StepSpan& span) { return run_verify(*stage_, step, store, span); });
    case Operation::clone:
      return for_each_subject(
          step, [&](StoreRun& store, const StepSpan& span) { return run_clone(*stage_, step, store, span); });
    case Operation::save:
      return for_each_subject(
          step, [&](StoreRun& store, const StepSpan& span) { return run_save(*stage_, step, store, span); });
    case Operation::restore:
      return for_each_subject(
          step, [&](StoreRun& store, const StepSpan& span) { return run_restore(*stage_, step, store, span); });
    case Operation::fork:
      return for_each_subject(
          step, [&](StoreRun& store, const StepSpan& span) { return run_fork(*stage_, step, store, span); });
    case Operation::admit:
      return for_each_subject(
          step, [&](StoreRun& store, const StepSpan& span) { return run_admit(*stage_, step, store, span); });
    case Operation::swap_out:
    case Operation::swap_in:
      return for_each_subject(
          step, [&](StoreRun& store, const StepSpan& span) { return run_swap(*stage_, step, store, span); });
    case Operation::reorder:
      return for_each_subject(
          step, [&](StoreRun& store, const StepSpan& span) { return run_reorder(*stage_, step, store, span); });
    case Operation::compare: return run_compare(step);
    case Operation::repeat: return run_repeat(step);
    case Operation::mark: return run_mark(step);
    case Operation::workload: return replay_workload(*stage_, step);
    default: return with(&StepRunner::edit);
  }
}

template <class F>
void StepRunner::for_each_subject(const Step& step, F&& call) {
  const std::vector<StoreRun*> stores = stage_->stores(step);
  for (const trace::SequenceId sequence : sequences_of(step)) {
    for (StoreRun* store : stores) {
      const StepSpan span = stage_->begin_step(step, step.operation, *store, sequence, 0);
      const StepOutcome outcome = call(*store, span);
      stage_->end_step(span, outcome);
    }
  }
}

template <class F>
StepOutcome StepRunner::for_each_layer(const Step& step, const StoreRun& store, F&& call) {
  if (step.layer) return call(*step.layer);
  StepOutcome outcome = StepOutcome::done;
  for (trace::LayerIndex layer = 0; layer < store.layers(); ++layer) {
    const StepOutcome one = call(layer);
    if (outcome == StepOutcome::done || one == StepOutcome::aborted) outcome = one;
  }
  return outcome;
}

// ---- append, prefill, decode ----------------------------------------------------------------------------------------

std::vector<StepRunner::Turn> StepRunner::turns_of(const Step& step) {
  std::vector<Turn> turns;
  const std::size_t stream = stage_->stream(step);
  for (const trace::SequenceId sequence : sequences_of(step)) {
    for (StoreRun* store : stage_->stores(step)) {
      if (step.ordinal) store->sequence(sequence).ordinals[stream] = first_ordinal(sequence) + *step.ordinal;
      const core::SpanLedger* ledger = store->spans(sequence);
      const std::uint32_t left = step.is_prompt ? store->sequence(sequence).prompt.left : step.count;
      turns.push_back({store, sequence, stream, left, 0, ledger != nullptr ? ledger->end() : 0});
    }
  }
  return turns;
}

void StepRunner::run_tokens(const Step& step) {
  std::optional<trace::PhaseSpan> phase;
  if (step.operation == Operation::prefill) phase.emplace(stage_->bus(), trace::PhaseKind::prefill);
  if (step.operation == Operation::decode) phase.emplace(stage_->bus(), trace::PhaseKind::decode);
  std::vector<Turn> turns = turns_of(step);
  for (const Turn& turn : turns) {
    if (turn.left != 0 || !step.expect) continue;
    const StepSpan span = stage_->begin_step(step, step.operation, *turn.store, turn.sequence, 0);
    stage_->end_step(span, without_call(step));
  }
  if (step.batch) run_batches(*stage_, step);
  bool is_going = !step.batch;
  while (is_going) {
    is_going = false;
    for (Turn& turn : turns) is_going |= take_turn(step, turn);
  }
  if (!step.span.empty()) {
    for (const Turn& turn : turns) name_span(step, turn);
  }
}

void StepRunner::name_span(const Step& step, const Turn& turn) {
  core::SpanLedger* ledger = turn.store->spans(turn.sequence);
  if (ledger == nullptr || ledger->end() == turn.begin) return;
  ledger->forget(step.span);
  ledger->name(step.span, {turn.begin, ledger->end()});
}

bool StepRunner::take_turn(const Step& step, Turn& turn) {
  if (turn.left == 0) return false;
  TokenTask task{&step, turn.store, turn.sequence, turn.stream};
  task.ordinal = turn.store->sequence(turn.sequence).ordinals[turn.stream];
  task.count = rows_of_turn(step, turn);
  if (step.is_prompt) take_prompt(turn.store->sequence(turn.sequence).prompt, turn.sequence, task);
  if (step.of) task.ordinal += first_ordinal(*step.of) - first_ordinal(turn.sequence);
  if (stage_->decoders().has(turn.stream))
    task.count = stage_->decoders().tokens(turn.stream).known(turn.sequence, task.ordinal, task.count);
  task.token = turn.taken++;
  turn.left -= task.count;
  RefusalCode code = RefusalCode::none;
  if (step.operation == Operation::decode) {
    const bool is_due = turn.taken % step.attend_every == 0 || turn.left == 0;
    task.attends = is_due || crosses_any_capacity(turn.store->end(turn.sequence, 0));
    code = decode_token(*stage_, task);
  } else if (step.layer) {
    code = append_rows(task);
  } else {
    task.attends = step.operation == Operation::prefill;
    code = run_chunk(*stage_, task, step.operation);
  }
  if (step.is_prompt && code == RefusalCode::none) turn.store->accept_prompt(turn.sequence, task.count);
  stage_->advance(task.count);
  // What was refused once is refused again; one refusal tells it all.
  if (code != RefusalCode::none) turn.left = 0;
  return turn.left != 0;
}

bool StepRunner::crosses_any_capacity(trace::Position position) const {
  return std::ranges::any_of(stage_->stores(), [&](const auto& store) { return crosses_capacity(*store, position); });
}

std::uint32_t StepRunner::rows_of_turn(const Step& step, const Turn& turn) {
  if (step.operation == Operation::decode) return 1;
  // No more than there is room for, whatever is left of a prompt.
  const std::uint32_t most = std::min(turn.left, rows_at_once(step));
  if (step.layer || expects_refusal(step)) return most;
  if (step.chunk != 0) return most;
  const std::uint32_t served = turn.store->longest_append(turn.sequence);
  return served == 0 ? most : std::min(most, served);
}

RefusalCode StepRunner::append_rows(const TokenTask& task) {
  const StepSpan span = stage_->begin_step(*task.step, task.step->operation, *task.store, task.sequence, task.token);
  stage_->expect(*task.step, span, Operation::append, *task.step->layer);
  const RefusalCode code = append_layer(*stage_, task, *task.step->layer);
  stage_->end_step(span, outcome_of(code));
  return code;
}

// ---- windows --------------------------------------------------------------------------------------------------------

StepOutcome StepRunner::open_window(const Step& step, StoreRun& store, const StepSpan& span) {
  return for_each_layer(step, store, [&](trace::LayerIndex layer) {
    const trace::SequenceId sequence = span.subject.sequence;
    const trace::Range range = range_of(step, store, sequence, layer);
    stage_->expect(step, span, Operation::window, layer);
    const auto view = store.traced().open(sequence, layer, range);
    if (!view) return StepOutcome::refused;
    if (step.as.empty())
      store.traced().close(*view);
    else
      store.hold({step.as, sequence, layer, *view, range});
    return StepOutcome::done;
  });
}

StepOutcome StepRunner::read_rows(const Step& step, StoreRun& store, const StepSpan& span) {
  return for_each_layer(step, store, [&](trace::LayerIndex layer) {
    const trace::Range range = range_of(step, store, span.subject.sequence, layer);
    RowRooms& rooms = stage_->rooms();
    const trace::LayerIndex known = layer < store.layers() ? layer : trace::LayerIndex{0};
    const trace::Position end = store.traced().end(span.subject.sequence, known);
    const auto room = [&](std::vector<std::byte>& bytes, trace::Plane plane) {
      // A range longer than any layer is refused for what it asks.
      const std::uint64_t needed = core::range_bytes(store.config(), known, plane, range, end);
      return std::span(bytes).first(std::min<std::size_t>(needed, bytes.size()));
    };
    stage_->expect(step, span, Operation::read, layer);
    const auto done = store.traced().read(span.subject.sequence, layer, range,
                                          {room(rooms.read_k, trace::Plane::k), room(rooms.read_v, trace::Plane::v)});
    if (done && !step.as.empty()) record_keys(step, store, {store.index(), span.subject.sequence, layer}, range);
    return outcome_of(done.code());
  });
}

void StepRunner::record_keys(const Step& step, const StoreRun& store, trace::Subject subject, trace::Range range) {
  if (!stage_->bus().active() || store.config().k_type != trace::DType::f32) return;
  const std::size_t elements = store.geometry(subject.layer).kv_elements();
  const auto* keys = reinterpret_cast<const float*>(stage_->rooms().read_k.data());
  for (std::uint32_t i = 0; i < range.count(); ++i)
    stage_->record_row(subject, {stage_->output_name(step, store), trace::Plane::k, range.from + i, range.from + i},
                       {keys + i * elements, elements});
}

StepOutcome StepRunner::attend(const Step& step, StoreRun& store, const StepSpan& span) {
  return for_each_layer(step, store, [&](trace::LayerIndex layer) { return attend_layer(step, store, span, layer); });
}

StepOutcome StepRunner::attend_layer(const Step& step, StoreRun& store, const StepSpan& span, trace::LayerIndex layer) {
  const trace::SequenceId sequence = span.subject.sequence;
  const HeldView* held = step.use.empty() ? nullptr : store.held(step.use, sequence, layer);
  // The window was refused when it was asked for, was released, or is of another sequence or layer: nothing can be
  // asked.
  if (!step.use.empty() && held == nullptr) return StepOutcome::aborted;
  const trace::Position end = held != nullptr ? held->range.to : store.end(sequence, layer);
  QueryTask task{&step, &store, sequence, layer, stage_->stream(step)};
  task.count = step.count;
  task.first = step.from.value_or(end > step.count ? end - step.count : 0);
  task.ordinal = first_ordinal(sequence) + task.first;
  stage_->expect(step, span, Operation::attend, layer);
  return outcome_of(held != nullptr ? attend_view(*stage_, task, held->view) : attend_window(*stage_, task));
}

// ---- edits ----------------------------------------------------------------------------------------------------------

StepOutcome StepRunner::edit(const Step& step, StoreRun& store, const StepSpan& span) {
  const trace::SequenceId sequence = span.subject.sequence;
  const auto evict = [&](trace::Range range) {
    stage_->expect(step, span, Operation::evict, trace::kNoLayer);
    const auto done = store.traced().evict(sequence, range);
    if (done) store.accept_evict(sequence, range);
    return outcome_of(done.code());
  };
  switch (step.operation) {
    case Operation::evict:
      if (!step.span.empty()) return evict_span(step, store, span);
      return evict({step.from.value_or(0), step.to.value_or(0)});
    case Operation::trim: {
      if (!step.slack) return evict(unseen(store, sequence));
      const trace::Range range = store.beyond_slack(sequence, *step.slack);
      return range.empty() ? without_call(step) : evict(range);
    }
    case Operation::truncate: {
      stage_->expect(step, span, Operation::truncate, trace::kNoLayer);
      const auto done = store.traced().truncate(sequence, step.to.value_or(0));
      if (done) store.accept_truncate(sequence, step.to.value_or(0));
      return outcome_of(done.code());
    }
    case Operation::clear: {
      stage_->expect(step, span, Operation::clear, trace::kNoLayer);
      const auto done = store.traced().clear(sequence);
      if (done) store.accept_clear(sequence);
      return outcome_of(done.code());
    }
    case Operation::poison: {
      stage_->expect(step, span, Operation::poison, trace::kNoLayer);
      return outcome_of(store.traced().poison(step.fill).code());
    }
    default: {
      stage_->expect(step, span, step.operation, trace::kNoLayer);
      return outcome_of(store.traced().refuse_unsupported(sequence, step.operation).code());
    }
  }
}

StepOutcome StepRunner::evict_span(const Step& step, StoreRun& store, const StepSpan& span) {
  const trace::SequenceId sequence = span.subject.sequence;
  core::SpanLedger* ledger = store.spans(sequence);
  if (ledger == nullptr) return without_call(step);
  const std::span<const trace::Range> left = ledger->find(step.span);
  if (left.empty()) return without_call(step);
  const std::vector<trace::Range> pieces(left.rbegin(), left.rend());
  // The last piece comes first: what lies before it keeps its position.
  for (const trace::Range piece : pieces) {
    stage_->expect(step, span, Operation::evict, trace::kNoLayer);
    const auto done = store.traced().evict(sequence, piece);
    if (!done) return StepOutcome::refused;
    store.accept_evict(sequence, piece);
  }
  return StepOutcome::done;
}

// ---- the rest -------------------------------------------------------------------------------------------------------

void StepRunner::run_compare(const Step& step) {
  const auto tell = [&](const std::string& name, trace::SequenceId sequence, trace::DigestReason reason) {
    StoreRun& store = stage_->store(name);
    const StepSpan span = stage_->begin_step(step, Operation::compare, store, sequence, 0);
    store.traced().digest_state(sequence, reason, step.index);
    stage_->end_step(span, StepOutcome::done);
  };
  for (const trace::SequenceId sequence : sequences_of(step)) {
    tell(step.left, sequence, trace::DigestReason::compare_left);
    tell(step.right, sequence, trace::DigestReason::compare_right);
  }
}

void StepRunner::run_repeat(const Step& step) {
  const std::uint32_t outer = stage_->iteration();
  for (std::uint32_t i = 0; i < step.count; ++i) {
    stage_->set_iteration(outer * step.count + i);
    run(step.body);
  }
  stage_->set_iteration(outer);
}

void StepRunner::run_mark(const Step& step) {
  trace::Mark told{};
  told.label = trace::hash_name(step.label);
  told.value = stage_->iteration();
  stage_->bus().emit({}, told);
}

}  // namespace kvwitness::scenarios
