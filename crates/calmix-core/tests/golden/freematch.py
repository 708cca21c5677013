"""Golden cases for FreeMatch's thresholds and its fairness term, and for the penalty on logit distances.

The thresholds and the fairness come from semilearn 0.3.2 itself, in f64: its thresholding hook and its `entropy_loss`,
loaded from the unpacked wheel without the package around them. The penalty is a transcription of its paper's formula;
all gradients are PyTorch's. Inputs come from the crate's own streams (philox.py).

    pip download --no-deps semilearn==0.3.2 && unzip semilearn-0.3.2-py3-none-any.whl -d semilearn-0.3.2
    python freematch.py semilearn-0.3.2     writes freematch.jsonl beside itself, and the engine's terms.jsonl
"""

import pathlib
import sys
import types

import numpy as np
import torch
from method import BOOTSTRAP, CASES, HERE, SEED, matrix, numbers, write
from philox import Stream

ENGINE = HERE.parents[2] / "calmix-engine" / "tests" / "golden"


def semilearn(root):
    """FreeMatch's hook class and its fairness term, from files of the wheel."""
    for name in ("semilearn", "semilearn.algorithms", "semilearn.algorithms.utils", "semilearn.algorithms.hooks"):
        sys.modules[name] = types.ModuleType(name)
    sys.modules["semilearn.algorithms.utils"].concat_all_gather = None
    sys.modules["semilearn.algorithms.hooks"].MaskingHook = object
    folder = pathlib.Path(root) / "semilearn" / "algorithms" / "freematch"
    hook = {}
    exec((folder / "utils.py").read_text(), hook)
    # The class around the term needs the whole package; the term is what stands before it.
    source = (folder / "freematch.py").read_text()
    term = {"torch": torch}
    exec(source[source.index("def replace_inf_to_zero") : source.index("@ALGORITHMS")], term)
    return hook["FreeMatchThresholdingHook"], term["entropy_loss"]


def thresholds(hook, case):
    s = Stream(SEED, BOOTSTRAP, 5, case)
    classes, steps = 1 + s.below(6), 1 + s.below(6)
    momentum, clip = 0.5 + 0.499 * s.uniform(), s.below(2)
    hook = hook(classes, momentum)
    # What of the algorithm the hook looks at.
    algorithm = types.SimpleNamespace(distributed=False, use_quantile=False, clip_thresh=bool(clip))
    for _ in range(steps):
        z = torch.tensor(matrix(s, 1 + s.below(8), classes, 5))
        mask = hook.masking(algorithm, z)
        top, label = z.softmax(-1).max(-1)
        line = hook.time_p * (hook.p_model / hook.p_model.max())[label]
        # f32 and f64 may disagree on a hair's breadth: such a case proves nothing.
        if ((top - line).abs() < 1e-5).any():
            return None
    return {
        "case": case,
        "threshold": numbers([hook.time_p])[0],
        "marginal": numbers(hook.p_model, 9),
        "histogram": numbers(hook.label_hist, 9),
        "mask": "".join("1" if m else "0" for m in mask),
    }


def terms(entropy_loss, case):
    s = Stream(SEED, BOOTSTRAP, 6, case)
    classes, rows = 2 + s.below(4), 1 + s.below(4)
    z = torch.tensor(matrix(s, rows, classes, 4), requires_grad=True)
    weights = torch.tensor([[0.0, 1.0, s.uniform()][s.below(3)] for _ in range(rows)])
    labels = torch.tensor([int(row.argmax()) if s.below(4) else s.below(classes) for row in z])
    marginal = torch.tensor([0.1 + s.uniform() for _ in range(classes)])
    histogram = torch.tensor([s.uniform() if s.below(4) else 0.0 for _ in range(classes)])
    margin = 3 * s.uniform()
    if not histogram.any():
        return None
    top = z.detach().sort(dim=1, descending=True).values
    distances = top[:, :1] - z.detach()
    if ((top[:, 0] - top[:, 1]) < 1e-3).any() or ((distances - margin).abs() < 1e-3).any():
        return None

    fairness = torch.zeros(())
    if weights.any():
        value, _ = entropy_loss(weights > 0, z, marginal, histogram.clone())
        # semilearn adds log(1e-12) for a class without a selected row: a constant, which counts nothing here.
        ratio = torch.where(histogram > 0, marginal / histogram, torch.zeros(()))
        there = torch.bincount(z[weights > 0].argmax(1), minlength=classes) > 0
        fairness = value - ((ratio / ratio.sum())[~there] * np.log(1e-12)).sum()
    distance = torch.zeros(())
    selected = weights * (z.argmax(1) == labels)
    if selected.any():
        cost = (z.max(dim=1, keepdim=True).values - z - margin).clamp(min=0).mean(dim=1)
        distance = (selected * cost).sum() / selected.sum()
    result = {"case": case}
    for name, term in (("fairness", fairness), ("distance", distance)):
        gradient = torch.zeros_like(z)
        if term.requires_grad:
            (gradient,) = torch.autograd.grad(term, z, retain_graph=True)
        result |= {name: numbers([term.detach()], 9)[0], f"{name}_gradient": numbers(gradient, 7)}
    return result


if __name__ == "__main__":
    torch.set_default_dtype(torch.float64)
    hook, entropy_loss = semilearn(sys.argv[1])
    header = {"semilearn": "0.3.2", "torch": torch.__version__}
    cases = filter(None, (thresholds(hook, case) for case in range(2 * CASES)))
    write("freematch", header, [case for _, case in zip(range(CASES), cases)])
    cases = filter(None, (terms(entropy_loss, case) for case in range(2 * CASES)))
    write("terms", header, [case for _, case in zip(range(CASES), cases)], ENGINE)
