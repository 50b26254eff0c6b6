"""A cache that does all that a store without blocks may declare: rings, sinks, donors, sequences, edits, forks, files
(core/PROTOCOL.md). `whole.py FAULT` has one of FAULTS, each where two of those meet."""
import base64, json, sys, zlib

FAULTS = [
    "forks-no-readers", "child-reads-parent", "child-loses-sinks", "child-keeps-bound", "readers-see-no-sinks",
    "file-without-readers-sinks", "file-without-layout", "clear-keeps-sinks-of-donors", "eviction-stops-at-readers",
    "grandchild-shares-rows", "forks-half-a-token", "child-forgets-bound", "file-of-one-capacity", "file-raises-bound",
    "file-without-rows-is-new", "clear-ends-all-tokens",
]
FAULT = sys.argv[1] if len(sys.argv) > 1 else ""
if FAULT and FAULT not in FAULTS: sys.exit(f"no fault {FAULT}")
CAPABILITIES = ["ring", "sliding", "truncate", "front-evict", "clear", "sequences", "fork", "save", "sinks", "donors"]
MEANING = ["kv_heads", "head_dim", "rope_theta"] + ([] if FAULT == "file-without-layout" else ["sinks", "donor"])
if FAULT == "file-of-one-capacity": MEANING.append("capacity")
layers, sequences = [], []

def is_reader(layer): return layers[layer]["donor"] is not None
def owner(layer): return layers[layer]["donor"] if is_reader(layer) else layer
def owners(): return [layer for layer in range(len(layers)) if not is_reader(layer)]
def has_readers(): return len(owners()) < len(layers)
def is_read_by_others(layer): return any(other["donor"] == layer for other in layers)
def row_bytes(shape): return 4 * shape["kv_heads"] * shape["head_dim"]
def ring_slots(shape): return shape["capacity"] - shape["sinks"]
def slot(shape, p): return p if p < shape["sinks"] else shape["sinks"] + (p - shape["sinks"]) % ring_slots(shape)
def to_text(data): return base64.b64encode(data).decode()

def window_low(shape, end):
    """The first position that the query at `end` sees, besides the sinks."""
    window = shape["window"] or (ring_slots(shape) if shape["sliding"] else None)
    return max(0, end - window + 1) if window else 0

class Layer:
    """Positions [start, end), and the sinks in front of them: rows by position."""
    def __init__(self, shape): self.shape, self.start, self.end, self.rows = shape, 0, 0, {}
    def kept(self): return max(self.start, self.shape["sinks"])  # what is lost next
    def held(self): return self.end - self.start + min(self.start, self.shape["sinks"])

    def copy(self):
        other = Layer(self.shape)
        other.start, other.end, other.rows = self.start, self.end, dict(self.rows)
        return other

    def drop_below(self, to):
        if to <= self.kept(): return
        for p in range(self.kept(), to): self.rows.pop(p, None)
        self.start = to

    def cut(self, to):
        for p in range(to, self.end): self.rows.pop(p, None)
        self.end = to
        self.start = 0 if to < self.shape["sinks"] else min(self.start, to)

class Sequence:
    def __init__(self):
        self.layers, self.due, self.count, self.evicted_to = [Layer(shape) for shape in layers], 0, 0, 0
        self.parent = None
    def end(self): return self.layers[0].end

    def append(self, r):
        layer, count = r["layer"], r["count"]
        shape, of = layers[layer], self.layers[layer]
        if is_reader(layer): return {"refused": "unsupported"}
        if layer != self.due or (layer and count != self.count): return {"refused": "out-of-order"}
        if count == 0: return {"refused": "unsupported"}
        lost_to = of.end + count - ring_slots(shape)  # behind the sinks
        if lost_to > max(of.kept(), window_low(shape, of.end) if shape["sliding"] else 0): return {"refused": "full"}
        overwritten = [[p, 1, slot(shape, p)] for p in range(of.kept(), lost_to)]
        of.drop_below(lost_to)
        size, k, v = row_bytes(shape), base64.b64decode(r["k"]), base64.b64decode(r["v"])
        for i in range(count):
            row = (k[i * size:(i + 1) * size], v[i * size:(i + 1) * size])
            stays = FAULT == "clear-keeps-sinks-of-donors" and is_read_by_others(layer) and of.end + i in of.rows
            if not stays: of.rows[of.end + i] = row
        pieces = [[p, 1, slot(shape, p)] for p in range(of.end, of.end + count)]
        of.end += count
        self.due = next((other for other in owners() if other > layer), 0)
        self.count = count
        return {"pieces": pieces, "overwritten": overwritten}

    def of_layer(self, layer):
        if FAULT == "child-reads-parent" and is_reader(layer) and self.parent: return self.parent.layers[owner(layer)]
        return self.layers[owner(layer)]

    def read(self, layer, first, end):
        of, sinks = self.of_layer(layer), layers[layer]["sinks"]
        if FAULT == "readers-see-no-sinks" and is_reader(layer): sinks = 0
        if first > end: return {"refused": "out-of-order"}
        if first < of.start and end > sinks: return {"refused": "evicted"}
        if end > of.end: return {"refused": "future"}
        rows = [of.rows[p] for p in range(first, end)]
        return {side: to_text(b"".join(row[i] for row in rows)) for i, side in enumerate("kv")}

    def why_not_truncate(self, to):
        if to > self.end(): return "future"
        for layer in owners() if to < self.end() else []:
            of, sinks = self.layers[layer], layers[layer]["sinks"]
            if to < sinks: continue
            evicted_to = self.evicted_to if self.evicted_to > sinks else 0
            if to < evicted_to or of.start > max(window_low(layers[layer], to), evicted_to): return "evicted"
        return None

    def edit(self, change):
        """Changes each layer with rows; tells how many positions went in the one that lost most."""
        before = [self.layers[layer].held() for layer in owners()]
        for layer in owners(): change(self.layers[layer])
        return {"freed": max(b - self.layers[layer].held() for b, layer in zip(before, owners()))}

    def cut(self, to):
        self.evicted_to = min(self.evicted_to, to)
        return self.edit(lambda layer: layer.cut(to))

    def truncate(self, to):
        if self.due: return {"refused": "out-of-order"}
        if why := self.why_not_truncate(to): return {"refused": why}
        return self.cut(to)

    def evict(self, first, end):
        if self.due or first > end: return {"refused": "out-of-order"}
        if end > self.end(): return {"refused": "future"}
        if first == end: return {"freed": 0}
        if any(first > self.layers[layer].kept() for layer in owners()): return {"refused": "unsupported"}
        self.evicted_to = max(self.evicted_to, end)
        if FAULT == "eviction-stops-at-readers" and has_readers(): return {"freed": 0}
        return self.edit(lambda layer: layer.drop_below(end))

    def fork(self, child, to):
        has_all = all(to <= self.layers[layer].end for layer in owners())
        is_ready = not self.due or (FAULT == "forks-half-a-token" and has_all)
        if not is_ready or child is self or child.due or child.end(): return {"refused": "out-of-order"}
        if why := self.why_not_truncate(to): return {"refused": why}
        if FAULT == "forks-no-readers" and has_readers(): return {"refused": "unsupported"}
        child.layers, child.evicted_to, child.parent = [of.copy() for of in self.layers], self.evicted_to, self
        if to < self.end(): child.cut(to)
        if FAULT == "grandchild-shares-rows" and self.parent: child.layers[0].rows = self.layers[0].rows
        if FAULT == "child-keeps-bound": child.evicted_to = self.evicted_to
        if FAULT == "child-forgets-bound": child.evicted_to = 0
        if FAULT == "child-loses-sinks":
            for of in child.layers:
                if of.start > of.shape["sinks"] > 0: of.rows[0] = of.rows[of.end - 1]
        return {}

    def farthest(self):
        return {"from": min(self.layers[layer].start for layer in owners()), "to": self.end()}

    def save(self):
        if self.due: return {"refused": "out-of-order"}
        saved = []
        for layer in owners():
            of = self.layers[layer]
            rows = {p: [to_text(side) for side in row] for p, row in of.rows.items()}
            if FAULT == "file-without-readers-sinks" and is_read_by_others(layer) and of.start:
                rows.update({p: rows[of.end - 1] for p in range(layers[layer]["sinks"])})
            saved.append([layer, of.start, of.end, rows])
        text = json.dumps([meaning(), self.evicted_to, saved]).encode()
        return {"file": to_text(b"%08x" % zlib.crc32(text) + text), **self.farthest()}

    def restore(self, file):
        if self.due: return {"refused": "out-of-order"}
        if file[:8] != b"%08x" % zlib.crc32(file[8:]): return {"refused": "corrupt"}
        of_what, evicted_to, saved = json.loads(file[8:])
        fits = all(len(rows) <= layers[layer]["capacity"] for layer, _, _, rows in saved)
        if of_what != meaning() or not fits: return {"refused": "unsupported"}
        self.evicted_to = max(evicted_to, self.evicted_to if FAULT == "file-raises-bound" else 0)
        if FAULT == "file-without-rows-is-new" and not any(rows for _, _, _, rows in saved):
            self.__init__()
            return self.farthest()
        self.layers = [Layer(shape) for shape in layers]
        for layer, start, end, rows in saved:
            of = self.layers[layer]
            of.start, of.end = start, end
            of.rows = {int(p): tuple(base64.b64decode(side) for side in row) for p, row in rows.items()}
        return self.farthest()

    def clear(self):
        freed = max(self.layers[layer].held() for layer in owners())
        kept = [{p: row for p, row in of.rows.items() if p < of.shape["sinks"]} for of in self.layers]
        self.__init__()
        if FAULT == "clear-ends-all-tokens":
            for other in sequences: other.due = 0
        if FAULT == "clear-keeps-sinks-of-donors":
            for of, rows in zip(self.layers, kept): of.rows = rows
        return {"freed": freed}

def meaning():
    return [[shape[name] for name in MEANING] + [window_low(shape, 1 << 30)] for shape in layers]

def create(config):
    layers[:] = config["layers"]
    sequences[:] = [Sequence() for _ in range(config["sequences"])]
    sizes = [[layer, side, config["sequences"] * layers[layer]["capacity"] * row_bytes(layers[layer])]
             for layer in owners() for side in "kv"]
    return {"storages": sizes}

def memory():
    rows = [(of.layers[layer].held(), 2 * row_bytes(layers[layer])) for of in sequences for layer in owners()]
    used_bytes = sum(count * size for count, size in rows)
    return {"used_bytes": used_bytes, "resident_positions": sum(count for count, _ in rows)}

def answer(r):
    op = r["op"]
    if op == "hello": return {"protocol": 1, "name": "whole.py", "capabilities": CAPABILITIES}
    if op == "create": return create(r["config"])
    if op == "memory": return memory()
    if max(r["seq"], r.get("child", 0)) >= len(sequences): return {"refused": "unknown-sequence"}
    of = sequences[r["seq"]]
    if op == "truncate": return of.truncate(r["to"])
    if op == "evict": return of.evict(r["from"], r["to"])
    if op == "clear": return of.clear()
    if op == "fork": return of.fork(sequences[r["child"]], r["to"])
    if op == "save": return of.save()
    if op == "restore": return of.restore(base64.b64decode(r["file"]))
    if r["layer"] >= len(layers): return {"refused": "out-of-order"}
    if op == "append": return of.append(r)
    if op == "read": return of.read(r["layer"], r["from"], r["to"])
    return {"from": of.of_layer(r["layer"]).start, "to": of.of_layer(r["layer"]).end}  # extent

for line in sys.stdin:
    request = json.loads(line)
    print(json.dumps({"id": request["id"], **answer(request)}), flush=True)
