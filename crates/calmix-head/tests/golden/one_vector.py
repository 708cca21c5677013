"""Writes one_vector.json: logistic regression by scikit-learn 1.9.1, and EM in plain NumPy.

python one_vector.py > one_vector.json
"""

import json

import numpy as np
from sklearn.linear_model import LogisticRegression

CLASSES, WIDTH, LABELLED, ROWS = 3, 5, 60, 120
EM_LABELLED = 12
STRENGTHS = [1.0, 30.0, 300.0]


def log_softmax(logits):
    below = logits - logits.max(1, keepdims=True)
    return below - np.log(np.exp(below).sum(1, keepdims=True))


def density(x, means, covariance):
    """log N(x; mean, covariance) of each row and class, by the definition."""
    apart = x[:, None, :] - means[None]
    squares = np.einsum("nki,ij,nkj->nk", apart, np.linalg.inv(covariance), apart)
    return -0.5 * (squares + np.linalg.slogdet(covariance)[1] + x.shape[1] * np.log(2 * np.pi))


def em(x, labels, rho, balanced):
    labelled, unlabelled = x[: len(labels)], x[len(labels) :]
    clamped = np.eye(CLASSES)[labels]
    shares = clamped.mean(0)
    weight = rho * len(labelled) / len(unlabelled)

    def maximise(rows, r, w):
        counts = (w[:, None] * r).sum(0)
        means = (w[:, None] * r).T @ rows / counts[:, None]
        covariance = sum(
            w[n] * r[n, k] * np.outer(rows[n] - means[k], rows[n] - means[k])
            for n in range(len(rows))
            for k in range(CLASSES)
        )
        covariance = covariance / w.sum()
        variance = np.trace(covariance) / WIDTH
        covariance = 0.7 * covariance + 0.3 * variance * np.eye(WIDTH)
        return means, covariance, shares if balanced else counts / w.sum()

    means, covariance, priors = maximise(labelled, clamped, np.ones(len(labelled)))
    weights = np.concatenate([np.ones(len(labelled)), np.full(len(unlabelled), weight)])
    before = None
    for _ in range(10):
        joint = density(x, means, covariance) + np.log(priors)
        likely = np.log(np.exp(joint).sum(1))
        likely[: len(labels)] = joint[np.arange(len(labels)), labels]
        likelihood = (weights * likely).sum() / weights.sum()
        r = np.exp(log_softmax(joint))[len(labels) :]
        if balanced:
            for _ in range(5):
                r = r * (shares * len(r) / r.sum(0))
                r = r / r.sum(1, keepdims=True)
        means, covariance, priors = maximise(x, np.concatenate([clamped, r]), weights)
        if before is not None and abs(likelihood - before) < 1e-4 * abs(likelihood):
            break
        before = likelihood
    return np.exp(log_softmax((density(x, means, covariance) + np.log(priors)) / 5))


def main():
    draw = np.random.default_rng(5)
    classes = np.arange(ROWS) % CLASSES
    # Overlapping clouds along correlated directions, so that the unlabelled rows move the result.
    mixing = draw.normal(size=(WIDTH, WIDTH)) * 0.6
    x = np.eye(CLASSES, WIDTH)[classes] * 1.6 + draw.normal(size=(ROWS, WIDTH)) @ mixing
    x = np.round(x / np.linalg.norm(x, axis=1, keepdims=True), 4)
    x = x.astype(np.float32).astype(np.float64)
    regression = []
    for strength in STRENGTHS:
        model = LogisticRegression(C=strength, tol=1e-10, max_iter=10_000)
        model.fit(x[:LABELLED], classes[:LABELLED])
        regression.append(np.round(model.predict_proba(x[LABELLED:]), 7).ravel().tolist())
    golden = {
        "vectors": np.round(x, 4).ravel().tolist(),
        "strengths": STRENGTHS,
        "regression": regression,
        "em": np.round(em(x, classes[:EM_LABELLED], 2.0, False), 7).ravel().tolist(),
        "balanced_em": np.round(em(x, classes[:EM_LABELLED], 4.0, True), 7).ravel().tolist(),
    }
    print("{\n" + ",\n".join(f'"{key}": {json.dumps(value)}' for key, value in golden.items()) + "\n}")


main()
