#include "model/saved_states.hpp"

#include <algorithm>
#include <utility>

namespace kvwitness::verify {
namespace {

std::uint64_t rows_of(const SavedSequence& saved) noexcept {
  std::uint64_t rows = 0;
  for (const LayerModel& layer : saved.layers) rows += layer.room();
  return rows;
}

}  // namespace

void SavedStates::keep(SavedSequence saved) {
  if (saved.file == 0) {
    has_forgotten_ = true;
    return;
  }
  std::erase_if(saved_, [&](const SavedSequence& known) {
    if (known.file == saved.file) rows_ -= rows_of(known);
    return known.file == saved.file;
  });
  rows_ += rows_of(saved);
  saved_.push_back(std::move(saved));
  while (saved_.size() > kModelSavesMax || rows_ > kModelRowsMax) {
    rows_ -= rows_of(saved_.front());
    saved_.pop_front();
    has_forgotten_ = true;
  }
}

const SavedSequence* SavedStates::find(std::uint64_t file) const noexcept {
  const auto found = std::ranges::find(saved_, file, &SavedSequence::file);
  return file == 0 || found == saved_.end() ? nullptr : &*found;
}

}  // namespace kvwitness::verify
