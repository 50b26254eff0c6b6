/// What the steps of a running case work on: stores, rooms for rows, names. Everything is sized before the first step.
#pragma once

#include "kvwitness/core/scope.hpp"
#include "kvwitness/scenarios/driver.hpp"
#include "stage/decoder_run.hpp"
#include "stage/store_run.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace kvwitness::scenarios {

/// A step under way on a store and sequence; every token or chunk of it is one.
struct StepSpan {
  trace::Subject subject;
  trace::Operation operation = trace::Operation::none;
  std::uint32_t step = 0;
  std::uint32_t token = 0;
  std::uint64_t start_ns = 0;
};

/// What a recorded row is.
struct Recorded {
  trace::NameHash label = 0;
  trace::Plane role = trace::Plane::out;
  trace::Position position = 0;
  std::uint32_t ordinal = 0;  ///< rows of two labels are paired by it
};

/// Rows of one append, as the streams make them; valid until the next fill.
struct RowRooms {
  std::vector<float> k;
  std::vector<float> k_raw;
  std::vector<float> v;
  std::vector<float> q;
  std::vector<float> out;
  std::vector<std::byte> read_k;
  std::vector<std::byte> read_v;
};

struct StageNeeds;

class Stage {
 public:
  /// Builds the stores, which tells them on the bus. `tokens_total`: appended over all stores, for progress. Throws
  /// trace::Error where a store cannot be built.
  Stage(const Case& which, const trace::Claims& claims, const StoreRegistry& registry, trace::Bus& bus,
        const DriveOptions& options, std::uint64_t tokens_total);
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

  [[nodiscard]] const Case& which() const noexcept { return *case_; }
  [[nodiscard]] trace::Bus& bus() noexcept { return *bus_; }
  [[nodiscard]] const std::filesystem::path& root() const noexcept { return options_->root; }
  [[nodiscard]] StoreRun& store(std::string_view name);
  [[nodiscard]] std::vector<StoreRun*> stores(const Step& step);
  [[nodiscard]] std::span<const std::unique_ptr<StoreRun>> stores() const noexcept { return stores_; }
  /// The store's work is done in another process.
  [[nodiscard]] bool is_outside(trace::StoreIndex store) const noexcept {
    return stores_[store]->traced().is_outside();
  }
  /// Index of a step's stream.
  [[nodiscard]] std::size_t stream(const Step& step) const;
  [[nodiscard]] RowRooms& rooms() noexcept { return rooms_; }
  [[nodiscard]] DecoderRuns& decoders() noexcept { return *decoders_; }
  /// Null where no step gathers.
  [[nodiscard]] core::Scope* forward() noexcept { return forward_.get(); }
  /// Name of a step's outputs on a store, "sut.out".
  [[nodiscard]] trace::NameHash output_name(const Step& step, const StoreRun& store) const;

  /// k and v rows of tokens [ordinal, ordinal+count).
  [[nodiscard]] core::RowsIn fill_rows(std::size_t stream, trace::LayerIndex layer, std::uint32_t elements,
                                       std::uint32_t ordinal, std::uint32_t count) noexcept;
  /// q rows of tokens [ordinal, ordinal+count).
  [[nodiscard]] std::span<const float> fill_queries(std::size_t stream, trace::LayerIndex layer, std::uint32_t elements,
                                                    std::uint32_t ordinal, std::uint32_t count) noexcept;
  /// Rows that were filled, with their keys rotated to the positions from `first` on.
  [[nodiscard]] core::RowsIn rotated(core::RowsIn rows, std::uint32_t elements, core::Rope& rope,
                                     trace::Position first) noexcept;
  /// Rotates one of the q rows that were filled.
  void rotate_query(std::uint32_t elements, core::Rope& rope, std::uint32_t index, trace::Position to) noexcept;
  [[nodiscard]] core::Source source(std::size_t stream, std::uint32_t ordinal) const noexcept;

  [[nodiscard]] StepSpan begin_step(const Step& step, trace::Operation operation, const StoreRun& store,
                                    trace::SequenceId sequence, std::uint32_t token);
  /// Resets the forward scope, tells StepEnd, and lets the bus hand out.
  void end_step(const StepSpan& span, trace::StepOutcome outcome);
  /// Tells what the step expects of the next call of `operation`, where it says so.
  void expect(const Step& step, const StepSpan& span, trace::Operation operation, trace::LayerIndex layer);
  /// Tells the output rows of queries at positions first, first+1, ...
  void record_outputs(trace::Subject subject, trace::NameHash label, trace::Position first, std::span<const float> out,
                      std::uint32_t elements);
  /// Tells one row and its values.
  void record_row(trace::Subject subject, const Recorded& what, std::span<const float> row);

  /// What a measured region can tell.
  [[nodiscard]] trace::Evidence evidence() const noexcept { return evidence_; }

  /// How often the steps under way were begun before, in repeats.
  void set_iteration(std::uint32_t iteration) noexcept { iteration_ = iteration; }
  [[nodiscard]] std::uint32_t iteration() const noexcept { return iteration_; }

  /// Counts tokens of one store, and tells the caller now and then.
  void advance(std::uint64_t tokens);

 private:
  void size_rooms(const StageNeeds& needs);

  const Case* case_;
  trace::Bus* bus_;
  const DriveOptions* options_;
  std::vector<std::unique_ptr<StoreRun>> stores_;
  std::vector<std::vector<trace::NameHash>> output_names_;  ///< [step][store]
  RowRooms rooms_;
  std::optional<DecoderRuns> decoders_;
  std::unique_ptr<core::Scope> forward_;
  trace::Evidence evidence_;
  std::uint32_t next_tensor_ = 0;
  std::uint32_t iteration_ = 0;
  std::uint64_t done_ = 0;
  std::uint64_t told_ = 0;
  std::uint64_t total_ = 0;
};

}  // namespace kvwitness::scenarios
