"""A ring of K and V rows in Python, judged by `kvwitness conform --exec "python3 ring.py"` (core/PROTOCOL.md).
`ring.py FAULT` has a fault that public engines had: physical-order, off-by-one or serves-evicted."""
import base64, json, sys
FAULT, layers, due, due_count = sys.argv[1] if len(sys.argv) > 1 else "", [], 0, 0

class Layer:
    def __init__(self, config):
        self.capacity, self.window = config["capacity"], config["window"] or config["capacity"]
        self.sliding, self.bytes = config["sliding"], 4 * config["kv_heads"] * config["head_dim"]
        self.rows, self.end = [None] * self.capacity, 0

    def start(self):
        return max(0, self.end - self.capacity + (FAULT == "off-by-one"))

    def append(self, count, k, v):
        seen = max(self.start(), self.end - self.window + 1 if self.sliding else 0)
        if self.end + count - self.capacity > seen: return {"refused": "full"}
        pieces, lost = [], []
        for i in range(0, count * self.bytes, self.bytes):
            slot = self.end % self.capacity
            if self.end >= self.capacity: lost.append([self.end - self.capacity, 1, slot])
            self.rows[slot] = k[i:i + self.bytes], v[i:i + self.bytes]
            pieces.append([self.end, 1, slot])
            self.end += 1
        return {"pieces": pieces, "overwritten": lost}

    def read(self, first, end):
        if first > end: return {"refused": "out-of-order"}
        if first < self.start() and FAULT != "serves-evicted": return {"refused": "evicted"}
        if end > self.end: return {"refused": "future"}
        slots = [p % self.capacity for p in range(first, end)]
        if FAULT == "physical-order": slots.sort()
        return {"kv"[i]: base64.b64encode(b"".join(self.rows[s][i] for s in slots)).decode() for i in (0, 1)}

def answer(r):
    global layers, due, due_count
    op, held = r["op"], [l.end - l.start() for l in layers]
    if op == "hello": return {"protocol": 1, "name": "ring.py", "capabilities": ["ring", "sliding", "clear"]}
    if op == "create":
        layers, due = [Layer(config) for config in r["config"]["layers"]], 0
        return {"storages": [[i, p, l.capacity * l.bytes] for i, l in enumerate(layers) for p in "kv"]}
    if op == "memory":
        return {"used_bytes": sum(2 * l.bytes * n for l, n in zip(layers, held)), "resident_positions": sum(held)}
    if r["seq"] != 0: return {"refused": "unknown-sequence"}
    if op == "clear":
        for layer in layers: layer.end = due = 0
        return {"freed": max(held)}
    if r["layer"] >= len(layers): return {"refused": "out-of-order"}
    layer = layers[r["layer"]]
    if op == "extent": return {"from": layer.start(), "to": layer.end}
    if op == "read": return layer.read(r["from"], r["to"])
    if r["layer"] != due or (due > 0 and r["count"] != due_count): return {"refused": "out-of-order"}
    if r["count"] == 0: return {"refused": "unsupported"}
    done = layer.append(r["count"], base64.b64decode(r["k"]), base64.b64decode(r["v"]))
    if "refused" not in done: due, due_count = (due + 1) % len(layers), r["count"]
    return done

for line in sys.stdin:
    request = json.loads(line)
    print(json.dumps({"id": request["id"], **answer(request)}), flush=True)
