/// Faults of what is saved, and of what a restore leaves.
#include "mutants/groups.hpp"

#include "kvwitness/trace/digest.hpp"

#include <cstring>
#include <vector>

namespace kvwitness::scenarios::mutants {

namespace {

class HeadNotRestoredRing final : public PlainRing {
  using PlainRing::PlainRing;
  Slot restored_slot(Cell cell, Position position) const noexcept override { return position - held(cell).start; }
};

class LengthFromRowsRing final : public PlainRing {
  using PlainRing::PlainRing;
  Slot restored_slot(Cell cell, Position position) const noexcept override { return position - held(cell).start; }
  Held restored_held(Cell /*cell*/, const Held& saved) const noexcept override {
    return {0, saved.end - saved.start, 0};
  }
};

class ForgetsEvictedFlat final : public PlainFlat {
  using PlainFlat::PlainFlat;
  Held restored_held(Cell /*cell*/, const Held& saved) const noexcept override { return {saved.start, saved.end, 0}; }
};

class RawKeysNotRestoredCompact final : public PlainCompact {
  using PlainCompact::PlainCompact;
  bool restores_raw_keys() const noexcept override { return false; }
};

class ClearsBeforeItReadsRing final : public PlainRing {
  using PlainRing::PlainRing;
  Outcome<core::StateReader> open_file(SequenceId sequence, std::span<const std::byte> file) override {
    clear_cell({sequence, 0});
    return PlainRing::open_file(sequence, file);
  }
};

class TrustsAnyFileFlat final : public PlainFlat {
  using PlainFlat::PlainFlat;
  Outcome<core::StateReader> open_file(SequenceId sequence, std::span<const std::byte> file) override {
    file_.assign(file.begin(), file.end());
    if (file_.size() < sizeof(std::uint64_t)) return PlainFlat::open_file(sequence, file);
    const std::size_t at = file_.size() - sizeof(std::uint64_t);
    const std::uint64_t digest = trace::digest_bytes(std::span(file_).first(at));
    std::memcpy(file_.data() + at, &digest, sizeof digest);
    return PlainFlat::open_file(sequence, file_);
  }
  std::vector<std::byte> file_;
};

}  // namespace

std::span<const Mutant> saving_mutants() {
  static const Mutant kMutants[] = {
      store_mutant<HeadNotRestoredRing>({"restore-loses-the-head", "save-restore-reset", "ggml-org/llama.cpp#26063",
                                         "saved-state", "restored rows lie from slot 0 on, wherever they lay",
                                         "the search head was reset to 0 after cells were restored"}),
      store_mutant<LengthFromRowsRing>({"restore-counts-rows", "save-restore-reset", "ml-explore/mlx-swift-lm#443",
                                        "saved-state", "the restored sequence is as long as it has rows",
                                        "the file had keys and values, but no position to go on from"}),
      store_mutant<ForgetsEvictedFlat>({"restore-forgets-evicted", "save-restore-reset", "", "legal-refused",
                                        "what was evicted on request counts as missing after a restore",
                                        "the count of kept tokens was no part of the file"}),
      store_mutant<RawKeysNotRestoredCompact>(
          {"restore-loses-raw-keys", "save-restore-reset", "", "same-output",
           "keys before rotation are not restored; survivors are rotated from others",
           "the file had the rotated keys only"}),
      store_mutant<ClearsBeforeItReadsRing>({"failed-restore-clears", "save-restore-reset", "ggml-org/llama.cpp#27052",
                                             "refusal-unchanged", "a layer is cleared before the file is read through",
                                             "a restore that failed half-way left a damaged cache behind"}),
      store_mutant<TrustsAnyFileFlat>({"restores-a-damaged-file", "save-restore-reset", "", "saved-state",
                                       "a file is restored though its digest is not that of its bytes",
                                       "the file had a length and a magic number, and was believed"}),
  };
  return kMutants;
}

}  // namespace kvwitness::scenarios::mutants
