// A ring of K and V rows in JavaScript, judged by `kvwitness conform --exec "node ring.js"` (core/PROTOCOL.md).
// `ring.js FAULT` has one of three faults that public engines had: physical-order, off-by-one, serves-evicted.
let fault = process.argv[2] || '', layers = [], due = 0, dueCount = 0;
class Layer {
  constructor(c) {
    Object.assign(this, c, {window: c.window || c.capacity, bytes: 4 * c.kv_heads * c.head_dim, rows: [], end: 0});
  }
  get start() { return Math.max(0, this.end - this.capacity + (fault === 'off-by-one' ? 1 : 0)); }
  append(n, k, v) {
    const seen = Math.max(this.start, this.sliding ? this.end - this.window + 1 : 0);
    if (this.end + n - this.capacity > seen) return {refused: 'full'};
    const pieces = [], overwritten = [];
    for (let i = 0; i < n * this.bytes; i += this.bytes, ++this.end) {
      const slot = this.end % this.capacity;
      if (this.end >= this.capacity) overwritten.push([this.end - this.capacity, 1, slot]);
      this.rows[slot] = [k.subarray(i, i + this.bytes), v.subarray(i, i + this.bytes)];
      pieces.push([this.end, 1, slot]);
    }
    return {pieces, overwritten};
  }
  read(a, b) {
    if (a > b) return {refused: 'out-of-order'};
    if (a < this.start && fault !== 'serves-evicted') return {refused: 'evicted'};
    if (b > this.end) return {refused: 'future'};
    const slots = Array.from({length: b - a}, (_, i) => (a + i) % this.capacity);
    if (fault === 'physical-order') slots.sort((x, y) => x - y);
    const [k, v] = [0, 1].map(side => Buffer.concat(slots.map(s => this.rows[s][side])).toString('base64'));
    return {k, v};
  }
}

function answer(r) {
  if (r.op === 'hello') return {protocol: 1, name: 'ring.js', capabilities: ['ring', 'sliding', 'clear']};
  if (r.op === 'create') {
    layers = r.config.layers.map(config => new Layer(config));
    return {storages: layers.flatMap((l, i) => [...'kv'].map(plane => [i, plane, l.capacity * l.bytes]))};
  }
  const held = layers.map(l => l.end - l.start), sum = list => list.reduce((a, b) => a + b, 0);
  if (r.op === 'memory')
    return {used_bytes: sum(layers.map((l, i) => 2 * l.bytes * held[i])), resident_positions: sum(held)};
  if (r.seq !== 0) return {refused: 'unknown-sequence'};
  if (r.op === 'clear') {
    layers.forEach(l => l.end = due = 0);
    return {freed: Math.max(...held)};
  }
  const layer = layers[r.layer];
  if (!layer) return {refused: 'out-of-order'};
  if (r.op === 'extent') return {from: layer.start, to: layer.end};
  if (r.op === 'read') return layer.read(r.from, r.to);
  if (r.layer !== due || (due > 0 && r.count !== dueCount)) return {refused: 'out-of-order'};
  if (r.count === 0) return {refused: 'unsupported'};
  const done = layer.append(r.count, Buffer.from(r.k, 'base64'), Buffer.from(r.v, 'base64'));
  if (!done.refused) due = (due + 1) % layers.length, dueCount = r.count;
  return done;
}

require('readline').createInterface({input: process.stdin}).on('line', line => {
  const request = JSON.parse(line);
  console.log(JSON.stringify({id: request.id, ...answer(request)}));
});
