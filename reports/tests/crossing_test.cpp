// Somebody else's stores that can do everything at once, over what the library has where two features meet: no kind of
// the product's has donors and forks, or donors and sinks, or copies rows where it forks, or attends by itself.
#include "conforming.hpp"
#include "kvwitness/reports/selection.hpp"

#include <map>

using namespace kvwitness;
using namespace kvwitness::reports;
using namespace kvwitness::reports::testing;

namespace {

ConformanceResult conform_with(const std::string& fault, const std::vector<std::filesystem::path>& paths) {
  return conform_to(python({KVWITNESS_SOURCE_DIR "/reports/tests/foreign/whole.py", fault}), paths, {}, 0);
}

/// The plug-in whole.c, in one of its two kinds.
core::ForeignCommand whole(const std::string& kind, const std::string& fault = {}) {
  core::ForeignCommand command = plugin(KVWITNESS_WHOLE_PLUGIN);
  command.argv.insert(command.argv.begin(), {"/usr/bin/env", "WHOLE_KIND=" + kind, "WHOLE_FAULT=" + fault});
  return command;
}

/// A kind of the product's can do what the script requires; those run it in the tests of the library.
bool meets_a_product_store(const scenarios::Script& script) {
  static const scenarios::StoreRegistry kProduct = scenarios::product_stores();
  const std::uint64_t required = script.required_capabilities();
  return std::ranges::any_of(
      kProduct.all(), [&](const scenarios::StoreKind& kind) { return (kind.capabilities & required) == required; });
}

bool has_status(const ConformanceResult& result, const std::string& rule, verify::Status status) {
  const auto found = std::ranges::find(result.rules, rule, &RuleProfile::rule);
  return found != result.rules.end() && found->status == status;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(crossing)

BOOST_AUTO_TEST_CASE(a_store_of_everything_passes) {
  if (skips_without("python3")) return;
  const ConformanceResult result = conform_with(
      "", {kLibrary / "donors", kLibrary / "sinks", kLibrary / "fork", kLibrary / "save", kLibrary / "sequences"});
  BOOST_TEST(exit_code(result) == 0, text_of(result));
  for (const char* rule : {"donor-reads", "legal-refused", "saved-state", "non-interference", "refusal-unchanged"})
    BOOST_TEST(has_status(result, rule, verify::Status::pass), rule);
}

// What a script asks for is only known to be lawful where a correct store has met it. What the product's own stores can
// be asked, they are asked in the tests of the library.
BOOST_AUTO_TEST_CASE(each_script_meets_a_correct_store) {
  std::map<std::string, std::filesystem::path> unmet;
  for (const SelectedScript& one : load_scripts({kLibrary}, {.with_slow = true}))
    if (!meets_a_product_store(one.script)) unmet.emplace(one.script.id, one.script.file);
  BOOST_TEST(unmet.size() >= 15U);
  std::vector<std::filesystem::path> files;
  for (const auto& [id, file] : unmet) files.push_back(file);
  for (const char* kind : {"ring", "compact"}) {
    const ConformanceResult result = conform_to(whole(kind), files, {}, 0);
    BOOST_TEST(exit_code(result) == 0, text_of(result));
    for (const CaseResult& one : result.suite.cases)
      if (one.skipped_because.empty()) unmet.erase(one.scenario);
  }
  for (const auto& [id, file] : unmet) BOOST_TEST(false, id << " meets no store");
}

BOOST_AUTO_TEST_CASE(each_fault_of_attention_and_renumbering_is_blamed_by_its_rule) {
  struct Fault {
    const char* kind;
    const char* name;
    const char* rule;
    const char* script;
  };
  for (const Fault& fault : {Fault{"ring", "sinks-go-with-the-window", "visible-set", "sinks/nothing-else-left"},
                             Fault{"ring", "refuses-what-is-gone", "legal-refused", "sinks/nothing-else-left"},
                             Fault{"ring", "window-of-the-oldest-query", "visible-set", "attention/seen-from-outside"},
                             Fault{"ring", "sinks-count-as-window", "numeric-oracle", "attention/kept-sinks-edited"},
                             Fault{"ring", "chunks-lack-softcap", "numeric-oracle", "attention/bent-scores"},
                             Fault{"ring", "scale-by-head-dim", "numeric-oracle", "numeric/scale-and-softcap"},
                             Fault{"ring", "heads-in-turn", "numeric-oracle", "attention/head-shapes"},
                             Fault{"compact", "heads-in-turn", "numeric-oracle", "attention/gaps-closed"},
                             Fault{"compact", "moves-rows-of-readers", "donor-reads", "donors/gaps-closed"},
                             Fault{"compact", "rotates-rows-of-readers", "rope-ledger", "donors/gaps-closed"},
                             Fault{"compact", "raw-keys-stay", "numeric-oracle", "donors/gaps-closed"},
                             Fault{"compact", "children-lack-raw-keys", "numeric-oracle", "fork/gaps-closed-apart"}}) {
    const ConformanceResult result =
        conform_to(whole(fault.kind, fault.name), {kLibrary / (std::string(fault.script) + ".jsonc")}, {}, 0);
    BOOST_TEST(exit_code(result) == 1, fault.name);
    BOOST_TEST(has_status(result, fault.rule, verify::Status::fail), fault.name << ": " << text_of(result));
  }
}

BOOST_AUTO_TEST_CASE(each_fault_where_two_features_meet_is_blamed_by_its_rule) {
  if (skips_without("python3")) return;
  struct Fault {
    const char* name;
    const char* rule;
    const char* script;
  };
  for (const Fault& fault : {Fault{"forks-no-readers", "legal-refused", "donors/forked"},
                             Fault{"child-reads-parent", "donor-reads", "donors/forked"},
                             Fault{"child-loses-sinks", "position-order", "sinks/forked"},
                             Fault{"child-keeps-bound", "legal-refused", "sinks/forked-behind-an-eviction"},
                             Fault{"readers-see-no-sinks", "legal-refused", "donors/of-sinks"},
                             Fault{"file-without-readers-sinks", "saved-state", "donors/of-sinks-saved"},
                             Fault{"file-without-layout", "saved-state", "sinks/other-sinks"},
                             Fault{"clear-keeps-sinks-of-donors", "position-order", "donors/of-sinks-cleared"},
                             Fault{"eviction-stops-at-readers", "resident-set", "donors/front-evicted"},
                             Fault{"grandchild-shares-rows", "position-order", "fork/of-a-fork"},
                             Fault{"forks-half-a-token", "expected-outcome", "fork/in-the-middle-of-a-token"},
                             Fault{"child-forgets-bound", "legal-refused", "fork/evictions-are-inherited"},
                             Fault{"file-of-one-capacity", "legal-refused", "save/other-capacity"},
                             Fault{"file-raises-bound", "legal-refused", "save/evictions-of-the-file"},
                             Fault{"file-without-rows-is-new", "resident-set", "save/nothing-left"},
                             Fault{"clear-ends-all-tokens", "legal-refused", "sequences/half-a-token-is-ones-own"}}) {
    const ConformanceResult result = conform_with(fault.name, {kLibrary / (std::string(fault.script) + ".jsonc")});
    BOOST_TEST(exit_code(result) == 1, fault.name);
    BOOST_TEST(has_status(result, fault.rule, verify::Status::fail), fault.name << ": " << text_of(result));
  }
}

BOOST_AUTO_TEST_SUITE_END()
