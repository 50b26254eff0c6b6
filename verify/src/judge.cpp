#include "kvwitness/verify/judge.hpp"

#include "cost_meter.hpp"
#include "kvwitness/trace/digest.hpp"
#include "kvwitness/trace/error.hpp"
#include "kvwitness/trace/event_table.hpp"
#include "kvwitness/trace/names.hpp"
#include "kvwitness/verify/model.hpp"
#include "rules/attended_outputs.hpp"
#include "witnesses.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace kvwitness::verify {
namespace {

using trace::EventType;

/// A rule of this run.
struct Seat {
  const Rule* rule = nullptr;
  trace::RuleRequest request;
  bool is_asked = false;
  StoreIndex store = trace::kNoStore;  ///< the only store it is about; kNoStore: all
  std::unique_ptr<Checker> checker;
};

const Rule& rule_named(const std::string& id) {
  if (const Rule* rule = find_rule(id); rule != nullptr) return *rule;
  throw trace::Error(fmt::format("rule \"{}\" is not known", id));
}

StoreIndex store_named(const std::string& name, const trace::Claims& claims) {
  if (name.empty()) return trace::kNoStore;
  for (std::size_t i = 0; i < claims.stores.size() && i < trace::kNoStore; ++i) {
    if (claims.stores[i].name == name) return static_cast<StoreIndex>(i);
  }
  throw trace::Error(fmt::format("store \"{}\", which a rule names, is not one of the run's", name));
}

/// A budget asks for the rule that judges it.
bool asked_by_budget(std::string_view rule, const trace::Budgets& budgets) noexcept {
  if (rule == "zero-alloc-per-token") return budgets.allocations_per_token.has_value();
  if (rule == "adapter-priced") return budgets.adapters_per_token || budgets.copied_bytes_per_token;
  if (rule == "bounded-memory") return budgets.live_bytes_max || budgets.resident_positions_max;
  return false;
}

/// What a script asked for, then what is always judged; `only` cuts down and asks.
std::vector<Seat> seats_of(const trace::Claims& claims, const std::vector<std::string>& only) {
  const auto is_wanted = [&](std::string_view id) {
    return only.empty() || std::find(only.begin(), only.end(), id) != only.end();
  };
  std::vector<Seat> seats;
  for (const trace::RuleRequest& request : claims.rules) {
    const bool is_known =
        std::any_of(seats.begin(), seats.end(), [&](const Seat& seat) { return seat.request == request; });
    const Rule& rule = rule_named(request.rule);
    const StoreIndex store = store_named(request.store, claims);
    if (!is_known && is_wanted(request.rule)) seats.push_back({&rule, request, true, store, nullptr});
  }
  for (const std::string& id : only) static_cast<void>(rule_named(id));
  for (const Rule& rule : all_rules()) {
    const std::string id(rule.info.id);
    const bool is_seated =
        std::any_of(seats.begin(), seats.end(), [&](const Seat& seat) { return seat.request.rule == id; });
    const bool is_asked = asked_by_budget(id, claims.budgets) || !only.empty();
    if (is_seated || !is_wanted(id) || !(rule.info.standing || is_asked)) continue;
    trace::RuleRequest request;
    request.rule = id;
    seats.push_back({&rule, request, is_asked, trace::kNoStore, nullptr});
  }
  std::stable_sort(seats.begin(), seats.end(),
                   [](const Seat& a, const Seat& b) { return a.rule->info.id < b.rule->info.id; });
  for (Seat& seat : seats) seat.checker = seat.rule->make(seat.request, claims);
  return seats;
}

void add_note(std::string& note, std::string_view text) {
  if (!note.empty()) note += "; ";
  note += text;
}

/// A layer of a sequence of a store, as one number.
std::uint64_t cell_of(const Event& event) noexcept {
  return std::uint64_t{event.store} << 56 | std::uint64_t{event.sequence} << 16 | event.layer;
}

std::string percent(std::uint64_t part, std::uint64_t whole) {
  return fmt::format("{} of {} ({:.2f}%)", part, whole, 100.0 * static_cast<double>(part) / static_cast<double>(whole));
}

}  // namespace

struct Judge::State {
  explicit State(const trace::Claims& of_run, const JudgeOptions& options)
      : claims(of_run), names(options.names), seats(seats_of(claims, options.only)), witnesses(claims) {
    for (Seat& seat : seats) {
      for (std::size_t type = 0; type < by_type.size(); ++type) {
        if (seat.rule->info.reads.contains(static_cast<EventType>(type))) by_type[type].push_back(&seat);
      }
    }
  }

  void digest_run(std::span<const Event> batch) noexcept;
  void take(const Event& event);
  void check_stream(const Event& event);
  void check_begin(const Event& event);
  void check_end(const Event& event);
  void await_attention(std::uint64_t cell);
  void follow_step(const Event& event);
  void count_step() noexcept;
  void incomplete(std::string why);

  void end_stream();
  RuleVerdict rule_verdict(const Seat& seat, const Moment& at_end) const;
  void note_sampling(CaseVerdict& verdict) const;
  void count_pool_call(const Event& event) noexcept;
  void count_workload(const Event& event) noexcept;
  void note_pool_calls(CaseVerdict& verdict) const;
  void follow_black_box(const Event& event);
  void note_black_box(CaseVerdict& verdict) const;
  void judge_uncalled(CaseVerdict& verdict) const;

  const trace::Claims claims;
  const trace::NameTable* names;
  Model model;
  std::vector<Seat> seats;
  std::array<std::vector<Seat*>, trace::kLastEventType + 1> by_type;
  WitnessBoard witnesses;
  CostMeter costs;

  trace::RunDigest digest;
  std::uint64_t run_digest = 0;
  std::uint64_t events = 0;
  std::uint64_t next_number = 0;
  std::uint64_t steps = 0;
  std::uint64_t ended_steps = 0;
  std::vector<bool> is_called = std::vector<bool>(std::size_t{trace::kNoStore} + 1);  ///< by store
  std::uint64_t calls = 0;  ///< and what an engine told of blocks that it cached meanwhile
  std::uint64_t unknown_types = 0;
  bool has_ended = false;
  bool is_digest_given = false;
  std::vector<std::string> whys;  ///< in the way of a verdict
  StreamEnd end;

  std::uint32_t step = kNoStep;
  std::uint32_t token = 0;
  bool is_decode = false;
  bool has_attended = false;
  bool has_recorded = false;
  std::vector<std::uint64_t> unattended;  ///< written in the step, and not attended since
  std::uint64_t decode_steps = 0;
  std::uint64_t attended_steps = 0;
  std::uint64_t recorded_steps = 0;
  std::uint64_t partial_steps = 0;  ///< in which some of the layers written were attended, and others not
  std::uint64_t admitted = 0;
  std::uint64_t not_admitted = 0;
  std::uint64_t swaps_out = 0;
  std::uint64_t swaps_in = 0;
  std::uint64_t idle_workloads = 0;
  AttendedOutputs black_box;  ///< of the last attend, where nobody saw how they came about
  std::uint64_t black_box_queries = 0;
  std::uint64_t black_box_told = 0;  ///< whose outputs were
};

void Judge::State::incomplete(std::string why) {
  constexpr std::size_t kWhysKept = 16;
  if (whys.size() < kWhysKept) whys.push_back(std::move(why));
}

void Judge::State::check_begin(const Event& event) {
  const auto begin = trace::payload_of<trace::RunBegin>(event);
  if (begin.version != trace::kEventVersion)
    incomplete(fmt::format("events of version {}, this judge knows {}", begin.version, trace::kEventVersion));
  if (begin.claims_digest != 0 && begin.claims_digest != trace::claims_digest(claims))
    incomplete("the claims are not the ones that the run was made with");
  if (begin.seed != claims.seed) incomplete("the run's seed is not the claims' one");
}

void Judge::State::check_end(const Event& event) {
  const auto told = trace::payload_of<trace::RunEnd>(event);
  has_ended = true;
  if (told.events != event.number)
    incomplete(fmt::format("RunEnd counts {} events, {} came before it", told.events, event.number));
  is_digest_given = told.digest != 0;
  if (is_digest_given && told.digest != run_digest)
    incomplete("the digest of the run is not the one that RunEnd tells");
  if (told.steps != 0 && told.steps != ended_steps)
    incomplete(fmt::format("RunEnd counts {} steps, {} ended before it", told.steps, ended_steps));
  if (told.dropped != 0) incomplete(fmt::format("{} events were dropped", told.dropped));
}

void Judge::State::check_stream(const Event& event) {
  if (has_ended) return incomplete("events follow RunEnd");
  if (event.number != next_number)
    incomplete(fmt::format("event {} follows event {}", event.number, static_cast<std::int64_t>(next_number) - 1));
  next_number = event.number + 1;
  if (event.type == EventType::RunEnd) {
    run_digest = digest.value();
    return check_end(event);
  }
  if (event.type == EventType::RunBegin) return check_begin(event);
  if (event.type == EventType::EventsDropped)
    incomplete(fmt::format("{} events were dropped", trace::payload_of<trace::EventsDropped>(event).count));
  if (event.type == EventType::unknown || static_cast<std::uint8_t>(event.type) > trace::kLastEventType)
    ++unknown_types;
}

/// Whatever comes in front of RunEnd.
void Judge::State::digest_run(std::span<const Event> batch) noexcept {
  if (has_ended) return;
  const auto run_end = std::ranges::find(batch, EventType::RunEnd, &Event::type);
  digest.add({batch.begin(), run_end});
}

void Judge::State::count_step() noexcept {
  if (!is_decode) return;
  ++decode_steps;
  attended_steps += has_attended ? 1 : 0;
  recorded_steps += has_recorded ? 1 : 0;
  partial_steps += has_attended && !unattended.empty() ? 1 : 0;
}

void Judge::State::await_attention(std::uint64_t cell) {
  constexpr std::size_t kAwaitedMax = 4096;  // one is enough to know that the step left something out
  const bool is_known = std::ranges::find(unattended, cell) != unattended.end();
  if (!is_known && unattended.size() < kAwaitedMax) unattended.push_back(cell);
}

void Judge::State::follow_step(const Event& event) {
  switch (event.type) {
    case EventType::StepBegin: {
      const auto begin = trace::payload_of<trace::StepBegin>(event);
      step = begin.step;
      token = begin.token;
      is_decode = begin.operation == trace::Operation::decode;
      has_attended = has_recorded = false;
      unattended.clear();
      ++steps;
      return;
    }
    case EventType::Append:
      if (is_decode) await_attention(cell_of(event));
      return;
    case EventType::AttentionStep:
      has_attended = true;
      if (const auto cell = std::ranges::find(unattended, cell_of(event)); cell != unattended.end())
        unattended.erase(cell);
      return;
    case EventType::TensorRecorded: has_recorded = true; return;
    default: return;
  }
}

void Judge::State::take(const Event& event) {
  ++events;
  check_stream(event);
  follow_step(event);
  model.apply(event);
  const Moment moment{claims, model, step, token, nullptr, names};
  witnesses.on_event(event, model);
  costs.on_event(event, moment);
  const auto type = static_cast<std::size_t>(event.type);
  if (type < by_type.size()) {
    for (Seat* seat : by_type[type]) {
      const bool is_its =
          seat->store == trace::kNoStore || event.store == trace::kNoStore || event.store == seat->store;
      if (is_its) seat->checker->on_event(event, moment);
    }
  }
  calls += event.type == EventType::Called || event.type == EventType::BlockStored ? 1 : 0;
  if (event.type == EventType::Called) is_called[event.store] = true;
  if (event.type == EventType::RegionMeasured) count_pool_call(event);
  if (event.type == EventType::Counter) count_workload(event);
  follow_black_box(event);
  if (event.type != EventType::StepEnd) return;
  ++ended_steps;
  count_step();
  step = kNoStep;
  token = 0;
  is_decode = false;
}

void Judge::State::end_stream() {
  if (!has_ended) incomplete("the trace ends without RunEnd");
  if (unknown_types != 0) incomplete(fmt::format("{} events are of types newer than this judge", unknown_types));
  if (!model.lost_track().empty()) incomplete(std::string(model.lost_track()));
  end.complete = whys.empty();
  for (const std::string& why : whys) add_note(end.why, why);
}

RuleVerdict Judge::State::rule_verdict(const Seat& seat, const Moment& at_end) const {
  Checker& checker = *seat.checker;
  RuleVerdict verdict;
  verdict.rule = std::string(seat.rule->info.id);
  verdict.level = seat.rule->info.level;
  verdict.met = checker.met();
  verdict.violations = checker.violations();
  Moment its_end = at_end;
  its_end.is_asked = seat.is_asked;
  checker.on_end(its_end, verdict);
  verdict.met = checker.met();
  verdict.violations = checker.violations();
  verdict.shown = checker.shown();
  if (verdict.violations != 0) {
    verdict.status = Status::fail;
  } else if (verdict.status != Status::inconclusive && !end.complete) {
    verdict.status = Status::inconclusive;
    add_note(verdict.note, end.why);
  } else if (verdict.status != Status::inconclusive && verdict.met == 0) {
    verdict.status = Status::vacuous;
    add_note(verdict.note, fmt::format("not met: {}", seat.rule->info.witness));
  }
  if (!seat.request.store.empty()) add_note(verdict.note, fmt::format("store {}", seat.request.store));
  if (!seat.request.left.empty())
    add_note(verdict.note, seat.request.right.empty()
                               ? seat.request.left
                               : fmt::format("{} and {}", seat.request.left, seat.request.right));
  return verdict;
}

void Judge::State::note_sampling(CaseVerdict& verdict) const {
  if (partial_steps != 0)
    verdict.notes.push_back(fmt::format("in {} decode steps attention ran in some of the layers written, not in others",
                                        percent(partial_steps, decode_steps)));
  if (decode_steps == 0 || (attended_steps == decode_steps && recorded_steps == attended_steps)) return;
  verdict.notes.push_back(fmt::format("attention ran in {} decode steps; its outputs were recorded in {}",
                                      percent(attended_steps, decode_steps), percent(recorded_steps, decode_steps)));
}

void Judge::State::count_pool_call(const Event& event) noexcept {
  const auto region = trace::payload_of<trace::RegionMeasured>(event);
  const bool is_done = region.outcome == RefusalCode::none;
  switch (region.operation) {
    case trace::Operation::admit: ++(is_done ? admitted : not_admitted); return;
    case trace::Operation::swap_out: swaps_out += is_done ? 1 : 0; return;
    case trace::Operation::swap_in: swaps_in += is_done ? 1 : 0; return;
    default: return;
  }
}

void Judge::State::count_workload(const Event& event) noexcept {
  static const trace::NameHash kServed = trace::hash_name("requests-served");
  const auto counter = trace::payload_of<trace::Counter>(event);
  if (counter.name == kServed && trace::from_bits(counter.value_bits) == 0) ++idle_workloads;
}

void Judge::State::note_pool_calls(CaseVerdict& verdict) const {
  if (admitted + not_admitted + swaps_out + swaps_in == 0) return;
  verdict.notes.push_back(fmt::format("{} admissions and {} refused; {} sequences swapped out and {} in", admitted,
                                      not_admitted, swaps_out, swaps_in));
}

void Judge::State::follow_black_box(const Event& event) {
  switch (event.type) {
    case EventType::Called:
      if (trace::payload_of<trace::Called>(event).operation == trace::Operation::attend) black_box.clear();
      return;
    case EventType::AttentionStep: {
      const auto attended = trace::payload_of<trace::AttentionStep>(event);
      const bool is_seen = attended.first_key != trace::kNoPosition || attended.visited != 0;
      if (attended.kernel != trace::KernelKind::black_box || is_seen) return;
      ++black_box_queries;
      black_box.add(attended, event, false);
      return;
    }
    case EventType::TensorRecorded: {
      const auto recorded = trace::payload_of<trace::TensorRecorded>(event);
      if (recorded.role != trace::Plane::out) return;
      AttendedOutputs::Output* const output = black_box.find(event, recorded.position);
      if (output == nullptr || output->recorded_as) return;
      output->recorded_as = recorded.label;
      ++black_box_told;
      return;
    }
    default: return;
  }
}

/// Such attention is judged by its outputs, or by nobody.
void Judge::State::note_black_box(CaseVerdict& verdict) const {
  if (black_box_queries == 0) return;
  constexpr std::array<std::string_view, 6> kOfOutputs = {"different-output", "golden-sha256", "numeric-oracle",
                                                          "output-bound",     "same-output",   "visible-set"};
  const bool is_judged = std::ranges::any_of(verdict.rules, [&](const RuleVerdict& rule) {
    return rule.met != 0 && std::ranges::find(kOfOutputs, rule.rule) != kOfOutputs.end();
  });
  if (is_judged && black_box_told != black_box_queries)
    verdict.notes.push_back(fmt::format("outputs of {} queries of black-box attention were not told",
                                        percent(black_box_queries - black_box_told, black_box_queries)));
  if (is_judged) return;
  verdict.notes.push_back(
      fmt::format("attention of {} queries was a black box, and no rule judged its outputs", black_box_queries));
  // Whoever asks for rules knows what they are about; who asks for none is told of the whole.
  const bool is_of_all = std::ranges::none_of(seats, &Seat::is_asked);
  if (is_of_all) verdict.status = std::max(verdict.status, Status::inconclusive);
}

/// A script that builds a store and never calls it says nothing of it, whatever it says of others.
void Judge::State::judge_uncalled(CaseVerdict& verdict) const {
  if (claims.steps.empty() || verdict.status != Status::pass) return;
  for (std::size_t store = 0; store < std::min(claims.stores.size(), is_called.size()); ++store) {
    if (is_called[store]) continue;
    verdict.status = Status::vacuous;
    verdict.notes.push_back(fmt::format("store {} was never called", claims.stores[store].name));
  }
}

Judge::Judge(const trace::Claims& claims, const JudgeOptions& options)
    : state_(std::make_unique<State>(claims, options)) {}
Judge::~Judge() = default;

void Judge::on_batch(std::span<const trace::Event> events) {
  state_->digest_run(events);
  for (const Event& event : events) state_->take(event);
}

void Judge::on_event(const trace::Event& event) {
  on_batch({&event, 1});
}

void Judge::note_incomplete(std::string why) {
  state_->incomplete(std::move(why));
}

const std::vector<Costs>& Judge::costs() const noexcept {
  return state_->costs.by_store();
}

CaseVerdict Judge::finish() {
  State& state = *state_;
  state.end_stream();
  CaseVerdict verdict;
  verdict.scenario = state.claims.scenario;
  verdict.variant = state.claims.variant;
  verdict.title = state.claims.title;
  verdict.replay = state.claims.replay;
  verdict.events = state.events;
  verdict.steps = state.steps;
  verdict.digest = state.has_ended ? state.run_digest : state.digest.value();
  const Moment at_end{state.claims, state.model, kNoStep, 0, &state.end, state.names};
  for (const Seat& seat : state.seats) {
    RuleVerdict rule = state.rule_verdict(seat, at_end);
    const bool says_something = rule.met != 0 || rule.violations != 0 || seat.is_asked;
    if (says_something) verdict.rules.push_back(std::move(rule));
  }
  // A store that is lost breaks most other rules too.
  std::stable_partition(verdict.rules.begin(), verdict.rules.end(), [](const RuleVerdict& rule) {
    return rule.rule == "store-answers" && rule.status == Status::fail;
  });
  verdict.witnesses = state.witnesses.verdicts(state.end.complete);
  verdict.notes = state.whys;
  if (state.has_ended && !state.is_digest_given) verdict.notes.push_back("the run's digest was not given");
  state.note_sampling(verdict);
  state.note_pool_calls(verdict);
  verdict.status = worst_of(verdict);
  state.note_black_box(verdict);
  if (verdict.rules.empty()) {
    verdict.status = std::max(verdict.status, state.end.complete ? Status::vacuous : Status::inconclusive);
    verdict.notes.push_back("no rule met what it is about");
  } else if (state.calls == 0 && verdict.status == Status::pass) {
    verdict.status = Status::vacuous;
    verdict.notes.push_back("no store was called");
  } else if (state.idle_workloads != 0 && verdict.status == Status::pass) {
    verdict.status = Status::vacuous;
    verdict.notes.push_back("a workload served no request");
  }
  state.judge_uncalled(verdict);
  return verdict;
}

}  // namespace kvwitness::verify
