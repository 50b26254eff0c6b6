"""The ring of the examples with attention of its own: `attends.py RING [FAULT]`; with a fault, a key too many."""
import base64, importlib.util, io, json, math, struct, sys

fault = len(sys.argv) > 2
requests, sys.stdin, sys.argv = sys.stdin, io.StringIO(), sys.argv[:2]
spec = importlib.util.spec_from_file_location("ring", sys.argv[1])
sys.argv = sys.argv[:1]
ring = importlib.util.module_from_spec(spec)
spec.loader.exec_module(ring)
config = {}


def floats(data):
    return struct.unpack("<%df" % (len(data) // 4), data)


def attend(r):
    own, held = config["layers"][r["layer"]], ring.layers[r["layer"]]
    scale, dim = config["score_scales"][r["layer"]], own["head_dim"]
    q, out, cap = floats(base64.b64decode(r["q"])), [], config["softcap"]
    group = own["q_heads"] // own["kv_heads"]
    for i in range(r["count"]):
        position = r["first"] + i
        low = max(held.start(), position + 1 - own["window"] - fault if own["window"] else 0)
        rows = [held.rows[p % held.capacity] for p in range(low, position + 1)]
        keys, values = [floats(k) for k, _ in rows], [floats(v) for _, v in rows]
        for head in range(own["q_heads"]):
            at, kv = (i * own["q_heads"] + head) * dim, head // group * dim
            scores = [scale * sum(q[at + d] * k[kv + d] for d in range(dim)) for k in keys]
            if cap: scores = [cap * math.tanh(s / cap) for s in scores]
            weights = [math.exp(s - max(scores)) for s in scores]
            out += [sum(w * v[kv + d] for w, v in zip(weights, values)) / sum(weights) for d in range(dim)]
    return {"out": out}


for line in requests:
    request = json.loads(line)
    if request["op"] == "create": config = request["config"]
    answer = attend(request) if request["op"] == "attend" else ring.answer(request)
    if request["op"] == "hello": answer = {**answer, "name": "attends.py", "capabilities": [*answer["capabilities"], "attend"]}
    print(json.dumps({"id": request["id"], **answer}), flush=True)
