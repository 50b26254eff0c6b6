/// A process between us and a program that we start, which leaves nothing behind of what that program starts.
#pragma once

#include <sys/types.h>

namespace kvwitness::core {

/// Starts argv[0] (a list that ends in nullptr) under a keeper, with `input` and `output` as its standard input and
/// output, in a process group of its own. Returns the keeper, a child of the calling thread, or -1 with errno.
///
/// The keeper ends as the program does, with its status or by its signal; where the program cannot be started, with
/// status 127. Before that it ends every process that descends from the program, whichever group or session it is in:
/// orphans come to the keeper (PR_SET_CHILD_SUBREAPER, prctl(2)). It ends them all as well when it is sent SIGTERM, and
/// when the calling thread ends, however that comes about (PR_SET_PDEATHSIG).
[[nodiscard]] pid_t start_kept(char* const* argv, int input, int output) noexcept;

}  // namespace kvwitness::core
