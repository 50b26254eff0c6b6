/// Named spans of a sequence (a document under quarantine, a tool's answer) that stay right while the sequence is
/// edited.
#pragma once

#include "kvwitness/core/kv_store.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kvwitness::core {

/// What an eviction does to the positions behind it.
enum class Numbering : std::uint8_t {
  renumbered,  ///< survivors move down, positions have no holes
  absolute,    ///< survivors keep their positions
};

/// Follows the edits of one sequence: tell it each one that the store accepted. A span whose tokens are all gone is
/// forgotten, and its name is free again. Spans may overlap; an eviction takes the shared tokens from each of them.
/// Appending allocates nothing while what is resident is in one piece. Open to derivation for ledgers that are wrong on
/// purpose.
class SpanLedger {
 public:
  explicit SpanLedger(Numbering numbering) : numbering_(numbering) { resident_.reserve(1); }
  SpanLedger(const SpanLedger&) = delete;
  SpanLedger& operator=(const SpanLedger&) = delete;
  virtual ~SpanLedger() = default;

  /// Position of the next token.
  [[nodiscard]] Position end() const noexcept { return end_; }
  /// Positions below `end` that were not evicted, as ascending, disjoint, non-adjacent ranges.
  [[nodiscard]] std::span<const Range> resident() const noexcept { return resident_; }

  void append(std::uint32_t count);
  /// Names the resident tokens of [range.from, range.to). Throws trace::Error where the name is taken, the range passes
  /// the end, or nothing in it is resident.
  void name(std::string_view span, Range range);
  /// Frees a name whose tokens stay.
  void forget(std::string_view span);
  /// Positions [range.from, range.to) are gone; what is gone already or past the end is ignored.
  virtual void evict(Range range);
  /// Positions from `to` on are taken back. Past the end: nothing.
  void truncate(Position to);
  void clear();

  [[nodiscard]] bool knows(std::string_view span) const noexcept { return spans_.find(span) != spans_.end(); }
  /// What is left of a span, ascending; empty where the name is not known. Renumbered spans are in one piece. Valid
  /// until the next edit.
  [[nodiscard]] std::span<const Range> find(std::string_view span) const noexcept;

  /// Evicts what is left of a span from a sequence, last piece first, and follows. `evict_range(Range)` evicts from the
  /// store and returns an Outcome; its first refusal ends the eviction and is returned, with the ledger as the store
  /// is. Returns how many positions went; 0 where the name is not known.
  template <class EvictRange>
  Outcome<std::uint32_t> evict_span(std::string_view span, EvictRange&& evict_range) {
    std::uint32_t evicted = 0;
    for (auto left = find(span); !left.empty(); left = find(span)) {
      const Range piece = left.back();
      if (const auto done = evict_range(piece); !done) return done.refusal();
      evicted += piece.count();
      evict(piece);
    }
    return evicted;
  }

 private:
  using Pieces = std::vector<Range>;
  void remove(Range range, Pieces& pieces) const;
  void forget_empty();

  Numbering numbering_;
  Position end_ = 0;
  Pieces resident_;
  std::map<std::string, Pieces, std::less<>> spans_;
};

}  // namespace kvwitness::core
