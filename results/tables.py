"""Rebuilds every number of README.md, its plots and a table in the README of the project: `tables.py`, or `tables.py --check`.

They come from the CSV files in the folders beside it. A table stands between `<!-- NAME -->` and `<!-- end -->`. With `--check` nothing is
written, and a difference ends with 1.
"""

import csv
import re
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np

from intervals import holm, interval, mean_of, signed, verdict
from plot import plot

HERE = Path(__file__).parent
# Differences that make no odds, in NLL and in error: with fewer than ten labels per class, and with more.
EQUAL = {"few": (0.03, 0.01), "many": (0.01, 0.003)}


class Runs:
    """The runs of a CSV file, by setting and seed."""

    def __init__(self, file):
        self.rows = defaultdict(dict)
        self.failed = []
        for line in rows(file):
            if line["failed"]:
                self.failed.append(line)
                continue
            setting = (line["data"], line["backbone"], line["head"], int(line["labels"]), line["base"], line["arm"])
            self.rows[setting][int(line["seed"])] = line

    def cells(self):
        """Data, backbone and base of the runs without mixtures."""
        return sorted({(setting[0], setting[1], setting[4]) for setting in self.rows if setting[5] == "none"})

    def values(self, setting, metric):
        """The metric of each run of a setting, by seed."""
        return {seed: float(line[metric]) for seed, line in self.rows.get(setting, {}).items() if line[metric]}

    def differences(self, setting, metric, against, against_metric):
        """The metric minus that of the run with the same seed in another setting."""
        of, other = self.values(setting, metric), self.values(against, against_metric)
        return np.array([of[seed] - other[seed] for seed in sorted(of.keys() & other.keys())])


def rows(file):
    with open(HERE / file) as lines:
        return list(csv.DictReader(lines))


# The comparisons and the arms of the confirmation were fixed after five seeds on CIFAR-10, which chose "random soft" as the best
# mixture: name, labels per class, an arm with its metric, and what it is compared with. "At T" is after the temperature that
# calmix fits to out-of-fold labels, and applies only if it helps there.
PRIMARY = [
    ("P1 soft − hard targets, guided pairs", 4, ("guided soft", ""), ("guided hard", "")),
    ("P2 guided − crossed pairs, soft", 4, ("guided soft", ""), ("crossed soft", "")),
    ("P3 guided − crossed pairs, soft", 25, ("guided soft", ""), ("crossed soft", "")),
    ("P4 random soft, raw − no mixture at T", 4, ("random soft", ""), ("none", "_at_t")),
    ("P5 random soft at T − no mixture at T", 25, ("random soft", "_at_t"), ("none", "_at_t")),
    ("P8 random soft at T − raw", 4, ("random soft", "_at_t"), ("random soft", "")),
    ("P8 no mixture at T − raw", 25, ("none", "_at_t"), ("none", "")),
    ("guided − random pairs, soft", 4, ("guided soft", ""), ("random soft", "")),
    ("guided − random pairs, soft", 25, ("guided soft", ""), ("random soft", "")),
]

# The comparisons of networks that were trained from scratch.
SCRATCH = [
    ("P6 guided pairs, weighted − no mixture, from scratch", 4, ("guided hard, weighted", ""), ("none", "")),
    ("P7 guided − random pairs, from scratch", 25, ("guided hard", ""), ("random hard", "")),
]


def primary(heads, scratch):
    """The comparisons of heads and of networks, in every cell of data, backbone and base, corrected together."""
    found = compared(heads, PRIMARY) + compared(scratch, SCRATCH)
    corrected = holm([interval(differences)[2] for *_, differences, _ in found])
    table = ["| comparison | labels | data, base | metric | n | difference (95%) | p, Holm | verdict |", "|" + "---|" * 8]
    for (name, labels, cell, metric, differences, margin), p in zip(found, corrected):
        mean, half, _ = interval(differences)
        digits, factor, unit = (3, 1.0, "NLL") if metric == "nll" else (2, 100.0, "error, points")
        shown = f"{signed(factor * mean, digits)} ± {factor * half:.{digits}f}"
        row = [name, labels, f"{cell[0]}, {cell[2]}", unit, len(differences), shown, f"{p:.2g}", verdict(mean, half, p, margin)]
        table.append("| " + " | ".join(map(str, row)) + " |")
    return table


def compared(runs, comparisons):
    """The differences of each comparison in each cell, and the margin within which they are equal."""
    found = []
    for name, labels, (arm, after), (other, other_after) in comparisons:
        for data, backbone, base in runs.cells():
            of, against = [(data, backbone, "linear", labels, base, one) for one in (arm, other)]
            for metric, place in [("nll", 0), ("error", 1)]:
                # The temperature does not change the error.
                left, right = (metric + after, metric + other_after) if metric == "nll" else (metric, metric)
                if (of, left) == (against, right):
                    continue
                differences = runs.differences(of, left, against, right)
                if len(differences) > 2:
                    margin = EQUAL["few" if labels < 10 else "many"][place]
                    found.append((name, labels, (data, backbone, base), metric, differences, margin))
    return found


def means(runs, data, backbone, head, labels):
    """Every arm of a cell."""
    table = ["| base | arm | n | error | NLL | NLL at T | ECE | ECE at T | T applied |", "|" + "---|" * 9]
    settings = [setting for setting in runs.rows if setting[:4] == (data, backbone, head, labels)]
    mean_nll = lambda setting: np.mean(list(runs.values(setting, "nll_at_t").values()))
    for setting in sorted(settings, key=lambda one: (one[5] == "clean", one[4], mean_nll(one))):
        of = lambda metric, digits, factor=1.0: mean_of(runs.values(setting, metric), digits, factor)
        applied = sum(temperature != 1.0 for temperature in runs.values(setting, "temperature").values())
        row = [setting[4], setting[5], len(runs.rows[setting]), of("error", 1, 100), of("nll", 3), of("nll_at_t", 3)]
        table.append("| " + " | ".join(map(str, row + [of("ece", 1, 100), of("ece_at_t", 1, 100), applied])) + " |")
    return table


def networks(runs, data, backbone, labels):
    """Every arm of networks that were trained from scratch: no temperature is fitted, since no label is held out."""
    table = ["| base | arm | n | error | NLL | ECE |", "|" + "---|" * 6]
    for setting in sorted(setting for setting in runs.rows if setting[:4] == (data, backbone, "linear", labels)):
        of = lambda metric, digits, factor=1.0: mean_of(runs.values(setting, metric), digits, factor)
        row = [setting[4], setting[5], len(runs.rows[setting]), of("error", 1, 100), of("nll", 3), of("ece", 1, 100)]
        table.append("| " + " | ".join(map(str, row)) + " |")
    return table


# Differences between networks that were not planned: without a correction for their number.
UNPLANNED = [
    ("random hard", "none"),
    ("guided hard", "none"),
    ("guided hard, weighted", "none"),
    ("guided hard", "random hard"),
    ("guided hard, weighted", "guided hard"),
]


def unplanned(runs):
    """Arms of networks against each other, paired by seed."""
    table = ["| labels | base | arm | against | n | NLL | error, points | ECE, points | pairs with a lower NLL |", "|" + "---|" * 9]
    for data, backbone, head, labels, base in sorted({setting[:5] for setting in runs.rows}):
        for arm, other in UNPLANNED:
            of, against = [(data, backbone, head, labels, base, one) for one in (arm, other)]
            nll, error, ece = [runs.differences(of, metric, against, metric) for metric in ("nll", "error", "ece")]
            if len(nll) > 2:
                shown = [f"{signed(mean, 3)} ± {half:.3f}" for mean, half, _ in [interval(nll)]]
                shown += [f"{signed(mean, 2)} ± {half:.2f}" for mean, half, _ in [interval(100 * error), interval(100 * ece)]]
                row = [labels, base, arm, other, len(nll), *shown, int((nll < 0).sum())]
                table.append("| " + " | ".join(map(str, row)) + " |")
    return table


def as_in_the_paper(heads, scratch):
    """Guided against random pairs with the paper's hard targets, by its metric, the ECE before calibration; not planned, so p is
    not corrected."""
    names = ["network", "labels", "base", "n", "ECE, points", "p", "ECE at T, points", "NLL", "error, points"]
    table = ["| " + " | ".join(names) + " |", "|" + "---|" * len(names)]
    for network, runs in [("head", heads), ("from scratch", scratch)]:
        for data, backbone, head, labels, base in sorted({setting[:5] for setting in runs.rows}):
            of, against = [(data, backbone, head, labels, base, arm) for arm in ("guided hard", "random hard")]
            difference = lambda metric: runs.differences(of, metric, against, metric)
            if len(difference("ece")) < 3:
                continue
            shown = lambda metric, digits, factor: "{} ± {:.{}f}".format(
                signed(interval(factor * difference(metric))[0], digits), interval(factor * difference(metric))[1], digits)
            # No label is held out of a network from scratch, so it has no temperature.
            at_t = shown("ece_at_t", 2, 100) if network == "head" else ""
            row = [f"{network}, {data}", labels, base, len(difference("ece")), shown("ece", 2, 100), f"{interval(difference('ece'))[2]:.2g}"]
            table.append("| " + " | ".join(map(str, row + [at_t, shown("nll", 3, 1), shown("error", 2, 100)])) + " |")
    return table


def crossover(runs, data, backbone, base, arm, draws=2000):
    """The labels per class above which no mixture at T has a lower NLL than the arm, with an interval over draws of seeds."""
    counts = sorted({setting[3] for setting in runs.rows if setting[:3] == (data, backbone, "linear")})
    cells = []
    for labels in counts:
        of, against = [(data, backbone, "linear", labels, base, one) for one in (arm, "none")]
        differences = runs.differences(of, "nll", against, "nll_at_t")
        if len(differences) > 2:
            cells.append((np.log(labels), differences))
    rng = np.random.default_rng(0)
    found = []
    for draw in range(draws + 1):
        # The first one is of the runs themselves.
        take = lambda values: values if draw == 0 else rng.choice(values, len(values))
        points = [(at, take(values).mean()) for at, values in cells]
        found.append(np.exp(zero(points)))
    # The ends may be infinite, so that there is nothing between them.
    return found[0], *np.quantile(found[1:], [0.025, 0.975], method="nearest")


def zero(points):
    """Where a line through these points crosses zero upwards; the ends are below and above all of them."""
    for (left, low), (right, high) in zip(points, points[1:]):
        if low < 0 <= high:
            return left + (right - left) * -low / (high - low)
    return -np.inf if points[0][1] >= 0 else np.inf


# The data that chose nothing.
CONFIRMED = ["fashion-mnist", "cifar100"]
# The largest number of labels per class with which the preset `calibrated` mixes (recipes/presets/calibrated.toml).
MIXED_UP_TO = 5


def calibrated(labels):
    """The arm that the preset is with so many labels per class."""
    return "random soft" if labels <= MIXED_UP_TO else "none"


def preset(runs):
    """The preset `calibrated` against no mixture at T: is the upper end of the interval within what makes no odds?"""
    table = ["| data, base | labels | the preset is | n | NLL: preset | no mixture at T | difference (95%) | bound | verdict |"]
    table.append("|" + "---|" * 9)
    for data, backbone, base in runs.cells():
        for labels in sorted({setting[3] for setting in runs.rows if setting[:2] == (data, backbone)}):
            arm = calibrated(labels)
            of, against = [(data, backbone, "linear", labels, base, one) for one in (arm, "none")]
            differences = runs.differences(of, "nll_at_t", against, "nll_at_t")
            if data not in CONFIRMED or len(differences) < 3:
                continue
            mean, half, _ = interval(differences)
            bound = EQUAL["few" if labels < 10 else "many"][0]
            passed = mean + half <= bound
            shown = "the same" if arm == "none" else f"{signed(mean, 3)} ± {half:.3f}"
            row = [f"{data}, {base}", labels, "random pairs, soft targets, at T" if arm != "none" else "no mixture, at T"]
            row += [len(differences), *(mean_of(runs.values(one, "nll_at_t"), 3) for one in (of, against)), shown, bound]
            row.append("kept" if passed else f"missed by {mean + half - bound:.3f}")
            table.append("| " + " | ".join(map(str, row)) + " |")
    return table


# The rows of the table in the README of the project: their names, base, arm, and whether the temperature is applied.
OVERVIEW = [
    ("SoftMatch", "softmatch", "none", ""),
    ("SoftMatch at T", "softmatch", "none", "_at_t"),
    ("SoftMatch + CalibrateMix at T, as in the paper", "softmatch", "guided hard", "_at_t"),
    ("SoftMatch + preset `calibrated` at T", "softmatch", "calibrated", "_at_t"),
    ("SoftMatch + random pairs, soft targets", "softmatch", "random soft", ""),
    ("logistic regression on the labels at T", "logistic-regression", "clean", "_at_t"),
    ("EM with balanced classes, one vector per image", "balanced-em", "clean", ""),
]


def overview(runs, data, backbone, counts=(4, 10, 25)):
    """Error, ECE and NLL of the main arms."""
    table = ["| head | " + " | ".join(f"{labels} labels per class" for labels in counts) + " |", "|---" * (1 + len(counts)) + "|"]
    for name, base, arm, after in OVERVIEW:
        cells = []
        for labels in counts:
            setting = (data, backbone, "linear", labels, base, calibrated(labels) if arm == "calibrated" else arm)
            values = lambda metric: np.mean(list(runs.values(setting, metric).values()))
            cells.append(f"{100 * values('error'):.1f}%, {100 * values('ece' + after):.1f}%, {values('nll' + after):.3f}")
        table.append("| " + " | ".join([name, *cells]) + " |")
    return table


def guarantees(runs):
    """How sets and answers keep their guarantees on test images."""
    names = ["data", "labels", "runs", "coverage of 90% sets (lowest, highest run)", "classes in a set", "runs that answer at 90%"]
    names += ["answered", "right", "runs below 90%"]
    table = ["| " + " | ".join(names) + " |", "|" + "---|" * len(names)]
    cells = defaultdict(list)
    for setting, of in runs.rows.items():
        cells[setting[0], setting[1], setting[3]] += [line for line in of.values() if line["coverage"]]
    for (data, _, labels), lines in sorted(cells.items()):
        column = lambda key: np.array([float(line[key]) for line in lines if line[key]])
        cover, right = 100 * column("coverage"), column("right_90")
        answers = [f"{100 * column('answered_90').mean():.1f}%"]
        answers += [f"{100 * right.mean():.1f}%" if len(right) else "", (right < 0.9).sum()]
        row = [data, labels, len(lines), f"{cover.mean():.1f}% ({cover.min():.1f}, {cover.max():.1f})"]
        row += [f"{column('set_size').mean():.2f}", len(right), *answers]
        table.append("| " + " | ".join(map(str, row)) + " |")
    return table


# What scikit-learn is compared with: base and arm, and whether the temperature is applied.
BESIDE = [("softmatch", "none", "_at_t"), ("softmatch", "random soft", "_at_t"), ("logistic-regression", "clean", "_at_t")]


def peers(runs):
    """scikit-learn on the vectors and labels of the same runs: means over the seeds that both have."""
    found = defaultdict(dict)
    for line in rows("heads/peers.csv"):
        found[line["data"], line["backbone"], int(line["labels"]), line["peer"]][int(line["seed"])] = line
    table = ["| data | labels | classifier | n | error | NLL | ECE |", "|" + "---|" * 7]
    for data, backbone, labels in sorted({setting[:3] for setting in found}):
        here = {name: of for (*cell, name), of in found.items() if cell == [data, backbone, labels]}
        seeds = set.intersection(*({*of} for of in here.values()))
        for base, arm, after in BESIDE:
            lines = runs.rows.get((data, backbone, "linear", labels, base, arm), {})
            if {*lines} & seeds:
                at_t = {seed: {m: lines[seed][m + after] if m != "error" else lines[seed][m] for m in ("error", "nll", "ece")}
                        for seed in lines.keys() & seeds}
                here[f"calmix: {base}, {arm}, at T"] = at_t
        for name, of in here.items():
            # LabelSpreading gives some true classes no probability at all: its NLL is infinite.
            column = lambda metric: {seed: float(line[metric] or "inf") for seed, line in of.items() if seed in seeds}
            nll = mean_of(column("nll"), 3) if np.isfinite(list(column("nll").values())).all() else "infinite"
            row = [data, labels, name, len(seeds), mean_of(column("error"), 1, 100), nll, mean_of(column("ece"), 1, 100)]
            table.append("| " + " | ".join(map(str, row)) + " |")
    return table


def scale_rows(name, of, against):
    """A row with means of some runs of `scale`, and their differences from others with the same seeds; no row without runs."""
    if not of:
        return []
    metrics = [("error", 2, 100), ("nll", 3, 1), ("ece", 2, 100)]
    cells = [name, len(of)]
    for metric, digits, factor in metrics:
        values = {seed: float(line[metric]) for seed, line in of.items()}
        cells.append(mean_of(values, digits, factor))
        if against:
            differences = np.array([values[seed] - float(against[seed][metric]) for seed in sorted(of.keys() & against.keys())])
            mean, half, _ = interval(factor * differences)
            cells.append(f"{signed(mean, digits)} ± {half:.{digits}f}")
        else:
            cells.append("")
    return ["| " + " | ".join(map(str, cells)) + " |"]


SCALE_HEAD = "n | error, % | difference (95%) | NLL | difference | ECE, % | difference |"


def by_seed(lines, **wanted):
    return {int(line["seed"]): line for line in lines if all(line[key] == value for key, value in wanted.items())}


def blocks(lines):
    """The order by block against the order over all samples, with shuffled and with sorted shards."""
    table = [f"| shards, order | {SCALE_HEAD}", "|" + "---|" * 8]
    for shards in ["shuffled", "sorted"]:
        of = lambda order: by_seed(lines, sweep="blocks", shards=shards, order=order)
        table += scale_rows(f"{shards}, `samples`", of("samples"), None)
        table += scale_rows(f"{shards}, `blocks`", of("blocks"), of("samples"))
    return table


def groups(lines):
    """Several groups per step against one, at the same number of images."""
    table = [f"| groups, learning rate | {SCALE_HEAD}", "|" + "---|" * 8]
    one = by_seed(lines, sweep="groups", groups="1")
    table += scale_rows("1, 0.03", one, None)
    for count, lr in [("2", "0.03"), ("2", "0.06"), ("4", "0.03"), ("4", "0.12")]:
        table += scale_rows(f"{count}, {lr}", by_seed(lines, sweep="groups", groups=count, lr=lr), one)
    return table


ROUNDS = [
    ("random", "2,000 random rows (round 0)"),
    ("confident", "200 of each predicted class, the most confident"),
    ("above", "200 of each predicted class, random ones with a confidence of at least 0.6"),
    ("above-twice", "the same, predicted by the model of the row above"),
]


def rounds(lines):
    """Selected rows against all of them at once."""
    table = [f"| unlabelled rows | {SCALE_HEAD}", "|" + "---|" * 8]
    whole = by_seed(lines, unlabelled="all")
    table += scale_rows("all 10,000 at once", whole, None)
    for kind, name in ROUNDS:
        table += scale_rows(name, by_seed(lines, unlabelled=kind), whole)
    return table


def deciles(lines):
    """The error of pseudo-labels by decile of APM, in per cent."""
    table = ["| labels | base | arm | n | " + " | ".join(map(str, range(1, 11))) + " |", "|" + "---|" * 14]
    for labels, base, weight in sorted({(int(line["labels"]), line["base"], line["weight"]) for line in lines}):
        of = [line for line in lines if (int(line["labels"]), line["base"], line["weight"]) == (labels, base, weight)]
        means = [100 * np.mean([float(line[f"error_{decile}"]) for line in of]) for decile in range(1, 11)]
        arm = "guided hard, weighted" if weight == "base" else "guided hard"
        table.append("| " + " | ".join(map(str, [labels, base, arm, len(of), *(f"{mean:.1f}" for mean in means)])) + " |")
    return table


def premise(runs):
    """The share of wrong pseudo-labels where mixtures take them from."""
    table = ["| data | labels | base | arm | n | easy half | hard half | in mixtures |", "|" + "---|" * 8]
    for setting in sorted(runs.rows):
        if setting[2] == "linear" and setting[5] in ("guided hard", "crossed hard", "guided soft", "crossed soft"):
            of = lambda key: mean_of(runs.values(setting, key), 1, 100) if runs.values(setting, key) else ""
            row = [setting[0], setting[3], setting[4], setting[5], len(runs.rows[setting]), of("easy"), of("hard"), of("mixtures")]
            table.append("| " + " | ".join(map(str, row)) + " |")
    return table


def curves(runs, data, backbone, base, metric):
    """No mixture, and three kinds of pairs with soft targets, raw and at T, over the labels per class."""
    lines = []
    for colour, arm in enumerate(["none", "random soft", "crossed soft", "guided soft"]):
        for after, dash in [("", "4 3"), ("_at_t", "")] if metric == "nll" else [("", "")]:
            points = []
            for labels in sorted({setting[3] for setting in runs.rows if setting[:3] == (data, backbone, "linear")}):
                values = runs.values((data, backbone, "linear", labels, base, arm), metric + after)
                if len(values) > 2:
                    mean, half, _ = interval((100 if metric == "error" else 1) * np.array(list(values.values())))
                    points.append((labels, mean, half))
            name = arm + (" at T" if after else ", raw" if metric == "nll" else "")
            lines.append((name, dash, colour, points))
    return plot({"nll": "NLL", "error": "error, %"}[metric] + f" on {data}, {base}", lines)


def parts():
    """Every table by its name, and every plot by its file."""
    runs, scratch = Runs("heads/runs.csv"), Runs("scratch/runs.csv")
    tables = {"primary": primary(runs, scratch), "guarantees": guarantees(runs), "premise": premise(runs)}
    tables["preset"] = preset(runs)
    tables["peers"] = peers(runs)
    tables["unplanned"] = unplanned(scratch)
    tables["as in the paper"] = as_in_the_paper(runs, scratch)
    tables["deciles"] = deciles(rows("scratch/deciles.csv"))
    tables["blocks"] = blocks(rows("scale/runs.csv"))
    tables["groups"] = groups(rows("scale/runs.csv"))
    tables["rounds"] = rounds(rows("scale/rounds.csv"))
    plots = {}
    crossings = ["| data, base | arm | crossover, labels per class (95%) |", "|---|---|---|"]
    for data, backbone, base in runs.cells():
        for arm in ["random soft", "crossed soft", "guided soft"]:
            at, low, high = crossover(runs, data, backbone, base, arm)
            between = f"{number_of_labels(low)} to {number_of_labels(high)}"
            crossings.append(f"| {data}, {base} | {arm} | {number_of_labels(at)} ({between}) |")
        for metric in ["nll", "error"]:
            plots[f"heads/{data}-{base}-{metric}.svg"] = curves(runs, data, backbone, base, metric)
    tables["crossover"] = crossings
    for data, backbone, head, labels in sorted({setting[:4] for setting in runs.rows}):
        tables[f"means {data} {head} {labels}"] = means(runs, data, backbone, head, labels)
    for data, backbone, _, labels in sorted({setting[:4] for setting in scratch.rows}):
        tables[f"scratch {labels}"] = networks(scratch, data, backbone, labels)
    tables["overview"] = overview(runs, "cifar10", "tf_efficientnet_lite0")
    heads = sum(len(seeds) for setting, seeds in runs.rows.items() if setting[5] != "clean")
    of_networks = sum(len(seeds) for seeds in scratch.rows.values())
    failed = len(runs.failed) + len(scratch.failed)
    tables["count"] = [f"{heads:,} heads, each with ten more on its folds, and {of_networks} networks; {failed} runs failed."]
    return tables, plots


def number_of_labels(count):
    return "below all" if count == 0 else "above all" if np.isinf(count) else f"{count:.0f}"


def filled(page, tables):
    """A page with its tables. Comments that do not name a table are left alone."""
    for name in tables:
        place = re.compile(rf"(<!-- {re.escape(name)} -->\n).*?(<!-- end -->)", re.S)
        page = place.sub(lambda found: found[1] + "\n".join(tables[name]) + "\n" + found[2], page)
    return page


def main():
    tables, plots = parts()
    pages = {name: filled((HERE / name).read_text(), tables) for name in ["README.md", "scale/README.md", "../README.md"]}
    texts = pages | plots
    stale = [name for name, text in texts.items() if not (HERE / name).exists() or (HERE / name).read_text() != text]
    if "--check" in sys.argv:
        for name in stale:
            print(f"results/{name} is not what results/tables.py writes from the CSV files: run it, and commit the result")
        sys.exit(1 if stale else 0)
    for name in stale:
        (HERE / name).write_text(texts[name])


if __name__ == "__main__":
    main()
