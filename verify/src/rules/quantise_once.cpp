// Rows become codes once, at a border that depends on position only, and the codes are those of the rows.
#include "kvwitness/trace/digest.hpp"
#include "rows/code_law.hpp"
#include "rows/code_rows.hpp"
#include "rows/stream_rows.hpp"
#include "rules/calls.hpp"
#include "rules/rules.hpp"

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace kvwitness::verify {
namespace {

using trace::Plane;

using Reads = Payloads<trace::LayerCode, trace::Called, trace::Quantise, trace::RegionMeasured>;

constexpr RuleInfo kInfo{
    .id = "quantise-once",
    .level = Level::must,
    .says =
        "Each row of a coded layer becomes a code once, by the append that moves the border past it; the newest rows "
        "stay in full precision; its code is the one that the declared code makes of the row given; and rows take the "
        "bytes that the code has.",
    .formula =
        "border(T) = max(0, floor((T - recent) / group) group); an append from T to T' codes exactly the held "
        "positions of [border(T), border(T')); digest(code at p) = digest(code(row given at p)) where the row's stream "
        "is known, which else makes it inconclusive (of keys with rope: not compared, and counted); "
        "LayerFormat.row_bytes = bytes(code, kv_heads head_dim)",
    .witness = "rows that were coded",
    .faults =
        "quantised-storage (huggingface/transformers#34189, rajveer43/VeloxQuant-MLX#86, "
        "rajveer43/VeloxQuant-MLX#430, LostRuins/koboldcpp#2088)",
    .reads = Reads::kTypes,
};

class QuantiseOnce final : public RuleChecker<QuantiseOnce, kInfo, Reads> {
 public:
  QuantiseOnce(const trace::RuleRequest& /*request*/, const trace::Claims& claims) : streams_(claims) {}

  void on(const trace::LayerCode& code, const Event& event, const Moment& moment) {
    const StoreModel* store = moment.model.store(event.store);
    if (store == nullptr || event.layer >= store->layers.size()) return;
    const bool is_k = code.plane == Plane::k;
    const trace::LayerFormat& format = store->formats[event.layer];
    const trace::DType type = is_k ? format.k_type : format.v_type;
    if (code.code != type)
      violate(event, moment, fmt::format("the {} code of the layer's format, {}", to_text(code.plane), to_text(type)),
              fmt::format("{}", to_text(code.code)));
    const std::uint64_t bytes = code_bytes(code, elements_of(*store, event.layer));
    const std::uint64_t declared = is_k ? format.k_row_bytes : format.v_row_bytes;
    if (bytes != declared)
      violate(event, moment, fmt::format("{} rows of {} bytes, scales included", to_text(code.plane), bytes),
              fmt::format("rows of {} bytes", declared));
    if (code.quantise_group == 0) violate(event, moment, "rows coded in groups of at least 1", "groups of 0");
  }

  void on(const trace::Called& called, const Event& event, const Moment& moment) {
    const LayerModel* rows = moment.model.layer(event.store, event.sequence, event.layer);
    if (called.operation != trace::Operation::append || rows == nullptr) return;
    before_ = rows->held();
  }

  void on(const trace::Quantise& told, const Event& event, const Moment& moment) {
    const StoreModel* store = moment.model.store(event.store);
    const LayerModel* rows = moment.model.layer(event.store, event.sequence, event.layer);
    if (store == nullptr || rows == nullptr) return;
    meet();
    const Range range{told.first, told.first + told.count};
    const Range lawful = coded_by_append(*store, event.layer, before_,
                                         moment.model.held_after(event.store, event.sequence, event.layer));
    if (range != lawful && !(range.empty() && lawful.empty()))
      violate(event, moment, fmt::format("{} coded", lawful.empty() ? "no row" : to_text(lawful)),
              fmt::format("{}, {}", to_text(range), how(range, lawful, coded_end(*store, event.layer, before_.to))));
    const trace::LayerFormat& format = store->formats[event.layer];
    if (told.k_type != format.k_type || told.v_type != format.v_type)
      violate(event, moment, fmt::format("codes {} and {}", to_text(format.k_type), to_text(format.v_type)),
              fmt::format("{} and {}", to_text(told.k_type), to_text(told.v_type)));
  }

  void on(const trace::RegionMeasured& region, const Event& event, const Moment& moment) {
    const CallModel* call = ended_call(region, event, moment);
    const LayerModel* rows = moment.model.layer(event.store, event.sequence, event.layer);
    const bool is_append = region.operation == trace::Operation::append;
    if (call == nullptr || rows == nullptr || !is_append || !call->done) return;
    const StoreModel& store = *moment.model.store(event.store);
    const Range coded = coded_by_append(store, event.layer, before_, rows->held());
    if (coded.empty()) return;
    meet();
    if (!call->quantised)
      return violate(event, moment, fmt::format("{} coded", to_text(coded)), "no row", call->number);
    for (Position p = coded.from; p < coded.to; ++p) judge_row(p, *rows, store, event, moment);
  }

 private:
  static std::size_t elements_of(const StoreModel& store, LayerIndex layer) noexcept {
    return std::size_t{store.layers[layer].kv_heads} * store.layers[layer].head_dim;
  }

  static std::string_view how(Range told, Range lawful, Position border) noexcept {
    if (told.from < border) return "some of which are codes already";
    if (told.to > lawful.to) return "some of which must stay in full precision";
    return "not all that are due";
  }

  void judge_row(Position position, const LayerModel& rows, const StoreModel& store, const Event& event,
                 const Moment& moment) {
    const ModelRow* row = rows.find(position);
    if (row == nullptr) return;
    if (row->k_digest == 0 || row->v_digest == 0) {
      ++not_given_;
      return;
    }
    const trace::StreamSpec* stream = streams_.find(row->stream);
    if (stream == nullptr) {
      ++not_known_;
      return;
    }
    const LayerCodes& codes = store.codes[event.layer];
    const bool has_k = store.layers[event.layer].rope == 0;
    rotated_keys_ += has_k ? 0 : 1;
    const auto made = [&](const trace::LayerCode& code, Plane plane) {
      return digest_of({*stream, code, plane, row->ordinal}, position, event, store);
    };
    const bool is_k = !has_k || made(codes.k, Plane::k).value_or(row->k_digest) == row->k_digest;
    const bool is_v = made(codes.v, Plane::v).value_or(row->v_digest) == row->v_digest;
    if (is_k && is_v) return;
    violate(event, moment, fmt::format("the codes of the row given at position {}", position),
            is_v   ? "another K code"
            : is_k ? "another V code"
                   : "another K code and another V code",
            row->epoch);
  }

  struct Source {
    const trace::StreamSpec& stream;
    const trace::LayerCode& code;
    Plane plane{};
    std::uint32_t ordinal = 0;
  };
  /// Absent where rows of the layer cannot have such a code, which was told with the declaration.
  std::optional<std::uint64_t> digest_of(const Source& source, Position position, const Event& event,
                                         const StoreModel& store) {
    row_.resize(elements_of(store, event.layer));
    if (code_bytes(source.code, row_.size()) == 0) return std::nullopt;
    trace::fill_row(source.stream, {source.plane, event.layer, source.ordinal}, row_);
    bytes_.clear();
    append_code(source.code, row_, bytes_);
    return trace::row_digest(bytes_, position);
  }

  void on_end(const Moment& /*moment*/, RuleVerdict& verdict) override {
    if (not_given_ != 0)
      make_inconclusive(verdict, fmt::format("digests of {} rows that were coded were not given", not_given_));
    if (not_known_ != 0)
      make_inconclusive(verdict, fmt::format("the codes of {} rows were not compared with the rows, which come from no "
                                             "stream of the claims",
                                             not_known_));
    if (rotated_keys_ != 0)
      add_note(verdict, fmt::format("the codes of {} keys were not compared: they were given rotated", rotated_keys_));
  }

  StreamRows streams_;
  Range before_;  ///< held before the append under way
  std::vector<float> row_;
  std::vector<std::byte> bytes_;
  std::uint64_t not_given_ = 0;
  std::uint64_t not_known_ = 0;     ///< rows that cannot be made again
  std::uint64_t rotated_keys_ = 0;  ///< of rows that can
};

}  // namespace

const Rule& quantise_once_rule() {
  return rule_of<QuantiseOnce>();
}

}  // namespace kvwitness::verify
