/*
 * kvwitness/emit.h: writes traces from C, so that `kvwitness check` can judge a KV cache of any engine.
 *
 * One header, C99 (or C++), nothing but the standard library. Events go into a ring of records that the caller owns;
 * putting one there copies 64 bytes and calls nothing. `kvw_drain` writes what is in the ring as JSON lines, to be
 * called where the time does not matter; a full ring is drained at once. One emitter belongs to one thread.
 *
 * The functions follow the grammar of trace/events.md, which says what a correct cache tells, and when:
 *
 *     kvw_begin; kvw_store for each store;
 *     ( kvw_step_begin ( call )* kvw_step_end )*
 *     kvw_state for each sequence that holds something and layer; kvw_end
 *
 * where a call is kvw_call, what was done or kvw_refused, and kvw_call_end; after an edit, a fork or a refusal
 * kvw_state of each layer of the sequence (of a fork: the child) follows. What was done, in this order:
 *
 *     append      kvw_row for each row given, kvw_overwrote, kvw_appended for each piece
 *     window      kvw_adapter for each side and kvw_rotated for each key, where they were copied out or rotated for it;
 *                 kvw_opened, kvw_run for each piece
 *     attend      kvw_attended or kvw_attended_sinks for each query
 *     truncate    kvw_truncated          clear  kvw_cleared
 *     evict       kvw_moved and kvw_rotated for what moved, kvw_survivor for what was renumbered, kvw_evicted
 *     fork        kvw_forked; begun by kvw_call_fork
 *
 * Digests are optional: give 0, and rules that compare rows are inconclusive. A digest of rows is the sum of the
 * digests of single rows modulo 2^64, and each depends on the row's bytes and its position; any good hash will do, as
 * long as one trace keeps to one. kvw_row_digest is one. Rows are bytes in the layer's own format, f32, f16 or bf16:
 * digest them as they lie, the rows given too.
 *
 * Errors of writing are kept: kvw_end returns 0 only where every line was written.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef KVWITNESS_EMIT_H
#define KVWITNESS_EMIT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

#define KVW_NO_SEQUENCE 0xffffffffu
#define KVW_NO_LAYER 0xffffu
#define KVW_NO_STORE 0xffu
#define KVW_NO_POSITION 0xffffffffu                 /* and no slot */
#define KVW_OUTSIDE ((uint64_t)0xffffffffffffffffu) /* of rows that lie in none of the store's storages */

/* clang-format off */
/* Type ids, as trace/events.md names them. */
enum {
  KVW_RUN_BEGIN = 1, KVW_RUN_END = 2, KVW_STEP_BEGIN = 8, KVW_STEP_END = 9, KVW_REFUSED = 11, KVW_STORE_CREATED = 12,
  KVW_LAYER_DECLARED = 13, KVW_LAYER_FORMAT = 14, KVW_ALLOCATION = 18, KVW_FREE = 19, KVW_REGION_MEASURED = 21,
  KVW_APPEND = 22, KVW_ROW_DIGESTS = 23, KVW_OVERWRITE = 24, KVW_MOVE = 25, KVW_ROTATE = 26, KVW_EVICT = 28,
  KVW_TRUNCATE = 29, KVW_CLEAR = 30, KVW_FORK = 31, KVW_WINDOW_OPENED = 49, KVW_WINDOW_RUN = 50,
  KVW_WINDOW_CLOSED = 51, KVW_ADAPTER_INSERTED = 53, KVW_ATTENTION_STEP = 54, KVW_ATTENTION_RUN = 55,
  KVW_STATE_DIGEST = 59, KVW_CALLED = 60
};

/* What a call or a step is for. */
enum kvw_operation {
  KVW_OP_APPEND = 1, KVW_OP_WINDOW = 2, KVW_OP_ATTEND = 4, KVW_OP_EVICT = 5, KVW_OP_TRUNCATE = 6, KVW_OP_CLEAR = 7,
  KVW_OP_FORK = 8, KVW_OP_PREFILL = 15, KVW_OP_DECODE = 16
};

/* Why a call was refused. */
enum kvw_refusal {
  KVW_NOT_REFUSED = 0, KVW_REFUSED_FULL = 1, KVW_REFUSED_EVICTED = 2, KVW_REFUSED_FUTURE = 3, KVW_REFUSED_STALE = 4, KVW_REFUSED_UNKNOWN_SEQUENCE = 5,
  KVW_REFUSED_OUT_OF_ORDER = 6, KVW_REFUSED_UNSUPPORTED = 7, KVW_REFUSED_NO_MEMORY = 8
};

/* What a store can do, added up. */
enum kvw_trait {
  KVW_HAS_RING = 1, KVW_HAS_SLIDING = 2, KVW_HAS_TRUNCATE = 4, KVW_HAS_FRONT_EVICT = 8, KVW_HAS_MIDDLE_EVICT = 16,
  KVW_HAS_CLEAR = 32, KVW_HAS_ZERO_COPY = 64, KVW_HAS_SEQUENCES = 128, KVW_HAS_HELD_VIEWS = 256, KVW_HAS_FORK = 512,
  KVW_HAS_SINKS = 16384, KVW_HAS_RENUMBERS = 65536
};

/* When a state was read back. */
enum kvw_reason { KVW_AFTER_REFUSAL = 0, KVW_AFTER_EDIT = 1, KVW_AT_END = 2 };

/* Formats of rows, as they are given and lie. */
enum kvw_dtype { KVW_F32 = 1, KVW_F16 = 2, KVW_BF16 = 3 };

/* How keys lie: as they are, or rotated to their positions before they are appended; or rotated by each window to their
 * ranks in it. */
enum kvw_rope { KVW_ROPE_NONE = 0, KVW_ROPE_POSITIONS = 1, KVW_ROPE_RANKS = 2 };

/* Sides of a layer. */
enum kvw_plane { KVW_K = 1, KVW_V = 2, KVW_K_RAW = 5 };

/* Why rows were copied: handed out by a window, or, keys of KVW_ROPE_RANKS, rotated for it. */
enum kvw_copy { KVW_COPY_READ = 4, KVW_COPY_ROTATE = 5 };

/* clang-format on */

/* One event: what a ring is made of. Payloads are words of the type's own fields, packed as its table below says. */
typedef struct kvw_record {
  uint64_t number;
  uint64_t time;
  uint32_t sequence;
  uint16_t layer;
  uint8_t store;
  uint8_t type;
  uint64_t payload[5];
} kvw_record;

/* An emitter. Made by kvw_begin; its members are its own. */
typedef struct kvw_emitter {
  FILE* out;
  kvw_record* ring;
  size_t capacity;
  size_t used;
  uint64_t next_number;
  uint64_t steps;
  uint64_t next_storage;
  uint32_t next_view;
  int failed;
  /* The step and the call under way. */
  uint32_t step, token, step_sequence, step_operation;
  uint8_t step_store;
  uint32_t call_sequence, call_operation, call_outcome;
  uint16_t call_layer;
  uint8_t call_store;
  uint32_t call_queries; /* that were told */
  uint16_t moving_layer;
  uint32_t moved, moved_most; /* rows, in that layer and in any, in the call */
  uint64_t keeps_raw_keys[4]; /* a bit for each store */
} kvw_emitter;

/* A layer of a store. Sizes of rows are those of one position, all heads, in bytes. */
typedef struct kvw_trace_layer {
  uint32_t capacity; /* slots */
  uint32_t window;   /* keys that a query sees, itself included; 0: all that came before */
  uint32_t sliding;  /* 1: the oldest rows are overwritten when it is full */
  uint32_t sinks;    /* first positions that are kept for ever */
  uint32_t q_heads;
  uint32_t kv_heads;
  uint32_t head_dim;
  uint32_t type; /* kvw_dtype, of K and V */
  uint64_t k_row_bytes;
  uint64_t v_row_bytes;
  float score_scale; /* a score is (q . k) times this */
  uint32_t rope;     /* kvw_rope */
  double rope_theta; /* pair j of a head turns by position * rope_theta^(-2j / head_dim); 0: by other angles, or none */
} kvw_trace_layer;

/* ---- putting events into the ring -------------------------------------------------------------------------------- */

static inline int kvw_drain(kvw_emitter* e);

/* Where the next record's payload is to be written; it is zero. */
static inline uint64_t* kvw_put(kvw_emitter* e, uint8_t type, uint8_t store, uint32_t sequence, uint16_t layer) {
  kvw_record* record;
  if (e->used == e->capacity) (void)kvw_drain(e);
  record = &e->ring[e->used++];
  record->number = e->next_number++;
  record->time = 0;
  record->sequence = sequence;
  record->layer = layer;
  record->store = store;
  record->type = type;
  record->payload[0] = record->payload[1] = record->payload[2] = record->payload[3] = record->payload[4] = 0;
  return record->payload;
}

/* Two 32-bit fields that share a word, the first one in the low half. */
static inline uint64_t kvw_pair(uint32_t low, uint32_t high) {
  return (uint64_t)high << 32 | low;
}

static inline uint64_t kvw_text(const char* text) {
  return (uint64_t)(uintptr_t)text;
}

/* Starts a trace. `ring` has `capacity` records, at least 1, and outlives the emitter, as `out` and all names do. Names
 * are UTF-8. `producer` names the engine and its version, `scenario` the run. */
static inline void kvw_begin(kvw_emitter* e, FILE* out, kvw_record* ring, size_t capacity, const char* producer,
                             const char* scenario);

/* Bytes of a plane of a layer, over all sequences. */
static inline uint64_t kvw_plane_bytes(const kvw_trace_layer* layer, uint32_t plane, uint32_t sequences) {
  return (plane == KVW_V ? layer->v_row_bytes : layer->k_row_bytes) * layer->capacity * sequences;
}

/* The planes of a layer one after the other, then 0: K, V, and the keys before rotation, which a store keeps that
 * renumbers rotated ones. */
static inline uint32_t kvw_plane_at(const kvw_emitter* e, uint8_t store, const kvw_trace_layer* layer, uint32_t index) {
  const int has_raw = layer->rope == KVW_ROPE_POSITIONS && (e->keeps_raw_keys[store / 64] >> store % 64 & 1) != 0;
  if (index < 2) return index == 0 ? KVW_K : KVW_V;
  return index == 2 && has_raw ? KVW_K_RAW : 0;
}

/* Declares a store of `layers` layers for `sequences` sequences; stores count from 0 in the order of their calls. Each
 * of its planes counts as one storage, taken now: of each layer K and V, and the keys before rotation where the store
 * renumbers and rotates. Layers that slide or have sinks say what it can do. */
static inline void kvw_store(kvw_emitter* e, uint8_t store, const char* name, const char* kind, uint64_t capabilities,
                             uint32_t sequences, const kvw_trace_layer* layers, uint16_t layer_count) {
  uint16_t i;
  uint64_t* p = kvw_put(e, KVW_STORE_CREATED, store, KVW_NO_SEQUENCE, KVW_NO_LAYER);
  p[0] = kvw_text(name);
  p[1] = kvw_text(kind);
  for (i = 0; i < layer_count; ++i) {
    if (layers[i].sliding != 0) capabilities |= KVW_HAS_SLIDING;
    if (layers[i].sinks != 0) capabilities |= KVW_HAS_SINKS;
  }
  p[2] = capabilities;
  p[3] = kvw_pair(layer_count, sequences);
  for (i = 0; i < layer_count; ++i) {
    const kvw_trace_layer* l = &layers[i];
    p = kvw_put(e, KVW_LAYER_DECLARED, store, KVW_NO_SEQUENCE, i);
    p[0] = kvw_pair(l->capacity, l->window);
    p[1] = kvw_pair(l->window != 0 ? 1 : 0, l->sinks);
    p[2] = kvw_pair(l->q_heads, l->kv_heads);
    p[3] = kvw_pair(l->head_dim, 0);
    p[4] = kvw_pair(l->sliding, l->rope);
  }
  for (i = 0; i < layer_count; ++i) {
    uint32_t scale;
    memcpy(&scale, &layers[i].score_scale, sizeof scale);
    p = kvw_put(e, KVW_LAYER_FORMAT, store, KVW_NO_SEQUENCE, i);
    p[0] = layers[i].k_row_bytes;
    p[1] = layers[i].v_row_bytes;
    p[2] = kvw_pair(scale, 0);
    p[3] = (uint64_t)layers[i].type | (uint64_t)layers[i].type << 16 | (uint64_t)i << 32;
    if (layers[i].rope != KVW_ROPE_NONE) memcpy(&p[4], &layers[i].rope_theta, sizeof p[4]);
  }
  if ((capabilities & KVW_HAS_RENUMBERS) != 0) e->keeps_raw_keys[store / 64] |= (uint64_t)1 << store % 64;
  for (i = 0; i < layer_count; ++i) {
    uint32_t index, plane;
    for (index = 0; (plane = kvw_plane_at(e, store, &layers[i], index)) != 0; ++index) {
      p = kvw_put(e, KVW_ALLOCATION, store, KVW_NO_SEQUENCE, i);
      p[0] = ++e->next_storage;
      p[1] = kvw_plane_bytes(&layers[i], plane, sequences);
      p[3] = (uint64_t)1 | (uint64_t)1 << 32 | (uint64_t)3 << 48; /* one piece, scope model, origin store */
      p[4] = kvw_pair(1, plane);                                  /* declared */
    }
  }
}

/* Begins what the engine does for one token (decode), or one chunk of a prompt (prefill): everything that is called for
 * it stands between begin and end. `step` counts what the engine was asked for, `token` inside of it. */
static inline void kvw_step_begin(kvw_emitter* e, uint8_t store, uint32_t sequence, enum kvw_operation operation,
                                  uint32_t step, uint32_t token) {
  uint64_t* p = kvw_put(e, KVW_STEP_BEGIN, store, sequence, KVW_NO_LAYER);
  p[0] = kvw_pair(step, token);
  p[1] = kvw_pair((uint32_t)operation, 0);
  e->step = step;
  e->token = token;
  e->step_store = store;
  e->step_sequence = sequence;
  e->step_operation = (uint32_t)operation;
}

static inline void kvw_step_end(kvw_emitter* e) {
  uint64_t* p = kvw_put(e, KVW_STEP_END, e->step_store, e->step_sequence, KVW_NO_LAYER);
  p[1] = kvw_pair(e->step, e->token);
  p[2] = kvw_pair(e->step_operation, 0);
  ++e->steps;
}

static inline void kvw_put_call(kvw_emitter* e, enum kvw_operation operation, uint8_t store, uint32_t sequence,
                                uint16_t layer, uint32_t from, uint32_t to, uint32_t view, uint32_t count,
                                uint32_t ordinal) {
  uint64_t* p = kvw_put(e, KVW_CALLED, store, sequence, layer);
  p[1] = kvw_pair((uint32_t)operation, from);
  p[2] = kvw_pair(to, view);
  p[3] = kvw_pair(count, ordinal);
  e->call_operation = (uint32_t)operation;
  e->call_store = store;
  e->call_sequence = sequence;
  e->call_layer = layer;
  e->call_outcome = KVW_NOT_REFUSED;
  e->call_queries = 0;
  e->moving_layer = KVW_NO_LAYER;
  e->moved_most = 0;
}

/* Begins a call. `from`, `to`: of a window the positions asked for, of an eviction those to drop, of a truncation `to`
 * the new end, of attention the queries' positions, of an append to a layer of KVW_ROPE_POSITIONS those that its keys
 * were rotated to; `view` of attention the window; `count`: rows appended, or queries. What the operation does not use
 * is 0. `layer` is KVW_NO_LAYER for edits. */
static inline void kvw_call(kvw_emitter* e, enum kvw_operation operation, uint8_t store, uint32_t sequence,
                            uint16_t layer, uint32_t from, uint32_t to, uint32_t view, uint32_t count) {
  kvw_put_call(e, operation, store, sequence, layer, from, to, view, count, 0);
}

/* Begins the call that makes `child`, which holds nothing yet, a copy of `parent` up to position `to`. */
static inline void kvw_call_fork(kvw_emitter* e, uint8_t store, uint32_t parent, uint32_t child, uint32_t to) {
  kvw_put_call(e, KVW_OP_FORK, store, parent, KVW_NO_LAYER, 0, to, 0, 0, child);
}

/* Ends it, with what the refusal said, if there was one. */
static inline void kvw_call_end(kvw_emitter* e) {
  uint64_t* p = kvw_put(e, KVW_REGION_MEASURED, e->call_store, e->call_sequence, e->call_layer);
  p[2] = kvw_pair(e->call_operation, 2); /* nothing was measured */
  p[3] = kvw_pair(e->call_outcome, 0);
}

static inline void kvw_refused(kvw_emitter* e, enum kvw_refusal reason, uint32_t asked_from, uint32_t asked_to,
                               uint32_t held_from, uint32_t held_to, uint32_t view) {
  uint64_t* p = kvw_put(e, KVW_REFUSED, e->call_store, e->call_sequence, e->call_layer);
  p[0] = kvw_pair(e->call_operation, (uint32_t)reason);
  p[1] = kvw_pair(asked_from, asked_to);
  p[2] = kvw_pair(held_from, held_to);
  p[3] = kvw_pair(view, 0);
  e->call_outcome = (uint32_t)reason;
}

/* In an append: the digest of one of the rows given, in their order. */
static inline void kvw_row(kvw_emitter* e, uint32_t position, uint64_t k_digest, uint64_t v_digest) {
  uint64_t* p = kvw_put(e, KVW_ROW_DIGESTS, e->call_store, e->call_sequence, e->call_layer);
  p[0] = k_digest;
  p[1] = v_digest;
  p[4] = kvw_pair(position, 1);
}

/* In an append: positions [first, first + count) in slots from `slot` are lost to the row at `by`. */
static inline void kvw_overwrote(kvw_emitter* e, uint32_t first, uint32_t count, uint32_t slot, uint32_t by) {
  uint64_t* p = kvw_put(e, KVW_OVERWRITE, e->call_store, e->call_sequence, e->call_layer);
  p[0] = kvw_pair(first, count);
  p[1] = kvw_pair(slot, by);
}

/* In an append: rows [first, first + count) now lie in slots from `slot`; `bytes` of K and V together, `held_from` the
 * first position that the layer holds after the whole append. */
static inline void kvw_appended(kvw_emitter* e, uint32_t first, uint32_t count, uint32_t slot, uint32_t held_from,
                                uint64_t bytes, uint64_t k_digest, uint64_t v_digest) {
  uint64_t* p = kvw_put(e, KVW_APPEND, e->call_store, e->call_sequence, e->call_layer);
  p[0] = bytes;
  p[1] = k_digest;
  p[2] = v_digest;
  p[3] = kvw_pair(first, count);
  p[4] = kvw_pair(slot, held_from);
}

/* In a window, in front of kvw_opened: one side of its `rows` rows, sinks included, was copied out. `bytes_before`: as
 * the rows lie, `bytes_after`: as they were handed out, in the formats `from` and `to`. Rows in another format than the
 * layer's have no digests. */
static inline void kvw_adapter(kvw_emitter* e, enum kvw_copy kind, enum kvw_plane plane, uint32_t rows,
                               enum kvw_dtype from, uint64_t bytes_before, enum kvw_dtype to, uint64_t bytes_after) {
  uint64_t* p = kvw_put(e, KVW_ADAPTER_INSERTED, e->call_store, e->call_sequence, e->call_layer);
  p[0] = bytes_before;
  p[1] = bytes_after;
  p[2] = kvw_pair((uint32_t)kind, (uint32_t)plane);
  p[3] = kvw_pair(e->next_view + 1, 0); /* observed */
  p[4] = (uint64_t)from | (uint64_t)to << 16 | (uint64_t)rows << 32;
}

/* In an eviction that renumbers, ascending in each layer: the key at `position`, in `slot`, was rotated to it, once and
 * from its row before rotation. In a window of KVW_ROPE_RANKS, sinks first: the key at `position` to the rank
 * `applied`; `slot` is KVW_NO_POSITION. */
static inline void kvw_rotated(kvw_emitter* e, uint16_t layer, uint32_t position, uint32_t slot, uint32_t applied) {
  uint64_t* p = kvw_put(e, KVW_ROTATE, e->call_store, e->call_sequence, layer);
  p[0] = kvw_pair(position, slot);
  p[1] = kvw_pair(applied, 1);
  p[2] = kvw_pair(1, 0);
}

/* In a window: positions [from, to) were handed out in `runs` pieces; returns the view's number. `generation` counts
 * what was written to the store, `copied_bytes` is 0 for rows that are read where they lie, else what the adapters of
 * both sides handed out. */
static inline uint32_t kvw_opened(kvw_emitter* e, uint32_t from, uint32_t to, uint32_t runs, uint64_t generation,
                                  uint64_t copied_bytes) {
  uint64_t* p = kvw_put(e, KVW_WINDOW_OPENED, e->call_store, e->call_sequence, e->call_layer);
  p[0] = generation;
  p[1] = copied_bytes;
  p[2] = kvw_pair(++e->next_view, from);
  p[3] = kvw_pair(to, runs);
  return e->next_view;
}

/* One piece of the window, oldest first. Attention over a window that was opened before its store was written or edited
 * tells its pieces again, in front of what was attended. `offset` of its first K row in the layer's K storage, in
 * bytes. Rows that were copied out have KVW_OUTSIDE, and the slots that they were copied from, or KVW_NO_POSITION. */
static inline void kvw_run(kvw_emitter* e, uint32_t view, uint32_t first, uint32_t count, uint32_t slot,
                           uint64_t offset, uint64_t k_digest, uint64_t v_digest) {
  uint64_t* p = kvw_put(e, KVW_WINDOW_RUN, e->call_store, e->call_sequence, e->call_layer);
  p[0] = offset;
  p[1] = k_digest;
  p[2] = v_digest;
  p[3] = kvw_pair(view, first);
  p[4] = kvw_pair(count, slot);
}

static inline void kvw_closed(kvw_emitter* e, uint8_t store, uint32_t sequence, uint16_t layer, uint32_t view) {
  uint64_t* p = kvw_put(e, KVW_WINDOW_CLOSED, store, sequence, layer);
  p[0] = kvw_pair(view, 0);
}

static inline void kvw_put_attention(kvw_emitter* e, uint32_t view, uint32_t query, uint32_t first_key,
                                     uint32_t last_key, uint32_t visited) {
  uint64_t* p = kvw_put(e, KVW_ATTENTION_STEP, e->call_store, e->call_sequence, e->call_layer);
  p[1] = kvw_pair(view, query);
  p[2] = kvw_pair(first_key, last_key);
  p[3] = kvw_pair(visited, visited);
  p[4] = kvw_pair(0, e->call_queries++); /* a kernel of the engine's own */
}

static inline void kvw_put_attended_run(kvw_emitter* e, uint32_t view, uint32_t query, uint32_t first, uint32_t count) {
  uint64_t* p = kvw_put(e, KVW_ATTENTION_RUN, e->call_store, e->call_sequence, e->call_layer);
  p[0] = kvw_pair(view, query);
  p[1] = kvw_pair(first, count);
}

/* In attention, once for each query of the call, ascending: the query at `query` saw the keys [first_key, last_key]. */
static inline void kvw_attended(kvw_emitter* e, uint32_t view, uint32_t query, uint32_t first_key, uint32_t last_key) {
  kvw_put_attention(e, view, query, first_key, last_key, last_key - first_key + 1);
}

/* The same of a layer with sinks: the query saw the positions below `sinks` and the keys [first_key, last_key]. */
static inline void kvw_attended_sinks(kvw_emitter* e, uint32_t view, uint32_t query, uint32_t sinks, uint32_t first_key,
                                      uint32_t last_key) {
  const int has_gap = sinks > 0 && first_key > sinks;
  if (!has_gap) {
    kvw_attended(e, view, query, sinks > 0 ? 0 : first_key, last_key);
    return;
  }
  kvw_put_attention(e, view, query, 0, last_key, sinks + last_key - first_key + 1);
  kvw_put_attended_run(e, view, query, 0, sinks);
  kvw_put_attended_run(e, view, query, first_key, last_key - first_key + 1);
}

/* In an edit; `freed` positions were lost. */
static inline void kvw_truncated(kvw_emitter* e, uint32_t to, uint32_t old_end, uint32_t freed) {
  uint64_t* p = kvw_put(e, KVW_TRUNCATE, e->call_store, e->call_sequence, e->call_layer);
  p[0] = kvw_pair(to, old_end);
  p[1] = kvw_pair(freed, 0);
}

/* In an eviction, layer by layer: `count` rows from position `from` on, in slots from `from_slot`, now lie at positions
 * from `to` on in slots from `to_slot`; `bytes` of K and V together. */
static inline void kvw_moved(kvw_emitter* e, uint16_t layer, uint32_t from, uint32_t to, uint32_t from_slot,
                             uint32_t to_slot, uint32_t count, uint64_t bytes) {
  uint64_t* p = kvw_put(e, KVW_MOVE, e->call_store, e->call_sequence, layer);
  p[0] = kvw_pair(from, to);
  p[1] = kvw_pair(from_slot, to_slot);
  p[2] = kvw_pair(count, 0);
  p[3] = bytes;
  if (e->moving_layer != layer) e->moved = 0;
  e->moving_layer = layer;
  e->moved += count;
  if (e->moved > e->moved_most) e->moved_most = e->moved;
}

/* In an eviction that renumbers, for each row of each layer that has another position now, ascending: it lay at
 * `was_at`, where it would have the first two digests, and lies at `now_at` with the other two. */
static inline void kvw_survivor(kvw_emitter* e, uint16_t layer, uint32_t was_at, uint64_t k_was, uint64_t v_was,
                                uint32_t now_at, uint64_t k_now, uint64_t v_now) {
  uint64_t* p = kvw_put(e, KVW_ROW_DIGESTS, e->call_store, e->call_sequence, layer);
  p[0] = k_was;
  p[1] = v_was;
  p[4] = kvw_pair(was_at, 1);
  p = kvw_put(e, KVW_ROW_DIGESTS, e->call_store, e->call_sequence, layer);
  p[0] = k_now;
  p[1] = v_now;
  p[4] = kvw_pair(now_at, 1);
}

/* In an eviction, behind what moved. */
static inline void kvw_evicted(kvw_emitter* e, uint32_t from, uint32_t to, uint32_t freed) {
  uint64_t* p = kvw_put(e, KVW_EVICT, e->call_store, e->call_sequence, e->call_layer);
  p[0] = kvw_pair(from, to);
  p[1] = kvw_pair(freed, e->moved_most);
}

/* In a fork of a store without blocks: `child` has copies of the rows of the call's sequence below `to`. */
static inline void kvw_forked(kvw_emitter* e, uint32_t child, uint32_t to) {
  uint64_t* p = kvw_put(e, KVW_FORK, e->call_store, e->call_sequence, e->call_layer);
  p[0] = kvw_pair(e->call_sequence, child);
  p[1] = kvw_pair(to, 0);
}

static inline void kvw_cleared(kvw_emitter* e, uint32_t freed) {
  uint64_t* p = kvw_put(e, KVW_CLEAR, e->call_store, e->call_sequence, e->call_layer);
  p[0] = kvw_pair(freed, 0);
}

/* A layer of a sequence as it was read back: it holds [from, to); 0 for digests that were not taken, and of nothing. */
static inline void kvw_state(kvw_emitter* e, enum kvw_reason reason, uint8_t store, uint32_t sequence, uint16_t layer,
                             uint32_t from, uint32_t to, uint64_t k_digest, uint64_t v_digest) {
  uint64_t* p = kvw_put(e, KVW_STATE_DIGEST, store, sequence, layer);
  p[0] = k_digest;
  p[1] = v_digest;
  p[2] = kvw_pair(from, to);
  p[3] = kvw_pair((uint32_t)reason, e->step);
}

/* A store's storages are given back; `layers` and `sequences` as declared, `first_storage` the number of its first one:
 * 1 for the first store, and one more for each plane before. */
static inline void kvw_store_end(kvw_emitter* e, uint8_t store, uint32_t sequences, const kvw_trace_layer* layers,
                                 uint16_t layer_count, uint64_t first_storage) {
  uint16_t i;
  for (i = 0; i < layer_count; ++i) {
    uint32_t index, plane;
    for (index = 0; (plane = kvw_plane_at(e, store, &layers[i], index)) != 0; ++index) {
      uint64_t* p = kvw_put(e, KVW_FREE, store, KVW_NO_SEQUENCE, i);
      p[0] = first_storage++;
      p[1] = kvw_plane_bytes(&layers[i], plane, sequences);
      p[2] = (uint64_t)1 | (uint64_t)1 << 32 | (uint64_t)3 << 48;
      p[3] = kvw_pair(1, 0);
    }
  }
}

/* Ends the trace and writes what is left; 0 where every line was written. The file stays open. */
static inline int kvw_end(kvw_emitter* e) {
  uint64_t* p = kvw_put(e, KVW_RUN_END, KVW_NO_STORE, KVW_NO_SEQUENCE, KVW_NO_LAYER);
  p[0] = e->next_number - 1;
  p[3] = e->steps;
  return kvw_drain(e);
}

/* A digest of the row that lies at `position`; never 0, which means "not given". Multiplies and shifts eight bytes at a
 * time (after splitmix64); meant to tell faults, not to withstand attacks. */
static inline uint64_t kvw_row_digest(const void* row, size_t bytes, uint32_t position) {
  const unsigned char* at = (const unsigned char*)row;
  uint64_t hash = ((uint64_t)position + 1) * 0x9e3779b97f4a7c15u;
  while (bytes > 0) {
    const size_t taken = bytes < 8 ? bytes : 8;
    uint64_t word = 0;
    memcpy(&word, at, taken);
    hash = (hash ^ word) * 0xbf58476d1ce4e5b9u;
    hash ^= hash >> 29;
    at += taken;
    bytes -= taken;
  }
  hash = (hash ^ hash >> 30) * 0x94d049bb133111ebu;
  hash ^= hash >> 31;
  return hash != 0 ? hash : 1;
}

/* ---- writing lines ----------------------------------------------------------------------------------------------- */

/* A type's name and fields, in the order of their bytes in the payload: "name:kind size". Kinds are n a number, p a
 * position (all ones are null), d a digest, s a text, x flags, f the bits of a float, b a boolean, and a capital
 * letter: one of the texts of the list with that letter. */
typedef struct kvw_type {
  uint8_t id;
  const char* name;
  const char* fields;
} kvw_type;

/* Texts of a list, in the order of their values; null for a letter that there is not. */
static inline const char* kvw_texts(char list) {
  switch (list) {
    case 'C': return "none tsc mono";
    case 'O':
      return "none append window read attend evict truncate clear fork drop save restore poison compare mark prefill "
             "decode";
    case 'R': return "ok full evicted future stale unknown-sequence out-of-order unsupported no-memory";
    case 'S': return "ambient model forward";
    case 'G': return "heap arena mapped store";
    case 'E': return "observed declared unmeasured";
    case 'P': return "none positions ranks";
    case 'W': return "after-refusal after-edit at-end";
    case 'K': return "other golden online blocked gathered black-box";
    case 'D': return "done refused aborted";
    case 'T': return "none f32 f16 bf16";
    case 'L': return "q k v both out k-raw none k-scales v-scales";
    case 'A': return "gather-kv-window dequantize requantize relayout copy-read rotate";
    case 'x':
      return "ring sliding truncate front-evict middle-evict clear zero-copy sequences held-views fork save prefixes "
             "paged quantised sinks attend renumbers donors";
    default: return 0;
  }
}

/* The types that the functions above emit. Null for any other. */
static inline const kvw_type* kvw_type_of(uint8_t id) {
  static const kvw_type types[] = {
      {KVW_RUN_BEGIN, "RunBegin", "seed:d8 claims_digest:d8 scenario:s8 variant:s8 version:n4 clock:C4"},
      {KVW_RUN_END, "RunEnd", "events:n8 digest:d8 dropped:n8 steps:n8"},
      {KVW_STEP_BEGIN, "StepBegin", "step:n4 token:n4 operation:O4 iteration:n4"},
      {KVW_STEP_END, "StepEnd", "duration_ns:n8 step:n4 token:n4 operation:O4 outcome:D4"},
      {KVW_REFUSED, "Refused", "operation:O4 reason:R4 asked_from:p4 asked_to:p4 held_from:p4 held_to:p4 view:n4"},
      {KVW_STORE_CREATED, "StoreCreated", "name:s8 kind:s8 capabilities:x8 layers:n4 sequences:n4"},
      {KVW_LAYER_DECLARED, "LayerDeclared",
       "capacity:n4 window:n4 limited:b4 sinks:n4 q_heads:n4 kv_heads:n4 head_dim:n4 block:n4 sliding:b4 rope:P4"},
      {KVW_LAYER_FORMAT, "LayerFormat",
       "k_row_bytes:n8 v_row_bytes:n8 score_scale:f4 softcap:f4 k_type:T2 v_type:T2 donor:n4 rope_theta:f8"},
      {KVW_ALLOCATION, "Allocation", "storage:n8 bytes:n8 site:s8 count:n4 scope:S2 origin:G2 evidence:E4 plane:L4"},
      {KVW_FREE, "Free", "storage:n8 bytes:n8 count:n4 scope:S2 origin:G2 evidence:E4"},
      {KVW_REGION_MEASURED, "RegionMeasured",
       "allocations:n8 bytes:n8 operation:O4 evidence:E4 outcome:R4 faults:n4 first_syscall:n4"},
      {KVW_APPEND, "Append", "bytes:n8 k_digest:d8 v_digest:d8 first:p4 count:n4 slot:p4 held_from:p4"},
      {KVW_ROW_DIGESTS, "RowDigests", "k0:d8 v0:d8 k1:d8 v1:d8 first:p4 count:n4"},
      {KVW_OVERWRITE, "Overwrite", "first:p4 count:n4 slot:p4 by:p4"},
      {KVW_MOVE, "Move", "from_position:p4 to_position:p4 from_slot:p4 to_slot:p4 count:n8 bytes:n8"},
      {KVW_ROTATE, "Rotate", "position:p4 slot:p4 applied:p4 from_raw:b4 times:n4"},
      {KVW_FORK, "Fork", "parent:n4 child:n4 upto:p4 shared:n4"},
      {KVW_ADAPTER_INSERTED, "AdapterInserted",
       "bytes_before:n8 bytes_after:n8 kind:A4 plane:L4 view:n4 evidence:E4 from_type:T2 to_type:T2 rows:n4"},
      {KVW_EVICT, "Evict", "from:p4 to:p4 freed:n4 moved:n4"},
      {KVW_TRUNCATE, "Truncate", "to:p4 old_end:p4 freed:n4"},
      {KVW_CLEAR, "Clear", "freed:n4"},
      {KVW_WINDOW_OPENED, "WindowOpened", "generation:n8 copied_bytes:n8 view:n4 from:p4 to:p4 runs:n4"},
      {KVW_WINDOW_RUN, "WindowRun", "offset:n8 k_digest:d8 v_digest:d8 view:n4 first:p4 count:n4 slot:p4"},
      {KVW_WINDOW_CLOSED, "WindowClosed", "view:n4"},
      {KVW_ATTENTION_STEP, "AttentionStep",
       "out_digest:d8 view:n4 query:p4 first_key:p4 last_key:p4 visited:n4 rows_read:n4 kernel:K4 ordinal:n4"},
      {KVW_ATTENTION_RUN, "AttentionRun", "view:n4 query:p4 first:p4 count:n4"},
      {KVW_STATE_DIGEST, "StateDigest", "k_digest:d8 v_digest:d8 from:p4 to:p4 reason:W4 step:n4"},
      {KVW_CALLED, "Called", "stream:s8 operation:O4 from:p4 to:p4 view:n4 count:n4 ordinal:n4 file:d8"}};
  size_t i;
  for (i = 0; i < sizeof types / sizeof types[0]; ++i) {
    if (types[i].id == id) return &types[i];
  }
  return 0;
}

/* A line being written: what goes wrong shows in the emitter. */
static inline void kvw_write(kvw_emitter* e, const char* text, size_t bytes) {
  if (fwrite(text, 1, bytes, e->out) != bytes) e->failed = 1;
}

static inline void kvw_write_text(kvw_emitter* e, const char* text) {
  kvw_write(e, text, strlen(text));
}

static inline void kvw_write_number(kvw_emitter* e, uint64_t value) {
  char digits[20];
  size_t at = sizeof digits;
  do {
    digits[--at] = (char)('0' + value % 10);
    value /= 10;
  } while (value != 0);
  kvw_write(e, digits + at, sizeof digits - at);
}

/* In quotes: "0x" and `count` hex digits. */
static inline void kvw_write_hex(kvw_emitter* e, uint64_t value, unsigned count) {
  char text[20] = "\"0x";
  size_t at = 3;
  unsigned i;
  for (i = count; i-- > 0;) text[at++] = "0123456789abcdef"[value >> (4 * i) & 15];
  text[at++] = '"';
  kvw_write(e, text, at);
}

static inline void kvw_write_quoted(kvw_emitter* e, const char* text) {
  kvw_write(e, "\"", 1);
  for (; *text != 0; ++text) {
    const unsigned char c = (unsigned char)*text;
    if (c == '"' || c == '\\') {
      kvw_write(e, "\\", 1);
      kvw_write(e, text, 1);
    } else if (c < 0x20) {
      char escape[6] = {'\\', 'u', '0', '0', 0, 0};
      escape[4] = "0123456789abcdef"[c >> 4];
      escape[5] = "0123456789abcdef"[c & 15];
      kvw_write(e, escape, sizeof escape);
    } else {
      kvw_write(e, text, 1);
    }
  }
  kvw_write(e, "\"", 1);
}

/* The text at `index` of a list, in quotes. */
static inline void kvw_write_listed(kvw_emitter* e, const char* texts, uint64_t index) {
  while (index-- > 0 && *texts != 0) {
    texts += strcspn(texts, " ");
    texts += strspn(texts, " ");
  }
  kvw_write(e, "\"", 1);
  kvw_write(e, texts, strcspn(texts, " "));
  kvw_write(e, "\"", 1);
}

static inline void kvw_write_flags(kvw_emitter* e, uint64_t flags) {
  const char* separator = "";
  unsigned i;
  kvw_write(e, "[", 1);
  for (i = 0; i < 64; ++i) {
    if ((flags >> i & 1) == 0) continue;
    kvw_write_text(e, separator);
    kvw_write_listed(e, kvw_texts('x'), i);
    separator = ",";
  }
  kvw_write(e, "]", 1);
}

static inline void kvw_write_value(kvw_emitter* e, char kind, unsigned bytes, uint64_t value) {
  const char* text = (const char*)(uintptr_t)value;
  switch (kind) {
    case 'n': kvw_write_number(e, value); return;
    case 'd': kvw_write_hex(e, value, 16); return;
    case 'x': kvw_write_flags(e, value); return;
    case 'f': kvw_write_hex(e, value, 2 * bytes); return; /* bits: no locale and no rounding changes them */
    case 'b': kvw_write_text(e, value != 0 ? "true" : "false"); return;
    case 'p':
      if (value != KVW_NO_POSITION) {
        kvw_write_number(e, value);
        return;
      }
      break;
    case 's':
      if (value != 0) {
        kvw_write_quoted(e, text);
        return;
      }
      break;
    default: kvw_write_listed(e, kvw_texts(kind), value); return;
  }
  kvw_write_text(e, "null");
}

static inline void kvw_write_subject(kvw_emitter* e, const char* key, uint64_t value, uint64_t none) {
  if (value == none) return;
  kvw_write_text(e, key);
  kvw_write_number(e, value);
}

static inline void kvw_write_record(kvw_emitter* e, const kvw_record* record) {
  const kvw_type* type = kvw_type_of(record->type);
  const char* field = type->fields;
  unsigned offset = 0; /* bytes into the payload */
  kvw_write_text(e, "{\"n\":");
  kvw_write_number(e, record->number);
  kvw_write_text(e, ",\"type\":");
  kvw_write_quoted(e, type->name);
  kvw_write_subject(e, ",\"seq\":", record->sequence, KVW_NO_SEQUENCE);
  kvw_write_subject(e, ",\"layer\":", record->layer, KVW_NO_LAYER);
  kvw_write_subject(e, ",\"store\":", record->store, KVW_NO_STORE);
  while (*field != 0) {
    const size_t name = strcspn(field, ":");
    const char kind = field[name + 1];
    const unsigned bytes = (unsigned)(field[name + 2] - '0');
    const uint64_t word = record->payload[offset / 8] >> (offset % 8 * 8);
    kvw_write_text(e, ",\"");
    kvw_write(e, field, name);
    kvw_write_text(e, "\":");
    kvw_write_value(e, kind, bytes, bytes == 8 ? word : word & (((uint64_t)1 << (8 * bytes)) - 1));
    offset += bytes;
    field += name + 3;
    field += strspn(field, " ");
  }
  kvw_write_text(e, "}\n");
}

/* Writes what is in the ring; 0 where every line so far was written. */
static inline int kvw_drain(kvw_emitter* e) {
  size_t i;
  for (i = 0; i < e->used; ++i) kvw_write_record(e, &e->ring[i]);
  e->used = 0;
  if (fflush(e->out) != 0) e->failed = 1;
  return e->failed;
}

static inline void kvw_begin(kvw_emitter* e, FILE* out, kvw_record* ring, size_t capacity, const char* producer,
                             const char* scenario) {
  uint64_t* p;
  memset(e, 0, sizeof *e);
  e->out = out;
  e->ring = ring;
  e->capacity = capacity;
  kvw_write_text(e, "{\"kvwitness\":\"trace\",\"version\":1,\"producer\":");
  kvw_write_quoted(e, producer);
  kvw_write_text(e, ",\"clock\":\"none\",\"claims\":{\"scenario\":");
  kvw_write_quoted(e, scenario);
  kvw_write_text(e, "}}\n");
  p = kvw_put(e, KVW_RUN_BEGIN, KVW_NO_STORE, KVW_NO_SEQUENCE, KVW_NO_LAYER);
  p[2] = kvw_text(scenario);
  p[4] = kvw_pair(1, 0); /* events of version 1 */
}

#ifdef __cplusplus
}
#endif
#endif
