"""Training dynamics with enough visits: tables and figures of `dynamics/*.csv`. The plan is docs/study/dynamics-plan.md."""

from collections import defaultdict

import numpy as np

from intervals import half95, holm, mean, p_value, verdict
from markdown import percent, signed, table, within
from plot import intervals, lines, page
from runs import rows, seeds

HEADS, NETWORKS = "tf_efficientnet_lite0", "wrn-10-1"
# The primary cells: backbone, data, steps. CIFAR-10 explores.
CELLS = [(HEADS, "cifar10", 10000), (HEADS, "cifar100", 10000), (HEADS, "fashion-mnist", 10000), (NETWORKS, "fashion-mnist", 2500)]
PRIMARY = [("(a) guided − random", "guided hard", "random hard"), ("(b) accumulated − current", "guided hard", "current hard")]
# A difference in ECE that does not matter.
EQUAL = 0.005
METRICS = ["ece", "nll", "error", "ece_at_t"]
# A row with fewer has no verdict: tests that are looked at while seeds are added reject too often.
PLANNED_SEEDS = 10


class Dynamics:
    """The runs by setting (backbone, data, labels, base, arm, steps) and seed."""

    def __init__(self):
        self.rows, self.failed = defaultdict(dict), 0
        for line in rows("dynamics/runs.csv"):
            self.failed += bool(line["failed"])
            if not line["failed"]:
                setting = (line["backbone"], line["data"], int(line["labels"]), line["base"], line["arm"], int(line["steps"]))
                self.rows[setting][int(line["seed"])] = line

    def values(self, setting, metric):
        return {seed: float(line[metric]) for seed, line in self.rows.get(setting, {}).items() if line[metric]}

    def differences(self, one, other, metric):
        """The seeds that two settings share, and the metric of the one minus that of the other."""
        of, against = self.values(one, metric), self.values(other, metric)
        shared = sorted(of.keys() & against.keys())
        return shared, [of[seed] - against[seed] for seed in shared]

    def count(self):
        return sum(len(of) for of in self.rows.values())


def name_of(backbone, data):
    return f"{'head' if backbone == HEADS else 'from scratch'}, {data}"


def primary(runs):
    """The planned comparisons, corrected together; the other metrics without a test."""
    found = []
    for backbone, data, steps in CELLS:
        for labels in [10, 25]:
            for name, arm, other in PRIMARY:
                one, against = [(backbone, data, labels, "softmatch", of, steps) for of in (arm, other)]
                row = {"network": name_of(backbone, data), "labels": labels, "comparison": name}
                shared, differences = runs.differences(one, against, "ece")
                if len(shared) < 3:
                    continue
                row |= {"runs": len(shared), "seeds": seeds(shared), "visits": mean(list(runs.values(one, "visits").values()))}
                row |= {f"{metric}_against": mean(list(runs.values(against, metric).values())) for metric in METRICS}
                for metric in METRICS:
                    of = runs.differences(one, against, metric)[1]
                    row |= {f"{metric}_difference": mean(of), f"{metric}_half95": half95(of)} if of else {}
                found.append(row | {"lower": sum(one < 0 for one in differences), "p": p_value(np.array(differences))})
    # The correction is over all planned rows, also those that were not run.
    planned = 2 * len(CELLS) * len(PRIMARY)
    for row, p in zip(found, holm([row["p"] for row in found] + [1.0] * (planned - len(found)))):
        is_complete = row["runs"] == PLANNED_SEEDS
        row |= {"p_holm": p, "verdict": verdict(row["ece_difference"], row["ece_half95"], p, EQUAL) if is_complete else "incomplete"}
    return found


def secondary(runs):
    """Every setting that was run, against random pairs of the same cell: differences without a test."""
    found = []
    for setting in sorted(runs.rows):
        backbone, data, labels, base, arm, steps = setting
        against = (backbone, data, labels, base, "random hard", steps)
        row = {"network": name_of(backbone, data), "labels": labels, "base": base, "arm": arm, "steps": steps}
        row |= {"runs": len(runs.rows[setting]), "seeds": seeds(runs.rows[setting])}
        for metric in ["visits", "visits_before_mixing", *METRICS, "nll_at_t", "temperature", "auroc_average", "auroc_current"]:
            of = list(runs.values(setting, metric).values())
            row |= {metric: mean(of), f"{metric}_half95": half95(of)} if of else {}
        for metric in METRICS:
            of = runs.differences(setting, against, metric)[1]
            row |= {f"{metric}_difference": mean(of), f"{metric}_difference_half95": half95(of)} if of and arm != "random hard" else {}
        found.append(row)
    return found


def auroc(runs):
    """AUROC of the accumulated and of the current margin over the second half of the steps, in the arm that accumulates."""
    found = []
    for backbone, data, steps in CELLS:
        for labels in [10, 25]:
            setting = (backbone, data, labels, "softmatch", "guided hard", steps)
            average, current = (runs.values(setting, f"auroc_{name}") for name in ("average", "current"))
            if len(average) < 3:
                continue
            differences = [average[seed] - current[seed] for seed in sorted(average)]
            row = {"network": name_of(backbone, data), "labels": labels, "runs": len(average)}
            row |= {"average": mean(list(average.values())), "current": mean(list(current.values()))}
            found.append(row | {"difference": mean(differences), "half95": half95(differences)})
    return found


def primary_table(found):
    body = []
    for row in found:
        change = lambda metric, digits, factor: within(row, digits, factor, f"{metric}_difference", f"{metric}_half95")
        at_t = change("ece_at_t", 2, 100) if "ece_at_t_difference" in row else ""
        p = f"{row['p_holm']:.2g}" if row["p_holm"] < 1 else "1"
        cells = [f"{row['visits']:.0f}", percent(row["ece_against"]), change("ece", 2, 100), f"{row['lower']} of {row['runs']}", p]
        cells += [row["verdict"], change("nll", 3, 1), change("error", 2, 100), at_t]
        body.append([row["network"], row["labels"], row["comparison"], *cells])
    head = ["network", "labels", "comparison", "visits", "ECE of the second", "difference, points", "runs lower", "p (Holm)"]
    return table([*head, "verdict", "NLL", "error, points", "ECE at T, points"], body)


def auroc_table(found):
    body = []
    for row in found:
        body.append([row["network"], row["labels"], row["runs"], percent(row["average"]), percent(row["current"]), within(row, 2, 100)])
    return table(["network", "labels", "runs", "accumulated", "current", "difference, points"], body)


def practice(runs):
    """Raw and at T, for heads and for networks, with 10 and 25 labels: ECE and NLL of no, random and guided mixtures."""
    body = []
    for backbone, name in [(HEADS, "head"), (NETWORKS, "from scratch")]:
        for labels in [10, 25]:
            cells = []
            for metric, digits, factor in [("ece", 1, 100), ("ece_at_t", 1, 100), ("error", 1, 100)]:
                shown = []
                for arm in ["none", "random hard", "guided hard"]:
                    of = [
                        mean(list(values.values()))
                        for one, data, steps in CELLS
                        if one == backbone and (values := runs.values((one, data, labels, "softmatch", arm, steps), metric))
                    ]
                    shown.append(f"{factor * mean(of):.{digits}f}" if of else "–")
                cells.append(" / ".join(shown))
            body.append([f"{name}, {labels}", *cells])
    return table(["network, labels per class", "ECE, %: none / random / guided", "ECE at T, %", "error, %"], body)


def count_line(runs):
    heads = sum(len(of) for setting, of in runs.rows.items() if setting[0] == HEADS)
    return [f"{heads:,} heads, each with five more on its folds, and {runs.count() - heads} networks; {runs.failed} runs failed."]


def figures(runs):
    """The four figures by their paths."""
    found = primary(runs)
    shown = {
        "visits": [panel for cell in CELLS for labels in [10, 25] if (panel := over_visits(runs, *cell, labels))],
        "guided-random": [forest(found, PRIMARY[0][0], metric) for metric in ["ece", "ece_at_t"]],
        "accumulated-current": [forest(found, PRIMARY[1][0], "ece"), *(p for cell in CELLS if (p := over_steps(*cell)))],
        "reliability": [panel for cell in CELLS if (panel := reliability(*cell))],
    }
    return {f"results/dynamics/{name}.svg": page(panels) for name, panels in shown.items() if all(panels) and panels}


def over_visits(runs, backbone, data, steps, labels):
    """ECE over the visits: of heads of different lengths, or during the training of networks."""
    series = []
    for colour, (name, arm) in enumerate([("random", "random hard"), ("accumulated", "guided hard"), ("current", "current hard")]):
        points = []
        if backbone == HEADS:
            for length in [200, 1000, 3000, steps]:
                setting = (backbone, data, labels, "softmatch", arm, length)
                of, visits = (list(runs.values(setting, metric).values()) for metric in ("ece", "visits"))
                points += [(round(mean(visits)), 100 * mean(of), 100 * half95(of))] if len(of) > 2 else []
        else:
            of_seeds = runs.values((backbone, data, labels, "softmatch", arm, steps), "visits")
            for step, of in curve(backbone, data, labels, arm, "ece").items():
                points.append((round(mean(list(of_seeds.values())) * step / steps), 100 * mean(of), 100 * half95(of)))
        if len(points) > 1:
            series.append((name, "", colour, points))
    title = f"ECE, %: {name_of(backbone, data)}, {labels} labels per class"
    return lines(title, series, "visits to an unlabelled image", True, "bottom") if series else None


def over_steps(backbone, data, steps):
    """AUROC of both margins during training with 25 labels per class."""
    series = []
    for colour, name in [(1, "average"), (2, "current")]:
        points = [(step, mean(of), half95(of)) for step, of in curve(backbone, data, 25, "guided hard", f"auroc_{name}").items()]
        series += [({"average": "accumulated", "current": "current"}[name], "", colour, points)] if points else []
    return lines(f"AUROC: {name_of(backbone, data)}, 25 labels", series, "step", False, "middle" if backbone == HEADS else "bottom") if series else None


def curve(backbone, data, labels, arm, metric):
    """The values of all seeds at each step that all of them have."""
    found = defaultdict(list)
    cell = (backbone, data, str(labels), "softmatch", arm)
    steps = {one for of, one_data, one in CELLS if (of, one_data) == (backbone, data)}
    for row in rows("dynamics/curves.csv"):
        here = (row["backbone"], row["data"], row["labels"], row["base"], row["arm"])
        if here == cell and int(row["steps"]) in steps and row[metric]:
            found[int(row["step"])].append(float(row[metric]))
    return {step: of for step, of in sorted(found.items()) if len(of) > 2}


def forest(found, comparison, metric):
    of = [row for row in found if row["comparison"] == comparison and f"{metric}_difference" in row]
    shown = [(f"{row['network']}, {row['labels']}", *(100 * row[f"{metric}_{key}"] for key in ("difference", "half95"))) for row in of]
    title = comparison + (" at T" if metric == "ece_at_t" else "")
    return intervals(title, shown, "difference in ECE, points") if shown else None


def reliability(backbone, data, steps):
    """Accuracy minus confidence by confidence, over the samples of all seeds; bins with at least a hundredth of them."""
    series = []
    for colour, arm in enumerate(["none", "random hard", "guided hard"]):
        for scaled, dash in [("no", ""), ("yes", "4 3")]:
            bins = defaultdict(lambda: [0, 0.0, 0.0])
            for row in rows("dynamics/bins.csv"):
                here = (row["backbone"], row["data"], row["arm"], row["scaled"], int(row["steps"]))
                if here == (backbone, data, arm, scaled, steps) and row["count"] != "0":
                    count = int(row["count"])
                    of = bins[int(row["bin"])]
                    of[0] += count
                    of[1] += count * float(row["confidence"])
                    of[2] += count * float(row["accuracy"])
            total = sum(count for count, *_ in bins.values())
            points = [
                (round(100 * sure / count), 100 * (right - sure) / count, 0.0)
                for _, (count, sure, right) in sorted(bins.items())
                if count * 100 >= total
            ]
            name = arm.replace(" hard", "") + (" at T" if scaled == "yes" else "")
            series += [(name, dash, colour, points)] if points else []
    title = f"accuracy − confidence: {name_of(backbone, data)}, 25 labels"
    return lines(title, series, "confidence, %", False, "bottom left") if series else None
