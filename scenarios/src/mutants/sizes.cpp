/// Faults that show from a size on: numbers kept in too few bits, tables that are too short.
#include "mutants/groups.hpp"

namespace kvwitness::scenarios::mutants {

namespace {

constexpr std::string_view kUnsearched = "the fault shows from a size on that no script generated has";

class SequenceInTwoBitsRing final : public PlainRing {
  using PlainRing::PlainRing;
  std::uint64_t row_of(Cell cell, Slot slot) const noexcept override {
    return PlainRing::row_of({cell.sequence & 3U, cell.layer}, slot);
  }
};

class SlotInTenBitsRing final : public PlainRing {
  using PlainRing::PlainRing;
  std::uint64_t row_of(Cell cell, Slot slot) const noexcept override { return PlainRing::row_of(cell, slot & 1023U); }
};

class EightLayersRing final : public PlainRing {
  using PlainRing::PlainRing;
  void write_rows(Cell cell, Position first, const core::RowsIn& rows) noexcept override {
    const Cell other{cell.sequence, static_cast<LayerIndex>(cell.layer & 7U)};
    const bool is_alike = geometry(other.layer).capacity == geometry(cell.layer).capacity &&
                          k_bytes(other.layer) == k_bytes(cell.layer) && v_bytes(other.layer) == v_bytes(cell.layer);
    PlainRing::write_rows(is_alike ? other : cell, first, rows);
  }
};

}  // namespace

std::span<const Mutant> sizes_mutants() {
  static const Mutant kMutants[] = {
      store_mutant<SequenceInTwoBitsRing>({"sequence-in-two-bits", "multi-sequence-interference", "", "resident-set",
                                           "the fifth sequence has the rows of the first",
                                           "the sequence was packed beside the slot, in two bits", kUnsearched}),
      store_mutant<SlotInTenBitsRing>({"slot-in-ten-bits", "offset-overflow", "", "position-order",
                                       "slots from 1,024 on are those from 0 on", "the slot was packed in ten bits",
                                       kUnsearched}),
      store_mutant<EightLayersRing>({"eight-layers", "position-past-table", "", "position-order",
                                     "rows of the ninth layer are written to the first",
                                     "the table of layers had eight entries", kUnsearched}),
  };
  return kMutants;
}

}  // namespace kvwitness::scenarios::mutants
