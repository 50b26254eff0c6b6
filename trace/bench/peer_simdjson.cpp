#include "kvwitness/trace/event_table.hpp"
#include "peers.hpp"

#include <cstdlib>

#if KVWITNESS_HAS_SIMDJSON
#include <simdjson.h>

#include <algorithm>

namespace kvwitness::trace::bench {
namespace {

namespace ondemand = simdjson::ondemand;

std::uint64_t digest_of(std::string_view text) {
  std::uint64_t value = 0;
  for (const char c : text.substr(2))
    value = value << 4U | static_cast<std::uint64_t>(c <= '9' ? c - '0' : c - 'a' + 10);
  return value;
}

std::uint64_t value_of_field(const FieldInfo& field, ondemand::value value, NameTable& names) {
  switch (field.kind) {
    case FieldKind::position:
    case FieldKind::slot: return value.is_null() ? 0xffffffffULL : std::uint64_t{value.get_uint64()};
    case FieldKind::boolean: return bool{value.get_bool()} ? 1 : 0;
    case FieldKind::digest: return digest_of(std::string_view{value.get_string()});
    case FieldKind::name:
    case FieldKind::site: return value.is_null() ? 0 : names.intern(std::string_view{value.get_string()});
    case FieldKind::enumeration: {
      const auto found = trace::value_of(field.texts, std::string_view{value.get_string()});
      if (!found) std::abort();
      return *found;
    }
    default: return std::uint64_t{value.get_uint64()};
  }
}

bool set_subject(Event& out, const ondemand::raw_json_string& key, ondemand::value value) {
  if (key.unsafe_is_equal("n")) {
    out.number = value.get_uint64();
  } else if (key.unsafe_is_equal("seq")) {
    out.sequence = static_cast<SequenceId>(std::uint64_t{value.get_uint64()});
  } else if (key.unsafe_is_equal("layer")) {
    out.layer = static_cast<LayerIndex>(std::uint64_t{value.get_uint64()});
  } else if (key.unsafe_is_equal("store")) {
    out.store = static_cast<StoreIndex>(std::uint64_t{value.get_uint64()});
  } else {
    return key.unsafe_is_equal("type");
  }
  return true;
}

/// The field of the key: mostly the one behind, or before, the last one.
std::size_t field_of(std::span<const FieldInfo> fields, const ondemand::raw_json_string& key, std::size_t last) {
  for (const std::size_t guess : {last + 1, last - 1}) {
    if (guess < fields.size() && key.unsafe_is_equal(fields[guess].name)) return guess;
  }
  const auto is_it = [&key](const FieldInfo& field) { return key.unsafe_is_equal(field.name); };
  return static_cast<std::size_t>(std::ranges::find_if(fields, is_it) - fields.begin());
}

/// The type is looked up first, wherever it stands; then the members are taken in the order of the line.
Event event_of(ondemand::object object, NameTable& names) {
  Event out;
  const TypeInfo* info = type_info(std::string_view{object["type"].get_string()});
  if (info == nullptr) std::abort();
  out.type = info->type;
  object.reset();
  std::size_t last = ~std::size_t{0};
  for (auto member : object) {
    const ondemand::raw_json_string key = member.key();
    const std::size_t at = field_of(info->fields, key, last);
    if (at < info->fields.size()) {
      last = at;
      const FieldInfo& field = info->fields[at];
      if (!set_field(out, field, value_of_field(field, member.value(), names))) std::abort();
    } else if (!set_subject(out, key, member.value())) {
      std::abort();
    }
  }
  return out;
}

}  // namespace

bool has_simdjson() noexcept {
  // This file is compiled for it, as whoever cares for speed compiles simdjson.
  return __builtin_cpu_supports("avx2") != 0;
}

ReadSum read_by_simdjson(const std::string& lines, NameTable& names) {
  ReadSum sum;
  ondemand::parser parser;
  ondemand::document_stream stream = parser.iterate_many(lines);
  for (auto document : stream) sum.add(event_of(document.get_object(), names));
  return sum;
}

}  // namespace kvwitness::trace::bench
#else
namespace kvwitness::trace::bench {

bool has_simdjson() noexcept {
  return false;
}

ReadSum read_by_simdjson(const std::string& /*lines*/, NameTable& /*names*/) {
  std::abort();
}

}  // namespace kvwitness::trace::bench
#endif
