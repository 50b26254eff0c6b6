/// One token or chunk through the layers of a store: append, window, gather, attend.
#pragma once

#include "stage/stage.hpp"
#include "stage/store_run.hpp"

namespace kvwitness::scenarios {

/// A token or chunk: where it goes and where its rows come from.
struct TokenTask {
  const Step* step = nullptr;
  StoreRun* store = nullptr;
  trace::SequenceId sequence = 0;
  std::size_t stream = 0;
  std::uint32_t ordinal = 0;  ///< of the first row
  std::uint32_t count = 1;
  std::uint32_t token = 0;  ///< ordinal of the token or chunk in the step
  bool attends = false;
};

/// Queries over a window.
struct QueryTask {
  const Step* step = nullptr;
  StoreRun* store = nullptr;
  trace::SequenceId sequence = 0;
  trace::LayerIndex layer = 0;
  std::size_t stream = 0;
  std::uint32_t ordinal = 0;  ///< of the first query's row
  trace::Position first = 0;  ///< position of the first query
  std::uint32_t count = 1;
};

/// Events that one token can tell at most, refusals and state read back included; logits apart.
[[nodiscard]] std::size_t events_of_token(const StoreRun& store, bool attends);

/// Appends rows to one layer, whose end the stage's books move on. None where it was done.
[[nodiscard]] trace::RefusalCode append_layer(Stage& stage, const TokenTask& task, trace::LayerIndex layer);

/// Attends over an open window, through a gathered copy where the step says so, and records the outputs.
[[nodiscard]] trace::RefusalCode attend_view(Stage& stage, const QueryTask& task, trace::ViewId view);

/// Opens the window that the queries need, attends over it and closes it. A step's expectation of attend is told by the
/// caller.
[[nodiscard]] trace::RefusalCode attend_window(Stage& stage, const QueryTask& task);

/// All layers of a chunk, as a step of its own with operation `operation`: append, and where the task attends, window
/// and attend. Returns the first refusal.
trace::RefusalCode run_chunk(Stage& stage, const TokenTask& task, trace::Operation operation);

/// The same for one token of decoding. Where everything that it tells fits into the bus's buffer, it runs in a measured
/// region, told as RegionMeasured with operation decode.
trace::RefusalCode decode_token(Stage& stage, const TokenTask& task);

/// True where `position` is the first one after a crossing of a layer's capacity.
[[nodiscard]] bool crosses_capacity(const StoreRun& store, trace::Position position) noexcept;

}  // namespace kvwitness::scenarios
