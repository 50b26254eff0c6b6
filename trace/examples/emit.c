/*
 * A small ring cache in C that writes a trace of itself with kvwitness/emit.h.
 *
 *     cc -std=c99 -I trace/include trace/examples/emit.c -o emit
 *     ./emit > right.jsonl           && kvwitness check right.jsonl
 *     ./emit --f16 > half.jsonl      && kvwitness check half.jsonl
 *     ./emit --slot-order > wrong.jsonl; kvwitness check wrong.jsonl
 *
 * With --f16 the cache keeps rows of 16-bit floats: their format and size are declared, and their own bytes digested;
 * nothing else changes. With --slot-order a window's pieces are handed out in the order of their slots, so that after
 * the wrap the newest rows come first: the rule position-order blames it. With --late-window a query sees one key too
 * many, which is older than its window: window-exact.
 */
#include "kvwitness/emit.h"

#include <stdlib.h>

enum { LAYERS = 2, SLOTS = 9, WINDOW = 8, HEADS = 2, HEAD_DIM = 4, ROW = HEADS * HEAD_DIM, TOKENS = 40 };

/* Rows of f32, or of f16 in the first half of their slots' bytes. */
typedef unsigned char slot_rows[SLOTS][ROW * sizeof(float)];

typedef struct ring_layer {
  slot_rows k;
  slot_rows v;
  int is_f16;
  uint32_t end; /* rows appended so far; position p lies in slot p % SLOTS */
} ring_layer;

typedef struct fault_set {
  int slot_order;
  int late_window;
} fault_set;

static size_t row_bytes(int is_f16) {
  return ROW * (is_f16 ? sizeof(uint16_t) : sizeof(float));
}

/* Bits of IEEE 754 binary16, of 0 and of values that are normal in it; digits that it has no room for are cut off. */
static uint16_t f16_of(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  if (value == 0.0f) return 0;
  return (uint16_t)((bits >> 16 & 0x8000u) | ((bits >> 23 & 0xffu) - 112u) << 10 | (bits >> 13 & 0x3ffu));
}

static void set_element(unsigned char* row, uint32_t i, float value, int is_f16) {
  const uint16_t half = f16_of(value);
  if (is_f16) {
    memcpy(row + i * sizeof half, &half, sizeof half);
  } else {
    memcpy(row + i * sizeof value, &value, sizeof value);
  }
}

static uint32_t held_from(uint32_t end) {
  return end > SLOTS ? end - SLOTS : 0;
}

/* Digest of the rows at [from, to), as they lie in the cache. */
static uint64_t digest_of(slot_rows rows, int is_f16, uint32_t from, uint32_t to) {
  uint64_t sum = 0;
  uint32_t p;
  for (p = from; p < to; ++p) sum += kvw_row_digest(rows[p % SLOTS], row_bytes(is_f16), p);
  return sum;
}

static void append(kvw_emitter* e, ring_layer* cache, uint16_t layer) {
  const uint32_t position = cache->end;
  const uint32_t slot = position % SLOTS;
  uint64_t k, v;
  uint32_t i;
  kvw_call(e, KVW_OP_APPEND, 0, 0, layer, 0, 0, 0, 1);
  for (i = 0; i < ROW; ++i) {
    set_element(cache->k[slot], i, (float)(position * ROW + i) / 64.0f, cache->is_f16);
    set_element(cache->v[slot], i, (float)(layer + 1) * (float)(position + i), cache->is_f16);
  }
  k = digest_of(cache->k, cache->is_f16, position, position + 1);
  v = digest_of(cache->v, cache->is_f16, position, position + 1);
  kvw_row(e, position, k, v);
  if (position >= SLOTS) kvw_overwrote(e, position - SLOTS, 1, slot, position);
  ++cache->end;
  kvw_appended(e, position, 1, slot, held_from(cache->end), 2 * row_bytes(cache->is_f16), k, v);
  kvw_call_end(e);
}

static void tell_piece(kvw_emitter* e, ring_layer* cache, uint32_t view, uint32_t from, uint32_t to) {
  const uint32_t slot = from % SLOTS;
  kvw_run(e, view, from, to - from, slot, slot * row_bytes(cache->is_f16), digest_of(cache->k, cache->is_f16, from, to),
          digest_of(cache->v, cache->is_f16, from, to));
}

/* Hands out the rows at [from, to), which lie in one piece, or in two where the ring wraps in between. */
static uint32_t window(kvw_emitter* e, ring_layer* cache, uint16_t layer, uint32_t from, uint32_t to,
                       const fault_set* faults) {
  const uint32_t wrap = to - to % SLOTS;
  const int is_wrapped = from < wrap && wrap < to;
  uint32_t view;
  kvw_call(e, KVW_OP_WINDOW, 0, 0, layer, from, to, 0, 0);
  view = kvw_opened(e, from, to, is_wrapped ? 2 : 1, cache->end, 0);
  if (!is_wrapped) {
    tell_piece(e, cache, view, from, to);
  } else if (faults->slot_order) {
    tell_piece(e, cache, view, wrap, to);
    tell_piece(e, cache, view, from, wrap);
  } else {
    tell_piece(e, cache, view, from, wrap);
    tell_piece(e, cache, view, wrap, to);
  }
  kvw_call_end(e);
  return view;
}

static void decode(kvw_emitter* e, ring_layer caches[LAYERS], uint32_t token, const fault_set* faults) {
  uint16_t layer;
  kvw_step_begin(e, 0, 0, KVW_OP_DECODE, 0, token);
  for (layer = 0; layer < LAYERS; ++layer) {
    const uint32_t keys = faults->late_window ? WINDOW + 1 : WINDOW;
    uint32_t end, from, view;
    append(e, &caches[layer], layer);
    end = caches[layer].end;
    from = end > keys ? end - keys : 0;
    view = window(e, &caches[layer], layer, from, end, faults);
    kvw_call(e, KVW_OP_ATTEND, 0, 0, layer, end - 1, end, view, 1);
    kvw_attended(e, view, end - 1, from, end - 1);
    kvw_call_end(e);
    kvw_closed(e, 0, 0, layer, view);
  }
  kvw_step_end(e);
}

static void declare(kvw_emitter* e, kvw_trace_layer layers[LAYERS], int is_f16) {
  uint16_t layer;
  memset(layers, 0, LAYERS * sizeof layers[0]);
  for (layer = 0; layer < LAYERS; ++layer) {
    layers[layer].capacity = SLOTS;
    layers[layer].window = WINDOW;
    layers[layer].sliding = 1;
    layers[layer].q_heads = layers[layer].kv_heads = HEADS;
    layers[layer].head_dim = HEAD_DIM;
    layers[layer].type = is_f16 ? KVW_F16 : KVW_F32;
    layers[layer].k_row_bytes = layers[layer].v_row_bytes = row_bytes(is_f16);
    layers[layer].score_scale = 0.5f;
  }
  kvw_store(e, 0, "ring", "ring", KVW_HAS_RING | KVW_HAS_SLIDING | KVW_HAS_ZERO_COPY, 1, layers, LAYERS);
}

/* 0 where an option is not known. */
static int read_options(int argc, char** argv, fault_set* faults, int* is_f16) {
  int i;
  for (i = 1; i < argc; ++i) {
    if (strcmp(argv[i], "--slot-order") == 0) {
      faults->slot_order = 1;
    } else if (strcmp(argv[i], "--late-window") == 0) {
      faults->late_window = 1;
    } else if (strcmp(argv[i], "--f16") == 0) {
      *is_f16 = 1;
    } else {
      return 0;
    }
  }
  return 1;
}

int main(int argc, char** argv) {
  static ring_layer caches[LAYERS];
  static kvw_record ring[1024];
  kvw_trace_layer layers[LAYERS];
  fault_set faults = {0, 0};
  kvw_emitter e;
  uint32_t token;
  uint16_t layer;
  int is_f16 = 0;
  if (!read_options(argc, argv, &faults, &is_f16)) {
    fprintf(stderr, "usage: emit [--f16] [--slot-order] [--late-window]\n");
    return 2;
  }
  for (layer = 0; layer < LAYERS; ++layer) caches[layer].is_f16 = is_f16;
  kvw_begin(&e, stdout, ring, sizeof ring / sizeof ring[0], "emit.c 1.0", "ring in C");
  declare(&e, layers, is_f16);
  for (token = 0; token < TOKENS; ++token) {
    decode(&e, caches, token, &faults);
    kvw_drain(&e); /* between tokens, where nobody waits */
  }
  for (layer = 0; layer < LAYERS; ++layer) {
    ring_layer* cache = &caches[layer];
    const uint32_t from = held_from(cache->end);
    kvw_state(&e, KVW_AT_END, 0, 0, layer, from, cache->end, digest_of(cache->k, is_f16, from, cache->end),
              digest_of(cache->v, is_f16, from, cache->end));
  }
  kvw_store_end(&e, 0, 1, layers, LAYERS, 1);
  return kvw_end(&e) != 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
