/// Events, version 1: the words in which a run is told.
///
/// Every payload is exactly 40 bytes without padding, so that records can be copied, hashed and compared as bytes.
/// Floats travel as their bits. "claim" = what a store said of itself, seen through the seam; "fact" = what the seam,
/// the driver or the probe saw. Type ids and enumerator values are append-only: they are written into traces.
///
/// Digest of rows: sum over the rows, modulo 2^64, of XXH3-64 of the row's bytes seeded with its position. The digest
/// of adjoining ranges is therefore the sum of theirs, and the rows of a range in another order, or at another
/// position, have another digest (see digest.hpp). A digest of 0 means "not given".
#pragma once

#include "kvwitness/trace/format.hpp"
#include "kvwitness/trace/ids.hpp"

#include <array>
#include <bit>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace kvwitness::trace {

enum class ClockKind : std::uint32_t { none = 0, tsc = 1, mono = 2 };

enum class PhaseKind : std::uint32_t { load = 0, prefill = 1, decode = 2, sample = 3, module = 4 };

/// What a caller asks of a store, an attention path or a script step.
enum class Operation : std::uint32_t {
  none = 0, append = 1, window = 2, read = 3, attend = 4, evict = 5, truncate = 6, clear = 7, fork = 8, drop = 9,
  save = 10, restore = 11, poison = 12, compare = 13, mark = 14, prefill = 15, decode = 16, trim = 17, gather = 18,
  reorder = 19, repeat = 20, fault = 21, create = 22, release = 23, workload = 24,
  admit = 25, swap_out = 26, swap_in = 27, verify = 28, clone = 29,
};

enum class RefusalCode : std::uint32_t {
  none = 0,          ///< not refused
  full = 1,          ///< no room, or a chunk longer than the ring can serve
  evicted = 2,       ///< a position asked for is no longer held
  future = 3,        ///< a position asked for was never appended
  stale = 4,         ///< a slot of the held view was rewritten, moved or freed
  unknown_sequence = 5,
  out_of_order = 6,  ///< layer twice, skipped or out of order; edit in the middle of a step; range upside down
  unsupported = 7,
  no_memory = 8,
  corrupt = 9,
};

enum class ScopeKind : std::uint16_t { ambient = 0, model = 1, forward = 2 };
enum class Origin : std::uint16_t { heap = 0, arena = 1, mapped = 2, store = 3 };
enum class Evidence : std::uint32_t { observed = 0, declared = 1, unmeasured = 2 };
enum class AdapterKind : std::uint32_t { gather_kv_window = 0, dequantize = 1, requantize = 2, relayout = 3, copy_read = 4, rotate = 5 };
enum class DigestReason : std::uint32_t { after_refusal = 0, after_edit = 1, at_end = 2, compare_left = 3, compare_right = 4 };
enum class KernelKind : std::uint32_t { other = 0, golden = 1, online = 2, blocked = 3, gathered = 4, black_box = 5 };
enum class Unit : std::uint32_t { none = 0, bytes = 1, positions = 2, slots = 3, sequences = 4, ns = 5, tokens = 6, blocks = 7 };
enum class Tier : std::uint32_t { device = 0, host = 1, disk = 2, quantised = 3 };
enum class StepOutcome : std::uint32_t { done = 0, refused = 1, aborted = 2 };

/// Bits of `StoreCreated::capabilities`.
enum class Capability : std::uint64_t {
  ring = 1ULL << 0,           ///< slot = position mod capacity
  sliding = 1ULL << 1,        ///< overwrites the oldest when full
  truncate = 1ULL << 2,
  front_evict = 1ULL << 3,
  middle_evict = 1ULL << 4,   ///< any range can be evicted, the front too
  clear = 1ULL << 5,
  zero_copy = 1ULL << 6,      ///< windows name the store's own memory
  sequences = 1ULL << 7,      ///< holds more than one sequence
  held_views = 1ULL << 8,     ///< tells exactly whether a held window is stale
  fork = 1ULL << 9,
  save = 1ULL << 10,
  prefixes = 1ULL << 11,
  paged = 1ULL << 12,
  quantised = 1ULL << 13,
  sinks = 1ULL << 14,         ///< layers may keep their first positions for ever
  attend = 1ULL << 15,        ///< brings its own attention
  renumbers = 1ULL << 16,     ///< what lay behind an evicted range gets new positions, so that none is missing
  donors = 1ULL << 17,        ///< a layer may read another one's rows
};

// ---- run ------------------------------------------------------------------------------------------------------------
struct RunBegin { std::uint64_t seed; std::uint64_t claims_digest; NameHash scenario; NameHash variant; std::uint32_t version; ClockKind clock; };
/// `events` counts all records before this one; `digest` covers them in canonical form.
struct RunEnd { std::uint64_t events; std::uint64_t digest; std::uint64_t dropped; std::uint64_t steps; std::uint64_t reserved; };
struct EventsDropped { std::uint64_t count; std::uint64_t first_number; std::uint64_t reserved[3]; };
struct Mark { NameHash label; std::uint64_t value; std::uint64_t reserved[3]; };
struct Counter { NameHash name; std::uint64_t value_bits; Unit unit; std::uint32_t reserved0; std::uint64_t reserved[2]; };

// ---- spans ----------------------------------------------------------------------------------------------------------
struct PhaseBegin { NameHash name; PhaseKind kind; std::uint32_t span; std::uint32_t parent; std::uint32_t thread; std::uint64_t reserved[2]; };
struct PhaseEnd { std::uint64_t duration_ns; PhaseKind kind; std::uint32_t span; std::uint32_t thread; std::uint32_t by_exception; std::uint64_t reserved[2]; };
/// `step` indexes the claims' step table; `token` is the ordinal of the token within the step.
struct StepBegin { std::uint32_t step; std::uint32_t token; Operation operation; std::uint32_t iteration; std::uint64_t reserved[3]; };
struct StepEnd { std::uint64_t duration_ns; std::uint32_t step; std::uint32_t token; Operation operation; StepOutcome outcome; std::uint64_t reserved[2]; };

// ---- calls ----------------------------------------------------------------------------------------------------------
/// Fact: the outcome that the script expects of the next call of `operation` on this store and sequence.
struct Expected { Operation operation; RefusalCode outcome; std::uint32_t step; std::uint32_t reserved0; std::uint64_t reserved[3]; };
/// Fact: the seam is about to call the store. `from`, `to` are the range asked for (window, read, evict), `to` the new
/// end (truncate); `count` the rows (append) or queries (attend). `stream` and `ordinal` say where appended rows or
/// queries come from (0: unknown). Of an append to a layer with rope, [`from`, `to`) are the positions that its keys
/// were rotated to (empty: not told). `file`: of a restore, XXH3-64 of the file that it is given.
struct Called { NameHash stream; Operation operation; Position from; Position to; ViewId view; std::uint32_t count; std::uint32_t ordinal; std::uint64_t file; };
/// Fact: the call was refused; `held` is the range that the store says it holds.
struct Refused { Operation operation; RefusalCode reason; Position asked_from; Position asked_to; Position held_from; Position held_to; ViewId view; std::uint32_t reserved0; std::uint64_t reserved; };
/// Fact: the call ended; what the probe saw inside it. `evidence` is observed or unmeasured.
struct RegionMeasured { std::uint64_t allocations; std::uint64_t bytes; Operation operation; Evidence evidence; RefusalCode outcome; std::uint32_t faults; std::uint32_t first_syscall; std::uint32_t reserved0; };

// ---- what a store is ------------------------------------------------------------------------------------------------
struct StoreCreated { NameHash name; NameHash kind; std::uint64_t capabilities; std::uint32_t layers; std::uint32_t sequences; std::uint64_t reserved; };
/// How the keys of a layer are rotated.
enum class KeyRotation : std::uint32_t {
  none = 0,
  positions = 1,  ///< they lie rotated to their positions
  ranks = 2,      ///< they lie as given, and each window hands them out rotated to their ranks in it
};
/// `window` is 0 where `limited` is 0 (full causal). `sliding`: overwrites the oldest when full. `rope`: a KeyRotation.
struct LayerDeclared { std::uint32_t capacity; std::uint32_t window; std::uint32_t limited; std::uint32_t sinks; std::uint32_t q_heads; std::uint32_t kv_heads; std::uint32_t head_dim; std::uint32_t block; std::uint32_t sliding; std::uint32_t rope; };
/// `donor`: the layer whose rows this one reads; its own index when it has rows of its own. `rope_theta` of a layer with
/// rope: pair j of a head, its elements (j, j + head_dim / 2), lies rotated by position * rope_theta^(-2j / head_dim);
/// 0: no rope, or other angles.
struct LayerFormat { std::uint64_t k_row_bytes; std::uint64_t v_row_bytes; std::uint32_t score_scale_bits; std::uint32_t softcap_bits; DType k_type; DType v_type; std::uint32_t donor; std::uint64_t rope_theta_bits; };
/// How one plane of a layer is coded that gets f32 rows and makes codes of them; without it rows stay as they are given.
/// Rows [0, max(0, floor((end - recent) / group) * group)) are codes, with group = quantise_group; those behind are f32.
/// `bits`, `block`, `residual_bits` and `seed`: of a rotated code.
struct LayerCode { std::uint64_t seed; Plane plane; DType code; std::uint16_t bits; std::uint32_t block; std::uint32_t residual_bits; std::uint32_t recent; std::uint32_t quantise_group; std::uint64_t reserved; };
/// Of a paged store: it owns `pool_blocks` blocks of `block` rows each (one block has rows in every layer), and room on
/// the host for `host_blocks` that are swapped out.
struct PoolDeclared { std::uint32_t pool_blocks; std::uint32_t host_blocks; std::uint32_t block; std::uint32_t reserved0; std::uint64_t reserved[3]; };
/// Which of the blocks that nobody holds a pool takes next.
enum class BlockOrder : std::uint32_t {
  free_first = 0,  ///< any free one; where none is free, the cached one that was cached longest ago
  queue = 1,       ///< the head of one queue of all of them, cached or not, which they join as they are let go
  any = 2,         ///< any of them, cached or not: the store's own affair
};
/// What must fit before a request is admitted.
enum class AdmissionPolicy : std::uint32_t {
  reservation = 0,  ///< prompt and generated tokens; their blocks are reserved
  prompt = 1,       ///< the blocks of its prompt; nothing is reserved
  chunk = 2,        ///< the blocks of the chunk that it begins with, `Called::from` tokens; nothing is reserved
};
/// Which full blocks can be found by their hashes.
enum class PublishingPolicy : std::uint32_t {
  prompt = 0,  ///< those of the prompt, as they are filled
  filled = 1,  ///< all that were named by the time they are filled, or later
  any = 2,     ///< of those the ones that the store likes, when it likes
};
/// Of a paged store whose pool follows other policies than one without this event, where all members are 0.
/// `duplicates`: several blocks may be found by one hash. `lookahead`: tokens behind those appended for which an append may
/// take blocks already.
struct PoolPolicy { BlockOrder order; AdmissionPolicy admission; PublishingPolicy publishing; std::uint32_t duplicates; std::uint32_t lookahead; std::uint32_t reserved0; std::uint64_t reserved[2]; };
/// Fact: what was predicted of a plane of a layer, over all sequences, before the store was built. `scale_bytes`: of
/// `bytes`, what a code's scales take. `slots`: rows.
struct PlanLayer { std::uint64_t bytes; std::uint64_t scale_bytes; Plane plane; std::uint32_t reserved0; std::uint64_t slots; std::uint64_t reserved; };
/// Fact: the sum of a store's planes, and what its windows take at most where a token's are gathered in the forward
/// scope.
struct PlanTotal { std::uint64_t bytes; std::uint64_t scratch_bytes; std::uint64_t reserved[3]; };
/// Claim: a number that the store reports, by name.
struct Reported { NameHash what; std::uint64_t value; Unit unit; std::uint32_t reserved0; std::uint64_t reserved[2]; };

// ---- memory ---------------------------------------------------------------------------------------------------------
/// `plane`: what a storage of origin `store` holds; none for other memory.
struct Allocation { std::uint64_t storage; std::uint64_t bytes; NameHash site; std::uint32_t count; ScopeKind scope; Origin origin; Evidence evidence; Plane plane; };
struct Free { std::uint64_t storage; std::uint64_t bytes; std::uint32_t count; ScopeKind scope; Origin origin; Evidence evidence; std::uint32_t reserved0; std::uint64_t reserved; };
/// Fact: the scope was reset; its live bytes before and after.
struct ScopeReset { std::uint64_t bytes_freed; std::uint64_t live_bytes; std::uint64_t count; ScopeKind scope; std::uint16_t reserved0; std::uint32_t reserved1; std::uint64_t reserved; };

// ---- what a store did (claims) --------------------------------------------------------------------------------------
/// One contiguous piece of an append: positions [first, first+count) in slots [slot, slot+count). `held_from` is the
/// window_start that the store reports after the whole append, `bytes` what the rows take then, K and V.
struct Append { std::uint64_t bytes; std::uint64_t k_digest; std::uint64_t v_digest; Position first; std::uint32_t count; Slot slot; Position held_from; };
/// Fact: digests of single rows given to the append that was called, or found after an eviction that renumbers; `count`
/// is 1 or 2.
struct RowDigests { std::uint64_t k0; std::uint64_t v0; std::uint64_t k1; std::uint64_t v1; Position first; std::uint32_t count; };
struct Overwrite { Position first; std::uint32_t count; Slot slot; Position by; std::uint64_t reserved[3]; };
struct Move { Position from_position; Position to_position; Slot from_slot; Slot to_slot; std::uint32_t count; std::uint32_t reserved0; std::uint64_t bytes; std::uint64_t reserved; };
/// The key at `position` was rotated to position (or, in a window of keys by rank, rank) `applied`, `times` times, from
/// its raw row or from a rotated one.
struct Rotate { Position position; Slot slot; Position applied; std::uint32_t from_raw; std::uint32_t times; std::uint32_t reserved0; std::uint64_t reserved[2]; };
struct Quantise { Position first; std::uint32_t count; Tier tier; DType k_type; DType v_type; std::uint64_t reserved[3]; };
struct Evict { Position from; Position to; std::uint32_t freed; std::uint32_t moved; std::uint64_t reserved[3]; };
struct Truncate { Position to; Position old_end; std::uint32_t freed; std::uint32_t reserved0; std::uint64_t reserved[3]; };
struct Clear { std::uint32_t freed; std::uint32_t reserved0; std::uint64_t reserved[4]; };
struct Fork { SequenceId parent; SequenceId child; Position upto; std::uint32_t shared; std::uint64_t reserved[3]; };
struct Drop { std::uint32_t freed; std::uint32_t reserved0; std::uint64_t reserved[4]; };
struct Reorder { SequenceId parent; std::uint32_t beam; std::uint64_t reserved[4]; };
/// `digest` is XXH3-64 of the whole file, as the seam saw it; [from, to) what the layer that reaches back
/// farthest had, besides its sinks.
struct Saved { std::uint64_t bytes; std::uint64_t digest; Position from; Position to; std::uint64_t reserved[2]; };
struct Restored { std::uint64_t bytes; std::uint64_t digest; Position from; Position to; std::uint64_t reserved[2]; };

// ---- blocks, prefixes, tiers (claims) -------------------------------------------------------------------------------
struct BlockAlloc { std::uint64_t holder; std::uint32_t block; std::uint32_t holders; std::uint64_t reserved[3]; };
struct BlockFree { std::uint64_t holder; std::uint32_t block; std::uint32_t holders; std::uint64_t reserved[3]; };
struct BlockHold { std::uint64_t holder; std::uint32_t block; std::uint32_t holders; std::uint64_t reserved[3]; };
struct BlockRelease { std::uint64_t holder; std::uint32_t block; std::uint32_t holders; std::uint64_t reserved[3]; };
struct BlockCached { std::uint64_t token_hash; std::uint32_t block; std::uint32_t holders; std::uint64_t reserved[3]; };
struct TableEntry { std::uint64_t epoch; std::uint32_t index; std::uint32_t block; Position first; std::uint32_t rows; std::uint64_t reserved[2]; };
struct PrefixPublished { std::uint64_t token_hash; Position from; Position to; std::uint32_t block; std::uint32_t reserved0; std::uint64_t reserved[2]; };
struct PrefixHit { std::uint64_t token_hash; Position from; Position to; std::uint32_t block; std::uint32_t reserved0; std::uint64_t reserved[2]; };
/// Fact: the tokens of positions [from, to) of a request, as they were named to the store when it was admitted, or, where
/// blocks of generated tokens are published too, in front of an append. The hash is that of all tokens up to `to`, so that equal hashes mean equal prefixes.
struct BlockTokens { std::uint64_t token_hash; Position from; Position to; std::uint64_t reserved[3]; };
struct Admitted { std::uint64_t reserved_blocks; std::uint64_t peak_blocks; std::uint64_t request; std::uint64_t reserved[2]; };
struct SwapOut { std::uint32_t block; Tier tier; std::uint64_t bytes; std::uint32_t stream; std::uint32_t reserved0; std::uint64_t reserved[2]; };
struct SwapIn { std::uint32_t block; Tier tier; std::uint64_t bytes; std::uint32_t stream; std::uint32_t reserved0; std::uint64_t reserved[2]; };
struct Wait { std::uint64_t signal; std::uint32_t stream; std::uint32_t reserved0; std::uint64_t reserved[3]; };
struct Signal { std::uint64_t signal; std::uint32_t stream; std::uint32_t reserved0; std::uint64_t reserved[3]; };

// ---- cached blocks, as an engine tells them from outside (claims) ---------------------------------------------------
/// A full block can be found by its hash from now on. Names are the engine's own words. `parent`: the block in front of
/// it in its prefix; 0: none, or not told. `content`: digest of the tokens and of what else the hash covers but the parent;
/// 0: not given. `tokens`: of `block_size` that a full block has; 0: not told. `adapter`: fine-tuned weights that its rows
/// were made with; 0: none.
struct BlockStored { NameHash block; NameHash parent; NameHash adapter; std::uint64_t content; std::uint32_t block_size; std::uint32_t tokens; };
/// One copy of the block, or the only one, can no longer be found.
struct BlockRemoved { NameHash block; std::uint64_t reserved[4]; };
/// No block can be found any more.
struct BlocksCleared { std::uint64_t reserved[5]; };
/// Fact: the engine numbers what it tells, and [first, first + count) never came; count 0: what came as `first` was out
/// of its order. What is cached is unknown from here on, until BlocksCleared.
struct MessagesLost { std::uint64_t first; std::uint64_t count; std::uint64_t reserved[3]; };

// ---- windows (facts) ------------------------------------------------------------------------------------------------
/// `copied_bytes` is 0 for a window in the store's own memory.
struct WindowOpened { std::uint64_t generation; std::uint64_t copied_bytes; ViewId view; Position from; Position to; std::uint32_t runs; std::uint64_t reserved; };
/// One run of a window, oldest first, digested as its rows lie in memory. `offset` is the byte offset of its first K
/// row in the declared storage that it lies in, found from its address; kOutsideStorage where it lies in none.
inline constexpr std::uint64_t kOutsideStorage = 0xffffffffffffffffULL;
struct WindowRun { std::uint64_t offset; std::uint64_t k_digest; std::uint64_t v_digest; ViewId view; Position first; std::uint32_t count; Slot slot; };
struct WindowClosed { ViewId view; std::uint32_t reserved0; std::uint64_t reserved[4]; };
/// Fact: rows handed out by `read`, digested in the caller's memory.
struct ReadRows { std::uint64_t k_digest; std::uint64_t v_digest; std::uint64_t bytes; Position from; Position to; std::uint64_t reserved; };
/// A copy or conversion that stands between a store and its reader. `evidence` tells claim from fact.
struct AdapterInserted { std::uint64_t bytes_before; std::uint64_t bytes_after; AdapterKind kind; Plane plane; ViewId view; Evidence evidence; DType from_type; DType to_type; std::uint32_t rows; };

// ---- attention (facts) ----------------------------------------------------------------------------------------------
/// One query row of a layer. The set of visible keys is [first_key, last_key] when `visited` equals its length; a mask
/// with holes follows as AttentionRun events. visited 0: no key was visible, and first_key, last_key are kNoPosition.
struct AttentionStep { std::uint64_t out_digest; ViewId view; Position query; Position first_key; Position last_key; std::uint32_t visited; std::uint32_t rows_read; KernelKind kernel; std::uint32_t ordinal; };
struct AttentionRun { ViewId view; Position query; Position first; std::uint32_t count; std::uint64_t reserved[3]; };
struct KernelRun { NameHash kernel; std::uint64_t bytes; std::uint64_t duration_ns; std::uint64_t reserved[2]; };
/// A tensor's values follow in TensorValues events with the same `tensor`. `ordinal` is the query's or row's ordinal.
/// `label` is the `as` of the script's step, prefixed by its store ("sut.out").
struct TensorRecorded { NameHash label; std::uint64_t digest; std::uint32_t tensor; std::uint32_t elements; Plane role; Position position; std::uint32_t ordinal; std::uint32_t reserved0; };
/// Up to eight f32 of a tensor, from element `offset`; unused ones are 0.
struct TensorValues { std::uint32_t tensor; std::uint32_t offset; std::uint32_t values[8]; };
/// Digest of all rows of a layer read back from the store; [from, to) is the store's extent.
struct StateDigest { std::uint64_t k_digest; std::uint64_t v_digest; Position from; Position to; DigestReason reason; std::uint32_t step; std::uint64_t reserved; };

/// X(payload type, id). Append-only.
#define KVWITNESS_EVENT_TYPES(X)                                                                                       \
  X(RunBegin, 1) X(RunEnd, 2) X(EventsDropped, 3) X(Mark, 4) X(Counter, 5)                                            \
  X(PhaseBegin, 6) X(PhaseEnd, 7) X(StepBegin, 8) X(StepEnd, 9) X(Expected, 10) X(Refused, 11)                        \
  X(StoreCreated, 12) X(LayerDeclared, 13) X(LayerFormat, 14) X(PlanLayer, 15) X(PlanTotal, 16) X(Reported, 17)       \
  X(Allocation, 18) X(Free, 19) X(ScopeReset, 20) X(RegionMeasured, 21)                                               \
  X(Append, 22) X(RowDigests, 23) X(Overwrite, 24) X(Move, 25) X(Rotate, 26) X(Quantise, 27)                          \
  X(Evict, 28) X(Truncate, 29) X(Clear, 30) X(Fork, 31) X(Drop, 32) X(Reorder, 33) X(Saved, 34) X(Restored, 35)       \
  X(BlockAlloc, 36) X(BlockFree, 37) X(BlockHold, 38) X(BlockRelease, 39) X(BlockCached, 40) X(TableEntry, 41)        \
  X(PrefixPublished, 42) X(PrefixHit, 43) X(Admitted, 44) X(SwapOut, 45) X(SwapIn, 46) X(Wait, 47) X(Signal, 48)      \
  X(WindowOpened, 49) X(WindowRun, 50) X(WindowClosed, 51) X(ReadRows, 52) X(AdapterInserted, 53)                     \
  X(AttentionStep, 54) X(AttentionRun, 55) X(KernelRun, 56) X(TensorRecorded, 57) X(TensorValues, 58)                 \
  X(StateDigest, 59) X(Called, 60) X(LayerCode, 61) X(PoolDeclared, 62) X(BlockTokens, 63)        \
  X(BlockStored, 64) X(BlockRemoved, 65) X(BlocksCleared, 66) X(MessagesLost, 67) X(PoolPolicy, 68)

enum class EventType : std::uint8_t {
  unknown = 0,
#define KVWITNESS_X(name, id) name = id,
  KVWITNESS_EVENT_TYPES(KVWITNESS_X)
#undef KVWITNESS_X
};

inline constexpr std::uint8_t kLastEventType = 68;
inline constexpr std::uint32_t kEventVersion = 1;

/// One record. `number` counts from 0 without gaps in a run; `time` is 0 where the clock is none or the event is not
/// stamped. `sequence`, `layer`, `store` are kNo... where the event is not about one.
struct Event {
  std::uint64_t number = 0;
  std::uint64_t time = 0;
  SequenceId sequence = kNoSequence;
  LayerIndex layer = kNoLayer;
  StoreIndex store = kNoStore;
  EventType type = EventType::unknown;
  std::array<std::uint64_t, 5> payload{};

  friend bool operator==(const Event&, const Event&) noexcept = default;
};
static_assert(sizeof(Event) == 64 && std::has_unique_object_representations_v<Event>);

template <class P>
struct PayloadType;  // PayloadType<P>::value: the EventType of payload P

#define KVWITNESS_X(name, id)                                                                                     \
  template <>                                                                                                     \
  struct PayloadType<name> {                                                                                      \
    static constexpr EventType value = EventType::name;                                                           \
  };                                                                                                              \
  static_assert(sizeof(name) == 40 && std::has_unique_object_representations_v<name> && std::is_trivially_copyable_v<name>);
KVWITNESS_EVENT_TYPES(KVWITNESS_X)
#undef KVWITNESS_X

template <class P>
inline constexpr EventType kTypeOf = PayloadType<P>::value;

/// What an event is about besides its payload.
struct Subject {
  StoreIndex store = kNoStore;
  SequenceId sequence = kNoSequence;
  LayerIndex layer = kNoLayer;
};

template <class P>
[[nodiscard]] constexpr Event make_event(Subject subject, const P& payload) noexcept {
  Event event;
  event.sequence = subject.sequence;
  event.layer = subject.layer;
  event.store = subject.store;
  event.type = kTypeOf<P>;
  event.payload = std::bit_cast<std::array<std::uint64_t, 5>>(payload);
  return event;
}

/// The payload of an event whose type is known to be P's.
template <class P>
[[nodiscard]] constexpr P payload_of(const Event& event) noexcept {
  return std::bit_cast<P>(event.payload);
}

/// Calls f(payload) with the payload in its own type; nothing for types newer than this reader.
template <class F>
constexpr void visit(const Event& event, F&& f) {
  switch (event.type) {
#define KVWITNESS_X(name, id) \
  case EventType::name: f(payload_of<name>(event)); return;
    KVWITNESS_EVENT_TYPES(KVWITNESS_X)
#undef KVWITNESS_X
    case EventType::unknown: return;
  }
}

[[nodiscard]] constexpr float from_bits(std::uint32_t bits) noexcept { return std::bit_cast<float>(bits); }
[[nodiscard]] constexpr double from_bits(std::uint64_t bits) noexcept { return std::bit_cast<double>(bits); }
[[nodiscard]] constexpr std::uint32_t to_bits(float value) noexcept { return std::bit_cast<std::uint32_t>(value); }
[[nodiscard]] constexpr std::uint64_t to_bits(double value) noexcept { return std::bit_cast<std::uint64_t>(value); }

}  // namespace kvwitness::trace
