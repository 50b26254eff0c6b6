/// What the rules say, and which public faults they stand for.
#pragma once

#include <iosfwd>
#include <string_view>

namespace kvwitness::reports {

/// A line per rule: id, level, whether it judges every run or only where a script asks, what it says.
void write_rule_list(std::ostream& out, bool color);
/// The same as a JSON array, with formula, witness and faults.
void write_rule_list_json(std::ostream& out);

/// Explains a rule (by id) or a class of faults (by slug): the property as a formula, what it must have met, the public
/// faults, and the seeded faults that prove it. Throws trace::Error for a word that is neither, with the nearest.
void write_explanation(std::string_view word, std::ostream& out, bool color);

}  // namespace kvwitness::reports
