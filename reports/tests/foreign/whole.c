/* A cache that does all that a plug-in may declare (kvwitness/store.h). No store has all of it at once, so it comes in
 * two kinds: WHOLE_KIND=ring slides, keeps sinks and evicts the front; WHOLE_KIND=compact evicts anything and renumbers
 * what lay behind. Both attend by themselves, roll back, fork, save, and have layers that read another one's rows.
 * WHOLE_FAULT names something that it then does wrong. It is written to be right, not fast. */
#include "whole.h"

#include <math.h>
#include <stdlib.h>

int whole_renumbers;
const char* whole_fault = "";

static void* zeros(size_t count, size_t size) {
  void* memory = calloc(count > 0 ? count : 1, size);
  if (memory == NULL) abort();
  return memory;
}

/* ---- building */

static void add_storage(struct whole* w, uint32_t layer, uint32_t plane) {
  const struct kvw_layer* shape = &w->shapes[layer];
  const uint64_t bytes = (uint64_t)w->sequence_count * shape->capacity * width(shape) * sizeof(float);
  w->storages[w->storage_count++] = (struct kvw_storage){layer, plane, bytes};
}

static void build_rows(struct whole* w, uint32_t layer) {
  const struct kvw_layer* shape = &w->shapes[layer];
  w->slots_max = greater(w->slots_max, shape->capacity);
  if (is_reader(shape)) return;
  for (uint32_t plane = 0; plane < (keeps_raw(shape) ? 3u : 2u); ++plane) add_storage(w, layer, plane);
  for (uint32_t s = 0; s < w->sequence_count; ++s) {
    struct rows* rows = &w->sequences[s].layers[layer];
    const size_t values = shape->capacity * width(shape);
    rows->k = zeros(values, sizeof(float));
    rows->v = zeros(values, sizeof(float));
    if (keeps_raw(shape)) rows->raw = zeros(values, sizeof(float));
  }
}

static void* create(const struct kvw_config* config, char* error, size_t room) {
  (void)error, (void)room;
  struct whole* w = zeros(1, sizeof *w);
  w->sequence_count = config->sequences;
  w->layer_count = config->layer_count;
  w->softcap = config->softcap;
  w->shapes = zeros(w->layer_count, sizeof *w->shapes);
  w->sequences = zeros(w->sequence_count, sizeof *w->sequences);
  w->storages = zeros(3 * (size_t)w->layer_count, sizeof *w->storages);
  for (uint32_t s = 0; s < w->sequence_count; ++s) w->sequences[s].layers = zeros(w->layer_count, sizeof(struct rows));
  for (uint32_t layer = 0; layer < w->layer_count; ++layer) {
    memcpy(&w->shapes[layer], (const char*)config->layers + layer * config->layer_size, sizeof *w->shapes);
    build_rows(w, layer);
  }
  w->pieces = zeros(w->slots_max, sizeof *w->pieces);
  w->overwritten = zeros(w->slots_max, sizeof *w->overwritten);
  w->moves = zeros(w->layer_count, sizeof *w->moves);
  w->rotations = zeros(w->layer_count, sizeof *w->rotations);
  w->scores = zeros(w->slots_max, sizeof *w->scores);
  w->seen = zeros(w->slots_max, sizeof *w->seen);
  return w;
}

static void destroy(void* self) {
  struct whole* w = self;
  for (uint32_t s = 0; s < w->sequence_count; ++s) {
    for (uint32_t layer = 0; layer < w->layer_count; ++layer) {
      struct rows* rows = &w->sequences[s].layers[layer];
      free(rows->k), free(rows->v), free(rows->raw);
    }
    free(w->sequences[s].layers);
  }
  free(w->shapes), free(w->sequences), free(w->storages), free(w->pieces), free(w->overwritten);
  free(w->moves), free(w->rotations), free(w->scores), free(w->seen), free(w->file);
  free(w);
}

static void memory(void* self, struct kvw_memory* out) {
  const struct whole* w = self;
  out->storages = w->storages;
  out->storage_count = w->storage_count;
  for (uint32_t s = 0; s < w->sequence_count; ++s) {
    for (uint32_t layer = 0; layer < w->layer_count; ++layer) {
      const struct kvw_layer* shape = &w->shapes[layer];
      const uint64_t count = is_reader(shape) ? 0 : held(shape, &w->sequences[s].layers[layer]);
      out->resident_positions += count;
      out->used_bytes += count * width(shape) * sizeof(float) * (keeps_raw(shape) ? 3 : 2);
    }
  }
}

/* ---- rows */

int whole_find(const struct whole* w, uint32_t sequence, uint32_t layer) {
  if (sequence >= w->sequence_count) return KVW_UNKNOWN_SEQUENCE;
  return layer >= w->layer_count ? KVW_OUT_OF_ORDER : KVW_OK;
}

static int extent(void* self, uint32_t sequence, uint32_t layer, uint32_t* from, uint32_t* to) {
  const struct whole* w = self;
  const int code = whole_find(w, sequence, layer);
  if (code != KVW_OK) return code;
  const struct rows* rows = &w->sequences[sequence].layers[owner(w, layer)];
  *from = rows->start;
  *to = rows->end;
  return KVW_OK;
}

static uint32_t next_due(const struct whole* w, uint32_t layer) {
  do layer = (layer + 1) % w->layer_count;
  while (is_reader(&w->shapes[layer]));
  return layer;
}

static int why_not_append(const struct whole* w, const struct sequence* of, uint32_t layer,
                          const struct kvw_rows* given) {
  const struct kvw_layer* shape = &w->shapes[layer];
  const struct rows* rows = &of->layers[layer];
  if (is_reader(shape)) return KVW_UNSUPPORTED;
  if (layer != of->due || (layer != 0 && given->count != of->count)) return KVW_OUT_OF_ORDER;
  if (given->count == 0 || (keeps_raw(shape) && given->k_raw == NULL)) return KVW_UNSUPPORTED;
  uint32_t may_go_to = first_to_go(shape, rows);
  if (shape->sliding) may_go_to = greater(may_go_to, window_low(window_of(shape), rows->end));
  const uint64_t end = (uint64_t)rows->end + given->count;
  return end > (uint64_t)may_go_to + shape->capacity - shape->sinks ? KVW_FULL : KVW_OK;
}

static int append(void* self, uint32_t sequence, uint32_t layer, const struct kvw_rows* given,
                  struct kvw_appended* out) {
  struct whole* w = self;
  int code = whole_find(w, sequence, layer);
  if (code != KVW_OK) return code;
  struct sequence* of = &w->sequences[sequence];
  if ((code = why_not_append(w, of, layer, given)) != KVW_OK) return code;
  const struct kvw_layer* shape = &w->shapes[layer];
  struct rows* rows = &of->layers[layer];
  const uint32_t ring = shape->capacity - shape->sinks;
  const size_t row = width(shape);
  for (uint32_t i = 0; i < given->count; ++i) {
    const uint32_t position = rows->end + i, slot = slot_of(shape, position);
    const int overwrites = position >= ring && position - ring >= first_to_go(shape, rows);
    if (overwrites) {
      w->overwritten[out->overwritten_count++] = (struct kvw_piece){position - ring, 1, slot};
      rows->start = position - ring + 1;
    }
    memcpy(rows->k + slot * row, given->k + i * row, row * sizeof(float));
    memcpy(rows->v + slot * row, given->v + i * row, row * sizeof(float));
    if (rows->raw != NULL) memcpy(rows->raw + slot * row, given->k_raw + i * row, row * sizeof(float));
    w->pieces[out->piece_count++] = (struct kvw_piece){position, 1, slot};
  }
  rows->end += given->count;
  of->due = next_due(w, layer);
  of->count = given->count;
  out->pieces = w->pieces;
  out->overwritten = w->overwritten;
  return KVW_OK;
}

static int why_not_read(const struct kvw_layer* shape, const struct rows* rows, uint32_t from, uint32_t to) {
  if (from > to) return KVW_OUT_OF_ORDER;
  if (from < rows->start && to > shape->sinks) return KVW_EVICTED;
  return to > rows->end ? KVW_FUTURE : KVW_OK;
}

static int read_rows(void* self, uint32_t sequence, uint32_t layer, uint32_t from, uint32_t to, float* k, float* v) {
  const struct whole* w = self;
  int code = whole_find(w, sequence, layer);
  if (code != KVW_OK) return code;
  const struct kvw_layer* shape = &w->shapes[layer];
  const struct rows* rows = &w->sequences[sequence].layers[owner(w, layer)];
  if ((code = why_not_read(shape, rows, from, to)) != KVW_OK) return code;
  const size_t row = width(shape);
  for (uint32_t p = from; p < to; ++p) {
    memcpy(k + (p - from) * row, rows->k + slot_of(shape, p) * row, row * sizeof(float));
    memcpy(v + (p - from) * row, rows->v + slot_of(shape, p) * row, row * sizeof(float));
  }
  return KVW_OK;
}

static int window(void* self, uint32_t sequence, uint32_t layer, uint32_t from, uint32_t to, struct kvw_run* runs,
                  size_t room, size_t* used) {
  const struct whole* w = self;
  int code = whole_find(w, sequence, layer);
  if (code != KVW_OK) return code;
  const struct kvw_layer* shape = &w->shapes[layer];
  const struct rows* rows = &w->sequences[sequence].layers[owner(w, layer)];
  if ((code = why_not_read(shape, rows, from, to)) != KVW_OK) return code;
  const size_t row = width(shape);
  for (uint32_t p = 0; from < to && p < to; ++p) {
    if (p >= shape->sinks && p < from) p = from;
    const uint32_t slot = slot_of(shape, p);
    struct kvw_run* last = *used == 0 ? NULL : &runs[*used - 1];
    if (last != NULL && last->piece.first + last->piece.count == p && last->piece.slot + last->piece.count == slot)
      ++last->piece.count;
    else if (*used < room)
      runs[(*used)++] = (struct kvw_run){{p, 1, slot}, rows->k + slot * row, rows->v + slot * row, row, row};
  }
  return KVW_OK;
}

/* ---- edits */

int whole_why_not_truncate(const struct whole* w, const struct sequence* of, uint32_t to) {
  if (of->due != 0) return KVW_OUT_OF_ORDER;
  if (to > of->layers[0].end) return KVW_FUTURE;
  for (uint32_t layer = 0; layer < w->layer_count; ++layer) {
    const struct kvw_layer* shape = &w->shapes[layer];
    const uint32_t evicted_to = of->evicted_to > shape->sinks ? of->evicted_to : 0;
    if (is_reader(shape) || to == of->layers[layer].end || to < shape->sinks) continue;
    if (to < evicted_to) return KVW_EVICTED;
    if (of->layers[layer].start > greater(window_low(window_of(shape), to), evicted_to)) return KVW_EVICTED;
  }
  return KVW_OK;
}

uint32_t whole_cut(const struct whole* w, struct sequence* of, uint32_t to) {
  uint32_t most = 0;
  for (uint32_t layer = 0; layer < w->layer_count; ++layer) {
    const struct kvw_layer* shape = &w->shapes[layer];
    struct rows* rows = &of->layers[layer];
    if (is_reader(shape)) continue;
    const uint32_t before = held(shape, rows);
    if (to < rows->end && to < shape->sinks) rows->start = 0;
    rows->end = lesser(rows->end, to);
    rows->start = lesser(rows->start, to);
    most = greater(most, before - held(shape, rows));
  }
  of->evicted_to = lesser(of->evicted_to, to);
  return most;
}

static int truncate_to(void* self, uint32_t sequence, uint32_t to, struct kvw_edited* out) {
  struct whole* w = self;
  if (sequence >= w->sequence_count) return KVW_UNKNOWN_SEQUENCE;
  const int code = whole_why_not_truncate(w, &w->sequences[sequence], to);
  if (code == KVW_OK) out->freed = whole_cut(w, &w->sequences[sequence], to);
  return code;
}

static int evict_front(struct whole* w, struct sequence* of, uint32_t from, uint32_t to, struct kvw_edited* out) {
  for (uint32_t layer = 0; layer < w->layer_count; ++layer) {
    const struct kvw_layer* shape = &w->shapes[layer];
    if (!is_reader(shape) && from > first_to_go(shape, &of->layers[layer])) return KVW_UNSUPPORTED;
  }
  for (uint32_t layer = 0; layer < w->layer_count; ++layer) {
    struct rows* rows = &of->layers[layer];
    const uint32_t first = first_to_go(&w->shapes[layer], rows);
    if (is_reader(&w->shapes[layer]) || to <= first) continue;
    out->freed = greater(out->freed, to - first);
    rows->start = to;
  }
  of->evicted_to = greater(of->evicted_to, to);
  return KVW_OK;
}

static void rotate(const struct kvw_layer* shape, const float* raw, float* out, uint32_t position) {
  const uint32_t half = shape->head_dim / 2;
  for (uint32_t j = 0; j < half; ++j) {
    const double angle = position * pow(shape->rope_theta, -2.0 * j / shape->head_dim);
    const float cosine = (float)cos(angle), sine = (float)sin(angle);
    for (uint32_t head = 0; head < shape->kv_heads; ++head) {
      const size_t a = (size_t)head * shape->head_dim + j, b = a + half;
      const float left = raw[a] * cosine, right = raw[b] * sine, up = raw[b] * cosine, down = raw[a] * sine;
      out[a] = left - right;
      out[b] = up + down;
    }
  }
}

static void close_gap(struct whole* w, struct sequence* of, uint32_t layer, uint32_t from, uint32_t to,
                      struct kvw_edited* out) {
  const struct kvw_layer* shape = &w->shapes[layer];
  struct rows* rows = &of->layers[layer];
  const uint32_t survivors = of->layers[owner(w, layer)].end - to;
  const int claims_moves = !is_reader(shape) || fault("moves-rows-of-readers");
  const int claims_rotations = !is_reader(shape) || fault("rotates-rows-of-readers");
  if (survivors != 0 && claims_moves)
    w->moves[out->move_count++] = (struct kvw_move){layer, to, from, to, from, survivors};
  if (survivors != 0 && claims_rotations && keeps_raw(shape))
    w->rotations[out->rotation_count++] = (struct kvw_rotation){layer, from, from, from, survivors};
  if (is_reader(shape)) return;
  const size_t row = width(shape), bytes = survivors * row * sizeof(float);
  memmove(rows->k + from * row, rows->k + to * row, bytes);
  memmove(rows->v + from * row, rows->v + to * row, bytes);
  if (rows->raw != NULL && !fault("raw-keys-stay")) memmove(rows->raw + from * row, rows->raw + to * row, bytes);
  for (uint32_t p = from; rows->raw != NULL && p < from + survivors; ++p)
    rotate(shape, rows->raw + p * row, rows->k + p * row, p);
}

static int evict(void* self, uint32_t sequence, uint32_t from, uint32_t to, struct kvw_edited* out) {
  struct whole* w = self;
  if (sequence >= w->sequence_count) return KVW_UNKNOWN_SEQUENCE;
  struct sequence* of = &w->sequences[sequence];
  if (of->due != 0 || from > to) return KVW_OUT_OF_ORDER;
  if (to > of->layers[0].end) return KVW_FUTURE;
  if (from == to) return KVW_OK;
  if (!whole_renumbers) return evict_front(w, of, from, to, out);
  for (uint32_t layer = 0; layer < w->layer_count; ++layer) close_gap(w, of, layer, from, to, out);
  for (uint32_t layer = 0; layer < w->layer_count; ++layer) {
    if (!is_reader(&w->shapes[layer])) of->layers[layer].end -= to - from;
  }
  out->moves = w->moves;
  out->rotations = w->rotations;
  out->freed = to - from;
  return KVW_OK;
}

static int clear(void* self, uint32_t sequence, struct kvw_edited* out) {
  struct whole* w = self;
  if (sequence >= w->sequence_count) return KVW_UNKNOWN_SEQUENCE;
  struct sequence* of = &w->sequences[sequence];
  for (uint32_t layer = 0; layer < w->layer_count; ++layer) {
    struct rows* rows = &of->layers[layer];
    out->freed = greater(out->freed, held(&w->shapes[layer], rows));
    rows->start = rows->end = 0;
  }
  of->due = of->count = of->evicted_to = 0;
  return KVW_OK;
}

const struct kvw_plugin* kvw_plugin_v1(void) {
  static struct kvw_plugin table;
  const uint64_t both = KVW_CAN_TRUNCATE | KVW_CAN_CLEAR | KVW_CAN_SEQUENCES | KVW_CAN_FORK | KVW_CAN_SAVE |
                        KVW_CAN_ATTEND | KVW_CAN_DONORS;
  const uint64_t ring = KVW_CAN_RING | KVW_CAN_SLIDE | KVW_CAN_FRONT_EVICT | KVW_CAN_SINKS;
  const uint64_t compact = KVW_CAN_MIDDLE_EVICT | KVW_CAN_RENUMBER;
  const char *kind = getenv("WHOLE_KIND"), *wanted = getenv("WHOLE_FAULT");
  whole_renumbers = kind != NULL && strcmp(kind, "compact") == 0;
  if (wanted != NULL) whole_fault = wanted;
  table = (struct kvw_plugin){.size = sizeof table,
                              .name = whole_renumbers ? "whole-compact" : "whole-ring",
                              .capabilities = both | (whole_renumbers ? compact : ring),
                              .create = create,
                              .destroy = destroy,
                              .memory = memory,
                              .extent = extent,
                              .append = append,
                              .read = read_rows,
                              .truncate = truncate_to,
                              .evict = evict,
                              .clear = clear,
                              .window = window,
                              .attend = whole_attend,
                              .save = whole_save,
                              .restore = whole_restore,
                              .fork = whole_fork};
  return &table;
}
