/// Texts of enumerators and flag bits, as the JSON form writes them. Private to the table.
#pragma once

#include "kvwitness/trace/event_table.hpp"

namespace kvwitness::trace {

inline constexpr EnumText kClockTexts[] = {{0, "none"}, {1, "tsc"}, {2, "mono"}};
inline constexpr EnumText kPhaseTexts[] = {{0, "load"}, {1, "prefill"}, {2, "decode"}, {3, "sample"}, {4, "module"}};
inline constexpr EnumText kOperationTexts[] = {
    {0, "none"},      {1, "append"},   {2, "window"},    {3, "read"},     {4, "attend"},  {5, "evict"},
    {6, "truncate"},  {7, "clear"},    {8, "fork"},      {9, "drop"},     {10, "save"},   {11, "restore"},
    {12, "poison"},   {13, "compare"}, {14, "mark"},     {15, "prefill"}, {16, "decode"}, {17, "trim"},
    {18, "gather"},   {19, "reorder"}, {20, "repeat"},   {21, "fault"},   {22, "create"}, {23, "release"},
    {24, "workload"}, {25, "admit"},   {26, "swap-out"}, {27, "swap-in"}, {28, "verify"}, {29, "clone"}};
inline constexpr EnumText kRefusalTexts[] = {
    {0, "ok"},           {1, "full"},        {2, "evicted"},   {3, "future"}, {4, "stale"}, {5, "unknown-sequence"},
    {6, "out-of-order"}, {7, "unsupported"}, {8, "no-memory"}, {9, "corrupt"}};
inline constexpr EnumText kScopeTexts[] = {{0, "ambient"}, {1, "model"}, {2, "forward"}};
inline constexpr EnumText kOriginTexts[] = {{0, "heap"}, {1, "arena"}, {2, "mapped"}, {3, "store"}};
inline constexpr EnumText kEvidenceTexts[] = {{0, "observed"}, {1, "declared"}, {2, "unmeasured"}};
inline constexpr EnumText kAdapterTexts[] = {{0, "gather-kv-window"}, {1, "dequantize"}, {2, "requantize"},
                                             {3, "relayout"},         {4, "copy-read"},  {5, "rotate"}};
inline constexpr EnumText kRopeTexts[] = {{0, "none"}, {1, "positions"}, {2, "ranks"}};
inline constexpr EnumText kReasonTexts[] = {
    {0, "after-refusal"}, {1, "after-edit"}, {2, "at-end"}, {3, "compare-left"}, {4, "compare-right"}};
inline constexpr EnumText kKernelTexts[] = {{0, "other"},   {1, "golden"},   {2, "online"},
                                            {3, "blocked"}, {4, "gathered"}, {5, "black-box"}};
inline constexpr EnumText kUnitTexts[] = {{0, "none"},      {1, "bytes"}, {2, "positions"}, {3, "slots"},
                                          {4, "sequences"}, {5, "ns"},    {6, "tokens"},    {7, "blocks"}};
inline constexpr EnumText kTierTexts[] = {{0, "device"}, {1, "host"}, {2, "disk"}, {3, "quantised"}};
inline constexpr EnumText kStepOutcomeTexts[] = {{0, "done"}, {1, "refused"}, {2, "aborted"}};
inline constexpr EnumText kDTypeTexts[] = {{0, "none"}, {1, "f32"},  {2, "f16"},    {3, "bf16"},
                                           {4, "q8-0"}, {5, "q4-0"}, {6, "rotated"}};
inline constexpr EnumText kPlaneTexts[] = {{0, "q"},     {1, "k"},    {2, "v"},        {3, "both"},    {4, "out"},
                                           {5, "k-raw"}, {6, "none"}, {7, "k-scales"}, {8, "v-scales"}};
inline constexpr EnumText kBlockOrderTexts[] = {{0, "free-first"}, {1, "queue"}, {2, "any"}};
inline constexpr EnumText kAdmissionTexts[] = {{0, "reservation"}, {1, "prompt"}, {2, "chunk"}};
inline constexpr EnumText kPublishingTexts[] = {{0, "prompt"}, {1, "filled"}, {2, "any"}};
inline constexpr EnumText kCapabilityTexts[] = {
    {1ULL << 0, "ring"},         {1ULL << 1, "sliding"},    {1ULL << 2, "truncate"},  {1ULL << 3, "front-evict"},
    {1ULL << 4, "middle-evict"}, {1ULL << 5, "clear"},      {1ULL << 6, "zero-copy"}, {1ULL << 7, "sequences"},
    {1ULL << 8, "held-views"},   {1ULL << 9, "fork"},       {1ULL << 10, "save"},     {1ULL << 11, "prefixes"},
    {1ULL << 12, "paged"},       {1ULL << 13, "quantised"}, {1ULL << 14, "sinks"},    {1ULL << 15, "attend"},
    {1ULL << 16, "renumbers"},   {1ULL << 17, "donors"}};

}  // namespace kvwitness::trace
