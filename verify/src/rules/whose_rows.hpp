/// Whose rows lie where others should: the search behind a position-order violation's text.
#pragma once

#include "kvwitness/trace/claims.hpp"
#include "kvwitness/verify/model.hpp"

#include <cstdint>
#include <string>

namespace kvwitness::verify {

/// Rows found at positions [range), with the digest of their K rows.
struct FoundRows {
  StoreIndex store = 0;
  SequenceId sequence = 0;
  LayerIndex layer = 0;
  Range range;
  std::uint64_t k_digest = 0;
};

/// "the rows of positions [4, 8)", "its own rows, turned by 3", "the rows of layer 1", "rows of zeros" or "unknown
/// rows". Looks at rows that streams can make again, of up to 64 positions, shifted by up to the layer's capacity (so
/// that lost rows are found too), and at the same positions in other layers and sequences.
[[nodiscard]] std::string whose_rows(const FoundRows& found, const Model& model, const trace::Claims& claims);

}  // namespace kvwitness::verify
