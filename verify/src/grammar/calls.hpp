/// A call is Called ... RegionMeasured, holds what such a call does and nothing else, and after an edit or a refusal
/// the sequence is read back.
#pragma once

#include "grammar/complaint.hpp"
#include "kvwitness/verify/checker.hpp"
#include "kvwitness/verify/model.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

namespace kvwitness::verify::grammar {

using trace::EventType;

class Calls {
 public:
  /// For every event, whatever its type: does it stand where its call is?
  [[nodiscard]] Finding on_any(const Event& event, const Moment& moment);
  [[nodiscard]] Finding on(const trace::Called& called, const Event& event, const Moment& moment);
  [[nodiscard]] Finding on(const trace::Refused& refused, const Event& event, const Moment& moment);
  [[nodiscard]] Finding on(const trace::RowDigests& rows, const Event& event, const Moment& moment);
  [[nodiscard]] Finding on(const trace::Quantise& quantise, const Event& event, const Moment& moment);
  [[nodiscard]] Finding on(const trace::AdapterInserted& adapter, const Event& event, const Moment& moment);
  [[nodiscard]] Finding on(const trace::WindowOpened& opened, const Event& event, const Moment& moment);
  [[nodiscard]] Finding on(const trace::WindowRun& run, const Event& event, const Moment& moment);
  [[nodiscard]] Finding on(const trace::AttentionStep& step, const Event& event, const Moment& moment);
  [[nodiscard]] Finding on(const trace::AttentionRun& run, const Event& event, const Moment& moment);
  [[nodiscard]] Finding on(const trace::Counter& counter, const Event& event, const Moment& moment);
  [[nodiscard]] Finding on(const trace::Fork& fork, const Event& event, const Moment& moment);
  [[nodiscard]] Finding on(const trace::Admitted& admitted, const Event& event, const Moment& moment);
  [[nodiscard]] Finding on(const trace::Reorder& reorder, const Event& event, const Moment& moment);
  [[nodiscard]] Finding on(const trace::RegionMeasured& region, const Event& event, const Moment& moment);
  [[nodiscard]] Finding on(const trace::StateDigest& state, const Event& event, const Moment& moment);
  [[nodiscard]] Finding at_end() const;

 private:
  /// States that are due after an edit or a refusal.
  struct Due {
    bool is_due = false;
    trace::DigestReason reason{};
    SequenceId sequence = 0;  ///< that is read back next
    SequenceId end = 0;       ///< behind the last one
    LayerIndex next = 0;
    std::uint64_t cause = 0;
  };
  struct Call {
    bool is_open = false;
    trace::Called called{};
    trace::Subject subject;
    std::uint64_t number = 0;
    RefusalCode refused = RefusalCode::none;
    bool was_refused = false;
    std::uint32_t deeds = 0;   ///< what the call was made for: windows opened, rows read, queries, edits, bytes filled
    std::uint64_t claims = 0;  ///< anything that says that something was done
    std::uint64_t rows = 0;    ///< of an append, told by RowDigests
    std::optional<trace::Quantise> quantised;   ///< of an append that codes rows
    std::uint64_t codes = 0;                    ///< of them, told by RowDigests
    LayerIndex survivors_of = trace::kNoLayer;  ///< layer whose survivors are being told
    std::uint64_t survivors = 0;                ///< told at both positions
    std::uint32_t survivors_at_once = 0;
    bool is_second_telling = false;  ///< what comes next is told at new positions
    int place = 0;                   ///< of the latest claim, in the order in which such a call tells them
    std::uint32_t adapters = 0;
    ViewId adapted_view = 0;  ///< that they name
    std::uint32_t runs = 0;
    std::uint32_t runs_declared = 0;
    Due due;
  };
  /// States of a store at the end of the run.
  struct AtEnd {
    std::optional<std::uint64_t> first;  ///< number of the first
    std::vector<bool> states;            ///< that were told, by sequence and layer
  };
  [[nodiscard]] static Finding members(const trace::Called& called, const Event& event, const Moment& moment);
  [[nodiscard]] Finding once_at_end(const Event& event, const Moment& moment);
  /// Claims of a call come in the order of the table in trace/events.md.
  [[nodiscard]] static Finding in_order(Call& call, EventType type);
  [[nodiscard]] static Finding survivors(Call& call, const trace::RowDigests& rows, const Event& event,
                                         const Moment& moment);
  [[nodiscard]] static Finding codes(Call& call, const trace::RowDigests& rows);
  [[nodiscard]] static Finding ended(const Call& call, RefusalCode outcome);
  [[nodiscard]] static Finding done(const Call& call);

  std::array<Call, 256> calls_;    ///< by store
  std::array<AtEnd, 256> at_end_;  ///< by store
};

}  // namespace kvwitness::verify::grammar
