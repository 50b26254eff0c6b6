/* The attention of whole.c, in double precision. */
#include "whole.h"

#include <math.h>

/* The slots that a query sees, and their number. */
static uint32_t see(const struct whole* w, uint32_t layer, const struct rows* rows, uint32_t query, uint32_t oldest) {
  const struct kvw_layer* shape = &w->shapes[layer];
  uint32_t window = window_of(shape);
  if (fault("sinks-count-as-window") && window > shape->sinks) window -= shape->sinks;
  const uint32_t low = window_low(window, fault("window-of-the-oldest-query") ? oldest : query);
  const int has_lost_all = greater(low, rows->start) > query;
  const uint32_t sinks = has_lost_all && fault("sinks-go-with-the-window") ? 0 : lesser(shape->sinks, query + 1);
  uint32_t count = 0;
  for (uint32_t p = 0; p < sinks; ++p) w->seen[count++] = slot_of(shape, p);
  for (uint32_t p = greater(greater(low, rows->start), sinks); p <= query; ++p) w->seen[count++] = slot_of(shape, p);
  return count;
}

static double score(const struct whole* w, const struct kvw_layer* shape, const float* q, const float* k,
                    int is_chunk) {
  double sum = 0;
  for (uint32_t e = 0; e < shape->head_dim; ++e) sum += (double)q[e] * k[e];
  sum *= fault("scale-by-head-dim") ? 1 / sqrt(shape->head_dim) : shape->score_scale;
  const int is_capped = w->softcap > 0 && !(is_chunk && fault("chunks-lack-softcap"));
  return is_capped ? w->softcap * tanh(sum / w->softcap) : sum;
}

/* One head of one query over the `count` slots seen. */
static void attend_head(const struct whole* w, uint32_t layer, const struct rows* rows, uint32_t count, uint32_t head,
                        const float* q, float* out, int is_chunk) {
  const struct kvw_layer* shape = &w->shapes[layer];
  const uint32_t group = shape->q_heads / shape->kv_heads;
  const uint32_t kv = fault("heads-in-turn") ? head % shape->kv_heads : head / group;
  const size_t row = width(shape), column = (size_t)kv * shape->head_dim;
  double most = -INFINITY, total = 0;
  for (uint32_t i = 0; i < count; ++i) {
    w->scores[i] = score(w, shape, q, rows->k + w->seen[i] * row + column, is_chunk);
    if (w->scores[i] > most) most = w->scores[i];
  }
  for (uint32_t i = 0; i < count; ++i) total += w->scores[i] = exp(w->scores[i] - most);
  for (uint32_t e = 0; e < shape->head_dim; ++e) {
    double sum = 0;
    for (uint32_t i = 0; i < count; ++i) sum += w->scores[i] * rows->v[w->seen[i] * row + column + e];
    out[e] = count > 0 ? (float)(sum / total) : 0;
  }
}

int whole_attend(void* self, uint32_t sequence, uint32_t layer, uint32_t first, uint32_t count, const float* q,
                 float* out) {
  const struct whole* w = self;
  const int code = whole_find(w, sequence, layer);
  if (code != KVW_OK) return code;
  const struct kvw_layer* shape = &w->shapes[layer];
  const struct rows* rows = &w->sequences[sequence].layers[owner(w, layer)];
  if (fault("refuses-what-is-gone") && first < rows->start && first >= shape->sinks) return KVW_EVICTED;
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t seen = see(w, layer, rows, first + i, first);
    for (uint32_t head = 0; head < shape->q_heads; ++head) {
      const size_t at = ((size_t)i * shape->q_heads + head) * shape->head_dim;
      attend_head(w, layer, rows, seen, head, q + at, out + at, count > 1);
    }
  }
  return KVW_OK;
}
