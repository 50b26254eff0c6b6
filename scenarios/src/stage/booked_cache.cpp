#include "stage/booked_cache.hpp"

namespace kvwitness::scenarios {

using core::Outcome;
using trace::Done;

trace::Position BookedCache::next_position(trace::SequenceId sequence) const {
  return cache_->next_position(sequence);
}

Outcome<Done> BookedCache::append(trace::SequenceId sequence, trace::LayerIndex layer, const core::DecoderRows& rows) {
  if (layer == 0) {
    StepSpan own = *span_;
    own.subject.sequence = sequence;
    stage_->expect(*step_, own, trace::Operation::append, layer);
  }
  const auto appended = cache_->append(sequence, layer, rows);
  if (appended) store_->accept_append(sequence, layer, stream_, rows.count);
  return appended;
}

Outcome<Done> BookedCache::attend(trace::SequenceId sequence, trace::LayerIndex layer,
                                  const core::AttentionInput& input, const core::GoldenAttention& extra,
                                  std::span<float> out) {
  return cache_->attend(sequence, layer, input, extra, out);
}

Outcome<Done> BookedCache::truncate(trace::SequenceId sequence, trace::Position to) {
  const auto done = cache_->truncate(sequence, to);
  if (done) store_->accept_truncate(sequence, to);
  return done;
}

}  // namespace kvwitness::scenarios
