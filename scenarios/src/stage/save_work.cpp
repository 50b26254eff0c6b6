#include "stage/save_work.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace kvwitness::scenarios {
namespace {

using trace::Operation;
using trace::StepOutcome;

std::vector<std::byte> damaged(std::vector<std::byte> file, const Step& step) {
  if (file.empty()) return file;
  const std::size_t place = std::min(file.size() * step.damage_at / kFileParts, file.size() - 1);
  switch (step.damage) {
    case Damage::none: break;
    case Damage::truncate: file.resize(place); break;
    case Damage::flip: file[place] ^= std::byte{1}; break;
    case Damage::foreign:
      for (std::byte& byte : file) byte ^= std::byte{0xa5};
      break;
  }
  return file;
}

}  // namespace

StepOutcome run_save(Stage& stage, const Step& step, StoreRun& store, const StepSpan& span) {
  const trace::SequenceId sequence = span.subject.sequence;
  // Where the store says no, the save itself tells why.
  const auto bytes = store.traced().saved_bytes(sequence);
  SavedFile file;
  file.bytes.resize(bytes ? *bytes : 0);
  stage.expect(step, span, Operation::save, trace::kNoLayer);
  const auto saved = store.traced().save(sequence, file.bytes);
  if (!saved) return StepOutcome::refused;
  file.bytes.resize(std::min<std::uint64_t>(saved->bytes, file.bytes.size()));
  file.ends = store.sequence(sequence).ends;
  file.evicted_to = store.sequence(sequence).evicted_to;
  store.keep_file(step.as, std::move(file));
  return StepOutcome::done;
}

StepOutcome run_restore(Stage& stage, const Step& step, StoreRun& store, const StepSpan& span) {
  const StoreRun& from = step.saved_by.empty() ? store : stage.store(step.saved_by);
  const SavedFile* file = from.file(step.saved_as);
  if (file == nullptr) return StepOutcome::aborted;
  const std::vector<std::byte> bytes = damaged(file->bytes, step);
  stage.expect(step, span, Operation::restore, trace::kNoLayer);
  const auto restored = store.traced().restore(span.subject.sequence, bytes, file->ends.front());
  if (restored) store.accept_restore(span.subject.sequence, *file);
  return restored ? StepOutcome::done : StepOutcome::refused;
}

}  // namespace kvwitness::scenarios
