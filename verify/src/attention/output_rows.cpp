#include "attention/output_rows.hpp"

#include <algorithm>
#include <cstddef>

namespace kvwitness::verify {
namespace {

constexpr std::uint64_t kRowElementsMax = std::uint64_t{1} << 20;

}  // namespace

void OutputRows::on(const trace::TensorRecorded& recorded, const Event& event) {
  untold_ = untold();
  is_open_ = false;
  // Outputs of no layer are a model's logits: no attention gives them alone.
  if (recorded.role != trace::Plane::out || event.layer == trace::kNoLayer) return;
  const AttendCall* call = calls_.last(event.store);
  const bool is_its_answer = call != nullptr && call->sequence == event.sequence && call->layer == event.layer &&
                             call->queries.contains(recorded.position);
  if (!is_its_answer) {
    ++unattributed_;
    return;
  }
  event_ = event;
  recorded_ = recorded;
  call_ = *call;
  values_.clear();
  is_open_ = true;
}

std::optional<OutputRow> OutputRows::on(const trace::TensorValues& values) {
  if (!is_open_ || values.tensor != recorded_.tensor || values.offset != values_.size()) return std::nullopt;
  const std::size_t count = std::min<std::size_t>(std::size(values.values), recorded_.elements - values_.size());
  for (std::size_t i = 0; i < count; ++i) values_.push_back(trace::from_bits(values.values[i]));
  if (values_.size() != recorded_.elements) return std::nullopt;
  is_open_ = false;
  return OutputRow{event_, recorded_, values_, call_};
}

std::optional<OracleShape> shape_of(const StoreModel& store, LayerIndex layer) noexcept {
  if (layer >= store.layers.size() || layer >= store.formats.size()) return std::nullopt;
  const trace::LayerDeclared& declared = store.layers[layer];
  if (declared.kv_heads == 0 || declared.head_dim == 0 || declared.q_heads == 0) return std::nullopt;
  if (declared.q_heads % declared.kv_heads != 0) return std::nullopt;
  if (std::uint64_t{declared.q_heads} * declared.head_dim > kRowElementsMax) return std::nullopt;
  const trace::LayerFormat& format = store.formats[layer];
  return OracleShape{declared.q_heads, declared.kv_heads, declared.head_dim,
                     static_cast<double>(trace::from_bits(format.score_scale_bits)),
                     static_cast<double>(trace::from_bits(format.softcap_bits))};
}

std::optional<OutputLayer> layer_of(const OutputRow& row, const Model& model) {
  const StoreModel* store = model.store(row.event.store);
  const LayerModel* rows = model.layer(row.event.store, row.event.sequence, row.event.layer);
  if (store == nullptr || rows == nullptr) return std::nullopt;
  const std::optional<OracleShape> shape = shape_of(*store, row.event.layer);
  if (!shape || row.values.size() != shape->q_elements()) return std::nullopt;
  return OutputLayer{*shape, store->layers[row.event.layer], store->formats[row.event.layer], *rows,
                     store->owner(row.event.layer)};
}

}  // namespace kvwitness::verify
