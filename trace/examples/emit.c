/*
 * A small ring cache in C that writes a trace of itself with kvwitness/emit.h.
 *
 *     cc -std=c99 -I trace/include trace/examples/emit.c -o emit
 *     ./emit > right.jsonl           && kvwitness check right.jsonl
 *     ./emit --slot-order > wrong.jsonl; kvwitness check wrong.jsonl
 *
 * With --slot-order a window's pieces are handed out in the order of their slots, so that after the wrap the newest
 * rows come first: the rule position-order blames it. With --late-window a query sees one key too many, which is older
 * than its window: window-exact.
 */
#include "kvwitness/emit.h"

#include <stdlib.h>

enum { LAYERS = 2, SLOTS = 9, WINDOW = 8, HEADS = 2, HEAD_DIM = 4, ROW = HEADS * HEAD_DIM, TOKENS = 40 };

typedef struct ring_layer {
  float k[SLOTS][ROW];
  float v[SLOTS][ROW];
  uint32_t end; /* rows appended so far; position p lies in slot p % SLOTS */
} ring_layer;

typedef struct fault_set {
  int slot_order;
  int late_window;
} fault_set;

static uint32_t held_from(uint32_t end) {
  return end > SLOTS ? end - SLOTS : 0;
}

/* Digest of the rows at [from, to), as they lie in the cache. */
static uint64_t digest_of(float rows[SLOTS][ROW], uint32_t from, uint32_t to) {
  uint64_t sum = 0;
  uint32_t p;
  for (p = from; p < to; ++p) sum += kvw_row_digest(rows[p % SLOTS], sizeof rows[0], p);
  return sum;
}

static void append(kvw_emitter* e, ring_layer* cache, uint16_t layer) {
  const uint32_t position = cache->end;
  const uint32_t slot = position % SLOTS;
  uint64_t k, v;
  uint32_t i;
  kvw_call(e, KVW_OP_APPEND, 0, 0, layer, 0, 0, 0, 1);
  for (i = 0; i < ROW; ++i) {
    cache->k[slot][i] = (float)(position * ROW + i) / 64.0f;
    cache->v[slot][i] = (float)(layer + 1) * (float)(position + i);
  }
  k = kvw_row_digest(cache->k[slot], sizeof cache->k[slot], position);
  v = kvw_row_digest(cache->v[slot], sizeof cache->v[slot], position);
  kvw_row(e, position, k, v);
  if (position >= SLOTS) kvw_overwrote(e, position - SLOTS, 1, slot, position);
  ++cache->end;
  kvw_appended(e, position, 1, slot, held_from(cache->end), 2 * sizeof cache->k[slot], k, v);
  kvw_call_end(e);
}

static void tell_piece(kvw_emitter* e, ring_layer* cache, uint32_t view, uint32_t from, uint32_t to) {
  const uint32_t slot = from % SLOTS;
  kvw_run(e, view, from, to - from, slot, slot * sizeof cache->k[0], digest_of(cache->k, from, to),
          digest_of(cache->v, from, to));
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

int main(int argc, char** argv) {
  static ring_layer caches[LAYERS];
  static kvw_record ring[1024];
  kvw_trace_layer layers[LAYERS];
  fault_set faults = {0, 0};
  kvw_emitter e;
  uint32_t token;
  uint16_t layer;
  int i;
  for (i = 1; i < argc; ++i) {
    if (strcmp(argv[i], "--slot-order") == 0) {
      faults.slot_order = 1;
    } else if (strcmp(argv[i], "--late-window") == 0) {
      faults.late_window = 1;
    } else {
      fprintf(stderr, "usage: emit [--slot-order] [--late-window]\n");
      return 2;
    }
  }
  memset(layers, 0, sizeof layers);
  for (layer = 0; layer < LAYERS; ++layer) {
    layers[layer].capacity = SLOTS;
    layers[layer].window = WINDOW;
    layers[layer].sliding = 1;
    layers[layer].q_heads = layers[layer].kv_heads = HEADS;
    layers[layer].head_dim = HEAD_DIM;
    layers[layer].type = KVW_F32;
    layers[layer].k_row_bytes = layers[layer].v_row_bytes = sizeof caches[0].k[0];
    layers[layer].score_scale = 0.5f;
  }
  kvw_begin(&e, stdout, ring, sizeof ring / sizeof ring[0], "emit.c 1.0", "ring in C");
  kvw_store(&e, 0, "ring", "ring", KVW_HAS_RING | KVW_HAS_SLIDING | KVW_HAS_ZERO_COPY, 1, layers, LAYERS);
  for (token = 0; token < TOKENS; ++token) {
    decode(&e, caches, token, &faults);
    kvw_drain(&e); /* between tokens, where nobody waits */
  }
  for (layer = 0; layer < LAYERS; ++layer) {
    const uint32_t from = held_from(caches[layer].end);
    kvw_state(&e, KVW_AT_END, 0, 0, layer, from, caches[layer].end, digest_of(caches[layer].k, from, caches[layer].end),
              digest_of(caches[layer].v, from, caches[layer].end));
  }
  kvw_store_end(&e, 0, 1, layers, LAYERS, 1);
  return kvw_end(&e) != 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
