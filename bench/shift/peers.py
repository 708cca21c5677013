"""What MAPIE finds in the batches of `power.py`: `peers.py FOLDER DRAWS`, with the same FOLDER. Needs the package calmix for the model.

Both of MAPIE's tests of exchangeability run at a level of 1% on 250 samples like those of training and the batch after them:
`OnlineMartingaleTest` and, up to 200 rows, `PValuePermutationTest` (its statistic is a loop in Python). They take labels, which new samples do
not have, so the predicted class stands for the label: the score is then one minus the confidence. A cell is the share of DRAWS batches in which a
test rejects.
"""

import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
from mapie.classification import SplitConformalClassifier
from mapie.exchangeability_testing import OnlineMartingaleTest, PValuePermutationTest
from power import SIZES, batches_of, train

LEVEL = 0.01
REFERENCE = 250
PERMUTATIONS = 199
MAX_PERMUTED = 200


class Fixed:
    """A fitted classifier whose inputs are its probabilities."""

    def __init__(self, classes):
        self.classes_ = np.arange(classes)
        self.n_features_in_ = classes

    def fit(self, X, y):
        return self

    def predict_proba(self, X):
        return X

    def predict(self, X):
        return X.argmax(axis=1)

    def __sklearn_is_fitted__(self):
        return True


def rejections(p, rows, draw):
    """Whether each test rejects that the last `rows` rows of probabilities are like the others."""
    estimator = SplitConformalClassifier(Fixed(p.shape[1]), 0.9, "lac", prefit=True)
    options = {"mapie_estimator": estimator, "task": "classification", "test_level": LEVEL, "random_state": draw, "warn": False}
    online = OnlineMartingaleTest(**options).update(p, p.argmax(axis=1))
    if rows > MAX_PERMUTED:
        return not online.is_exchangeable, np.nan
    permuted = PValuePermutationTest(num_permutations=PERMUTATIONS, **options).run(p, p.argmax(axis=1))
    return not online.is_exchangeable, not permuted.is_exchangeable


def main():
    source, draws = Path(sys.argv[1]), int(sys.argv[2])
    warnings.simplefilter("ignore")
    clean = np.load(source / "clean.npy").astype(np.float32)
    print("| batch | rows | martingale | permutations |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        model = train(source, Path(folder))
        for name, batch in batches_of(source).items():
            for n in SIZES:
                found = []
                for draw in range(draws):
                    reference = clean[np.random.default_rng([draw, 1]).choice(len(clean), REFERENCE, False)]
                    rows = np.concatenate([reference, batch(n, np.random.default_rng([draw, n])).astype(np.float32)])
                    p = model.predict(rows, batch=len(rows)).probabilities.astype(float)
                    found.append(rejections(p / p.sum(axis=1, keepdims=True), n, draw))
                online, permuted = np.mean(found, axis=0)
                print(f"| {name} | {n:,} | {online:.2f} | {'–' if np.isnan(permuted) else f'{permuted:.2f}'} |", flush=True)


if __name__ == "__main__":
    main()
