#include "claims_json.hpp"

#include "hex.hpp"
#include "json_object.hpp"
#include "kvwitness/trace/checked_json.hpp"
#include "kvwitness/trace/digest.hpp"
#include "kvwitness/trace/names.hpp"

#include <cmath>
#include <span>

namespace kvwitness::trace {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr Comparison kComparisons[] = {Comparison::bits, Comparison::max_ulp, Comparison::abs_rel,
                                       Comparison::cosine_min};
constexpr StreamKind kStreamKinds[] = {StreamKind::coded, StreamKind::indicator, StreamKind::random,
                                       StreamKind::external};
constexpr RandomShape kShapes[] = {RandomShape::uniform, RandomShape::large_scores, RandomShape::one_hot_key,
                                   RandomShape::equal_keys, RandomShape::denormals};

// ---- writing
// ---------------------------------------------------------------------------------------------------------

std::string hex64(std::uint64_t value) {
  std::string text;
  append_hex(text, value, 16);
  return text;
}

double finite(double value, const char* key) {
  if (!std::isfinite(value)) throw Error(std::string("claims: ") + key + " is not a finite number");
  return value;
}

ordered_json to_json(const Tolerance& tolerance) {
  return {{"by", to_text(tolerance.by)},
          {"abs", finite(tolerance.abs, "tolerance.abs")},
          {"rel", finite(tolerance.rel, "tolerance.rel")},
          {"max_ulp", tolerance.max_ulp},
          {"cosine_min", finite(tolerance.cosine_min, "tolerance.cosine_min")},
          {"nan_equal", tolerance.nan_equal}};
}

ordered_json to_json(const RuleRequest& rule) {
  ordered_json out = {{"rule", rule.rule}};
  if (!rule.left.empty()) out["left"] = rule.left;
  if (!rule.right.empty()) out["right"] = rule.right;
  if (!rule.store.empty()) out["store"] = rule.store;
  if (rule.tolerance != Tolerance{}) out["tolerance"] = to_json(rule.tolerance);
  if (rule.from_ordinal != 0) out["from_ordinal"] = rule.from_ordinal;
  if (rule.to_ordinal != kNoPosition) out["to_ordinal"] = rule.to_ordinal;
  if (!rule.sha256.empty()) out["sha256"] = rule.sha256;
  if (rule.all_rows) out["all_rows"] = true;
  if (rule.margin != 0) out["margin"] = finite(rule.margin, "margin");
  if (rule.step != 0) out["step"] = rule.step;
  if (rule.at_step) out["at_step"] = true;
  return out;
}

ordered_json to_json(const StreamClaim& stream) {
  return {{"name", stream.name},
          {"kind", to_text(stream.spec.kind)},
          {"shape", to_text(stream.spec.shape)},
          {"seed", hex64(stream.spec.seed)},
          {"salt", hex64(stream.spec.salt)}};
}

ordered_json to_json(const Budgets& budgets) {
  ordered_json out = {{"after_token", budgets.after_token}};
  const auto put = [&out](const char* key, const std::optional<std::uint64_t>& value) {
    if (value) out[key] = *value;
  };
  put("allocations_per_token", budgets.allocations_per_token);
  put("adapters_per_token", budgets.adapters_per_token);
  put("copied_bytes_per_token", budgets.copied_bytes_per_token);
  put("live_bytes_max", budgets.live_bytes_max);
  put("resident_positions_max", budgets.resident_positions_max);
  return out;
}

ordered_json to_json(const StoreClaim& store) {
  return {{"name", store.name}, {"kind", store.kind}};
}

ordered_json to_json(const WitnessRequest& witness) {
  return witness.name;
}

ordered_json to_json(const StepInfo& step) {
  return {{"operation", step.operation},
          {"id", step.id},
          {"file", step.file},
          {"line", step.line},
          {"column", step.column}};
}

template <class T>
ordered_json to_json_array(const std::vector<T>& values) {
  ordered_json out = ordered_json::array();
  for (const T& value : values) out.push_back(to_json(value));
  return out;
}

// ---- reading
// ---------------------------------------------------------------------------------------------------------

/// The enumerator whose text stands at `key`; the target stays as it is where the key is absent.
template <class E>
void get_enum(JsonObject& object, std::string_view key, std::span<const E> all, E& target) {
  const json* value = object.take(key);
  if (value == nullptr) return;
  const std::string text = object.text(*value, key);
  std::string known;
  for (const E candidate : all) {
    if (to_text(candidate) == text) {
      target = candidate;
      return;
    }
    known += known.empty() ? "" : ", ";
    known += to_text(candidate);
  }
  throw Error(object.path(key) + ": '" + text + "' is none of " + known);
}

void get_hex(JsonObject& object, std::string_view key, std::uint64_t& target) {
  const json* value = object.take(key);
  if (value == nullptr) return;
  const auto parsed = parse_hex(object.text(*value, key), 16);
  if (!parsed) throw Error(object.path(key) + ": expected \"0x\" and 16 hex digits in lower case");
  target = *parsed;
}

Tolerance tolerance_from(const json& value, const std::string& at) {
  Tolerance out;
  JsonObject object(value, at);
  get_enum<Comparison>(object, "by", kComparisons, out.by);
  object.get("abs", out.abs);
  object.get("rel", out.rel);
  object.get("max_ulp", out.max_ulp);
  object.get("cosine_min", out.cosine_min);
  object.get("nan_equal", out.nan_equal);
  object.finish();
  return out;
}

RuleRequest rule_from(const json& value, const std::string& at) {
  RuleRequest out;
  JsonObject object(value, at);
  object.get_required("rule", out.rule);
  object.get("left", out.left);
  object.get("right", out.right);
  object.get("store", out.store);
  if (const json* tolerance = object.take("tolerance")) out.tolerance = tolerance_from(*tolerance, at + ".tolerance");
  object.get("from_ordinal", out.from_ordinal);
  object.get("to_ordinal", out.to_ordinal);
  object.get("sha256", out.sha256);
  object.get("all_rows", out.all_rows);
  object.get("margin", out.margin);
  object.get("step", out.step);
  object.get("at_step", out.at_step);
  object.finish();
  return out;
}

StreamClaim stream_from(const json& value, const std::string& at) {
  StreamClaim out;
  JsonObject object(value, at);
  object.get_required("name", out.name);
  out.spec.name = hash_name(out.name);
  get_enum<StreamKind>(object, "kind", kStreamKinds, out.spec.kind);
  get_enum<RandomShape>(object, "shape", kShapes, out.spec.shape);
  get_hex(object, "seed", out.spec.seed);
  get_hex(object, "salt", out.spec.salt);
  object.finish();
  return out;
}

Budgets budgets_from(const json& value, const std::string& at) {
  Budgets out;
  JsonObject object(value, at);
  object.get("after_token", out.after_token);
  object.get("allocations_per_token", out.allocations_per_token);
  object.get("adapters_per_token", out.adapters_per_token);
  object.get("copied_bytes_per_token", out.copied_bytes_per_token);
  object.get("live_bytes_max", out.live_bytes_max);
  object.get("resident_positions_max", out.resident_positions_max);
  object.finish();
  return out;
}

StoreClaim store_from(const json& value, const std::string& at) {
  StoreClaim out;
  JsonObject object(value, at);
  object.get_required("name", out.name);
  object.get("kind", out.kind);
  object.finish();
  return out;
}

WitnessRequest witness_from(const json& value, const std::string& at) {
  if (!value.is_string()) throw Error(at + ": expected a text");
  return {value.get<std::string>()};
}

StepInfo step_from(const json& value, const std::string& at) {
  StepInfo out;
  JsonObject object(value, at);
  object.get_required("operation", out.operation);
  object.get("id", out.id);
  object.get("file", out.file);
  object.get("line", out.line);
  object.get("column", out.column);
  object.finish();
  return out;
}

Sampling sampling_from(const json& value, const std::string& at) {
  Sampling out;
  JsonObject object(value, at);
  object.get("attend_every", out.attend_every);
  object.finish();
  return out;
}

template <class T, class Read>
void get_array(JsonObject& object, std::string_view key, std::vector<T>& target, Read&& read) {
  object.for_each(key, [&](const json& value, const std::string& at) { target.push_back(read(value, at)); });
}

}  // namespace

json parse_strict(std::string_view text) {
  return parse_json_at<json>(text, [](std::size_t offset) { return Location{{}, {}, {}, offset}; });
}

std::string dump(const ordered_json& value) {
  try {
    return value.dump();
  } catch (const json::exception&) {
    throw Error("claims: a text is not UTF-8");
  }
}

ordered_json claims_to(const Claims& claims) {
  return {{"scenario", claims.scenario},
          {"title", claims.title},
          {"variant", claims.variant},
          {"seed", hex64(claims.seed)},
          {"stores", to_json_array(claims.stores)},
          {"streams", to_json_array(claims.streams)},
          {"rules", to_json_array(claims.rules)},
          {"witnesses", to_json_array(claims.witnesses)},
          {"budgets", to_json(claims.budgets)},
          {"sampling", {{"attend_every", claims.sampling.attend_every}}},
          {"steps", to_json_array(claims.steps)},
          {"replay", claims.replay}};
}

Claims claims_from(const json& value, const std::string& at) {
  Claims out;
  JsonObject object(value, at);
  object.get("scenario", out.scenario);
  object.get("title", out.title);
  object.get("variant", out.variant);
  get_hex(object, "seed", out.seed);
  get_array(object, "stores", out.stores, store_from);
  get_array(object, "streams", out.streams, stream_from);
  get_array(object, "rules", out.rules, rule_from);
  get_array(object, "witnesses", out.witnesses, witness_from);
  if (const json* budgets = object.take("budgets")) out.budgets = budgets_from(*budgets, at + ".budgets");
  if (const json* sampling = object.take("sampling")) out.sampling = sampling_from(*sampling, at + ".sampling");
  get_array(object, "steps", out.steps, step_from);
  object.get("replay", out.replay);
  object.finish();
  return out;
}

std::string claims_to_json(const Claims& claims) {
  return dump(claims_to(claims));
}

Claims claims_from_json(std::string_view text) {
  return claims_from(parse_strict(text), "claims");
}

std::uint64_t claims_digest(const Claims& claims) {
  const std::string text = claims_to_json(claims);
  return digest_bytes(std::as_bytes(std::span(text)));
}

}  // namespace kvwitness::trace
