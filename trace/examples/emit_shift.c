/*
 * A cache in C as chat engines have it, which writes a trace of itself with kvwitness/emit.h. Keys lie rotated to their
 * positions. When the context is full, the oldest rows behind the instructions are dropped, and what lies behind them
 * moves down, is renumbered and rotated anew. A second sequence begins as a fork of the first. Attention reads copies.
 *
 *     cc -std=c99 -I trace/include trace/examples/emit_shift.c -o emit_shift -lm
 *     ./emit_shift > right.jsonl              && kvwitness check right.jsonl
 *     ./emit_shift --stale-keys > wrong.jsonl; kvwitness check wrong.jsonl
 *
 * With --stale-keys moved keys stay rotated to where they lay: rope-ledger. With --unpriced nobody is told that windows
 * are copies: adapter-priced. With --late-fork the second sequence gets the rows one position further on: the rules
 * that hold its rows against the first one's.
 */
#include "kvwitness/emit.h"

#include <math.h>
#include <stdlib.h>

enum { LAYERS = 2, SEQUENCES = 2, SLOTS = 12, HEAD_DIM = 4, KEPT = 2, DROPPED = 4, TOKENS = 30 };

static const double theta = 10000;

typedef struct row {
  float x[HEAD_DIM];
} row;

/* Rows of a sequence in a layer: position p lies in slot p. */
typedef struct layer_rows {
  row k[SLOTS];
  row k_raw[SLOTS]; /* before rotation */
  row v[SLOTS];
} layer_rows;

typedef struct fault_set {
  int stale_keys;
  int unpriced;
  int late_fork;
} fault_set;

typedef struct cache {
  kvw_emitter e;
  layer_rows rows[LAYERS][SEQUENCES];
  uint32_t end[SEQUENCES];
  uint32_t step;
  fault_set faults;
} cache;

static row rotated(const row* raw, uint32_t position) {
  row out;
  uint32_t j;
  for (j = 0; j < HEAD_DIM / 2; ++j) {
    const double angle = position * pow(theta, -2.0 * j / HEAD_DIM);
    const double x = (double)raw->x[j], y = (double)raw->x[j + HEAD_DIM / 2];
    out.x[j] = (float)(x * cos(angle) - y * sin(angle));
    out.x[j + HEAD_DIM / 2] = (float)(x * sin(angle) + y * cos(angle));
  }
  return out;
}

/* Of rows that lie from slot `from` on, as if they lay at positions from `at` on. */
static uint64_t digest_at(const row* rows, uint32_t from, uint32_t count, uint32_t at) {
  uint64_t sum = 0;
  uint32_t i;
  for (i = 0; i < count; ++i) sum += kvw_row_digest(&rows[from + i], sizeof rows[0], at + i);
  return sum;
}

static void tell_states(cache* c, enum kvw_reason reason, uint32_t sequence) {
  uint16_t layer;
  for (layer = 0; layer < LAYERS; ++layer) {
    const layer_rows* rows = &c->rows[layer][sequence];
    const uint32_t end = c->end[sequence];
    kvw_state(&c->e, reason, 0, sequence, layer, 0, end, digest_at(rows->k, 0, end, 0), digest_at(rows->v, 0, end, 0));
  }
}

/* ---- a token ----------------------------------------------------------------------------------------------------- */

static void append(cache* c, uint32_t sequence, uint16_t layer) {
  layer_rows* rows = &c->rows[layer][sequence];
  const uint32_t p = c->end[sequence];
  uint64_t k, v;
  uint32_t i;
  for (i = 0; i < HEAD_DIM; ++i) {
    rows->k_raw[p].x[i] = (float)((c->step + 1) * (i + 1)) / (float)(layer + 2);
    rows->v[p].x[i] = (float)(c->step * HEAD_DIM + i);
  }
  rows->k[p] = rotated(&rows->k_raw[p], p);
  kvw_call(&c->e, KVW_OP_APPEND, 0, sequence, layer, p, p + 1, 0, 1);
  k = digest_at(rows->k, p, 1, p);
  v = digest_at(rows->v, p, 1, p);
  kvw_row(&c->e, p, k, v);
  kvw_appended(&c->e, p, 1, p, 0, 2 * sizeof(row), k, v);
  kvw_call_end(&c->e);
}

/* All rows, copied out: they lie in none of the cache's slots. */
static uint32_t window(cache* c, uint32_t sequence, uint16_t layer, uint32_t end) {
  const layer_rows* rows = &c->rows[layer][sequence];
  const uint64_t bytes = end * sizeof(row);
  uint32_t view;
  kvw_call(&c->e, KVW_OP_WINDOW, 0, sequence, layer, 0, end, 0, 0);
  if (!c->faults.unpriced) {
    kvw_adapter(&c->e, KVW_COPY_READ, KVW_K, end, KVW_F32, bytes, KVW_F32, bytes);
    kvw_adapter(&c->e, KVW_COPY_READ, KVW_V, end, KVW_F32, bytes, KVW_F32, bytes);
  }
  view = kvw_opened(&c->e, 0, end, 1, 0, 2 * bytes);
  kvw_run(&c->e, view, 0, end, KVW_NO_POSITION, KVW_OUTSIDE, digest_at(rows->k, 0, end, 0),
          digest_at(rows->v, 0, end, 0));
  kvw_call_end(&c->e);
  return view;
}

static void decode(cache* c, uint32_t sequence) {
  const uint32_t p = c->end[sequence];
  uint16_t layer;
  kvw_step_begin(&c->e, 0, sequence, KVW_OP_DECODE, c->step, 0);
  for (layer = 0; layer < LAYERS; ++layer) {
    uint32_t view;
    append(c, sequence, layer);
    view = window(c, sequence, layer, p + 1);
    kvw_call(&c->e, KVW_OP_ATTEND, 0, sequence, layer, p, p + 1, view, 1);
    kvw_attended(&c->e, view, p, 0, p);
    kvw_call_end(&c->e);
    kvw_closed(&c->e, 0, sequence, layer, view);
  }
  ++c->end[sequence];
  ++c->step;
  kvw_step_end(&c->e);
}

/* ---- edits ------------------------------------------------------------------------------------------------------- */

static void move_down(cache* c, layer_rows* rows, uint32_t to, uint32_t count) {
  uint32_t p;
  memmove(&rows->k[to], &rows->k[to + DROPPED], count * sizeof(row));
  memmove(&rows->k_raw[to], &rows->k_raw[to + DROPPED], count * sizeof(row));
  memmove(&rows->v[to], &rows->v[to + DROPPED], count * sizeof(row));
  for (p = to; p < to + count && !c->faults.stale_keys; ++p) rows->k[p] = rotated(&rows->k_raw[p], p);
}

/* Drops [KEPT, KEPT + DROPPED); what lies behind it moves down. */
static void shift(cache* c, uint32_t sequence) {
  const uint32_t from = KEPT + DROPPED;
  const uint32_t count = c->end[sequence] - from;
  uint32_t p;
  uint16_t layer;
  kvw_step_begin(&c->e, 0, sequence, KVW_OP_EVICT, c->step++, 0);
  kvw_call(&c->e, KVW_OP_EVICT, 0, sequence, KVW_NO_LAYER, KEPT, from, 0, 0);
  for (layer = 0; layer < LAYERS; ++layer) {
    move_down(c, &c->rows[layer][sequence], KEPT, count);
    kvw_moved(&c->e, layer, from, KEPT, from, KEPT, count, 2 * count * sizeof(row));
  }
  for (layer = 0; layer < LAYERS && !c->faults.stale_keys; ++layer)
    for (p = KEPT; p < KEPT + count; ++p) kvw_rotated(&c->e, layer, p, p, p);
  for (layer = 0; layer < LAYERS; ++layer) {
    const layer_rows* rows = &c->rows[layer][sequence];
    for (p = KEPT; p < KEPT + count; ++p) {
      const uint32_t was_at = p + DROPPED;
      kvw_survivor(&c->e, layer, was_at, digest_at(rows->k, p, 1, was_at), digest_at(rows->v, p, 1, was_at), p,
                   digest_at(rows->k, p, 1, p), digest_at(rows->v, p, 1, p));
    }
  }
  kvw_evicted(&c->e, KEPT, from, DROPPED);
  kvw_call_end(&c->e);
  c->end[sequence] -= DROPPED;
  tell_states(c, KVW_AFTER_EDIT, sequence);
  kvw_step_end(&c->e);
}

/* Sequence 1 becomes what sequence 0 is, less its newest row. */
static void branch(cache* c) {
  const uint32_t to = c->end[0] - 1;
  const uint32_t first = c->faults.late_fork ? 1 : 0;
  uint16_t layer;
  kvw_step_begin(&c->e, 0, 0, KVW_OP_FORK, c->step++, 0);
  kvw_call_fork(&c->e, 0, 0, 1, to);
  for (layer = 0; layer < LAYERS; ++layer) {
    const layer_rows* rows = &c->rows[layer][0];
    layer_rows* child = &c->rows[layer][1];
    memcpy(child->k, rows->k + first, to * sizeof(row));
    memcpy(child->k_raw, rows->k_raw + first, to * sizeof(row));
    memcpy(child->v, rows->v + first, to * sizeof(row));
  }
  c->end[1] = to;
  kvw_forked(&c->e, 1, to);
  kvw_call_end(&c->e);
  tell_states(c, KVW_AFTER_EDIT, 1);
  kvw_step_end(&c->e);
}

/* ---- the run ----------------------------------------------------------------------------------------------------- */

static void declare(cache* c, kvw_trace_layer layers[LAYERS]) {
  uint16_t layer;
  memset(layers, 0, LAYERS * sizeof layers[0]);
  for (layer = 0; layer < LAYERS; ++layer) {
    layers[layer].capacity = SLOTS;
    layers[layer].q_heads = layers[layer].kv_heads = 1;
    layers[layer].head_dim = HEAD_DIM;
    layers[layer].type = KVW_F32;
    layers[layer].k_row_bytes = layers[layer].v_row_bytes = sizeof(row);
    layers[layer].score_scale = 0.5f;
    layers[layer].rope = KVW_ROPE_POSITIONS;
    layers[layer].rope_theta = theta;
  }
  kvw_store(&c->e, 0, "chat", "shifting", KVW_HAS_MIDDLE_EVICT | KVW_HAS_RENUMBERS | KVW_HAS_SEQUENCES | KVW_HAS_FORK,
            SEQUENCES, layers, LAYERS);
}

/* 0 where an option is not known. */
static int read_options(int argc, char** argv, fault_set* faults) {
  int i;
  for (i = 1; i < argc; ++i) {
    if (strcmp(argv[i], "--stale-keys") == 0) {
      faults->stale_keys = 1;
    } else if (strcmp(argv[i], "--unpriced") == 0) {
      faults->unpriced = 1;
    } else if (strcmp(argv[i], "--late-fork") == 0) {
      faults->late_fork = 1;
    } else {
      return 0;
    }
  }
  return 1;
}

int main(int argc, char** argv) {
  static cache c;
  static kvw_record ring[1024];
  kvw_trace_layer layers[LAYERS];
  uint32_t token, sequence;
  if (!read_options(argc, argv, &c.faults)) {
    fprintf(stderr, "usage: emit_shift [--stale-keys] [--unpriced] [--late-fork]\n");
    return 2;
  }
  kvw_begin(&c.e, stdout, ring, sizeof ring / sizeof ring[0], "emit_shift.c 1.0", "context shift in C");
  declare(&c, layers);
  for (token = 0; token < TOKENS; ++token) {
    const uint32_t sequences = token < TOKENS / 2 ? 1 : SEQUENCES;
    if (token == TOKENS / 2) branch(&c);
    for (sequence = 0; sequence < sequences; ++sequence) {
      if (c.end[sequence] == SLOTS) shift(&c, sequence);
      decode(&c, sequence);
    }
    kvw_drain(&c.e); /* between tokens, where nobody waits */
  }
  for (sequence = 0; sequence < SEQUENCES; ++sequence) tell_states(&c, KVW_AT_END, sequence);
  kvw_store_end(&c.e, 0, SEQUENCES, layers, LAYERS, 1);
  return kvw_end(&c.e) != 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
