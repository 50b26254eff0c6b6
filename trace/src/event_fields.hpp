/// The field tables of all payloads: every member but the reserved ones, in the order of the JSON form. Private to the
/// table.
#pragma once

#include "event_texts.hpp"
#include "kvwitness/trace/event_table.hpp"

#include <cstddef>

// offsetof cannot be had from a member pointer at compile time, hence macros. KVW_FIELD names the field as its member,
// KVW_FIELD_AS otherwise (bits of floats), KVW_TEXTS is a field whose values have texts.
#define KVW_FIELD_AS(P, name, member, kind)                           \
  {                                                                   \
    name, FieldKind::kind, offsetof(P, member), sizeof(P::member), {} \
  }
#define KVW_FIELD(P, member, kind) KVW_FIELD_AS(P, #member, member, kind)
#define KVW_TEXTS(P, member, kind, texts) \
  { #member, FieldKind::kind, offsetof(P, member), sizeof(P::member), texts }

namespace kvwitness::trace {

inline constexpr FieldInfo kRunBeginFields[] = {
    KVW_FIELD(RunBegin, seed, digest),     KVW_FIELD(RunBegin, claims_digest, digest),
    KVW_FIELD(RunBegin, scenario, name),   KVW_FIELD(RunBegin, variant, name),
    KVW_FIELD(RunBegin, version, integer), KVW_TEXTS(RunBegin, clock, enumeration, kClockTexts),
};
inline constexpr FieldInfo kRunEndFields[] = {
    KVW_FIELD(RunEnd, events, integer),
    KVW_FIELD(RunEnd, digest, digest),
    KVW_FIELD(RunEnd, dropped, integer),
    KVW_FIELD(RunEnd, steps, integer),
};
inline constexpr FieldInfo kEventsDroppedFields[] = {
    KVW_FIELD(EventsDropped, count, integer),
    KVW_FIELD(EventsDropped, first_number, integer),
};
inline constexpr FieldInfo kMarkFields[] = {
    KVW_FIELD(Mark, label, name),
    KVW_FIELD(Mark, value, integer),
};
inline constexpr FieldInfo kCounterFields[] = {
    KVW_FIELD(Counter, name, name),
    KVW_FIELD_AS(Counter, "value", value_bits, f64_bits),
    KVW_TEXTS(Counter, unit, enumeration, kUnitTexts),
};
inline constexpr FieldInfo kPhaseBeginFields[] = {
    KVW_FIELD(PhaseBegin, name, name),      KVW_TEXTS(PhaseBegin, kind, enumeration, kPhaseTexts),
    KVW_FIELD(PhaseBegin, span, integer),   KVW_FIELD(PhaseBegin, parent, integer),
    KVW_FIELD(PhaseBegin, thread, integer),
};
inline constexpr FieldInfo kPhaseEndFields[] = {
    KVW_FIELD(PhaseEnd, duration_ns, duration), KVW_TEXTS(PhaseEnd, kind, enumeration, kPhaseTexts),
    KVW_FIELD(PhaseEnd, span, integer),         KVW_FIELD(PhaseEnd, thread, integer),
    KVW_FIELD(PhaseEnd, by_exception, boolean),
};
inline constexpr FieldInfo kStepBeginFields[] = {
    KVW_FIELD(StepBegin, step, integer),
    KVW_FIELD(StepBegin, token, integer),
    KVW_TEXTS(StepBegin, operation, enumeration, kOperationTexts),
    KVW_FIELD(StepBegin, iteration, integer),
};
inline constexpr FieldInfo kStepEndFields[] = {
    KVW_FIELD(StepEnd, duration_ns, duration),
    KVW_FIELD(StepEnd, step, integer),
    KVW_FIELD(StepEnd, token, integer),
    KVW_TEXTS(StepEnd, operation, enumeration, kOperationTexts),
    KVW_TEXTS(StepEnd, outcome, enumeration, kStepOutcomeTexts),
};
inline constexpr FieldInfo kExpectedFields[] = {
    KVW_TEXTS(Expected, operation, enumeration, kOperationTexts),
    KVW_TEXTS(Expected, outcome, enumeration, kRefusalTexts),
    KVW_FIELD(Expected, step, integer),
};
inline constexpr FieldInfo kRefusedFields[] = {
    KVW_TEXTS(Refused, operation, enumeration, kOperationTexts),
    KVW_TEXTS(Refused, reason, enumeration, kRefusalTexts),
    KVW_FIELD(Refused, asked_from, position),
    KVW_FIELD(Refused, asked_to, position),
    KVW_FIELD(Refused, held_from, position),
    KVW_FIELD(Refused, held_to, position),
    KVW_FIELD(Refused, view, integer),
};
inline constexpr FieldInfo kStoreCreatedFields[] = {
    KVW_FIELD(StoreCreated, name, name),
    KVW_FIELD(StoreCreated, kind, name),
    KVW_TEXTS(StoreCreated, capabilities, flags, kCapabilityTexts),
    KVW_FIELD(StoreCreated, layers, integer),
    KVW_FIELD(StoreCreated, sequences, integer),
};
inline constexpr FieldInfo kLayerDeclaredFields[] = {
    KVW_FIELD(LayerDeclared, capacity, integer), KVW_FIELD(LayerDeclared, window, integer),
    KVW_FIELD(LayerDeclared, limited, boolean),  KVW_FIELD(LayerDeclared, sinks, integer),
    KVW_FIELD(LayerDeclared, q_heads, integer),  KVW_FIELD(LayerDeclared, kv_heads, integer),
    KVW_FIELD(LayerDeclared, head_dim, integer), KVW_FIELD(LayerDeclared, block, integer),
    KVW_FIELD(LayerDeclared, sliding, boolean),  KVW_TEXTS(LayerDeclared, rope, enumeration, kRopeTexts),
};
inline constexpr FieldInfo kLayerFormatFields[] = {
    KVW_FIELD(LayerFormat, k_row_bytes, bytes),
    KVW_FIELD(LayerFormat, v_row_bytes, bytes),
    KVW_FIELD_AS(LayerFormat, "score_scale", score_scale_bits, f32_bits),
    KVW_FIELD_AS(LayerFormat, "softcap", softcap_bits, f32_bits),
    KVW_TEXTS(LayerFormat, k_type, enumeration, kDTypeTexts),
    KVW_TEXTS(LayerFormat, v_type, enumeration, kDTypeTexts),
    KVW_FIELD(LayerFormat, donor, integer),
    KVW_FIELD_AS(LayerFormat, "rope_theta", rope_theta_bits, f64_bits),
};
inline constexpr FieldInfo kPlanLayerFields[] = {
    KVW_FIELD(PlanLayer, bytes, bytes),
    KVW_FIELD(PlanLayer, scale_bytes, bytes),
    KVW_TEXTS(PlanLayer, plane, enumeration, kPlaneTexts),
    KVW_FIELD(PlanLayer, slots, integer),
};
inline constexpr FieldInfo kPlanTotalFields[] = {
    KVW_FIELD(PlanTotal, bytes, bytes),
    KVW_FIELD(PlanTotal, scratch_bytes, bytes),
};
inline constexpr FieldInfo kReportedFields[] = {
    KVW_FIELD(Reported, what, name),
    KVW_FIELD(Reported, value, integer),
    KVW_TEXTS(Reported, unit, enumeration, kUnitTexts),
};
inline constexpr FieldInfo kAllocationFields[] = {
    KVW_FIELD(Allocation, storage, integer),
    KVW_FIELD(Allocation, bytes, bytes),
    KVW_FIELD(Allocation, site, site),
    KVW_FIELD(Allocation, count, integer),
    KVW_TEXTS(Allocation, scope, enumeration, kScopeTexts),
    KVW_TEXTS(Allocation, origin, enumeration, kOriginTexts),
    KVW_TEXTS(Allocation, evidence, enumeration, kEvidenceTexts),
    KVW_TEXTS(Allocation, plane, enumeration, kPlaneTexts),
};
inline constexpr FieldInfo kFreeFields[] = {
    KVW_FIELD(Free, storage, integer),
    KVW_FIELD(Free, bytes, bytes),
    KVW_FIELD(Free, count, integer),
    KVW_TEXTS(Free, scope, enumeration, kScopeTexts),
    KVW_TEXTS(Free, origin, enumeration, kOriginTexts),
    KVW_TEXTS(Free, evidence, enumeration, kEvidenceTexts),
};
inline constexpr FieldInfo kScopeResetFields[] = {
    KVW_FIELD(ScopeReset, bytes_freed, bytes),
    KVW_FIELD(ScopeReset, live_bytes, bytes),
    KVW_FIELD(ScopeReset, count, integer),
    KVW_TEXTS(ScopeReset, scope, enumeration, kScopeTexts),
};
inline constexpr FieldInfo kRegionMeasuredFields[] = {
    KVW_FIELD(RegionMeasured, allocations, integer),
    KVW_FIELD(RegionMeasured, bytes, bytes),
    KVW_TEXTS(RegionMeasured, operation, enumeration, kOperationTexts),
    KVW_TEXTS(RegionMeasured, evidence, enumeration, kEvidenceTexts),
    KVW_TEXTS(RegionMeasured, outcome, enumeration, kRefusalTexts),
    KVW_FIELD(RegionMeasured, faults, evidence),
    KVW_FIELD(RegionMeasured, first_syscall, evidence),
};
inline constexpr FieldInfo kAppendFields[] = {
    KVW_FIELD(Append, bytes, bytes),        KVW_FIELD(Append, k_digest, digest), KVW_FIELD(Append, v_digest, digest),
    KVW_FIELD(Append, first, position),     KVW_FIELD(Append, count, integer),   KVW_FIELD(Append, slot, slot),
    KVW_FIELD(Append, held_from, position),
};
inline constexpr FieldInfo kRowDigestsFields[] = {
    KVW_FIELD(RowDigests, k0, digest), KVW_FIELD(RowDigests, v0, digest),      KVW_FIELD(RowDigests, k1, digest),
    KVW_FIELD(RowDigests, v1, digest), KVW_FIELD(RowDigests, first, position), KVW_FIELD(RowDigests, count, integer),
};
inline constexpr FieldInfo kOverwriteFields[] = {
    KVW_FIELD(Overwrite, first, position),
    KVW_FIELD(Overwrite, count, integer),
    KVW_FIELD(Overwrite, slot, slot),
    KVW_FIELD(Overwrite, by, position),
};
inline constexpr FieldInfo kMoveFields[] = {
    KVW_FIELD(Move, from_position, position), KVW_FIELD(Move, to_position, position), KVW_FIELD(Move, from_slot, slot),
    KVW_FIELD(Move, to_slot, slot),           KVW_FIELD(Move, count, integer),        KVW_FIELD(Move, bytes, bytes),
};
inline constexpr FieldInfo kRotateFields[] = {
    KVW_FIELD(Rotate, position, position), KVW_FIELD(Rotate, slot, slot),     KVW_FIELD(Rotate, applied, position),
    KVW_FIELD(Rotate, from_raw, boolean),  KVW_FIELD(Rotate, times, integer),
};
inline constexpr FieldInfo kQuantiseFields[] = {
    KVW_FIELD(Quantise, first, position),
    KVW_FIELD(Quantise, count, integer),
    KVW_TEXTS(Quantise, tier, enumeration, kTierTexts),
    KVW_TEXTS(Quantise, k_type, enumeration, kDTypeTexts),
    KVW_TEXTS(Quantise, v_type, enumeration, kDTypeTexts),
};
inline constexpr FieldInfo kEvictFields[] = {
    KVW_FIELD(Evict, from, position),
    KVW_FIELD(Evict, to, position),
    KVW_FIELD(Evict, freed, integer),
    KVW_FIELD(Evict, moved, integer),
};
inline constexpr FieldInfo kTruncateFields[] = {
    KVW_FIELD(Truncate, to, position),
    KVW_FIELD(Truncate, old_end, position),
    KVW_FIELD(Truncate, freed, integer),
};
inline constexpr FieldInfo kClearFields[] = {
    KVW_FIELD(Clear, freed, integer),
};
inline constexpr FieldInfo kForkFields[] = {
    KVW_FIELD(Fork, parent, integer),
    KVW_FIELD(Fork, child, integer),
    KVW_FIELD(Fork, upto, position),
    KVW_FIELD(Fork, shared, integer),
};
inline constexpr FieldInfo kDropFields[] = {
    KVW_FIELD(Drop, freed, integer),
};
inline constexpr FieldInfo kReorderFields[] = {
    KVW_FIELD(Reorder, parent, integer),
    KVW_FIELD(Reorder, beam, integer),
};
inline constexpr FieldInfo kSavedFields[] = {
    KVW_FIELD(Saved, bytes, bytes),
    KVW_FIELD(Saved, digest, digest),
    KVW_FIELD(Saved, from, position),
    KVW_FIELD(Saved, to, position),
};
inline constexpr FieldInfo kRestoredFields[] = {
    KVW_FIELD(Restored, bytes, bytes),
    KVW_FIELD(Restored, digest, digest),
    KVW_FIELD(Restored, from, position),
    KVW_FIELD(Restored, to, position),
};
inline constexpr FieldInfo kBlockAllocFields[] = {
    KVW_FIELD(BlockAlloc, holder, integer),
    KVW_FIELD(BlockAlloc, block, integer),
    KVW_FIELD(BlockAlloc, holders, integer),
};
inline constexpr FieldInfo kBlockFreeFields[] = {
    KVW_FIELD(BlockFree, holder, integer),
    KVW_FIELD(BlockFree, block, integer),
    KVW_FIELD(BlockFree, holders, integer),
};
inline constexpr FieldInfo kBlockHoldFields[] = {
    KVW_FIELD(BlockHold, holder, integer),
    KVW_FIELD(BlockHold, block, integer),
    KVW_FIELD(BlockHold, holders, integer),
};
inline constexpr FieldInfo kBlockReleaseFields[] = {
    KVW_FIELD(BlockRelease, holder, integer),
    KVW_FIELD(BlockRelease, block, integer),
    KVW_FIELD(BlockRelease, holders, integer),
};
inline constexpr FieldInfo kBlockCachedFields[] = {
    KVW_FIELD(BlockCached, token_hash, digest),
    KVW_FIELD(BlockCached, block, integer),
    KVW_FIELD(BlockCached, holders, integer),
};
inline constexpr FieldInfo kTableEntryFields[] = {
    KVW_FIELD(TableEntry, epoch, integer), KVW_FIELD(TableEntry, index, integer),
    KVW_FIELD(TableEntry, block, integer), KVW_FIELD(TableEntry, first, position),
    KVW_FIELD(TableEntry, rows, integer),
};
inline constexpr FieldInfo kPrefixPublishedFields[] = {
    KVW_FIELD(PrefixPublished, token_hash, digest),
    KVW_FIELD(PrefixPublished, from, position),
    KVW_FIELD(PrefixPublished, to, position),
    KVW_FIELD(PrefixPublished, block, integer),
};
inline constexpr FieldInfo kPrefixHitFields[] = {
    KVW_FIELD(PrefixHit, token_hash, digest),
    KVW_FIELD(PrefixHit, from, position),
    KVW_FIELD(PrefixHit, to, position),
    KVW_FIELD(PrefixHit, block, integer),
};
inline constexpr FieldInfo kAdmittedFields[] = {
    KVW_FIELD(Admitted, reserved_blocks, integer),
    KVW_FIELD(Admitted, peak_blocks, integer),
    KVW_FIELD(Admitted, request, integer),
};
inline constexpr FieldInfo kSwapOutFields[] = {
    KVW_FIELD(SwapOut, block, integer),
    KVW_TEXTS(SwapOut, tier, enumeration, kTierTexts),
    KVW_FIELD(SwapOut, bytes, bytes),
    KVW_FIELD(SwapOut, stream, integer),
};
inline constexpr FieldInfo kSwapInFields[] = {
    KVW_FIELD(SwapIn, block, integer),
    KVW_TEXTS(SwapIn, tier, enumeration, kTierTexts),
    KVW_FIELD(SwapIn, bytes, bytes),
    KVW_FIELD(SwapIn, stream, integer),
};
inline constexpr FieldInfo kWaitFields[] = {
    KVW_FIELD(Wait, signal, integer),
    KVW_FIELD(Wait, stream, integer),
};
inline constexpr FieldInfo kSignalFields[] = {
    KVW_FIELD(Signal, signal, integer),
    KVW_FIELD(Signal, stream, integer),
};
inline constexpr FieldInfo kBlockStoredFields[] = {
    KVW_FIELD(BlockStored, block, name),         KVW_FIELD(BlockStored, parent, name),
    KVW_FIELD(BlockStored, adapter, name),       KVW_FIELD(BlockStored, content, digest),
    KVW_FIELD(BlockStored, block_size, integer), KVW_FIELD(BlockStored, tokens, integer),
};
inline constexpr FieldInfo kBlockRemovedFields[] = {
    KVW_FIELD(BlockRemoved, block, name),
};
inline constexpr FieldInfo kMessagesLostFields[] = {
    KVW_FIELD(MessagesLost, first, integer),
    KVW_FIELD(MessagesLost, count, integer),
};
inline constexpr FieldInfo kWindowOpenedFields[] = {
    KVW_FIELD(WindowOpened, generation, integer), KVW_FIELD(WindowOpened, copied_bytes, bytes),
    KVW_FIELD(WindowOpened, view, integer),       KVW_FIELD(WindowOpened, from, position),
    KVW_FIELD(WindowOpened, to, position),        KVW_FIELD(WindowOpened, runs, integer),
};
inline constexpr FieldInfo kWindowRunFields[] = {
    KVW_FIELD(WindowRun, offset, integer),  KVW_FIELD(WindowRun, k_digest, digest),
    KVW_FIELD(WindowRun, v_digest, digest), KVW_FIELD(WindowRun, view, integer),
    KVW_FIELD(WindowRun, first, position),  KVW_FIELD(WindowRun, count, integer),
    KVW_FIELD(WindowRun, slot, slot),
};
inline constexpr FieldInfo kWindowClosedFields[] = {
    KVW_FIELD(WindowClosed, view, integer),
};
inline constexpr FieldInfo kReadRowsFields[] = {
    KVW_FIELD(ReadRows, k_digest, digest), KVW_FIELD(ReadRows, v_digest, digest), KVW_FIELD(ReadRows, bytes, bytes),
    KVW_FIELD(ReadRows, from, position),   KVW_FIELD(ReadRows, to, position),
};
inline constexpr FieldInfo kAdapterInsertedFields[] = {
    KVW_FIELD(AdapterInserted, bytes_before, bytes),
    KVW_FIELD(AdapterInserted, bytes_after, bytes),
    KVW_TEXTS(AdapterInserted, kind, enumeration, kAdapterTexts),
    KVW_TEXTS(AdapterInserted, plane, enumeration, kPlaneTexts),
    KVW_FIELD(AdapterInserted, view, integer),
    KVW_TEXTS(AdapterInserted, evidence, enumeration, kEvidenceTexts),
    KVW_TEXTS(AdapterInserted, from_type, enumeration, kDTypeTexts),
    KVW_TEXTS(AdapterInserted, to_type, enumeration, kDTypeTexts),
    KVW_FIELD(AdapterInserted, rows, integer),
};
inline constexpr FieldInfo kAttentionStepFields[] = {
    KVW_FIELD(AttentionStep, out_digest, digest), KVW_FIELD(AttentionStep, view, integer),
    KVW_FIELD(AttentionStep, query, position),    KVW_FIELD(AttentionStep, first_key, position),
    KVW_FIELD(AttentionStep, last_key, position), KVW_FIELD(AttentionStep, visited, integer),
    KVW_FIELD(AttentionStep, rows_read, integer), KVW_TEXTS(AttentionStep, kernel, enumeration, kKernelTexts),
    KVW_FIELD(AttentionStep, ordinal, integer),
};
inline constexpr FieldInfo kAttentionRunFields[] = {
    KVW_FIELD(AttentionRun, view, integer),
    KVW_FIELD(AttentionRun, query, position),
    KVW_FIELD(AttentionRun, first, position),
    KVW_FIELD(AttentionRun, count, integer),
};
inline constexpr FieldInfo kKernelRunFields[] = {
    KVW_FIELD(KernelRun, kernel, name),
    KVW_FIELD(KernelRun, bytes, bytes),
    KVW_FIELD(KernelRun, duration_ns, duration),
};
inline constexpr FieldInfo kTensorRecordedFields[] = {
    KVW_FIELD(TensorRecorded, label, name),
    KVW_FIELD(TensorRecorded, digest, digest),
    KVW_FIELD(TensorRecorded, tensor, integer),
    KVW_FIELD(TensorRecorded, elements, integer),
    KVW_TEXTS(TensorRecorded, role, enumeration, kPlaneTexts),
    KVW_FIELD(TensorRecorded, position, position),
    KVW_FIELD(TensorRecorded, ordinal, integer),
};
inline constexpr FieldInfo kTensorValuesFields[] = {
    KVW_FIELD(TensorValues, tensor, integer),
    KVW_FIELD(TensorValues, offset, integer),
    KVW_FIELD(TensorValues, values, f32_array),
};
inline constexpr FieldInfo kStateDigestFields[] = {
    KVW_FIELD(StateDigest, k_digest, digest),
    KVW_FIELD(StateDigest, v_digest, digest),
    KVW_FIELD(StateDigest, from, position),
    KVW_FIELD(StateDigest, to, position),
    KVW_TEXTS(StateDigest, reason, enumeration, kReasonTexts),
    KVW_FIELD(StateDigest, step, integer),
};
inline constexpr FieldInfo kCalledFields[] = {
    KVW_FIELD(Called, stream, name),     KVW_TEXTS(Called, operation, enumeration, kOperationTexts),
    KVW_FIELD(Called, from, position),   KVW_FIELD(Called, to, position),
    KVW_FIELD(Called, view, integer),    KVW_FIELD(Called, count, integer),
    KVW_FIELD(Called, ordinal, integer), KVW_FIELD(Called, file, digest),
};
inline constexpr FieldInfo kLayerCodeFields[] = {
    KVW_FIELD(LayerCode, seed, digest),
    KVW_TEXTS(LayerCode, plane, enumeration, kPlaneTexts),
    KVW_TEXTS(LayerCode, code, enumeration, kDTypeTexts),
    KVW_FIELD(LayerCode, bits, integer),
    KVW_FIELD(LayerCode, block, integer),
    KVW_FIELD(LayerCode, residual_bits, integer),
    KVW_FIELD(LayerCode, recent, integer),
    KVW_FIELD(LayerCode, quantise_group, integer),
};
inline constexpr FieldInfo kPoolDeclaredFields[] = {
    KVW_FIELD(PoolDeclared, pool_blocks, integer),
    KVW_FIELD(PoolDeclared, host_blocks, integer),
    KVW_FIELD(PoolDeclared, block, integer),
};
inline constexpr FieldInfo kPoolPolicyFields[] = {
    KVW_TEXTS(PoolPolicy, order, enumeration, kBlockOrderTexts),
    KVW_TEXTS(PoolPolicy, admission, enumeration, kAdmissionTexts),
    KVW_TEXTS(PoolPolicy, publishing, enumeration, kPublishingTexts),
    KVW_FIELD(PoolPolicy, duplicates, boolean),
    KVW_FIELD(PoolPolicy, lookahead, integer),
};
inline constexpr FieldInfo kBlockTokensFields[] = {
    KVW_FIELD(BlockTokens, token_hash, digest),
    KVW_FIELD(BlockTokens, from, position),
    KVW_FIELD(BlockTokens, to, position),
};

}  // namespace kvwitness::trace

#undef KVW_FIELD_AS
#undef KVW_FIELD
#undef KVW_TEXTS
