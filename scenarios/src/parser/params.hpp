/// Parameter matrices and `${name}`.
#pragma once

#include "parser/located.hpp"

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace kvwitness::scenarios {

/// One choice of parameters. Values are scalars, or lists of scalars.
using Choice = std::map<std::string, Node>;

/// A script's `params`.
struct Matrix {
  std::vector<std::string> names;
  std::vector<Choice> choices;  ///< at least one; empty without parameters
};

/// Reads `params` (null: no parameters) and applies `overrides` to the parameters that it declares. Throws trace::Error
/// with the place, and for more than `cases_max` choices.
[[nodiscard]] Matrix expand_params(const Node* params, const std::map<std::string, std::string>& overrides,
                                   std::size_t cases_max, const std::string& file);

/// "tokens=17 window=4".
[[nodiscard]] std::string variant_of(const Choice& choice);
/// A value as variants and longer texts write it.
[[nodiscard]] std::string written(const Node& value);

/// Puts parameters in. Remembers which ones were used, over all trees that it was given.
class Substitution {
 public:
  Substitution(const Choice& choice, const std::string& file) : choice_(&choice), file_(&file) {}

  /// The tree with every `${name}` replaced. Values keep the place where the script names them. Throws trace::Error for
  /// names that are no parameter.
  [[nodiscard]] Node apply(const Node& node);
  /// A parameter that no tree used; empty where all were.
  [[nodiscard]] std::string unused() const;

 private:
  [[nodiscard]] Node apply_text(const Node& node);
  [[nodiscard]] const Node& lookup(std::string_view name, const Node& where);

  const Choice* choice_;
  const std::string* file_;
  std::map<std::string, bool, std::less<>> used_;
};

}  // namespace kvwitness::scenarios
