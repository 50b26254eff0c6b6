/* Forks and files of whole.c. */
#include "whole.h"

#include <stdlib.h>

int whole_fork(void* self, uint32_t sequence, uint32_t child, uint32_t to) {
  struct whole* w = self;
  if (greater(sequence, child) >= w->sequence_count) return KVW_UNKNOWN_SEQUENCE;
  const struct sequence* of = &w->sequences[sequence];
  struct sequence* made = &w->sequences[child];
  if (of->due != 0 || child == sequence || made->due != 0 || made->layers[0].end != 0) return KVW_OUT_OF_ORDER;
  const int code = whole_why_not_truncate(w, of, to);
  if (code != KVW_OK) return code;
  for (uint32_t layer = 0; layer < w->layer_count; ++layer) {
    const struct rows* rows = &of->layers[layer];
    struct rows* copy = &made->layers[layer];
    const size_t bytes = w->shapes[layer].capacity * width(&w->shapes[layer]) * sizeof(float);
    copy->start = rows->start;
    copy->end = rows->end;
    if (is_reader(&w->shapes[layer])) continue;
    memcpy(copy->k, rows->k, bytes);
    memcpy(copy->v, rows->v, bytes);
    if (rows->raw != NULL && !fault("children-lack-raw-keys")) memcpy(copy->raw, rows->raw, bytes);
  }
  made->evicted_to = of->evicted_to;
  whole_cut(w, made, to);
  return KVW_OK;
}

/* What a layer means by its rows, and the positions that it has. */
struct saved_layer {
  double rope_theta;
  uint32_t kv_heads, head_dim, window, sinks, donor, has_raw, start, end;
};

static struct saved_layer describe(const struct kvw_layer* shape, const struct rows* rows) {
  struct saved_layer saved;
  memset(&saved, 0, sizeof saved);
  saved.rope_theta = shape->rope_theta;
  saved.kv_heads = shape->kv_heads;
  saved.head_dim = shape->head_dim;
  saved.window = window_of(shape);
  saved.sinks = shape->sinks;
  saved.donor = shape->donor;
  saved.has_raw = keeps_raw(shape) != 0;
  saved.start = rows->start;
  saved.end = rows->end;
  return saved;
}

struct header {
  uint64_t digest; /* of all that follows it */
  uint32_t layers, evicted_to;
};

static uint64_t digest_of(const unsigned char* file, size_t bytes) {
  uint64_t digest = 14695981039346656037u; /* FNV-1a */
  for (size_t i = sizeof digest; i < bytes; ++i) digest = (digest ^ file[i]) * 1099511628211u;
  return digest;
}

/* Copies a layer's rows into a file, or out of it; returns the end. */
static unsigned char* carry(const struct kvw_layer* shape, const struct rows* rows, unsigned char* at, int saves) {
  const size_t bytes = width(shape) * sizeof(float);
  float* const planes[] = {rows->k, rows->v, rows->raw};
  for (uint32_t p = 0; p < rows->end; ++p) {
    if (!is_held(shape, rows, p)) continue;
    for (int plane = 0; plane < (rows->raw != NULL ? 3 : 2); ++plane, at += bytes) {
      float* row = planes[plane] + slot_of(shape, p) * width(shape);
      memcpy(saves ? (void*)at : (void*)row, saves ? (void*)row : (void*)at, bytes);
    }
  }
  return at;
}

static void farthest(const struct whole* w, const struct sequence* of, uint32_t* from, uint32_t* to) {
  *from = *to = of->layers[0].end;
  for (uint32_t layer = 0; layer < w->layer_count; ++layer)
    if (!is_reader(&w->shapes[layer])) *from = lesser(*from, of->layers[layer].start);
}

int whole_save(void* self, uint32_t sequence, const void** file, size_t* bytes, uint32_t* from, uint32_t* to) {
  struct whole* w = self;
  if (sequence >= w->sequence_count) return KVW_UNKNOWN_SEQUENCE;
  const struct sequence* of = &w->sequences[sequence];
  if (of->due != 0) return KVW_OUT_OF_ORDER;
  size_t room = sizeof(struct header) + w->layer_count * sizeof(struct saved_layer);
  for (uint32_t layer = 0; layer < w->layer_count; ++layer)
    room += 3 * w->shapes[layer].capacity * width(&w->shapes[layer]) * sizeof(float);
  free(w->file);
  if ((w->file = calloc(room, 1)) == NULL) abort();
  struct header header = {0, w->layer_count, of->evicted_to};
  unsigned char* at = w->file + sizeof header;
  for (uint32_t layer = 0; layer < w->layer_count; ++layer) {
    const struct saved_layer saved = describe(&w->shapes[layer], &of->layers[layer]);
    memcpy(at, &saved, sizeof saved);
    at += sizeof saved;
    if (!is_reader(&w->shapes[layer])) at = carry(&w->shapes[layer], &of->layers[layer], at, 1);
  }
  *bytes = (size_t)(at - w->file);
  memcpy(w->file, &header, sizeof header);
  header.digest = digest_of(w->file, *bytes);
  memcpy(w->file, &header, sizeof header);
  *file = w->file;
  farthest(w, of, from, to);
  return KVW_OK;
}

static int may_hold(const struct kvw_layer* shape, const struct rows* rows) {
  return held(shape, rows) <= shape->capacity && (!whole_renumbers || rows->start == 0);
}

/* Looks at a file, or (`takes`) makes the sequence what it says. */
static int take(const struct whole* w, struct sequence* of, unsigned char* at, int takes) {
  for (uint32_t layer = 0; layer < w->layer_count; ++layer) {
    const struct kvw_layer* shape = &w->shapes[layer];
    struct saved_layer saved;
    memcpy(&saved, at, sizeof saved);
    at += sizeof saved;
    struct rows rows = of->layers[layer];
    rows.start = saved.start;
    rows.end = saved.end;
    const struct saved_layer here = describe(shape, &rows);
    if (memcmp(&here, &saved, sizeof saved) != 0 || !may_hold(shape, &rows)) return KVW_UNSUPPORTED;
    if (takes) of->layers[layer] = rows;
    if (is_reader(shape)) continue;
    at = takes ? carry(shape, &rows, at, 0)
               : at + held(shape, &rows) * width(shape) * sizeof(float) * (rows.raw != NULL ? 3 : 2);
  }
  return KVW_OK;
}

int whole_restore(void* self, uint32_t sequence, const void* file, size_t bytes, uint32_t* from, uint32_t* to) {
  struct whole* w = self;
  if (sequence >= w->sequence_count) return KVW_UNKNOWN_SEQUENCE;
  struct sequence* of = &w->sequences[sequence];
  if (of->due != 0) return KVW_OUT_OF_ORDER;
  struct header header;
  if (bytes < sizeof header) return KVW_CORRUPT;
  memcpy(&header, file, sizeof header);
  if (header.digest != digest_of(file, bytes)) return KVW_CORRUPT;
  if (header.layers != w->layer_count) return KVW_UNSUPPORTED;
  unsigned char* rows = (unsigned char*)file + sizeof header;
  const int code = take(w, of, rows, 0);
  if (code != KVW_OK) return code;
  take(w, of, rows, 1);
  of->evicted_to = header.evicted_to;
  farthest(w, of, from, to);
  return KVW_OK;
}
