/// What several rules ask of a call.
#pragma once

#include "kvwitness/trace/event_table.hpp"
#include "kvwitness/verify/checker.hpp"
#include "kvwitness/verify/model.hpp"
#include "kvwitness/verify/pages_model.hpp"

#include <fmt/format.h>

#include <string>

namespace kvwitness::verify {

/// The call that this event ended; null where it ends none (the region of a whole token, a store unknown to the model).
[[nodiscard]] inline const CallModel* ended_call(const trace::RegionMeasured& region, const Event& event,
                                                 const Moment& moment) noexcept {
  const StoreModel* store = moment.model.store(event.store);
  if (store == nullptr || store->call.number == 0) return nullptr;
  const CallModel& call = store->call;
  return region.operation == call.called.operation && event.sequence == call.sequence ? &call : nullptr;
}

[[nodiscard]] inline RefusalCode outcome_of(const CallModel& call) noexcept {
  return call.refused ? call.refused->reason : RefusalCode::none;
}

/// "done", "refused: evicted"
[[nodiscard]] inline std::string outcome_text(RefusalCode code) {
  return code == RefusalCode::none ? "done" : fmt::format("refused: {}", trace::to_text(code));
}

/// True where the call was done although every lawful answer refuses it.
[[nodiscard]] inline bool is_unlawfully_done(const CallModel& call) noexcept {
  return !call.refused && !call.law.allows(RefusalCode::none);
}

/// "[3, 7)"
[[nodiscard]] inline std::string to_text(Range range) {
  return fmt::format("[{}, {})", range.from, range.to);
}

/// A state read back while the sequence is swapped out shows no row.
[[nodiscard]] inline bool shows_nothing(const trace::StateDigest& state, Position end) noexcept {
  return state.from == end && state.to == end && state.k_digest == 0 && state.v_digest == 0;
}

/// Slots that the layer's rows may have: those of its capacity, or of all blocks of a pool.
[[nodiscard]] inline std::uint64_t slots_of(const Model& model, StoreIndex store, LayerIndex layer) noexcept {
  const PagesModel* pages = model.pages(store);
  return pages != nullptr ? std::uint64_t{pages->pool().pool_blocks} * pages->block()
                          : model.store(store)->layers[layer].capacity;
}

inline void add_note(RuleVerdict& verdict, const std::string& note) {
  verdict.note += (verdict.note.empty() ? "" : "; ") + note;
}

/// What the trace left out stands in the way of a pass.
inline void make_inconclusive(RuleVerdict& verdict, const std::string& note) {
  verdict.status = Status::inconclusive;
  add_note(verdict, note);
}

}  // namespace kvwitness::verify
