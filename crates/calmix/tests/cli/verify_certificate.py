"""Verifies a certificate by docs/reference/certificate.md alone: python verify_certificate.py certificate.json DATA"""
import csv, hashlib, io, json, math, pathlib, re, sys

place, data = map(pathlib.Path, sys.argv[1:])
text, table = place.read_text(), place.with_name("labels.csv").read_bytes()
cert, M = json.loads(text), 0xFFFFFFFF
plan, result, pool = cert["plan"], cert["result"], cert["pool"]

sha = lambda content: hashlib.sha256(content if isinstance(content, bytes) else content.encode()).hexdigest()
falling = lambda x, n: math.lgamma(x + 1) - math.lgamma(x - n + 1)
beta = lambda a, b: math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)
def contents():
    if pool["kind"] == "images": return {row["id"]: sha((data / row["id"]).read_bytes()) for row in rows}
    npy = data.read_bytes()
    start = 10 + int.from_bytes(npy[8:10], "little")
    count, width = map(int, re.search(rb"\((\d+), (\d+)\)", npy[:start]).groups())
    return {str(n): sha(npy[start + 4 * width * n : start + 4 * width * (n + 1)]) for n in range(count)}

def philox(c, k):
    for _ in range(10):
        left, right = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = right >> 32 ^ c[1] ^ k[0], right & M, left >> 32 ^ c[3] ^ k[1], left & M
        k = k[0] + 0x9E3779B9 & M, k[1] + 0xBB67AE85 & M
    return c

def rejected(N, m, n, e):
    if e > m or n - e > N - m: return e <= m
    L = lambda k: math.exp(falling(k, e) + falling(N - k, n - e) - falling(m, e) - falling(N - m, n - e)) if k >= e else 0
    a = 10 * m / N
    w = [math.exp(falling(N, k) - math.lgamma(k + 1) + beta(a + k, 30 - a + N - k) - beta(a, 30 - a)) for k in range(m)]
    return 0.3 * L(0) + 0.7 * sum(v * L(k) for k, v in enumerate(w)) / sum(w) >= 1 / plan["delta"]

rows = list(csv.DictReader(io.StringIO(table.decode(), newline="")))
by_id = sorted(rows, key=lambda row: row["id"].encode())
assert sha(text.replace(cert["hash"], "0" * 64)) == cert["hash"] and sha(table) == cert["labels_sha256"], "hashes"
assert rows == sorted(by_id, key=lambda row: -float(row["score"] or -1)) and len(rows) == pool["rows"], "ranks"
assert sha("".join(f"{row['id']}\t{row['content']}\n" for row in by_id)) == pool["fingerprint"], "fingerprint"
assert {row["id"]: row["content"] for row in rows}.items() <= contents().items(), "the pool has changed"
sizes, total, shares = [0, 0, 0], 0.0, []
for n, row in enumerate((row for row in rows if row["label"]), 1):
    total += 1 - float(row["score"])
    sizes = [n if total <= part * plan["error"] * n else size for part, size in zip((0.2, 1 / 3, 0.5), sizes)]
for size in filter(None, reversed(sizes)):
    if not shares or 0.1 * shares[0] <= size < shares[0]: shares.insert(0, size)
lines = [cert["labels_sha256"], pool["fingerprint"], plan["error"], plan["delta"], ",".join(map(str, shares)), ""]
assert shares == plan["shares"] and sha("\n".join(map(str, lines)))[:16] == plan["seed"], "shares or seed"
key = philox((0, 0, 24, 0), (int(plan["seed"][8:], 16), int(plan["seed"][:8], 16)))[:2]
order = sorted(range(shares[-1]), key=lambda r: ((w := philox((0, 0, r & M, r >> 32), key))[0] + (w[1] << 32), r))
assert sha("".join(rows[rank]["id"] + "\n" for rank in order)) == plan["order_sha256"], "order"
answers = {}
for answer in cert["answers"]:
    assert rows[order[answer["place"]]]["id"] == answer["id"], "an answer is at another place"
    answers.setdefault(answer["place"], {})[answer["review"]] = answer["label"]
certified, is_certified = 0, True
for N, told in zip(shares, result["shares"], strict=True):
    n, e, shown, high, limit = 0, 0, None, N, math.floor(plan["error"] * N) + 1
    for at, rank in ((at, rank) for at, rank in enumerate(order) if rank < N):
        if at not in answers: break
        n, e = n + 1, e + any(label != rows[rank]["label"] for label in answers[at].values())
        while high > e and rejected(N, high, n, e): high -= 1
        shown = n if shown is None and high < limit else shown
    certified, is_certified = (N, True) if is_certified and shown else (certified, False)
    assert told == dict(rows=N, answers=n, wrong=e, highest_error=high / N, shown_at=shown, is_certified=is_certified), told
assert certified == result["certified_rows"], "certified rows"
print(f"verified: {certified} of {len(rows)} labels, at most {plan['error']:.1%} wrong")
