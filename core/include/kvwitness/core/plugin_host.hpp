/// Serves a plug-in (kvwitness/store.h) over the store protocol (core/PROTOCOL.md).
#pragma once

#include <string>

namespace kvwitness::core {

/// Answers requests from `input` on `output` until `input` ends; descriptors. What the plug-in writes to standard
/// output meanwhile goes to standard error. Answers tell what each call allocated, where the program has the probe.
/// Returns the exit status: 0, or 2 where the plug-in cannot be loaded or a request is none, which is said on standard
/// error.
[[nodiscard]] int serve_plugin(const std::string& file, int input, int output);

}  // namespace kvwitness::core
