#include "rules/rules.hpp"

#include <algorithm>
#include <vector>

namespace kvwitness::verify {

std::span<const Rule> all_rules() {
  // In the order of their ids; a line a rule.
  static const std::vector<Rule> rules{
      accounting_rule(),        adapter_priced_rule(),       admission_rule(),
      block_reference_rule(),   bounded_memory_rule(),       cached_blocks_rule(),
      different_output_rule(),  donor_reads_rule(),          event_grammar_rule(),
      expected_outcome_rule(),  golden_sha256_rule(),        ledger_balance_rule(),
      legal_refused_rule(),     non_interference_rule(),     numeric_oracle_rule(),
      output_bound_rule(),      plan_matches_rule(),         pool_conservation_rule(),
      position_order_rule(),    prefix_sound_rule(),         quantise_once_rule(),
      refusal_unchanged_rule(), resident_set_rule(),         rope_ledger_rule(),
      same_output_rule(),       saved_state_rule(),          shared_write_rule(),
      stale_refusal_rule(),     store_answers_rule(),        stream_order_rule(),
      suffix_relativity_rule(), trace_truth_rule(),          visible_set_rule(),
      window_exact_rule(),      zero_alloc_per_token_rule(),
  };
  return rules;
}

const Rule* find_rule(std::string_view id) noexcept {
  const std::span<const Rule> rules = all_rules();
  const auto found = std::find_if(rules.begin(), rules.end(), [&](const Rule& rule) { return rule.info.id == id; });
  return found == rules.end() ? nullptr : &*found;
}

}  // namespace kvwitness::verify
