"""Seconds for prediction sets of 10⁶ rows and 100 classes: calmix beside MAPIE and crepes, on the same probabilities, one thread.
On a busy machine, compare CPU times.

    python bench/guard/speed.py [ROWS]
"""

import sys
import time

import numpy as np
from calmix import PredictionSets
from crepes import ConformalClassifier
from crepes.extras import hinge
from mapie.classification import SplitConformalClassifier

CLASSES = 100
LABELS = 1000


class Fixed:
    """A fitted classifier whose inputs are its probabilities."""

    classes_ = np.arange(CLASSES)
    n_features_in_ = CLASSES

    def fit(self, X, y):
        return self

    def predict_proba(self, X):
        return X

    def predict(self, X):
        return X.argmax(axis=1)

    def __sklearn_is_fitted__(self):
        return True


def drawn(rows, rng):
    p = rng.standard_gamma(0.1, size=(rows, CLASSES)) + 1e-12
    p /= p.sum(axis=1, keepdims=True)
    return p


def timed(name, run):
    start, cpu_start = time.perf_counter(), time.process_time()
    size = run()
    seconds, cpu_seconds = time.perf_counter() - start, time.process_time() - cpu_start
    print(f"{name:28} {seconds:7.2f} s, {cpu_seconds:7.2f} s of CPU time, {size:.3f} classes per set", flush=True)


def main(rows):
    rng = np.random.default_rng(0)
    held_out = drawn(LABELS, rng)
    y = (held_out.cumsum(axis=1) > rng.uniform(size=(LABELS, 1))).argmax(axis=1)
    new = drawn(rows, rng)
    labels = np.arange(CLASSES)

    def calmix(rule, threads=1):
        sets = PredictionSets(0.9, rule=rule, allow_empty=True, n_jobs=threads).fit(y, held_out, labels=labels)
        return sets.predict_set(new).sum() / rows

    def mapie(score):
        sets = SplitConformalClassifier(Fixed(), 0.9, score, random_state=0).conformalize(held_out, y)
        params = {"include_last_label": "randomized"} if score == "aps" else None
        return sets.predict_set(new, conformity_score_params=params)[1].sum() / rows

    def crepes():
        sets = ConformalClassifier().fit(hinge(held_out, labels, y))
        return sets.predict_set(hinge(new), confidence=0.9, smoothing=False).sum() / rows

    timed("calmix lac", lambda: calmix("lac"))
    timed("crepes hinge", crepes)
    timed("MAPIE lac", lambda: mapie("lac"))
    timed("calmix aps", lambda: calmix("aps"))
    timed("calmix aps, two threads", lambda: calmix("aps", 2))
    timed("MAPIE aps", lambda: mapie("aps"))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10**6)
