#include "record_check.hpp"

#include "kvwitness/trace/assert.hpp"
#include "kvwitness/trace/error.hpp"
#include "kvwitness/trace/event_table.hpp"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif
#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstring>

namespace kvwitness::trace {
namespace {

std::uint64_t all_flags(const FieldInfo& field) noexcept {
  std::uint64_t all = 0;
  for (const EnumText& text : field.texts) all |= text.value;
  return all;
}

/// Null where the field's value is sound.
const char* field_fault(const FieldInfo& field, std::uint64_t value, const NameTable& names) noexcept {
  switch (field.kind) {
    case FieldKind::boolean: return value <= 1 ? nullptr : "is neither 0 nor 1";
    case FieldKind::enumeration: return text_of(field.texts, value) ? nullptr : "has no such enumerator";
    case FieldKind::flags: return (value & ~all_flags(field)) == 0 ? nullptr : "has an unknown flag";
    case FieldKind::name:
    case FieldKind::site: return value == 0 || names.knows(value) ? nullptr : "is a name that was never interned";
    default: return nullptr;
  }
}

/// Payload bytes that no field covers.
bool has_reserved_bytes(const Event& event, const TypeInfo& info) noexcept {
  std::uint64_t used = 0;
  for (std::size_t i = 0; i < info.used_mask.size(); ++i) used |= event.payload[i] & ~info.used_mask[i];
  return used != 0;
}

/// Sixteen bytes that are looked at together.
using Bytes = unsigned char __attribute__((vector_size(16)));
using Words = std::uint64_t __attribute__((vector_size(16)));
static_assert(sizeof(Event) % sizeof(Bytes) == 0 && offsetof(Event, sequence) == sizeof(Bytes));
constexpr std::size_t kTypeAt = offsetof(Event, type);
constexpr std::size_t kPayloadAt = offsetof(Event, payload);

/// The most that each byte of a type's sound records may be. That tells them all, because enumerators count from 0 and
/// are fewer than 256, flags fill the low bits, and what no field covers is 0.
struct alignas(Bytes) Limits {
  std::array<unsigned char, sizeof(Event)> most{};
};

struct AllLimits {
  std::array<Limits, 256> of_type;
  std::array<unsigned char, 256> names{};  ///< of each type: bit i where word i of the payload is a name
};

/// The greatest value of the field; all ones where it takes any.
std::uint64_t most_of(const FieldInfo& field) {
  if (field.kind == FieldKind::boolean) return 1;
  if (field.kind == FieldKind::flags) {
    const std::uint64_t all = all_flags(field);
    KVW_ASSERT((all & (all + 1)) == 0);
    return all;
  }
  if (field.kind != FieldKind::enumeration) return ~0ULL;
  const std::uint64_t last = field.texts.back().value;
  KVW_ASSERT(last == field.texts.size() - 1 && last <= 0xff);
  return last;
}

void limit_field(Limits& limits, const FieldInfo& field) {
  const std::uint64_t most = most_of(field);
  for (std::size_t i = 0; i < field.size; ++i) {
    const auto byte = static_cast<unsigned char>(i < sizeof most ? most >> (8 * i) : 0xffU);
    limits.most[kPayloadAt + field.offset + i] = byte;
  }
}

AllLimits make_limits() {
  AllLimits all{};
  for (const TypeInfo& info : all_types()) {
    const auto type = static_cast<std::size_t>(info.type);
    Limits& limits = all.of_type[type];
    std::fill_n(limits.most.begin(), kPayloadAt, static_cast<unsigned char>(0xff));
    for (const FieldInfo& field : info.fields) {
      limit_field(limits, field);
      if (is_name(field.kind)) all.names[type] |= static_cast<unsigned char>(1U << (field.offset / 8U));
    }
  }
  return all;  // of newer types all are 0, which already their type exceeds
}

const AllLimits kLimits = make_limits();

std::uint64_t word_at(const char* record, std::size_t at) noexcept {
  std::uint64_t word = 0;
  std::memcpy(&word, record + at, sizeof word);
  return word;
}

std::size_t type_of(const char* record) noexcept {
  return static_cast<unsigned char>(record[kTypeAt]);
}

Bytes bytes_at(const void* at) noexcept {
  Bytes bytes;
  std::memcpy(&bytes, at, sizeof bytes);
  return bytes;
}

/// Each byte: by how much it exceeds its limit.
Bytes excess(Bytes bytes, Bytes most) noexcept {
#if defined(__SSE2__)
  // One instruction, which no compiler finds by itself.
  return std::bit_cast<Bytes>(_mm_subs_epu8(std::bit_cast<__m128i>(bytes), std::bit_cast<__m128i>(most)));
#else
  return (bytes > most) & (bytes - most);
#endif
}

/// All zero where the record is within its type's limits; of type 0 it may be, which is none.
Bytes excess(const char* record) noexcept {
  const Limits& limits = kLimits.of_type[type_of(record)];
  Bytes over{};
  // The first part, number and time, may be anything.
  for (std::size_t at = sizeof(Bytes); at < sizeof(Event); at += sizeof(Bytes))
    over |= excess(bytes_at(record + at), bytes_at(limits.most.data() + at));
  return over;
}

bool is_zero(Bytes bytes) noexcept {
  const auto words = std::bit_cast<Words>(bytes);
  return (words[0] | words[1]) == 0;
}

/// Whether `knows` is true of all names in the record.
template <class F>
bool knows_names(const char* record, F&& knows) noexcept {
  bool knows_all = true;
  for (unsigned left = kLimits.names[type_of(record)]; left != 0; left &= left - 1)
    knows_all &= knows(word_at(record, kPayloadAt + 8U * static_cast<unsigned>(std::countr_zero(left))));
  return knows_all;
}

}  // namespace

std::size_t RecordCheck::count_sound(std::string_view records, std::uint64_t first_number,
                                     std::uint32_t types) noexcept {
  const std::size_t count = records.size() / sizeof(Event);
  std::size_t sound = 0;
  while (sound < count) {
    if (count - sound >= kAtOnce &&
        are_plainly_sound(records.data() + sound * sizeof(Event), first_number + sound, types)) {
      sound += kAtOnce;
      continue;
    }
    const std::size_t end = std::min(sound + kAtOnce, count);
    for (; sound < end; ++sound) {
      const char* const record = records.data() + sound * sizeof(Event);
      if (word_at(record, 0) != first_number + sound || type_of(record) > types || !is_sound(record)) return sound;
    }
  }
  return sound;
}

bool RecordCheck::are_plainly_sound(const char* records, std::uint64_t first_number, std::size_t types) const noexcept {
  Bytes over{};
  std::uint64_t other_number = 0;
  std::size_t last_type = 0;
  bool has_met_all = true;
  for (std::size_t i = 0; i < kAtOnce; ++i) {
    const char* const record = records + i * sizeof(Event);
    over |= excess(record);
    other_number |= word_at(record, 0) ^ (first_number + i);
    // Type 0 is none, and becomes the last one.
    last_type = std::max<std::size_t>(last_type, static_cast<unsigned char>(type_of(record) - 1));
    has_met_all &= knows_names(record, [this](NameHash hash) { return has_met(hash); });
  }
  return is_zero(over) && other_number == 0 && last_type < types && has_met_all;
}

bool RecordCheck::is_sound(const char* record) noexcept {
  return type_of(record) != 0 && is_zero(excess(record)) &&
         knows_names(record, [this](NameHash hash) { return knows(hash); });
}

bool RecordCheck::knows(NameHash hash) noexcept {
  if (hash != 0 && !has_met(hash) && !names_->knows(hash)) return false;
  met_[hash % met_.size()] = hash;
  return true;
}

std::string record_fault(const Event& event, const NameTable& names) {
  const TypeInfo* info = type_info(event.type);
  if (info == nullptr) return "type " + std::to_string(static_cast<unsigned>(event.type)) + " is unknown";
  for (const FieldInfo& field : info->fields) {
    if (const char* fault = field_fault(field, field_value(event, field), names))
      return std::string(info->name) + "." + std::string(field.name) + " " + fault;
  }
  if (has_reserved_bytes(event, *info)) return std::string(info->name) + ": reserved bytes are not zero";
  return {};
}

void require_sound(const Event& event, const NameTable& names) {
  const char* const record = reinterpret_cast<const char*>(&event);
  const bool is_sound = event.type != EventType::unknown && is_zero(excess(record)) &&
                        knows_names(record, [&](NameHash hash) { return hash == 0 || names.knows(hash); });
  if (is_sound) return;
  throw Error("event " + std::to_string(event.number) + " cannot be saved: " + record_fault(event, names));
}

}  // namespace kvwitness::trace
