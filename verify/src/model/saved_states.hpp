/// Sequences as they were when they were saved. Private to the model.
#pragma once

#include "kvwitness/verify/model.hpp"

#include <deque>

namespace kvwitness::verify {

/// Keeps the newest `kModelSavesMax` of them, as far as their rows together are not too many.
class SavedStates {
 public:
  /// A file that is known already stands for the newer state.
  void keep(SavedSequence saved);
  /// Null where the file is not known; 0 is no file.
  [[nodiscard]] const SavedSequence* find(std::uint64_t file) const noexcept;
  /// Some file was saved that is not known any more.
  [[nodiscard]] bool has_forgotten() const noexcept { return has_forgotten_; }

 private:
  std::deque<SavedSequence> saved_;  ///< oldest first
  std::uint64_t rows_ = 0;
  bool has_forgotten_ = false;
};

}  // namespace kvwitness::verify
