#include "decoder_work.hpp"

namespace kvwitness::scenarios {
namespace {

using core::Outcome;
using trace::Done;
using trace::RefusalCode;

/// The store's cache, with the driver's books and what the step expects.
class BookedCache final : public core::DecoderCache {
 public:
  BookedCache(Stage& stage, const TokenTask& task, const StepSpan& span)
      : stage_(&stage), task_(&task), span_(&span), cache_(&stage.decoders().cache(*task.store)) {
    const trace::Position evicted_to = task.store->sequence(task.sequence).evicted_to;
    cache_->prepare(task.sequence, stage.source(task.stream, task.ordinal), evicted_to);
  }

  [[nodiscard]] trace::Position next_position(trace::SequenceId sequence) const override {
    return cache_->next_position(sequence);
  }
  Outcome<Done> append(trace::SequenceId sequence, trace::LayerIndex layer, const core::DecoderRows& rows) override {
    if (layer == 0) stage_->expect(*task_->step, *span_, trace::Operation::append, layer);
    const auto appended = cache_->append(sequence, layer, rows);
    if (appended) task_->store->accept_append(sequence, layer, task_->stream, rows.count);
    return appended;
  }
  Outcome<Done> attend(trace::SequenceId sequence, trace::LayerIndex layer, const core::AttentionInput& input,
                       const core::GoldenAttention& extra, std::span<float> out) override {
    return cache_->attend(sequence, layer, input, extra, out);
  }
  Outcome<Done> truncate(trace::SequenceId sequence, trace::Position to) override {
    const auto done = cache_->truncate(sequence, to);
    if (done) task_->store->accept_truncate(sequence, to);
    return done;
  }

 private:
  Stage* stage_;
  const TokenTask* task_;
  const StepSpan* span_;
  core::StoreCache* cache_;
};

void record_logits(Stage& stage, const TokenTask& task, trace::Position first) {
  if (task.step->as.empty() || !stage.bus().active()) return;
  const std::size_t vocab = stage.decoders().vocab(task.stream);
  const trace::Subject subject{task.store->index(), task.sequence, trace::kNoLayer};
  for (std::uint32_t i = 0; i < task.count; ++i) {
    const std::uint32_t ordinal = task.ordinal - first_ordinal(task.sequence) + i;
    if ((ordinal + 1) % task.step->record_every != 0) continue;
    stage.record_row(subject, {stage.output_name(*task.step, *task.store), trace::Plane::out, first + i, ordinal},
                     stage.decoders().logits().subspan(i * vocab, vocab));
  }
}

}  // namespace

RefusalCode run_decoder(Stage& stage, const TokenTask& task, const StepSpan& span) {
  BookedCache cache(stage, task, span);
  const trace::Position first = task.store->end(task.sequence, 0);
  const RefusalCode code =
      stage.decoders().feed(cache, *task.store, task.stream, task.sequence, task.ordinal, task.count);
  if (code == RefusalCode::none) record_logits(stage, task, first);
  return code;
}

std::size_t events_of_logits(Stage& stage, const TokenTask& task) {
  if (!stage.decoders().has(task.stream)) return 0;
  return 1 + (stage.decoders().vocab(task.stream) + 7) / 8;
}

}  // namespace kvwitness::scenarios
