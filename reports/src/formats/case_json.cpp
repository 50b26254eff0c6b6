#include "formats/case_json.hpp"

#include <algorithm>
#include <array>

namespace kvwitness::reports {
namespace {

using verify::Status;

Json store_json(const trace::Claims& claims, trace::StoreIndex store) {
  if (store == trace::kNoStore) return nullptr;
  return store < claims.stores.size() ? Json(claims.stores[store].name) : Json(store);
}

Json step_json(const trace::Claims& claims, std::uint32_t step) {
  if (step == verify::kNoStep) return nullptr;
  const trace::StepInfo info = step < claims.steps.size() ? claims.steps[step] : trace::StepInfo{};
  return {{"index", step},     {"operation", info.operation}, {"id", info.id},
          {"file", info.file}, {"line", info.line},           {"column", info.column}};
}

template <class Value>
Json unless(Value value, Value none) {
  return value == none ? Json(nullptr) : Json(value);
}

Json violation_json(const trace::Claims& claims, const verify::Violation& violation) {
  return {{"event", violation.event},
          {"cause", violation.cause},
          {"store", store_json(claims, violation.subject.store)},
          {"sequence", unless(violation.subject.sequence, trace::kNoSequence)},
          {"layer", unless(violation.subject.layer, trace::kNoLayer)},
          {"step", step_json(claims, violation.step)},
          {"token", violation.token},
          {"expected", violation.expected},
          {"observed", violation.observed}};
}

Json rule_json(const trace::Claims& claims, const verify::RuleVerdict& rule) {
  Json shown = Json::array();
  for (const verify::Violation& violation : rule.shown) shown.push_back(violation_json(claims, violation));
  return {{"rule", rule.rule},        {"level", verify::to_text(rule.level)}, {"status", verify::to_text(rule.status)},
          {"met", rule.met},          {"violations", rule.violations},        {"note", rule.note},
          {"shown", std::move(shown)}};
}

Json costs_json(const verify::Costs& costs) {
  return {{"decode_steps", costs.decode_steps},
          {"unmeasured_steps", costs.unmeasured_steps},
          {"allocations_per_token", costs.allocations_per_token},
          {"adapters_per_token", costs.adapters_per_token},
          {"copied_bytes_per_token", costs.copied_bytes_per_token}};
}

Json known_json(const CaseResult& one) {
  Json list = Json::array();
  for (const KnownFailure& known : one.known) {
    list.push_back({{"match", known.match},
                    {"rule", known.rule},
                    {"status", verify::to_text(known.status)},
                    {"reason", known.reason},
                    {"issue", known.issue},
                    {"expires", known.expires ? Json(to_text(*known.expires)) : Json(nullptr)}});
  }
  return list;
}

Status status_of(const JsonReader& json) {
  for (const Status status : {Status::pass, Status::skipped, Status::inconclusive, Status::vacuous, Status::fail}) {
    if (json.text() == verify::to_text(status)) return status;
  }
  json.fail("is no status: '" + json.text() + "'");
}

verify::Level level_of(const JsonReader& json) {
  for (const verify::Level level : {verify::Level::must, verify::Level::should, verify::Level::may}) {
    if (json.text() == verify::to_text(level)) return level;
  }
  json.fail("is no level: '" + json.text() + "'");
}

trace::StoreIndex store_of(const std::optional<JsonReader>& json, const trace::Claims& claims) {
  if (!json) return trace::kNoStore;
  if (!json->is_text()) return static_cast<trace::StoreIndex>(std::min<std::uint64_t>(json->count(), trace::kNoStore));
  const auto found = std::ranges::find(claims.stores, json->text(), &trace::StoreClaim::name);
  if (found == claims.stores.end()) json->fail("is none of the case's stores: '" + json->text() + "'");
  return static_cast<trace::StoreIndex>(found - claims.stores.begin());
}

/// Enough for any script; what a damaged report says is not allocated.
constexpr std::uint32_t kStepsMax = 1U << 20;

std::uint32_t step_of(const std::optional<JsonReader>& json, trace::Claims& claims) {
  if (!json) return verify::kNoStep;
  json->only({"index", "operation", "id", "file", "line", "column"});
  const std::uint32_t index = json->at("index").count32();
  trace::StepInfo info{json->at("operation").text(), json->at("id").text(), json->at("file").text(),
                       json->at("line").count32(), json->at("column").count32()};
  if (info == trace::StepInfo{}) return index;  // no step of the script
  if (index > kStepsMax) json->at("index").fail("is too large");
  if (claims.steps.size() <= index) claims.steps.resize(std::size_t{index} + 1);
  claims.steps[index] = std::move(info);
  return index;
}

verify::Violation violation_of(const JsonReader& json, trace::Claims& claims) {
  json.only({"event", "cause", "store", "sequence", "layer", "step", "token", "expected", "observed"});
  verify::Violation violation;
  violation.event = json.at("event").count();
  violation.cause = json.at("cause").count();
  violation.subject.store = store_of(json.find("store"), claims);
  if (const auto sequence = json.find("sequence")) violation.subject.sequence = sequence->count32();
  if (const auto layer = json.find("layer"))
    violation.subject.layer = static_cast<trace::LayerIndex>(std::min<std::uint64_t>(layer->count(), trace::kNoLayer));
  violation.step = step_of(json.find("step"), claims);
  violation.token = json.at("token").count32();
  violation.expected = json.at("expected").text();
  violation.observed = json.at("observed").text();
  return violation;
}

verify::RuleVerdict rule_of(const JsonReader& json, trace::Claims& claims) {
  json.only({"rule", "level", "status", "met", "violations", "note", "shown"});
  verify::RuleVerdict rule;
  rule.rule = json.at("rule").text();
  rule.level = level_of(json.at("level"));
  rule.status = status_of(json.at("status"));
  rule.met = json.at("met").count();
  rule.violations = json.at("violations").count();
  rule.note = json.at("note").text();
  for (const JsonReader& violation : json.at("shown").list()) rule.shown.push_back(violation_of(violation, claims));
  return rule;
}

verify::Costs costs_of(const JsonReader& json) {
  json.only(
      {"decode_steps", "unmeasured_steps", "allocations_per_token", "adapters_per_token", "copied_bytes_per_token"});
  return {json.at("decode_steps").count(), json.at("unmeasured_steps").count(),
          json.at("allocations_per_token").count(), json.at("adapters_per_token").count(),
          json.at("copied_bytes_per_token").count()};
}

KnownFailure known_of(const JsonReader& json) {
  json.only({"match", "rule", "status", "reason", "issue", "expires"});
  KnownFailure known{json.at("match").text(),  json.at("rule").text(),  status_of(json.at("status")),
                     json.at("reason").text(), json.at("issue").text(), {}};
  if (const auto expires = json.find("expires")) {
    known.expires = parse_day(expires->text());
    if (!known.expires) expires->fail("is no day");
  }
  return known;
}

void read_claims(const JsonReader& json, CaseResult& one) {
  one.claims.scenario = one.scenario;
  one.claims.variant = one.variant;
  one.claims.title = json.at("title").text();
  one.claims.seed = json.at("seed").hex();
  one.claims.replay = json.at("replay").text();
  for (const JsonReader& store : json.at("stores").list()) {
    store.only({"name", "kind"});
    one.claims.stores.push_back({store.at("name").text(), store.at("kind").text()});
  }
}

void read_verdict(const JsonReader& json, CaseResult& one) {
  verify::CaseVerdict& verdict = one.verdict;
  verdict.scenario = one.scenario;
  verdict.variant = one.variant;
  verdict.title = one.claims.title;
  verdict.replay = one.claims.replay;
  verdict.status = status_of(json.at("status"));
  verdict.events = json.at("events").count();
  verdict.steps = json.at("steps").count();
  verdict.digest = json.at("digest").hex();
  verdict.notes = json.at("notes").texts();
  for (const JsonReader& witness : json.at("witnesses").list()) {
    witness.only({"name", "status", "met"});
    verdict.witnesses.push_back(
        {witness.at("name").text(), witness.at("met").count(), status_of(witness.at("status"))});
  }
  for (const JsonReader& rule : json.at("rules").list()) verdict.rules.push_back(rule_of(rule, one.claims));
}

}  // namespace

Json case_json(const CaseResult& one) {
  Json rules = Json::array();
  for (const verify::RuleVerdict& rule : one.verdict.rules) rules.push_back(rule_json(one.claims, rule));
  Json witnesses = Json::array();
  for (const verify::WitnessVerdict& witness : one.verdict.witnesses) {
    witnesses.push_back({{"name", witness.name}, {"status", verify::to_text(witness.status)}, {"met", witness.met}});
  }
  Json stores = Json::array();
  for (const trace::StoreClaim& store : one.claims.stores)
    stores.push_back({{"name", store.name}, {"kind", store.kind}});
  const bool skipped = !one.skipped_because.empty();
  return {{"number", one.number == 0 ? Json(nullptr) : Json(one.number)},
          {"scenario", one.scenario},
          {"variant", one.variant},
          {"title", one.claims.title},
          {"file", one.file.generic_string()},
          {"store", one.store},
          {"stores", std::move(stores)},
          {"status", verify::to_text(skipped ? Status::skipped : one.verdict.status)},
          {"skipped_because", one.skipped_because},
          {"died_because", one.died_because},
          {"nondeterministic", one.nondeterministic},
          {"counts_as", verify::to_text(counted_status(one))},
          {"costs", costs_json(one.costs)},
          {"known", known_json(one)},
          {"unexpected", one.unexpected},
          {"seconds", one.seconds},
          {"seed", hex_text(one.claims.seed)},
          {"events", one.verdict.events},
          {"steps", one.verdict.steps},
          {"digest", hex_text(one.verdict.digest)},
          {"trace", one.trace.string()},
          {"replay", one.claims.replay},
          {"notes", one.verdict.notes},
          {"witnesses", std::move(witnesses)},
          {"rules", std::move(rules)}};
}

CaseResult case_of_json(const JsonReader& json) {
  json.only({"number",
             "scenario",
             "variant",
             "title",
             "file",
             "store",
             "stores",
             "status",
             "skipped_because",
             "died_because",
             "nondeterministic",
             "counts_as",
             "costs",
             "known",
             "unexpected",
             "seconds",
             "seed",
             "events",
             "steps",
             "digest",
             "trace",
             "replay",
             "notes",
             "witnesses",
             "rules"});
  CaseResult one;
  if (const auto number = json.find("number")) one.number = number->count();
  one.scenario = json.at("scenario").text();
  one.variant = json.at("variant").text();
  one.file = json.at("file").text();
  one.store = json.at("store").text();
  one.skipped_because = json.at("skipped_because").text();
  one.died_because = json.at("died_because").text();
  one.nondeterministic = json.at("nondeterministic").flag();
  static_cast<void>(status_of(json.at("counts_as")));  // follows from the rest
  one.costs = costs_of(json.at("costs"));
  for (const JsonReader& known : json.at("known").list()) one.known.push_back(known_of(known));
  one.unexpected = json.at("unexpected").texts();
  one.seconds = json.at("seconds").number();
  one.trace = json.at("trace").text();
  read_claims(json, one);
  read_verdict(json, one);
  return one;
}

std::string pack_case(const CaseResult& one) {
  // CBOR takes texts as they are, UTF-8 or not.
  const Json packed = {{"case", case_json(one)},
                       {"claims", trace::claims_to_json(one.claims)},
                       {"golden", {one.golden.events, one.golden.digest}}};
  std::string bytes;
  Json::to_cbor(packed, bytes);
  return bytes;
}

CaseResult unpack_case(const std::string& bytes) {
  const Json packed = Json::from_cbor(bytes);
  const JsonReader json(packed, "case");
  CaseResult one = case_of_json(json.at("case"));
  one.claims = trace::claims_from_json(json.at("claims").text());
  const std::vector<JsonReader> golden = json.at("golden").list();
  one.golden = {golden.at(0).count(), golden.at(1).count()};
  return one;
}

}  // namespace kvwitness::reports
