/// Steps that are about sequences which share blocks, and about admitting them.
#include "kvwitness/core/paged_store.hpp"
#include "stage.hpp"
#include "stage_needs.hpp"
#include "step_parser.hpp"
#include "workload_file.hpp"

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
  if (expects_refusal(step)) return;
  count_tokens(step.prompt, fields.object());
  for_each_sequence(step, [&](const StoreSequence& one) { admitted_[one] = {stream_name(step), step.prompt}; });
}

template <class F>
void StepParser::for_each_sequence(const Step& step, F&& visit) {
  const std::vector<trace::SequenceId> single{step.sequence};
  for (const trace::SequenceId sequence : step.interleaved.empty() ? single : step.interleaved)
    for (const std::string& store : step.on) visit(StoreSequence{store, sequence});
}

void StepParser::forget_prompts(const Step& step) {
  if (!expects_refusal(step)) for_each_sequence(step, [&](const StoreSequence& one) { admitted_.erase(one); });
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
