#include "kvwitness/scenarios/mutants.hpp"

#include "kvwitness/scenarios/generator.hpp"
#include "kvwitness/trace/digest.hpp"
#include "kvwitness/trace/error.hpp"
#include "kvwitness/trace/probe.hpp"
#include "mutants/plain_compact.hpp"
#include "mutants/plain_paged.hpp"
#include "mutants/plain_store.hpp"
#include "run_case.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cctype>
#include <map>
#include <set>

using namespace kvwitness;
using namespace kvwitness::scenarios;
using namespace kvwitness::scenarios::testing;

namespace {

const std::set<std::string_view> kRules = {
    "zero-alloc-per-token", "golden-sha256",     "different-output", "output-bound",    "position-order",
    "resident-set",         "window-exact",      "visible-set",      "stale-refusal",   "legal-refused",
    "expected-outcome",     "refusal-unchanged", "adapter-priced",   "same-output",     "numeric-oracle",
    "rope-ledger",          "bounded-memory",    "ledger-balance",   "event-grammar",   "trace-truth",
    "quantise-once",        "accounting",        "admission",        "block-reference", "non-interference",
    "pool-conservation",    "prefix-sound",      "shared-write",     "stream-order",    "suffix-relativity",
    "saved-state",          "plan-matches",      "donor-reads",       "store-answers"};

template <class Store>
StoreKind plain_kind(const std::string& name, mutants::Addressing addressing) {
  return {name, "", mutants::capabilities_of(addressing), [](const core::StoreConfig& config) {
            return Subject{std::make_unique<Store>(config), std::make_unique<core::AttentionPath>()};
          }};
}

/// The stores that mutants depart from, under the names of the product's.
StoreRegistry plain_stores() {
  StoreRegistry registry;
  registry.add(plain_kind<mutants::PlainRing>("ring", mutants::Addressing::ring));
  registry.add(plain_kind<mutants::PlainFlat>("flat", mutants::Addressing::flat));
  registry.add(plain_kind<mutants::PlainCompact>("compact", mutants::Addressing::compact));
  // Faults of these are decorators of the product's own.
  for (const std::string_view name : {"quantised", "sink-ring", "layered"}) registry.add(*product_stores().find(name));
  registry.add(
      {"paged", "", core::paged_capabilities(), [](const core::StoreConfig& config) {
         return Subject{std::make_unique<mutants::PlainPaged>(config), std::make_unique<core::AttentionPath>()};
       }});
  return registry;
}

std::vector<Case> library_cases(std::uint64_t capabilities) {
  LoadOptions options;
  options.root = library_root();
  std::vector<Case> cases;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(library_root())) {
    if (entry.path().extension() != ".jsonc") continue;
    const Script script = load_script(entry.path(), options);
    if (script.has_tag("slow") || script.has_tag("workload")) continue;
    if ((capabilities & script.required_capabilities()) != script.required_capabilities()) continue;
    cases.insert(cases.end(), script.cases.begin(), script.cases.end());
  }
  return cases;
}

/// A run without what differs between any two kinds (their names, what was planned of them, hence numbers), or between
/// two stores that do the same (how much of their memory is dead, how they count their changes).
std::vector<trace::Event> comparable(std::vector<trace::Event> events) {
  std::erase_if(events, [](const trace::Event& event) {
    using enum trace::EventType;
    const bool is_plan = event.type == PlanLayer || event.type == PlanTotal;
    return event.type == RunBegin || event.type == RunEnd || event.type == StoreCreated || event.type == Counter ||
           is_plan;
  });
  for (trace::Event& event : events) {
    if (event.type == trace::EventType::WindowOpened) {
      auto opened = trace::payload_of<trace::WindowOpened>(event);
      opened.generation = 0;
      event.payload = std::bit_cast<decltype(event.payload)>(opened);
    }
    event = trace::canonical(event);
    event.number = 0;
  }
  return events;
}

/// Of a run, what the law asks for: not where memory lies and what it has for ids, what is taken from the heap in a
/// call, nor what is told beside a refusal.
std::vector<trace::Event> lawful_part(std::vector<trace::Event> events) {
  events = comparable(std::move(events));
  std::erase_if(events, [](const trace::Event& event) {
    using enum trace::EventType;
    return event.type == Allocation || event.type == Free || event.type == Reported;
  });
  for (trace::Event& event : events) {
    if (event.type == trace::EventType::Refused) {
      auto refused = trace::payload_of<trace::Refused>(event);
      refused.held_from = refused.held_to = 0;
      event.payload = std::bit_cast<decltype(event.payload)>(refused);
    } else if (event.type == trace::EventType::RegionMeasured) {
      auto measured = trace::payload_of<trace::RegionMeasured>(event);
      measured.allocations = measured.bytes = 0;
      event.payload = std::bit_cast<decltype(event.payload)>(measured);
    }
  }
  return events;
}

/// As `comparable`, with what the probe counted.
std::vector<trace::Event> with_allocations(std::vector<trace::Event> events) {
  std::erase_if(events, [](const trace::Event& event) { return event.type != trace::EventType::RegionMeasured; });
  return events;
}

bool shows_on(const Mutant& mutant, const Case& one, const StoreRegistry& registry, const StoreRegistry& plain) {
  const auto right = run_case(one, std::string(mutant.base), plain);
  const auto wrong = run_case(one, kind_name(mutant), registry, mutant.filter);
  if (comparable(right) != comparable(wrong)) return true;
  const bool is_about_cost = mutant.killed_by == "zero-alloc-per-token";
  const auto allocated = [](const std::vector<trace::Event>& events) {
    std::vector<std::uint64_t> counts;
    for (const trace::Event& event : with_allocations(events))
      counts.push_back(trace::payload_of<trace::RegionMeasured>(event).allocations);
    return counts;
  };
  return is_about_cost && allocated(right) != allocated(wrong);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(mutant_table)

BOOST_AUTO_TEST_CASE(names_are_words_and_unique) {
  std::set<std::string_view> names;
  for (const Mutant& mutant : all_mutants()) {
    BOOST_TEST(names.insert(mutant.name).second, mutant.name << " twice");
    BOOST_TEST(std::ranges::all_of(mutant.name, [](char c) { return std::islower(c) || std::isdigit(c) || c == '-'; }));
    BOOST_TEST(!mutant.title.empty());
    BOOST_TEST(!mutant.why.empty());
  }
}

BOOST_AUTO_TEST_CASE(every_rule_is_to_kill_one_that_is_made_from_a_class_of_faults) {
  std::map<std::string_view, int> kills;
  for (const Mutant& mutant : all_mutants()) {
    BOOST_TEST(kRules.contains(mutant.killed_by), mutant.name << " is to be killed by " << mutant.killed_by);
    if (mutant.fault_class != "control") ++kills[mutant.killed_by];
  }
  for (const std::string_view rule : kRules) BOOST_TEST(kills[rule] > 0, rule << " has no mutant");
}

BOOST_AUTO_TEST_CASE(sources_are_project_and_number) {
  for (const Mutant& mutant : all_mutants()) {
    if (mutant.source.empty()) continue;
    const std::size_t hash = mutant.source.find('#');
    BOOST_REQUIRE(hash != std::string_view::npos);
    BOOST_TEST(mutant.source.substr(0, hash).find('/') != std::string_view::npos);
    BOOST_TEST(std::ranges::all_of(mutant.source.substr(hash + 1), [](char c) { return std::isdigit(c) != 0; }));
  }
}

BOOST_AUTO_TEST_CASE(twenty_classes_are_covered) {
  std::set<std::string_view> classes;
  for (const Mutant& mutant : all_mutants()) classes.insert(mutant.fault_class);
  classes.erase("control");
  BOOST_TEST(classes.size() >= 20U);
}

BOOST_AUTO_TEST_CASE(what_a_mutant_can_do_is_what_its_store_says) {
  core::StoreConfig config;
  config.layers.resize(2);
  for (core::LayerGeometry& layer : config.layers) layer.capacity = 4;
  for (const Mutant& mutant : all_mutants()) {
    const Subject subject = mutant.make(config);
    BOOST_TEST(subject.store->layout().capabilities == mutant.capabilities, mutant.name);
    BOOST_TEST(subject.store->layout().kind == mutant.base, mutant.name);
    BOOST_TEST((subject.path != nullptr), mutant.name);
    BOOST_TEST(((mutant.filter != nullptr) == (mutant.kind == MutantKind::trace)), mutant.name);
  }
}

BOOST_AUTO_TEST_CASE(they_are_registered_beside_the_products_stores) {
  const StoreRegistry registry = with_mutants(product_stores());
  BOOST_TEST(registry.all().size() == product_stores().all().size() + all_mutants().size());
  BOOST_TEST((registry.find("mutant:canary") != nullptr));
  BOOST_CHECK_THROW(with_mutants(with_mutants(product_stores())), trace::Error);
}

BOOST_AUTO_TEST_CASE(they_are_found_by_name) {
  BOOST_TEST(canary_mutant().name == "canary");
  BOOST_TEST((find_mutant("window-plus-one") != nullptr));
  BOOST_TEST((find_mutant("mutant:canary") == nullptr));
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(mutant_stores)

// If the stores that mutants depart from were wrong themselves, a kill would prove nothing.
BOOST_AUTO_TEST_CASE(their_bases_do_as_the_products_stores_in_the_library) {
  const StoreRegistry plain = plain_stores();
  const StoreRegistry product = product_stores();
  for (const StoreKind& kind : plain.all()) {
    BOOST_TEST(kind.capabilities == product.find(kind.name)->capabilities);
    for (const Case& one : library_cases(kind.capabilities)) {
      const bool same = lawful_part(run_case(one, kind.name, plain)) == lawful_part(run_case(one, kind.name, product));
      BOOST_TEST(same, one.claims.scenario << "[" << one.claims.variant << "] differs on " << kind.name);
    }
  }
}

BOOST_AUTO_TEST_CASE(their_bases_do_as_the_products_stores_in_random_scripts) {
  const StoreRegistry plain = plain_stores();
  const StoreRegistry product = product_stores();
  for (const StoreKind& kind : plain.all()) {
    for (std::uint64_t seed = 1000; seed < 1100; ++seed) {
      const Case one = random_case(seed, {kind.capabilities, true});
      const bool same = lawful_part(run_case(one, kind.name, plain)) == lawful_part(run_case(one, kind.name, product));
      BOOST_TEST(same, one.claims.scenario << " differs on " << kind.name);
    }
  }
}

BOOST_AUTO_TEST_CASE(each_mutant_does_something_else_somewhere_in_the_library) {
  const StoreRegistry registry = with_mutants(product_stores());
  const StoreRegistry plain = plain_stores();
  const bool measures = trace::probe_state() == trace::ProbeState::measuring;
  std::map<std::uint64_t, std::vector<Case>> cases;
  for (const Mutant& mutant : all_mutants()) {
    // Without the probe an allocation shows nowhere.
    if (mutant.killed_by == "zero-alloc-per-token" && !measures) continue;
    if (!cases.contains(mutant.capabilities)) cases[mutant.capabilities] = library_cases(mutant.capabilities);
    const bool shows = std::ranges::any_of(cases[mutant.capabilities],
                                           [&](const Case& one) { return shows_on(mutant, one, registry, plain); });
    BOOST_TEST(shows, mutant.name << " does what is right");
  }
}

// Whatever a mutant does wrong, it may not take the judge's process with it.
BOOST_AUTO_TEST_CASE(mutants_survive_random_scripts) {
  const StoreRegistry registry = with_mutants(product_stores());
  for (const Mutant& mutant : all_mutants()) {
    for (std::uint64_t seed = 2000; seed < 2008; ++seed) {
      const auto events = run_case(random_case(seed, {mutant.capabilities, true}), kind_name(mutant), registry);
      BOOST_TEST((events.back().type == trace::EventType::RunEnd), mutant.name);
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(mutant_traces)

BOOST_AUTO_TEST_CASE(a_trace_with_a_fault_is_whole_but_for_the_fault) {
  const StoreRegistry registry = with_mutants(product_stores());
  for (const Mutant& mutant : all_mutants()) {
    if (mutant.kind != MutantKind::trace) continue;
    const std::string base(mutant.base);
    std::vector<trace::Event> right;
    std::vector<trace::Event> wrong;
    // The first case in which something is told that the fault can be in.
    for (const Case& one : library_cases(mutant.capabilities)) {
      right = run_case(one, base, registry);
      wrong = run_case(one, base, registry, mutant.filter);
      if (wrong.size() != right.size()) break;
    }
    BOOST_TEST(std::abs(static_cast<long>(wrong.size()) - static_cast<long>(right.size())) == 1, mutant.name);
    trace::RunDigest digest;
    for (std::size_t i = 0; i + 1 < wrong.size(); ++i) {
      BOOST_TEST(wrong[i].number == i);
      digest.add(wrong[i]);
    }
    const auto end = trace::payload_of<trace::RunEnd>(wrong.back());
    BOOST_TEST(end.events == wrong.size() - 1);
    BOOST_TEST(end.digest == digest.value());
  }
}

BOOST_AUTO_TEST_SUITE_END()
