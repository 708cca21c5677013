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
    others = np.setdiff1d(np.arange(TRAIN), kept)
    return np.sort(np.concatenate([kept, long_tailed(others, classes, order, IMBALANCE, random)]))


def long_tailed(rows, classes, order, ratio, random, least=0):
    """Some of the rows: of each class a share that falls in this order from 1 to a RATIO-th, and at least so many."""
    found = []
    for place, name in enumerate(order):
        own = rows[classes[rows] == name]
        share = ratio ** (-place / (len(order) - 1))
        found.append(random.choice(own, max(least, round(share * len(own))), replace=False))
    return np.sort(np.concatenate(found))


def drawn_labels(rows, classes, count, least, random):
    """The rows that keep their label: so many of each class at least, and the others at random, as they come."""
    first = np.concatenate([random.choice(rows[classes[rows] == name], least, replace=False) for name in np.unique(classes)])
    others = np.setdiff1d(rows, first)
    return np.sort(np.concatenate([first, random.choice(others, count - len(first), replace=False)]))


def with_foreign(classes, kept, draw):
    """Training rows without a fifth of the unlabelled ones, and as many rows of the foreign dataset to put in their place."""
    random = np.random.default_rng([draw, len(kept), 2])
    others = np.setdiff1d(np.arange(TRAIN), kept)
    count = round(FOREIGN * len(others))
    out = random.choice(others, count, replace=False)
    return np.setdiff1d(np.arange(TRAIN), out), random.choice(TRAIN, count, replace=False)
