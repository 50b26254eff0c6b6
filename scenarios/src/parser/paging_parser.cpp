/// Steps that are about sequences which share blocks, and about admitting them.
#include "kvwitness/core/paged_store.hpp"
#include "parser/step_parser.hpp"
#include "script/stage_needs.hpp"
#include "workload/workload_file.hpp"

#include <fmt/format.h>

#include <algorithm>

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
  forget_prompts(step);
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
  if (!expects_refusal(step)) count_tokens(step.prompt, fields.object());
  admit_prompts(step);
}

template <class F>
void StepParser::for_each_sequence(const Step& step, F&& visit) {
  const std::vector<trace::SequenceId> single{step.sequence};
  for (const trace::SequenceId sequence : step.interleaved.empty() ? single : step.interleaved)
    for (const std::string& store : step.on) visit(StoreSequence{store, sequence});
}

void StepParser::forget_prompts(const Step& step) {
  if (expects_refusal(step)) return;
  const auto is_of_step = [&](const auto& entry) {
    return std::ranges::find(step.on, entry.first.first) != step.on.end();
  };
  if (step.operation == trace::Operation::workload) {
    std::erase_if(admitted_, is_of_step);
    return;
  }
  if (step.operation != trace::Operation::reorder)
    return for_each_sequence(step, [&](const StoreSequence& one) { admitted_.erase(one); });
  for (trace::SequenceId beam = 0; beam < step.parents.size(); ++beam) {
    if (step.parents[beam] == beam) continue;
    for (const std::string& store : step.on) admitted_.erase(StoreSequence{store, beam});
  }
}

void StepParser::repeat_prompts(const std::vector<Step>& body, const Value& where) {
  for (const Step& step : body) {
    switch (step.operation) {
      case trace::Operation::repeat: repeat_prompts(step.body, where); break;
      case trace::Operation::admit: admit_prompts(step); break;
      case trace::Operation::clear:
      case trace::Operation::restore:
      case trace::Operation::clone:
      case trace::Operation::reorder:
      case trace::Operation::workload: forget_prompts(step); break;
      default:
        if (!step.is_prompt) break;
        for_each_sequence(step, [&](const StoreSequence& one) {
          if (!admitted_.contains(one))
            where.fail(
                fmt::format("only in its first turn a prompt of sequence {} of '{}' is left", one.second, one.first));
        });
    }
  }
}

void StepParser::admit_prompts(const Step& step) {
  if (expects_refusal(step)) return;
  for_each_sequence(step, [&](const StoreSequence& one) { admitted_[one] = {stream_name(step), step.prompt}; });
}

void StepParser::parse_prompt_rest(Step& step, const Fields& fields) {
  const Value count = fields.get("count");
  static_cast<void>(count.choice({"prompt"}));
  for (const std::string_view key : {"ordinal", "of", "layer"}) {
    const bool is_known = key != "layer" || step.operation == trace::Operation::append;
    if (is_known && fields.has(key)) fields.get(key).fail("a prompt's rest is the tokens that it was admitted with");
  }
  std::uint32_t longest = 1;
  for_each_sequence(step, [&](const StoreSequence& one) {
    const auto found = admitted_.find(one);
    if (found == admitted_.end())
      count.fail(
          fmt::format("no earlier step admits sequence {} of '{}', or it was emptied since", one.second, one.first));
    if (found->second.stream != stream_name(step))
      count.fail(fmt::format("sequence {} of '{}' was admitted with rows of '{}'", one.second, one.first,
                             found->second.stream));
    longest = std::max(longest, found->second.tokens);
  });
  const auto chunk = fields.find("chunk");
  step.count = expects_refusal(step) ? longest : chunk ? chunk->count({1, kChunkMax}) : kChunkDefault;
}

const std::string& StepParser::stream_name(const Step& step) const {
  return step.stream.empty() ? case_->streams.front().name : step.stream;
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
