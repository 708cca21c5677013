"""Draws of the labels and of the unlabelled rows, the same for calmix and its peers."""

import numpy as np

TRAIN = 10_000
# The rarest class keeps a tenth of its unlabelled rows.
IMBALANCE = 10
# Of the unlabelled rows, how many are of other classes.
FOREIGN = 0.2


def labelled(classes, per_class, draw):
    """The training rows that keep their label: `per_class` of each class, at random."""
    random = np.random.default_rng([draw, per_class])
    train = classes[:TRAIN]
    rows = [random.choice(np.flatnonzero(train == name), per_class, replace=False) for name in np.unique(train)]
    return np.sort(np.concatenate(rows))


def imbalanced(classes, kept, draw):
    """Training rows: those of `kept`, and of the others a share per class that falls from 1 to a tenth, in a random order."""
    random = np.random.default_rng([draw, len(kept), 1])
    order = random.permutation(np.unique(classes))
    rows = [kept]
    for place, name in enumerate(order):
        others = np.setdiff1d(np.flatnonzero(classes[:TRAIN] == name), kept)
        share = IMBALANCE ** (-place / (len(order) - 1))
        rows.append(random.choice(others, round(share * len(others)), replace=False))
    return np.sort(np.concatenate(rows))


def with_foreign(classes, kept, draw):
    """Training rows without a fifth of the unlabelled ones, and as many rows of the foreign dataset to put in their place."""
    random = np.random.default_rng([draw, len(kept), 2])
    others = np.setdiff1d(np.arange(TRAIN), kept)
    count = round(FOREIGN * len(others))
    out = random.choice(others, count, replace=False)
    return np.setdiff1d(np.arange(TRAIN), out), random.choice(TRAIN, count, replace=False)
