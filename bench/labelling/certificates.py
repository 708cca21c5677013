"""Certificates on pools whose labels are known: `certificates.py VECTORS LABELS SEEDS`, with NumPy and SciPy. `$CALMIX` is the program.

VECTORS is a folder of `vectors.py`, or of any `vectors.npy` and `classes.npy`. Each seed draws LABELS random labels, trains, and freezes the
labels of the rest by `calmix certify`. The audit is then simulated in 100 random orders: an auditor who is always right answers the
rows of the smallest share, then those that the next one lacks, and so on. Beside it: the rows that `calmix predict --precision` answers.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from scipy.special import betaln, gammaln, logsumexp

CALMIX = os.environ.get("CALMIX", "calmix")
LIMITS = (0.02, 0.05)
ORDERS = 100
BUDGETS = (300, 600)
DELTA = 0.05


def calmix(*arguments, folder):
    done = subprocess.run([CALMIX, *map(str, arguments)], cwd=folder, capture_output=True, text=True)
    return done.stdout if done.returncode == 0 else None


def critical(rows, limit):
    """The largest number of errors with which each number of answers, from one, shows the limit; -1 for none."""
    m = int(np.floor(limit * rows)) + 1
    k = np.arange(m)
    a = 10 * m / rows
    prior = gammaln(rows + 1) - gammaln(k + 1) - gammaln(rows - k + 1) + betaln(a + k, 30 - a + rows - k)
    prior = np.log(0.7) + prior - logsumexp(prior)
    prior[0] = np.logaddexp(prior[0], np.log(0.3))
    most, found = -1, []
    for n in range(1, min(rows, max(BUDGETS)) + 1):
        e = most + 1
        if e < m and n - e <= rows - m:
            falling = lambda M: gammaln(M + 1) - gammaln(M - e + 1) + gammaln(rows - M + 1) - gammaln(rows - M - n + e + 1)
            most += logsumexp(prior[e:] + falling(k[e:])) - falling(m) >= -np.log(DELTA)
        elif e < m:
            most += 1
        found.append(most)
    return np.array(found)


def audit(wrong, shares, tables, rng):
    """Answers until each share is certified: a list of the number of answers and the share's rows."""
    order = rng.permutation(shares[-1])
    answered = np.zeros(shares[-1], bool)
    spent, certified = 0, []
    for rows, table in zip(shares, tables):
        own = order[order < rows][: len(table)]
        shown = np.flatnonzero(wrong[own].cumsum() <= table)
        if not len(shown):
            break
        needed = own[: shown[0] + 1]
        spent += int((~answered[needed]).sum())
        answered[needed] = True
        if spent > max(BUDGETS):
            break
        certified.append((spent, rows))
    return certified


def seed_rows(vectors, classes, labels, seed):
    order = np.random.default_rng(seed).permutation(len(vectors))
    vectors, truth = vectors[order], classes[order].astype(str)
    rng = np.random.default_rng(1_000 + seed)
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        np.save(folder / "pool.npy", vectors)
        lines = [f"{row},{truth[row]}\n" for row in range(labels)]
        (folder / "labels.csv").write_text("id,label\n" + "".join(lines))
        train = ["--features", "pool.npy", "--labels", "labels.csv", "--run-dir", "run", "--quiet", "--threads", "1"]
        assert calmix("train", *train, "--set", "evaluate.bootstrap=0", folder=folder) is not None
        for limit in LIMITS:
            pool = len(truth) - labels
            lines = calmix("predict", "run", "pool.npy", "--format", "jsonl", "--precision", 1 - limit, folder=folder).splitlines()
            rows = [json.loads(line) for line in lines][labels:]
            answers = [row["label"] == right for row, right in zip(rows, truth[labels:]) if row["abstain"] is False]
            certify = ["run", "--pool", "pool.npy", "--labels", "labels.csv", "--error", limit, "--out", f"c{limit}", "--json"]
            begun = calmix("certify", *certify, folder=folder)
            record = {"precision rows": len(answers) / pool, "precision error": 1 - np.mean(answers) if answers else np.nan}
            record["precision breaks"] = float(bool(answers) and np.mean(answers) < 1 - limit)
            record["nothing answered"] = float(not answers)
            simulated = []
            if begun is not None:
                shares = json.loads((folder / f"c{limit}/certificate.json").read_text())["plan"]["shares"]
                table = np.genfromtxt(folder / f"c{limit}/labels.csv", delimiter=",", names=True, dtype=None, encoding="utf-8")
                wrong = table["label"].astype(str) != truth[table["id"].astype(int)]
                tables = [critical(rows, limit) for rows in shares]
                record["first share"] = shares[0] / pool
                record["its error"] = wrong[: shares[0]].mean()
                simulated = [audit(wrong, shares, tables, rng) for _ in range(ORDERS)]
                firsts = [certified[0][0] if certified else max(BUDGETS) + 1 for certified in simulated]
                record["answers"] = float(np.median(firsts))
            for budget in BUDGETS:
                rows = [max([rows for spent, rows in certified if spent <= budget], default=0) for certified in simulated] or [0]
                record[f"certified {budget}"] = np.mean([row > 0 for row in rows])
                record[f"rows {budget}"] = np.mean(rows) / pool
                errors = [wrong[:row].mean() for row in rows if row]
                record[f"error {budget}"] = np.mean(errors) if errors else np.nan
                record[f"false {budget}"] = np.mean([bool(row) and wrong[:row].mean() > limit for row in rows])
            found[limit] = record
    return found


def main():
    source, labels, seeds = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    vectors, classes = np.load(source / "vectors.npy"), np.load(source / "classes.npy")
    found = []
    # The means so far, after each seed: the last lines count.
    for seed in range(seeds):
        found.append(seed_rows(vectors, classes, labels, seed))
        for limit in LIMITS:
            names = list(dict.fromkeys(name for one in found for name in one[limit]))
            values = {name: [one[limit][name] for one in found if not np.isnan(one[limit].get(name, np.nan))] for name in names}
            means = ", ".join(f"{name} {np.mean(value):.3f}" for name, value in values.items() if value)
            print(f"{source.name}, {labels} labels, limit {limit}, {seed + 1} seeds: {means}", flush=True)


if __name__ == "__main__":
    main()
