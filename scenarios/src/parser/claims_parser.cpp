#include "parser/case_parser.hpp"
#include "script/alike.hpp"
#include "script/nearest.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace kvwitness::scenarios {
namespace {

std::vector<std::string> store_names(const Case& made) {
  std::vector<std::string> names;
  for (const StoreSpec& store : made.stores) names.push_back(store.name);
  return names;
}

double bounded_number(const Value& value, double low, double high) {
  const double number = value.number();
  if (!(number >= low && number <= high)) value.fail(fmt::format("{} is not in {} .. {}", number, low, high));
  return number;
}

/// A limit that belongs to one way of comparing.
std::optional<Value> limit_of(const Fields& rule, std::string_view key, trace::Comparison by,
                              trace::Comparison chosen) {
  auto value = rule.find(key);
  if (value && chosen != by) value->fail(fmt::format("only with \"by\": \"{}\"", trace::to_text(by)));
  return value;
}

/// Rules that compare recorded tensors.
bool is_about_tensors(std::string_view rule) noexcept {
  return rule == "same-output" || rule == "different-output" || rule == "output-bound" || rule == "golden-sha256" ||
         rule == "suffix-relativity";
}

/// Limits of tolerances. Beyond them lies what no output can fail by: rows are of values around 1, and outputs are
/// means of those.
constexpr double kAbsMax = 1;
constexpr std::uint64_t kUlpsMax = std::uint64_t{1} << 23;  // twice as large, or half
constexpr double kCosineMin = 0.5;

/// Rules that take a tolerance.
bool compares_values(std::string_view id) noexcept {
  return id == "numeric-oracle" || is_about_tensors(id);
}

trace::Tolerance parse_tolerance(const Fields& rule, std::string_view id) {
  using trace::Comparison;
  trace::Tolerance tolerance;
  if (!compares_values(id)) {
    for (const std::string_view key : {"by", "abs", "rel", "max_ulp", "cosine_min", "nan_equal"}) {
      if (const auto value = rule.find(key)) value->fail(fmt::format("{} compares no values", id));
    }
    return tolerance;
  }
  const auto by = rule.find("by");
  if (by && (id == "output-bound" || id == "different-output" || id == "golden-sha256" || id == "suffix-relativity"))
    by->fail(fmt::format("{} compares in one way only", id));
  if (id == "output-bound") tolerance.by = Comparison::abs_rel;
  if (by) tolerance.by = static_cast<Comparison>(by->choice({"bits", "max_ulp", "abs_rel", "cosine_min"}));
  if (const auto abs = limit_of(rule, "abs", Comparison::abs_rel, tolerance.by))
    tolerance.abs = bounded_number(*abs, 0, kAbsMax);
  if (const auto rel = limit_of(rule, "rel", Comparison::abs_rel, tolerance.by))
    tolerance.rel = bounded_number(*rel, 0, 1);
  if (const auto ulp = limit_of(rule, "max_ulp", Comparison::max_ulp, tolerance.by))
    tolerance.max_ulp = ulp->integer({0, kUlpsMax});
  if (const auto cosine = limit_of(rule, "cosine_min", Comparison::cosine_min, tolerance.by))
    tolerance.cosine_min = bounded_number(*cosine, kCosineMin, 1);
  if (const auto nan = rule.find("nan_equal")) tolerance.nan_equal = nan->boolean();
  return tolerance;
}

std::string parse_output(const Fields& rule, std::string_view key, const std::set<std::string>& outputs) {
  const auto value = rule.find(key);
  if (!value) return {};
  if (outputs.empty()) value->fail("no step records an output");
  if (outputs.contains(value->text())) return value->text();
  value->fail(fmt::format("no step records '{}'{}", value->text(),
                          suggestion(value->text(), std::vector<std::string>(outputs.begin(), outputs.end()))));
}

/// The rule's id; checked only where the caller knows the rules, for this room does not.
std::string parse_rule_id(const Value& value, const std::vector<std::string>& known_rules) {
  const std::string& id = value.word("-");
  if (!known_rules.empty() && std::ranges::find(known_rules, id) == known_rules.end())
    value.fail(fmt::format("unknown rule '{}'{}", id, suggestion(id, known_rules)));
  return id;
}

void parse_ordinals(const Fields& rule, trace::RuleRequest& request) {
  const auto from = rule.find("from_ordinal");
  const auto to = rule.find("to_ordinal");
  if ((from || to) && !is_about_tensors(request.rule))
    (from ? *from : *to).fail("only of rules about recorded tensors");
  if (from) request.from_ordinal = from->count();
  if (to) request.to_ordinal = to->count({std::uint64_t{request.from_ordinal} + 1, trace::kNoPosition});
}

void parse_golden(const Fields& rule, const std::set<std::string>& outputs, trace::RuleRequest& request) {
  if (request.rule != "golden-sha256") {
    for (const std::string_view key : {"of", "sha256", "rows"}) {
      if (const auto value = rule.find(key)) value->fail("only of golden-sha256");
    }
    return;
  }
  static_cast<void>(rule.get("of"));
  request.left = parse_output(rule, "of", outputs);
  const Value digest = rule.get("sha256");
  request.sha256 = digest.text();
  const bool is_hex = request.sha256.find_first_not_of("0123456789abcdef") == std::string::npos;
  if (!is_hex || request.sha256.size() < 32 || request.sha256.size() > 64)
    digest.fail("must be the first 32 to 64 hex digits, in lower case");
  if (const auto rows = rule.find("rows")) request.all_rows = rows->choice({"last", "all"}) == 1;
}

/// The store that recorded an output, "STORE.LABEL".
const StoreSpec& store_of(const std::string& output, const Case& made) {
  const std::string name = output.substr(0, output.find('.'));
  return *std::ranges::find(made.stores, name, &StoreSpec::name);
}

/// Outputs over rows that are coded in different ways are close, not equal.
void require_alike(const Fields& rule, const trace::RuleRequest& request, const Case& made) {
  const bool is_by_bits = request.rule == "same-output" && request.tolerance.by == trace::Comparison::bits;
  if (!is_by_bits || request.left.empty()) return;
  if (keep_rows_alike(store_of(request.left, made).config, store_of(request.right, made).config)) return;
  const auto by = rule.find("by");
  (by ? *by : rule.get("left")).fail("bits cannot agree where the stores code their rows in different ways");
}

trace::RuleRequest parse_rule(const Value& value, const std::set<std::string>& outputs,
                              const std::vector<std::string>& known_rules, const Case& made) {
  const Fields rule(value, rule_keys());
  trace::RuleRequest request;
  request.rule = parse_rule_id(rule.get("rule"), known_rules);
  const std::vector<std::string> stores = store_names(made);
  if (const auto store = rule.find("store")) request.store = stores[store->choice(stores)];
  request.left = parse_output(rule, "left", outputs);
  request.right = parse_output(rule, "right", outputs);
  if (request.left.empty() != request.right.empty()) value.fail("'left' and 'right' go together");
  if (!request.left.empty() && !is_about_tensors(request.rule))
    rule.get("left").fail(fmt::format("{} compares no outputs with each other", request.rule));
  if (!request.left.empty() && request.left == request.right) value.fail("compares an output with itself");
  if (is_about_tensors(request.rule) && request.rule != "golden-sha256" && request.left.empty())
    value.fail(fmt::format("{} needs 'left' and 'right'", request.rule));
  parse_golden(rule, outputs, request);
  parse_ordinals(rule, request);
  request.tolerance = parse_tolerance(rule, request.rule);
  require_alike(rule, request, made);
  if (const auto margin = rule.find("margin")) {
    if (request.rule != "output-bound") margin->fail("only of output-bound");
    request.margin = bounded_number(*margin, 0, std::numeric_limits<float>::max());
  }
  return request;
}

trace::WitnessRequest parse_witness(const Value& value, const Case& made) {
  const Value name = Fields(value, witness_keys()).get("sometimes");
  const std::string& text = name.text();
  const std::size_t dot = text.find('.');
  if (dot == std::string::npos) name.fail(fmt::format("'{}' is not of the form STORE.PROPERTY", text));
  const std::string store = text.substr(0, dot);
  const std::string property = text.substr(dot + 1);
  const std::vector<std::string> stores = store_names(made);
  if (std::ranges::find(stores, store) == stores.end())
    name.fail(fmt::format("no store '{}'{}", store, suggestion(store, stores)));
  std::vector<std::string> properties;
  for (const trace::WitnessInfo& info : trace::known_witnesses()) properties.emplace_back(info.property);
  if (std::ranges::find(properties, property) == properties.end())
    name.fail(fmt::format("unknown property '{}'{}", property, suggestion(property, properties)));
  return {text};
}

trace::Budgets parse_budgets(const Value& value) {
  const Fields fields(value, budget_keys());
  const auto optional = [&](std::string_view key) -> std::optional<std::uint64_t> {
    const auto found = fields.find(key);
    if (!found) return std::nullopt;
    return found->integer({0, std::numeric_limits<std::uint64_t>::max()});
  };
  trace::Budgets budgets;
  if (const auto after = fields.find("after_token")) budgets.after_token = after->count();
  budgets.allocations_per_token = optional("allocations_per_token");
  budgets.adapters_per_token = optional("adapters_per_token");
  budgets.copied_bytes_per_token = optional("copied_bytes_per_token");
  budgets.live_bytes_max = optional("live_bytes_max");
  budgets.resident_positions_max = optional("resident_positions_max");
  return budgets;
}

}  // namespace

void parse_claims(const Fields& script, const std::set<std::string>& outputs,
                  const std::vector<std::string>& known_rules, Case& made) {
  if (const auto expect = script.find("expect")) {
    for (const Value& rule : expect->list()) made.claims.rules.push_back(parse_rule(rule, outputs, known_rules, made));
  }
  if (const auto witness = script.find("witness")) {
    for (const Value& value : witness->list()) made.claims.witnesses.push_back(parse_witness(value, made));
  }
  if (const auto budgets = script.find("budgets")) made.claims.budgets = parse_budgets(*budgets);
}

}  // namespace kvwitness::scenarios
