#include "stage/decoder_run.hpp"

#include "kvwitness/core/decoder/checkpoint.hpp"
#include "kvwitness/core/decoder/golden_math.hpp"
#include "kvwitness/trace/assert.hpp"
#include "kvwitness/trace/error.hpp"
#include "script/walk.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

namespace kvwitness::scenarios {
namespace {

using trace::RefusalCode;

constexpr std::uint64_t kLogitsBytesMax = std::uint64_t{1} << 30;

/// Ordinal counted in the sequence's own rows.
std::uint32_t own_ordinal(trace::SequenceId sequence, std::uint32_t ordinal) noexcept {
  return ordinal - first_ordinal(sequence);
}

std::size_t stream_of(const Case& which, const Step& step) {
  if (step.stream.empty()) return 0;
  const auto found = std::ranges::find(which.streams, step.stream, &StreamSource::name);
  return static_cast<std::size_t>(found - which.streams.begin());
}

bool feeds(const Step& step) noexcept {
  return step.operation == trace::Operation::prefill || step.operation == trace::Operation::decode ||
         step.operation == trace::Operation::verify;
}

/// Most tokens that each sequence is fed of a stream, over all stores.
std::map<trace::SequenceId, std::uint64_t> lengths_of(const Case& which, std::size_t stream) {
  std::map<trace::SequenceId, std::uint64_t> lengths;
  for_each_step(which.steps, [&](const Step& step, std::uint64_t times) {
    if (!feeds(step) || stream_of(which, step) != stream) return;
    const std::uint64_t tokens = step.count * times * step.on.size();
    if (step.interleaved.empty()) lengths[step.sequence] += tokens;
    for (const trace::SequenceId sequence : step.interleaved) lengths[sequence] += tokens;
  });
  return lengths;
}

core::Weights weights_of(const DecoderModel& model) {
  if (model.checkpoint.empty()) return core::seeded_weights(model.config, model.weight_seed);
  return core::load_safetensors(model.config, model.checkpoint / "model.safetensors");
}

}  // namespace

// ---- tokens ---------------------------------------------------------------------------------------------------------

TokenBook::TokenBook(const DecoderSource& source, const std::map<trace::SequenceId, std::uint64_t>& lengths)
    : source_(&source) {
  if (!source.greedy) return;
  for (const auto& [sequence, tokens] : lengths) chosen_[sequence].reserve(tokens);
}

std::uint32_t TokenBook::known(trace::SequenceId sequence, std::uint32_t ordinal, std::uint32_t count) const {
  if (!source_->greedy) return count;
  const std::size_t end = source_->tokens.size() + chosen_.at(sequence).size();
  const std::uint32_t from = own_ordinal(sequence, ordinal);
  return static_cast<std::uint32_t>(std::clamp<std::size_t>(end > from ? end - from : 1, 1, count));
}

core::Token TokenBook::at(trace::SequenceId sequence, std::uint32_t ordinal) const {
  const std::uint32_t own = own_ordinal(sequence, ordinal);
  if (source_->tokens.empty())
    return static_cast<core::Token>((source_->salt + sequence + own) % source_->model.config.vocab);
  if (own < source_->tokens.size()) return source_->tokens[own];
  if (!source_->greedy) return source_->tokens[own % source_->tokens.size()];
  const std::vector<core::Token>& chosen = chosen_.at(sequence);
  KVW_ASSERT(own - source_->tokens.size() < chosen.size());
  return chosen[own - source_->tokens.size()];
}

void TokenBook::choose_next(trace::SequenceId sequence, std::uint32_t ordinal, std::span<const float> logits) {
  if (!source_->greedy) return;
  std::vector<core::Token>& chosen = chosen_.at(sequence);
  if (own_ordinal(sequence, ordinal) + 1 != source_->tokens.size() + chosen.size()) return;
  KVW_ASSERT(chosen.size() < chosen.capacity());
  chosen.push_back(core::argmax(logits));
}

void TokenBook::clone(trace::SequenceId from, trace::SequenceId to) {
  if (!source_->greedy) return;
  const std::vector<core::Token>& source = chosen_[from];
  std::vector<core::Token>& target = chosen_[to];
  target.reserve(source.size() + target.capacity());
  target.assign(source.begin(), source.end());
}

// ---- decoders -------------------------------------------------------------------------------------------------------

DecoderRuns::DecoderRuns(const Case& which, std::span<const std::unique_ptr<StoreRun>> stores, std::uint32_t tokens_max)
    : case_(&which) {
  for (std::size_t stream = 0; stream < which.streams.size(); ++stream) {
    if (which.streams[stream].decoder)
      books_.emplace(stream, TokenBook(*which.streams[stream].decoder, lengths_of(which, stream)));
  }
  std::uint64_t vocab = 0;
  for_each_step(which.steps, [&](const Step& step, std::uint64_t /*times*/) {
    const std::size_t stream = stream_of(which, step);
    if (!feeds(step) || !has(stream)) return;
    for (const auto& store : stores) {
      if (std::ranges::find(step.on, store->name()) == step.on.end()) continue;
      build(step, *store, tokens_max);
    }
    vocab = std::max<std::uint64_t>(vocab, this->vocab(stream));
  });
  if (vocab * tokens_max * sizeof(float) > kLogitsBytesMax)
    throw trace::Error(fmt::format("the logits of {} tokens take more than {} bytes; use smaller chunks", tokens_max,
                                   kLogitsBytesMax));
  tokens_.resize(tokens_max);
  logits_.resize(vocab * tokens_max);
  path_.resize(tokens_max);
}

void DecoderRuns::build(const Step& step, StoreRun& store, std::uint32_t tokens_max) {
  const Place place{stream_of(*case_, step), store.index()};
  core::Decoder& decoder = decoder_for(case_->streams[place.first].decoder->model, store, tokens_max);
  decoders_[place] = &decoder;
  if (step.is_tree) verifiers_.try_emplace(place, decoder);
  if (!caches_.contains(store.index())) caches_[store.index()] = store.make_cache(tokens_max);
}

core::Decoder& DecoderRuns::decoder_for(const DecoderModel& model, const StoreRun& store, std::uint32_t tokens_max) {
  DecoderModel windowed = model;
  for (trace::LayerIndex layer = 0; layer < store.layers(); ++layer)
    windowed.config.layers[layer].window = core::effective_window(store.geometry(layer));
  const auto same = std::ranges::find(models_, windowed, &Model::model);
  if (same != models_.end()) return *same->decoder;
  auto decoder =
      std::make_unique<core::Decoder>(windowed.config, weights_of(windowed), tokens_max, windowed.arithmetic);
  models_.push_back({std::move(windowed), std::move(decoder)});
  return *models_.back().decoder;
}

std::uint32_t DecoderRuns::vocab(std::size_t stream) const noexcept {
  return case_->streams[stream].decoder->model.config.vocab;
}

trace::RefusalCode DecoderRuns::feed(core::DecoderCache& cache, const StoreRun& store, std::size_t stream,
                                     trace::SequenceId sequence, std::uint32_t ordinal, std::uint32_t count) {
  KVW_ASSERT(count <= tokens_.size());
  TokenBook& book = books_.at(stream);
  for (std::uint32_t i = 0; i < count; ++i) tokens_[i] = book.at(sequence, ordinal + i);
  logits_told_ = std::size_t{count} * vocab(stream);
  const auto fed = decoders_.at({stream, store.index()})
                       ->feed(cache, sequence, std::span(tokens_).first(count), std::span(logits_).first(logits_told_));
  if (!fed) return fed.code();
  book.choose_next(sequence, ordinal + count - 1, logits().last(vocab(stream)));
  return trace::RefusalCode::none;
}

RefusalCode DecoderRuns::feed_batch(core::DecoderCache& cache, StoreRun& store, std::size_t stream,
                                    std::span<const trace::SequenceId> sequences) {
  KVW_ASSERT(sequences.size() <= tokens_.size());
  TokenBook& book = books_.at(stream);
  const std::size_t vocab = this->vocab(stream);
  const auto ordinal = [&](trace::SequenceId sequence) { return store.sequence(sequence).ordinals[stream]; };
  for (std::size_t i = 0; i < sequences.size(); ++i) tokens_[i] = book.at(sequences[i], ordinal(sequences[i]));
  logits_told_ = sequences.size() * vocab;
  const auto fed = decoders_.at({stream, store.index()})
                       ->feed_batch(cache, sequences, std::span(tokens_).first(sequences.size()),
                                    std::span(logits_).first(logits_told_));
  if (!fed) return fed.code();
  for (std::size_t i = 0; i < sequences.size(); ++i)
    book.choose_next(sequences[i], ordinal(sequences[i]) - 1, logits().subspan(i * vocab, vocab));
  return RefusalCode::none;
}

core::Outcome<std::uint32_t> DecoderRuns::verify_chain(core::DecoderCache& cache, core::Decoder& decoder,
                                                       const Step& step, trace::SequenceId sequence,
                                                       core::Token expected) {
  for (std::size_t i = 0; i < step.drafts.size(); ++i) tokens_[i] = step.drafts[i].token;
  std::iota(path_.begin(), path_.end(), 0U);
  return core::verify_chain(decoder, cache, sequence, std::span(tokens_).first(step.drafts.size()), expected,
                            std::span(logits_).first(logits_told_));
}

core::Outcome<std::uint32_t> DecoderRuns::verify_tree(core::DecoderCache& cache, core::TreeVerifier& verifier,
                                                      const Step& step, trace::SequenceId sequence,
                                                      core::Token expected) {
  const std::span<float> logits = std::span(logits_).first(logits_told_);
  if (const auto seen = verifier.verify(cache, sequence, step.drafts, logits); !seen) return seen.refusal();
  const std::uint32_t accepted = core::greedy_path(step.drafts, expected, logits, path_);
  const auto kept = verifier.accept(cache, sequence, std::span(path_).first(accepted));
  if (!kept) return kept.refusal();
  return accepted;
}

RefusalCode DecoderRuns::verify(core::DecoderCache& cache, const StoreRun& store, const Step& step,
                                trace::SequenceId sequence, std::uint32_t ordinal) {
  const Place place{stream_of(*case_, step), store.index()};
  TokenBook& book = books_.at(place.first);
  const std::size_t vocab = this->vocab(place.first);
  KVW_ASSERT(step.drafts.size() <= tokens_.size());
  logits_told_ = step.drafts.size() * vocab;
  accepted_ = 0;
  const core::Token expected = book.at(sequence, ordinal);
  const auto done = step.is_tree ? verify_tree(cache, verifiers_.at(place), step, sequence, expected)
                                 : verify_chain(cache, *decoders_.at(place), step, sequence, expected);
  if (!done) return done.code();
  accepted_ = *done;
  for (std::uint32_t i = 0; i < accepted_; ++i)
    book.choose_next(sequence, ordinal + i, logits().subspan(path_[i] * vocab, vocab));
  return RefusalCode::none;
}

void DecoderRuns::clone_tokens(trace::SequenceId from, trace::SequenceId to) {
  for (auto& [stream, book] : books_) book.clone(from, to);
}

}  // namespace kvwitness::scenarios
