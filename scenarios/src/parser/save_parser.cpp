#include "parser/step_parser.hpp"
#include "script/nearest.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace kvwitness::scenarios {

void StepParser::parse_save(Step& step, const Fields& fields) {
  if (!step.interleaved.empty()) fields.get("seq").fail("a file is of one sequence");
  step.as = fields.get("as").word();
  for (const std::string& store : step.on) files_.insert(fmt::format("{}.{}", store, step.as));
}

void StepParser::parse_restore(Step& step, const Fields& fields) {
  forget_prompts(step);
  const Value from = fields.get("from");
  const std::string& name = from.text();
  const std::size_t dot = name.find('.');
  step.saved_as = dot == std::string::npos ? name : name.substr(dot + 1);
  if (dot != std::string::npos) step.saved_by = name.substr(0, dot);
  const std::vector<std::string> savers = step.saved_by.empty() ? step.on : std::vector<std::string>{step.saved_by};
  for (const std::string& store : savers) {
    const std::string file = fmt::format("{}.{}", store, step.saved_as);
    if (files_.contains(file)) continue;
    from.fail(fmt::format("no earlier step saves '{}'{}", file,
                          suggestion(file, std::vector<std::string>(files_.begin(), files_.end()))));
  }
  parse_damage(step, fields);
}

void StepParser::parse_damage(Step& step, const Fields& fields) {
  const auto damage = fields.find("damage");
  const auto at = fields.find("at");
  if (at && !damage) at->fail("is where the file is damaged: 'damage' says how");
  if (!damage) return;
  step.damage = static_cast<Damage>(damage->choice({"truncate", "flip", "foreign"}) + 1);
  if (at && step.damage == Damage::foreign) at->fail("a file of which nothing is left is damaged everywhere");
  if (at) step.damage_at = at->count({0, kFileParts});
  if (step.expect.value_or(trace::RefusalCode::none) == trace::RefusalCode::none)
    damage->fail("a damaged file is refused: 'expect' says how");
}

}  // namespace kvwitness::scenarios
