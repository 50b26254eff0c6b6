/// A correct store behind a fault.
#pragma once

#include "mutants/plain_store.hpp"

#include <memory>
#include <utility>

namespace kvwitness::scenarios::mutants {

/// Hands every call on to a correct store. A fault replaces one answer.
class Wrapped : public core::KvStore {
 public:
  explicit Wrapped(std::unique_ptr<core::KvStore> inner) : inner_(std::move(inner)) {}

  [[nodiscard]] core::StoreLayout layout() const noexcept override { return inner_->layout(); }
  [[nodiscard]] core::MemoryReport memory() const noexcept override { return inner_->memory(); }
  [[nodiscard]] Outcome<core::Extent> extent(SequenceId sequence, LayerIndex layer) const override {
    return inner_->extent(sequence, layer);
  }
  Outcome<core::Appended> append(SequenceId sequence, LayerIndex layer, const core::RowsIn& rows) override {
    return inner_->append(sequence, layer, rows);
  }
  Outcome<core::Window> window(SequenceId sequence, LayerIndex layer, Range range,
                               core::WindowScratch& scratch) const override {
    return inner_->window(sequence, layer, range, scratch);
  }
  Outcome<core::Copied> read(SequenceId sequence, LayerIndex layer, Range range,
                             const core::RowsOut& out) const override {
    return inner_->read(sequence, layer, range, out);
  }
  Outcome<core::Done> still_valid(const core::Window& window) const override { return inner_->still_valid(window); }
  Outcome<core::Done> rows_kept(core::KeptRows& kept) const override { return inner_->rows_kept(kept); }
  Outcome<core::Edited> truncate(SequenceId sequence, Position to) override { return inner_->truncate(sequence, to); }
  Outcome<core::Edited> evict(SequenceId sequence, Range range) override { return inner_->evict(sequence, range); }
  Outcome<core::Edited> clear(SequenceId sequence) override { return inner_->clear(sequence); }
  [[nodiscard]] core::Saving* saving() noexcept override { return inner_->saving(); }

 protected:
  [[nodiscard]] const core::StoreConfig& config() const noexcept { return *inner_->layout().config; }
  [[nodiscard]] const LayerGeometry& geometry(LayerIndex layer) const noexcept { return config().layers[layer]; }
  [[nodiscard]] core::KvStore& inner() const noexcept { return *inner_; }

 private:
  std::unique_ptr<core::KvStore> inner_;
};

}  // namespace kvwitness::scenarios::mutants
