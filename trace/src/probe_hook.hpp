/// Where the library and the interposer meet. The interposer defines this symbol; the library refers to it weakly and
/// links without it.
#pragma once

#include "kvwitness/trace/probe.hpp"

/// Totals of the calling thread.
extern "C" kvwitness::trace::ProbeReading kvwitness_probe_thread_totals() noexcept;
