"""Computes every number of a report again from the files of its runs, by NumPy in f64 and no code of calmix.

    python recompute.py REPORT.json RUN…

Fails on the first number that is off by more than 1e-9. With torchmetrics at hand (and PyTorch), it is asked too, in f32:
off by at most 1e-5. Prints how many numbers were compared. Bands that were resampled are not compared, nor
is the smooth ECE, whose peer is in the tests of calmix-core. Brier score and class-wise ECE, which calmix takes of probabilities
in f32, are off by at most 5e-7.
"""

import json
import math
import pathlib
import sys

import numpy as np

DTYPES = {"F32": "<f4", "F64": "<f8", "I32": "<i4", "U8": "u1", "U32": "<u4", "U64": "<u8"}
BINS = 15
compared = 0


def tensors(path):
    data = pathlib.Path(path).read_bytes()
    size = int.from_bytes(data[:8], "little")
    header, body = json.loads(data[8 : 8 + size]), data[8 + size :]
    about = json.loads(header.pop("__metadata__", {}).get("calmix", "{}"))
    read = lambda of: np.frombuffer(body[slice(*of["data_offsets"])], DTYPES[of["dtype"]]).reshape(of["shape"])
    return {name: read(of) for name, of in header.items()}, about


def same(found, wanted, where, within=1e-9):
    """Compares what the report has with what was computed."""
    global compared
    if isinstance(wanted, dict):
        for key, value in wanted.items():
            same(found[key], value, f"{where}.{key}", within)
    elif isinstance(wanted, (list, tuple)):
        assert len(found) == len(wanted), f"{where}: {len(found)} entries, not {len(wanted)}"
        for at, (one, other) in enumerate(zip(found, wanted)):
            same(one, other, f"{where}[{at}]", within)
    elif wanted is None or isinstance(wanted, (str, bool)):
        assert found == wanted, f"{where}: {found!r}, not {wanted!r}"
        compared += 1
    else:
        assert found is not None and abs(found - wanted) <= within, f"{where}: {found!r}, not {wanted!r}"
        compared += 1


def softmax(logits, temperature):
    z = logits.astype(np.float64) / temperature
    e = np.exp(z - z.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def tail(k, n, p):
    """P(X ≥ k) of n draws with probability p, by its logarithms."""
    if p <= 0.0 or p >= 1.0:
        return float(p >= 1.0 or k <= 0)
    i = np.arange(k, n + 1)
    lg = np.array([math.lgamma(x) for x in range(1, n + 2)])
    terms = lg[n] - lg[i] - lg[n - i] + i * math.log(p) + (n - i) * math.log1p(-p)
    return float(math.fsum(np.exp(terms)))


def limit(k, n, alpha):
    """The share at which k or more of n have the probability alpha: Clopper and Pearson's lower limit."""
    if k == 0:
        return 0.0
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if tail(k, n, middle) < alpha else (low, middle)
    return (low + high) / 2


def clopper_pearson(hits, n):
    return limit(hits, n, 0.025), 1.0 - limit(n - hits, n, 0.025)


def bins_of(confidence, bins=BINS):
    edges = np.arange(bins + 1) / bins
    return edges, np.clip(np.searchsorted(edges, confidence, side="right") - 1, 0, bins - 1)


def binned_error(at, confidence, right):
    parts = [abs(confidence[at == b].sum() - right[at == b].sum()) for b in np.unique(at)]
    return math.fsum(parts) / len(right)


def equal_mass(confidence):
    """Equal confidences stay together, in the bin of the middle of their ranks."""
    _, inverse, counts = np.unique(confidence, return_inverse=True, return_counts=True)
    first = np.concatenate(([0], np.cumsum(counts)[:-1]))
    twice = 2 * first + counts - 1
    return (twice * BINS // (2 * len(confidence)))[inverse]


def reliability(confidence, right):
    edges, at = bins_of(confidence)
    bins, ece = [], 0.0
    for b in range(BINS):
        inside = at == b
        n = int(inside.sum())
        entry = {"lower": edges[b], "upper": edges[b + 1], "count": n, "confidence": None, "accuracy": None}
        if n:
            entry["confidence"], entry["accuracy"] = float(confidence[inside].mean()), float(right[inside].mean())
            entry["accuracy_low"], entry["accuracy_high"] = clopper_pearson(int(right[inside].sum()), n)
            ece += n / len(right) * abs(entry["confidence"] - entry["accuracy"])
        bins.append(entry)
    mean = float(confidence.mean())
    return {"samples": len(right), "mean_confidence": mean, "accuracy": float(right.mean()), "ece_15": ece, "bins": bins}


def coverage(confidence, right):
    """Risk at every distinct confidence from the highest down; the area with ties broken by chance on average."""
    levels = np.unique(confidence)[::-1]
    order = np.argsort(-confidence, kind="stable")
    sorted_confidence, wrong = confidence[order], (~right[order]).astype(np.float64)
    kept = np.searchsorted(-sorted_confidence, -levels, side="right")
    total = np.cumsum(wrong)[kept - 1]
    points, wanted = [], 1
    for level, n, bad in zip(levels, kept, total):
        share = n / len(right)
        if share * 200 + 1e-9 >= wanted:
            wanted = int(share * 200 + 1e-9) + 1
            points.append({"threshold": float(level), "coverage": float(share), "risk": float(bad / n)})
    area, before, seen = 0.0, 0.0, 0
    for n, bad in zip(kept, total):
        taken = np.arange(1, n - seen + 1)
        area += float(np.sum((before + (bad - before) * taken / (n - seen)) / (seen + taken)))
        before, seen = bad, n
    return {"aurc": area / len(right), "points": points}


def metrics(p, logits, labels, right, confidence):
    rows = np.arange(len(labels))
    onehot = np.zeros_like(p)
    onehot[rows, labels] = 1.0
    own = logits[rows, labels]
    rank = (logits > own[:, None]).sum(1)
    rank += np.array([(logits[i, : labels[i]] == own[i]).sum() for i in rows])
    class_wise = 0.0
    for c in range(p.shape[1]):
        _, at = bins_of(p[:, c])
        for b in np.unique(at):
            inside = at == b
            class_wise += abs(p[inside, c].sum() - onehot[inside, c].sum()) / len(labels)
    return {
        "error": 1.0 - float(right.mean()),
        "top_5_error": float((rank >= 5).mean()),
        "mean_confidence": float(confidence.mean()),
        "confidence_gap": float(confidence.mean() - right.mean()),
        "ece_10": binned_error(bins_of(confidence, 10)[1], confidence, right),
        "ece_15": reliability(confidence, right)["ece_15"],
        "adaptive_ece": binned_error(equal_mass(confidence), confidence, right),
        "aurc": coverage(confidence, right)["aurc"],
        "nll": float(-np.log(p[rows, labels]).mean()),
        **class_means(labels, logits.argmax(1)),
    }, {"brier": float(((p - onehot) ** 2).sum(1).mean()), "class_wise_ece": class_wise / p.shape[1]}


def class_means(labels, predicted):
    """The balanced error of the classes with samples, and macro F1 of those with samples or predictions."""
    errors = [float((predicted[labels == c] != c).mean()) for c in np.unique(labels)]
    hits = lambda c: int(((labels == c) & (predicted == c)).sum())
    both = lambda c: int((labels == c).sum() + (predicted == c).sum())
    f1 = [2 * hits(c) / both(c) for c in np.union1d(labels, predicted)]
    return {"balanced_error": float(np.mean(errors)), "macro_f1": float(np.mean(f1))}


def share(hits, n):
    if not n:
        return None
    low, high = clopper_pearson(hits, n)
    return {"n": n, "estimate": hits / n, "low": low, "high": high, "level": 0.95}


def by_class(labels, sides, classes):
    found = []
    _, _, _, before = sides[0]
    for c in range(classes):
        own = labels == c
        n = int(own.sum())
        wrong = int((before != labels)[own].sum())
        entry = {"samples": n, "error": wrong / n if n else None, "named": {}}
        if n:
            entry["error_low"], entry["error_high"] = clopper_pearson(wrong, n)
        as_class = int((before == c).sum())
        entry["recall"], entry["precision"] = share(n - wrong, n), share(n - wrong, as_class)
        entry["f1"] = 2 * (n - wrong) / (n + as_class) if n + as_class else None
        for name, side in zip(("before", "after"), sides):
            confidence, right, _, predicted = side
            named = predicted == c
            mean = lambda of: float(of[named].mean()) if named.any() else None
            entry["named"][name] = {"predictions": int(named.sum()), "confidence": mean(confidence), "right": mean(right)}
        found.append(entry)
    return found


def examples(ids, labels, sides, classes):
    confidence, right, _, predicted = sides[0]
    def chosen(hit):
        rows = np.flatnonzero(right == hit)
        sign = 1 if hit else -1
        key = sorted(rows, key=lambda row: (sign * confidence[row], ids[row]))[:12]
        # Chosen by the network's own confidence, ordered by the one that is shown.
        key = sorted(key, key=lambda row: sign * sides[-1][0][row])
        entry = lambda row: {
            "id": int(ids[row]),
            "label": classes[labels[row]],
            "predicted": classes[predicted[row]],
            "confidence": float(confidence[row]),
            "calibrated": float(sides[1][0][row]) if len(sides) > 1 else None,
        }
        return [entry(row) for row in key]
    return {"mistakes": chosen(False), "hits": chosen(True)}


def margins(run):
    """Of the newest checkpoint: AUM of every labelled sample, the greatest APM of every unlabelled one."""
    newest = max((run / "checkpoints").iterdir())
    histogram = lambda values: np.unique(np.clip(np.floor(values / 0.125), -512, 512).astype(int), return_counts=True)
    labelled, _ = tensors(newest / "labelled.safetensors")
    values = labelled["aum"][labelled["aum.visits"] > 0]
    unlabelled = []
    for path in sorted(newest.glob("samples-*.safetensors")):
        shard, _ = tensors(path)
        unlabelled.append(shard["apm.values"].max(1)[shard["apm.visits"] > 0].astype(np.float64))
    out = {}
    for name, values in (("labelled", values), ("unlabelled", np.concatenate(unlabelled))):
        at, counts = histogram(values)
        full = np.zeros(at[-1] - at[0] + 1, dtype=int)
        full[at - at[0]] = counts
        out[name] = {"width": 0.125, "first": int(at[0]), "counts": full.tolist()}
    return out


def curves(run):
    events = [json.loads(line) for line in (run / "events.jsonl").read_text().splitlines()]
    seen = [e for e in events if e["event"] == "evaluation" and e["model"] == "ema"]
    split = "test" if any(e["split"] == "test" for e in seen) else "validation"
    last = {e["step"]: e for e in seen if e["split"] == split}
    training = {
        "split": split,
        "points": [{"step": s, "error": e["metrics"]["error"], "ece_15": e["metrics"]["ece_15"]} for s, e in sorted(last.items())],
    }
    steps = [e for e in events if e["event"] == "step" and e.get("utilisation") is not None]
    together = max(1, -(-len(steps) // 200))
    pseudo = []
    for first in range(0, len(steps), together):
        part = steps[first : first + together]
        mean = lambda key: (lambda v: float(np.mean(v)) if v else None)([e[key] for e in part if e.get(key) is not None])
        pseudo.append({"step": part[-1]["step"], "events": len(part), "utilisation": mean("utilisation"), "impurity": mean("impurity")})
    return training, pseudo


def ask_torchmetrics(report, p, labels, confidence, where):
    """torchmetrics in f32; a confidence that rounds to 1 falls into a bin of its own there (its issue 3510)."""
    try:
        import torch
        import torchmetrics.functional.classification as tm
    except ImportError:
        return False
    probabilities, target = torch.tensor(p, dtype=torch.float32), torch.tensor(labels.astype(np.int64))
    classes = p.shape[1]
    accuracy = tm.multiclass_accuracy(probabilities, target, classes, average="micro").item()
    same(report["accuracy"], accuracy, f"{where}.accuracy by torchmetrics", 1e-5)
    if probabilities.max() < 1.0 and classes > 1:
        ece = tm.multiclass_calibration_error(probabilities, target, classes, n_bins=BINS, norm="l1").item()
        same(report["ece_15"], ece, f"{where}.ece_15 by torchmetrics", 1e-5)
    return True


def confusion_by_torchmetrics(cells, predicted, labels, classes):
    import torch
    import torchmetrics.functional.classification as tm
    matrix = tm.multiclass_confusion_matrix(torch.tensor(predicted), torch.tensor(labels.astype(np.int64)), classes)
    wanted = [{"label": i, "predicted": j, "count": int(matrix[i, j])} for i, j in matrix.nonzero().tolist()]
    same(cells, wanted, "confusion by torchmetrics")


def check(report, run):
    run = pathlib.Path(run)
    training, pseudo = curves(run)
    same(report["training"], training, "training")
    same(report["pseudo_labels"], pseudo, "pseudo_labels")
    if report["margins"]:
        same(report["margins"], margins(run), "margins")
    evaluated = report["evaluated"]
    split, evaluation = evaluated["split"], evaluated["evaluation"]
    said, about = tensors(run / "predictions" / f"step-{evaluation['step']:09}-{split}-ema.safetensors")
    labels, classes = said["labels"].astype(np.int64), about["classes"]
    calibration = json.loads((run / "model.json").read_text()).get("calibration")
    temperatures = [1.0]
    if calibration and calibration["calibrator"]["kind"] == "temperature" and split == "test":
        temperatures.append(calibration["calibrator"]["temperature"])
    sides, asked = [], False
    for name, temperature in zip(("before", "after"), temperatures):
        p = softmax(said["logits"], temperature)
        predicted = said["logits"].argmax(1)
        confidence, right = p.max(1), predicted == labels
        sides.append((confidence, right, p, predicted))
        same(evaluated["reliability"][name], reliability(confidence, right), f"reliability.{name}")
        same(evaluated["coverage"][name], coverage(confidence, right), f"coverage.{name}")
        wanted, of_f32 = metrics(p, said["logits"], labels, right, confidence)
        found = evaluation["metrics"] if name == "before" else evaluation["calibrated"]["metrics"]
        same(found, wanted, f"metrics.{name}")
        # calmix takes these two of probabilities in f32, each off by some 2⁻²³ of itself; the probabilities of a row sum to
        # one, and a square has twice the error.
        same(found, of_f32, f"metrics.{name}", 4 * 2.0**-23)
        asked = ask_torchmetrics(evaluated["reliability"][name], p, labels, confidence, f"reliability.{name}")
    _, counts = np.unique(labels * len(classes) + sides[-1][3], return_counts=True)
    pairs = np.unique(labels * len(classes) + sides[-1][3])
    cells = [{"label": int(x // len(classes)), "predicted": int(x % len(classes)), "count": int(n)} for x, n in zip(pairs, counts)]
    same(evaluated["confusion"], {"classes": classes, "cells": cells}, "confusion")
    if asked:
        confusion_by_torchmetrics(evaluated["confusion"]["cells"], sides[-1][3], labels, len(classes))
    same(evaluated["by_class"], by_class(labels, sides, len(classes)), "by_class")
    same(evaluated["examples"], examples(said["ids"], labels, sides, classes), "examples")
    return asked


report = json.loads(pathlib.Path(sys.argv[1]).read_text())
asked = [check(one, run) for one, run in zip(report["runs"], sys.argv[2:], strict=True)]
print(f"{compared} numbers are the same" + (", by torchmetrics too" if all(asked) else ""))
