/// What the rules say, and which public faults they stand for.
#pragma once

#include <iosfwd>
#include <string_view>

namespace kvwitness::reports {

/// A line per rule: id, level, whether it judges every run or only where a script asks, what it says.
void write_rule_list(std::ostream& out, bool color);
/// A line per class of faults: slug, how many seeded faults are made from it, what is wrong.
void write_class_list(std::ostream& out, bool color);
/// The rules as a JSON array, with formula, witness and faults.
void write_rule_list_json(std::ostream& out);

/// Explains a rule (by id) or a class of faults (by slug): the property as a formula, the public faults (of a class, what
/// mends them; of a rule, what it must have met), and the seeded faults that prove it. Throws trace::Error for a word that is neither, with the nearest.
void write_explanation(std::string_view word, std::ostream& out, bool color);

}  // namespace kvwitness::reports
