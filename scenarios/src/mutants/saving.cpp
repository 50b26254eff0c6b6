/// Faults of what is saved, and of what a restore leaves.
#include "mutants/groups.hpp"

#include "kvwitness/trace/digest.hpp"

#include <algorithm>
#include <cstring>
#include <set>
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
  Held restored_held(Cell /*cell*/, const Held& saved, const Held& /*before*/) const noexcept override {
    return {0, saved.end - saved.start, 0};
  }
};

class ForgetsEvictedFlat final : public PlainFlat {
  using PlainFlat::PlainFlat;
  Held restored_held(Cell /*cell*/, const Held& saved, const Held& /*before*/) const noexcept override {
    return {saved.start, saved.end, 0};
  }
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

/// Makes the digest at the end of a file that of its bytes.
void seal_again(std::span<std::byte> file) noexcept {
  if (file.size() < sizeof(std::uint64_t)) return;
  const std::size_t at = file.size() - sizeof(std::uint64_t);
  const std::uint64_t digest = trace::digest_bytes(file.first(at));
  std::memcpy(file.data() + at, &digest, sizeof digest);
}

class TrustsAnyFileFlat final : public PlainFlat {
  using PlainFlat::PlainFlat;
  Outcome<core::StateReader> open_file(SequenceId sequence, std::span<const std::byte> file) override {
    file_.assign(file.begin(), file.end());
    seal_again(file_);
    return PlainFlat::open_file(sequence, file_);
  }
  std::vector<std::byte> file_;
};

class KeepsLaterEvictionsFlat final : public PlainFlat {
  using PlainFlat::PlainFlat;
  Held restored_held(Cell /*cell*/, const Held& saved, const Held& before) const noexcept override {
    return {saved.start, saved.end, std::max(saved.evicted_to, before.evicted_to)};
  }
};

class RestoresNothingAsNewFlat final : public PlainFlat {
  using PlainFlat::PlainFlat;
  Held restored_held(Cell /*cell*/, const Held& saved, const Held& /*before*/) const noexcept override {
    return saved.start == saved.end ? Held{} : saved;
  }
};

class BoundToItsRoomRing final : public PlainRing {
 public:
  explicit BoundToItsRoomRing(const core::StoreConfig& config) : PlainRing(config), bound_(config) {
    // A file's fingerprint has windows, and no capacities.
    constexpr std::uint32_t kMore = 1U << 16;
    for (LayerGeometry& layer : bound_.layers)
      layer.window = {core::effective_window(layer).keys + kMore * layer.capacity, true};
  }

 private:
  core::StateShape state_shape() const noexcept override { return {&bound_, PlainRing::state_shape().keeps_raw_keys}; }

  core::StoreConfig bound_;
};

/// Has a digest of each file that it saved, of the middle half of its bytes.
class ChecksTheMiddleFlat final : public PlainFlat {
  using PlainFlat::PlainFlat;
  static std::uint64_t digest_of_middle(std::span<const std::byte> file) noexcept {
    return trace::digest_bytes(file.subspan(file.size() / 4, file.size() / 2));
  }
  Outcome<core::SavedState> save(SequenceId sequence, std::span<std::byte> out) const override {
    const Outcome<core::SavedState> saved = PlainFlat::save(sequence, out);
    if (saved) middles_.insert(digest_of_middle(out.first(saved->bytes)));
    return saved;
  }
  Outcome<core::StateReader> open_file(SequenceId sequence, std::span<const std::byte> file) override {
    file_.assign(file.begin(), file.end());
    if (middles_.contains(digest_of_middle(file_))) seal_again(file_);
    return PlainFlat::open_file(sequence, file_);
  }

  mutable std::set<std::uint64_t> middles_;
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
      store_mutant<KeepsLaterEvictionsFlat>({"restore-keeps-later-evictions", "save-restore-reset", "", "legal-refused",
                                             "what was evicted after the save stays evicted after the restore",
                                             "the count of kept tokens could only rise"}),
      store_mutant<RestoresNothingAsNewFlat>({"restores-no-rows-as-new", "save-restore-reset", "", "resident-set",
                                              "a sequence saved without rows begins at position 0 again",
                                              "a file without rows was taken for one of a new sequence"}),
      store_mutant<BoundToItsRoomRing>(
          {"file-bound-to-its-room", "legal-refused", "", "legal-refused",
           "a file is refused by a store of another capacity, though its rows fit",
           "the size of the allocation was part of the file's geometry",
           "it takes two stores of different capacities, and no script generated has them"}),
      store_mutant<ChecksTheMiddleFlat>({"checks-the-middle-of-a-file", "save-restore-reset", "", "saved-state",
                                         "a file is restored though bytes of its first or last quarter are others",
                                         "the checksum was over a part of the file"}),
  };
  return kMutants;
}

}  // namespace kvwitness::scenarios::mutants
