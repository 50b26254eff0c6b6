/// Verifying drafted tokens against the model: chains, whose rows go into the cache and are taken back where they are
/// rejected, and trees, whose rows stay outside of it until a path is accepted.
/// Source: speculative decoding (arXiv:2211.17192); token trees with an ancestor mask (SpecInfer, arXiv:2305.09781).
#pragma once

#include "kvwitness/core/decoder/decoder.hpp"

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace kvwitness::core {

/// Feeds a drafted chain as one chunk and takes back what greedy decoding would not have produced. `expected`: the
/// token that the model predicts to come first (argmax of the last logits). `logits` [drafted][vocab], those after each
/// drafted token. Returns how many were accepted, which is how far the sequence grew. A ring serves it where its
/// capacity is at least window + drafted - 1; then what is taken back leaves every window whole. At most tokens_max
/// tokens.
Outcome<std::uint32_t> verify_chain(Decoder& decoder, DecoderCache& cache, SequenceId sequence,
                                    std::span<const Token> drafted, Token expected, std::span<float> logits);

/// Parent of a node that follows the last token of the sequence directly.
inline constexpr std::uint32_t kSequenceEnd = std::numeric_limits<std::uint32_t>::max();

/// One drafted token of a tree. `parent`: index of an earlier node, or `kSequenceEnd`. A node of depth d (0 without
/// a drafted parent) stands at position T + d of a sequence of T tokens; nodes of one depth share their position.
struct DraftNode {
  Token token = 0;
  std::uint32_t parent = kSequenceEnd;
};

/// Nodes that greedy decoding would have produced, from a root on: a child is taken where it is its parent's argmax; of
/// equal children the first. `logits` [nodes][vocab]. Writes node indices to `path` [nodes] and returns their count.
[[nodiscard]] std::uint32_t greedy_path(std::span<const DraftNode> nodes, Token expected, std::span<const float> logits,
                                        std::span<std::uint32_t> path) noexcept;

/// Verifies trees over a cache that they do not touch. A node attends over the cached keys of its own window, by its
/// own absolute position, over its ancestors inside that window, and itself; siblings never see each other. Every node
/// has the bits of its path fed serially. Nothing is allocated after construction. The decoder outlives it; not
/// thread-safe.
class TreeVerifier {
 public:
  /// Room for trees of `decoder.tokens_max()` nodes.
  explicit TreeVerifier(Decoder& decoder);

  /// `logits` [nodes][vocab]: after each node. Parents come before their children (asserts). A refusal of the cache
  /// ends it; then nothing can be accepted.
  Outcome<Done> verify(DecoderCache& cache, SequenceId sequence, std::span<const DraftNode> nodes,
                       std::span<float> logits);

  /// Appends the rows of a path of the tree verified last, as one chunk: `path` starts without a drafted parent, and
  /// each node is the parent of the next (asserts). The sequence must not have grown since (asserts). An empty path
  /// appends nothing. Afterwards the tree is forgotten.
  Outcome<Done> accept(DecoderCache& cache, SequenceId sequence, std::span<const std::uint32_t> path);

 private:
  struct Planes {
    std::vector<float> k, k_raw, v;  // [tokens_max][kv width]
  };

  void plant(std::span<const DraftNode> nodes, Position end);
  void keep_rows(LayerIndex layer, std::uint32_t count);
  /// Rows of a node's ancestors and its own, by ascending position.
  [[nodiscard]] std::span<const Run> path_to(LayerIndex layer, std::uint32_t node) noexcept;
  void gather(LayerIndex layer, std::span<const std::uint32_t> path) noexcept;

  Decoder& decoder_;
  Position end_ = 0;              // of the sequence, when the tree was planted
  std::vector<DraftNode> nodes_;  // of the tree verified last; empty: none
  std::vector<Position> positions_;
  std::vector<Planes> layers_;
  Planes path_rows_;
  std::vector<Run> runs_;
};

}  // namespace kvwitness::core
