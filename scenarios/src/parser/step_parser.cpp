#include "parser/step_parser.hpp"

#include "kvwitness/trace/event_table.hpp"
#include "script/alike.hpp"
#include "script/nearest.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace kvwitness::scenarios {
namespace {

using trace::Operation;

std::vector<std::string> texts_of(std::span<const trace::EnumText> texts) {
  std::vector<std::string> result;
  for (const trace::EnumText& text : texts) result.emplace_back(text.text);
  return result;
}

template <class T>
std::vector<std::string> names_of(const std::vector<T>& named) {
  std::vector<std::string> names;
  for (const T& one : named) names.push_back(one.name);
  return names;
}

bool is_call(Operation operation) noexcept {
  return operation != Operation::compare && operation != Operation::repeat && operation != Operation::mark &&
         operation != Operation::workload;
}

/// Positions end below the value that stands for "none".
constexpr Bounds kPositions{0, trace::kNoPosition - 1};
constexpr Bounds kCounts{1, kTokensMax};

}  // namespace

std::string_view output_label(const Step& step) noexcept {
  return step.as.empty() ? "out" : std::string_view(step.as);
}

std::vector<Step> StepParser::parse(const Value& steps) {
  const std::vector<Value> values = steps.list();
  if (values.empty()) steps.fail("has no step");
  std::vector<Step> result;
  result.reserve(values.size());
  for (const Value& value : values) result.push_back(parse_step(value));
  return result;
}

Step StepParser::parse_step(const Value& value) {
  value.require(NodeKind::object);
  const auto op = std::ranges::find(value.node().members, std::string_view("op"), &Member::key);
  if (op == value.node().members.end()) value.fail("'op' is missing");
  const Value name(op->value, value.file(), value.name() + ".op");
  std::vector<std::string> operations;
  for (const OperationKeys& keys : operation_keys()) operations.emplace_back(keys.set.object);
  const OperationKeys& keys = operation_keys()[name.choice(operations)];

  const Value named(value.node(), value.file(), fmt::format("{} ({})", value.name(), keys.set.object));
  const Fields fields(named, keys.set);
  Step step;
  step.operation = keys.operation;
  add_to_table(step, fields, value);
  if (is_call(step.operation)) parse_call(step, fields);
  switch (step.operation) {
    case Operation::append:
    case Operation::prefill:
    case Operation::decode: parse_append(step, fields); break;
    case Operation::window: parse_window(step, fields); break;
    case Operation::release: parse_using(step, fields.get("using")); break;
    case Operation::read: parse_read(step, fields); break;
    case Operation::attend: parse_attend(step, fields); break;
    case Operation::evict: parse_evict(step, fields); break;
    case Operation::trim:
      if (const auto slack = fields.find("slack")) step.slack = slack->count(kPositions);
      break;
    case Operation::truncate: step.to = fields.get("to").count(kPositions); break;
    case Operation::verify: parse_verify(step, fields); break;
    case Operation::clone: parse_clone(step, fields); break;
    case Operation::save: parse_save(step, fields); break;
    case Operation::restore: parse_restore(step, fields); break;
    case Operation::fork: parse_fork(step, fields); break;
    case Operation::reorder: parse_reorder(step, fields); break;
    case Operation::admit: parse_admit(step, fields); break;
    case Operation::poison:
      step.fill = static_cast<core::PoisonFill>(fields.get("fill").choice({"zero", "nan", "huge"}));
      break;
    case Operation::compare: parse_compare(step, fields); break;
    case Operation::workload: parse_workload(step, fields); break;
    case Operation::repeat: parse_repeat(step, fields); break;
    case Operation::clear: forget_prompts(step); break;
    case Operation::mark: step.label = fields.get("label").text(); break;
    default: break;
  }
  return step;
}

void StepParser::add_to_table(Step& step, const Fields& fields, const Value& value) {
  if (const auto id = fields.find("id")) step.id = id->text();
  step.index = static_cast<std::uint32_t>(case_->claims.steps.size());
  if (step.index >= kStepsMax) value.fail(fmt::format("a script has at most {} steps", kStepsMax));
  const Place place = value.node().place;
  case_->claims.steps.push_back(
      {std::string(trace::to_text(step.operation)), step.id, steps_file_, place.line, place.column});
}

void StepParser::parse_call(Step& step, const Fields& fields) {
  parse_on(step, fields);
  if (step.operation != Operation::reorder && step.operation != Operation::poison) {
    if (const auto seq = fields.find("seq")) parse_sequences(step, *seq);
  }
  const bool expects =
      step.operation != Operation::release && step.operation != Operation::verify && step.operation != Operation::clone;
  if (!expects) return;
  if (const auto expect = fields.find("expect")) parse_expect(step, *expect);
}

void StepParser::parse_on(Step& step, const Fields& fields) {
  const auto on = fields.find("on");
  if (!on) {
    step.on = names_of(case_->stores);
    return;
  }
  for (const Value& value : on->one_or_list()) {
    const std::string& name = store_of(value).name;
    if (std::ranges::find(step.on, name) != step.on.end()) value.fail(fmt::format("'{}' is named twice", name));
    step.on.push_back(name);
  }
  if (step.on.empty()) on->fail("names no store");
}

const StoreSpec& StepParser::store_of(const Value& value) const {
  const auto found = std::ranges::find(case_->stores, value.text(), &StoreSpec::name);
  return found != case_->stores.end() ? *found : case_->stores[value.choice(names_of(case_->stores))];
}

void StepParser::parse_sequences(Step& step, const Value& value) {
  // kNoSequence is "none"; sequences that a store does not have may be named, it refuses them.
  constexpr Bounds kSequences{0, trace::kNoSequence - 1};
  if (value.kind() != NodeKind::list) {
    step.sequence = value.count(kSequences);
    return;
  }
  for (const Value& item : value.list()) {
    const trace::SequenceId sequence = item.count(kSequences);
    if (std::ranges::find(step.interleaved, sequence) != step.interleaved.end())
      item.fail(fmt::format("{} is named twice", sequence));
    step.interleaved.push_back(sequence);
  }
  if (step.interleaved.empty()) value.fail("names no sequence");
  step.sequence = step.interleaved.front();
}

void StepParser::parse_expect(Step& step, const Value& value) {
  if (value.kind() == NodeKind::text) {
    static_cast<void>(value.choice({"ok"}));
    step.expect = trace::RefusalCode::none;
    return;
  }
  std::vector<std::string> codes = texts_of(trace::refusal_texts());
  codes.erase(codes.begin());
  const std::size_t code = Fields(value, expectation_keys()).get("refused").choice(codes);
  step.expect = static_cast<trace::RefusalCode>(code + 1);
}

void StepParser::parse_append(Step& step, const Fields& fields) {
  const auto count = fields.find("count");
  step.is_prompt = count && step.operation != Operation::decode && count->kind() == NodeKind::text;
  if (!step.is_prompt) step.count = count ? count->count(kCounts) : 1;
  if (const auto stream = fields.find("stream")) parse_stream(step, *stream);
  if (const auto ordinal = fields.find("ordinal")) step.ordinal = ordinal->count();
  if (const auto of = fields.find("of")) parse_of(step, *of);
  parse_span(step, fields);
  if (step.is_prompt) parse_prompt_rest(step, fields);
  if (step.operation == Operation::decode) parse_batch(step, fields);
  if (const DecoderSource* decoder = decoder_of(step)) return parse_decoder_work(step, fields, *decoder);
  if (step.operation != Operation::append && fields.has("record_every"))
    fields.get("record_every").fail("only of a decoder's logits");
  if (step.operation != Operation::decode) {
    if (const auto chunk = fields.find("chunk")) step.chunk = chunk->count({1, kChunkMax});
  }
  if (step.operation == Operation::append) {
    if (const auto layer = fields.find("layer")) parse_layer(step, *layer);
  } else {
    parse_attention(step, fields);
  }
  if (step.operation == Operation::decode) {
    if (const auto every = fields.find("attend_every")) step.attend_every = every->count({1, kTokensMax});
    auto& sampling = case_->claims.sampling;
    sampling.attend_every = std::max(sampling.attend_every, step.attend_every);
  }
  require_one_call(step, fields);
  if (!step.is_prompt && step.expect.value_or(trace::RefusalCode::none) == trace::RefusalCode::none)
    count_tokens(step.count, fields.object());
}

void StepParser::require_one_call(const Step& step, const Fields& fields) const {
  if (step.layer && step.count > kChunkMax)
    fields.object().fail(fmt::format("at most {} rows to one layer", kChunkMax));
  if (step.layer && step.chunk != 0 && step.chunk < step.count)
    fields.object().fail("rows to one layer are one append: no smaller chunk");
  if (step.expect.value_or(trace::RefusalCode::none) == trace::RefusalCode::none) return;
  if (step.operation == Operation::decode && step.count != 1)
    fields.object().fail("a step that expects a refusal decodes one token: count must be 1");
  if (step.chunk != 0 && step.chunk < step.count)
    fields.object().fail("a step that expects a refusal makes one append: no smaller chunk");
  if (step.count > kChunkMax) fields.object().fail(fmt::format("at most {} rows in one append", kChunkMax));
}

void StepParser::count_tokens(std::uint64_t tokens, const Value& where) {
  tokens_ += tokens * times_;
  if (tokens_ > kTokensMax) where.fail(fmt::format("the steps up to here append more than {} tokens", kTokensMax));
}

void StepParser::parse_attention(Step& step, const Fields& fields) {
  if (const auto path = fields.find("path"))
    step.path = path->choice({"pair", "gather"}) == 0 ? AttentionSource::pair : AttentionSource::gather;
  if (const auto as = fields.find("as")) step.as = as->word();
  for (const std::string& store : step.on) outputs_.insert(fmt::format("{}.{}", store, output_label(step)));
}

void StepParser::parse_range(Step& step, const Fields& fields) {
  if (const auto from = fields.find("from")) step.from = from->count(kPositions);
  if (const auto to = fields.find("to")) step.to = to->count(kPositions);
  if (const auto layer = fields.find("layer")) parse_layer(step, *layer);
}

void StepParser::parse_window(Step& step, const Fields& fields) {
  parse_range(step, fields);
  if (const auto as = fields.find("as")) {
    step.as = as->word();
    for (const std::string& store : step.on) views_.insert(fmt::format("{}.{}", store, step.as));
  }
}

void StepParser::parse_read(Step& step, const Fields& fields) {
  parse_range(step, fields);
  const auto as = fields.find("as");
  if (!as) return;
  step.as = as->word();
  for (const std::string& store : step.on) outputs_.insert(fmt::format("{}.{}", store, step.as));
}

void StepParser::parse_using(Step& step, const Value& value) {
  step.use = value.text();
  for (const std::string& store : step.on) {
    const std::string label = fmt::format("{}.{}", store, step.use);
    if (views_.contains(label)) continue;
    value.fail(fmt::format("no earlier window of '{}' is held as '{}'{}", store, step.use,
                           suggestion(label, std::vector<std::string>(views_.begin(), views_.end()))));
  }
}

void StepParser::parse_attend(Step& step, const Fields& fields) {
  if (const auto use = fields.find("using")) parse_using(step, *use);
  // One past the last query is a position too.
  if (const auto from = fields.find("from")) step.from = from->count({0, kPositions.high - kChunkMax});
  const auto count = fields.find("count");
  step.count = count ? count->count({1, kChunkMax}) : 1;
  if (const auto layer = fields.find("layer")) parse_layer(step, *layer);
  if (const auto stream = fields.find("stream")) parse_stream(step, *stream);
  require_rows(step, fields);
  parse_attention(step, fields);
}

void StepParser::parse_evict(Step& step, const Fields& fields) {
  const auto from = fields.find("from");
  const auto to = fields.find("to");
  const auto count = fields.find("count");
  if (const auto span = fields.find("span")) {
    if (from || to || count) span->fail("a span says itself which positions");
    return find_span(step, *span);
  }
  if (to.has_value() == count.has_value()) fields.object().fail("needs 'to' or 'count', not both; or 'span'");
  step.from = from ? from->count(kPositions) : 0;
  step.to = to ? to->count(kPositions) : *step.from + count->count({0, kPositions.high - *step.from});
}

void StepParser::parse_compare(Step& step, const Fields& fields) {
  step.left = store_of(fields.get("left")).name;
  step.right = store_of(fields.get("right")).name;
  if (step.left == step.right) fields.get("right").fail("compares a store with itself");
  if (!keep_rows_alike(store_of(fields.get("left")).config, store_of(fields.get("right")).config))
    fields.get("right").fail("codes its rows in another way, so that bits cannot agree");
  if (const auto seq = fields.find("seq")) parse_sequences(step, *seq);
  trace::RuleRequest request;
  request.rule = "same-output";
  request.left = step.left;
  request.right = step.right;
  request.step = step.index;
  request.at_step = true;
  case_->claims.rules.push_back(std::move(request));
}

void StepParser::parse_workload(Step& step, const Fields& fields) {
  const auto on = fields.find("on");
  const StoreSpec& store = on ? store_of(*on) : case_->stores.front();
  if (!on && case_->stores.size() > 1) fields.object().fail("'on' is missing: a workload runs on one store");
  step.on = {store.name};
  step.file = fields.get("file").text();
  if (!step.file.ends_with(".csv") && !step.file.ends_with(".jsonl"))
    fields.get("file").fail(fmt::format("'{}' is neither .csv nor .jsonl", step.file));
  const auto lanes = fields.find("lanes");
  step.lanes = lanes ? lanes->count({1, store.config.sequences}) : store.config.sequences;
  if (const auto requests = fields.find("requests")) step.requests_max = requests->count({1, kPositions.high});
  const auto every = fields.find("attend_every");
  step.attend_every = every ? every->count({1, kTokensMax}) : 64;
  auto& sampling = case_->claims.sampling;
  sampling.attend_every = std::max(sampling.attend_every, step.attend_every);
  if (const auto stream = fields.find("stream")) parse_stream(step, *stream);
  if (const auto schedule = fields.find("schedule")) parse_schedule(step, *schedule);
  require_rows(step, fields);
  outputs_.insert(fmt::format("{}.{}", store.name, output_label(step)));
  forget_prompts(step);
}

void StepParser::parse_repeat(Step& step, const Fields& fields) {
  step.count = fields.get("count").count({1, 1'000'000});
  const std::uint64_t times = times_;
  times_ *= step.count;
  if (times_ > kTokensMax) fields.object().fail(fmt::format("repeats its steps more than {} times", kTokensMax));
  step.body = parse(fields.get("steps"));
  if (step.count > 1) repeat_prompts(step.body, fields.object());
  times_ = times;
}

void StepParser::parse_layer(Step& step, const Value& value) const {
  // A layer that the store does not have may be named: the store refuses it.
  step.layer = static_cast<trace::LayerIndex>(value.count({0, trace::kNoLayer - 1}));
}

void StepParser::parse_stream(Step& step, const Value& value) const {
  step.stream = case_->streams[value.choice(names_of(case_->streams))].name;
}

}  // namespace kvwitness::scenarios
