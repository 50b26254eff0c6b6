#include "hex.hpp"
#include "json_text.hpp"
#include "kvwitness/trace/event_table.hpp"
#include "kvwitness/trace/jsonl.hpp"
#include "record_check.hpp"

#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>

namespace kvwitness::trace {
namespace {

template <class T>
void append_number(std::string& out, T value) {
  char text[32];
  const auto result = std::to_chars(std::begin(text), std::end(text), value);
  out.append(text, result.ptr);
}

void append_f32(std::string& out, std::uint32_t bits) {
  if (const float value = from_bits(bits); std::isfinite(value)) return append_number(out, value);
  out += '"';
  append_hex(out, bits, 8);
  out += '"';
}

void append_f64(std::string& out, std::uint64_t bits) {
  if (const double value = from_bits(bits); std::isfinite(value)) return append_number(out, value);
  out += '"';
  append_hex(out, bits, 16);
  out += '"';
}

void append_f32_array(std::string& out, const Event& event, const FieldInfo& field) {
  out += '[';
  for (std::size_t at = 0; at < field.size; at += sizeof(std::uint32_t)) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, reinterpret_cast<const unsigned char*>(event.payload.data()) + field.offset + at, sizeof bits);
    if (at != 0) out += ',';
    append_f32(out, bits);
  }
  out += ']';
}

void append_flags(std::string& out, std::uint64_t value, std::span<const EnumText> texts) {
  out += '[';
  bool is_first = true;
  for (const EnumText& text : texts) {
    if ((value & text.value) == 0) continue;
    if (!is_first) out += ',';
    is_first = false;
    append_quoted(out, text.text);
  }
  out += ']';
}

void append_index(std::string& out, std::uint64_t value) {
  constexpr std::uint64_t kNull = std::numeric_limits<std::uint32_t>::max();
  if (value == kNull) {
    out += "null";
  } else {
    append_number(out, value);
  }
}

void append_name(std::string& out, NameHash hash, const NameTable& names) {
  if (hash == 0) {
    out += "null";
  } else {
    append_quoted(out, names.text(hash));
  }
}

void append_digest(std::string& out, std::uint64_t value) {
  out += '"';
  append_hex(out, value, 16);
  out += '"';
}

void append_field(std::string& out, const Event& event, const FieldInfo& field, const NameTable& names) {
  const std::uint64_t value = field_value(event, field);
  switch (field.kind) {
    case FieldKind::integer:
    case FieldKind::bytes:
    case FieldKind::duration:
    case FieldKind::evidence: return append_number(out, value);
    case FieldKind::position:
    case FieldKind::slot: return append_index(out, value);
    case FieldKind::boolean: out += value != 0 ? "true" : "false"; return;
    case FieldKind::digest: return append_digest(out, value);
    case FieldKind::name:
    case FieldKind::site: return append_name(out, value, names);
    case FieldKind::enumeration: return append_quoted(out, text_of(field.texts, value).value_or(""));
    case FieldKind::flags: return append_flags(out, value, field.texts);
    case FieldKind::f32_bits: return append_f32(out, static_cast<std::uint32_t>(value));
    case FieldKind::f64_bits: return append_f64(out, value);
    case FieldKind::f32_array: return append_f32_array(out, event, field);
  }
}

void append_key(std::string& out, std::string_view key) {
  out += ",\"";
  out += key;
  out += "\":";
}

template <class T>
void append_subject(std::string& out, std::string_view key, T value) {
  if (value == std::numeric_limits<T>::max()) return;
  append_key(out, key);
  append_number(out, value);
}

}  // namespace

void append_jsonl(std::string& out, const Event& event, const NameTable& names) {
  require_sound(event, names);
  const TypeInfo& info = *type_info(event.type);
  out += "{\"n\":";
  append_number(out, event.number);
  append_key(out, "type");
  append_quoted(out, info.name);
  if (event.time != 0) {
    append_key(out, "t");
    append_number(out, event.time);
  }
  append_subject(out, "seq", event.sequence);
  append_subject(out, "layer", event.layer);
  append_subject(out, "store", event.store);
  for (const FieldInfo& field : info.fields) {
    append_key(out, field.name);
    append_field(out, event, field, names);
  }
  out += '}';
}

}  // namespace kvwitness::trace
