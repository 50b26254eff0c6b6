#include "kvwitness/core/decoder/clone.hpp"

#include <algorithm>
#include <vector>

namespace kvwitness::core {
namespace {

using trace::Operation;

const KvStore& itself(const KvStore& store) noexcept {
  return store;
}
const KvStore& itself(const TracedStore& store) noexcept {
  return store.untold();
}

/// `Target`: KvStore, or TracedStore, whose calls are told.
template <class Target>
class Cloner {
 public:
  Cloner(SequenceIn<const KvStore> from, SequenceIn<Target> to)
      : from_(from), to_(to), geometry_(from.store.layout().config->layers), extents_(geometry_.size()) {}

  Outcome<std::uint64_t> run() {
    if (!is_possible()) return refuse(Operation::append, RefusalCode::unsupported);
    if (const auto known = find_extents(); !known) return known.refusal();
    if (const auto cleared = to_.store.clear(to_.sequence); !cleared) return cleared.refusal();
    if (const auto done = fill(); !done) {
      // Cleared again: half a copy is of no use to anyone.
      (void)to_.store.clear(to_.sequence);
      return done.refusal();
    }
    return copied_;
  }

 private:
  [[nodiscard]] bool is_possible() const {
    const StoreConfig& a = *from_.store.layout().config;
    const StoreConfig& b = *to_.store.layout().config;
    const bool is_f32 =
        a.k_type == DType::f32 && a.v_type == DType::f32 && b.k_type == DType::f32 && b.v_type == DType::f32;
    return is_f32 && a.layers == b.layers && (&from_.store != &itself(to_.store) || from_.sequence != to_.sequence);
  }

  Outcome<Done> find_extents() {
    for (LayerIndex layer = 0; layer < geometry_.size(); ++layer) {
      const auto held = from_.store.extent(from_.sequence, layer);
      if (!held) return held.refusal();
      extents_[layer] = *held;
    }
    end_ = extents_[0].end;
    front_ = extents_[0].window_start;
    for (const Extent& held : extents_) {
      if (held.end != end_) return refuse(Operation::append, RefusalCode::out_of_order, {0, end_}, held);
      front_ = std::min(front_, held.window_start);
    }
    return Done{};
  }

  /// How long the source once was: a sliding layer that starts behind the others lost its front to later positions.
  [[nodiscard]] Position longest() const noexcept {
    Position longest = end_;
    for (std::size_t l = 0; l < geometry_.size(); ++l)
      if (extents_[l].window_start > front_)
        longest = std::max(longest, extents_[l].window_start + geometry_[l].capacity);
    return longest;
  }

  Outcome<Done> fill() {
    const Position longest_end = longest();
    for (Position p = 0; p < longest_end; ++p)
      if (const auto done = append_token(p); !done) return done;
    if (const auto done = evict_front(longest_end); !done) return done;
    if (longest_end == end_) return Done{};
    if (const auto cut = to_.store.truncate(to_.sequence, end_); !cut) return cut.refusal();
    return Done{};
  }

  Outcome<Done> append_token(Position position) {
    if (const auto done = make_room(position); !done) return done;
    for (LayerIndex layer = 0; layer < geometry_.size(); ++layer) {
      if (const auto done = append_row(layer, position); !done) return done;
    }
    return Done{};
  }

  /// A layer that does not slide gives up what the source does not hold before it is full.
  Outcome<Done> make_room(Position position) {
    for (LayerIndex layer = 0; layer < geometry_.size(); ++layer) {
      const auto held = to_.store.extent(to_.sequence, layer);
      if (!held) return held.refusal();
      if (longest_append(geometry_[layer], *held) > 0) continue;
      const auto freed = to_.store.evict(to_.sequence, {0, std::min(front_, position)});
      if (!freed) return freed.refusal();
    }
    return Done{};
  }

  Outcome<Done> append_row(LayerIndex layer, Position position) {
    const std::size_t elements = geometry_[layer].kv_elements();
    k_.assign(elements, 0.0F);
    v_.assign(elements, 0.0F);
    if (position >= extents_[layer].window_start && position < end_) {
      const RowsOut out{std::as_writable_bytes(std::span(k_)), std::as_writable_bytes(std::span(v_))};
      const auto read = from_.store.read(from_.sequence, layer, {position, position + 1}, out);
      if (!read) return read.refusal();
      ++copied_;
    }
    RowsIn rows{k_.data(), v_.data(), 1};
    if (keeps_raw(layer, position)) rows.k_raw = k_raw_.data();
    if (geometry_[layer].rope) rows.rotated_to = position;
    const auto kept = to_.store.append(to_.sequence, layer, rows);
    if (!kept) return kept.refusal();
    return Done{};
  }

  /// Reads the key before rotation, where there is one; stores that keep none refuse, and need none.
  bool keeps_raw(LayerIndex layer, Position position) {
    k_raw_.assign(geometry_[layer].kv_elements(), 0.0F);
    return from_.store.read_raw(from_.sequence, layer, {position, position + 1}, k_raw_).ok();
  }

  Outcome<Done> evict_front(Position longest_end) {
    bool is_same = longest_end == end_;
    for (LayerIndex layer = 0; layer < geometry_.size(); ++layer) {
      const auto held = to_.store.extent(to_.sequence, layer);
      if (!held) return held.refusal();
      is_same = is_same && held->window_start == extents_[layer].window_start;
    }
    if (is_same || front_ == 0) return Done{};
    const auto freed = to_.store.evict(to_.sequence, {0, front_});
    if (!freed) return freed.refusal();
    return Done{};
  }

  SequenceIn<const KvStore> from_;
  SequenceIn<Target> to_;
  const std::vector<LayerGeometry>& geometry_;
  std::vector<Extent> extents_;  // of the source
  Position end_ = 0;
  Position front_ = 0;                // first position that any layer of the source holds
  std::vector<float> k_, v_, k_raw_;  // one row
  std::uint64_t copied_ = 0;
};

}  // namespace

Outcome<std::uint64_t> clone_sequence(SequenceIn<const KvStore> from, SequenceIn<KvStore> to) {
  return Cloner<KvStore>(from, to).run();
}

Outcome<std::uint64_t> clone_sequence(SequenceIn<const TracedStore> from, SequenceIn<TracedStore> to) {
  return Cloner<TracedStore>({from.store.untold(), from.sequence}, to).run();
}

}  // namespace kvwitness::core
