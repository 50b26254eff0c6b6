#include "kvwitness/trace/digest.hpp"
#include "seam/traced_call.hpp"

#include <algorithm>

namespace kvwitness::core {

using trace::Operation;

namespace {

/// As an event of a save or of a restore, which have the same fields.
template <class P>
P told_state(const SavedState& state, std::uint64_t digest) noexcept {
  P told{};
  told.bytes = state.bytes;
  told.digest = digest;
  told.from = state.from;
  told.to = state.to;
  return told;
}

/// Null where the store does not say that it can.
Saving* saving_of(KvStore& store, const StoreLayout& layout) noexcept {
  return can(layout, trace::Capability::save) ? store.saving() : nullptr;
}

}  // namespace

Outcome<std::uint64_t> TracedStore::saved_bytes(SequenceId sequence) const {
  const Saving* saving = saving_of(*store_, layout_);
  if (saving == nullptr) return cannot(sequence, Operation::save);
  return guarded<std::uint64_t>(Operation::save, [&] { return saving->saved_bytes(sequence); });
}

Outcome<SavedState> TracedStore::save(SequenceId sequence, std::span<std::byte> out) {
  Call call{.operation = Operation::save, .subject = {index_, sequence, trace::kNoLayer}};
  begin(call);
  const Saving* saving = saving_of(*store_, layout_);
  const auto saved = measured<SavedState>(call, [&]() -> Outcome<SavedState> {
    if (saving == nullptr) return cannot(sequence, Operation::save);
    return saving->save(sequence, out);
  });
  if (!saved) return refused(call, saved.refusal());
  tell_declared(call, saved->declared);
  const auto written = out.first(std::min<std::uint64_t>(saved->bytes, out.size()));
  bus_->emit(call.subject, told_state<trace::Saved>(*saved, bus_->active() ? trace::digest_bytes(written) : 0));
  end(call, RefusalCode::none);
  return saved;
}

Outcome<Done> TracedStore::restore(SequenceId sequence, std::span<const std::byte> file, Position end_then) {
  Call call{.operation = Operation::restore, .subject = {index_, sequence, trace::kNoLayer}};
  call.file = bus_->active() ? trace::digest_bytes(file) : 0;
  begin(call);
  Saving* saving = saving_of(*store_, layout_);
  const auto restored = measured<SavedState>(call, [&]() -> Outcome<SavedState> {
    if (saving == nullptr) return cannot(sequence, Operation::restore);
    return saving->restore(sequence, file);
  });
  if (!restored) return refused(call, restored.refusal());
  ++changes_;
  if (knows(sequence, 0)) ++edits_[sequence];
  tell_declared(call, restored->declared);
  tell_blocks(sequence, restored->blocks);
  bus_->emit(call.subject, told_state<trace::Restored>(*restored, call.file));
  for (LayerIndex layer = 0; knows(sequence, layer); ++layer) accepted(sequence, layer) = end_then;
  end(call, RefusalCode::none);
  digest_state(sequence, trace::DigestReason::after_edit);
  return Done{};
}

}  // namespace kvwitness::core
