"""Measures of calibration and a temperature by their usual packages: `MEASURE PACKAGE FOLDER`; one thread.

`MEASURE PACKAGE` is `ece-probabilities torchmetrics`, `ece-probabilities netcal`, `ece-logits torchmetrics`,
`brier scikit-learn` or `temperature torch`.
"""

import os
import sys

for name in ["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"]:
    os.environ[name] = "1"

import numpy as np  # noqa: E402  (the thread counts are read at import)

from worker import serve_cpu  # noqa: E402

CLASSES, BINS = 1_000, 15


def torchmetrics(numbers, labels):
    import torch
    from torchmetrics.functional.classification import multiclass_calibration_error

    torch.set_num_threads(1)
    numbers, labels = torch.from_numpy(numbers), torch.from_numpy(labels)
    return lambda: multiclass_calibration_error(numbers, labels, CLASSES, n_bins=BINS).item()


def netcal(probabilities, labels):
    from netcal.metrics import ECE

    return lambda: ECE(BINS).measure(probabilities, labels)


def scikit_learn(probabilities, labels):
    from sklearn.metrics import brier_score_loss

    classes = np.arange(CLASSES)
    # By default it divides the score of two classes by two, and of more it does not.
    return lambda: brier_score_loss(labels, probabilities, labels=classes)


def torch_temperature(logits, labels):
    """L-BFGS on ln T with a line search: the setting with the fewest passes of those that were tried."""
    import torch

    torch.set_num_threads(1)
    logits, labels = torch.from_numpy(logits), torch.from_numpy(labels)

    def fit():
        log_t = torch.zeros((), requires_grad=True)
        optimiser = torch.optim.LBFGS([log_t], max_iter=100, line_search_fn="strong_wolfe")

        def closure():
            optimiser.zero_grad()
            loss = torch.nn.functional.cross_entropy(logits / log_t.exp(), labels)
            loss.backward()
            return loss

        optimiser.step(closure)
        return log_t.exp().item()

    return fit


def main():
    measure, package, folder = sys.argv[1:]
    source = "probabilities" if measure in ("ece-probabilities", "brier") else "logits"
    numbers = np.fromfile(f"{folder}/{source}.f32", np.float32).reshape(-1, CLASSES)
    labels = np.fromfile(f"{folder}/labels.u32", np.uint32).astype(np.int64)
    match measure, package:
        case ("ece-probabilities" | "ece-logits", "torchmetrics"):
            repetition = torchmetrics(numbers, labels)
        case "ece-probabilities", "netcal":
            repetition = netcal(numbers, labels)
        case "brier", "scikit-learn":
            repetition = scikit_learn(numbers, labels)
        case "temperature", "torch":
            repetition = torch_temperature(numbers, labels)
        case other:
            sys.exit(f"there is no measure {other}")
    serve_cpu(repetition)


main()
