"""Tools side by side: tables of `choose/runs.csv`, which bench/choose/run.py writes."""

from collections import defaultdict

from intervals import half95, mean
from markdown import table
from runs import rows

# The tools by their columns in the tables.
NAMES = {
    "calmix": "calmix",
    "LogisticRegression": "LR",
    "CalibratedClassifierCV, sigmoid": "LR, sigmoid",
    "CalibratedClassifierCV, temperature": "LR, temperature",
    "SelfTrainingClassifier": "self-training",
    "LabelSpreading": "label spreading",
}
METRICS = {"error": ("error", "{:.1%}"), "nll": ("NLL", "{:.3f}"), "ece": ("ECE", "{:.1%}")}


class Cells:
    """The values of every draw by dataset, labels per class and tool; a metric that a draw lacks is undefined."""

    def __init__(self):
        self.found = defaultdict(dict)
        for row in rows("choose/runs.csv"):
            self.found[row["dataset"], int(row["labels"]), row["classifier"]][int(row["draw"])] = row
        self.settings = list(dict.fromkeys(cell[:2] for cell in self.found))

    def values(self, setting, tool, metric):
        """By draw; empty if any draw lacks it."""
        draws = {draw: row[metric] for draw, row in self.found[*setting, tool].items()}
        return {draw: float(value) for draw, value in draws.items()} if all(draws.values()) else {}

    def mean(self, setting, tool, metric):
        values = self.values(setting, tool, metric)
        return mean(list(values.values())) if values else None


def draws(cells):
    """How many draws each dataset has."""
    counts = {name: min(len(cells.found[*setting, "calmix"]) for setting in cells.settings if setting[0] == name) for name, _ in cells.settings}
    return ["Draws: " + ", ".join(f"{name} {count}" for name, count in counts.items()) + "."]


def measured(cells, metric):
    """The mean of every tool; the lowest of a row, as it is shown, in bold."""
    _, form = METRICS[metric]
    body = []
    for setting in cells.settings:
        means = [cells.mean(setting, tool, metric) for tool in NAMES]
        shown = ["" if value is None else form.format(value) for value in means]
        lowest = form.format(min(value for value in means if value is not None))
        body.append([setting[0], setting[1], *(f"**{text}**" if text == lowest else text for text in shown)])
    return table(["data", "labels per class", *NAMES.values()], body)


def sets(cells):
    """Coverage of 90% sets with its lowest draw, and classes in a set."""
    body = []
    for setting in cells.settings:
        row = [setting[0], setting[1]]
        for tool in ["calmix", "MAPIE"]:
            covered = cells.values(setting, tool, "coverage")
            size = cells.mean(setting, tool, "set_size")
            row += [f"{mean(list(covered.values())):.1%} ({min(covered.values()):.1%})", f"{size:.2f}"] if covered else ["refused", ""]
        body.append(row)
    return table(["data", "labels per class", "calmix: coverage (lowest)", "classes", "MAPIE: coverage (lowest)", "classes"], body)


def seconds(cells):
    """Mean seconds of processor time by dataset, with 20 labels per class."""
    tools = [*NAMES, "MAPIE"]
    settings = [setting for setting in cells.settings if setting[1] == 20]
    body = [[setting[0], *(f"{cells.mean(setting, tool, 'seconds'):.2f}" for tool in tools)] for setting in settings]
    return table(["data", *NAMES.values(), "MAPIE"], body)


def losses(cells):
    """Every cell and metric in which another tool has a lower mean than calmix, with the paired difference to the best of them."""
    lines = []
    for metric, (title, _) in METRICS.items():
        found = []
        for setting in cells.settings:
            own = cells.values(setting, "calmix", metric)
            others = {tool: cells.mean(setting, tool, metric) for tool in NAMES if tool != "calmix"}
            best = min((tool for tool, value in others.items() if value is not None), key=others.get)
            if others[best] >= mean(list(own.values())):
                continue
            of_best = cells.values(setting, best, metric)
            differences = [own[draw] - of_best[draw] for draw in sorted(own.keys() & of_best.keys())]
            scale, unit, digits = (1, "", 3) if metric == "nll" else (100, " points", 1)
            difference = f"{scale * mean(differences):.{digits}f}"
            if len(differences) > 2:
                difference += f" ± {scale * half95(differences):.{digits}f}"
            found.append(f"{setting[0]} {setting[1]}: {difference}{unit} ({NAMES[best]})")
        lines.append(f"- {title}, {len(found)} of {len(cells.settings)}: {'; '.join(found) or 'none'}")
    return lines
