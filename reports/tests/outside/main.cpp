/// Runs one installed scenario through the installed library and reads the probe. Exit codes as `kvwitness run`; 100
/// where allocations could not be measured.

#include <kvwitness/reports/suite.hpp>
#include <kvwitness/reports/text.hpp>
#include <kvwitness/trace/probe.hpp>

#include <iostream>

int main(int argc, char** argv) {
  using namespace kvwitness;
  const bool probe_expected = argc < 2 || std::string(argv[1]) != "--no-probe";
  if (probe_expected && trace::probe_state() != trace::ProbeState::measuring) {
    std::cerr << trace::probe_state_text() << "\n";
    return 100;
  }
  const reports::SuiteResult result =
      reports::run_suite({LIBRARY_DIR "/ring/wrap-identity.jsonc"}, scenarios::product_stores(), {});
  reports::write_text(result, std::cout);
  return reports::exit_code(result);
}
