/// A store's decoder cache, with the driver's books and what the step expects.
#pragma once

#include "stage/stage.hpp"

#include <cstdint>

namespace kvwitness::scenarios {

/// Of one step on one store. Everything that it refers to outlives it.
class BookedCache final : public core::DecoderCache {
 public:
  BookedCache(Stage& stage, const StepSpan& span, StoreRun& store, const Step& step, std::size_t stream)
      : stage_(&stage),
        span_(&span),
        store_(&store),
        step_(&step),
        stream_(stream),
        cache_(&stage.decoders().cache(store)) {}

  /// Said before tokens are fed to a sequence: the ordinal of the first.
  void prepare(trace::SequenceId sequence, std::uint32_t ordinal) {
    cache_->prepare(sequence, stage_->source(stream_, ordinal), store_->sequence(sequence).evicted_to);
  }

  /// The same before drafts, which come from nowhere.
  void prepare_drafts(trace::SequenceId sequence) {
    cache_->prepare(sequence, {}, store_->sequence(sequence).evicted_to);
  }

  [[nodiscard]] trace::Position next_position(trace::SequenceId sequence) const override;
  core::Outcome<trace::Done> append(trace::SequenceId sequence, trace::LayerIndex layer,
                                    const core::DecoderRows& rows) override;
  core::Outcome<trace::Done> attend(trace::SequenceId sequence, trace::LayerIndex layer,
                                    const core::AttentionInput& input, const core::GoldenAttention& extra,
                                    std::span<float> out) override;
  core::Outcome<trace::Done> truncate(trace::SequenceId sequence, trace::Position to) override;

 private:
  Stage* stage_;
  const StepSpan* span_;
  StoreRun* store_;
  const Step* step_;
  std::size_t stream_;
  core::StoreCache* cache_;
};

}  // namespace kvwitness::scenarios
