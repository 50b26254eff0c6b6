#include "record_check.hpp"

#include "kvwitness/trace/error.hpp"
#include "kvwitness/trace/event_table.hpp"

#include <algorithm>
#include <array>
#include <vector>

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

/// A field that must not exceed a limit: a boolean or an enumeration, whose enumerators count from 0.
struct Limit {
  std::uint8_t word = 0;   ///< of the payload
  std::uint8_t shift = 0;  ///< bits into the word
  std::uint64_t mask = 0;
  std::uint64_t most = 0;
};

/// What has to be looked at in a type's records, without the fields that take any value.
struct Limits {
  std::array<std::uint64_t, 5> never{};  ///< bits that are always 0: reserved ones, and flags that there are not
  std::vector<Limit> numbers;
  std::vector<std::uint8_t> names;  ///< words of the payload
};

using AllLimits = std::array<Limits, kLastEventType + 1>;

void add_limit(Limits& limits, const FieldInfo& field) {
  const auto word = static_cast<std::uint8_t>(field.offset / 8U);
  const auto shift = static_cast<std::uint8_t>(field.offset % 8U * 8U);
  const std::uint64_t mask = field.size >= 8 ? ~0ULL : (1ULL << (8U * field.size)) - 1;
  if (is_name(field.kind)) limits.names.push_back(word);
  if (field.kind == FieldKind::boolean) limits.numbers.push_back({word, shift, mask, 1});
  if (field.kind == FieldKind::enumeration) limits.numbers.push_back({word, shift, mask, field.texts.size() - 1});
  if (field.kind == FieldKind::flags) limits.never[word] |= (mask & ~all_flags(field)) << shift;
}

AllLimits make_limits() {
  AllLimits all;
  for (const TypeInfo& info : all_types()) {
    Limits& limits = all[static_cast<std::size_t>(info.type)];
    for (std::size_t i = 0; i < limits.never.size(); ++i) limits.never[i] = ~info.used_mask[i];
    for (const FieldInfo& field : info.fields) add_limit(limits, field);
  }
  return all;
}

const AllLimits kLimits = make_limits();

bool stays_within(const Limits& limits, const Event& event) noexcept {
  std::uint64_t wrong = 0;
  for (std::size_t i = 0; i < limits.never.size(); ++i) wrong |= event.payload[i] & limits.never[i];
  for (const Limit& limit : limits.numbers)
    wrong |= (event.payload[limit.word] >> limit.shift & limit.mask) > limit.most ? 1U : 0U;
  return wrong == 0;
}

}  // namespace

bool RecordCheck::is_sound(const Event& event) noexcept {
  const auto type = static_cast<std::size_t>(event.type);
  if (type == 0 || type > kLastEventType) return false;
  const Limits& limits = kLimits[type];
  if (!stays_within(limits, event)) return false;
  return std::ranges::all_of(limits.names, [&](std::uint8_t word) { return knows(event.payload[word]); });
}

bool RecordCheck::knows(NameHash hash) noexcept {
  if (hash == 0 || hash == last_known_) return true;
  if (!names_->knows(hash)) return false;
  last_known_ = hash;
  return true;
}

std::string record_fault(const Event& event, const NameTable& names) {
  const TypeInfo* info = type_info(event.type);
  if (info == nullptr) return "type " + std::to_string(static_cast<unsigned>(event.type)) + " is unknown";
  for (const FieldInfo& field : info->fields) {
    if (const char* fault = field_fault(field, field_value(event, field), names))
      return std::string(info->name) + "." + std::string(field.name) + " " + fault;
  }
  if (!stays_within(kLimits[static_cast<std::size_t>(event.type)], event))
    return std::string(info->name) + ": reserved bytes are not zero";
  return {};
}

void require_sound(const Event& event, const NameTable& names) {
  if (RecordCheck(names).is_sound(event)) return;
  const std::string fault = record_fault(event, names);
  throw Error("event " + std::to_string(event.number) + " cannot be saved: " + fault);
}

}  // namespace kvwitness::trace
