#include "record_check.hpp"

#include "kvwitness/trace/error.hpp"
#include "kvwitness/trace/event_table.hpp"

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

bool uses_reserved_bytes(const Event& event, const TypeInfo& info) noexcept {
  for (std::size_t i = 0; i < event.payload.size(); ++i) {
    if ((event.payload[i] & ~info.used_mask[i]) != 0) return true;
  }
  return false;
}

}  // namespace

std::string record_fault(const Event& event, const NameTable& names) {
  const TypeInfo* info = type_info(event.type);
  if (info == nullptr) return "type " + std::to_string(static_cast<unsigned>(event.type)) + " is unknown";
  if (uses_reserved_bytes(event, *info)) return std::string(info->name) + ": reserved bytes are not zero";
  for (const FieldInfo& field : info->fields) {
    if (const char* fault = field_fault(field, field_value(event, field), names))
      return std::string(info->name) + "." + std::string(field.name) + " " + fault;
  }
  return {};
}

void require_sound(const Event& event, const NameTable& names) {
  const std::string fault = record_fault(event, names);
  if (!fault.empty()) throw Error("event " + std::to_string(event.number) + " cannot be saved: " + fault);
}

}  // namespace kvwitness::trace
