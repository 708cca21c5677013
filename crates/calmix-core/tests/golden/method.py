"""Golden cases for the method: margins, FlexMatch, SoftMatch and whole plans.

A straightforward transcription of the published definitions in f64 NumPy. Inputs come from the crate's own streams (philox.py), so a case is its parameters and what must come out.

    python method.py        writes margins.jsonl, flexmatch.jsonl, softmatch.jsonl, plans.jsonl and blended.jsonl beside itself
"""

import json
import math
import pathlib
import platform

import numpy as np
from philox import Stream

HERE = pathlib.Path(__file__).parent
SEED = 2026
BOOTSTRAP, LAMBDA, PARTNER, CHILD = 9, 7, 8, 12
CASES = 1000


def matrix(stream, rows, width, scale):
    """Uniform in ±scale, rounded to f32 as the engine would hand it over."""
    values = [[(stream.uniform() - 0.5) * 2 * scale for _ in range(width)] for _ in range(rows)]
    return np.array(values, dtype=np.float32).reshape(rows, width).astype(np.float64)


def child(seed, n):
    return Stream(seed, CHILD, 0, n).u64()


def softmax(z):
    e = np.exp(z - z.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def pseudo_margins(z):
    """PM_c = z_c - max_{j != c} z_j, of every class."""
    if len(z) == 1:
        return np.zeros(1)
    return np.array([z[c] - np.delete(z, c).max() for c in range(len(z))])


def write(name, header, cases, folder=HERE):
    lines = [json.dumps(header)] + [json.dumps(case, separators=(",", ":")) for case in cases]
    path = folder / f"{name}.jsonl"
    path.write_text("\n".join(lines) + "\n")
    print(f"{name}.jsonl: {len(cases)} cases, {path.stat().st_size} bytes")


def numbers(values, digits=12):
    return [float(f"{v:.{digits}g}") for v in np.ravel(values)]


def margins(case):
    s = Stream(SEED, BOOTSTRAP, 1, case)
    classes, visits = 1 + s.below(6), 1 + s.below(15)
    exponential, parameter = s.below(2), 0.5 + 0.49 * s.uniform()
    label = s.below(classes)
    z = matrix(s, visits, classes, 10)
    average, ema, total = np.zeros(classes), np.zeros(classes), 0.0
    for t, row in enumerate(z):
        pm = pseudo_margins(row)
        weight = parameter / (1 + t)
        average = weight * pm + (1 - weight) * average
        ema = parameter * ema + (1 - parameter) * pm
        total += pm[label]
    apm = ema / (1 - parameter**visits) if exponential else average
    return {"case": case, "apm": numbers(apm), "aum": float(f"{total / visits:.12g}")}


MAPPINGS = [
    lambda x: x / (2 - x),
    lambda x: (x + 1) / 2,
    lambda x: 1 / (2 - x),
    lambda x: (math.log(x + 1) + 0.5) / (math.log(2) + 0.5),
]


def flexmatch(case):
    s = Stream(SEED, BOOTSTRAP, 2, case)
    classes, samples, steps, batch = 1 + s.below(5), 4 + s.below(12), 1 + s.below(8), 1 + s.below(6)
    mapping, warmup, tau = MAPPINGS[s.below(4)], s.below(2), np.float64(np.float32(0.5 + 0.45 * s.uniform()))
    selected = np.full(samples, -1)
    beta = np.zeros(classes)
    masks = ""
    for _ in range(steps):
        ids = [s.below(samples) for _ in range(batch)]
        q = softmax(matrix(s, batch, classes, 6))
        label, top = q.argmax(axis=1), q.max(axis=1)
        threshold = np.array([tau * mapping(b) for b in beta])[label]
        # f32 and f64 may disagree on a hair's breadth: such a case proves nothing.
        if (np.abs(top - threshold) < 1e-5).any() or (np.abs(top - tau) < 1e-5).any():
            return None
        masks += "".join("1" if m else "0" for m in top >= threshold)
        for j, n in enumerate(ids):
            if top[j] >= tau:
                selected[n] = label[j]
        counts = np.array([(selected == c).sum() for c in range(classes)])
        if (selected == -1).all():
            continue
        beta = counts / max(counts.max(), (selected == -1).sum()) if warmup else counts / counts.max()
    counts = [int((selected == c).sum()) for c in range(classes)]
    return {"case": case, "masks": masks, "counts": counts, "thresholds": numbers([tau * mapping(b) for b in beta])}


def softmatch(case):
    s = Stream(SEED, BOOTSTRAP, 3, case)
    classes, steps = 1 + s.below(6), 1 + s.below(6)
    aligned, labelled_target, uniform_init = s.below(2), s.below(2), s.below(2)
    m, n_sigma = 0.5 + 0.499 * s.uniform(), 1 + 2 * s.uniform()
    mean, var = 1 / classes, 1.0
    marginal = np.full(classes, 1 / classes) if uniform_init else None
    target = np.full(classes, 1 / classes)
    for _ in range(steps):
        rows, labelled_rows = 1 + s.below(7), 1 + s.below(4)
        p = softmax(matrix(s, rows, classes, 5))
        p_labelled = softmax(matrix(s, labelled_rows, classes, 5))
        if marginal is None:
            marginal = p.mean(axis=0)
        else:
            marginal = m * marginal + (1 - m) * p.mean(axis=0)
        if labelled_target:
            target = m * target + (1 - m) * p_labelled.mean(axis=0)
        a = p * (target + 1e-6) / (marginal + 1e-6)
        a = a / a.sum(axis=1, keepdims=True)
        top = (a if aligned else p).max(axis=1)
        mean = m * mean + (1 - m) * top.mean()
        if rows > 1:
            var = m * var + (1 - m) * top.var(ddof=1)
        weights = np.exp(-(np.minimum(a.max(axis=1) - mean, 0) ** 2) / (2 * var / n_sigma**2))
    return {"case": case, "mean": numbers([mean])[0], "var": numbers([var])[0], "weights": numbers(weights, 9)}


def plan(case):
    """Algorithm 1 over FixMatch, several steps; what the last step pairs, and by how much."""
    s = Stream(SEED, BOOTSTRAP, 4, case)
    classes, labelled, unlabelled = 2 + s.below(4), 1 + s.below(8), 1 + s.below(20)
    width, samples, steps = 2 + s.below(5), 6 + s.below(30), 1 + s.below(4)
    by_fraction, share, count = s.below(2), 0.3 * s.uniform(), 1 + s.below(6)
    delta, alpha = 0.997, 0.4
    aum, apm = {}, {}
    for step in range(steps):
        x_ids = [s.below(samples) for _ in range(labelled)]
        y = [s.below(classes) for _ in range(labelled)]
        u_ids = [s.below(samples) for _ in range(unlabelled)]
        zx, zu = matrix(s, labelled, classes, 5), matrix(s, unlabelled, classes, 5)
        fx, fu = matrix(s, labelled, width, 1), matrix(s, unlabelled, width, 1)
        pseudo = zu.argmax(axis=1)
        for i, n in enumerate(x_ids):
            aum.setdefault(n, []).append(pseudo_margins(zx[i])[y[i]])
        for j, n in enumerate(u_ids):
            average, t = apm.get(n, (np.zeros(classes), 0))
            weight = delta / (1 + t)
            apm[n] = (weight * pseudo_margins(zu[j]) + (1 - weight) * average, t + 1)
        x_value = [np.mean(aum[n]) for n in x_ids]
        u_value = [apm[n][0][pseudo[j]] for j, n in enumerate(u_ids)]
        if close_calls(x_value, x_ids) or close_calls(u_value, u_ids):
            return None
        lh, le = halves(x_value, x_ids)
        uh, ue = halves(u_value, u_ids)
        pairs, lambdas = [], []
        for kind, (anchors, pool) in enumerate([(le, uh), (lh, ue)]):
            seed = child(SEED + case, kind)
            k = max(1, math.ceil(share * len(pool))) if by_fraction else count
            seen = {}
            for i in anchors:
                stream = Stream(seed, PARTNER, step, x_ids[i], seen.get(x_ids[i], 0))
                seen[x_ids[i]] = seen.get(x_ids[i], 0) + 1
                cosine = {
                    j: fx[i] @ fu[j] / (np.linalg.norm(fx[i]) * np.linalg.norm(fu[j]))
                    for j in pool
                    if u_ids[j] != x_ids[i]
                }
                ranked = sorted(cosine, key=lambda j: (cosine[j], u_ids[j], j))
                if close_calls(list(cosine.values()), None):
                    return None
                if ranked:
                    pairs.append([i, ranked[stream.below(min(k, len(ranked)))]])
                    lambdas.append(Stream(seed, LAMBDA, step, 0).beta(alpha))
    return {"case": case, "pairs": pairs, "lambdas": numbers(sorted(set(lambdas)), 7)}


def blended(case):
    """λ of a one-hot label, 1 − λ of a pseudo-label: one-hot to the share w, the network's own probabilities for the rest."""
    s = Stream(SEED, BOOTSTRAP, 7, case)
    classes = 2 + s.below(5)
    z = matrix(s, 1, classes, 5)
    label, lam, weight = s.below(classes), s.uniform(), [0.0, 1.0, s.uniform()][s.below(3)]
    p, one_hot = softmax(z)[0], np.eye(classes)
    pseudo = weight * one_hot[z[0].argmax()] + (1 - weight) * p
    return {"case": case, "target": numbers(lam * one_hot[label] + (1 - lam) * pseudo, 9)}


def halves(values, ids):
    order = sorted(range(len(values)), key=lambda row: (values[row], ids[row], row))
    hard = len(values) // 2
    return sorted(order[:hard]), sorted(order[hard:])


def close_calls(values, ids):
    """Two different samples whose order f32 could turn round."""
    order = sorted(range(len(values)), key=lambda i: values[i])
    near = [(a, b) for a, b in zip(order, order[1:]) if abs(values[a] - values[b]) < 1e-5]
    return any(ids is None or ids[a] != ids[b] for a, b in near)


if __name__ == "__main__":
    header = {"python": platform.python_version(), "numpy": np.__version__, "seed": SEED}
    makes = [margins, flexmatch, softmatch, plan, blended]
    for name, make in zip(["margins", "flexmatch", "softmatch", "plans", "blended"], makes):
        cases = []
        number = 0
        while len(cases) < CASES:
            made = make(number)
            number += 1
            if made is not None:
                cases.append(made)
        write(name, header, cases)
