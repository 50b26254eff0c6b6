/// Decoders at work: their models, and the tokens that they are fed.
#pragma once

#include "kvwitness/core/decoder/decoder.hpp"
#include "kvwitness/core/decoder/speculate.hpp"
#include "kvwitness/core/decoder/store_cache.hpp"
#include "stage/store_run.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

namespace kvwitness::scenarios {

/// The tokens of one decoder stream, by sequence and ordinal.
class TokenBook {
 public:
  /// `lengths`: for each sequence that is fed, how many tokens it is fed at most.
  TokenBook(const DecoderSource& source, const std::map<trace::SequenceId, std::uint64_t>& lengths);

  /// Tokens from `ordinal` on that are known now; at most `count`, and at least one.
  [[nodiscard]] std::uint32_t known(trace::SequenceId sequence, std::uint32_t ordinal, std::uint32_t count) const;
  /// The token is known (asserts).
  [[nodiscard]] core::Token at(trace::SequenceId sequence, std::uint32_t ordinal) const;
  /// Of a greedy stream: the token after `ordinal` is the most likely one by its logits, where it is not known yet.
  void choose_next(trace::SequenceId sequence, std::uint32_t ordinal, std::span<const float> logits);
  /// `to` goes on with the tokens that were chosen for `from`. Allocates.
  void clone(trace::SequenceId from, trace::SequenceId to);

 private:
  const DecoderSource* source_;
  std::map<trace::SequenceId, std::vector<core::Token>> chosen_;  ///< after the list's end
};

/// Built before the first step; feeding allocates nothing.
class DecoderRuns {
 public:
  /// `tokens_max`: fed at a time. Throws trace::Error where a checkpoint cannot be loaded.
  DecoderRuns(const Case& which, std::span<const std::unique_ptr<StoreRun>> stores, std::uint32_t tokens_max);

  [[nodiscard]] bool has(std::size_t stream) const noexcept { return books_.contains(stream); }
  [[nodiscard]] const TokenBook& tokens(std::size_t stream) const { return books_.at(stream); }
  /// Feeds tokens [ordinal, ordinal+count) of the stream to a sequence through `cache`.
  [[nodiscard]] trace::RefusalCode feed(core::DecoderCache& cache, const StoreRun& store, std::size_t stream,
                                        trace::SequenceId sequence, std::uint32_t ordinal, std::uint32_t count);
  /// Feeds each sequence the token that is next in the stream.
  [[nodiscard]] trace::RefusalCode feed_batch(core::DecoderCache& cache, StoreRun& store, std::size_t stream,
                                              std::span<const trace::SequenceId> sequences);
  /// Verifies the step's drafts, of which the first stands for the token at `ordinal`.
  [[nodiscard]] trace::RefusalCode verify(core::DecoderCache& cache, const StoreRun& store, const Step& step,
                                          trace::SequenceId sequence, std::uint32_t ordinal);
  /// Drafts that the last `verify` accepted, in their order: rows of `logits`.
  [[nodiscard]] std::span<const std::uint32_t> accepted() const noexcept { return std::span(path_).first(accepted_); }
  /// In every stream `to` goes on with the tokens of `from`.
  void clone_tokens(trace::SequenceId from, trace::SequenceId to);
  /// Logits of each token or draft of the last call, [count][vocab].
  [[nodiscard]] std::span<const float> logits() const noexcept { return std::span(logits_).first(logits_told_); }
  [[nodiscard]] std::uint32_t vocab(std::size_t stream) const noexcept;
  /// The cache over a store that some decoder is fed to.
  [[nodiscard]] core::StoreCache& cache(const StoreRun& store) { return *caches_.at(store.index()); }

 private:
  struct Model {
    DecoderModel model;  ///< with the windows that it is run with
    std::unique_ptr<core::Decoder> decoder;
  };
  using Place = std::pair<std::size_t, trace::StoreIndex>;  ///< stream and store
  void build(const Step& step, StoreRun& store, std::uint32_t tokens_max);
  [[nodiscard]] core::Outcome<std::uint32_t> verify_chain(core::DecoderCache& cache, core::Decoder& decoder,
                                                          const Step& step, trace::SequenceId sequence,
                                                          core::Token expected);
  [[nodiscard]] core::Outcome<std::uint32_t> verify_tree(core::DecoderCache& cache, core::TreeVerifier& verifier,
                                                         const Step& step, trace::SequenceId sequence,
                                                         core::Token expected);
  [[nodiscard]] core::Decoder& decoder_for(const DecoderModel& model, const StoreRun& store, std::uint32_t tokens_max);

  const Case* case_;
  std::vector<Model> models_;
  std::map<Place, core::Decoder*> decoders_;
  std::map<Place, core::TreeVerifier> verifiers_;
  std::map<trace::StoreIndex, std::unique_ptr<core::StoreCache>> caches_;
  std::map<std::size_t, TokenBook> books_;  ///< by stream
  std::vector<core::Token> tokens_;
  std::vector<float> logits_;
  std::size_t logits_told_ = 0;
  std::vector<std::uint32_t> path_;
  std::uint32_t accepted_ = 0;
};

}  // namespace kvwitness::scenarios
