/// A KV store as a plug-in: the C ABI by which `kvwitness conform --plugin ./libmine.so` reaches a store of yours.
///
/// Plain C99, no dependencies. Export one function, `kvw_plugin_v1`, which returns a table of functions:
///
///     const struct kvw_plugin *kvw_plugin_v1(void) { static const struct kvw_plugin table = { ... }; return &table; }
///
/// The name of the function is the version of this interface. Structs begin with their size, as the side that filled
/// them knows it: members are added at the end only, and a table that is shorter than a call needs is refused with a
/// word. The plug-in runs in a process of its own, so that whatever it does is found and told.
///
/// What a correct store does in each call is the law in trace/events.md; what follows says only how it is told. Rows are
/// f32, [count][kv_heads * head_dim], contiguous. Positions count from 0; 32 bits suffice for each. All pointers that
/// the host passes are valid during the call; pointers that the plug-in hands out are valid until the next call on the
/// same store. Calls come from one thread, one at a time. Functions that say "optional" may be null where the capability
/// is not declared.
#ifndef KVWITNESS_STORE_H
#define KVWITNESS_STORE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Answers of calls: 0, or why nothing was done. A refusal changes nothing.
enum kvw_code {
  KVW_OK = 0,
  KVW_FULL = 1,             ///< no room, or a chunk longer than the ring can serve
  KVW_EVICTED = 2,          ///< a position asked for is no longer held
  KVW_FUTURE = 3,           ///< a position asked for was never appended
  KVW_STALE = 4,            ///< unused here: windows are copied before the next call
  KVW_UNKNOWN_SEQUENCE = 5,
  KVW_OUT_OF_ORDER = 6,     ///< layer out of order; edit in the middle of a token; range upside down
  KVW_UNSUPPORTED = 7,
  KVW_NO_MEMORY = 8,
  KVW_CORRUPT = 9
};

/// What a store can do; bits of kvw_plugin.capabilities. Each that is declared is held against the store, and each must
/// be met by some scenario.
enum kvw_capability {
  KVW_CAN_RING = 1 << 0,           ///< slot = position mod capacity
  KVW_CAN_SLIDE = 1 << 1,          ///< a full layer overwrites its oldest position
  KVW_CAN_TRUNCATE = 1 << 2,
  KVW_CAN_FRONT_EVICT = 1 << 3,    ///< the oldest positions go, the others keep theirs; not with KVW_CAN_RENUMBER
  KVW_CAN_MIDDLE_EVICT = 1 << 4,
  KVW_CAN_CLEAR = 1 << 5,
  KVW_CAN_SEQUENCES = 1 << 7,      ///< more than one sequence
  KVW_CAN_FORK = 1 << 9,           ///< needs fork, and KVW_CAN_SEQUENCES
  KVW_CAN_SAVE = 1 << 10,          ///< needs save, restore
  KVW_CAN_SINKS = 1 << 14,
  KVW_CAN_ATTEND = 1 << 15,        ///< brings its own attention; needs attend
  KVW_CAN_RENUMBER = 1 << 16,      ///< what lies behind an evicted range takes its positions; needs
                                   ///< KVW_CAN_MIDDLE_EVICT, excludes KVW_CAN_SLIDE and KVW_CAN_SINKS
  KVW_CAN_DONORS = 1 << 17         ///< a layer may read another one's rows
};

#define KVW_NO_SLOT 0xffffffffu    ///< a slot that is not told; a plug-in that declares `ring` tells them
#define KVW_NO_WINDOW 0u           ///< full causal attention
#define KVW_NO_DONOR 0xffffffffu

/// One layer. Query head h reads kv head h / (q_heads / kv_heads).
struct kvw_layer {
  uint32_t q_heads;
  uint32_t kv_heads;
  uint32_t head_dim;
  uint32_t capacity;    ///< slots per sequence
  uint32_t window;      ///< keys that a query sees, itself included; KVW_NO_WINDOW
  uint32_t sinks;       ///< first positions that are kept for ever
  uint32_t donor;       ///< layer whose rows it reads; KVW_NO_DONOR
  uint32_t sliding;     ///< 0 or 1
  double rope_theta;    ///< 0: keys carry no rotation; else they come rotated to their positions (half-split pairs)
  float score_scale;
};

/// What a store is built from.
struct kvw_config {
  size_t size;          ///< sizeof(struct kvw_config)
  uint32_t sequences;   ///< ids 0 .. sequences - 1
  uint32_t layer_count;
  size_t layer_size;    ///< sizeof(struct kvw_layer): how far apart the layers lie
  const struct kvw_layer *layers;
  float softcap;        ///< 0: none
};

/// Positions [first, first + count) in slots [slot, slot + count).
struct kvw_piece {
  uint32_t first;
  uint32_t count;
  uint32_t slot;
};

/// A part of a window: a piece and where its rows lie, `stride` values apart.
struct kvw_run {
  struct kvw_piece piece;
  const float *k;
  const float *v;
  size_t k_stride;
  size_t v_stride;
};

/// Rows that an edit moved inside a layer.
struct kvw_move {
  uint32_t layer;
  uint32_t from_position;
  uint32_t to_position;
  uint32_t from_slot;
  uint32_t to_slot;
  uint32_t count;
};

/// Keys that an edit rotated: row i lies at position + i in slot + i and was rotated, from its raw row, to applied + i.
/// In halves, to the bit: angle position * theta^(-2j / head_dim), cosine and sine in double, these rounded to f32, then
/// f32 products and sums, none fused.
struct kvw_rotation {
  uint32_t layer;
  uint32_t position;
  uint32_t slot;
  uint32_t applied;
  uint32_t count;
};

struct kvw_rows {
  const float *k;
  const float *v;
  const float *k_raw;   ///< keys before rotation, of layers with rope; else null
  uint32_t count;
};

/// What an append did. Zeroed by the host.
struct kvw_appended {
  const struct kvw_piece *pieces;       ///< where the rows were put, ascending
  size_t piece_count;
  const struct kvw_piece *overwritten;  ///< positions that were lost to them, with their slots
  size_t overwritten_count;
};

/// What an edit did. Zeroed by the host.
struct kvw_edited {
  uint32_t freed;       ///< positions that are gone, of the layer that lost most
  const struct kvw_move *moves;
  size_t move_count;
  const struct kvw_rotation *rotations;
  size_t rotation_count;
};

/// Memory that a layer's rows lie in, from create to destroy. A store may have 65,536 of them. Slots count from 0 and
/// lie below kvw_layer.capacity; or, where a layer's storages of K have room for more rows than that for each sequence
/// (padded to a power of two, or mirrored), below as many.
struct kvw_storage {
  uint32_t layer;
  uint32_t plane;       ///< 0: K, 1: V, 2: K before rotation
  uint64_t bytes;
};

/// Zeroed by the host.
struct kvw_memory {
  const struct kvw_storage *storages;   ///< the same ones, from create to destroy
  size_t storage_count;
  uint64_t used_bytes;                  ///< of rows that are resident now
  uint64_t resident_positions;          ///< over all sequences and layers
};

/// The plug-in. `self` is what `create` returned.
struct kvw_plugin {
  size_t size;                          ///< sizeof(struct kvw_plugin)
  const char *name;
  uint64_t capabilities;                ///< bits of kvw_capability

  /// Null where such a store cannot be built; `error` [room] then has the reason.
  void *(*create)(const struct kvw_config *config, char *error, size_t room);
  void (*destroy)(void *self);
  void (*memory)(void *self, struct kvw_memory *out);

  /// Positions [*from, *to) that the layer holds, besides its sinks.
  int (*extent)(void *self, uint32_t sequence, uint32_t layer, uint32_t *from, uint32_t *to);
  int (*append)(void *self, uint32_t sequence, uint32_t layer, const struct kvw_rows *rows, struct kvw_appended *out);
  /// Copies the rows of [from, to) out, [to - from][kv_heads * head_dim] each, and writes nothing else there, nor
  /// around it. Enough for stores whose rows are not in
  /// this process's memory.
  int (*read)(void *self, uint32_t sequence, uint32_t layer, uint32_t from, uint32_t to, float *k, float *v);
  int (*truncate)(void *self, uint32_t sequence, uint32_t to, struct kvw_edited *out);
  int (*evict)(void *self, uint32_t sequence, uint32_t from, uint32_t to, struct kvw_edited *out);
  int (*clear)(void *self, uint32_t sequence, struct kvw_edited *out);

  /// Optional. The rows of [from, to), the sinks below it first, as runs [room], oldest first; *used of them. There is
  /// room for one run a slot of the layer, and for 64 at least. A row that lies in two places, as in a mirrored ring, has
  /// the slot that its piece told: rows that lie in one piece round a ring's end are two runs, and so are those whose
  /// slots do not follow each other. Null: windows are read.
  int (*window)(void *self, uint32_t sequence, uint32_t layer, uint32_t from, uint32_t to, struct kvw_run *runs,
                size_t room, size_t *used);
  /// Optional. Attention of queries [count][q_heads * head_dim] at positions first, first + 1, ..., the last ones of the
  /// layer, over what it holds: each sees the sinks, and its window as far as that is held; one that sees no key gets
  /// zeros. `out` is as `q`.
  int (*attend)(void *self, uint32_t sequence, uint32_t layer, uint32_t first, uint32_t count, const float *q,
                float *out);
  /// Optional. The sequence as a file, *bytes of it, valid until the next call; and positions [*from, *to) of the layer
  /// that reaches back farthest, besides its sinks. Changes nothing.
  int (*save)(void *self, uint32_t sequence, const void **file, size_t *bytes, uint32_t *from, uint32_t *to);
  int (*restore)(void *self, uint32_t sequence, const void *file, size_t bytes, uint32_t *from, uint32_t *to);

  // Added later: a table that ends in front of here is as good as one with null.
  /// Optional. Makes `child`, which holds nothing, what `sequence` is up to position `to`. Each goes its own way then.
  int (*fork)(void *self, uint32_t sequence, uint32_t child, uint32_t to);
};

/// To be exported by the plug-in; the table lives as long as the process.
#if defined(__GNUC__)
__attribute__((visibility("default")))
#endif
const struct kvw_plugin *kvw_plugin_v1(void);

#ifdef __cplusplus
}
#endif

#endif
