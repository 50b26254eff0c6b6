#include "kvwitness/scenarios/registry.hpp"
#include "run_case.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string_view>
#include <vector>

using namespace kvwitness;
using namespace kvwitness::scenarios;
using namespace kvwitness::scenarios::testing;

namespace {

std::vector<Script> load_library() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(library_root())) {
    if (entry.path().extension() == ".jsonc") files.push_back(entry.path());
  }
  std::ranges::sort(files);
  LoadOptions options;
  options.root = library_root();
  std::vector<Script> scripts;
  for (const std::filesystem::path& file : files) scripts.push_back(load_script(file, options));
  return scripts;
}

const std::vector<Script>& library() {
  static const std::vector<Script> kLibrary = load_library();
  return kLibrary;
}

/// Property of a witness "store.property".
std::string property_of(const std::string& witness) {
  return witness.substr(witness.find('.') + 1);
}

/// Capabilities, in any of which a property can be met; of others any store that runs the script can meet it. What the
/// law leaves to a store is no word for a store to be waited for: which of two reasons it gives, and, but of a ring,
/// where its rows lie.
const std::map<std::string_view, std::vector<trace::Capability>, std::less<>>& needed_to_meet() {
  using enum trace::Capability;
  static const std::map<std::string_view, std::vector<trace::Capability>, std::less<>> kNeeded = {
      {"window.wrapped", {ring}},
      {"append.wrapped", {ring}},
      {"append.overwrote", {sliding}},
      {"append.coded", {quantised}},
      {"edit.truncated", {truncate}},
      {"edit.evicted", {front_evict, middle_evict, renumbers}},  // which needs middle_evict
      {"edit.cleared", {clear}},
      {"edit.restored", {save}},
      {"memory.poisoned", {zero_copy}},
      {"sequence.forked", {fork}},
      {"sequence.reordered", {paged}},
      {"sequence.admitted", {paged}},
      {"sequence.swapped_out", {paged}},
      {"sequence.swapped_in", {paged}},
      {"prefix.hit", {prefixes}},
      {"block.copied", {paged}},
      {"block.reused", {paged}},
      {"view.stale_refused", {held_views}},
      {"sequences.interleaved", {sequences}},
      {"refused.corrupt", {}},
  };
  return kNeeded;
}

bool can_be_met(const Script& script, const trace::WitnessRequest& witness) {
  // Of a store of one kind everything is known.
  if (!witness.name.starts_with("sut.")) return true;
  const auto found = needed_to_meet().find(property_of(witness.name));
  if (found == needed_to_meet().end()) return true;
  return std::ranges::any_of(found->second, [&](trace::Capability one) {
    return (script.required_capabilities() & static_cast<std::uint64_t>(one)) != 0;
  });
}

}  // namespace

BOOST_AUTO_TEST_SUITE(library_scripts)

BOOST_AUTO_TEST_CASE(there_are_thirty_and_each_has_its_own_id) {
  std::set<std::string> ids;
  for (const Script& script : library()) BOOST_TEST(ids.insert(script.id).second, script.id << " twice");
  BOOST_TEST(ids.size() >= 30U);
}

BOOST_AUTO_TEST_CASE(an_id_is_where_the_file_lies) {
  for (const Script& script : library()) {
    const std::filesystem::path file = library_root() / script.file;
    BOOST_TEST(std::filesystem::relative(file, library_root()).replace_extension().string() == script.id);
  }
}

BOOST_AUTO_TEST_CASE(each_teaches_in_two_to_six_lines) {
  for (const Script& script : library()) {
    const auto lines = 1 + std::ranges::count(script.about, '\n');
    BOOST_TEST(!script.title.empty(), script.id);
    BOOST_TEST((lines >= 2 && lines <= 6), script.id << " has a lesson of " << lines << " lines");
  }
}

BOOST_AUTO_TEST_CASE(each_case_asks_for_a_rule_and_a_witness) {
  for (const Script& script : library()) {
    for (const Case& one : script.cases) {
      BOOST_TEST(!one.claims.rules.empty(), script.id);
      BOOST_TEST(!one.claims.witnesses.empty(), script.id);
    }
  }
}

BOOST_AUTO_TEST_CASE(each_witness_can_be_met_by_every_store_that_meets_what_is_required) {
  for (const Script& script : library())
    for (const Case& one : script.cases)
      for (const trace::WitnessRequest& witness : one.claims.witnesses)
        BOOST_TEST(can_be_met(script, witness), script.id << " waits for " << witness.name);
}

// What nothing asks for may stop happening unseen. Left out: what today's stores and drivers cannot do.
BOOST_AUTO_TEST_CASE(every_witness_is_asked_for_somewhere) {
  std::set<std::string, std::less<>> asked;
  for (const Script& script : library()) {
    for (const trace::WitnessRequest& witness : script.cases.front().claims.witnesses)
      asked.insert(property_of(witness.name));
  }
  const std::set<std::string_view> impossible = {"phase.by_exception", "refused.no-memory", "refused.corrupt",
                                                 "refused.stale"};
  const std::set<std::string_view> met_by_any_run = {"window.opened", "append.any", "region.measured"};
  for (const trace::WitnessInfo& witness : trace::known_witnesses()) {
    if (impossible.contains(witness.property) || met_by_any_run.contains(witness.property)) continue;
    BOOST_TEST(asked.contains(witness.property), witness.property << " is asked for by no script");
  }
}

BOOST_AUTO_TEST_CASE(the_stores_answer_every_call_as_the_scripts_expect) {
  const StoreRegistry registry = product_stores();
  for (const Script& script : library()) {
    if (script.has_tag("slow")) continue;
    for (const StoreKind& kind : registry.all()) {
      if (!meets(kind, script.required_capabilities())) continue;
      for (const Case& one : script.cases) {
        const bool waits_for_room = std::ranges::any_of(
            one.steps, [](const Step& step) { return step.operation == trace::Operation::workload; });
        const auto surprise = first_surprise(run_case(one, kind.name, registry), waits_for_room);
        BOOST_TEST(!surprise,
                   script.id << "[" << one.claims.variant << "] on " << kind.name << ", " << surprise.value_or(""));
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(each_store_meets_what_most_scripts_require) {
  const StoreRegistry registry = product_stores();
  for (const StoreKind& kind : registry.all()) {
    const auto met = std::ranges::count_if(
        library(), [&](const Script& script) { return meets(kind, script.required_capabilities()); });
    BOOST_TEST(met >= 25, kind.name << " runs " << met << " scripts only");
  }
}

BOOST_AUTO_TEST_SUITE_END()
