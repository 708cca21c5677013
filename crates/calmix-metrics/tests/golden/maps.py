"""Expected values of the calibration maps and statistics, from scipy, scikit-learn, statsmodels and NumPy.

Inputs are drawn from the streams of calmix_core::rng (philox.py of calmix-core), with arithmetic that rounds the same in
both languages, so a line holds the parameters of a case and the answers only. Writes *.csv beside itself.
"""

import math
import platform
import sys
from pathlib import Path

import numpy as np
import scipy
import sklearn
import statsmodels
from scipy import optimize, special, stats
from sklearn.isotonic import IsotonicRegression
from statsmodels.stats.multitest import multipletests

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parents[2] / "calmix-core/tests/golden"))
from philox import Stream

BOOTSTRAP, CONFORMAL = 9, 10
COLDEST, HOTTEST = 0.05, 20.0
VERSIONS = (
    f"# python {platform.python_version()}, numpy {np.__version__}, scipy {scipy.__version__}, "
    f"scikit-learn {sklearn.__version__}, statsmodels {statsmodels.__version__}"
)


def choice(stream, options):
    return options[int(stream.uniform() * len(options))]


def write(name, columns, rows):
    text = "\n".join([VERSIONS, ",".join(columns), *(",".join(map(show, row)) for row in rows)])
    (HERE / name).write_text(text + "\n")
    print(name, len(rows), "cases", len(text), "bytes")


def show(x):
    return repr(float(x)) if isinstance(x, (float, np.floating)) else str(x)


def logits_and_labels(stream, n, classes, scale, accuracy):
    logits = np.array([[(stream.uniform() - 0.5) * scale for _ in range(classes)] for _ in range(n)])
    logits = logits.astype(np.float32)
    labels = []
    for row in logits:
        right, other = stream.uniform() < accuracy, int(stream.uniform() * classes)
        labels.append(int(np.argmax(row)) if right else other)
    return logits.astype(np.float64), np.array(labels)


def temperature(case):
    stream = Stream(1, BOOTSTRAP, 0, case)
    n, classes = choice(stream, [1, 5, 20, 60]), choice(stream, [1, 2, 3, 5, 10])
    scale, accuracy = choice(stream, [1.0, 4.0, 16.0, 100.0]), choice(stream, [0.2, 0.5, 0.7, 0.9, 1.0])
    z, y = logits_and_labels(stream, n, classes, scale, accuracy)
    d = z - z.max(axis=1, keepdims=True)
    dy = d[np.arange(n), y]

    def nll(beta):
        return np.mean(special.logsumexp(beta * d, axis=1) - beta * dy)

    def slope(beta):
        return np.mean(np.sum(special.softmax(beta * d, axis=1) * d, axis=1) - dy)

    low, high = 1 / HOTTEST, 1 / COLDEST
    precise = {"xatol": 1e-12, "maxiter": 2000}
    found = optimize.minimize_scalar(nll, bounds=(low, high), method="bounded", options=precise)
    # Values alone place a minimum to the square root of their precision; the zero of the slope is sharper.
    if slope(low) >= 0:
        beta = low
    elif slope(high) <= 0:
        beta = high
    else:
        beta = optimize.brentq(slope, low, high, xtol=1e-15, rtol=1e-15, maxiter=1000)
    p = special.softmax(beta * d, axis=1)
    curvature = np.mean(np.sum(p * d * d, axis=1) - np.sum(p * d, axis=1) ** 2)
    best = 1.0 if slope(1.0) == 0 else 1 / beta
    return n, classes, scale, accuracy, float(min(found.fun, nll(beta))), best, float(f"{curvature:.3g}")


def vector(case):
    stream = Stream(2, BOOTSTRAP, 0, case)
    n, classes = choice(stream, [1, 4, 15, 50]), choice(stream, [2, 3, 6])
    scale, accuracy = choice(stream, [1.0, 8.0, 40.0]), choice(stream, [0.3, 0.7, 1.0])
    l2 = choice(stream, [0.1, 1.0, 10.0])
    z, y = logits_and_labels(stream, n, classes, scale, accuracy)
    start = np.concatenate([np.ones(classes), np.zeros(classes)])
    hot = np.eye(classes)[y]

    def objective(theta):
        a = z * theta[:classes] + theta[classes:]
        error = (special.softmax(a, axis=1) - hot) / n
        value = np.mean(special.logsumexp(a, axis=1) - a[np.arange(n), y])
        gradient = np.concatenate([np.sum(error * z, axis=0), np.sum(error, axis=0)])
        return value + l2 / (2 * n) * np.sum((theta - start) ** 2), gradient + l2 / n * (theta - start)

    def hessian(theta):
        p = special.softmax(z * theta[:classes] + theta[classes:], axis=1)
        total = np.eye(2 * classes) * l2 / n
        for zi, pi in zip(z, p):
            inner = (np.diag(pi) - np.outer(pi, pi)) / n
            both = np.concatenate([np.diag(zi), np.eye(classes)])
            total += both @ inner @ both.T
        return total

    precise = {"gtol": 1e-11, "maxiter": 2000}
    found = optimize.minimize(objective, start, jac=True, hess=hessian, method="trust-exact", options=precise)
    # One full Newton step to the end.
    theta = found.x - np.linalg.solve(hessian(found.x), objective(found.x)[1])
    return n, classes, scale, accuracy, l2, float(min(found.fun, objective(theta)[0]))


def isotonic(case):
    stream = Stream(3, BOOTSTRAP, 0, case)
    n, steps, weighted = choice(stream, [1, 2, 3, 8, 30, 80]), choice(stream, [4, 16, 1 << 40]), choice(stream, [0, 1])
    x = [math.floor(stream.uniform() * steps) / steps for _ in range(n)]
    y = [stream.uniform() * 0.75 + 0.25 * t if stream.uniform() < 0.5 else float(stream.uniform() < t) for t in x]
    w = [math.floor(stream.uniform() * 4) / 2 for _ in range(n)] if weighted else [1.0] * n
    if sum(w) == 0:
        w[0] = 1.0
    model = IsotonicRegression(out_of_bounds="clip").fit(np.array(x), np.array(y), sample_weight=np.array(w))
    queries = [stream.uniform() * 1.5 - 0.25 for _ in range(5)]
    answers = model.predict(np.array(queries + x[:1]))
    return n, steps, weighted, len(model.X_thresholds_), *map(float, answers)


def student(case):
    stream = Stream(4, BOOTSTRAP, 0, case)
    if case % 2:
        degrees = float(choice(stream, [1, 2, 3, 4, 5, 9, 29, 99, 1000]))
    else:
        u = stream.uniform()
        degrees = u * u * u * u * 1e6 + 0.25
    tail = stream.uniform()
    for _ in range(choice(stream, [0, 1, 2])):
        tail = tail * tail * tail
    # An interval of the mean of three to six numbers, at that level.
    numbers = [stream.uniform() * 10 for _ in range(3 + case % 4)]
    level = choice(stream, [0.5, 0.9, 0.95, 0.99])
    sem = np.std(numbers, ddof=1) / math.sqrt(len(numbers))
    low, high = stats.t.interval(level, len(numbers) - 1, loc=np.mean(numbers), scale=sem)
    return float(stats.t.isf(tail, degrees)), float(low), float(high)


def holm(case):
    stream = Stream(5, BOOTSTRAP, 0, case)
    m, power, steps = choice(stream, [1, 2, 3, 5, 8]), choice(stream, [1, 3]), choice(stream, [8, 1 << 40])
    p = []
    for _ in range(m):
        u = math.floor(stream.uniform() * (steps + 1)) / steps
        p.append(u if power == 1 else u * u * u)
    return m, power, steps, *map(float, multipletests(p, method="holm")[1])


def probabilities(stream, classes, steps):
    weights = []
    for _ in range(classes):
        u = (math.floor(stream.uniform() * steps) + 0.5) / steps
        weights.append(u * u * u)
    total = 0.0
    for w in weights:
        total += w
    return np.array([w / total for w in weights]).astype(np.float32).astype(np.float64)


def class_scores(p, rule, u):
    order = np.argsort(-p, kind="stable")
    scores = np.empty(len(p))
    if rule == "lac":
        scores[:] = 1.0 - p
    else:
        before = np.concatenate([[0.0], np.cumsum(p[order])[:-1]])
        scores[order] = before + u * p[order]
    return scores


def conformal(case):
    stream = Stream(6, BOOTSTRAP, 0, case)
    n, classes, steps = choice(stream, [0, 1, 5, 19, 40]), choice(stream, [1, 2, 4, 10]), choice(stream, [3, 1 << 40])
    alpha = choice(stream, [0.05, 0.1, 0.29, 0.5, 0.9])
    rows = [probabilities(stream, classes, steps) for _ in range(n)]
    labels = [int(stream.uniform() * classes) for _ in range(n)]
    new = [probabilities(stream, classes, steps) for _ in range(3)]
    answers = []
    for rule in ["lac", "aps", "randomised"]:

        def fraction(time, i):
            return Stream(case, CONFORMAL, time, i).uniform() if rule == "randomised" else 1.0

        scores = sorted(class_scores(p, rule, fraction(0, i))[y] for i, (p, y) in enumerate(zip(rows, labels)))
        rank = n + 1 - math.floor((n + 1) * alpha + 1e-9)
        threshold = scores[rank - 1] if rank <= n else math.inf
        for i, p in enumerate(new):
            inside = class_scores(p, rule, fraction(1, i)) <= threshold
            answers.append(sum(1 << k for k in range(classes) if inside[k]))
    return n, classes, steps, alpha, *answers


def main():
    shape = ["n", "classes", "scale", "accuracy"]
    write("temperature.csv", [*shape, "nll", "temperature", "curvature"], [temperature(c) for c in range(1500)])
    write("vector.csv", [*shape, "l2", "objective"], [vector(c) for c in range(300)])
    write("isotonic.csv", ["n", "steps", "weighted", "knots", *"abcdef"], [isotonic(c) for c in range(1200)])
    write("student_t.csv", ["quantile", "low", "high"], [student(c) for c in range(1200)])
    write("holm.csv", ["m", "power", "steps", "adjusted"], [holm(c) for c in range(1200)])
    write("conformal.csv", ["n", "classes", "steps", "alpha", "sets"], [conformal(c) for c in range(1200)])


if __name__ == "__main__":
    main()
