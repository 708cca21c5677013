"""What the tests share: digits with few labels, and the command that the estimator is compared with."""

import os
from pathlib import Path

import numpy as np
import pytest


@pytest.fixture(scope="session")
def digits():
    """Vectors of scikit-learn's digits, labels of which all but ten per class are −1, and the truth."""
    from sklearn.datasets import load_digits

    X, truth = load_digits(return_X_y=True)
    X = X.astype(np.float32)
    order = np.random.default_rng(0).permutation(len(X))
    X, truth = X[order], truth[order]
    y = np.full(len(X), -1)
    for label in range(10):
        rows = np.flatnonzero(truth[:1200] == label)[:10]
        y[rows] = label
    return X, y, truth


@pytest.fixture(scope="session")
def command():
    """The command `calmix` of the same commit."""
    program = os.environ.get("CALMIX_PROGRAM")
    if not program:
        pytest.skip("CALMIX_PROGRAM does not name the command; `cargo xtask check python` sets it")
    return Path(program)
