#include "kvwitness/trace/event_table.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace kvwitness::trace {
namespace {

constexpr EnumText kClockTexts[] = {{0, "none"}, {1, "tsc"}, {2, "mono"}};
constexpr EnumText kPhaseTexts[] = {{0, "load"}, {1, "prefill"}, {2, "decode"}, {3, "sample"}, {4, "module"}};
constexpr EnumText kOperationTexts[] = {{0, "none"}, {1, "append"}, {2, "window"}, {3, "read"}, {4, "attend"}, {5, "evict"}, {6, "truncate"}, {7, "clear"}, {8, "fork"}, {9, "drop"}, {10, "save"}, {11, "restore"}, {12, "poison"}, {13, "compare"}, {14, "mark"}, {15, "prefill"}, {16, "decode"}, {17, "trim"}, {18, "gather"}, {19, "reorder"}, {20, "repeat"}, {21, "fault"}, {22, "create"}, {23, "release"}, {24, "workload"}};
constexpr EnumText kRefusalTexts[] = {{0, "ok"}, {1, "full"}, {2, "evicted"}, {3, "future"}, {4, "stale"}, {5, "unknown-sequence"}, {6, "out-of-order"}, {7, "unsupported"}, {8, "no-memory"}, {9, "corrupt"}};
constexpr EnumText kScopeTexts[] = {{0, "ambient"}, {1, "model"}, {2, "forward"}};
constexpr EnumText kOriginTexts[] = {{0, "heap"}, {1, "arena"}, {2, "mapped"}, {3, "store"}};
constexpr EnumText kEvidenceTexts[] = {{0, "observed"}, {1, "declared"}, {2, "unmeasured"}};
constexpr EnumText kAdapterTexts[] = {{0, "gather-kv-window"}, {1, "dequantize"}, {2, "requantize"}, {3, "relayout"}, {4, "copy-read"}};
constexpr EnumText kReasonTexts[] = {{0, "after-refusal"}, {1, "after-edit"}, {2, "at-end"}, {3, "compare-left"}, {4, "compare-right"}};
constexpr EnumText kKernelTexts[] = {{0, "other"}, {1, "golden"}, {2, "online"}, {3, "blocked"}, {4, "gathered"}, {5, "black-box"}};
constexpr EnumText kUnitTexts[] = {{0, "none"}, {1, "bytes"}, {2, "positions"}, {3, "slots"}, {4, "sequences"}, {5, "ns"}, {6, "tokens"}, {7, "blocks"}};
constexpr EnumText kTierTexts[] = {{0, "device"}, {1, "host"}, {2, "disk"}, {3, "quantised"}};
constexpr EnumText kStepOutcomeTexts[] = {{0, "done"}, {1, "refused"}, {2, "aborted"}};
constexpr EnumText kDTypeTexts[] = {{0, "none"}, {1, "f32"}, {2, "f16"}, {3, "bf16"}, {4, "q8-0"}, {5, "q4-0"}, {6, "rotated"}};
constexpr EnumText kPlaneTexts[] = {{0, "q"}, {1, "k"}, {2, "v"}, {3, "both"}, {4, "out"}};
constexpr EnumText kCapabilityTexts[] = {{1ULL << 0, "ring"}, {1ULL << 1, "sliding"}, {1ULL << 2, "truncate"}, {1ULL << 3, "front-evict"}, {1ULL << 4, "middle-evict"}, {1ULL << 5, "clear"}, {1ULL << 6, "zero-copy"}, {1ULL << 7, "sequences"}, {1ULL << 8, "held-views"}, {1ULL << 9, "fork"}, {1ULL << 10, "save"}, {1ULL << 11, "prefixes"}, {1ULL << 12, "paged"}, {1ULL << 13, "quantised"}, {1ULL << 14, "sinks"}, {1ULL << 15, "attend"}};

constexpr FieldInfo kRunBeginFields[] = {
    {"seed", FieldKind::digest, offsetof(RunBegin, seed), sizeof(RunBegin::seed), {}},
    {"claims_digest", FieldKind::digest, offsetof(RunBegin, claims_digest), sizeof(RunBegin::claims_digest), {}},
    {"scenario", FieldKind::name, offsetof(RunBegin, scenario), sizeof(RunBegin::scenario), {}},
    {"variant", FieldKind::name, offsetof(RunBegin, variant), sizeof(RunBegin::variant), {}},
    {"version", FieldKind::integer, offsetof(RunBegin, version), sizeof(RunBegin::version), {}},
    {"clock", FieldKind::enumeration, offsetof(RunBegin, clock), sizeof(RunBegin::clock), kClockTexts},
};
constexpr FieldInfo kRunEndFields[] = {
    {"events", FieldKind::integer, offsetof(RunEnd, events), sizeof(RunEnd::events), {}},
    {"digest", FieldKind::digest, offsetof(RunEnd, digest), sizeof(RunEnd::digest), {}},
    {"dropped", FieldKind::integer, offsetof(RunEnd, dropped), sizeof(RunEnd::dropped), {}},
    {"steps", FieldKind::integer, offsetof(RunEnd, steps), sizeof(RunEnd::steps), {}},
};
constexpr FieldInfo kEventsDroppedFields[] = {
    {"count", FieldKind::integer, offsetof(EventsDropped, count), sizeof(EventsDropped::count), {}},
    {"first_number", FieldKind::integer, offsetof(EventsDropped, first_number), sizeof(EventsDropped::first_number), {}},
};
constexpr FieldInfo kMarkFields[] = {
    {"label", FieldKind::name, offsetof(Mark, label), sizeof(Mark::label), {}},
    {"value", FieldKind::integer, offsetof(Mark, value), sizeof(Mark::value), {}},
};
constexpr FieldInfo kCounterFields[] = {
    {"name", FieldKind::name, offsetof(Counter, name), sizeof(Counter::name), {}},
    {"value", FieldKind::f64_bits, offsetof(Counter, value_bits), sizeof(Counter::value_bits), {}},
    {"unit", FieldKind::enumeration, offsetof(Counter, unit), sizeof(Counter::unit), kUnitTexts},
};
constexpr FieldInfo kPhaseBeginFields[] = {
    {"name", FieldKind::name, offsetof(PhaseBegin, name), sizeof(PhaseBegin::name), {}},
    {"kind", FieldKind::enumeration, offsetof(PhaseBegin, kind), sizeof(PhaseBegin::kind), kPhaseTexts},
    {"span", FieldKind::integer, offsetof(PhaseBegin, span), sizeof(PhaseBegin::span), {}},
    {"parent", FieldKind::integer, offsetof(PhaseBegin, parent), sizeof(PhaseBegin::parent), {}},
    {"thread", FieldKind::integer, offsetof(PhaseBegin, thread), sizeof(PhaseBegin::thread), {}},
};
constexpr FieldInfo kPhaseEndFields[] = {
    {"duration_ns", FieldKind::duration, offsetof(PhaseEnd, duration_ns), sizeof(PhaseEnd::duration_ns), {}},
    {"kind", FieldKind::enumeration, offsetof(PhaseEnd, kind), sizeof(PhaseEnd::kind), kPhaseTexts},
    {"span", FieldKind::integer, offsetof(PhaseEnd, span), sizeof(PhaseEnd::span), {}},
    {"thread", FieldKind::integer, offsetof(PhaseEnd, thread), sizeof(PhaseEnd::thread), {}},
    {"by_exception", FieldKind::boolean, offsetof(PhaseEnd, by_exception), sizeof(PhaseEnd::by_exception), {}},
};
constexpr FieldInfo kStepBeginFields[] = {
    {"step", FieldKind::integer, offsetof(StepBegin, step), sizeof(StepBegin::step), {}},
    {"token", FieldKind::integer, offsetof(StepBegin, token), sizeof(StepBegin::token), {}},
    {"operation", FieldKind::enumeration, offsetof(StepBegin, operation), sizeof(StepBegin::operation), kOperationTexts},
    {"iteration", FieldKind::integer, offsetof(StepBegin, iteration), sizeof(StepBegin::iteration), {}},
};
constexpr FieldInfo kStepEndFields[] = {
    {"duration_ns", FieldKind::duration, offsetof(StepEnd, duration_ns), sizeof(StepEnd::duration_ns), {}},
    {"step", FieldKind::integer, offsetof(StepEnd, step), sizeof(StepEnd::step), {}},
    {"token", FieldKind::integer, offsetof(StepEnd, token), sizeof(StepEnd::token), {}},
    {"operation", FieldKind::enumeration, offsetof(StepEnd, operation), sizeof(StepEnd::operation), kOperationTexts},
    {"outcome", FieldKind::enumeration, offsetof(StepEnd, outcome), sizeof(StepEnd::outcome), kStepOutcomeTexts},
};
constexpr FieldInfo kExpectedFields[] = {
    {"operation", FieldKind::enumeration, offsetof(Expected, operation), sizeof(Expected::operation), kOperationTexts},
    {"outcome", FieldKind::enumeration, offsetof(Expected, outcome), sizeof(Expected::outcome), kRefusalTexts},
    {"step", FieldKind::integer, offsetof(Expected, step), sizeof(Expected::step), {}},
};
constexpr FieldInfo kRefusedFields[] = {
    {"operation", FieldKind::enumeration, offsetof(Refused, operation), sizeof(Refused::operation), kOperationTexts},
    {"reason", FieldKind::enumeration, offsetof(Refused, reason), sizeof(Refused::reason), kRefusalTexts},
    {"asked_from", FieldKind::position, offsetof(Refused, asked_from), sizeof(Refused::asked_from), {}},
    {"asked_to", FieldKind::position, offsetof(Refused, asked_to), sizeof(Refused::asked_to), {}},
    {"held_from", FieldKind::position, offsetof(Refused, held_from), sizeof(Refused::held_from), {}},
    {"held_to", FieldKind::position, offsetof(Refused, held_to), sizeof(Refused::held_to), {}},
    {"view", FieldKind::integer, offsetof(Refused, view), sizeof(Refused::view), {}},
};
constexpr FieldInfo kStoreCreatedFields[] = {
    {"name", FieldKind::name, offsetof(StoreCreated, name), sizeof(StoreCreated::name), {}},
    {"kind", FieldKind::name, offsetof(StoreCreated, kind), sizeof(StoreCreated::kind), {}},
    {"capabilities", FieldKind::flags, offsetof(StoreCreated, capabilities), sizeof(StoreCreated::capabilities), kCapabilityTexts},
    {"layers", FieldKind::integer, offsetof(StoreCreated, layers), sizeof(StoreCreated::layers), {}},
    {"sequences", FieldKind::integer, offsetof(StoreCreated, sequences), sizeof(StoreCreated::sequences), {}},
};
constexpr FieldInfo kLayerDeclaredFields[] = {
    {"capacity", FieldKind::integer, offsetof(LayerDeclared, capacity), sizeof(LayerDeclared::capacity), {}},
    {"window", FieldKind::integer, offsetof(LayerDeclared, window), sizeof(LayerDeclared::window), {}},
    {"limited", FieldKind::boolean, offsetof(LayerDeclared, limited), sizeof(LayerDeclared::limited), {}},
    {"sinks", FieldKind::integer, offsetof(LayerDeclared, sinks), sizeof(LayerDeclared::sinks), {}},
    {"q_heads", FieldKind::integer, offsetof(LayerDeclared, q_heads), sizeof(LayerDeclared::q_heads), {}},
    {"kv_heads", FieldKind::integer, offsetof(LayerDeclared, kv_heads), sizeof(LayerDeclared::kv_heads), {}},
    {"head_dim", FieldKind::integer, offsetof(LayerDeclared, head_dim), sizeof(LayerDeclared::head_dim), {}},
    {"block", FieldKind::integer, offsetof(LayerDeclared, block), sizeof(LayerDeclared::block), {}},
    {"sliding", FieldKind::boolean, offsetof(LayerDeclared, sliding), sizeof(LayerDeclared::sliding), {}},
};
constexpr FieldInfo kLayerFormatFields[] = {
    {"k_row_bytes", FieldKind::bytes, offsetof(LayerFormat, k_row_bytes), sizeof(LayerFormat::k_row_bytes), {}},
    {"v_row_bytes", FieldKind::bytes, offsetof(LayerFormat, v_row_bytes), sizeof(LayerFormat::v_row_bytes), {}},
    {"score_scale", FieldKind::f32_bits, offsetof(LayerFormat, score_scale_bits), sizeof(LayerFormat::score_scale_bits), {}},
    {"softcap", FieldKind::f32_bits, offsetof(LayerFormat, softcap_bits), sizeof(LayerFormat::softcap_bits), {}},
    {"k_type", FieldKind::enumeration, offsetof(LayerFormat, k_type), sizeof(LayerFormat::k_type), kDTypeTexts},
    {"v_type", FieldKind::enumeration, offsetof(LayerFormat, v_type), sizeof(LayerFormat::v_type), kDTypeTexts},
    {"donor", FieldKind::integer, offsetof(LayerFormat, donor), sizeof(LayerFormat::donor), {}},
};
constexpr FieldInfo kPlanLayerFields[] = {
    {"bytes", FieldKind::bytes, offsetof(PlanLayer, bytes), sizeof(PlanLayer::bytes), {}},
    {"scale_bytes", FieldKind::bytes, offsetof(PlanLayer, scale_bytes), sizeof(PlanLayer::scale_bytes), {}},
    {"plane", FieldKind::enumeration, offsetof(PlanLayer, plane), sizeof(PlanLayer::plane), kPlaneTexts},
    {"slots", FieldKind::integer, offsetof(PlanLayer, slots), sizeof(PlanLayer::slots), {}},
};
constexpr FieldInfo kPlanTotalFields[] = {
    {"bytes", FieldKind::bytes, offsetof(PlanTotal, bytes), sizeof(PlanTotal::bytes), {}},
    {"scratch_bytes", FieldKind::bytes, offsetof(PlanTotal, scratch_bytes), sizeof(PlanTotal::scratch_bytes), {}},
};
constexpr FieldInfo kReportedFields[] = {
    {"what", FieldKind::name, offsetof(Reported, what), sizeof(Reported::what), {}},
    {"value", FieldKind::integer, offsetof(Reported, value), sizeof(Reported::value), {}},
    {"unit", FieldKind::enumeration, offsetof(Reported, unit), sizeof(Reported::unit), kUnitTexts},
};
constexpr FieldInfo kAllocationFields[] = {
    {"storage", FieldKind::integer, offsetof(Allocation, storage), sizeof(Allocation::storage), {}},
    {"bytes", FieldKind::bytes, offsetof(Allocation, bytes), sizeof(Allocation::bytes), {}},
    {"site", FieldKind::site, offsetof(Allocation, site), sizeof(Allocation::site), {}},
    {"count", FieldKind::integer, offsetof(Allocation, count), sizeof(Allocation::count), {}},
    {"scope", FieldKind::enumeration, offsetof(Allocation, scope), sizeof(Allocation::scope), kScopeTexts},
    {"origin", FieldKind::enumeration, offsetof(Allocation, origin), sizeof(Allocation::origin), kOriginTexts},
    {"evidence", FieldKind::enumeration, offsetof(Allocation, evidence), sizeof(Allocation::evidence), kEvidenceTexts},
};
constexpr FieldInfo kFreeFields[] = {
    {"storage", FieldKind::integer, offsetof(Free, storage), sizeof(Free::storage), {}},
    {"bytes", FieldKind::bytes, offsetof(Free, bytes), sizeof(Free::bytes), {}},
    {"count", FieldKind::integer, offsetof(Free, count), sizeof(Free::count), {}},
    {"scope", FieldKind::enumeration, offsetof(Free, scope), sizeof(Free::scope), kScopeTexts},
    {"origin", FieldKind::enumeration, offsetof(Free, origin), sizeof(Free::origin), kOriginTexts},
    {"evidence", FieldKind::enumeration, offsetof(Free, evidence), sizeof(Free::evidence), kEvidenceTexts},
};
constexpr FieldInfo kScopeResetFields[] = {
    {"bytes_freed", FieldKind::bytes, offsetof(ScopeReset, bytes_freed), sizeof(ScopeReset::bytes_freed), {}},
    {"live_bytes", FieldKind::bytes, offsetof(ScopeReset, live_bytes), sizeof(ScopeReset::live_bytes), {}},
    {"count", FieldKind::integer, offsetof(ScopeReset, count), sizeof(ScopeReset::count), {}},
    {"scope", FieldKind::enumeration, offsetof(ScopeReset, scope), sizeof(ScopeReset::scope), kScopeTexts},
};
constexpr FieldInfo kRegionMeasuredFields[] = {
    {"allocations", FieldKind::integer, offsetof(RegionMeasured, allocations), sizeof(RegionMeasured::allocations), {}},
    {"bytes", FieldKind::bytes, offsetof(RegionMeasured, bytes), sizeof(RegionMeasured::bytes), {}},
    {"operation", FieldKind::enumeration, offsetof(RegionMeasured, operation), sizeof(RegionMeasured::operation), kOperationTexts},
    {"evidence", FieldKind::enumeration, offsetof(RegionMeasured, evidence), sizeof(RegionMeasured::evidence), kEvidenceTexts},
    {"outcome", FieldKind::enumeration, offsetof(RegionMeasured, outcome), sizeof(RegionMeasured::outcome), kRefusalTexts},
    {"faults", FieldKind::evidence, offsetof(RegionMeasured, faults), sizeof(RegionMeasured::faults), {}},
    {"first_syscall", FieldKind::evidence, offsetof(RegionMeasured, first_syscall), sizeof(RegionMeasured::first_syscall), {}},
};
constexpr FieldInfo kAppendFields[] = {
    {"bytes", FieldKind::bytes, offsetof(Append, bytes), sizeof(Append::bytes), {}},
    {"k_digest", FieldKind::digest, offsetof(Append, k_digest), sizeof(Append::k_digest), {}},
    {"v_digest", FieldKind::digest, offsetof(Append, v_digest), sizeof(Append::v_digest), {}},
    {"first", FieldKind::position, offsetof(Append, first), sizeof(Append::first), {}},
    {"count", FieldKind::integer, offsetof(Append, count), sizeof(Append::count), {}},
    {"slot", FieldKind::slot, offsetof(Append, slot), sizeof(Append::slot), {}},
    {"held_from", FieldKind::position, offsetof(Append, held_from), sizeof(Append::held_from), {}},
};
constexpr FieldInfo kRowDigestsFields[] = {
    {"k0", FieldKind::digest, offsetof(RowDigests, k0), sizeof(RowDigests::k0), {}},
    {"v0", FieldKind::digest, offsetof(RowDigests, v0), sizeof(RowDigests::v0), {}},
    {"k1", FieldKind::digest, offsetof(RowDigests, k1), sizeof(RowDigests::k1), {}},
    {"v1", FieldKind::digest, offsetof(RowDigests, v1), sizeof(RowDigests::v1), {}},
    {"first", FieldKind::position, offsetof(RowDigests, first), sizeof(RowDigests::first), {}},
    {"count", FieldKind::integer, offsetof(RowDigests, count), sizeof(RowDigests::count), {}},
};
constexpr FieldInfo kOverwriteFields[] = {
    {"first", FieldKind::position, offsetof(Overwrite, first), sizeof(Overwrite::first), {}},
    {"count", FieldKind::integer, offsetof(Overwrite, count), sizeof(Overwrite::count), {}},
    {"slot", FieldKind::slot, offsetof(Overwrite, slot), sizeof(Overwrite::slot), {}},
    {"by", FieldKind::position, offsetof(Overwrite, by), sizeof(Overwrite::by), {}},
};
constexpr FieldInfo kMoveFields[] = {
    {"from_position", FieldKind::position, offsetof(Move, from_position), sizeof(Move::from_position), {}},
    {"to_position", FieldKind::position, offsetof(Move, to_position), sizeof(Move::to_position), {}},
    {"from_slot", FieldKind::slot, offsetof(Move, from_slot), sizeof(Move::from_slot), {}},
    {"to_slot", FieldKind::slot, offsetof(Move, to_slot), sizeof(Move::to_slot), {}},
    {"count", FieldKind::integer, offsetof(Move, count), sizeof(Move::count), {}},
    {"bytes", FieldKind::bytes, offsetof(Move, bytes), sizeof(Move::bytes), {}},
};
constexpr FieldInfo kRotateFields[] = {
    {"position", FieldKind::position, offsetof(Rotate, position), sizeof(Rotate::position), {}},
    {"slot", FieldKind::slot, offsetof(Rotate, slot), sizeof(Rotate::slot), {}},
    {"applied", FieldKind::position, offsetof(Rotate, applied), sizeof(Rotate::applied), {}},
    {"from_raw", FieldKind::boolean, offsetof(Rotate, from_raw), sizeof(Rotate::from_raw), {}},
    {"times", FieldKind::integer, offsetof(Rotate, times), sizeof(Rotate::times), {}},
};
constexpr FieldInfo kQuantiseFields[] = {
    {"first", FieldKind::position, offsetof(Quantise, first), sizeof(Quantise::first), {}},
    {"count", FieldKind::integer, offsetof(Quantise, count), sizeof(Quantise::count), {}},
    {"tier", FieldKind::enumeration, offsetof(Quantise, tier), sizeof(Quantise::tier), kTierTexts},
    {"k_type", FieldKind::enumeration, offsetof(Quantise, k_type), sizeof(Quantise::k_type), kDTypeTexts},
    {"v_type", FieldKind::enumeration, offsetof(Quantise, v_type), sizeof(Quantise::v_type), kDTypeTexts},
};
constexpr FieldInfo kEvictFields[] = {
    {"from", FieldKind::position, offsetof(Evict, from), sizeof(Evict::from), {}},
    {"to", FieldKind::position, offsetof(Evict, to), sizeof(Evict::to), {}},
    {"freed", FieldKind::integer, offsetof(Evict, freed), sizeof(Evict::freed), {}},
    {"moved", FieldKind::integer, offsetof(Evict, moved), sizeof(Evict::moved), {}},
};
constexpr FieldInfo kTruncateFields[] = {
    {"to", FieldKind::position, offsetof(Truncate, to), sizeof(Truncate::to), {}},
    {"old_end", FieldKind::position, offsetof(Truncate, old_end), sizeof(Truncate::old_end), {}},
    {"freed", FieldKind::integer, offsetof(Truncate, freed), sizeof(Truncate::freed), {}},
};
constexpr FieldInfo kClearFields[] = {
    {"freed", FieldKind::integer, offsetof(Clear, freed), sizeof(Clear::freed), {}},
};
constexpr FieldInfo kForkFields[] = {
    {"parent", FieldKind::integer, offsetof(Fork, parent), sizeof(Fork::parent), {}},
    {"child", FieldKind::integer, offsetof(Fork, child), sizeof(Fork::child), {}},
    {"upto", FieldKind::position, offsetof(Fork, upto), sizeof(Fork::upto), {}},
    {"shared", FieldKind::integer, offsetof(Fork, shared), sizeof(Fork::shared), {}},
};
constexpr FieldInfo kDropFields[] = {
    {"freed", FieldKind::integer, offsetof(Drop, freed), sizeof(Drop::freed), {}},
};
constexpr FieldInfo kReorderFields[] = {
    {"parent", FieldKind::integer, offsetof(Reorder, parent), sizeof(Reorder::parent), {}},
    {"beam", FieldKind::integer, offsetof(Reorder, beam), sizeof(Reorder::beam), {}},
};
constexpr FieldInfo kSavedFields[] = {
    {"bytes", FieldKind::bytes, offsetof(Saved, bytes), sizeof(Saved::bytes), {}},
    {"digest", FieldKind::digest, offsetof(Saved, digest), sizeof(Saved::digest), {}},
    {"from", FieldKind::position, offsetof(Saved, from), sizeof(Saved::from), {}},
    {"to", FieldKind::position, offsetof(Saved, to), sizeof(Saved::to), {}},
};
constexpr FieldInfo kRestoredFields[] = {
    {"bytes", FieldKind::bytes, offsetof(Restored, bytes), sizeof(Restored::bytes), {}},
    {"digest", FieldKind::digest, offsetof(Restored, digest), sizeof(Restored::digest), {}},
    {"from", FieldKind::position, offsetof(Restored, from), sizeof(Restored::from), {}},
    {"to", FieldKind::position, offsetof(Restored, to), sizeof(Restored::to), {}},
};
constexpr FieldInfo kBlockAllocFields[] = {
    {"holder", FieldKind::integer, offsetof(BlockAlloc, holder), sizeof(BlockAlloc::holder), {}},
    {"block", FieldKind::integer, offsetof(BlockAlloc, block), sizeof(BlockAlloc::block), {}},
    {"holders", FieldKind::integer, offsetof(BlockAlloc, holders), sizeof(BlockAlloc::holders), {}},
};
constexpr FieldInfo kBlockFreeFields[] = {
    {"holder", FieldKind::integer, offsetof(BlockFree, holder), sizeof(BlockFree::holder), {}},
    {"block", FieldKind::integer, offsetof(BlockFree, block), sizeof(BlockFree::block), {}},
    {"holders", FieldKind::integer, offsetof(BlockFree, holders), sizeof(BlockFree::holders), {}},
};
constexpr FieldInfo kBlockHoldFields[] = {
    {"holder", FieldKind::integer, offsetof(BlockHold, holder), sizeof(BlockHold::holder), {}},
    {"block", FieldKind::integer, offsetof(BlockHold, block), sizeof(BlockHold::block), {}},
    {"holders", FieldKind::integer, offsetof(BlockHold, holders), sizeof(BlockHold::holders), {}},
};
constexpr FieldInfo kBlockReleaseFields[] = {
    {"holder", FieldKind::integer, offsetof(BlockRelease, holder), sizeof(BlockRelease::holder), {}},
    {"block", FieldKind::integer, offsetof(BlockRelease, block), sizeof(BlockRelease::block), {}},
    {"holders", FieldKind::integer, offsetof(BlockRelease, holders), sizeof(BlockRelease::holders), {}},
};
constexpr FieldInfo kBlockCachedFields[] = {
    {"token_hash", FieldKind::digest, offsetof(BlockCached, token_hash), sizeof(BlockCached::token_hash), {}},
    {"block", FieldKind::integer, offsetof(BlockCached, block), sizeof(BlockCached::block), {}},
    {"holders", FieldKind::integer, offsetof(BlockCached, holders), sizeof(BlockCached::holders), {}},
};
constexpr FieldInfo kTableEntryFields[] = {
    {"epoch", FieldKind::integer, offsetof(TableEntry, epoch), sizeof(TableEntry::epoch), {}},
    {"index", FieldKind::integer, offsetof(TableEntry, index), sizeof(TableEntry::index), {}},
    {"block", FieldKind::integer, offsetof(TableEntry, block), sizeof(TableEntry::block), {}},
    {"first", FieldKind::position, offsetof(TableEntry, first), sizeof(TableEntry::first), {}},
    {"rows", FieldKind::integer, offsetof(TableEntry, rows), sizeof(TableEntry::rows), {}},
};
constexpr FieldInfo kPrefixPublishedFields[] = {
    {"token_hash", FieldKind::digest, offsetof(PrefixPublished, token_hash), sizeof(PrefixPublished::token_hash), {}},
    {"from", FieldKind::position, offsetof(PrefixPublished, from), sizeof(PrefixPublished::from), {}},
    {"to", FieldKind::position, offsetof(PrefixPublished, to), sizeof(PrefixPublished::to), {}},
    {"block", FieldKind::integer, offsetof(PrefixPublished, block), sizeof(PrefixPublished::block), {}},
};
constexpr FieldInfo kPrefixHitFields[] = {
    {"token_hash", FieldKind::digest, offsetof(PrefixHit, token_hash), sizeof(PrefixHit::token_hash), {}},
    {"from", FieldKind::position, offsetof(PrefixHit, from), sizeof(PrefixHit::from), {}},
    {"to", FieldKind::position, offsetof(PrefixHit, to), sizeof(PrefixHit::to), {}},
    {"block", FieldKind::integer, offsetof(PrefixHit, block), sizeof(PrefixHit::block), {}},
};
constexpr FieldInfo kAdmittedFields[] = {
    {"reserved_blocks", FieldKind::integer, offsetof(Admitted, reserved_blocks), sizeof(Admitted::reserved_blocks), {}},
    {"peak_blocks", FieldKind::integer, offsetof(Admitted, peak_blocks), sizeof(Admitted::peak_blocks), {}},
    {"request", FieldKind::integer, offsetof(Admitted, request), sizeof(Admitted::request), {}},
};
constexpr FieldInfo kSwapOutFields[] = {
    {"block", FieldKind::integer, offsetof(SwapOut, block), sizeof(SwapOut::block), {}},
    {"tier", FieldKind::enumeration, offsetof(SwapOut, tier), sizeof(SwapOut::tier), kTierTexts},
    {"bytes", FieldKind::bytes, offsetof(SwapOut, bytes), sizeof(SwapOut::bytes), {}},
    {"stream", FieldKind::integer, offsetof(SwapOut, stream), sizeof(SwapOut::stream), {}},
};
constexpr FieldInfo kSwapInFields[] = {
    {"block", FieldKind::integer, offsetof(SwapIn, block), sizeof(SwapIn::block), {}},
    {"tier", FieldKind::enumeration, offsetof(SwapIn, tier), sizeof(SwapIn::tier), kTierTexts},
    {"bytes", FieldKind::bytes, offsetof(SwapIn, bytes), sizeof(SwapIn::bytes), {}},
    {"stream", FieldKind::integer, offsetof(SwapIn, stream), sizeof(SwapIn::stream), {}},
};
constexpr FieldInfo kWaitFields[] = {
    {"signal", FieldKind::integer, offsetof(Wait, signal), sizeof(Wait::signal), {}},
    {"stream", FieldKind::integer, offsetof(Wait, stream), sizeof(Wait::stream), {}},
};
constexpr FieldInfo kSignalFields[] = {
    {"signal", FieldKind::integer, offsetof(Signal, signal), sizeof(Signal::signal), {}},
    {"stream", FieldKind::integer, offsetof(Signal, stream), sizeof(Signal::stream), {}},
};
constexpr FieldInfo kWindowOpenedFields[] = {
    {"generation", FieldKind::integer, offsetof(WindowOpened, generation), sizeof(WindowOpened::generation), {}},
    {"copied_bytes", FieldKind::bytes, offsetof(WindowOpened, copied_bytes), sizeof(WindowOpened::copied_bytes), {}},
    {"view", FieldKind::integer, offsetof(WindowOpened, view), sizeof(WindowOpened::view), {}},
    {"from", FieldKind::position, offsetof(WindowOpened, from), sizeof(WindowOpened::from), {}},
    {"to", FieldKind::position, offsetof(WindowOpened, to), sizeof(WindowOpened::to), {}},
    {"runs", FieldKind::integer, offsetof(WindowOpened, runs), sizeof(WindowOpened::runs), {}},
};
constexpr FieldInfo kWindowRunFields[] = {
    {"offset", FieldKind::integer, offsetof(WindowRun, offset), sizeof(WindowRun::offset), {}},
    {"k_digest", FieldKind::digest, offsetof(WindowRun, k_digest), sizeof(WindowRun::k_digest), {}},
    {"v_digest", FieldKind::digest, offsetof(WindowRun, v_digest), sizeof(WindowRun::v_digest), {}},
    {"view", FieldKind::integer, offsetof(WindowRun, view), sizeof(WindowRun::view), {}},
    {"first", FieldKind::position, offsetof(WindowRun, first), sizeof(WindowRun::first), {}},
    {"count", FieldKind::integer, offsetof(WindowRun, count), sizeof(WindowRun::count), {}},
    {"slot", FieldKind::slot, offsetof(WindowRun, slot), sizeof(WindowRun::slot), {}},
};
constexpr FieldInfo kWindowClosedFields[] = {
    {"view", FieldKind::integer, offsetof(WindowClosed, view), sizeof(WindowClosed::view), {}},
};
constexpr FieldInfo kReadRowsFields[] = {
    {"k_digest", FieldKind::digest, offsetof(ReadRows, k_digest), sizeof(ReadRows::k_digest), {}},
    {"v_digest", FieldKind::digest, offsetof(ReadRows, v_digest), sizeof(ReadRows::v_digest), {}},
    {"bytes", FieldKind::bytes, offsetof(ReadRows, bytes), sizeof(ReadRows::bytes), {}},
    {"from", FieldKind::position, offsetof(ReadRows, from), sizeof(ReadRows::from), {}},
    {"to", FieldKind::position, offsetof(ReadRows, to), sizeof(ReadRows::to), {}},
};
constexpr FieldInfo kAdapterInsertedFields[] = {
    {"bytes_before", FieldKind::bytes, offsetof(AdapterInserted, bytes_before), sizeof(AdapterInserted::bytes_before), {}},
    {"bytes_after", FieldKind::bytes, offsetof(AdapterInserted, bytes_after), sizeof(AdapterInserted::bytes_after), {}},
    {"kind", FieldKind::enumeration, offsetof(AdapterInserted, kind), sizeof(AdapterInserted::kind), kAdapterTexts},
    {"plane", FieldKind::enumeration, offsetof(AdapterInserted, plane), sizeof(AdapterInserted::plane), kPlaneTexts},
    {"view", FieldKind::integer, offsetof(AdapterInserted, view), sizeof(AdapterInserted::view), {}},
    {"evidence", FieldKind::enumeration, offsetof(AdapterInserted, evidence), sizeof(AdapterInserted::evidence), kEvidenceTexts},
    {"from_type", FieldKind::enumeration, offsetof(AdapterInserted, from_type), sizeof(AdapterInserted::from_type), kDTypeTexts},
    {"to_type", FieldKind::enumeration, offsetof(AdapterInserted, to_type), sizeof(AdapterInserted::to_type), kDTypeTexts},
    {"rows", FieldKind::integer, offsetof(AdapterInserted, rows), sizeof(AdapterInserted::rows), {}},
};
constexpr FieldInfo kAttentionStepFields[] = {
    {"out_digest", FieldKind::digest, offsetof(AttentionStep, out_digest), sizeof(AttentionStep::out_digest), {}},
    {"view", FieldKind::integer, offsetof(AttentionStep, view), sizeof(AttentionStep::view), {}},
    {"query", FieldKind::position, offsetof(AttentionStep, query), sizeof(AttentionStep::query), {}},
    {"first_key", FieldKind::position, offsetof(AttentionStep, first_key), sizeof(AttentionStep::first_key), {}},
    {"last_key", FieldKind::position, offsetof(AttentionStep, last_key), sizeof(AttentionStep::last_key), {}},
    {"visited", FieldKind::integer, offsetof(AttentionStep, visited), sizeof(AttentionStep::visited), {}},
    {"rows_read", FieldKind::integer, offsetof(AttentionStep, rows_read), sizeof(AttentionStep::rows_read), {}},
    {"kernel", FieldKind::enumeration, offsetof(AttentionStep, kernel), sizeof(AttentionStep::kernel), kKernelTexts},
    {"ordinal", FieldKind::integer, offsetof(AttentionStep, ordinal), sizeof(AttentionStep::ordinal), {}},
};
constexpr FieldInfo kAttentionRunFields[] = {
    {"view", FieldKind::integer, offsetof(AttentionRun, view), sizeof(AttentionRun::view), {}},
    {"query", FieldKind::position, offsetof(AttentionRun, query), sizeof(AttentionRun::query), {}},
    {"first", FieldKind::position, offsetof(AttentionRun, first), sizeof(AttentionRun::first), {}},
    {"count", FieldKind::integer, offsetof(AttentionRun, count), sizeof(AttentionRun::count), {}},
};
constexpr FieldInfo kKernelRunFields[] = {
    {"kernel", FieldKind::name, offsetof(KernelRun, kernel), sizeof(KernelRun::kernel), {}},
    {"bytes", FieldKind::bytes, offsetof(KernelRun, bytes), sizeof(KernelRun::bytes), {}},
    {"duration_ns", FieldKind::duration, offsetof(KernelRun, duration_ns), sizeof(KernelRun::duration_ns), {}},
};
constexpr FieldInfo kTensorRecordedFields[] = {
    {"label", FieldKind::name, offsetof(TensorRecorded, label), sizeof(TensorRecorded::label), {}},
    {"digest", FieldKind::digest, offsetof(TensorRecorded, digest), sizeof(TensorRecorded::digest), {}},
    {"tensor", FieldKind::integer, offsetof(TensorRecorded, tensor), sizeof(TensorRecorded::tensor), {}},
    {"elements", FieldKind::integer, offsetof(TensorRecorded, elements), sizeof(TensorRecorded::elements), {}},
    {"role", FieldKind::enumeration, offsetof(TensorRecorded, role), sizeof(TensorRecorded::role), kPlaneTexts},
    {"position", FieldKind::position, offsetof(TensorRecorded, position), sizeof(TensorRecorded::position), {}},
};
constexpr FieldInfo kTensorValuesFields[] = {
    {"tensor", FieldKind::integer, offsetof(TensorValues, tensor), sizeof(TensorValues::tensor), {}},
    {"offset", FieldKind::integer, offsetof(TensorValues, offset), sizeof(TensorValues::offset), {}},
    {"values", FieldKind::f32_array, offsetof(TensorValues, values), sizeof(TensorValues::values), {}},
};
constexpr FieldInfo kStateDigestFields[] = {
    {"k_digest", FieldKind::digest, offsetof(StateDigest, k_digest), sizeof(StateDigest::k_digest), {}},
    {"v_digest", FieldKind::digest, offsetof(StateDigest, v_digest), sizeof(StateDigest::v_digest), {}},
    {"from", FieldKind::position, offsetof(StateDigest, from), sizeof(StateDigest::from), {}},
    {"to", FieldKind::position, offsetof(StateDigest, to), sizeof(StateDigest::to), {}},
    {"reason", FieldKind::enumeration, offsetof(StateDigest, reason), sizeof(StateDigest::reason), kReasonTexts},
    {"step", FieldKind::integer, offsetof(StateDigest, step), sizeof(StateDigest::step), {}},
};
constexpr FieldInfo kCalledFields[] = {
    {"stream", FieldKind::name, offsetof(Called, stream), sizeof(Called::stream), {}},
    {"operation", FieldKind::enumeration, offsetof(Called, operation), sizeof(Called::operation), kOperationTexts},
    {"from", FieldKind::position, offsetof(Called, from), sizeof(Called::from), {}},
    {"to", FieldKind::position, offsetof(Called, to), sizeof(Called::to), {}},
    {"view", FieldKind::integer, offsetof(Called, view), sizeof(Called::view), {}},
    {"count", FieldKind::integer, offsetof(Called, count), sizeof(Called::count), {}},
    {"ordinal", FieldKind::integer, offsetof(Called, ordinal), sizeof(Called::ordinal), {}},
};

constexpr bool is_canonical(FieldKind kind) noexcept {
  return kind != FieldKind::duration && kind != FieldKind::evidence && kind != FieldKind::site;
}

/// Reserved bytes are covered too: they are zero, and a writer that fills them must change the digest.
constexpr std::array<std::uint64_t, 5> mask_of(std::span<const FieldInfo> fields) noexcept {
  std::array<unsigned char, 40> bytes{};
  bytes.fill(0xff);
  for (const FieldInfo& field : fields) {
    if (is_canonical(field.kind)) continue;
    for (std::size_t i = 0; i < field.size; ++i) bytes[field.offset + i] = 0;
  }
  return std::bit_cast<std::array<std::uint64_t, 5>>(bytes);
}

template <class P>
constexpr TypeInfo make(std::string_view name, bool claim, std::string_view says, std::span<const FieldInfo> fields) noexcept {
  return {kTypeOf<P>, name, claim, says, fields, mask_of(fields)};
}

constexpr TypeInfo kTypes[] = {
    make<RunBegin>("RunBegin", false, "a run starts: seed, scenario and variant, clock", kRunBeginFields),
    make<RunEnd>("RunEnd", false, "a run ended whole: number and digest of its events", kRunEndFields),
    make<EventsDropped>("EventsDropped", false, "events were lost on the way", kEventsDroppedFields),
    make<Mark>("Mark", false, "a label set by the script", kMarkFields),
    make<Counter>("Counter", false, "a gauge with its unit", kCounterFields),
    make<PhaseBegin>("PhaseBegin", false, "a span of work opens", kPhaseBeginFields),
    make<PhaseEnd>("PhaseEnd", false, "a span of work closes", kPhaseEndFields),
    make<StepBegin>("StepBegin", false, "a step of the script starts for one token", kStepBeginFields),
    make<StepEnd>("StepEnd", false, "a step of the script ended", kStepEndFields),
    make<Expected>("Expected", false, "the outcome that the script expects of the next call", kExpectedFields),
    make<Refused>("Refused", false, "a call was refused and changed nothing", kRefusedFields),
    make<StoreCreated>("StoreCreated", true, "a store, its kind and what it can do", kStoreCreatedFields),
    make<LayerDeclared>("LayerDeclared", true, "capacity, window and heads of a layer", kLayerDeclaredFields),
    make<LayerFormat>("LayerFormat", true, "formats and row bytes of a layer", kLayerFormatFields),
    make<PlanLayer>("PlanLayer", true, "bytes predicted for a layer and side", kPlanLayerFields),
    make<PlanTotal>("PlanTotal", true, "bytes predicted for a store", kPlanTotalFields),
    make<Reported>("Reported", true, "a number that the store reports", kReportedFields),
    make<Allocation>("Allocation", false, "memory was taken", kAllocationFields),
    make<Free>("Free", false, "memory was given back", kFreeFields),
    make<ScopeReset>("ScopeReset", false, "a memory scope was reset", kScopeResetFields),
    make<RegionMeasured>("RegionMeasured", false, "a call ended; what the probe saw inside it", kRegionMeasuredFields),
    make<Append>("Append", true, "rows were written to slots", kAppendFields),
    make<RowDigests>("RowDigests", false, "digests of single rows given to the next append", kRowDigestsFields),
    make<Overwrite>("Overwrite", true, "positions lost to newer ones", kOverwriteFields),
    make<Move>("Move", true, "rows moved to other slots", kMoveFields),
    make<Rotate>("Rotate", true, "a key was rotated to another position", kRotateFields),
    make<Quantise>("Quantise", true, "rows were encoded into a tier", kQuantiseFields),
    make<Evict>("Evict", true, "positions were evicted", kEvictFields),
    make<Truncate>("Truncate", true, "the newest positions were taken back", kTruncateFields),
    make<Clear>("Clear", true, "a sequence was emptied", kClearFields),
    make<Fork>("Fork", true, "a sequence was forked", kForkFields),
    make<Drop>("Drop", true, "a sequence was dropped", kDropFields),
    make<Reorder>("Reorder", true, "a beam took over a parent", kReorderFields),
    make<Saved>("Saved", true, "state was saved", kSavedFields),
    make<Restored>("Restored", true, "state was restored", kRestoredFields),
    make<BlockAlloc>("BlockAlloc", true, "a block left the free list", kBlockAllocFields),
    make<BlockFree>("BlockFree", true, "a block returned to the free list", kBlockFreeFields),
    make<BlockHold>("BlockHold", true, "a block got another holder", kBlockHoldFields),
    make<BlockRelease>("BlockRelease", true, "a holder let go of a block", kBlockReleaseFields),
    make<BlockCached>("BlockCached", true, "a block is kept for reuse", kBlockCachedFields),
    make<TableEntry>("TableEntry", true, "an entry of a block table", kTableEntryFields),
    make<PrefixPublished>("PrefixPublished", true, "a prefix became reusable", kPrefixPublishedFields),
    make<PrefixHit>("PrefixHit", true, "a prefix was reused", kPrefixHitFields),
    make<Admitted>("Admitted", true, "a request was admitted with a reservation", kAdmittedFields),
    make<SwapOut>("SwapOut", true, "a block went to another tier", kSwapOutFields),
    make<SwapIn>("SwapIn", true, "a block came back", kSwapInFields),
    make<Wait>("Wait", true, "a stream waits for a signal", kWaitFields),
    make<Signal>("Signal", true, "a stream signals", kSignalFields),
    make<WindowOpened>("WindowOpened", false, "a window was handed out", kWindowOpenedFields),
    make<WindowRun>("WindowRun", false, "one run of a window, digested as it lies", kWindowRunFields),
    make<WindowClosed>("WindowClosed", false, "a window was given back", kWindowClosedFields),
    make<ReadRows>("ReadRows", false, "rows were copied out", kReadRowsFields),
    make<AdapterInserted>("AdapterInserted", false, "a copy or conversion between store and reader", kAdapterInsertedFields),
    make<AttentionStep>("AttentionStep", false, "the keys that one query row visited", kAttentionStepFields),
    make<AttentionRun>("AttentionRun", false, "one piece of a mask with holes", kAttentionRunFields),
    make<KernelRun>("KernelRun", false, "a kernel ran", kKernelRunFields),
    make<TensorRecorded>("TensorRecorded", false, "a tensor was recorded", kTensorRecordedFields),
    make<TensorValues>("TensorValues", false, "values of a recorded tensor", kTensorValuesFields),
    make<StateDigest>("StateDigest", false, "rows of a layer read back and digested", kStateDigestFields),
    make<Called>("Called", false, "the seam is about to call the store", kCalledFields),
};

constexpr bool ids_are_dense() noexcept {
  for (std::size_t i = 0; i < std::size(kTypes); ++i)
    if (static_cast<std::size_t>(kTypes[i].type) != i + 1) return false;
  return std::size(kTypes) == kLastEventType;
}
static_assert(ids_are_dense());

}  // namespace

const TypeInfo* type_info(EventType type) noexcept {
  const auto id = static_cast<std::size_t>(type);
  return id >= 1 && id <= std::size(kTypes) ? &kTypes[id - 1] : nullptr;
}

const TypeInfo* type_info(std::string_view name) noexcept {
  const auto found = std::ranges::find(kTypes, name, &TypeInfo::name);
  return found != std::end(kTypes) ? found : nullptr;
}

std::span<const TypeInfo> all_types() noexcept { return kTypes; }

std::uint64_t field_value(const Event& event, const FieldInfo& field) noexcept {
  std::uint64_t value = 0;
  std::memcpy(&value, reinterpret_cast<const unsigned char*>(event.payload.data()) + field.offset,
              std::min<std::size_t>(field.size, sizeof value));
  return value;
}

bool set_field(Event& event, const FieldInfo& field, std::uint64_t value) noexcept {
  if (field.size > sizeof value || (field.size < sizeof value && (value >> (8U * field.size)) != 0)) return false;
  std::memcpy(reinterpret_cast<unsigned char*>(event.payload.data()) + field.offset, &value, field.size);
  return true;
}

std::optional<std::string_view> text_of(std::span<const EnumText> texts, std::uint64_t value) noexcept {
  const auto found = std::ranges::find(texts, value, &EnumText::value);
  if (found == texts.end()) return std::nullopt;
  return found->text;
}

std::optional<std::uint64_t> value_of(std::span<const EnumText> texts, std::string_view text) noexcept {
  const auto found = std::ranges::find(texts, text, &EnumText::text);
  if (found == texts.end()) return std::nullopt;
  return found->value;
}

namespace {
template <class E>
std::string_view enum_text(std::span<const EnumText> texts, E value) noexcept {
  return text_of(texts, static_cast<std::uint64_t>(value)).value_or("unknown");
}
}  // namespace

std::string_view to_text(Operation operation) noexcept { return enum_text(kOperationTexts, operation); }
std::string_view to_text(RefusalCode code) noexcept { return enum_text(kRefusalTexts, code); }
std::string_view to_text(Capability capability) noexcept { return enum_text(kCapabilityTexts, capability); }
std::string_view to_text(DType type) noexcept { return enum_text(kDTypeTexts, type); }
std::string_view to_text(Plane plane) noexcept { return enum_text(kPlaneTexts, plane); }
std::string_view to_text(EventType type) noexcept {
  const TypeInfo* info = type_info(type);
  return info != nullptr ? info->name : "unknown";
}
std::span<const EnumText> operation_texts() noexcept { return kOperationTexts; }
std::span<const EnumText> refusal_texts() noexcept { return kRefusalTexts; }
std::span<const EnumText> capability_texts() noexcept { return kCapabilityTexts; }

Event canonical(const Event& event) noexcept {
  Event result = event;
  result.time = 0;
  if (const TypeInfo* info = type_info(event.type)) {
    for (std::size_t i = 0; i < result.payload.size(); ++i) result.payload[i] &= info->canonical_mask[i];
  }
  return result;
}

}  // namespace kvwitness::trace
