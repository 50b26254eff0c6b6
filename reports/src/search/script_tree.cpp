#include "search/script_tree.hpp"

#include "input_file.hpp"
#include "kvwitness/trace/error.hpp"

#include "file_error.hpp"

#include <fmt/format.h>

namespace kvwitness::reports {
namespace {

/// A parameter's value, as a variant writes it, with its type.
ScriptTree value_of(const std::string& written) {
  ScriptTree value = ScriptTree::parse(written, nullptr, false);
  return value.is_discarded() ? ScriptTree(written) : value;
}

std::string reference_to(const std::string& name) {
  return "${" + name + "}";
}

/// Text with every reference replaced; a text that is nothing but a reference becomes the value itself.
ScriptTree substituted(const std::string& text, const std::map<std::string, std::string>& params) {
  std::string result = text;
  for (const auto& [name, written] : params) {
    const std::string reference = reference_to(name);
    if (text == reference) return value_of(written);
    for (std::size_t at = result.find(reference); at != std::string::npos; at = result.find(reference, at))
      result.replace(at, reference.size(), written);
  }
  return result;
}

void substitute(ScriptTree& tree, const std::map<std::string, std::string>& params) {
  if (tree.is_string()) tree = substituted(tree.get<std::string>(), params);
  if (!tree.is_structured()) return;
  for (ScriptTree& value : tree) substitute(value, params);
}

}  // namespace

std::optional<scenarios::Case> case_of(const ScriptTree& tree, const std::string& file) {
  try {
    scenarios::Script script = scenarios::parse_script(tree.dump(), file, {});
    if (script.cases.size() != 1) return std::nullopt;
    return std::move(script.cases.front());
  } catch (const trace::Error&) {
    return std::nullopt;
  }
}

ScriptTree tree_of(const scenarios::Case& which) {
  ScriptTree tree = ScriptTree::parse(text_of_file(which.file), nullptr, true, true);
  tree.erase("params");
  substitute(tree, which.params);
  tree["seed"] = fmt::format("{:#x}", which.claims.seed);
  return tree;
}

}  // namespace kvwitness::reports
