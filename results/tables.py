"""Writes the tables and plots of the study from its runs: `tables.py`, or `tables.py --check`.

Every table is a CSV file in `tables`. The documents show a few of them, between `<!-- NAME -->` and `<!-- end -->`. With `--check`
nothing is written, and a difference ends with 1.
"""

import csv
import io
import re
import sys

import numpy as np

import beside
import choose
import dynamics
import markdown
import scaling
import study
from intervals import half95, mean
from plot import plot
from runs import HERE, Runs, rows

# The tables that each document shows.
DOCUMENTS = {
    "docs/study/README.md": [
        "count", "nll 4", "nll 25", "hard targets", "crossover", "preset", "scratch", "premise", "scikit-learn", "guarantees",
    ],
    "docs/study/choose.md": [
        "draws of tools", "error of tools", "nll of tools", "ece of tools", "sets of tools", "seconds of tools", "losses of calmix",
    ],
    "docs/study/dynamics.md": ["count of dynamics", "primary", "auroc", "practice"],
    "docs/study/heads.md": ["default", "heads", "choice", "guarantees of heads", "temperature", "vectors"],
    "docs/study/scale.md": ["blocks", "groups", "rounds"],
    "docs/study/vectors.md": ["classifiers", "guarantees of vectors"],
}


def curves(runs, data, network, base, metric):
    """No mixture, and three kinds of pairs with soft targets, raw and at T, over the labels per class."""
    lines = []
    for colour, arm in enumerate(["none", "random soft", "crossed soft", "guided soft"]):
        for after, dash in [("", "4 3"), ("_at_t", "")] if metric == "nll" else [("", "")]:
            points = []
            for labels in runs.counts(data, network):
                values = runs.values((data, network, "linear", labels, base, arm), metric + after)
                if len(values) > 2:
                    numbers = (100 if metric == "error" else 1) * np.array(list(values.values()))
                    points.append((labels, mean(numbers), half95(numbers)))
            name = arm + (" at T" if after else ", raw" if metric == "nll" else "")
            lines.append((name, dash, colour, points))
    return plot({"nll": "NLL", "error": "error, %"}[metric] + f" on {data}, {base}", lines)


def csv_text(found):
    """Rows as CSV, with six significant digits; a column that a row lacks is empty."""
    names = list(dict.fromkeys(name for row in found for name in row))
    text = io.StringIO()
    out = csv.DictWriter(text, names, restval="", lineterminator="\n")
    out.writeheader()
    for row in found:
        out.writerow({name: f"{value:.6g}" if isinstance(value, float) else value for name, value in row.items()})
    return text.getvalue()


def filled(document, tables):
    """The document with its tables."""
    page = (HERE.parent / document).read_text()
    for name in DOCUMENTS[document]:
        place = re.compile(rf"(<!-- {re.escape(name)} -->\n).*?(<!-- end -->)", re.S)
        page, count = place.subn(lambda found: found[1] + "\n".join(tables[name]) + "\n" + found[2], page)
        if count != 1:
            sys.exit(f"{document} has {count} places `<!-- {name} -->` … `<!-- end -->`, but there must be one")
    return page


def texts():
    """The text of every file that is written, by its path from the root of the repository."""
    heads, networks = Runs("heads/runs.csv"), Runs("scratch/runs.csv")
    visited = dynamics.Dynamics()
    tools = choose.Cells()
    data = {
        "comparisons": study.comparisons(heads, networks),
        "arms": study.arms(heads) + study.arms(networks),
        "unplanned": study.unplanned(heads, networks) + study.one_vector(heads),
        "crossover": study.crossover(heads),
        "preset": study.preset(heads),
        "guarantees": study.guarantees(heads),
        "scikit-learn": study.scikit_learn(heads),
        "premise": study.premise(heads),
        "deciles": study.deciles(rows("scratch/deciles.csv")),
        "scale": scaling.scale(),
        "dynamics": dynamics.primary(visited),
        "dynamics-arms": dynamics.secondary(visited),
        "dynamics-auroc": dynamics.auroc(visited),
    }
    tables = {f"nll {labels}": markdown.planned(data["comparisons"], labels) for labels in markdown.COLUMNS}
    tables |= {
        "count": count(heads, networks),
        "hard targets": markdown.hard_targets(data["unplanned"]),
        "crossover": markdown.crossover(data["crossover"]),
        "preset": markdown.preset(data["preset"]),
        "scratch": markdown.scratch(data["unplanned"]),
        "premise": markdown.premise(data["premise"]),
        "scikit-learn": markdown.scikit_learn(data["scikit-learn"]),
        "guarantees": markdown.guarantees(data["guarantees"]),
        "default": markdown.default(),
        "heads": markdown.heads(),
        "choice": markdown.choice(),
        "guarantees of heads": markdown.guarantees_heads(),
        "temperature": markdown.temperature(),
        "vectors": markdown.vectors(),
        "blocks": markdown.scale(data["scale"], "blocks", "shards, order"),
        "groups": markdown.scale(data["scale"], "groups", "groups, learning rate"),
        "rounds": markdown.scale(data["scale"], "rounds", "unlabelled rows"),
        "classifiers": beside.classifiers(),
        "guarantees of vectors": beside.guarantees(),
        "draws of tools": choose.draws(tools),
        "error of tools": choose.measured(tools, "error"),
        "nll of tools": choose.measured(tools, "nll"),
        "ece of tools": choose.measured(tools, "ece"),
        "sets of tools": choose.sets(tools),
        "seconds of tools": choose.seconds(tools),
        "losses of calmix": choose.losses(tools),
        "count of dynamics": dynamics.count_line(visited),
        "primary": dynamics.primary_table(data["dynamics"]),
        "auroc": dynamics.auroc_table(data["dynamics-auroc"]),
        "practice": dynamics.practice(visited),
    }
    found = {f"results/tables/{name}.csv": csv_text(table) for name, table in data.items()}
    for cell in heads.cells():
        for metric in ["nll", "error"]:
            found[f"results/heads/{cell[0]}-{cell[2]}-{metric}.svg"] = curves(heads, *cell, metric)
    found |= dynamics.figures(visited)
    return found | {document: filled(document, tables) for document in DOCUMENTS}


def count(heads, networks):
    of_heads = sum(len(seeds) for setting, seeds in heads.rows.items() if setting[5] != "clean")
    of_networks = sum(len(seeds) for seeds in networks.rows.values())
    failed = heads.failed + networks.failed
    return [f"{of_heads:,} heads, each with ten more on its folds, and {of_networks} networks; {failed} runs failed."]


def main():
    found = texts()
    root = HERE.parent
    is_stale = lambda name: not (root / name).exists() or (root / name).read_text() != found[name]
    stale = [name for name in found if is_stale(name)]
    kept = {f"results/tables/{path.name}" for path in (HERE / "tables").glob("*")}
    unknown = sorted(kept - found.keys())
    if "--check" in sys.argv:
        for name in stale:
            print(f"{name} is not what results/tables.py writes from the CSV files of the runs: run it, and commit the result")
        for name in unknown:
            print(f"{name} is not written by results/tables.py: delete it")
        sys.exit(1 if stale or unknown else 0)
    for name in stale:
        path = root / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(found[name])


if __name__ == "__main__":
    main()
