#include "kvwitness/trace/event_table.hpp"

#include "event_fields.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>

namespace kvwitness::trace {
namespace {

// Fields are read and written as the low bytes of a 64-bit word, and saved records are little-endian.
static_assert(std::endian::native == std::endian::little);

constexpr bool is_canonical(FieldKind kind) noexcept {
  return kind != FieldKind::duration && kind != FieldKind::evidence && kind != FieldKind::site;
}

constexpr std::array<std::uint64_t, 5> to_words(const std::array<unsigned char, 40>& bytes) noexcept {
  return std::bit_cast<std::array<std::uint64_t, 5>>(bytes);
}

/// Reserved bytes are covered too: they are zero, and a writer that fills them must change the digest.
constexpr std::array<std::uint64_t, 5> canonical_mask_of(std::span<const FieldInfo> fields) noexcept {
  std::array<unsigned char, 40> bytes{};
  bytes.fill(0xff);
  for (const FieldInfo& field : fields) {
    if (is_canonical(field.kind)) continue;
    for (std::size_t i = 0; i < field.size; ++i) bytes[field.offset + i] = 0;
  }
  return to_words(bytes);
}

constexpr std::array<std::uint64_t, 5> used_mask_of(std::span<const FieldInfo> fields) noexcept {
  std::array<unsigned char, 40> bytes{};
  for (const FieldInfo& field : fields) {
    for (std::size_t i = 0; i < field.size; ++i) bytes[field.offset + i] = 0xff;
  }
  return to_words(bytes);
}

template <class P>
constexpr TypeInfo make(std::string_view name, bool claim, std::string_view says,
                        std::span<const FieldInfo> fields) noexcept {
  return {kTypeOf<P>, name, claim, says, fields, canonical_mask_of(fields), used_mask_of(fields)};
}

/// Scalars have the sizes that field_value reads; an array is read element by element.
constexpr bool has_readable_sizes(std::span<const FieldInfo> fields) noexcept {
  return std::ranges::all_of(fields, [](const FieldInfo& field) {
    return field.size == 1 || field.size == 2 || field.size == 4 || field.size == 8 ||
           field.kind == FieldKind::f32_array;
  });
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
    make<LayerFormat>("LayerFormat", true, "formats and row bytes of a layer; rows are given so, but to a layer with LayerCode", kLayerFormatFields),
    make<PlanLayer>("PlanLayer", false, "bytes predicted for a layer and side", kPlanLayerFields),
    make<PlanTotal>("PlanTotal", false, "bytes predicted for a store", kPlanTotalFields),
    make<Reported>("Reported", true, "a number that the store reports", kReportedFields),
    make<Allocation>("Allocation", false, "memory was taken", kAllocationFields),
    make<Free>("Free", false, "memory was given back", kFreeFields),
    make<ScopeReset>("ScopeReset", false, "a memory scope was reset", kScopeResetFields),
    make<RegionMeasured>("RegionMeasured", false, "a call ended; what the probe saw inside it", kRegionMeasuredFields),
    make<Append>("Append", true, "rows were written to slots; bytes: what they take once the append is done", kAppendFields),
    make<RowDigests>("RowDigests", false, "digests of single rows given to the next append", kRowDigestsFields),
    make<Overwrite>("Overwrite", true, "positions lost to newer ones", kOverwriteFields),
    make<Move>("Move", true, "rows moved to other slots", kMoveFields),
    make<Rotate>("Rotate", true, "a key was rotated to another position", kRotateFields),
    make<Quantise>("Quantise", true, "rows were encoded into a tier", kQuantiseFields),
    make<Evict>("Evict", true, "positions were evicted", kEvictFields),
    make<Truncate>("Truncate", true, "the newest positions were taken back", kTruncateFields),
    make<Clear>("Clear", true, "a sequence was emptied", kClearFields),
    make<Fork>("Fork", false, "a sequence was forked", kForkFields),
    make<Drop>("Drop", true, "a sequence was dropped", kDropFields),
    make<Reorder>("Reorder", false, "a beam took over a parent", kReorderFields),
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
    make<AdapterInserted>("AdapterInserted", false, "a copy or conversion between store and reader",
                          kAdapterInsertedFields),
    make<AttentionStep>("AttentionStep", false, "the keys that one query row visited", kAttentionStepFields),
    make<AttentionRun>("AttentionRun", false, "one piece of a mask with holes", kAttentionRunFields),
    make<KernelRun>("KernelRun", false, "a kernel ran", kKernelRunFields),
    make<TensorRecorded>("TensorRecorded", false, "a tensor was recorded", kTensorRecordedFields),
    make<TensorValues>("TensorValues", false, "values of a recorded tensor", kTensorValuesFields),
    make<StateDigest>("StateDigest", false, "rows of a layer read back and digested", kStateDigestFields),
    make<Called>("Called", false, "the seam is about to call the store", kCalledFields),
    make<LayerCode>("LayerCode", true, "how a side of a layer codes the f32 rows that it is given", kLayerCodeFields),
    make<PoolDeclared>("PoolDeclared", true, "blocks that a paged store owns", kPoolDeclaredFields),
    make<BlockTokens>("BlockTokens", false, "the tokens of a request's block, by hash", kBlockTokensFields),
    make<BlockStored>("BlockStored", true, "an engine caches a full block", kBlockStoredFields),
    make<BlockRemoved>("BlockRemoved", true, "an engine took a block from its cache", kBlockRemovedFields),
    make<BlocksCleared>("BlocksCleared", true, "an engine caches no block any more", {}),
    make<MessagesLost>("MessagesLost", false, "messages of an engine never came, or not in order", kMessagesLostFields),
    make<PoolPolicy>("PoolPolicy", true, "how a pool hands out, promises and publishes its blocks", kPoolPolicyFields),
};

constexpr bool ids_are_dense() noexcept {
  for (std::size_t i = 0; i < std::size(kTypes); ++i)
    if (static_cast<std::size_t>(kTypes[i].type) != i + 1) return false;
  return std::size(kTypes) == kLastEventType;
}
static_assert(ids_are_dense());
static_assert(std::ranges::all_of(kTypes, has_readable_sizes, &TypeInfo::fields));

/// Enumerators count from 0 without gaps, in the order of their texts.
constexpr bool enumerators_count_from_0(std::span<const FieldInfo> fields) noexcept {
  return std::ranges::all_of(fields, [](const FieldInfo& field) {
    std::uint64_t due = 0;
    return field.kind != FieldKind::enumeration ||
           std::ranges::all_of(field.texts, [&due](const EnumText& text) { return text.value == due++; });
  });
}
static_assert(std::ranges::all_of(kTypes, enumerators_count_from_0, &TypeInfo::fields));

}  // namespace

const TypeInfo* type_info(EventType type) noexcept {
  const auto id = static_cast<std::size_t>(type);
  return id >= 1 && id <= std::size(kTypes) ? &kTypes[id - 1] : nullptr;
}

const TypeInfo* type_info(std::string_view name) noexcept {
  const auto found = std::ranges::find(kTypes, name, &TypeInfo::name);
  return found != std::end(kTypes) ? found : nullptr;
}

std::span<const TypeInfo> all_types() noexcept {
  return kTypes;
}

std::uint64_t field_value(const Event& event, const FieldInfo& field) noexcept {
  const unsigned char* const at = reinterpret_cast<const unsigned char*>(event.payload.data()) + field.offset;
  std::uint64_t value = 0;
  switch (field.size) {
    case 1: std::memcpy(&value, at, 1); return value;
    case 2: std::memcpy(&value, at, 2); return value;
    case 4: std::memcpy(&value, at, 4); return value;
    default: std::memcpy(&value, at, 8); return value;
  }
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

std::string_view to_text(Operation operation) noexcept {
  return enum_text(kOperationTexts, operation);
}
std::string_view to_text(RefusalCode code) noexcept {
  return enum_text(kRefusalTexts, code);
}
std::string_view to_text(Capability capability) noexcept {
  return enum_text(kCapabilityTexts, capability);
}
std::string_view to_text(DType type) noexcept {
  return enum_text(kDTypeTexts, type);
}
std::string_view to_text(Plane plane) noexcept {
  return enum_text(kPlaneTexts, plane);
}
std::string_view to_text(EventType type) noexcept {
  const TypeInfo* info = type_info(type);
  return info != nullptr ? info->name : "unknown";
}
std::string_view to_text(ClockKind clock) noexcept {
  return enum_text(kClockTexts, clock);
}
std::span<const EnumText> clock_texts() noexcept {
  return kClockTexts;
}
std::span<const EnumText> operation_texts() noexcept {
  return kOperationTexts;
}
std::span<const EnumText> refusal_texts() noexcept {
  return kRefusalTexts;
}
std::span<const EnumText> capability_texts() noexcept {
  return kCapabilityTexts;
}

Event canonical(const Event& event) noexcept {
  Event result = event;
  result.time = 0;
  if (const TypeInfo* info = type_info(event.type)) {
    for (std::size_t i = 0; i < result.payload.size(); ++i) result.payload[i] &= info->canonical_mask[i];
  }
  return result;
}

}  // namespace kvwitness::trace
