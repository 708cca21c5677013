"""calmix beside scikit-learn on vectors that chose no constant: tables of `vectors/runs.csv`, which bench/vectors/collect.py writes."""

from intervals import half95, mean
from markdown import percent, table
from runs import rows

LABELS = [4, 10, 25]
# The classifiers of scikit-learn by their classes.
NAMES = {
    "calmix": "calmix",
    "logistic regression": "LogisticRegression",
    "self-training": "SelfTrainingClassifier",
    "label spreading": "LabelSpreading",
    "calmix, labels alone": "calmix on the labels alone",
}
METRICS = {"error": "error", "ece": "ECE"}


def values(classifier, labels, metric):
    """The metric of every draw; None where it is undefined."""
    found = [row for row in rows("vectors/runs.csv") if row["classifier"] == classifier and int(row["labels"]) == labels]
    return [float(row[metric]) if row[metric] else None for row in found]


def classifiers():
    """Every classifier and metric, with half of its 95% interval."""
    body = []
    for labels in LABELS:
        for name, shown in NAMES.items():
            cells = []
            for metric in METRICS:
                found = [100 * value for value in values(name, labels, metric)]
                cells.append(f"{mean(found):.1f}% ± {half95(found):.1f}")
            nll = values(name, labels, "nll")
            cells.append("undefined" if None in nll else f"{mean(nll):.3f} ± {half95(nll):.3f}")
            body.append([labels, shown, *cells])
    return table(["labels per class", "classifier", "error", "ECE", "NLL"], body)


def guarantees():
    """What 90% prediction sets and abstention for 90% precision did; `right` is undefined if a draw answers nothing."""
    body = []
    for labels in LABELS:
        coverage, size, answered, right = (values("calmix", labels, name) for name in ("coverage", "set_size", "answered", "right"))
        right = [value for value, share in zip(right, answered) if share > 0]
        cells = [f"{percent(mean(coverage))} ({percent(min(coverage))} to {percent(max(coverage))})", f"{mean(size):.2f}"]
        cells += [percent(mean(answered)), f"{len(right)} of {len(answered)}"]
        cells.append(f"{percent(mean(right))} ({percent(min(right))} to {percent(max(right))})" if right else "")
        body.append([labels, *cells])
    head = ["labels per class", "coverage (draws)", "classes in a set", "answered", "draws that answer", "right (draws)"]
    return table(head, body)
