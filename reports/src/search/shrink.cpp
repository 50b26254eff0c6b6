#include "search/shrink.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

namespace kvwitness::reports {
namespace {

using Pointer = ScriptTree::json_pointer;

/// Members that carry nothing but a default, or that may.
constexpr std::array kStepMembers = {"chunk", "path", "from", "to", "slack", "ordinal", "count", "seq", "layer"};
constexpr std::array kStoreMembers = {"rope", "sequences", "sliding", "window", "sinks", "donor"};
constexpr std::array kModelMembers = {"score_scale", "softcap"};
constexpr std::array kScriptMembers = {"stream", "seed"};

bool has_steps(const ScriptTree& script) {
  return script.contains("steps") && script["steps"].is_array() && !script["steps"].empty();
}

/// Places of all numbers that say how much of something there is.
void add_numbers(const ScriptTree& tree, const Pointer& at, std::vector<Pointer>& places) {
  if (tree.is_number_unsigned()) {
    places.push_back(at);
  } else if (tree.is_object()) {
    for (const auto& [key, value] : tree.items()) add_numbers(value, at / key, places);
  } else if (tree.is_array()) {
    for (std::size_t i = 0; i < tree.size(); ++i) add_numbers(tree[i], at / i, places);
  }
}

std::vector<Pointer> numbers_of(const ScriptTree& script) {
  std::vector<Pointer> places;
  for (const char* part : {"steps", "stores", "model"}) {
    if (script.contains(part)) add_numbers(script[part], Pointer() / std::string(part), places);
  }
  return places;
}

/// Stores are compared as long as they have the same shape, so what one of them has is lowered in all; capacities are
/// each store's own.
ScriptTree with_number(const ScriptTree& script, const Pointer& where, std::uint64_t value) {
  ScriptTree result = script;
  result[where] = value;
  const std::string text = where.to_string();
  constexpr std::string_view kStores = "/stores/";
  if (!text.starts_with(kStores)) return result;
  const std::string inside = text.substr(text.find('/', kStores.size()));
  if (inside.starts_with("/capacity")) return result;
  for (auto& [name, store] : result["stores"].items()) {
    const Pointer same(inside);
    if (store.contains(same) && store[same].is_number_unsigned())
      store[same] = std::min<std::uint64_t>(store[same].get<std::uint64_t>(), value);
  }
  return result;
}

/// Donors behind the layer that went come one earlier; what read that layer has rows of its own.
void renumber_donors(ScriptTree& donors, std::size_t layer) {
  if (!donors.is_array()) return;
  for (ScriptTree& donor : donors) {
    if (!donor.is_number_unsigned()) continue;
    const auto own = donor.get<std::uint64_t>();
    if (own > layer) donor = own - 1;
    if (own == layer) donor = nullptr;
  }
}

void erase_layer(ScriptTree& script, std::size_t layer, std::size_t layers) {
  script["model"]["layers"] = layers - 1;
  for (auto& [name, store] : script["stores"].items()) {
    for (auto& [key, value] : store.items()) {
      if (value.is_array() && value.size() == layers) value.erase(layer);
      if (key == "donor") renumber_donors(value, layer);
    }
  }
  ScriptTree kept = ScriptTree::array();
  for (ScriptTree step : script["steps"]) {
    const bool names_layer = step.contains("layer") && step["layer"].is_number_unsigned();
    const std::uint64_t own = names_layer ? step["layer"].get<std::uint64_t>() : 0;
    if (names_layer && own == layer) continue;
    if (names_layer && own > layer) step["layer"] = own - 1;
    kept.push_back(std::move(step));
  }
  script["steps"] = std::move(kept);
}

/// Two steps that feed the same rows to the same sequence, as one.
std::optional<ScriptTree> merged(const ScriptTree& first, const ScriptTree& second) {
  const auto without_counts = [](ScriptTree step) {
    for (const char* key : {"count", "chunk"}) step.erase(key);
    return step;
  };
  const bool feeds =
      first.contains("op") && (first["op"] == "append" || first["op"] == "prefill" || first["op"] == "decode");
  if (!feeds || first.contains("expect") || without_counts(first) != without_counts(second)) return std::nullopt;
  // "prompt" counts what an admission named.
  const auto counts_rows = [](const ScriptTree& step) { return !step.contains("count") || step["count"].is_number(); };
  if (!counts_rows(first) || !counts_rows(second)) return std::nullopt;
  ScriptTree both = without_counts(first);
  both["count"] = first.value("count", std::uint64_t{1}) + second.value("count", std::uint64_t{1});
  return both;
}

}  // namespace

bool Shrinker::accept(ScriptTree candidate) {
  while (has_steps(candidate) && !is_late()) {
    if (!tried_.insert(candidate.dump()).second) return false;
    const std::optional<ShrinkOracle::Fault> fault = oracle_.fault(candidate);
    if (!fault) {
      ++candidates_;
      if (!oracle_.fails(candidate)) return false;
      best_ = std::move(candidate);
      return true;
    }
    if (!fault->step || *fault->step >= candidate["steps"].size()) return false;
    candidate["steps"].erase(*fault->step);
  }
  return false;
}

void Shrinker::run() {
  tried_.insert(best_.dump());
  bool is_going = true;
  while (is_going && !is_late()) {
    is_going = drop_claims();
    is_going = drop_steps() || is_going;
    is_going = merge_steps() || is_going;
    is_going = drop_layers() || is_going;
    is_going = lower_numbers() || is_going;
    is_going = drop_members() || is_going;
    is_going = join_lists() || is_going;
  }
}

/// What is asked beyond the standing rules, and the store that it is held against.
bool Shrinker::drop_claims() {
  bool any = false;
  for (const char* claim : {"budgets", "expect"}) {
    if (!best_.contains(claim)) continue;
    ScriptTree candidate = best_;
    candidate.erase(claim);
    any = accept(std::move(candidate)) || any;
  }
  if (best_.contains("expect") || best_["stores"].size() < 2) return any;
  ScriptTree candidate = best_;
  candidate["stores"].erase("ref");
  for (ScriptTree& step : candidate["steps"]) step.erase("on");
  return accept(std::move(candidate)) || any;
}

bool Shrinker::drop_steps() {
  bool any = false;
  for (std::size_t chunk = best_["steps"].size() / 2; chunk > 0; chunk /= 2) {
    // From the end: what a step needs stands before it.
    std::size_t at = best_["steps"].size();
    while (at > 0 && !is_late()) {
      at = std::min(at, best_["steps"].size());
      const std::size_t from = at > chunk ? at - chunk : 0;
      ScriptTree candidate = best_;
      ScriptTree& steps = candidate["steps"];
      steps.erase(steps.begin() + static_cast<std::ptrdiff_t>(from), steps.begin() + static_cast<std::ptrdiff_t>(at));
      any = accept(std::move(candidate)) || any;
      at = from;
    }
  }
  return any;
}

bool Shrinker::merge_steps() {
  bool any = false;
  for (std::size_t i = best_["steps"].size(); i-- > 1;) {
    if (i >= best_["steps"].size()) continue;
    std::optional<ScriptTree> both = merged(best_["steps"][i - 1], best_["steps"][i]);
    if (!both) continue;
    ScriptTree candidate = best_;
    candidate["steps"].erase(i);
    candidate["steps"][i - 1] = std::move(*both);
    any = accept(std::move(candidate)) || any;
  }
  return any;
}

bool Shrinker::drop_layers() {
  bool any = false;
  for (std::size_t layer = best_["model"].value("layers", std::size_t{1}); layer-- > 0;) {
    const std::size_t layers = best_["model"].value("layers", std::size_t{1});
    if (layers < 2) break;
    ScriptTree candidate = best_;
    erase_layer(candidate, layer, layers);
    any = accept(std::move(candidate)) || any;
  }
  return any;
}

bool Shrinker::lower_numbers() {
  bool any = false;
  for (const Pointer& where : numbers_of(best_)) {
    // Steps and layers may have gone since the places were listed.
    while (best_.contains(where) && best_[where].is_number_unsigned() && !is_late()) {
      if (!lower_number(where)) break;
      any = true;
    }
  }
  return any;
}

/// To the least, by half, by one: whichever still fails first.
bool Shrinker::lower_number(const Pointer& where) {
  const auto value = best_[where].get<std::uint64_t>();
  for (const std::uint64_t lower :
       {std::uint64_t{0}, std::uint64_t{1}, value / 2, value - std::min<std::uint64_t>(value, 1)}) {
    if (lower < value && accept(with_number(best_, where, lower))) return true;
  }
  return false;
}

bool Shrinker::drop_members() {
  bool any = false;
  const auto drop = [&](const Pointer& object, const std::string& key) {
    if (!best_.contains(object / key)) return;
    ScriptTree candidate = best_;
    candidate[object].erase(key);
    any = accept(std::move(candidate)) || any;
  };
  for (const char* key : kScriptMembers) drop(Pointer(), key);
  for (const char* key : kModelMembers) drop(Pointer() / "model", key);
  std::vector<std::string> names;
  for (const auto& [name, store] : best_["stores"].items()) names.push_back(name);
  for (const std::string& name : names) {
    for (const char* key : kStoreMembers) drop(Pointer() / "stores" / name, key);
  }
  for (std::size_t i = 0; i < best_["steps"].size(); ++i) {
    for (const char* key : kStepMembers) drop(Pointer() / "steps" / i, key);
  }
  return any;
}

/// [4, 4] is 4.
bool Shrinker::join_lists() {
  bool any = false;
  std::vector<Pointer> lists;
  for (const auto& [name, store] : best_["stores"].items()) {
    for (const auto& [key, value] : store.items()) {
      const auto is_first = [&first = value](const ScriptTree& one) { return one == first.front(); };
      const bool is_one = value.is_array() && !value.empty() && std::ranges::all_of(value, is_first);
      if (is_one) lists.push_back(Pointer() / "stores" / name / key);
    }
  }
  for (const Pointer& where : lists) {
    ScriptTree candidate = best_;
    ScriptTree one = best_[where].front();
    candidate[where] = std::move(one);
    any = accept(std::move(candidate)) || any;
  }
  return any;
}

// ---- text

namespace {

/// On one line, with spaces where people put them.
void write_line(const ScriptTree& tree, std::string& out) {
  if (!tree.is_structured()) {
    out += tree.dump();
    return;
  }
  out += tree.is_object() ? '{' : '[';
  bool is_first = true;
  for (const auto& [key, value] : tree.items()) {
    if (!is_first) out += ", ";
    is_first = false;
    if (tree.is_object()) out += ScriptTree(key).dump() + ": ";
    write_line(value, out);
  }
  out += tree.is_object() ? '}' : ']';
}

/// A member whose items have a line each.
void write_items(const ScriptTree& tree, std::string& out) {
  out += tree.is_object() ? "{" : "[";
  bool is_first = true;
  for (const auto& [key, value] : tree.items()) {
    out += is_first ? "\n    " : ",\n    ";
    is_first = false;
    if (tree.is_object()) out += ScriptTree(key).dump() + ": ";
    write_line(value, out);
  }
  out += tree.is_object() ? "\n  }" : "\n  ]";
}

}  // namespace

std::string script_text(const ScriptTree& script, const std::string& comment) {
  std::string out;
  for (std::size_t from = 0; from < comment.size();) {
    const std::size_t end = std::min(comment.find('\n', from), comment.size());
    out += "// " + comment.substr(from, end - from) + "\n";
    from = end + 1;
  }
  out += "{";
  bool is_first = true;
  for (const auto& [key, value] : script.items()) {
    out += (is_first ? "\n  " : ",\n  ") + ScriptTree(key).dump() + ": ";
    is_first = false;
    const bool has_lines = key == "steps" || key == "stores";
    has_lines ? write_items(value, out) : write_line(value, out);
  }
  return out + "\n}\n";
}

}  // namespace kvwitness::reports
