#include "rules/reported_numbers.hpp"

#include "kvwitness/trace/event_table.hpp"
#include "kvwitness/trace/names.hpp"
#include "rules/resident_bytes.hpp"

#include <algorithm>
#include <array>

namespace kvwitness::verify {
namespace {

using trace::Unit;

const trace::NameHash kReservedBytes = trace::hash_name("reserved-bytes");
const trace::NameHash kUsedBytes = trace::hash_name("used-bytes");
const trace::NameHash kResidentPositions = trace::hash_name("resident-positions");
const trace::NameHash kUniformRows = trace::hash_name("uniform-rows");
const trace::NameHash kUniformBytes = trace::hash_name("uniform-bytes");

struct Resident {
  std::uint64_t bytes = 0;
  std::uint64_t positions = 0;
};

/// Of all sequences; a layer that reads another's rows has none.
Resident resident(const StoreModel& store, StoreIndex index, const Model& model) {
  Resident sum;
  for (SequenceId sequence = 0; sequence < store.created.sequences; ++sequence) {
    for (LayerIndex layer = 0; layer < store.layers.size(); ++layer) {
      if (store.is_reader(layer)) continue;
      const LayerModel& rows = *model.layer(index, sequence, layer);
      sum.positions += rows.rows();
      sum.bytes += resident_bytes(store, layer, rows.held()) + resident_bytes(store, layer, rows.sinks());
    }
  }
  return sum;
}

}  // namespace

std::string_view unit_text(Unit unit) noexcept {
  const auto fields = trace::type_info(trace::EventType::Reported)->fields;
  const auto field = std::ranges::find(fields, "unit", &trace::FieldInfo::name);
  return trace::text_of(field->texts, static_cast<std::uint64_t>(unit)).value_or("an unknown unit");
}

std::optional<Unit> unit_of_reported(trace::NameHash what) noexcept {
  static const std::array units = {std::pair{kReservedBytes, Unit::bytes},
                                   std::pair{kUsedBytes, Unit::bytes},
                                   std::pair{kUniformBytes, Unit::bytes},
                                   std::pair{kResidentPositions, Unit::positions},
                                   std::pair{kUniformRows, Unit::positions},
                                   std::pair{trace::hash_name("free-blocks"), Unit::blocks},
                                   std::pair{trace::hash_name("held-blocks"), Unit::blocks},
                                   std::pair{trace::hash_name("cached-blocks"), Unit::blocks},
                                   std::pair{trace::hash_name("host-blocks-used"), Unit::blocks}};
  const auto found = std::ranges::find_if(units, [&](const auto& one) { return one.first == what; });
  return found != units.end() ? std::optional(found->second) : std::nullopt;
}

void ReportedNumbers::add(const trace::Allocation& taken, StoreIndex store) {
  if (taken.origin == trace::Origin::store) reserved_[store] += taken.bytes;
}

void ReportedNumbers::remove(const trace::Free& freed, StoreIndex store) {
  if (freed.origin == trace::Origin::store) reserved_[store] -= std::min(reserved_[store], freed.bytes);
}

std::optional<ReportedNumbers::Number> ReportedNumbers::take(const trace::Reported& reported, StoreIndex index,
                                                             const Model& model) {
  const StoreModel* store = model.store(index);
  if (store == nullptr) return std::nullopt;
  if (reported.what == kUniformRows || reported.what == kUniformBytes) return uniform(reported, *store, index);
  if (!store->tracked) return std::nullopt;
  if (reported.what == kReservedBytes) return Number{"reserved bytes", reserved_[index]};
  if (model.pages(index) != nullptr) return std::nullopt;
  if (reported.what == kUsedBytes) return Number{"used bytes", resident(*store, index, model).bytes};
  if (reported.what == kResidentPositions)
    return Number{"resident positions", resident(*store, index, model).positions};
  return std::nullopt;
}

/// What a uniform cache would take follows from the longest sequence that it is said to be for.
std::optional<ReportedNumbers::Number> ReportedNumbers::uniform(const trace::Reported& reported,
                                                                const StoreModel& store, StoreIndex index) {
  if (reported.what == kUniformRows) {
    uniform_rows_[index] = reported.value;
    std::uint64_t widest = 0;
    for (const trace::LayerDeclared& layer : store.layers) widest = std::max<std::uint64_t>(widest, layer.capacity);
    return Number{"uniform rows for the widest layer, of", widest, true};
  }
  std::uint64_t row = 0;
  for (const trace::LayerFormat& format : store.formats) row += format.k_row_bytes + format.v_row_bytes;
  return Number{"uniform bytes", row * uniform_rows_[index] * store.created.sequences};
}

}  // namespace kvwitness::verify
