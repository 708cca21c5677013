"""How well the mix of classes of new samples is estimated: `shares.py FOLDER DRAWS LABELS…`, as for `mix.py`, with QuaPy beside calmix.

Each cell is the mean total variation between the estimated and the true shares. `calmix` is `CalmixClassifier.estimate_mix`. `EMQ of calmix` is
QuaPy's EM on the probabilities of the same classifier; EMQ, PACC and KDEy-ML are QuaPy's on logistic regression of the labelled vectors alone, as
its manual has them. `unchanged` takes the mix of the labels.
"""

import sys
import warnings

import numpy as np
import quapy
from mix import data, drawn, shares
from quapy.method.aggregative import EMQ, PACC, KDEyML
from sklearn.linear_model import LogisticRegression

from calmix import CalmixClassifier

KINDS = ["same", "random", "hard", "missing"]


def peers():
    def classifier():
        return LogisticRegression(max_iter=1000)

    return {"EMQ": EMQ(classifier()), "PACC": PACC(classifier()), "KDEy-ML": KDEyML(classifier())}


def main():
    quapy.environ["_R_SEED"] = 0
    X, y, new, truth = data(sys.argv[1])
    draws = int(sys.argv[2])
    classes = np.unique(y)
    names = ["unchanged", "calmix", "EMQ of calmix", *peers()]
    print("| labels | mix | " + " | ".join(names) + " |\n|---|---|" + "---|" * len(names))
    for labels in map(int, sys.argv[3:]):
        found = {}
        for draw in range(draws):
            rng = np.random.default_rng(draw)
            codes = np.full(len(y), -1)
            for k in classes:
                codes[rng.permutation(np.flatnonzero(y == k))[:labels]] = k
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                classifier = CalmixClassifier().fit(X, codes)
                known = codes >= 0
                fitted = {name: peer.fit(X[known], codes[known]) for name, peer in peers().items()}
                wrong = np.array([(classifier.predict(new[truth == k]) != k).mean() for k in classes])
                for kind in KINDS:
                    rows = drawn(truth, shares(kind, wrong, rng), rng)
                    true = np.bincount(truth[rows], minlength=len(classes)) / len(rows)
                    uniform = np.full(len(classes), 1 / len(classes))
                    estimates = {"unchanged": uniform, "calmix": classifier.estimate_mix(new[rows]).shares,
                                 "EMQ of calmix": EMQ.EM(uniform, classifier.predict_proba(new[rows]))[0]}
                    estimates |= {name: peer.predict(new[rows]) for name, peer in fitted.items()}
                    row = [0.5 * np.abs(estimates[name] - true).sum() for name in names]
                    found.setdefault(kind, []).append(row)
        for kind, rows in found.items():
            cells = " | ".join(f"{mean:.3f}" for mean in np.mean(rows, axis=0))
            print(f"| {labels} | {kind} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
