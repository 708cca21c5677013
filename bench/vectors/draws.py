"""Draws of the labels, the same for calmix and its peers."""

import numpy as np

TRAIN = 10_000


def labelled(classes, per_class, draw):
    """The training rows that keep their label: `per_class` of each class, at random."""
    random = np.random.default_rng([draw, per_class])
    train = classes[:TRAIN]
    rows = [random.choice(np.flatnonzero(train == name), per_class, replace=False) for name in np.unique(train)]
    return np.sort(np.concatenate(rows))
