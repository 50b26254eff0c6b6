/// Where the library and the interposer meet. The interposer defines these symbols; the library refers to them weakly
/// and links without them.
#pragma once

#include "kvwitness/trace/probe.hpp"

/// Totals of the calling thread.
extern "C" kvwitness::trace::ProbeReading kvwitness_probe_thread_totals() noexcept;
/// Allocations of all threads.
extern "C" std::uint64_t kvwitness_probe_process_allocations() noexcept;
