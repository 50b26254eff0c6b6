/// What a correct paged store answers, besides what every store does.
#pragma once

#include "kvwitness/verify/model.hpp"

#include <optional>

namespace kvwitness::verify {

/// Of a reorder, which is about no sequence or the first of its beams.
[[nodiscard]] Lawful reorder_answer(const Model& model, StoreIndex store, const trace::Called& called);
/// The answer to a call that only paged stores know, or by a sequence that is swapped out; absent where blocks do not
/// matter. The sequence is one of the store's.
[[nodiscard]] std::optional<Lawful> paged_answer(const Model& model, StoreIndex store, SequenceId sequence,
                                                 LayerIndex layer, const trace::Called& called);
/// The answer to an append, given what it would be if there were blocks without end.
[[nodiscard]] Lawful append_with_blocks(const Model& model, StoreIndex store, SequenceId sequence,
                                        const trace::Called& called, Lawful without_end);
/// The same of a restore of what was saved.
[[nodiscard]] Lawful restore_with_blocks(const Model& model, StoreIndex store, SequenceId sequence,
                                         const SavedSequence& saved, Lawful without_end);

}  // namespace kvwitness::verify
