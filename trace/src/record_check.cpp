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

/// Enumerators count from 0, so that the text of one stands at its own index; where it does not, it is looked for.
bool has_text(std::span<const EnumText> texts, std::uint64_t value) noexcept {
  return (value < texts.size() && texts[value].value == value) || text_of(texts, value).has_value();
}

/// Null where the field's value is sound.
const char* field_fault(const FieldInfo& field, std::uint64_t value, const NameTable& names) noexcept {
  switch (field.kind) {
    case FieldKind::boolean: return value <= 1 ? nullptr : "is neither 0 nor 1";
    case FieldKind::enumeration: return has_text(field.texts, value) ? nullptr : "has no such enumerator";
    case FieldKind::flags: return (value & ~all_flags(field)) == 0 ? nullptr : "has an unknown flag";
    case FieldKind::name:
    case FieldKind::site: return value == 0 || names.knows(value) ? nullptr : "is a name that was never interned";
    default: return nullptr;
  }
}

/// What has to be looked at in a type's records, without the fields that take any value.
struct Limits {
  std::array<std::uint64_t, 5> unused{};
  std::vector<const FieldInfo*> fields;
};

using AllLimits = std::array<Limits, kLastEventType + 1>;

bool takes_any_value(FieldKind kind) noexcept {
  return kind != FieldKind::boolean && kind != FieldKind::enumeration && kind != FieldKind::flags && !is_name(kind);
}

AllLimits make_limits() {
  AllLimits all;
  for (const TypeInfo& info : all_types()) {
    Limits& limits = all[static_cast<std::size_t>(info.type)];
    for (std::size_t i = 0; i < limits.unused.size(); ++i) limits.unused[i] = ~info.used_mask[i];
    for (const FieldInfo& field : info.fields) {
      if (!takes_any_value(field.kind)) limits.fields.push_back(&field);
    }
  }
  return all;
}

const AllLimits kLimits = make_limits();

bool is_sound(const Event& event, const NameTable& names) noexcept {
  const auto type = static_cast<std::size_t>(event.type);
  if (type == 0 || type > kLastEventType) return false;
  const Limits& limits = kLimits[type];
  std::uint64_t reserved = 0;
  for (std::size_t i = 0; i < limits.unused.size(); ++i) reserved |= event.payload[i] & limits.unused[i];
  return reserved == 0 && std::ranges::all_of(limits.fields, [&](const FieldInfo* field) {
           return field_fault(*field, field_value(event, *field), names) == nullptr;
         });
}

}  // namespace

std::string record_fault(const Event& event, const NameTable& names) {
  if (is_sound(event, names)) return {};
  const TypeInfo* info = type_info(event.type);
  if (info == nullptr) return "type " + std::to_string(static_cast<unsigned>(event.type)) + " is unknown";
  for (const FieldInfo& field : info->fields) {
    if (const char* fault = field_fault(field, field_value(event, field), names))
      return std::string(info->name) + "." + std::string(field.name) + " " + fault;
  }
  return std::string(info->name) + ": reserved bytes are not zero";
}

void require_sound(const Event& event, const NameTable& names) {
  if (is_sound(event, names)) return;
  const std::string fault = record_fault(event, names);
  throw Error("event " + std::to_string(event.number) + " cannot be saved: " + fault);
}

}  // namespace kvwitness::trace
