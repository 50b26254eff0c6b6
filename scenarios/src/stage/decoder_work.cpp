#include "stage/decoder_work.hpp"

#include "kvwitness/core/decoder/clone.hpp"
#include "stage/booked_cache.hpp"
#include "stage/measured_step.hpp"

#include <algorithm>
#include <vector>

namespace kvwitness::scenarios {
namespace {

using trace::Operation;
using trace::RefusalCode;
using trace::StepOutcome;

/// Logits of one token.
struct TokenLogits {
  trace::Subject subject;
  trace::Position position = 0;
  std::uint32_t ordinal = 0;  ///< in the stream
  std::size_t row = 0;        ///< of the logits told last
};

void record_logits(Stage& stage, const Step& step, std::size_t stream, const TokenLogits& of) {
  if (step.as.empty() || !stage.bus().active()) return;
  const std::uint32_t ordinal = of.ordinal - first_ordinal(of.subject.sequence);
  if ((ordinal + 1) % step.record_every != 0) return;
  const std::size_t vocab = stage.decoders().vocab(stream);
  const StoreRun& store = *stage.stores()[of.subject.store];
  stage.record_row(of.subject, {stage.output_name(step, store), trace::Plane::out, of.position, ordinal},
                   stage.decoders().logits().subspan(of.row * vocab, vocab));
}

/// A batch of one store, step after step.
struct BatchRun {
  StoreRun* store = nullptr;
  bool is_over = false;
};

RefusalCode feed_batch(Stage& stage, const Step& step, StoreRun& store, const StepSpan& span) {
  const std::size_t stream = stage.stream(step);
  BookedCache cache(stage, span, store, step, stream);
  const std::span<const trace::SequenceId> sequences = step.interleaved;
  for (const trace::SequenceId sequence : sequences) cache.prepare(sequence, store.sequence(sequence).ordinals[stream]);
  const RefusalCode code = stage.decoders().feed_batch(cache, store, stream, sequences);
  if (code != RefusalCode::none) return code;
  for (std::size_t row = 0; row < sequences.size(); ++row) {
    const trace::SequenceId sequence = sequences[row];
    record_logits(stage, step, stream,
                  {{store.index(), sequence, trace::kNoLayer},
                   store.end(sequence, 0) - 1,
                   store.sequence(sequence).ordinals[stream] - 1,
                   row});
  }
  return code;
}

RefusalCode decode_batch(Stage& stage, const Step& step, StoreRun& store, std::uint32_t token) {
  const StepSpan span = stage.begin_step(step, Operation::decode, store, step.sequence, token);
  const std::size_t per_sequence = events_of_token(store, true) + events_of_logits(stage, stage.stream(step));
  return measured_decode(stage, span, per_sequence * step.interleaved.size(),
                         [&] { return feed_batch(stage, step, store, span); });
}

}  // namespace

RefusalCode run_decoder(Stage& stage, const TokenTask& task, const StepSpan& span) {
  BookedCache cache(stage, span, *task.store, *task.step, task.stream);
  cache.prepare(task.sequence, task.ordinal);
  const trace::Position first = task.store->end(task.sequence, 0);
  const RefusalCode code =
      stage.decoders().feed(cache, *task.store, task.stream, task.sequence, task.ordinal, task.count);
  if (code != RefusalCode::none) return code;
  const trace::Subject subject{task.store->index(), task.sequence, trace::kNoLayer};
  for (std::uint32_t i = 0; i < task.count; ++i)
    record_logits(stage, *task.step, task.stream, {subject, first + i, task.ordinal + i, i});
  return code;
}

std::size_t events_of_logits(Stage& stage, std::size_t stream) {
  if (!stage.decoders().has(stream)) return 0;
  return 1 + (stage.decoders().vocab(stream) + 7) / 8;
}

void run_batches(Stage& stage, const Step& step) {
  const std::size_t stream = stage.stream(step);
  std::vector<BatchRun> runs;
  for (StoreRun* store : stage.stores(step)) {
    runs.push_back({store});
    for (const trace::SequenceId sequence : step.interleaved)
      if (step.ordinal) store->sequence(sequence).ordinals[stream] = first_ordinal(sequence) + *step.ordinal;
  }
  for (std::uint32_t token = 0; token < step.count; ++token) {
    for (BatchRun& run : runs) {
      if (run.is_over) continue;
      run.is_over = decode_batch(stage, step, *run.store, token) != RefusalCode::none;
      stage.advance(step.interleaved.size());
    }
  }
}

StepOutcome run_verify(Stage& stage, const Step& step, StoreRun& store, const StepSpan& span) {
  const std::size_t stream = stage.stream(step);
  const trace::SequenceId sequence = span.subject.sequence;
  const std::uint32_t ordinal = store.sequence(sequence).ordinals[stream];
  const trace::Position first = store.end(sequence, 0);
  BookedCache cache(stage, span, store, step, stream);
  cache.prepare_drafts(sequence);
  const RefusalCode code = stage.decoders().verify(cache, store, step, sequence, ordinal);
  stage.advance(step.count);
  if (code != RefusalCode::none) return StepOutcome::refused;
  const std::span<const std::uint32_t> accepted = stage.decoders().accepted();
  store.sequence(sequence).ordinals[stream] = ordinal + static_cast<std::uint32_t>(accepted.size());
  for (std::uint32_t i = 0; i < accepted.size(); ++i)
    record_logits(stage, step, stream,
                  {{store.index(), sequence, trace::kNoLayer}, first + i, ordinal + i, accepted[i]});
  return StepOutcome::done;
}

StepOutcome run_clone(Stage& stage, const Step& step, StoreRun& store, const StepSpan& span) {
  core::TracedStore& traced = store.traced();
  const trace::SequenceId to = span.subject.sequence;
  // In the middle of a token there is nothing to copy yet, and nothing is done to the target.
  const std::vector<trace::Position>& ends = store.sequence(step.cloned).ends;
  if (std::ranges::count(ends, ends.front()) != std::ssize(ends)) return StepOutcome::aborted;
  const auto cloned = core::clone_sequence(core::SequenceIn<const core::TracedStore>{traced, step.cloned},
                                           core::SequenceIn<core::TracedStore>{traced, to});
  if (!cloned) {
    store.accept_clear(to);
    return StepOutcome::refused;
  }
  store.accept_clone(step.cloned, to);
  stage.decoders().clone_tokens(step.cloned, to);
  return StepOutcome::done;
}

}  // namespace kvwitness::scenarios
