#include "attention/output_rows.hpp"
#include "kvwitness/trace/rows.hpp"
#include "rows/code_law.hpp"
#include "rows/stream_rows.hpp"
#include "rules/calls.hpp"
#include "rules/rules.hpp"
#include "rules/seen_keys.hpp"

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
    .id = "visible-set",
    .level = Level::must,
    .says =
        "Seen from outside, through keys that are all equal, an output is the mean of the values of exactly the keys "
        "that its query may see.",
    .formula =
        "all k_p equal => out(q) = mean of v_p over {p resident: p <= q, and q - W + 1 <= p or p < S}, per kv head, "
        "within the rounding of f32",
    .witness =
        "an output whose values were told and whose window holds rows of one indicator stream (or one random stream "
        "of equal keys) only",
    .faults =
        "stale-slot-visible (huggingface/transformers#45940), window-off-by-one (huggingface/transformers#39408, "
        "vllm-project/vllm#4380), window-not-applied (karpathy/nanochat#452, unslothai/unsloth#8253), "
        "window-tile-granular (pytorch/executorch#21857), mask-coordinates (NVIDIA-NeMo/Megatron-Bridge#5259), "
        "mask-width (fla-org/flash-linear-attention#431), padding-visible (huggingface/transformers#40324)",
    .reads = Reads::kTypes,
};

bool has_equal_keys(const trace::StreamSpec& stream) noexcept {
  return stream.kind == trace::StreamKind::indicator ||
         (stream.kind == trace::StreamKind::random && stream.shape == trace::RandomShape::equal_keys);
}

class VisibleSet final : public RuleChecker<VisibleSet, kInfo, Reads> {
 public:
  VisibleSet(const trace::RuleRequest& /*request*/, const trace::Claims& claims) : streams_(claims) {}

  void on(const trace::StepBegin& step, const Event& event, const Moment& /*moment*/) { outputs_.on(step, event); }
  void on(const trace::Called& called, const Event& event, const Moment& moment) { outputs_.on(called, event, moment); }
  void on(const trace::TensorRecorded& recorded, const Event& event, const Moment& /*moment*/) {
    outputs_.on(recorded, event);
  }

  void on(const trace::TensorValues& values, const Event& /*event*/, const Moment& moment) {
    const std::optional<OutputRow> row = outputs_.on(values);
    const std::optional<OutputLayer> layer = row ? layer_of(*row, moment.model) : std::nullopt;
    if (!layer) return;
    const VisibleKeys lawful = lawful_keys(layer->declared, layer->rows, row->call, row->recorded.position);
    const trace::StreamSpec* stream = common_stream(layer->rows, lawful.window);
    if (stream != nullptr && !lawful.sinks.empty() && common_stream(layer->rows, lawful.sinks) != stream) return;
    if (stream == nullptr || layer->declared.rope != 0) return;  // equal keys are no longer equal once rotated
    // Values no longer name their ordinals once they were rounded.
    const StoreModel& store = *moment.model.store(row->event.store);
    if (is_coded(store, row->event.layer) || !is_given_in_f32(store, row->event.layer)) return;
    const RowsWanted wanted{row->event.store, row->event.sequence, layer->owner, trace::Plane::v,
                            layer->shape.kv_elements()};
    const auto v = streams_.rows(layer->rows, wanted, lawful.window);
    sinks_.clear();
    if (!v || !streams_.append_rows(layer->rows, wanted, lawful.sinks, sinks_)) return;
    meet();
    take_mean(layer->shape, *v);
    const std::optional<std::size_t> wrong = first_wrong(row->values);
    if (!wrong) return;
    violate(row->event, moment, fmt::format("query {} sees keys {}", row->recorded.position, lawful.text()),
            fmt::format("it saw {} (element {}: {:.9g} instead of {:.9g})", seen(*row, *layer, *stream, lawful), *wrong,
                        row->values[*wrong], mean_[*wrong]));
  }

 private:
  /// The stream of equal keys that all rows of the range come from; null where there is none.
  const trace::StreamSpec* common_stream(const LayerModel& rows, Range range) const {
    const ModelRow* first = range.empty() ? nullptr : rows.find(range.from);
    const trace::StreamSpec* stream = first == nullptr ? nullptr : streams_.find(first->stream);
    if (stream == nullptr || !has_equal_keys(*stream)) return nullptr;
    for (Position p = range.from + 1; p < range.to; ++p) {
      const ModelRow* row = rows.find(p);
      if (row == nullptr || row->stream != first->stream) return nullptr;
    }
    return stream;
  }

  void take_mean(const OracleShape& shape, std::span<const float> v) {
    // A query of zeros scores every key alike, whatever lies in K; so the oracle's bound covers a mean as well.
    query_.assign(shape.q_elements(), 0.0F);
    mean_.resize(query_.size());
    bound_.resize(query_.size());
    const std::array<OracleKeys, 2> keys{OracleKeys{sinks_, sinks_}, OracleKeys{v, v}};
    oracle_.attend(shape, query_, keys, mean_, bound_);
  }

  std::optional<std::size_t> first_wrong(std::span<const float> values) const {
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (!(std::abs(static_cast<double>(values[i]) - mean_[i]) <= bound_[i])) return i;
    }
    return std::nullopt;
  }

  /// Also rows that were lost are tried, and such as the query is too early for.
  std::string seen(const OutputRow& row, const OutputLayer& layer, const trace::StreamSpec& stream,
                   const VisibleKeys& lawful) const {
    if (shown().size() == kViolationsKept || !lawful.sinks.empty()) return "other keys";
    const Position start = layer.rows.start();
    const ModelRow* first = layer.rows.find(start);
    if (first == nullptr) return "other keys";
    const std::uint32_t oldest = first->ordinal;
    const Position lost = std::min({layer.declared.capacity, start, oldest});
    const Range tried{start - lost, layer.rows.end()};
    // A trace that does not add up may have attended to rows that nobody gave.
    if (lawful.window.from < tried.from || lawful.window.to > tried.to) return "other keys";
    const std::size_t elements = layer.shape.kv_elements();
    if (tried.count() > kSeenKeysMax || tried.count() * elements > StreamRows::kFloatsMax) return "other keys";
    std::vector<float> v(tried.count() * elements);
    for (Position p = tried.from; p < tried.to; ++p) {
      const ModelRow* held = layer.rows.find(p);
      const std::uint32_t ordinal = held != nullptr ? held->ordinal : oldest - (start - p);
      trace::fill_row(stream, {trace::Plane::v, layer.owner, ordinal},
                      std::span(v).subspan((p - tried.from) * elements, elements));
    }
    return seen_keys({row.values, layer.shape.q_heads / layer.shape.kv_heads, layer.shape.head_dim, tried.from, v,
                      lawful.window, std::min<std::uint32_t>(layer.declared.capacity, kSeenKeysMax)});
  }

  StreamRows streams_;
  OutputRows outputs_;
  AttentionOracle oracle_;
  std::vector<float> sinks_;  ///< V rows of the sinks that lie apart
  std::vector<float> query_;
  std::vector<double> mean_;
  std::vector<double> bound_;
};

}  // namespace

const Rule& visible_set_rule() {
  return rule_of<VisibleSet>();
}

}  // namespace kvwitness::verify
