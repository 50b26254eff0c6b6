/// Work spread over forked processes.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

namespace kvwitness::reports {

struct Answer {
  std::string bytes;  ///< what the work returned
  std::string died;  ///< how its process ended without an answer ("signal 11 (Segmentation fault)"); empty: it answered
};

/// Calls `work` for 0 to `count` - 1 in up to `jobs` forked processes, and `done` in this one, in order of the index,
/// with what each returned. `done` tells whether to go on: after false nothing more is begun, what is under way is cut
/// off, and no later answer is handed on. Tasks are begun in order. A process that dies takes its own task with it and
/// nothing else: another one is forked. All end with this process. To be called while this process has one thread;
/// `work` must not throw. Throws std::system_error where no process can be forked.
void spread(std::size_t count, std::size_t jobs, const std::function<std::string(std::size_t)>& work,
            const std::function<bool(std::size_t, const Answer&)>& done);

}  // namespace kvwitness::reports
