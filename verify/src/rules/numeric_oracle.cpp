#include "attention/compare.hpp"
#include "attention/output_rows.hpp"
#include "kvwitness/trace/digest.hpp"
#include "rows/code_bound.hpp"
#include "rows/code_law.hpp"
#include "rows/rotation.hpp"
#include "rows/stream_rows.hpp"
#include "rules/calls.hpp"
#include "rules/rules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace kvwitness::verify {
namespace {

using Reads = Payloads<trace::StepBegin, trace::Called, trace::TensorRecorded, trace::TensorValues>;

constexpr RuleInfo kInfo{
    .id = "numeric-oracle",
    .level = Level::must,
    .says =
        "Each recorded output is, within the error of f32 and of the codes that rows are held in, what attention in "
        "double over the rows of its window gives.",
    .formula =
        "|out - sum_i w_i v_i / sum_i w_i| <= bound, w_i = exp(s_i - max s), s_i = cap(scale q.k_i), i over the "
        "lawful window, q, k, v from the streams, q and k rotated where the layer's keys are, to their positions or to "
        "their ranks in the window; bound by running "
        "error analysis and, over coded rows, from the error of their codes, or the tolerance asked for (by bits: the "
        "bound). NaN only where the oracle has NaN",
    .witness = "an output whose values were told and whose rows come from streams",
    .faults =
        "degenerate-softmax (flagos-ai/FlagAttention#25, flashinfer-ai/flashinfer#363), masked-garbage-leak "
        "(Dao-AILab/flash-attention#2374, vllm-project/vllm#53628, flashinfer-ai/flashinfer#941), "
        "window-not-applied (sgl-project/sglang#11634), mask-coordinates (huggingface/transformers#32522)",
    .reads = Reads::kTypes,
};

class NumericOracle final : public RuleChecker<NumericOracle, kInfo, Reads> {
 public:
  NumericOracle(const trace::RuleRequest& request, const trace::Claims& claims)
      : tolerance_(request.tolerance), streams_(claims) {}

  void on(const trace::StepBegin& step, const Event& event, const Moment& /*moment*/) { outputs_.on(step, event); }
  void on(const trace::Called& called, const Event& event, const Moment& moment) { outputs_.on(called, event, moment); }
  void on(const trace::TensorRecorded& recorded, const Event& event, const Moment& /*moment*/) {
    outputs_.on(recorded, event);
  }

  void on(const trace::TensorValues& values, const Event& /*event*/, const Moment& moment) {
    const std::optional<OutputRow> row = outputs_.on(values);
    if (!row) return;
    if (!recompute(*row, moment)) {
      ++not_recomputable_;
      return;
    }
    meet();
    judge(*row, moment);
  }

 private:
  /// Fills expected_ and bound_; false where a row comes from no stream, or is no longer held.
  bool recompute(const OutputRow& row, const Moment& moment) {
    const std::optional<OutputLayer> layer = layer_of(row, moment.model);
    const trace::StreamSpec* queries = streams_.find(row.call.stream);
    if (!layer || queries == nullptr) return false;
    const bool is_lossy = layer->format.k_type != trace::DType::f32 || layer->format.v_type != trace::DType::f32;
    const auto rotation = layer->declared.rope != 0 ? Rotation::of(layer->declared, layer->format) : std::nullopt;
    if (layer->declared.rope != 0 && !rotation) return false;
    const StoreModel& store = *moment.model.store(row.event.store);
    const bool is_bounded = !is_lossy || is_coded(store, row.event.layer);
    if (!is_bounded && tolerance_.by == trace::Comparison::bits) return false;
    const Position query = row.recorded.position;
    keys_ = lawful_keys(layer->declared, layer->rows, row.call, query);
    const bool by_rank = layer->declared.rope == static_cast<std::uint32_t>(trace::KeyRotation::ranks);
    RowsWanted wanted{row.event.store, row.event.sequence,         layer->owner,
                      trace::Plane::k, layer->shape.kv_elements(), rotation && !by_rank ? &*rotation : nullptr};
    sink_keys_.clear();
    sink_values_.clear();
    const auto k = streams_.rows(layer->rows, wanted, keys_.window);
    if (!k || !streams_.append_rows(layer->rows, wanted, keys_.sinks, sink_keys_)) return false;
    wanted.plane = trace::Plane::v;
    wanted.rotation = nullptr;
    const auto v = streams_.rows(layer->rows, wanted, keys_.window);
    if (!v || !streams_.append_rows(layer->rows, wanted, keys_.sinks, sink_values_)) return false;
    query_.resize(layer->shape.q_elements());
    const std::uint32_t ordinal = row.call.ordinal + (query - row.call.queries.from);
    trace::fill_row(*queries, {trace::Plane::q, row.event.layer, ordinal}, query_);
    if (rotation) rotation->apply(by_rank ? rank_in_view(row.call, query) : query, query_);
    turned_keys_.clear();
    if (by_rank) {
      turned_keys_.assign(k->begin(), k->end());
      turn(*rotation, row.call, keys_.sinks.from, layer->shape.kv_elements(), sink_keys_);
      turn(*rotation, row.call, keys_.window.from, layer->shape.kv_elements(), turned_keys_);
    }
    expected_.resize(query_.size());
    bound_.resize(query_.size());
    const std::array<OracleKeys, 2> pieces{OracleKeys{sink_keys_, sink_values_},
                                           OracleKeys{by_rank ? turned_keys_ : *k, *v}};
    OracleShape shape = layer->shape;
    shape.rotated = rotation.has_value();
    oracle_.attend(shape, query_, pieces, expected_, bound_);
    return !is_coded(store, row.event.layer) || add_codes(store, layer->rows.end(), row, shape, pieces.back());
  }

  /// Adds what the codes of `rows`, of a window of a layer that ends at `end`, may be off. False where that has no
  /// bound.
  bool add_codes(const StoreModel& store, Position end, const OutputRow& row, const OracleShape& shape,
                 const OracleKeys& rows) {
    const LayerCodes& codes = store.codes[row.event.layer];
    const Range window = keys_.window;
    const Position border = std::clamp(coded_end(store, row.event.layer, end), window.from, window.to);
    const std::size_t elements = shape.kv_elements();
    if (!keys_.sinks.empty()) return false;  // no bound is derived for codes behind a gap
    if (code_bytes(codes.k, elements) == 0 || code_bytes(codes.v, elements) == 0) return false;
    add_code_bound(shape, query_, {rows, border - window.from, codes.k, codes.v}, expected_, bound_);
    return std::ranges::all_of(bound_, [](double bound) { return std::isfinite(bound); });
  }

  /// Rotates rows at positions first, first + 1, ... to their ranks in the view.
  static void turn(const Rotation& rotation, const AttendCall& call, Position first, std::size_t elements,
                   std::span<float> rows) {
    for (std::size_t at = 0; at < rows.size(); at += elements, ++first)
      rotation.apply(rank_in_view(call, first), rows.subspan(at, elements));
  }

  void judge(const OutputRow& row, const Moment& moment) {
    if (row.recorded.digest != 0 && trace::values_digest(row.values) != row.recorded.digest) {
      violate(row.event, moment, fmt::format("values with the digest of the row, {:#x}", row.recorded.digest),
              fmt::format("digest {:#x}", trace::values_digest(row.values)));
    }
    const std::optional<std::string> found =
        tolerance_.by == trace::Comparison::bits ? beyond_bound(row.values) : beyond_tolerance(row.values);
    if (!found) return;
    violate(row.event, moment,
            fmt::format("attention of query {} over keys {}, in double", row.recorded.position, keys_.text()), *found);
  }

  std::optional<std::string> beyond_bound(std::span<const float> values) const {
    for (std::size_t i = 0; i < values.size(); ++i) {
      const auto value = static_cast<double>(values[i]);
      const bool is_same = std::isnan(expected_[i])
                               ? std::isnan(value)
                               : value == expected_[i] || std::abs(value - expected_[i]) <= bound_[i];
      if (!is_same)
        return fmt::format("element {}: {:.9g} instead of {:.9g}, {:.3g} off, at most {:.3g}", i, value, expected_[i],
                           std::abs(value - expected_[i]), bound_[i]);
    }
    return std::nullopt;
  }

  std::optional<std::string> beyond_tolerance(std::span<const float> values) const {
    const std::vector<float> rounded(expected_.begin(), expected_.end());
    return difference(values, rounded, tolerance_);
  }

  void on_end(const Moment& /*moment*/, RuleVerdict& verdict) override {
    // Where a run tells values at all, an output without them is one that nobody judged.
    if (met() != 0 && outputs_.untold() != 0)
      make_inconclusive(verdict, fmt::format("{} outputs were told without their values", outputs_.untold()));
    const std::uint64_t left_out = not_recomputable_ + outputs_.unattributed();
    if (left_out == 0) return;
    make_inconclusive(
        verdict, fmt::format("{} outputs could not be recomputed: their rows come from no stream of the claims, are "
                             "rotated by angles not told, no longer held or lossy, or no attend came before them",
                             left_out));
  }

  trace::Tolerance tolerance_;
  StreamRows streams_;
  OutputRows outputs_;
  AttentionOracle oracle_;
  std::vector<float> sink_keys_;  ///< of the sinks that lie apart
  std::vector<float> sink_values_;
  std::vector<float> turned_keys_;  ///< of the window, where keys are rotated to their ranks
  std::vector<float> query_;
  std::vector<double> expected_;
  std::vector<double> bound_;
  VisibleKeys keys_;
  std::uint64_t not_recomputable_ = 0;
};

}  // namespace

const Rule& numeric_oracle_rule() {
  return rule_of<NumericOracle>();
}

}  // namespace kvwitness::verify
