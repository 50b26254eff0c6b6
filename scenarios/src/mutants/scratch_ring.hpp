/// A ring that copies every window into one scratch buffer of its own. What it says of the copy is up to the mutant.
#pragma once

#include "mutants/plain_store.hpp"

#include <vector>

namespace kvwitness::scenarios::mutants {

class ScratchRing : public PlainRing {
 public:
  enum class Scratch : std::uint8_t { declared, private_memory };

  ScratchRing(const core::StoreConfig& config, Scratch scratch);

  [[nodiscard]] core::MemoryReport memory() const noexcept override;
  /// Always: a window into the scratch has no slots whose fate could be asked for.
  Outcome<core::Done> still_valid(const core::Window& window) const override;

 protected:
  std::size_t fill_runs(Cell cell, Range range, std::span<core::Run> runs) const noexcept override;

 private:
  Scratch scratch_;
  mutable std::vector<std::byte> rows_;
  std::vector<core::StorageUse> storages_;
};

}  // namespace kvwitness::scenarios::mutants
