"""The tables of runs.csv: in README.md of this folder, with intervals, and in README.md of the project: `tables.py`, or
`tables.py --check`."""

import csv
import re
import sys
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
LABELS = [4, 10, 25]
# Two-sided 95% quantiles of Student's t, by degrees of freedom.
QUANTILES = {4: 2.776, 9: 2.262, 19: 2.093}
# How the tables name the classifiers of runs.csv; the first three are in the README of the project.
NAMES = {
    "calmix": "calmix",
    "logistic regression": "LogisticRegression",
    "self-training": "SelfTrainingClassifier",
    "label spreading": "LabelSpreading",
    "calmix, labels alone": "calmix on the labels alone",
}


def read(path=HERE / "runs.csv"):
    with path.open() as file:
        return list(csv.DictReader(file))


def values(rows, classifier, labels, metric):
    """A metric of every draw; without the draws in which it is undefined."""
    found = [row[metric] for row in rows if row["classifier"] == classifier and int(row["labels"]) == labels]
    return np.array([float(value) for value in found if value])


def interval(found):
    """Mean and the half of a 95% interval over draws."""
    return found.mean(), QUANTILES[len(found) - 1] * found.std(ddof=1) / np.sqrt(len(found))


def overview(rows):
    """One number per cell: error and ECE, beside scikit-learn."""
    names = list(NAMES)[:3]
    table = ["| labels per class | " + " | ".join(NAMES[name] for name in names) + " |", "|---|" + "---|" * len(names)]
    for metric, title in [("error", "error"), ("ece", "ECE")]:
        for labels in LABELS:
            cells = [f"{100 * values(rows, name, labels, metric).mean():.1f}%" for name in names]
            table.append(f"| {title}, {labels} labels | " + " | ".join(cells) + " |")
    return table


def all_classifiers(rows):
    """Every classifier and metric, with intervals."""
    table = ["| labels per class | classifier | error | ECE | NLL |", "|---|---|---|---|---|"]
    for labels in LABELS:
        for name, shown in NAMES.items():
            cells = []
            for metric in ["error", "ece"]:
                mean, half = interval(100 * values(rows, name, labels, metric))
                cells.append(f"{mean:.1f}% ± {half:.1f}")
            found = values(rows, name, labels, "nll")
            cells.append("{:.3f} ± {:.3f}".format(*interval(found)) if len(found) == 10 else "undefined")
            table.append(f"| {labels} | {shown} | " + " | ".join(cells) + " |")
    return table


def guarantees(rows):
    """What 90% prediction sets and abstention for 90% precision did."""
    names = ["labels per class", "sets with the true class (lowest, highest draw)", "classes in a set", "answered", "of these right (lowest draw)"]
    table = ["| " + " | ".join(names) + " |", "|---" * len(names) + "|"]
    for labels in LABELS:
        coverage, size, answered, right = (values(rows, "calmix", labels, name) for name in ["coverage", "set_size", "answered", "right"])
        cells = [f"{100 * coverage.mean():.1f}% ({100 * coverage.min():.1f}, {100 * coverage.max():.1f})", f"{size.mean():.2f}"]
        cells.append(f"{100 * answered.mean():.1f}%")
        cells.append(f"{100 * right.mean():.1f}% ({100 * right.min():.1f})" if len(right) else "")
        if 0 < len(right) < len(answered):
            cells[-1] += f", {len(right)} of {len(answered)} draws answer"
        table.append(f"| {labels} | " + " | ".join(cells) + " |")
    return table


def filled(page, tables):
    """A page with its tables."""
    for name, table in tables.items():
        place = re.compile(rf"(<!-- {name} -->\n).*?(<!-- end -->)", re.S)
        page = place.sub(lambda found: found[1] + "\n".join(table) + "\n" + found[2], page)
    return page


def main():
    rows = read()
    tables = {"overview": overview(rows), "classifiers": all_classifiers(rows), "guarantees": guarantees(rows)}
    pages = {path: path.read_text() for path in [HERE / "README.md", HERE.parent.parent / "README.md"]}
    stale = [path for path, text in pages.items() if filled(text, tables) != text]
    if "--check" in sys.argv:
        for path in stale:
            print(f"{path.parent.name}/{path.name} is not what results/vectors/tables.py writes: run it, and commit the result")
        sys.exit(1 if stale else 0)
    for path in stale:
        path.write_text(filled(pages[path], tables))


if __name__ == "__main__":
    main()
