#include "attention/output_rows.hpp"
#include "kvwitness/trace/names.hpp"
#include "rows/stream_rows.hpp"
#include "rules/calls.hpp"
#include "rules/rules.hpp"
#include "rules/told_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace kvwitness::verify {
namespace {

using Reads = Payloads<trace::StepBegin, trace::Called, trace::TensorRecorded, trace::TensorValues>;

constexpr RuleInfo kInfo{
    .id = "suffix-relativity",
    .level = Level::must,
    .says =
        "What a query answers depends on how far its keys are away, not on where they lie: the same rows behind a "
        "prefix "
        "that was dropped give the same outputs as without it.",
    .formula =
        "for each pair of outputs l, r of queries with the same (sequence, layer, ordinal) that see the same rows in "
        "the "
        "same order: |l_i - r_i| <= bound(l) + bound(r), bound by running error analysis from the lengths of q, k and "
        "v, "
        "which no rotation changes; every output has its partner, for the ordinals asked for",
    .witness = "a pair of outputs whose queries see the same rows",
    .faults =
        "rope-position (huggingface/transformers#33691, huggingface/transformers#35350, rajveer43/VeloxQuant-MLX#196, "
        "warpfront/hipfire#391)",
    .reads = Reads::kTypes,
    .standing = false,
};

constexpr double kUnit = 0x1p-24;  // rounding unit of f32
constexpr double kSmallestNormal = 0x1p-126;
constexpr double kSmallest = 0x1p-149;

/// A row by where it comes from.
struct Origin {
  trace::NameHash stream = 0;
  std::uint32_t ordinal = 0;
  friend bool operator==(const Origin&, const Origin&) noexcept = default;
};

double length_of(std::span<const float> values) noexcept {
  double sum = 0;
  for (const float value : values) sum += static_cast<double>(value) * static_cast<double>(value);
  return std::sqrt(sum);
}

/// How far an f32 kernel that is right may be off in the outputs of one head, whose values are at most `largest`. As in
/// AttentionOracle, with what rotations leave as it is in place of scores and weights, u = 2^-24 and n keys:
///
///     scores    |s_i| <= S = scale max_i |q| |k_i| by Cauchy and Schwarz, for any rotation; so
///               sum_d |q_d k_d| scale <= S, and the pairs' lengths sum up to at most S as well
///               |ds_i| <= (head_dim + 1 + kRotationUlps) u S (+ 4 u cap where capped)
///     weights   |dw_i|/w_i <= e = 2 max|ds| + 2 u S + (kExpUlps + 1) u (1 + n): the maximum rises n times at most
///     numerator |dN| / L <= (e + n u) max_i |v_i|, for no partial sum is above L max_i |v_i|
///     weight sum|dL| / L <= e + n u
///     out       |do| <= 2 (e + n u + u) max_i |v_i|, for |o| <= max_i |v_i|
///
/// times kOrderFactor, and the floor for what underflows.
double bound_of(const OracleShape& shape, double scores, std::size_t keys, double largest) noexcept {
  const double capped = shape.softcap > 0 ? std::min(scores, shape.softcap) : scores;
  const auto n = static_cast<double>(keys);
  const double score_error =
      (shape.head_dim + 1 + AttentionOracle::kRotationUlps) * kUnit * scores + 4 * kUnit * std::max(shape.softcap, 0.0);
  const double weight_error = 2 * score_error + 2 * kUnit * capped + (AttentionOracle::kExpUlps + 1) * kUnit * (1 + n);
  const double relative = 2 * (weight_error + n * kUnit + kUnit);
  return AttentionOracle::kOrderFactor * relative * largest + n * (kSmallestNormal * largest + kSmallest);
}

class SuffixRelativity final : public RuleChecker<SuffixRelativity, kInfo, Reads> {
 public:
  SuffixRelativity(const trace::RuleRequest& request, const trace::Claims& claims)
      : request_(request),
        left_(trace::hash_name(request.left)),
        right_(trace::hash_name(request.right)),
        streams_(claims) {}

  void on(const trace::StepBegin& step, const Event& event, const Moment& /*moment*/) { outputs_.on(step, event); }
  void on(const trace::Called& called, const Event& event, const Moment& moment) { outputs_.on(called, event, moment); }
  void on(const trace::TensorRecorded& recorded, const Event& event, const Moment& /*moment*/) {
    const bool is_ours = recorded.label == left_ || recorded.label == right_;
    if (is_ours) outputs_.on(recorded, event);
  }

  void on(const trace::TensorValues& values, const Event& /*event*/, const Moment& moment) {
    const std::optional<OutputRow> row = outputs_.on(values);
    if (!row) return;
    const std::uint32_t ordinal = row->call.ordinal + (row->recorded.position - row->call.queries.from);
    // Sequences of a stream begin 2^24 rows apart.
    const std::uint32_t own = ordinal - (row->event.sequence << 24U);
    if (own < request_.from_ordinal || own >= request_.to_ordinal) return;
    std::optional<Output> output = look_at(*row, ordinal, moment.model);
    if (!output) {
      ++not_recomputable_;
      return;
    }
    const Side side = row->recorded.label == left_ ? Side::left : Side::right;
    const auto partner = waiting_.meet(side, {row->event.sequence, row->event.layer, ordinal}, Output(*output));
    if (partner) judge(side == Side::left ? *output : *partner, side == Side::left ? *partner : *output, moment);
  }

 private:
  /// An output with what it may be off, and the rows that its query sees: the query itself first, then keys.
  struct Output {
    Event event;
    std::vector<float> values;
    std::vector<double> bounds;
    std::vector<Origin> seen;
  };

  std::optional<Output> look_at(const OutputRow& row, std::uint32_t ordinal, const Model& model) {
    const std::optional<OutputLayer> layer = layer_of(row, model);
    const bool is_plain =
        layer && layer->format.k_type == trace::DType::f32 && layer->format.v_type == trace::DType::f32;
    if (!is_plain) return std::nullopt;
    Output output{row.event, {row.values.begin(), row.values.end()}, {}, {{row.call.stream, ordinal}}};
    const VisibleKeys keys = lawful_keys(layer->declared, layer->rows, row.call, row.recorded.position);
    for (const Range piece : {keys.sinks, keys.window}) {
      for (Position p = piece.from; p < piece.to; ++p) {
        const ModelRow* held = layer->rows.find(p);
        if (held == nullptr) return std::nullopt;
        output.seen.push_back({held->stream, held->ordinal});
      }
    }
    if (!bound(output, layer->shape, row.event.layer, *model.store(row.event.store))) return std::nullopt;
    return output;
  }

  /// Makes the rows that the query sees again, before any rotation, and fills the output's bounds from them.
  bool bound(Output& output, const OracleShape& shape, LayerIndex layer, const StoreModel& store) {
    const LayerIndex owner = store.owner(layer);
    std::vector<float> query(shape.q_elements());
    if (!fill({trace::Plane::q, layer, output.seen.front().ordinal}, output.seen.front(), query)) return false;
    const std::size_t keys = output.seen.size() - 1;
    std::vector<double> longest(shape.kv_heads);
    std::vector<double> largest(shape.kv_elements());
    std::vector<float> row(shape.kv_elements());
    for (const Origin& key : std::span(output.seen).subspan(1)) {
      if (!fill({trace::Plane::k, owner, key.ordinal}, key, row)) return false;
      for (std::uint32_t head = 0; head < shape.kv_heads; ++head)
        longest[head] = std::max(longest[head], length_of(head_of(row, head, shape)));
      if (!fill({trace::Plane::v, owner, key.ordinal}, key, row)) return false;
      for (std::size_t i = 0; i < row.size(); ++i)
        largest[i] = std::max(largest[i], std::abs(static_cast<double>(row[i])));
    }
    for (std::uint32_t head = 0; head < shape.q_heads; ++head) {
      const std::uint32_t kv_head = head / (shape.q_heads / shape.kv_heads);
      const double scores = std::abs(shape.score_scale) * length_of(head_of(query, head, shape)) * longest[kv_head];
      for (std::uint32_t i = 0; i < shape.head_dim; ++i)
        output.bounds.push_back(bound_of(shape, scores, keys, largest[std::size_t{kv_head} * shape.head_dim + i]));
    }
    return std::ranges::all_of(output.bounds, [](double one) { return std::isfinite(one); });
  }

  static std::span<const float> head_of(std::span<const float> row, std::uint32_t head, const OracleShape& shape) {
    return row.subspan(std::size_t{head} * shape.head_dim, shape.head_dim);
  }

  bool fill(const trace::RowKey& key, const Origin& origin, std::span<float> row) const {
    const trace::StreamSpec* stream = streams_.find(origin.stream);
    if (stream != nullptr) trace::fill_row(*stream, key, row);
    return stream != nullptr;
  }

  void judge(const Output& left, const Output& right, const Moment& moment) {
    if (left.seen != right.seen || left.values.size() != right.values.size()) {
      ++unlike_;
      return;
    }
    meet();
    const Output& later = left.event.number > right.event.number ? left : right;
    const Output& earlier = left.event.number > right.event.number ? right : left;
    for (std::size_t i = 0; i < left.values.size(); ++i) {
      const double off = std::abs(static_cast<double>(left.values[i]) - static_cast<double>(right.values[i]));
      const double allowed = left.bounds[i] + right.bounds[i];
      if (off <= allowed) continue;
      return violate(
          later.event, moment,
          fmt::format("{} and {} within {:.3g}, ordinal {}: the same {} rows, as far away", request_.left,
                      request_.right, allowed, left.seen.front().ordinal, left.seen.size() - 1),
          fmt::format("element {}: {:.9g} and {:.9g}, {:.3g} apart", i, left.values[i], right.values[i], off),
          earlier.event.number);
    }
  }

  void on_end(const Moment& moment, RuleVerdict& verdict) override {
    const std::uint64_t left_out = not_recomputable_ + outputs_.unattributed();
    if (left_out != 0)
      make_inconclusive(verdict,
                        fmt::format("{} outputs have no bound: their rows come from no stream of the claims, are "
                                    "not f32 or no longer held, or no attend came before them",
                                    left_out));
    if (unlike_ != 0) make_inconclusive(verdict, fmt::format("{} pairs of queries do not see the same rows", unlike_));
    if (moment.end == nullptr || !moment.end->complete || left_out != 0) return;
    waiting_.for_each([&](Side side, const Output& output) {
      violate(output.event, moment, "a partner for each output",
              fmt::format("an output of {} that has none", side == Side::left ? request_.left : request_.right));
    });
  }

  trace::RuleRequest request_;
  trace::NameHash left_;
  trace::NameHash right_;
  StreamRows streams_;
  OutputRows outputs_;
  Pairs<std::tuple<SequenceId, LayerIndex, std::uint32_t>, Output> waiting_;
  std::uint64_t not_recomputable_ = 0;
  std::uint64_t unlike_ = 0;
};

}  // namespace

const Rule& suffix_relativity_rule() {
  return rule_of<SuffixRelativity>();
}

}  // namespace kvwitness::verify
