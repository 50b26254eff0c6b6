#include "entry.hpp"

#include "kvwitness/trace/assert.hpp"
#include "kvwitness/trace/error.hpp"
#include "kvwitness/trace/trace_file.hpp"
#include "kvwitness/verify/judge.hpp"

#include <algorithm>
#include <vector>

namespace kvwitness::verify {
namespace {

/// Events of a trace that can be read, as far as it can.
std::vector<trace::Event> events_of(trace::TraceReader& reader) {
  std::vector<trace::Event> events;
  try {
    for (trace::Event event; reader.next(event);) events.push_back(event);
  } catch (const trace::Error&) {
    // The reader's own target looks at what it refuses.
  }
  return events;
}

bool is_same(const RuleVerdict& a, const RuleVerdict& b) {
  return a.rule == b.rule && a.status == b.status && a.met == b.met && a.violations == b.violations &&
         a.note == b.note && a.shown.size() == b.shown.size();
}

}  // namespace

void fuzz_judge(std::string_view bytes) try {
  trace::TraceReader reader(trace::open_memory("fuzz", bytes));
  const std::vector<trace::Event> events = events_of(reader);
  const JudgeOptions options{.only = {}, .names = &reader.names()};
  Judge at_once(reader.header().claims, options);
  at_once.on_batch(events);
  Judge one_by_one(reader.header().claims, options);
  for (const trace::Event& event : events) one_by_one.on_event(event);

  const CaseVerdict verdict = at_once.finish();
  const CaseVerdict again = one_by_one.finish();
  KVW_ASSERT(verdict.status == again.status && verdict.events == again.events && verdict.notes == again.notes);
  KVW_ASSERT(std::ranges::equal(verdict.rules, again.rules, is_same));
  for (const RuleVerdict& rule : verdict.rules) KVW_ASSERT((rule.status == Status::fail) == (rule.violations != 0));
  const bool has_end = !events.empty() && events.back().type == trace::EventType::RunEnd;
  KVW_ASSERT(has_end || verdict.status != Status::pass);
} catch (const trace::Error&) {
  // A header that cannot be read, or claims that name what does not exist.
}

}  // namespace kvwitness::verify
