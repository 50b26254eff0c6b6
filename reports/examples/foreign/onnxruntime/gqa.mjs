// onnxruntime's GroupQueryAttention, with its window, judged from outside (core/PROTOCOL.md):
//
//   npm install --ignore-scripts          (the package's script only fetches GPU libraries)
//   kvwitness conform --exec 'node gqa.mjs'
//
// Releases from 1.24 on pass. Up to 1.23 the window left out the current token (microsoft/onnxruntime#25927), so that a
// query saw one key too many; `npm install --ignore-scripts onnxruntime-node@1.23.2` shows how visible-set and
// numeric-oracle say so.
//
// The store is what the operator keeps: its present_key and present_value are handed back as past_key and past_value.
// Rows that were appended since go in with the queries about them, in one call, as an engine runs a prompt, a chunk of
// one, or a token. Every layer's window is the operator's local_window_size.
import {createRequire} from 'node:module';
import readline from 'node:readline';
import {FLOAT, INT32, modelOf} from './model.mjs';

const ort = createRequire(import.meta.url)('onnxruntime-node');  // also where NODE_PATH says
const CAPABILITIES = ['attend', 'truncate', 'clear', 'sequences'];
const OPTIONS = {logSeverityLevel: 4};  // what it refuses is told as the reason why a scenario is skipped
let layers = [], sequences = [];

const floats = base64 => {
  const bytes = Buffer.from(base64, 'base64');
  return new Float32Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length));
};
const base64 = values => Buffer.from(values.buffer, values.byteOffset, values.byteLength).toString('base64');
const tensor = (values, shape) => new ort.Tensor('float32', values, shape);
const int32 = (value, shape) => new ort.Tensor('int32', Int32Array.of(value), shape);

function gqaModel(layer, scale, softcap) {
  const {q_heads: q, kv_heads: kv, head_dim: d} = layer;
  const rows = (name, heads) => ({name, type: FLOAT, shape: [1, 'rows', heads * d]});
  const kept = (name, length) => ({name, type: FLOAT, shape: [1, kv, length, d]});
  const inputs = [
    rows('query', q), rows('key', kv), rows('value', kv), kept('past_key', 'past'), kept('past_value', 'past'),
    {name: 'seqlens_k', type: INT32, shape: [1]}, {name: 'total_sequence_length', type: INT32, shape: [1]}];
  const outputs = [rows('output', q), kept('present_key', 'total'), kept('present_value', 'total')];
  return modelOf('GroupQueryAttention', inputs, outputs, {
    num_heads: {i: q}, kv_num_heads: {i: kv}, local_window_size: {i: layer.window ?? -1}, scale: {f: scale},
    softcap: {f: softcap}});
}

// The rows of one layer and sequence: [kv_heads][length][head_dim] as the operator keeps them, then those it has not met.
class Rows {
  constructor(layer) {
    Object.assign(this, {layer, width: layer.kv_heads * layer.head_dim, length: 0, k: new Float32Array(), v: new Float32Array(),
                         newK: [], newV: []});
  }
  get end() { return this.length + this.newK.length; }
  // Rows [from, to) as the operator keeps them, position by position.
  kept(side, from, to) {
    const {kv_heads: heads, head_dim: d} = this.layer, rows = [];
    for (let p = from; p < to; ++p) {
      const row = new Float32Array(this.width);
      for (let h = 0; h < heads; ++h) row.set(this[side].subarray((h * this.length + p) * d, (h * this.length + p + 1) * d), h * d);
      rows.push(row);
    }
    return rows;
  }
  rows(side, from, to) {
    const fresh = side === 'k' ? this.newK : this.newV, known = Math.min(to, this.length);
    return [...this.kept(side, from, known),
            ...fresh.slice(Math.max(0, from - this.length), Math.max(0, to - this.length))];
  }
  // The operator's rows end at `end` from now on; what lay behind is new again, or gone.
  cut(end, keepsRest) {
    if (end >= this.length) return;
    const rest = keepsRest ? ['k', 'v'].map(side => this.kept(side, end, this.length)) : [[], []];
    const first = ['k', 'v'].map(side => {
      const {kv_heads: heads, head_dim: d} = this.layer, cut = new Float32Array(end * this.width);
      for (let h = 0; h < heads; ++h) cut.set(this[side].subarray(h * this.length * d, (h * this.length + end) * d), h * end * d);
      return cut;
    });
    [this.k, this.v] = first;
    this.length = end;
    this.newK.unshift(...rest[0]);
    this.newV.unshift(...rest[1]);
  }
  truncate(to) {
    this.newK.length = this.newV.length = Math.max(0, to - this.length);
    this.cut(to, false);
  }
}

function joined(rows, width) {
  const all = new Float32Array(rows.length * width);
  rows.forEach((row, i) => all.set(row, i * width));
  return all;
}

// One call of the operator: the queries are those of the newest rows, which it has not met yet.
async function attend(rows, first, count, q) {
  rows.cut(first, true);
  const {q_heads: heads, kv_heads: kv, head_dim: d} = rows.layer, fresh = rows.newK.length, total = rows.end;
  const past = [1, kv, rows.length, d], width = heads * d;
  const query = new Float32Array(fresh * width);
  query.set(q, (fresh - count) * width);  // rows in front of the queries: nobody asked
  const {output, present_key, present_value} = await rows.layer.session.run({
    query: tensor(query, [1, fresh, width]), key: tensor(joined(rows.newK, rows.width), [1, fresh, rows.width]),
    value: tensor(joined(rows.newV, rows.width), [1, fresh, rows.width]), past_key: tensor(rows.k, past),
    past_value: tensor(rows.v, past), seqlens_k: int32(total - 1, [1]), total_sequence_length: int32(total, [1])});
  Object.assign(rows, {k: present_key.data, v: present_value.data, length: total, newK: [], newV: []});
  return output.data.subarray((fresh - count) * width);
}

// What the operator refuses (heads of 1, 4 or 5 elements) it refuses when it runs.
async function tryOut(layer) {
  const rows = new Rows(layer);
  rows.newK.push(new Float32Array(rows.width));
  rows.newV.push(new Float32Array(rows.width));
  await attend(rows, 0, 1, new Float32Array(layer.q_heads * layer.head_dim));
}

async function create({sequences: count, layers: wanted, score_scales: scales, softcap}) {
  try {
    layers = await Promise.all(wanted.map(async (layer, i) => ({
      ...layer, session: await ort.InferenceSession.create(gqaModel(layer, scales[i], softcap), OPTIONS)})));
    await Promise.all(layers.map(tryOut));
  } catch (error) {
    return {error: String(error.message)};
  }
  sequences = Array.from({length: count}, () => fresh());
  const bytes = layer => 4 * count * layer.capacity * layer.kv_heads * layer.head_dim;
  return {storages: layers.flatMap((layer, i) => [...'kv'].map(plane => [i, plane, bytes(layer)]))};
}
const fresh = () => ({due: 0, dueCount: 0, layers: layers.map(layer => new Rows(layer))});

function memory() {
  const all = sequences.flatMap(one => one.layers);
  const sum = of => all.reduce((total, rows) => total + of(rows), 0);
  return {used_bytes: sum(rows => 8 * rows.width * rows.end), resident_positions: sum(rows => rows.end)};
}

function append(one, rows, {layer, count, k, v}) {
  if (layer !== one.due || (one.due > 0 && count !== one.dueCount)) return {refused: 'out-of-order'};
  if (count === 0) return {refused: 'unsupported'};
  if (rows.end + count > rows.layer.capacity) return {refused: 'full'};
  const pieces = [[rows.end, count, rows.end]], [newK, newV] = [floats(k), floats(v)];
  for (let i = 0; i < count; ++i) {
    rows.newK.push(newK.slice(i * rows.width, (i + 1) * rows.width));
    rows.newV.push(newV.slice(i * rows.width, (i + 1) * rows.width));
  }
  [one.due, one.dueCount] = [(layer + 1) % layers.length, count];
  return {pieces, overwritten: []};
}

function truncate(one, to) {
  if (one.due !== 0) return {refused: 'out-of-order'};
  const end = one.layers[0].end;
  if (to > end) return {refused: 'future'};
  one.layers.forEach(rows => rows.truncate(to));
  return {freed: end - to};
}

async function answer(r) {
  if (r.op === 'hello') return {protocol: 1, name: 'onnxruntime-gqa', capabilities: CAPABILITIES};
  if (r.op === 'create') return create(r.config);
  if (r.op === 'memory') return memory();
  const one = sequences[r.seq];
  if (!one) return {refused: 'unknown-sequence'};
  if (r.op === 'truncate') return truncate(one, r.to);
  if (r.op === 'clear') {
    const freed = Math.max(...one.layers.map(rows => rows.end));
    sequences[r.seq] = fresh();
    return {freed};
  }
  const rows = one.layers[r.layer];
  if (!rows) return {refused: 'out-of-order'};
  if (r.op === 'extent') return {from: 0, to: rows.end};
  if (r.op === 'append') return append(one, rows, r);
  if (r.op === 'attend') return {out: base64(await attend(rows, r.first, r.count, floats(r.q)))};
  if (r.from > r.to) return {refused: 'out-of-order'};
  if (r.to > rows.end) return {refused: 'future'};
  return Object.fromEntries(['k', 'v'].map(side => [side, base64(joined(rows.rows(side, r.from, r.to), rows.width))]));
}

for await (const line of readline.createInterface({input: process.stdin})) {
  const request = JSON.parse(line);
  console.log(JSON.stringify({id: request.id, ...await answer(request)}));
}
