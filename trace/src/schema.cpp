#include "kvwitness/trace/schema.hpp"

#include "kvwitness/trace/claims.hpp"
#include "kvwitness/trace/event_table.hpp"

#include <limits>
#include <nlohmann/json.hpp>

namespace kvwitness::trace {
namespace {

using Json = nlohmann::ordered_json;

Json reference(std::string_view definition) {
  return {{"$ref", "#/definitions/" + std::string(definition)}};
}

Json integer_up_to(std::uint64_t most) {
  return {{"type", "integer"}, {"minimum", 0}, {"maximum", most}};
}

Json texts_of(std::span<const EnumText> texts) {
  Json all = Json::array();
  for (const EnumText& text : texts) all.push_back(text.text);
  return {{"enum", all}};
}

Json text() {
  return {{"type", "string"}};
}
Json boolean() {
  return {{"type", "boolean"}};
}

/// An object of these properties and no others.
Json closed_object(Json properties, Json required) {
  return {{"type", "object"},
          {"properties", std::move(properties)},
          {"required", std::move(required)},
          {"additionalProperties", false}};
}

Json array_of(Json items) {
  return {{"type", "array"}, {"items", std::move(items)}};
}

template <class Float>
Json float_or_bits(const char* pattern) {
  return {{"anyOf",
           {{{"type", "number"},
             {"minimum", std::numeric_limits<Float>::lowest()},
             {"maximum", std::numeric_limits<Float>::max()}},
            {{"type", "string"}, {"pattern", pattern}}}}};
}

Json field_schema(const FieldInfo& field) {
  switch (field.kind) {
    case FieldKind::integer:
    case FieldKind::bytes:
    case FieldKind::duration:
    case FieldKind::evidence:
      return integer_up_to(field.size == 8 ? std::numeric_limits<std::uint64_t>::max()
                                           : (1ULL << (8U * field.size)) - 1);
    case FieldKind::position:
    case FieldKind::slot: return reference("index");
    case FieldKind::boolean: return boolean();
    case FieldKind::digest: return reference("hex64");
    case FieldKind::name:
    case FieldKind::site: return reference("name");
    case FieldKind::enumeration: return texts_of(field.texts);
    case FieldKind::flags: return {{"type", "array"}, {"items", texts_of(field.texts)}, {"uniqueItems", true}};
    case FieldKind::f32_bits: return reference("f32");
    case FieldKind::f64_bits: return reference("f64");
    case FieldKind::f32_array:
      return {
          {"type", "array"}, {"items", reference("f32")}, {"minItems", field.size / 4}, {"maxItems", field.size / 4}};
  }
  return {};
}

Json event_schema(const TypeInfo& info) {
  Json properties = {{"n", integer_up_to(std::numeric_limits<std::uint64_t>::max())},
                     {"type", {{"const", info.name}}},
                     {"t", integer_up_to(std::numeric_limits<std::uint64_t>::max())},
                     {"seq", integer_up_to(kNoSequence - 1)},
                     {"layer", integer_up_to(kNoLayer - 1)},
                     {"store", integer_up_to(kNoStore - 1)}};
  Json required = {"n", "type"};
  for (const FieldInfo& field : info.fields) {
    properties[std::string(field.name)] = field_schema(field);
    if (!is_optional(field.kind)) required.push_back(field.name);
  }
  Json schema = closed_object(std::move(properties), std::move(required));
  schema["description"] = std::string(info.claim ? "Claim: " : "Fact: ") + std::string(info.says) + ".";
  return schema;
}

// ---- the header
// ------------------------------------------------------------------------------------------------------

Json u32() {
  return integer_up_to(std::numeric_limits<std::uint32_t>::max());
}
Json u64() {
  return integer_up_to(std::numeric_limits<std::uint64_t>::max());
}

template <class E>
Json enum_schema(std::initializer_list<E> values) {
  Json all = Json::array();
  for (const E value : values) all.push_back(to_text(value));
  return {{"enum", all}};
}

Json tolerance_schema() {
  return closed_object(
      {{"by", enum_schema({Comparison::bits, Comparison::max_ulp, Comparison::abs_rel, Comparison::cosine_min})},
       {"abs", {{"type", "number"}}},
       {"rel", {{"type", "number"}}},
       {"max_ulp", u64()},
       {"cosine_min", {{"type", "number"}}},
       {"nan_equal", boolean()}},
      Json::array());
}

Json rule_schema() {
  return closed_object({{"rule", text()},
                        {"left", text()},
                        {"right", text()},
                        {"store", text()},
                        {"tolerance", tolerance_schema()},
                        {"from_ordinal", u32()},
                        {"to_ordinal", u32()},
                        {"sha256", text()},
                        {"all_rows", boolean()},
                        {"margin", {{"type", "number"}}},
                        {"step", u32()},
                        {"at_step", boolean()}},
                       {"rule"});
}

Json stream_schema() {
  const Json kinds = enum_schema({StreamKind::coded, StreamKind::indicator, StreamKind::random, StreamKind::external});
  const Json shapes = enum_schema({RandomShape::uniform, RandomShape::large_scores, RandomShape::one_hot_key,
                                   RandomShape::equal_keys, RandomShape::denormals});
  return closed_object({{"name", text()},
                        {"kind", kinds},
                        {"shape", shapes},
                        {"seed", reference("hex64")},
                        {"salt", reference("hex64")}},
                       {"name"});
}

Json budgets_schema() {
  return closed_object({{"after_token", u32()},
                        {"allocations_per_token", u64()},
                        {"adapters_per_token", u64()},
                        {"copied_bytes_per_token", u64()},
                        {"live_bytes_max", u64()},
                        {"resident_positions_max", u64()}},
                       Json::array());
}

Json step_schema() {
  return closed_object({{"operation", text()}, {"id", text()}, {"file", text()}, {"line", u32()}, {"column", u32()}},
                       {"operation"});
}

Json claims_schema() {
  return closed_object({{"scenario", text()},
                        {"title", text()},
                        {"variant", text()},
                        {"seed", reference("hex64")},
                        {"stores", array_of(closed_object({{"name", text()}, {"kind", text()}}, {"name"}))},
                        {"streams", array_of(stream_schema())},
                        {"rules", array_of(rule_schema())},
                        {"witnesses", array_of(text())},
                        {"budgets", budgets_schema()},
                        {"sampling", closed_object({{"attend_every", u32()}}, Json::array())},
                        {"steps", array_of(step_schema())},
                        {"replay", text()}},
                       Json::array());
}

Json header_schema() {
  Json schema = closed_object({{"kvwitness", {{"const", "trace"}}},
                               {"version", {{"const", kEventVersion}}},
                               {"producer", text()},
                               {"clock", texts_of(clock_texts())},
                               {"claims", claims_schema()}},
                              {"kvwitness", "version", "producer", "clock", "claims"});
  schema["description"] = "The first line: who wrote the trace, and what its script claims.";
  return schema;
}

Json definitions() {
  Json all = {{"hex64", {{"type", "string"}, {"pattern", "^0x[0-9a-f]{16}$"}}},
              {"name", {{"type", {"string", "null"}}, {"minLength", 1}}},
              {"index", {{"type", {"integer", "null"}}, {"minimum", 0}, {"maximum", kNoPosition - 1}}},
              {"f32", float_or_bits<float>("^0x[0-9a-f]{8}$")},
              {"f64", float_or_bits<double>("^0x[0-9a-f]{16}$")},
              {"header", header_schema()}};
  for (const TypeInfo& info : all_types()) all[std::string(info.name)] = event_schema(info);
  return all;
}

}  // namespace

std::string trace_schema_json() {
  Json lines = {reference("header")};
  for (const TypeInfo& info : all_types()) lines.push_back(reference(info.name));
  const Json schema = {{"$schema", "http://json-schema.org/draft-07/schema#"},
                       {"$id", "trace-1.json"},
                       {"title", "A line of a kvwitness trace, version 1"},
                       {"oneOf", std::move(lines)}};
  // One definition a line, so that a change of the table is a readable difference of the file.
  std::string out = schema.dump(1);
  out.resize(out.size() - 2);
  out += ",\n \"definitions\": {";
  const Json all = definitions();
  const char* separator = "\n";
  for (const auto& [name, definition] : all.items()) {
    out += separator + ("  " + Json(name).dump() + ": " + definition.dump());
    separator = ",\n";
  }
  return out + "\n }\n}\n";
}

}  // namespace kvwitness::trace
