#include "rules/whose_rows.hpp"

#include "kvwitness/trace/digest.hpp"
#include "kvwitness/trace/rows.hpp"
#include "rows/code_law.hpp"
#include "rules/calls.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace kvwitness::verify {
namespace {

constexpr std::uint32_t kPositionsMax = 64;
constexpr std::int64_t kRowsTriedMax = std::int64_t{1} << 16;
constexpr std::size_t kElementsMax = std::size_t{1} << 16;
constexpr SequenceId kSequencesMax = 64;

/// Makes K rows of one layer again, and digests them as they would lie at another position.
class Rows {
 public:
  Rows(const FoundRows& found, const Model& model, const trace::Claims& claims)
      : layer_(model.layer(found.store, found.sequence, found.layer)), index_(found.layer), claims_(claims) {
    const StoreModel* store = model.store(found.store);
    if (store != nullptr && found.layer < store->layers.size()) index_ = store->owner(found.layer);
    if (store == nullptr || found.layer >= store->layers.size() || !is_given_in_f32(*store, found.layer)) return;
    const trace::LayerDeclared& declared = store->layers[found.layer];
    const std::uint64_t elements = std::uint64_t{declared.kv_heads} * declared.head_dim;
    if (elements > 0 && elements <= kElementsMax) row_.resize(elements);
  }

  [[nodiscard]] bool usable() const noexcept { return !row_.empty() && layer_ != nullptr && !layer_->held().empty(); }

  /// Digest of position `source`'s row lying at position `at`. Rows that are lost came, by all likelihood, from the
  /// same stream as the oldest one that is left.
  [[nodiscard]] std::optional<std::uint64_t> digest(std::int64_t source, Position at) {
    if (source < 0 || source >= layer_->end()) return std::nullopt;
    const auto position = static_cast<Position>(source);
    const Position near = std::max(position, layer_->start());
    const ModelRow* row = layer_->find(near);
    const trace::StreamSpec* stream = row == nullptr ? nullptr : find(row->stream);
    if (stream == nullptr || row->ordinal < near - position) return std::nullopt;
    trace::fill_row(*stream, {trace::Plane::k, index_, row->ordinal - (near - position)}, row_);
    return trace::row_digest(std::as_bytes(std::span(row_)), at);
  }

  [[nodiscard]] std::uint64_t digest_of_zeros(Range range) {
    std::ranges::fill(row_, 0.0F);
    std::uint64_t sum = 0;
    for (Position p = range.from; p < range.to; ++p) sum += trace::row_digest(std::as_bytes(std::span(row_)), p);
    return sum;
  }

 private:
  [[nodiscard]] const trace::StreamSpec* find(trace::NameHash name) const noexcept {
    for (const trace::StreamClaim& stream : claims_.streams) {
      if (stream.spec.name == name && stream.spec.kind != trace::StreamKind::external) return &stream.spec;
    }
    return nullptr;
  }

  const LayerModel* layer_;
  LayerIndex index_;
  const trace::Claims& claims_;
  std::vector<float> row_;
};

/// True where the rows found are those of source(p) for each position p.
template <class Source>
bool is_explained_by(const FoundRows& found, Rows& rows, Source&& source) {
  std::uint64_t sum = 0;
  for (Position p = found.range.from; p < found.range.to; ++p) {
    const std::optional<std::uint64_t> digest = rows.digest(source(p), p);
    if (!digest) return false;
    sum += *digest;
  }
  return sum == found.k_digest;
}

std::optional<std::string> shifted(const FoundRows& found, Rows& rows, std::int64_t reach) {
  for (std::int64_t distance = 1; distance <= reach; ++distance) {
    for (const std::int64_t shift : {-distance, distance}) {
      if (!is_explained_by(found, rows, [&](Position p) { return std::int64_t{p} + shift; })) continue;
      const std::int64_t from = found.range.from + shift;
      return found.range.count() == 1 ? fmt::format("the row of position {}", from)
                                      : fmt::format("the rows of positions [{}, {})", from, from + found.range.count());
    }
  }
  return std::nullopt;
}

std::optional<std::string> turned(const FoundRows& found, Rows& rows) {
  const std::uint32_t count = found.range.count();
  for (std::uint32_t by = 1; by < count; ++by) {
    const auto source = [&](Position p) {
      return std::int64_t{found.range.from} + (p - found.range.from + by) % count;
    };
    if (is_explained_by(found, rows, source)) return fmt::format("its own rows, turned by {}", by);
  }
  return std::nullopt;
}

std::optional<std::string> elsewhere(const FoundRows& found, const Model& model) {
  const StoreModel& store = *model.store(found.store);
  const auto is_there = [&](SequenceId sequence, LayerIndex layer) {
    const LayerModel* rows = model.layer(found.store, sequence, layer);
    const auto digests = rows == nullptr ? std::nullopt : rows->digests(found.range);
    return digests && digests->k == found.k_digest;
  };
  for (std::size_t layer = 0; layer < store.layers.size(); ++layer) {
    if (is_there(found.sequence, static_cast<LayerIndex>(layer))) return fmt::format("the rows of layer {}", layer);
  }
  for (SequenceId sequence = 0; sequence < std::min(store.created.sequences, kSequencesMax); ++sequence) {
    if (is_there(sequence, found.layer)) return fmt::format("the rows of sequence {}", sequence);
  }
  return std::nullopt;
}

}  // namespace

std::string whose_rows(const FoundRows& found, const Model& model, const trace::Claims& claims) {
  if (model.store(found.store) == nullptr) return "unknown rows";
  if (const auto other = elsewhere(found, model)) return *other;
  Rows rows(found, model, claims);
  if (!rows.usable() || found.range.count() > kPositionsMax) return "unknown rows";
  if (rows.digest_of_zeros(found.range) == found.k_digest) return "rows of zeros";
  const std::int64_t capacity = model.store(found.store)->layers[found.layer].capacity;
  if (const auto shift = shifted(found, rows, std::min(capacity, kRowsTriedMax / found.range.count()))) return *shift;
  if (const auto turn = turned(found, rows)) return *turn;
  return "unknown rows";
}

}  // namespace kvwitness::verify
