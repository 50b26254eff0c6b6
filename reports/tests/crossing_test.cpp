// Somebody else's store that can do everything at once, over what the library has where two features meet: no kind of
// the product's has donors and forks, or donors and sinks, or copies rows where it forks.
#include "conforming.hpp"

using namespace kvwitness;
using namespace kvwitness::reports;
using namespace kvwitness::reports::testing;

namespace {

ConformanceResult conform_with(const std::string& fault, const std::vector<std::filesystem::path>& paths) {
  return conform_to(python({KVWITNESS_SOURCE_DIR "/reports/tests/foreign/whole.py", fault}), paths, {}, 0);
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
