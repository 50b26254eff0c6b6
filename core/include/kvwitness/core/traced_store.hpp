/// The seam: wraps any KvStore, calls it in a measured region, validates what came back once, and tells it on the bus.
/// Every store is told in the same words, and what a store says is kept apart from what was seen.
/// The order of events per call is specified in trace/events.md.
#pragma once

#include "kvwitness/core/attention.hpp"
#include "kvwitness/core/kv_store.hpp"
#include "kvwitness/core/paging.hpp"
#include "kvwitness/core/poison.hpp"
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
  std::string_view name = "sut";  ///< as the script calls the store
  std::size_t views_max = 16;     ///< windows held at one time, gathered ones included
  std::uint32_t queries_max = 1;  ///< queries of one attend
  bool digest_windows = true;     ///< false: WindowRun digests are 0, "not given"
};

/// Not thread-safe; one emitting thread. The store is as freshly built; it and the bus outlive the seam. Its destructor
/// closes what is open and frees what was declared. After construction only `poison` allocates.
///
/// What a store returns is believed by nobody. Counts, ranges and slots are told as they are, however absurd, and left
/// to the rules. Memory is read only where it is known: a window's rows count as far as they lie in a storage that the
/// store declared, or in the room that it was given to copy into, aligned for their format; the rest of a run is told
/// without digests and is seen by no kernel. A call that throws is told as a refusal: `no_memory` for std::bad_alloc,
/// `corrupt` for anything else; so is one that refuses without a reason.
///
/// Of a store in another process (core/outside.hpp), what its calls allocated is told as that process counted it, or as
/// unmeasured; and once it is lost, that is told as a Mark.
class TracedStore {
 public:
  /// Tells what the store is and what memory it declares. Throws trace::Error for a store without a valid
  /// configuration.
  TracedStore(KvStore& store, trace::Bus& bus, trace::StoreIndex index, const TracedOptions& options = {});
  ~TracedStore();
  TracedStore(const TracedStore&) = delete;
  TracedStore& operator=(const TracedStore&) = delete;

  [[nodiscard]] const StoreConfig& config() const noexcept { return *layout_.config; }
  [[nodiscard]] StoreLayout layout() const noexcept { return layout_; }
  /// The store itself, for looking without telling.
  [[nodiscard]] const KvStore& untold() const noexcept { return *store_; }
  [[nodiscard]] trace::StoreIndex index() const noexcept { return index_; }
  /// Its work is done in another process: what this one allocates meanwhile says nothing of it.
  [[nodiscard]] bool is_outside() const noexcept { return outside_ != nullptr; }
  /// What lies behind an evicted range gets new positions.
  [[nodiscard]] bool renumbers() const noexcept {
    return (layout_.capabilities & static_cast<std::uint64_t>(trace::Capability::renumbers)) != 0;
  }
  [[nodiscard]] Outcome<Extent> extent(SequenceId sequence, LayerIndex layer) const {
    return store_->extent(sequence, layer);
  }

  /// Tokens of a layer that were accepted and not taken back, by the seam's own count; 0 where there is no such layer.
  [[nodiscard]] Position end(SequenceId sequence, LayerIndex layer) const noexcept {
    return knows(sequence, layer) ? accepted_[cell(sequence, layer)] : 0;
  }

  Outcome<Done> append(SequenceId sequence, LayerIndex layer, const RowsIn& rows, Source source = {});

  /// Opens a window that is held until `close`. Refuses `no_memory` where views_max are open.
  Outcome<trace::ViewId> open(SequenceId sequence, LayerIndex layer, Range range);
  /// The view is open (asserts).
  void close(trace::ViewId view);
  /// The window as far as its rows may be read. The view is open (asserts).
  [[nodiscard]] const Window& window_of(trace::ViewId view) const;

  /// Gathers an open window into one contiguous copy of f32 rows in `scope`: one adapter a plane, priced; rows that are
  /// coded are decoded. The result is a view of its own, which goes stale with the rows that it was copied from, and
  /// with the scope's reset. Refuses `stale`, and `no_memory` where the scope has no room for both planes or views_max
  /// are open.
  Outcome<trace::ViewId> gather(trace::ViewId view, Scope& scope);

  /// Attends through `path` over an open window, after asking the store whether it is still valid (`stale`). `out`
  /// [count][q_heads * head_dim]; count is at most queries_max (asserts). One AttentionStep a query. Coded rows are
  /// decoded as they are read. A store that brings its own attention computes it itself, where the view is what its
  /// queries see now; what it visited is then told by nobody (kernel black_box).
  Outcome<Done> attend(trace::ViewId view, const AttentionInput& input, const AttentionPath& path, std::span<float> out,
                       Source source = {});

  Outcome<Done> read(SequenceId sequence, LayerIndex layer, Range range, const RowsOut& out);
  Outcome<Done> truncate(SequenceId sequence, Position to);
  Outcome<Done> evict(SequenceId sequence, Range range);
  Outcome<Done> clear(SequenceId sequence);

  /// Bytes that `save` needs now. Tells nothing; refuses as the store does.
  [[nodiscard]] Outcome<std::uint64_t> saved_bytes(SequenceId sequence) const;
  /// Saves a sequence to the beginning of `out`. A store that cannot save refuses `unsupported`.
  Outcome<SavedState> save(SequenceId sequence, std::span<std::byte> out);
  /// Restores a sequence from a file. `end_then`: where it ended when it was saved, by the caller's own count.
  Outcome<Done> restore(SequenceId sequence, std::span<const std::byte> file, Position end_then);

  /// Fills all memory of the store that no legal call can show before it is written again (core/poison.hpp). Changes
  /// nothing that anybody may see: views stay as fresh as they were. A store without `zero_copy` refuses `unsupported`.
  /// Allocates.
  Outcome<Done> poison(PoisonFill fill);

  /// Makes `child` begin as `parent` is up to `to`. A store that cannot fork refuses `unsupported`.
  Outcome<Done> fork(SequenceId parent, SequenceId child, Position to);
  /// Makes each sequence i below parents.size() what parents[i] was. A store that cannot fork refuses `unsupported`.
  Outcome<Done> reorder(std::span<const SequenceId> parents);
  /// Admits a request, and says how many of its tokens were found. Hashes of blocks that the prompt does not fill, and
  /// past the pool's size, are left out. A store without blocks refuses `unsupported`.
  Outcome<Position> admit(SequenceId sequence, const PromptRequest& request);
  /// A store without blocks refuses `unsupported`.
  Outcome<Done> swap_out(SequenceId sequence);
  Outcome<Done> swap_in(SequenceId sequence);
  /// True where the sequence is swapped out, by the store's own word.
  [[nodiscard]] bool is_out(SequenceId sequence) const noexcept;
  /// By the store's own word; zeros where it has no blocks.
  [[nodiscard]] PoolCounts pool_counts() const noexcept;

  /// Tells a call that was never made because no store of this interface can do it (drop, ...): refused `unsupported`,
  /// or `unknown_sequence`.
  Outcome<Done> refuse_unsupported(SequenceId sequence, trace::Operation operation);

  /// Reads all resident rows of a sequence back and tells their digest, layer by layer. At the end of a run a sequence
  /// that holds nothing is not told.
  void digest_state(SequenceId sequence, trace::DigestReason reason, std::uint32_t step = 0);
  /// Tells the store's memory report as Reported events: "reserved-bytes", "used-bytes", "resident-positions"; of a
  /// store that sizes its layers "uniform-rows" and "uniform-bytes" too; of a paged store also "free-blocks",
  /// "held-blocks", "cached-blocks", "host-blocks-used".
  void report_memory();

 private:
  struct Call;
  struct View;
  /// A storage that the store declared, with its id in the run.
  struct Declaration {
    std::uint64_t id = 0;
    StorageUse use;
  };
  struct ReportNames {
    trace::NameHash reserved_bytes = 0;
    trace::NameHash used_bytes = 0;
    trace::NameHash resident_positions = 0;
    trace::NameHash free_blocks = 0;
    trace::NameHash held_blocks = 0;
    trace::NameHash cached_blocks = 0;
    trace::NameHash host_blocks_used = 0;
    trace::NameHash uniform_rows = 0;
    trace::NameHash uniform_bytes = 0;
    trace::NameHash poisoned_bytes = 0;
  };

  void reserve_rooms();
  void declare_store();
  void declare_codes();
  void declare_pool();
  void declare_storages();

  /// Tells Called.
  void begin(const Call& call);
  /// Runs `body` in a measured region.
  template <class T, class F>
  Outcome<T> measured(Call& call, F&& body);
  /// Tells RegionMeasured.
  void end(const Call& call, RefusalCode outcome);
  /// Tells the refusal, ends the call and reads the sequence back.
  trace::Refused refused(const Call& call, trace::Refused refusal);

  /// Tells, once, that the store was lost.
  void tell_loss(SequenceId sequence, LayerIndex layer);
  /// What the latest call took, as the process that served it counted it.
  void take_use_outside(Call& call) const noexcept;

  void tell_rows_given(const Call& call, const RowsIn& rows, Position first);
  void tell_declared(const Call& call, const Declared& declared);
  void tell_overwrites(const Call& call, const Appended& appended);
  void tell_pieces(const Call& call, const RowsIn& rows, const Appended& appended);
  /// One AdapterInserted a plane. `priced`: what the rows take before and after.
  struct Priced {
    trace::AdapterKind kind{};
    std::uint32_t rows = 0;
    std::uint64_t k_bytes = 0;
    std::uint64_t v_bytes = 0;
    bool to_f32 = false;     ///< the copy's rows are f32 whatever they were
    bool is_window = false;  ///< keys by rank are rotated in it
  };
  void tell_copies(trace::Subject subject, trace::ViewId view, const Priced& priced);
  /// Tells which rows an append coded, and the digests of their codes.
  void tell_quantised(const Call& call, Range quantised);
  [[nodiscard]] bool tell_codes(const Call& call, Range rows);
  /// Returns the rows moved in the layer where most were.
  std::uint32_t tell_moves(SequenceId sequence, std::span<const Moved> moved);
  void tell_rotations(SequenceId sequence, std::span<const Rotated> rotated);
  /// After an eviction that renumbers: tells which rows were found where its survivors must lie, each digested at its
  /// old position and at its new one.
  void tell_survivors(SequenceId sequence, Range evicted);
  [[nodiscard]] bool tell_survivors(SequenceId sequence, LayerIndex layer, Range before, std::uint32_t shift);
  /// Tells the survivors, and takes what was evicted from the seam's own counts.
  void renumber(SequenceId sequence, Range evicted);
  template <class F, class T>
  Outcome<Done> edit(Call& call, F&& body, T&& tell);

  [[nodiscard]] bool knows(SequenceId sequence, LayerIndex layer) const noexcept;
  /// What a store answers to a call that it has no interface for: whose sequence it is comes before all else.
  [[nodiscard]] trace::Refused cannot(SequenceId sequence, trace::Operation operation) const noexcept;
  /// Where a layer's count is kept: a reader's is its donor's.
  [[nodiscard]] std::size_t cell(SequenceId sequence, LayerIndex layer) const noexcept {
    return std::size_t{sequence} * config().layers.size() + owner_of(config(), layer);
  }
  [[nodiscard]] Position& accepted(SequenceId sequence, LayerIndex layer) noexcept;
  [[nodiscard]] Outcome<Extent> extent_or_refusal(SequenceId sequence, LayerIndex layer) const noexcept;
  void digest_layer(SequenceId sequence, LayerIndex layer, Extent held, trace::DigestReason reason, std::uint32_t step);
  [[nodiscard]] bool digest_rows(SequenceId sequence, LayerIndex layer, Extent held, trace::StateDigest& told);
  [[nodiscard]] bool add_rows(SequenceId sequence, LayerIndex layer, Range rows, Position end,
                              trace::StateDigest& told);

  void report_pool();
  /// Tells what a call about `sequence` did to blocks.
  void tell_blocks(SequenceId sequence, std::span<const BlockChange> changes);
  void tell_block(SequenceId sequence, const BlockChange& change);
  void tell_tokens(SequenceId sequence, const PromptRequest& request);
  /// Tells who became what, and takes it into the seam's own counts.
  void tell_beams(const Call& call, std::span<const SequenceId> parents);
  void was_edited(SequenceId sequence) noexcept;
  template <class F>
  Outcome<Done> swap(SequenceId sequence, trace::Operation operation, F&& body);

  [[nodiscard]] View* free_view() noexcept;
  [[nodiscard]] View& find(trace::ViewId view);
  [[nodiscard]] const View& find(trace::ViewId view) const;
  /// Takes over what the store returned: keeps what may be read.
  void admit(View& view, trace::Subject subject, const Window& window);
  void admit_copy(View& copy, const View& from, std::span<const std::byte> k, std::span<const std::byte> v);
  [[nodiscard]] Run readable_part(const View& view, const Run& run) const noexcept;
  [[nodiscard]] std::uint64_t bytes_of_row(const Run& run, LayerIndex layer, Plane plane) const noexcept;
  [[nodiscard]] Priced price(const View& view, trace::AdapterKind kind) const noexcept;
  [[nodiscard]] std::uint64_t offset_of(const Run& run, LayerIndex layer) const noexcept;
  void copy_rows(const View& from, std::span<std::byte> k, std::span<std::byte> v) const noexcept;
  [[nodiscard]] Outcome<Done> validity(const View& view) const;
  void tell_opened(View& view);
  void tell_runs(View& view);
  /// Tells which keys a window hands out rotated to which ranks.
  void tell_ranks(const View& view);
  /// The view is all that the queries see of the layer as it is now, and the store brings its own attention.
  [[nodiscard]] bool attends_itself(const View& view, const AttentionInput& input) const noexcept;
  void tell_attention(const Call& call, bool gathered, trace::KernelKind kernel, std::span<const float> out,
                      std::size_t row);
  void tell_mask(const Call& call, const trace::AttentionStep& step, Range gap);

  KvStore* store_;
  Outside* outside_;      ///< null: the store's work is done here
  Attending* attending_;  ///< null: attention reads the store's windows
  trace::Bus* bus_;
  StoreLayout layout_;
  trace::StoreIndex index_;
  TracedOptions options_;
  trace::Evidence evidence_;
  ReportNames report_names_;
  std::vector<Declaration> storages_;
  std::vector<View> views_;
  std::vector<Visited> visited_;           ///< [queries_max]
  std::vector<Position> accepted_;         ///< [sequence][layer]: end, as the accepted calls make it
  std::vector<Position> accepted_before_;  ///< as `accepted_`, before a reorder
  std::vector<std::uint64_t> edits_;       ///< [sequence]: accepted edits
  std::vector<std::uint32_t> moved_;       ///< [layer]: rows that an edit moved
  std::vector<std::byte> state_k_;         ///< room to read rows back, a few at a time
  std::vector<std::byte> state_v_;
  RowCode k_code_;  ///< how coded K rows are decoded, whatever a window points to
  RowCode v_code_;
  std::vector<float> row_room_;        ///< where attention decodes a row of each side
  std::vector<std::byte> block_room_;  ///< scratch of blocked attention
  bool rows_in_cache_ = false;         ///< all rows of all layers are few enough
  std::uint64_t changes_ = 0;          ///< accepted appends and edits
  bool is_loss_told_ = false;
};

}  // namespace kvwitness::core
