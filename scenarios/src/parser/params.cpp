#include "parser/params.hpp"

#include "parser/fields.hpp"
#include "script/nearest.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <functional>
#include <optional>

namespace kvwitness::scenarios {
namespace {

using Axis = std::pair<std::string, std::vector<Node>>;

void require_scalar(const Value& value) {
  if (value.kind() == NodeKind::object || value.kind() == NodeKind::list)
    value.fail("a parameter is a scalar, or a list of scalars");
}

void require_parameter(const Value& value) {
  if (value.kind() != NodeKind::list) return require_scalar(value);
  for (const Value& item : value.list()) require_scalar(item);
}

std::optional<Node> read_number(const std::string& text, Place place) {
  if (text.empty() || (text.front() != '-' && !std::isdigit(static_cast<unsigned char>(text.front())))) return {};
  try {
    Node node = parse_located(text, "").root;
    node.place = place;
    return node;
  } catch (const trace::Error&) {
    return {};
  }
}

/// A caller's value: a number, `true`, `false` or `null` where it reads as one, otherwise a text.
Node read_override(const std::string& text, Place place) {
  if (auto number = read_number(text, place)) return *std::move(number);
  Node node;
  node.place = place;
  node.text = text;
  if (text == "true" || text == "false") {
    node.kind = NodeKind::boolean;
    node.boolean = text == "true";
  } else if (text != "null") {
    node.kind = NodeKind::text;
  }
  return node;
}

Axis read_axis(const std::string& name, const Value& value, const std::map<std::string, std::string>& overrides) {
  if (const auto given = overrides.find(name); given != overrides.end())
    return {name, {read_override(given->second, value.node().place)}};
  Axis axis{name, {}};
  for (const Value& item : value.one_or_list()) {
    require_parameter(item);
    axis.second.push_back(item.node());
  }
  if (axis.second.empty()) value.fail("has no value");
  return axis;
}

/// Adds the product of the axes, the last one changing first.
void add_product(const std::vector<Axis>& axes, std::size_t cases_max, const Value& where,
                 std::vector<Choice>& choices) {
  std::size_t cases = 1;
  for (const Axis& axis : axes) {
    cases *= axis.second.size();
    if (cases + choices.size() > cases_max)
      where.fail(fmt::format("more than {} cases; raise the limit where that is meant", cases_max));
  }
  for (std::size_t number = 0; number < cases; ++number) {
    Choice choice;
    std::size_t rest = number;
    for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
      choice.emplace(axis->first, axis->second[rest % axis->second.size()]);
      rest /= axis->second.size();
    }
    choices.push_back(std::move(choice));
  }
}

std::vector<std::string> names_of(const Value& matrix) {
  std::vector<std::string> names;
  for (const auto& [name, value] : matrix.named()) names.push_back(name);
  std::ranges::sort(names);
  return names;
}

void require_distinct(const std::vector<Choice>& choices, const Value& where) {
  std::vector<std::string> variants;
  for (const Choice& choice : choices) variants.push_back(variant_of(choice));
  std::ranges::sort(variants);
  const auto twice = std::ranges::adjacent_find(variants);
  if (twice != variants.end()) where.fail(fmt::format("the case [{}] is given twice", *twice));
}

}  // namespace

Matrix expand_params(const Node* params, const std::map<std::string, std::string>& overrides, std::size_t cases_max,
                     const std::string& file) {
  Matrix matrix;
  if (params == nullptr) {
    matrix.choices.emplace_back();
    return matrix;
  }
  const Value value(*params, file, "params");
  const std::vector<Value> parts = value.one_or_list();
  if (parts.empty()) value.fail("has no case");
  matrix.names = names_of(parts.front());
  for (const Value& part : parts) {
    if (names_of(part) != matrix.names)
      part.fail(fmt::format("must have the same parameters as the first: {}", fmt::join(matrix.names, ", ")));
    std::vector<Axis> axes;
    for (const auto& [name, axis] : part.named()) axes.push_back(read_axis(name, axis, overrides));
    add_product(axes, cases_max, part, matrix.choices);
  }
  // An overridden parameter can make cases of a list the same; they are one case then.
  if (overrides.empty()) {
    require_distinct(matrix.choices, value);
  } else {
    std::ranges::stable_sort(matrix.choices, {}, variant_of);
    const auto is_same = [](const Choice& a, const Choice& b) { return variant_of(a) == variant_of(b); };
    matrix.choices.erase(std::unique(matrix.choices.begin(), matrix.choices.end(), is_same), matrix.choices.end());
  }
  return matrix;
}

std::string written(const Node& value) {
  switch (value.kind) {
    case NodeKind::null: return "null";
    case NodeKind::boolean: return value.boolean ? "true" : "false";
    case NodeKind::integer:
    case NodeKind::number:
    case NodeKind::text: return value.text;
    case NodeKind::list: {
      std::vector<std::string> items;
      for (const Node& item : value.items) items.push_back(written(item));
      return fmt::format("[{}]", fmt::join(items, ","));
    }
    case NodeKind::object: return "{}";
  }
  return {};
}

std::string variant_of(const Choice& choice) {
  std::vector<std::string> parts;
  for (const auto& [name, value] : choice) parts.push_back(fmt::format("{}={}", name, written(value)));
  return fmt::format("{}", fmt::join(parts, " "));
}

Node Substitution::apply(const Node& node) {
  if (node.kind == NodeKind::text) return apply_text(node);
  Node result = node;
  for (Node& item : result.items) item = apply(item);
  for (Member& member : result.members) member.value = apply(member.value);
  return result;
}

const Node& Substitution::lookup(std::string_view name, const Node& where) {
  const auto found = choice_->find(std::string(name));
  if (found == choice_->end()) {
    std::vector<std::string> names;
    for (const auto& [known, value] : *choice_) names.push_back(known);
    throw error_at(*file_, where.place, fmt::format("no parameter '{}'{}", name, suggestion(name, names)));
  }
  used_[std::string(name)] = true;
  return found->second;
}

Node Substitution::apply_text(const Node& node) {
  const std::string_view text = node.text;
  Node result = node;
  result.text.clear();
  std::size_t at = 0;
  while (true) {
    const std::size_t open = text.find("${", at);
    result.text += text.substr(at, open - at);
    if (open == std::string_view::npos) return result;
    const std::size_t close = text.find('}', open);
    if (close == std::string_view::npos) throw error_at(*file_, node.place, fmt::format("'{}': ${{ without }}", text));
    const std::string_view name = text.substr(open + 2, close - open - 2);
    const Node& value = lookup(name, node);
    result.param = fmt::format("{}={}", name, written(value));
    if (open == 0 && close + 1 == text.size()) {
      Node whole = value;
      whole.place = node.place;
      whole.param = std::move(result.param);
      return whole;
    }
    result.text += written(value);
    at = close + 1;
  }
}

std::string Substitution::unused() const {
  for (const auto& [name, value] : *choice_)
    if (!used_.contains(name)) return name;
  return {};
}

}  // namespace kvwitness::scenarios
