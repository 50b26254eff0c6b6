#include "rules/rules.hpp"

#include <algorithm>
#include <vector>

namespace kvwitness::verify {

std::span<const Rule> all_rules() {
  // In the order of their ids; a line a rule.
  static const std::vector<Rule> rules{
      expected_outcome_rule(),
      legal_refused_rule(),
      numeric_oracle_rule(),
      position_order_rule(),
      refusal_unchanged_rule(),
      resident_set_rule(),
      same_output_rule(),
      stale_refusal_rule(),
      visible_set_rule(),
      window_exact_rule(),
  };
  return rules;
}

const Rule* find_rule(std::string_view id) noexcept {
  const std::span<const Rule> rules = all_rules();
  const auto found = std::find_if(rules.begin(), rules.end(), [&](const Rule& rule) { return rule.info.id == id; });
  return found == rules.end() ? nullptr : &*found;
}

}  // namespace kvwitness::verify
