/// One field table per payload: JSONL, blocks, schema, diff, inspect and the canonical digest are all driven by it.
#pragma once

#include "kvwitness/trace/event.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace kvwitness::trace {

enum class FieldKind : std::uint8_t {
  integer,   ///< plain number
  position,  ///< kNoPosition is written as null
  slot,      ///< kNoSlot is written as null
  bytes,
  boolean,      ///< 0 or 1, a JSON boolean
  digest,       ///< "0x" and 16 hex digits
  name,         ///< NameHash, written as its text; 0 as null
  enumeration,  ///< written as its text
  f32_bits,     ///< a JSON number; "0x" and 8 hex digits where not finite
  f64_bits,     ///< a JSON number; "0x" and 16 hex digits where not finite
  f32_array,    ///< JSON array of f32_bits
  flags,        ///< JSON array of the set bits' texts
  duration,     ///< ns; left out of the run's digest
  evidence,     ///< number that depends on the machine (faults, system calls); left out of the run's digest
  site,         ///< call site, a name; left out of the run's digest
};

/// Fields that a saved trace may leave out, which then read as 0, "not given": a foreign producer need not compute
/// digests or measure anything.
[[nodiscard]] constexpr bool is_optional(FieldKind kind) noexcept {
  return kind == FieldKind::digest || kind == FieldKind::duration || kind == FieldKind::evidence ||
         kind == FieldKind::site;
}
/// Fields that hold a NameHash.
[[nodiscard]] constexpr bool is_name(FieldKind kind) noexcept {
  return kind == FieldKind::name || kind == FieldKind::site;
}

/// Text of an enumerator or flag bit.
struct EnumText {
  std::uint64_t value;
  std::string_view text;
};

struct FieldInfo {
  std::string_view name;
  FieldKind kind;
  std::uint8_t offset;              ///< bytes into the payload
  std::uint8_t size;                ///< bytes
  std::span<const EnumText> texts;  ///< for enumeration and flags
};

struct TypeInfo {
  EventType type = EventType::unknown;
  std::string_view name;  ///< PascalCase
  bool claim = false;     ///< what a store says of itself; otherwise a fact
  std::string_view says;  ///< one line for people
  std::span<const FieldInfo> fields;
  std::array<std::uint64_t, 5> canonical_mask{};  ///< bits of the payload that enter the run's digest
  std::array<std::uint64_t, 5> used_mask{};       ///< bits of the payload that some field covers; the others are zero
};

/// Null for types newer than this reader.
[[nodiscard]] const TypeInfo* type_info(EventType type) noexcept;
[[nodiscard]] const TypeInfo* type_info(std::string_view name) noexcept;
/// All types in the order of their ids.
[[nodiscard]] std::span<const TypeInfo> all_types() noexcept;

/// A field's value as an unsigned integer (f32_array excepted).
[[nodiscard]] std::uint64_t field_value(const Event& event, const FieldInfo& field) noexcept;
/// Stores `value` into a field; false where it does not fit into the field.
[[nodiscard]] bool set_field(Event& event, const FieldInfo& field, std::uint64_t value) noexcept;

[[nodiscard]] std::optional<std::string_view> text_of(std::span<const EnumText> texts, std::uint64_t value) noexcept;
[[nodiscard]] std::optional<std::uint64_t> value_of(std::span<const EnumText> texts, std::string_view text) noexcept;

[[nodiscard]] std::string_view to_text(Operation operation) noexcept;
[[nodiscard]] std::string_view to_text(RefusalCode code) noexcept;  ///< "ok" for none
[[nodiscard]] std::string_view to_text(EventType type) noexcept;
[[nodiscard]] std::string_view to_text(Capability capability) noexcept;
[[nodiscard]] std::string_view to_text(ClockKind clock) noexcept;
[[nodiscard]] std::span<const EnumText> clock_texts() noexcept;
[[nodiscard]] std::span<const EnumText> operation_texts() noexcept;
[[nodiscard]] std::span<const EnumText> refusal_texts() noexcept;
[[nodiscard]] std::span<const EnumText> capability_texts() noexcept;

/// The record as it enters the run's digest: time, durations, machine-dependent evidence and call sites are zero.
[[nodiscard]] Event canonical(const Event& event) noexcept;

}  // namespace kvwitness::trace
