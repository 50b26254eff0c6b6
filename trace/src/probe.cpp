#include "kvwitness/trace/probe.hpp"

#include "probe_canary.hpp"
#include "probe_hook.hpp"

#include <sys/resource.h>

#include <string>

#pragma weak kvwitness_probe_thread_totals
#pragma weak kvwitness_probe_process_allocations

namespace kvwitness::trace {
namespace {

bool is_linked() noexcept {
  return &kvwitness_probe_thread_totals != nullptr;
}

struct Verdict {
  ProbeState state;
  std::string text;
};

Verdict try_probe() {
  if (!is_linked()) return {ProbeState::not_linked, "unmeasured: the probe is not linked"};
  const std::string_view missed = first_miscounted(release_canary());
  if (missed.empty()) return {ProbeState::measuring, "measuring"};
  return {ProbeState::canary_failed, "unmeasured: the probe does not count " + std::string(missed)};
}

const Verdict& verdict() {
  static const Verdict remembered = try_probe();
  return remembered;
}

}  // namespace

ProbeState probe_state() {
  return verdict().state;
}

std::string_view probe_state_text() {
  return verdict().text;
}

ProbeReading probe_reading() noexcept {
  return is_linked() ? kvwitness_probe_thread_totals() : ProbeReading{};
}

std::uint64_t probe_process_allocations() noexcept {
  return is_linked() ? kvwitness_probe_process_allocations() : 0;
}

std::uint64_t thread_minor_faults() noexcept {
  rusage usage{};
  return getrusage(RUSAGE_THREAD, &usage) == 0 ? static_cast<std::uint64_t>(usage.ru_minflt) : 0;
}

}  // namespace kvwitness::trace
