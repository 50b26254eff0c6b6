/* What the parts of whole.c share: its rows, and the law of what they are. */
#ifndef KVWITNESS_WHOLE_H
#define KVWITNESS_WHOLE_H

#include <kvwitness/store.h>

#include <stdint.h>
#include <string.h>

/* Rows of positions [0, min(start, sinks)) and [start, end), by slot. */
struct rows {
  uint32_t start, end;
  float *k, *v, *raw; /* raw: before rotation; null where nothing rotates them anew */
};

struct sequence {
  struct rows* layers;
  uint32_t due, count, evicted_to;
};

struct whole {
  uint32_t sequence_count, layer_count, slots_max;
  float softcap;
  struct kvw_layer* shapes;
  struct sequence* sequences;
  struct kvw_storage* storages;
  size_t storage_count;
  struct kvw_piece *pieces, *overwritten;
  struct kvw_move* moves;
  struct kvw_rotation* rotations;
  double* scores;
  uint32_t* seen;
  unsigned char* file;
};

/* Of the two kinds, and of the fault that it has; set when the plug-in is loaded. */
extern int whole_renumbers;
extern const char* whole_fault;

static inline int fault(const char* name) {
  return strcmp(whole_fault, name) == 0;
}

static inline uint32_t lesser(uint32_t a, uint32_t b) {
  return a < b ? a : b;
}
static inline uint32_t greater(uint32_t a, uint32_t b) {
  return a > b ? a : b;
}
static inline size_t width(const struct kvw_layer* shape) {
  return (size_t)shape->kv_heads * shape->head_dim;
}
static inline int is_reader(const struct kvw_layer* shape) {
  return shape->donor != KVW_NO_DONOR;
}
static inline int keeps_raw(const struct kvw_layer* shape) {
  return whole_renumbers && shape->rope_theta > 0;
}
static inline uint32_t owner(const struct whole* w, uint32_t layer) {
  return is_reader(&w->shapes[layer]) ? w->shapes[layer].donor : layer;
}

static inline uint32_t slot_of(const struct kvw_layer* shape, uint32_t position) {
  if (position < shape->sinks) return position;
  return shape->sinks + (position - shape->sinks) % (shape->capacity - shape->sinks);
}

/* Keys that a query sees besides the sinks; 0: all. */
static inline uint32_t window_of(const struct kvw_layer* shape) {
  return shape->window == KVW_NO_WINDOW && shape->sliding ? shape->capacity - shape->sinks : shape->window;
}

static inline uint32_t window_low(uint32_t window, uint32_t query) {
  return window != 0 && query + 1 > window ? query + 1 - window : 0;
}

/* What is lost next. */
static inline uint32_t first_to_go(const struct kvw_layer* shape, const struct rows* rows) {
  return greater(rows->start, shape->sinks);
}

static inline uint32_t held(const struct kvw_layer* shape, const struct rows* rows) {
  return rows->end - rows->start + lesser(rows->start, shape->sinks);
}

static inline int is_held(const struct kvw_layer* shape, const struct rows* rows, uint32_t position) {
  return position < rows->end && (position >= rows->start || position < shape->sinks);
}

int whole_find(const struct whole* w, uint32_t sequence, uint32_t layer);
int whole_why_not_truncate(const struct whole* w, const struct sequence* of, uint32_t to);
/* Takes back what lies from `to` on; returns what went, of the layer that lost most. */
uint32_t whole_cut(const struct whole* w, struct sequence* of, uint32_t to);

/* Calls of the table. */
int whole_fork(void* self, uint32_t sequence, uint32_t child, uint32_t to);
int whole_save(void* self, uint32_t sequence, const void** file, size_t* bytes, uint32_t* from, uint32_t* to);
int whole_restore(void* self, uint32_t sequence, const void* file, size_t bytes, uint32_t* from, uint32_t* to);
int whole_attend(void* self, uint32_t sequence, uint32_t layer, uint32_t first, uint32_t count, const float* q,
                 float* out);

#endif
