#include "kvwitness/core/decoder/speculate.hpp"

#include "kvwitness/core/decoder/golden_math.hpp"
#include "kvwitness/trace/assert.hpp"

#include <algorithm>

namespace kvwitness::core {

Outcome<std::uint32_t> verify_chain(Decoder& decoder, DecoderCache& cache, SequenceId sequence,
                                    std::span<const Token> drafted, Token expected, std::span<float> logits) {
  const std::size_t vocab = decoder.config().vocab;
  KVW_ASSERT(logits.size() == drafted.size() * vocab);
  const Position end = cache.next_position(sequence);
  if (const auto fed = decoder.feed(cache, sequence, drafted, logits); !fed) return fed.refusal();
  std::uint32_t accepted = 0;
  while (accepted < drafted.size() && drafted[accepted] == expected) {
    expected = argmax(logits.subspan(accepted * vocab, vocab));
    ++accepted;
  }
  if (accepted == drafted.size()) return accepted;
  if (const auto taken_back = cache.truncate(sequence, end + accepted); !taken_back) return taken_back.refusal();
  return accepted;
}

std::uint32_t greedy_path(std::span<const DraftNode> nodes, Token expected, std::span<const float> logits,
                          std::span<std::uint32_t> path) noexcept {
  if (nodes.empty()) return 0;
  const std::size_t vocab = logits.size() / nodes.size();
  std::uint32_t parent = kSequenceEnd;
  std::uint32_t count = 0;
  // Parents come before their children, so one pass meets the path in order.
  for (std::uint32_t node = 0; node < nodes.size(); ++node) {
    if (nodes[node].parent != parent || nodes[node].token != expected) continue;
    path[count++] = node;
    parent = node;
    expected = argmax(logits.subspan(node * vocab, vocab));
  }
  return count;
}

TreeVerifier::TreeVerifier(Decoder& decoder) : decoder_(decoder) {
  const std::size_t nodes_max = decoder_.tokens_max();
  const std::size_t values = nodes_max * decoder_.config().kv_width();
  path_rows_ = {std::vector<float>(values), std::vector<float>(values), std::vector<float>(values)};
  layers_.assign(decoder_.config().layers.size(), path_rows_);
  nodes_.reserve(nodes_max);
  positions_.resize(nodes_max);
  runs_.resize(nodes_max);
}

void TreeVerifier::plant(std::span<const DraftNode> nodes, Position end) {
  KVW_ASSERT(!nodes.empty() && nodes.size() <= decoder_.tokens_max());
  end_ = end;
  for (std::uint32_t node = 0; node < nodes.size(); ++node) {
    const std::uint32_t parent = nodes[node].parent;
    KVW_ASSERT(parent == kSequenceEnd || parent < node);
    positions_[node] = parent == kSequenceEnd ? end : positions_[parent] + 1;
    decoder_.embed(nodes[node].token, node);
    decoder_.set_position(node, positions_[node]);
  }
  nodes_.assign(nodes.begin(), nodes.end());
}

void TreeVerifier::keep_rows(LayerIndex layer, std::uint32_t count) {
  const DecoderRows rows = decoder_.rows_of(0, count);
  std::ranges::copy(rows.k, layers_[layer].k.begin());
  std::ranges::copy(rows.k_raw, layers_[layer].k_raw.begin());
  std::ranges::copy(rows.v, layers_[layer].v.begin());
}

std::span<const Run> TreeVerifier::path_to(LayerIndex layer, std::uint32_t node) noexcept {
  const std::size_t width = decoder_.config().kv_width();
  const std::size_t depth = positions_[node] - end_;
  for (std::size_t at = depth + 1; at-- > 0; node = nodes_[node].parent) {
    Run& run = runs_[at];
    run = {};
    run.first = positions_[node];
    run.count = 1;
    run.k = std::as_bytes(std::span(layers_[layer].k).subspan(node * width, width)).data();
    run.v = std::as_bytes(std::span(layers_[layer].v).subspan(node * width, width)).data();
  }
  return std::span(runs_).first(depth + 1);
}

Outcome<Done> TreeVerifier::verify(DecoderCache& cache, SequenceId sequence, std::span<const DraftNode> nodes,
                                   std::span<float> logits) {
  const DecoderConfig& config = decoder_.config();
  KVW_ASSERT(logits.size() == nodes.size() * config.vocab);
  plant(nodes, cache.next_position(sequence));
  const auto count = static_cast<std::uint32_t>(nodes.size());
  for (LayerIndex layer = 0; layer < config.layers.size(); ++layer) {
    for (std::uint32_t node = 0; node < count; ++node) decoder_.make_rows(layer, node);
    keep_rows(layer, count);
    GoldenAttention extra = decoder_.extra();
    for (std::uint32_t node = 0; node < count; ++node) {
      extra.drafts = path_to(layer, node);
      const AttentionInput input = decoder_.input_for(layer, node, 1, positions_[node]);
      const auto seen = cache.attend(sequence, layer, input, extra, decoder_.attended(node, 1));
      if (!seen) {
        nodes_.clear();
        return seen;
      }
    }
    for (std::uint32_t node = 0; node < count; ++node) decoder_.finish_layer(layer, node);
  }
  for (std::uint32_t node = 0; node < count; ++node)
    decoder_.write_logits(node, logits.subspan(node * std::size_t{config.vocab}, config.vocab));
  return Done{};
}

void TreeVerifier::gather(LayerIndex layer, std::span<const std::uint32_t> path) noexcept {
  const std::size_t width = decoder_.config().kv_width();
  const auto gather_plane = [&](const std::vector<float>& from, std::vector<float>& to) {
    for (std::size_t i = 0; i < path.size(); ++i)
      std::ranges::copy(std::span(from).subspan(path[i] * width, width),
                        to.begin() + static_cast<std::ptrdiff_t>(i * width));
  };
  gather_plane(layers_[layer].k, path_rows_.k);
  gather_plane(layers_[layer].k_raw, path_rows_.k_raw);
  gather_plane(layers_[layer].v, path_rows_.v);
}

Outcome<Done> TreeVerifier::accept(DecoderCache& cache, SequenceId sequence, std::span<const std::uint32_t> path) {
  std::uint32_t parent = kSequenceEnd;
  for (const std::uint32_t node : path) {
    KVW_ASSERT(node < nodes_.size() && nodes_[node].parent == parent);
    parent = node;
  }
  nodes_.clear();
  if (path.empty()) return Done{};
  KVW_ASSERT(cache.next_position(sequence) == end_);
  const std::size_t values = path.size() * decoder_.config().kv_width();
  for (LayerIndex layer = 0; layer < layers_.size(); ++layer) {
    gather(layer, path);
    const DecoderRows rows{std::span(path_rows_.k).first(values), std::span(path_rows_.k_raw).first(values),
                           std::span(path_rows_.v).first(values), static_cast<std::uint32_t>(path.size())};
    if (const auto kept = cache.append(sequence, layer, rows); !kept) return kept;
  }
  return Done{};
}

}  // namespace kvwitness::core
