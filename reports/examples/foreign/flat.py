"""A cache of many sequences in Python that keeps every row, and forks, saves and restores them (core/PROTOCOL.md).
`flat.py FAULT` has a fault that public engines had: shares-rows, forks-all or trusts-files."""
import base64, json, sys, zlib
FAULT, layers, sequences = sys.argv[1] if len(sys.argv) > 1 else "", [], []
CAPABILITIES = ["truncate", "clear", "sequences", "fork", "save"]
MEANING = ["kv_heads", "head_dim", "window", "rope_theta"]

def bytes_of(config): return 4 * config["kv_heads"] * config["head_dim"]
def to_text(data): return base64.b64encode(data).decode()

class Sequence:
    def __init__(self):
        self.rows, self.due, self.count = [[] for _ in layers], 0, 0  # of each layer: (k, v) by position

    def append(self, r):
        layer, rows, size = r["layer"], self.rows[r["layer"]], bytes_of(layers[r["layer"]])
        if layer != self.due or (layer and r["count"] != self.count): return {"refused": "out-of-order"}
        if r["count"] == 0: return {"refused": "unsupported"}
        if len(rows) + r["count"] > layers[layer]["capacity"]: return {"refused": "full"}
        first, k, v = len(rows), base64.b64decode(r["k"]), base64.b64decode(r["v"])
        rows += [(k[i:i + size], v[i:i + size]) for i in range(0, len(k), size)]
        self.due, self.count = (self.due + 1) % len(layers), r["count"]
        return {"pieces": [[first, r["count"], first]]}

    def read(self, layer, first, end):
        if first > end: return {"refused": "out-of-order"}
        if end > len(self.rows[layer]): return {"refused": "future"}
        return {side: to_text(b"".join(row[i] for row in self.rows[layer][first:end])) for i, side in enumerate("kv")}

    def truncate(self, to):
        end = len(self.rows[0])
        if self.due: return {"refused": "out-of-order"}
        if to > end: return {"refused": "future"}
        for rows in self.rows: del rows[to:]
        return {"freed": end - to}

    def fork(self, child, to):
        end = len(self.rows[0])
        if self.due or child is self or any(child.rows): return {"refused": "out-of-order"}
        if to > end: return {"refused": "future"}
        if FAULT == "forks-all": to = end
        child.rows = self.rows if FAULT == "shares-rows" else [rows[:to] for rows in self.rows]
        return {}

    def save(self):
        if self.due: return {"refused": "out-of-order"}
        rows = [[[to_text(side) for side in row] for row in rows] for rows in self.rows]
        text = json.dumps([[[c[m] for m in MEANING] for c in layers], rows]).encode()
        return {"file": to_text(b"%08x" % zlib.crc32(text) + text), "from": 0, "to": len(self.rows[0])}

    def restore(self, file):
        if self.due: return {"refused": "out-of-order"}
        if file[:8] != b"%08x" % zlib.crc32(file[8:]) and FAULT != "trusts-files": return {"refused": "corrupt"}
        try: meaning, rows = json.loads(file[8:])
        except ValueError: return {"refused": "corrupt"}
        fits = all(len(r) <= c["capacity"] for r, c in zip(rows, layers))
        if meaning != [[c[m] for m in MEANING] for c in layers] or not fits: return {"refused": "unsupported"}
        self.rows = [[tuple(base64.b64decode(side) for side in row) for row in layer] for layer in rows]
        return {"from": 0, "to": len(self.rows[0])}

def answer(r):
    global layers, sequences
    op = r["op"]
    if op == "hello": return {"protocol": 1, "name": "flat.py", "capabilities": CAPABILITIES}
    if op == "create":
        layers, count = r["config"]["layers"], r["config"]["sequences"]
        sequences = [Sequence() for _ in range(count)]
        return {"storages": [[i, p, count * c["capacity"] * bytes_of(c)] for i, c in enumerate(layers) for p in "kv"]}
    if op == "memory":
        held = [(len(rows), 2 * bytes_of(c)) for s in sequences for rows, c in zip(s.rows, layers)]
        return {"used_bytes": sum(n * size for n, size in held), "resident_positions": sum(n for n, _ in held)}
    if max(r["seq"], r.get("child", 0)) >= len(sequences): return {"refused": "unknown-sequence"}
    one = sequences[r["seq"]]
    if op == "fork": return one.fork(sequences[r["child"]], r["to"])
    if op == "truncate": return one.truncate(r["to"])
    if op == "save": return one.save()
    if op == "restore": return one.restore(base64.b64decode(r["file"]))
    if op == "clear":
        sequences[r["seq"]] = Sequence()
        return {"freed": max(map(len, one.rows))}
    if r["layer"] >= len(layers): return {"refused": "out-of-order"}
    if op == "extent": return {"from": 0, "to": len(one.rows[r["layer"]])}
    return one.append(r) if op == "append" else one.read(r["layer"], r["from"], r["to"])

for line in sys.stdin:
    request = json.loads(line)
    print(json.dumps({"id": request["id"], **answer(request)}), flush=True)
