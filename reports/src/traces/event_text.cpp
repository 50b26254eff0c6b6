#include "traces/event_text.hpp"

#include "kvwitness/reports/text.hpp"

#include "style.hpp"

#include <fmt/format.h>

#include <bit>
#include <cstring>

namespace kvwitness::reports {
namespace {

using trace::FieldKind;

std::string flags_text(const trace::FieldInfo& field, std::uint64_t value) {
  std::string text;
  for (const trace::EnumText& flag : field.texts) {
    if ((value & flag.value) != 0) text.append(text.empty() ? "" : "+").append(flag.text);
  }
  return text.empty() ? "-" : text;
}

std::string array_text(const trace::Event& event, const trace::FieldInfo& field) {
  std::string text;
  for (std::size_t at = 0; at < field.size; at += sizeof(float)) {
    float value = 0;
    std::memcpy(&value, reinterpret_cast<const std::byte*>(event.payload.data()) + field.offset + at, sizeof value);
    text += fmt::format("{}{}", text.empty() ? "" : ",", value);
  }
  return text;
}

bool absent(const trace::FieldInfo& field, std::uint64_t value) noexcept {
  if (field.kind == FieldKind::position || field.kind == FieldKind::slot) return value == trace::kNoPosition;
  return value == 0 &&
         (field.kind == FieldKind::digest || field.kind == FieldKind::name || field.kind == FieldKind::site ||
          field.kind == FieldKind::flags || field.kind == FieldKind::boolean || field.kind == FieldKind::evidence ||
          field.kind == FieldKind::duration);
}

}  // namespace

std::string field_text(const trace::Event& event, const trace::FieldInfo& field, const trace::NameTable& names) {
  if (field.kind == FieldKind::f32_array) return array_text(event, field);
  const std::uint64_t value = trace::field_value(event, field);
  if (absent(field, value)) return field.kind == FieldKind::boolean ? "false" : "-";
  switch (field.kind) {
    case FieldKind::boolean: return value == 1 ? "true" : std::to_string(value);
    case FieldKind::digest: return fmt::format("0x{:016x}", value);
    case FieldKind::name:
    case FieldKind::site: return names.knows(value) ? printable(names.text(value)) : fmt::format("#{:016x}", value);
    case FieldKind::enumeration: {
      const auto text = trace::text_of(field.texts, value);
      return text ? std::string(*text) : std::to_string(value);
    }
    case FieldKind::f32_bits: return fmt::format("{}", trace::from_bits(static_cast<std::uint32_t>(value)));
    case FieldKind::f64_bits: return fmt::format("{}", trace::from_bits(value));
    case FieldKind::flags: return flags_text(field, value);
    default: return std::to_string(value);
  }
}

std::string event_line(const trace::Event& event, const trace::Claims& claims, const trace::NameTable& names) {
  const trace::TypeInfo* info = trace::type_info(event.type);
  const std::string subject = printable(subject_text(claims, {event.store, event.sequence, event.layer}));
  std::string line =
      fmt::format("{:>8}  {:<16} {:<20}", event.number, info != nullptr ? info->name : "unknown", subject);
  if (info == nullptr) return line;
  for (const trace::FieldInfo& field : info->fields) {
    const std::string text = field_text(event, field, names);
    if (text != "-") line += fmt::format(" {}={}", field.name, text);
  }
  return line;
}

}  // namespace kvwitness::reports
