/// The seam: wraps any KvStore, calls it in a measured region, validates what came back once, and tells it on the bus.
/// Every store is told in the same words, and what a store says is kept apart from what was seen.
/// The order of events per call is specified in trace/events.md.
#pragma once

#include "kvwitness/core/attention.hpp"
#include "kvwitness/core/kv_store.hpp"
#include "kvwitness/core/scope.hpp"
#include "kvwitness/trace/bus.hpp"
#include "kvwitness/trace/rows.hpp"

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace kvwitness::core {

/// Where rows or queries come from: tokens [ordinal, ordinal+count) of a stream. stream 0: unknown.
struct Source {
  trace::NameHash stream = 0;
  std::uint32_t ordinal = 0;
};

struct TracedOptions {
  std::string_view name = "sut";        ///< as the script calls the store
  std::size_t views_max = 16;           ///< windows held at one time
  std::uint32_t queries_max = 1;        ///< queries of one attend
  bool digest_windows = true;           ///< false: WindowRun digests are 0, "not given"
};

/// Not thread-safe; one emitting thread. The store and the bus outlive it. Its destructor closes what is open and
/// frees what was declared.
class TracedStore {
 public:
  TracedStore(KvStore& store, trace::Bus& bus, trace::StoreIndex index, const TracedOptions& options = {});
  ~TracedStore();
  TracedStore(const TracedStore&) = delete;
  TracedStore& operator=(const TracedStore&) = delete;

  [[nodiscard]] const StoreConfig& config() const noexcept { return *layout_.config; }
  [[nodiscard]] StoreLayout layout() const noexcept { return layout_; }
  [[nodiscard]] trace::StoreIndex index() const noexcept { return index_; }
  [[nodiscard]] Outcome<Extent> extent(SequenceId sequence, LayerIndex layer) const { return store_->extent(sequence, layer); }

  Outcome<Done> append(SequenceId sequence, LayerIndex layer, const RowsIn& rows, Source source = {});

  /// Opens a window that is held until `close`. Refuses `no_memory` where views_max are open.
  Outcome<trace::ViewId> open(SequenceId sequence, LayerIndex layer, Range range);
  void close(trace::ViewId view);
  [[nodiscard]] const Window& window_of(trace::ViewId view) const;

  /// Gathers an open window into one contiguous copy in `scope`: one adapter a plane, priced. The result is a view too.
  Outcome<trace::ViewId> gather(trace::ViewId view, Scope& scope);

  /// Attends through `path` over an open window, after asking the store whether it is still valid (`stale`). `out`
  /// [count][q_heads * head_dim]. One AttentionStep a query.
  Outcome<Done> attend(trace::ViewId view, const AttentionInput& input, const AttentionPath& path, std::span<float> out,
                       Source source = {});

  Outcome<Done> read(SequenceId sequence, LayerIndex layer, Range range, const RowsOut& out);
  Outcome<Done> truncate(SequenceId sequence, Position to);
  Outcome<Done> evict(SequenceId sequence, Range range);
  Outcome<Done> clear(SequenceId sequence);

  /// Tells a call that was never made because no store of this interface can do it (fork, save, middle evict, ...).
  Outcome<Done> refuse_unsupported(SequenceId sequence, trace::Operation operation);

  /// Reads all resident rows of a sequence back and tells their digest, layer by layer.
  void digest_state(SequenceId sequence, trace::DigestReason reason, std::uint32_t step = 0);
  /// Tells the store's memory report as Reported events.
  void report_memory();

 private:
  struct View;
  // Private parts are the implementer's; see traced_store.cpp.
  KvStore* store_;
  trace::Bus* bus_;
  StoreLayout layout_;
  trace::StoreIndex index_;
  TracedOptions options_;
  std::vector<View> views_;
};

}  // namespace kvwitness::core
