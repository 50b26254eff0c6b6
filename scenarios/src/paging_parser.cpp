/// Steps that are about sequences which share blocks, and about admitting them.
#include "kvwitness/core/paged_store.hpp"
#include "stage.hpp"
#include "step_parser.hpp"
#include "workload_file.hpp"

#include <fmt/format.h>

namespace kvwitness::scenarios {
namespace {

constexpr Bounds kSequences{0, trace::kNoSequence - 1};
constexpr std::uint32_t kPatienceDefault = 64;

}  // namespace

void StepParser::parse_fork(Step& step, const Fields& fields) {
  if (!step.interleaved.empty()) fields.get("seq").fail("one sequence is forked at a time");
  step.child = fields.get("to").count(kSequences);
  if (const auto upto = fields.find("upto")) step.to = upto->count({0, trace::kNoPosition - 1});
}

void StepParser::parse_reorder(Step& step, const Fields& fields) {
  const std::vector<Value> parents = fields.get("parents").list();
  if (parents.empty()) fields.get("parents").fail("names no beam");
  const auto last = static_cast<std::uint32_t>(parents.size() - 1);
  for (const Value& parent : parents) step.parents.push_back(parent.count({0, last}));
}

void StepParser::parse_of(Step& step, const Value& value) const {
  if (decoder_of(step) != nullptr) value.fail("a decoder's rows are its sequence's own");
  step.of = value.count(kSequences);
}

void StepParser::parse_admit(Step& step, const Fields& fields) {
  if (const auto stream = fields.find("stream")) parse_stream(step, *stream);
  require_rows(step, fields);
  if (const auto ordinal = fields.find("ordinal")) step.ordinal = ordinal->count();
  step.prompt = fields.get("prompt").count({0, trace::kNoPosition - 1});
  step.generated = fields.get("output").count({0, trace::kNoPosition - 1});
  const auto of = fields.find("of");
  const auto prefix = fields.find("prefix");
  if (of) parse_of(step, *of);
  if (prefix && !of) prefix->fail("needs 'of', the sequence whose rows they are");
  step.shared = prefix ? prefix->count({0, step.prompt}) : of ? step.prompt : 0;
  if (step.expect.value_or(trace::RefusalCode::none) == trace::RefusalCode::none)
    count_tokens(step.prompt, fields.object());
}

void StepParser::parse_prompt_rest(Step& step, const Value& value) {
  static_cast<void>(value.choice({"prompt"}));
  step.count = kChunkDefault;
}

void StepParser::parse_schedule(Step& step, const Value& value) {
  const Fields fields(value, schedule_keys());
  const auto chunk = fields.find("chunk");
  const auto preempts = fields.find("preempt");
  const auto patience = fields.find("patience");
  Schedule schedule;
  schedule.chunk = chunk ? chunk->count({1, kChunkDefault}) : kPrefixBlock;
  schedule.preempts = preempts && preempts->boolean();
  if (patience && !schedule.preempts) patience->fail("nobody makes room without 'preempt'");
  schedule.patience = patience ? patience->count({0, trace::kNoPosition - 1}) : kPatienceDefault;
  step.schedule = schedule;
}

}  // namespace kvwitness::scenarios
