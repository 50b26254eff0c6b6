/// Attention written down as in a textbook, in long double, over rows that the builder gave: what outputs of a correct
/// engine are, known without the code under test.
#pragma once

#include "kvwitness/trace/rows.hpp"
#include "trace_builder.hpp"

#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

namespace kvwitness::verify::testing {

/// Softmax attention of one query row over the given positions of a layer; an empty list gives zeros.
inline std::vector<float> naive_attention(const TraceBuilder::Layer& layer, const LayerSpec& spec,
                                          const std::vector<float>& q, const std::vector<Position>& keys) {
  std::vector<float> out(q.size(), 0.0F);
  for (std::size_t e = 0; e < q.size() && !keys.empty(); ++e) {
    const std::size_t head = e / spec.head_dim;
    const std::size_t kv = head / (spec.q_heads / spec.kv_heads) * spec.head_dim;
    long double numerator = 0;
    long double denominator = 0;
    for (const Position p : keys) {
      long double score = 0;
      for (std::size_t d = 0; d < spec.head_dim; ++d) {
        score +=
            static_cast<long double>(q[head * spec.head_dim + d]) * static_cast<long double>(layer.at(p).k[kv + d]);
      }
      const long double weight = std::exp(score / std::sqrt(static_cast<long double>(spec.head_dim)));
      numerator += weight * static_cast<long double>(layer.at(p).v[kv + e % spec.head_dim]);
      denominator += weight;
    }
    out[e] = static_cast<float>(numerator / denominator);
  }
  return out;
}

inline std::vector<Position> positions(Range range) {
  std::vector<Position> all;
  for (Position p = range.from; p < range.to; ++p) all.push_back(p);
  return all;
}

/// Query row of a stream's token.
inline std::vector<float> query_row(const TraceBuilder& trace, NameHash stream, LayerIndex layer, std::uint32_t ordinal,
                                    const LayerSpec& spec) {
  std::vector<float> q(std::size_t{spec.q_heads} * spec.head_dim);
  for (const trace::StreamClaim& claim : trace.claims.streams) {
    if (claim.spec.name == stream) trace::fill_row(claim.spec, {trace::Plane::q, layer, ordinal}, q);
  }
  return q;
}

/// A step of decode on layer 0 of a store with one layer: append, window, attend, close, and the output that the keys
/// `seen` give (the lawful ones, where a test does not say otherwise).
inline void decode_recorded(TraceBuilder& trace, StoreIndex store, SequenceId sequence, Tokens from,
                            std::string_view label, const std::vector<Position>* seen = nullptr) {
  const LayerSpec& spec = trace.spec(store, 0);
  trace.step_begin(store, sequence, Operation::decode);
  trace.append(store, sequence, 0, 1, from);
  const TraceBuilder::Layer& rows = std::as_const(trace).layer(store, sequence, 0);
  const Position query = rows.end() - 1;
  const Position low = spec.window != 0 && rows.end() > spec.window ? rows.end() - spec.window : 0;
  const Range lawful{std::max(low, rows.start), rows.end()};
  const ViewId view = trace.window(store, sequence, 0, lawful);
  trace.attend(view, query, 1, from);
  trace.close(view);
  const std::vector<float> q = query_row(trace, from.stream, 0, from.ordinal, spec);
  trace.record({store, sequence, 0}, label, trace::Plane::out, query, from.ordinal,
               naive_attention(rows, spec, q, seen != nullptr ? *seen : positions(lawful)));
  trace.step_end();
}

}  // namespace kvwitness::verify::testing
