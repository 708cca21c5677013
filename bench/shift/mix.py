"""What adapting to another mix of classes gains: `mix.py FOLDER DRAWS LABELS…`, with NumPy and the package calmix.

FOLDER has `train.npy` with `train-labels.npy` and `clean.npy` with `clean-labels.npy`; `digits` stands for scikit-learn's digits. For each number of
LABELS per class, DRAWS classifiers are trained; each predicts new samples in the same mix, in a random mix of 1:10, in a mix of 1:10 in which the
classes it gets wrong are frequent, and without one class. A row is the mean over the draws: error, NLL, and coverage and size of 90% sets, plain,
by class, with the estimated mix and with the known one, and the share answered at a precision of 90%.
"""

import sys
import warnings
from pathlib import Path

import numpy as np

from calmix import CalmixClassifier

CLASSES_PER_MIX = 10.0


def data(name):
    if name != "digits":
        folder = Path(name)
        return [np.load(folder / f"{part}.npy") for part in ["train", "train-labels", "clean", "clean-labels"]]
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(X))
    X, y = X[order].astype(np.float32), y[order]
    return X[:1100], y[:1100], X[1100:], y[1100:]


def shares(kind, wrong, rng):
    count = len(wrong)
    if kind == "same":
        return np.full(count, 1 / count)
    if kind == "missing":
        share = np.full(count, 1 / (count - 1))
        share[rng.integers(count)] = 0
        return share
    rank = rng.permutation(count) if kind == "random" else np.argsort(np.argsort(-wrong))
    share = CLASSES_PER_MIX ** (-rank / (count - 1))
    return share / share.sum()


def drawn(y, share, rng):
    """As many rows with these shares as there are, without repeating one."""
    rows = [rng.permutation(np.flatnonzero(y == k)) for k in range(len(share))]
    n = min(len(of_class) / s for of_class, s in zip(rows, share) if s > 0)
    return np.concatenate([of_class[: int(n * s)] for of_class, s in zip(rows, share)])


def measures(classifier, X, y, mix, rule):
    p = classifier.predict_proba(X, mix=mix)
    sets = classifier.predict_set(X, rule=rule, mix=mix)
    answered = classifier.predict_or_abstain(X, 0.9, mix=mix)
    rows = np.arange(len(y))
    nll = -np.log(np.maximum(p[rows, y], 1e-12)).mean()
    return [100 * (p.argmax(1) != y).mean(), nll, 100 * sets[rows, y].mean(), sets.sum(1).mean(), 100 * (~np.ma.getmaskarray(answered)).mean()]


def main():
    X, y, new, truth = data(sys.argv[1])
    draws = int(sys.argv[2])
    print("| labels | mix | predictions | error | NLL | coverage | size | answered | adapted |\n|---|---|---|---|---|---|---|---|---|")
    for labels in map(int, sys.argv[3:]):
        found = {}
        for draw in range(draws):
            rng = np.random.default_rng(draw)
            codes = np.full(len(y), -1)
            for k in np.unique(y):
                codes[rng.permutation(np.flatnonzero(y == k))[:labels]] = k
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                classifier = CalmixClassifier().fit(X, codes)
                wrong = np.array([(classifier.predict(new[truth == k]) != k).mean() for k in np.unique(y)])
                for kind in ["same", "random", "hard", "missing"]:
                    share = shares(kind, wrong, rng)
                    rows = drawn(truth, share, rng)
                    differs = classifier.estimate_mix(new[rows]).differs
                    for name, mix, rule in [("plain", None, "lac"), ("by class", None, "lac-by-class"),
                                            ("estimated", "estimate", "lac"), ("known", share, "lac")]:
                        found.setdefault((kind, name), []).append(measures(classifier, new[rows], truth[rows], mix, rule) + [differs])
        for (kind, name), rows in found.items():
            error, nll, coverage, size, answered, adapted = np.mean(rows, axis=0)
            deviation = np.std(rows, axis=0, ddof=1) / np.sqrt(len(rows))
            last = f"{100 * adapted:.0f}%" if name == "estimated" else ""
            print(f"| {labels} | {kind} | {name} | {error:.1f} ± {deviation[0]:.1f} | {nll:.3f} | {coverage:.1f} ± {deviation[2]:.1f} | {size:.2f} | {answered:.0f}% | {last} |", flush=True)


if __name__ == "__main__":
    main()
