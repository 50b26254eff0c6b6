/// A ring of K and V rows in plain C, as a plug-in: `kvwitness conform --plugin ./libring.so` (kvwitness/store.h).
/// With RING_FAULT in the environment it has one of three faults that public engines had: physical-order, off-by-one,
/// serves-evicted.
#include <kvwitness/store.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct layer {
  uint32_t capacity, window, sliding, end;
  uint32_t floor; // first position that a fork has
  size_t width; // values of a row
  float *k, *v; // [capacity][width]
};

struct sequence {
  struct layer *layers;
  uint32_t due;   // layer that the token under way goes to next
  uint32_t count; // rows of that token
};

struct ring {
  uint32_t sequence_count, layer_count;
  struct sequence *sequences;
  struct kvw_storage *storages;
  struct kvw_piece *pieces, *lost; // room for the longest append
  int physical_order, off_by_one, serves_evicted;
};

static uint32_t start_of(const struct ring *ring, const struct layer *layer) {
  const uint32_t kept = layer->capacity - (ring->off_by_one ? 1 : 0);
  const uint32_t start = layer->end > kept ? layer->end - kept : 0;
  return start > layer->floor ? start : layer->floor;
}

static int fault_is(const char *name) {
  const char *fault = getenv("RING_FAULT");
  return fault != NULL && strcmp(fault, name) == 0;
}

static void destroy(void *self) {
  struct ring *ring = self;
  if (ring->sequences != NULL)
    for (uint32_t s = 0; s < ring->sequence_count; ++s) {
      for (uint32_t l = 0; ring->sequences[s].layers != NULL && l < ring->layer_count; ++l) {
        free(ring->sequences[s].layers[l].k);
        free(ring->sequences[s].layers[l].v);
      }
      free(ring->sequences[s].layers);
    }
  free(ring->sequences);
  free(ring->storages);
  free(ring->pieces);
  free(ring->lost);
  free(ring);
}

static int init_layer(struct layer *layer, const struct kvw_layer *config) {
  layer->capacity = config->capacity;
  layer->window = config->window == KVW_NO_WINDOW ? config->capacity : config->window;
  layer->sliding = config->sliding;
  layer->width = (size_t)config->kv_heads * config->head_dim;
  layer->k = calloc(layer->capacity, layer->width * sizeof(float));
  layer->v = calloc(layer->capacity, layer->width * sizeof(float));
  return layer->k != NULL && layer->v != NULL;
}

static int init(struct ring *ring, const struct kvw_config *config) {
  const size_t layers = (size_t)config->sequences * config->layer_count;
  uint32_t widest = 0;
  ring->sequences = calloc(config->sequences, sizeof *ring->sequences);
  ring->storages = calloc(2 * layers, sizeof *ring->storages);
  if (ring->sequences == NULL || ring->storages == NULL) return 0;
  struct kvw_storage *storage = ring->storages;
  for (uint32_t s = 0; s < config->sequences; ++s) {
    ring->sequences[s].layers = calloc(config->layer_count, sizeof *ring->sequences[s].layers);
    if (ring->sequences[s].layers == NULL) return 0;
    for (uint32_t l = 0; l < config->layer_count; ++l) {
      const struct kvw_layer *from = (const struct kvw_layer *)((const char *)config->layers + l * config->layer_size);
      struct layer *layer = &ring->sequences[s].layers[l];
      if (!init_layer(layer, from)) return 0;
      if (layer->capacity > widest) widest = layer->capacity;
      for (uint32_t plane = 0; plane < 2; ++plane)
        *storage++ = (struct kvw_storage){l, plane, layer->capacity * layer->width * sizeof(float)};
    }
  }
  ring->pieces = calloc(widest, sizeof *ring->pieces);
  ring->lost = calloc(widest, sizeof *ring->lost);
  return ring->pieces != NULL && ring->lost != NULL;
}

static void *create(const struct kvw_config *config, char *error, size_t room) {
  if (config->size < sizeof *config) {
    snprintf(error, room, "the host is older than this plug-in");
    return NULL;
  }
  struct ring *ring = calloc(1, sizeof *ring);
  if (ring == NULL) return NULL;
  ring->sequence_count = config->sequences;
  ring->layer_count = config->layer_count;
  ring->physical_order = fault_is("physical-order");
  ring->off_by_one = fault_is("off-by-one");
  ring->serves_evicted = fault_is("serves-evicted");
  if (init(ring, config)) return ring;
  destroy(ring);
  snprintf(error, room, "not enough memory");
  return NULL;
}

static void memory(void *self, struct kvw_memory *out) {
  const struct ring *ring = self;
  out->storages = ring->storages;
  out->storage_count = (size_t)2 * ring->sequence_count * ring->layer_count;
  for (uint32_t s = 0; s < ring->sequence_count; ++s)
    for (uint32_t l = 0; l < ring->layer_count; ++l) {
      const struct layer *layer = &ring->sequences[s].layers[l];
      const uint32_t held = layer->end - start_of(ring, layer);
      out->resident_positions += held;
      out->used_bytes += 2 * held * layer->width * sizeof(float);
    }
}

/// The layer, or why there is none.
static int find(const struct ring *ring, uint32_t sequence, uint32_t layer, struct layer **found) {
  if (sequence >= ring->sequence_count) return KVW_UNKNOWN_SEQUENCE;
  if (layer >= ring->layer_count) return KVW_OUT_OF_ORDER;
  *found = &ring->sequences[sequence].layers[layer];
  return KVW_OK;
}

static int extent(void *self, uint32_t sequence, uint32_t layer, uint32_t *from, uint32_t *to) {
  struct layer *found = NULL;
  const int code = find(self, sequence, layer, &found);
  if (code != KVW_OK) return code;
  *from = start_of(self, found);
  *to = found->end;
  return KVW_OK;
}

static int append(void *self, uint32_t sequence, uint32_t l, const struct kvw_rows *rows, struct kvw_appended *out) {
  struct ring *ring = self;
  struct layer *layer = NULL;
  const int code = find(ring, sequence, l, &layer);
  if (code != KVW_OK) return code;
  struct sequence *own = &ring->sequences[sequence];
  if (l != own->due || (l > 0 && rows->count != own->count)) return KVW_OUT_OF_ORDER;
  if (rows->count == 0) return KVW_UNSUPPORTED;
  // What the first query of this append sees may not be overwritten.
  uint64_t seen = start_of(ring, layer);
  if (layer->sliding && layer->end + 1 > layer->window && layer->end + 1 - layer->window > seen)
    seen = layer->end + 1 - layer->window;
  if ((uint64_t)layer->end + rows->count > seen + layer->capacity) return KVW_FULL;
  for (uint32_t i = 0; i < rows->count; ++i, ++layer->end) {
    const uint32_t slot = layer->end % layer->capacity;
    if (layer->end >= layer->capacity + layer->floor)
      ring->lost[out->overwritten_count++] = (struct kvw_piece){layer->end - layer->capacity, 1, slot};
    ring->pieces[out->piece_count++] = (struct kvw_piece){layer->end, 1, slot};
    memcpy(layer->k + slot * layer->width, rows->k + i * layer->width, layer->width * sizeof(float));
    memcpy(layer->v + slot * layer->width, rows->v + i * layer->width, layer->width * sizeof(float));
  }
  out->pieces = ring->pieces;
  out->overwritten = ring->lost;
  own->due = (l + 1) % ring->layer_count;
  own->count = rows->count;
  return KVW_OK;
}

static int range_code(const struct ring *ring, const struct layer *layer, uint32_t from, uint32_t to) {
  if (from > to) return KVW_OUT_OF_ORDER;
  if (from < start_of(ring, layer) && !ring->serves_evicted) return KVW_EVICTED;
  return to > layer->end ? KVW_FUTURE : KVW_OK;
}

static int read_rows(void *self, uint32_t sequence, uint32_t l, uint32_t from, uint32_t to, float *k, float *v) {
  struct layer *layer = NULL;
  int code = find(self, sequence, l, &layer);
  if (code == KVW_OK) code = range_code(self, layer, from, to);
  if (code != KVW_OK) return code;
  for (uint32_t p = from; p < to; ++p, k += layer->width, v += layer->width) {
    memcpy(k, layer->k + p % layer->capacity * layer->width, layer->width * sizeof(float));
    memcpy(v, layer->v + p % layer->capacity * layer->width, layer->width * sizeof(float));
  }
  return KVW_OK;
}

static struct kvw_run run_of(const struct layer *layer, uint32_t first, uint32_t slot, uint32_t count) {
  const struct kvw_run run = {{first, count, slot},
                              layer->k + slot * layer->width,
                              layer->v + slot * layer->width,
                              layer->width,
                              layer->width};
  return run;
}

static int window(void *self, uint32_t sequence, uint32_t l, uint32_t from, uint32_t to, struct kvw_run *runs,
                  size_t room, size_t *used) {
  const struct ring *ring = self;
  struct layer *layer = NULL;
  int code = find(ring, sequence, l, &layer);
  if (code == KVW_OK) code = range_code(ring, layer, from, to);
  if (code != KVW_OK || from == to) return code;
  if (room < 2) return KVW_NO_MEMORY;
  const uint32_t slot = from % layer->capacity;
  const uint32_t before_end = layer->capacity - slot;
  if (to - from <= before_end) {
    runs[(*used)++] = run_of(layer, from, slot, to - from);
    return KVW_OK;
  }
  const uint32_t wrapped = to - from - before_end;
  if (ring->physical_order) { // the rows as they lie, under the positions that were asked for
    runs[(*used)++] = run_of(layer, from, 0, wrapped);
    runs[(*used)++] = run_of(layer, from + wrapped, slot, before_end);
    return KVW_OK;
  }
  runs[(*used)++] = run_of(layer, from, slot, before_end);
  runs[(*used)++] = run_of(layer, from + before_end, 0, wrapped);
  return KVW_OK;
}

static int clear(void *self, uint32_t sequence, struct kvw_edited *out) {
  struct ring *ring = self;
  if (sequence >= ring->sequence_count) return KVW_UNKNOWN_SEQUENCE;
  struct sequence *own = &ring->sequences[sequence];
  for (uint32_t l = 0; l < ring->layer_count; ++l) {
    const uint32_t held = own->layers[l].end - start_of(ring, &own->layers[l]);
    if (held > out->freed) out->freed = held;
    own->layers[l].end = own->layers[l].floor = 0;
  }
  own->due = 0;
  return KVW_OK;
}

/// Whether the layer still holds what the next query at `to` sees.
static int fork_code(const struct ring *ring, const struct layer *layer, uint32_t to) {
  if (to > layer->end) return KVW_FUTURE;
  const uint32_t lowest = to + 1 > layer->window ? to + 1 - layer->window : 0;
  return to < layer->end && start_of(ring, layer) > lowest ? KVW_EVICTED : KVW_OK;
}

/// The rows are copied slot by slot; those behind `to` are not shown.
static int fork_rows(void *self, uint32_t sequence, uint32_t child, uint32_t to) {
  struct ring *ring = self;
  if (sequence >= ring->sequence_count || child >= ring->sequence_count) return KVW_UNKNOWN_SEQUENCE;
  const struct sequence *from = &ring->sequences[sequence];
  const struct sequence *into = &ring->sequences[child];
  if (child == sequence || from->due != 0) return KVW_OUT_OF_ORDER;
  for (uint32_t l = 0; l < ring->layer_count; ++l) {
    if (into->layers[l].end != 0) return KVW_OUT_OF_ORDER;
    const int code = fork_code(ring, &from->layers[l], to);
    if (code != KVW_OK) return code;
  }
  for (uint32_t l = 0; l < ring->layer_count; ++l) {
    const struct layer *rows = &from->layers[l];
    struct layer *copy = &into->layers[l];
    memcpy(copy->k, rows->k, rows->capacity * rows->width * sizeof(float));
    memcpy(copy->v, rows->v, rows->capacity * rows->width * sizeof(float));
    copy->floor = start_of(ring, rows);
    copy->end = to;
  }
  return KVW_OK;
}

const struct kvw_plugin *kvw_plugin_v1(void) {
  static const struct kvw_plugin table = {
      .size = sizeof table,
      .name = "ring.c",
      .capabilities = KVW_CAN_RING | KVW_CAN_SLIDE | KVW_CAN_CLEAR | KVW_CAN_SEQUENCES | KVW_CAN_FORK,
      .create = create,
      .destroy = destroy,
      .memory = memory,
      .extent = extent,
      .append = append,
      .read = read_rows,
      .clear = clear,
      .fork = fork_rows,
      .window = window,
  };
  return &table;
}
