#include "grammar/prompt_tokens.hpp"

#include "kvwitness/trace/event_table.hpp"
#include "kvwitness/verify/pages_model.hpp"

#include <fmt/format.h>

#include <utility>

namespace kvwitness::verify::grammar {

Finding PromptTokens::on(const trace::BlockTokens& tokens, const Event& event, const Moment& moment) {
  Prompt& prompt = prompts_[event.store];
  const bool goes_on = prompt.is_named && prompt.sequence == event.sequence;
  const Position first = goes_on ? prompt.first : tokens.from;
  const Prompt before = std::exchange(prompt, {true, event.sequence, first, tokens.to, event.number});
  if (before.is_named && !goes_on)
    return Complaint{fmt::format("sequence {} admitted, whose tokens were named", before.sequence),
                     fmt::format("tokens of sequence {}", event.sequence), before.number};
  const PagesModel* pages = moment.model.pages(event.store);
  if (pages == nullptr) return std::nullopt;
  const std::uint64_t block = pages->block();
  const bool is_block = tokens.from % block == 0 && tokens.to == tokens.from + block;
  const bool is_in_pool = (pages->names_generated() && pages->is_admitted(event.sequence)) ||
                          tokens.to <= block * pages->pool().pool_blocks;
  const Position from = goes_on ? before.end : 0;
  if (is_block && is_in_pool && tokens.from >= from) return std::nullopt;
  return Complaint{
      fmt::format("the tokens of one block of {} from position {} on, of as many blocks as the pool has", block, from),
      fmt::format("those of [{}, {})", tokens.from, tokens.to), goes_on ? before.number : event.number};
}

/// Of a sequence that was admitted: blocks behind those that were named before, which are full when it is done.
Finding PromptTokens::of_append(const Prompt& prompt, const trace::Called& called, const Event& event,
                                const Moment& moment) {
  const PagesModel& pages = *moment.model.pages(event.store);
  const std::span<const Prefix> named = pages.named(event.sequence);
  const Position from = named.empty() ? 0 : named.back().to;
  const LayerModel* rows = moment.model.layer(event.store, event.sequence, event.layer);
  const std::uint64_t end = rows == nullptr ? 0 : std::uint64_t{rows->end()} + called.count;
  if (pages.is_admitted(event.sequence) && prompt.first >= from && prompt.end <= end) return std::nullopt;
  return Complaint{pages.is_admitted(event.sequence)
                       ? fmt::format("tokens named from position {} on, of blocks that are full at {}", from, end)
                       : fmt::format("sequence {} admitted before its tokens are named for an append", event.sequence),
                   fmt::format("those of [{}, {})", prompt.first, prompt.end), prompt.number};
}

Finding PromptTokens::on(const trace::Called& called, const Event& event, const Moment& moment) {
  if (event.store == trace::kNoStore || !prompts_[event.store].is_named) return std::nullopt;
  const Prompt prompt = std::exchange(prompts_[event.store], {});
  const PagesModel* pages = moment.model.pages(event.store);
  const bool is_append = called.operation == trace::Operation::append && event.sequence == prompt.sequence &&
                         pages != nullptr && pages->names_generated();
  if (is_append) return of_append(prompt, called, event, moment);
  const bool is_its = called.operation == trace::Operation::admit && event.sequence == prompt.sequence;
  if (!is_its)
    return Complaint{fmt::format("sequence {} admitted, whose tokens were named", prompt.sequence),
                     fmt::format("{} of sequence {}", to_text(called.operation), event.sequence), prompt.number};
  if (prompt.end <= called.to) return std::nullopt;
  return Complaint{fmt::format("tokens named of a prompt of {}", called.to), fmt::format("up to {}", prompt.end),
                   prompt.number};
}

Finding PromptTokens::at_end() const {
  for (const Prompt& prompt : prompts_) {
    if (prompt.is_named)
      return Complaint{fmt::format("sequence {} admitted, whose tokens were named", prompt.sequence),
                       "the end of the run", prompt.number};
  }
  return std::nullopt;
}

}  // namespace kvwitness::verify::grammar
