"""One plan for the paper's batch in vectorised NumPy: `BASE CLASSES WIDTH`.

The same work as calmix_core::plan::plan_step: pseudo-labels and weights, AUM and APM of all classes, the split by
rank, cosine similarities, one of the k most dissimilar drawn at random, λ and the mixed targets.
"""

import os
import sys

for name in ["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"]:
    os.environ[name] = "1"

import numpy as np  # noqa: E402  (the thread counts are read at import)

from worker import serve  # noqa: E402

STEPS = 20  # in a repetition
LABELLED, UNLABELLED, SAMPLES, LABELLED_SAMPLES = 64, 448, 50_000, 400
DELTA, ALPHA, TAU, SHARE, MOMENTUM = 0.997, 0.4, 0.95, 0.05, 0.999


def softmax(z):
    e = np.exp(z - z.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def pseudo_margins(z):
    top = z.argmax(axis=1)
    two = np.partition(z, -2, axis=1)
    margins = z - two[:, -1:]
    margins[np.arange(len(z)), top] = two[:, -1] - two[:, -2]
    return margins, top


class Plan:
    def __init__(self, base, classes, width):
        self.base, self.classes = base, classes
        self.draw = np.random.Generator(np.random.Philox(1))

        def normal(*shape):
            return (2 * self.draw.standard_normal(shape)).astype(np.float32)

        self.y = self.draw.integers(classes, size=LABELLED)
        self.zx, self.fx = normal(LABELLED, classes), normal(LABELLED, width)
        self.zu, self.fu = normal(UNLABELLED, classes), normal(UNLABELLED, width)
        self.sums, self.visits = np.zeros(LABELLED_SAMPLES), np.zeros(LABELLED_SAMPLES)
        self.apm = np.zeros((SAMPLES, classes), dtype=np.float32)
        self.apm_visits = np.zeros(SAMPLES)
        self.selected, self.beta = np.full(SAMPLES, -1), np.zeros(classes)
        self.counts = np.zeros(classes, dtype=np.int64)
        self.mean, self.variance, self.marginal = 1 / classes, 1.0, None

    def weights(self, p, pseudo, ids):
        top = p[np.arange(len(p)), pseudo]
        if self.base == "fixmatch":
            return (top >= TAU).astype(np.float32)
        if self.base == "flexmatch":
            weights = (top >= (TAU * self.beta / (2 - self.beta))[pseudo]).astype(np.float32)
            for n, label in zip(ids[top >= TAU], pseudo[top >= TAU]):
                if self.selected[n] >= 0:
                    self.counts[self.selected[n]] -= 1
                self.counts[label] += 1
                self.selected[n] = label
            self.beta = self.counts / max(1, self.counts.max(), SAMPLES - self.counts.sum())
            return weights
        mean = p.mean(axis=0)
        self.marginal = mean if self.marginal is None else MOMENTUM * self.marginal + (1 - MOMENTUM) * mean
        aligned = p * ((1 / self.classes + 1e-6) / (self.marginal + 1e-6))
        aligned /= aligned.sum(axis=1, keepdims=True)
        self.mean = MOMENTUM * self.mean + (1 - MOMENTUM) * top.mean()
        self.variance = MOMENTUM * self.variance + (1 - MOMENTUM) * top.var(ddof=1)
        below = np.minimum(aligned.max(axis=1) - self.mean, 0)
        return np.exp(-(below**2) / (self.variance / 2))

    def step(self):
        x_ids = self.draw.integers(LABELLED_SAMPLES, size=LABELLED)
        u_ids = self.draw.integers(SAMPLES, size=UNLABELLED)
        margins, pseudo = pseudo_margins(self.zu)
        weights = self.weights(softmax(self.zu), pseudo, u_ids)

        np.add.at(self.sums, x_ids, pseudo_margins(self.zx)[0][np.arange(LABELLED), self.y])
        np.add.at(self.visits, x_ids, 1)
        aum = self.sums[x_ids] / self.visits[x_ids]
        w = (DELTA / (1 + self.apm_visits[u_ids]))[:, None].astype(np.float32)
        self.apm[u_ids] += w * (margins - self.apm[u_ids])
        self.apm_visits[u_ids] += 1
        apm = self.apm[u_ids, pseudo]

        lh, le = np.split(np.argsort(aum, kind="stable"), 2)
        uh, ue = np.split(np.argsort(apm, kind="stable"), 2)
        eye = np.eye(self.classes, dtype=np.float32)
        mixes = []
        for anchors, pool in [(le, uh), (lh, ue)]:
            a, b = self.fx[anchors], self.fu[pool]
            a = a / np.linalg.norm(a, axis=1, keepdims=True)
            b = b / np.linalg.norm(b, axis=1, keepdims=True)
            similarity = a @ b.T
            similarity[x_ids[anchors][:, None] == u_ids[pool][None, :]] = np.inf
            k = int(np.ceil(SHARE * len(pool)))
            least = np.argpartition(similarity, k, axis=1)[:, :k]
            partner = pool[least[np.arange(len(anchors)), self.draw.integers(k, size=len(anchors))]]
            mixed = self.draw.beta(ALPHA, ALPHA)
            targets = mixed * eye[self.y[anchors]] + (1 - mixed) * eye[pseudo[partner]]
            mixes.append((anchors, partner, mixed, targets))
        return weights, mixes


def main():
    match sys.argv[1:]:
        case [base, classes, width]:
            plan = Plan(base, int(classes), int(width))
            serve(lambda: [plan.step() for _ in range(STEPS)])
        case other:
            sys.exit(f"the cases of plan are `BASE CLASSES WIDTH`, not {other}")


main()
