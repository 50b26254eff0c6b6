/// Steps that are about a decoder, or about spans and copies of a sequence.
#include "parser/step_parser.hpp"
#include "script/nearest.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace kvwitness::scenarios {
namespace {

using trace::Operation;

constexpr std::uint32_t kDraftsMax = 1024;

std::vector<core::DraftNode> parse_chain(const Value& tokens, std::uint32_t vocab) {
  std::vector<core::DraftNode> drafts;
  for (const Value& token : tokens.list()) {
    core::DraftNode& draft = drafts.emplace_back();
    draft.token = token.count({0, vocab - 1});
    if (drafts.size() > 1) draft.parent = static_cast<std::uint32_t>(drafts.size() - 2);
  }
  if (drafts.empty()) tokens.fail("drafts no token");
  if (drafts.size() > kDraftsMax) tokens.fail(fmt::format("drafts more than {} tokens", kDraftsMax));
  return drafts;
}

void plant(const Value& parents, std::vector<core::DraftNode>& drafts) {
  const std::vector<Value> values = parents.list();
  if (values.size() != drafts.size())
    parents.fail(fmt::format("has {} values for {} tokens", values.size(), drafts.size()));
  for (std::uint32_t i = 0; i < drafts.size(); ++i) {
    const bool is_root = values[i].kind() == NodeKind::null;
    if (!is_root && i == 0) values[i].fail("must be null: no draft comes before the first");
    drafts[i].parent = is_root ? core::kSequenceEnd : values[i].count({0, i - 1});
  }
}

}  // namespace

const DecoderSource* StepParser::decoder_of(const Step& step) const {
  if (step.stream.empty()) return case_->streams.front().decoder ? &*case_->streams.front().decoder : nullptr;
  const auto found = std::ranges::find(case_->streams, step.stream, &StreamSource::name);
  return found->decoder ? &*found->decoder : nullptr;
}

void StepParser::require_rows(const Step& step, const Fields& fields) const {
  if (decoder_of(step) == nullptr) return;
  fields.object().fail("the stream is a decoder, whose rows come with attention only: use prefill or decode");
}

void StepParser::parse_decoder_work(Step& step, const Fields& fields, const DecoderSource& decoder) {
  if (step.operation == Operation::append) require_rows(step, fields);
  if (const auto path = fields.find("path")) path->fail("a decoder attends over the window as it lies");
  if (step.operation == Operation::decode) {
    if (const auto every = fields.find("attend_every")) every->fail("a decoder attends at every token");
  } else if (const auto chunk = fields.find("chunk")) {
    step.chunk = chunk->count({1, kChunkMax});
  }
  if (const auto ordinal = fields.find("ordinal"); ordinal && decoder.greedy && *step.ordinal >= decoder.tokens.size())
    ordinal->fail(fmt::format("a greedy stream is fed anew from its {} first tokens only", decoder.tokens.size()));
  if (const auto as = fields.find("as")) {
    step.as = as->word();
    for (const std::string& store : step.on) outputs_.insert(fmt::format("{}.{}", store, step.as));
  }
  if (const auto every = fields.find("record_every")) {
    if (step.as.empty()) every->fail("without 'as' nothing is recorded");
    step.record_every = every->count({1, kTokensMax});
  }
  require_one_call(step, fields);
  if (step.expect.value_or(trace::RefusalCode::none) == trace::RefusalCode::none)
    count_tokens(step.count, fields.object());
}

void StepParser::parse_verify(Step& step, const Fields& fields) {
  if (const auto stream = fields.find("stream")) parse_stream(step, *stream);
  const DecoderSource* decoder = decoder_of(step);
  if (decoder == nullptr || !decoder->greedy)
    fields.object().fail("drafts are held against what a greedy decoder would choose: the stream has to be one");
  step.drafts = parse_chain(fields.get("tokens"), decoder->model.config.vocab);
  if (const auto parents = fields.find("parents")) {
    step.is_tree = true;
    plant(*parents, step.drafts);
  }
  step.count = static_cast<std::uint32_t>(step.drafts.size());
  if (const auto as = fields.find("as")) {
    step.as = as->word();
    for (const std::string& store : step.on) outputs_.insert(fmt::format("{}.{}", store, step.as));
  }
  count_tokens(step.count, fields.object());
}

void StepParser::parse_clone(Step& step, const Fields& fields) {
  const Value of = fields.get("of");
  step.cloned = of.count({0, trace::kNoSequence - 1});
  std::vector<trace::SequenceId> targets = step.interleaved;
  if (targets.empty()) targets.push_back(step.sequence);
  if (std::ranges::find(targets, step.cloned) != targets.end()) of.fail("a sequence is not cloned onto itself");
  targets.push_back(step.cloned);
  forget_prompts(step);
  for (const std::string& name : step.on) {
    const StoreSpec& store = *std::ranges::find(case_->stores, name, &StoreSpec::name);
    if (std::ranges::max(targets) >= store.config.sequences)
      fields.object().fail(fmt::format("'{}' has {} sequences", name, store.config.sequences));
    if (core::is_coded(store.config))
      fields.object().fail(fmt::format("'{}' has codes: only f32 rows are cloned", name));
  }
}

void StepParser::parse_batch(Step& step, const Fields& fields) const {
  const auto batch = fields.find("batch");
  if (!batch) return;
  step.batch = batch->boolean();
  if (!step.batch) return;
  if (decoder_of(step) == nullptr) batch->fail("only of a decoder: other rows know nothing of each other");
  if (step.interleaved.empty()) batch->fail("needs a list of sequences in 'seq'");
  if (step.expect.value_or(trace::RefusalCode::none) != trace::RefusalCode::none)
    batch->fail("a refusal would leave the other sequences in the middle of a token");
}

void StepParser::parse_span(Step& step, const Fields& fields) {
  const auto span = fields.find("span");
  if (!span) return;
  if (step.operation == Operation::append && fields.has("layer"))
    span->fail("names whole tokens, not one layer's rows");
  step.span = span->word();
  for (const std::string& store : step.on) spans_.insert(fmt::format("{}.{}", store, step.span));
}

void StepParser::find_span(Step& step, const Value& value) const {
  step.span = value.text();
  for (const std::string& store : step.on) {
    const std::string label = fmt::format("{}.{}", store, step.span);
    if (spans_.contains(label)) continue;
    value.fail(fmt::format("no earlier step names rows of '{}' '{}'{}", store, step.span,
                           suggestion(label, std::vector<std::string>(spans_.begin(), spans_.end()))));
  }
}

}  // namespace kvwitness::scenarios
