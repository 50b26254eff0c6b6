/// The hash library's own choice of instruction set at run time, where it is built with one: its functions get the same
/// values three to four times as fast.
#pragma once

#if defined(__x86_64__) && __has_include(<xxh_x86dispatch.h>)
#include <xxh_x86dispatch.h>
#else
#include <xxhash.h>
#endif
