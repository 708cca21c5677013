"""The tables of the study as lists of rows: columns by name, numbers unrounded, errors and ECE as fractions."""

from collections import defaultdict

import numpy as np

from intervals import half95, holm, mean, p_value, verdict
from runs import columns, rows, seeds

# Differences that do not matter, in NLL and in error: with fewer than ten labels per class, and with more.
EQUAL = {"few": {"nll": 0.03, "error": 0.01}, "many": {"nll": 0.01, "error": 0.003}}

# The comparisons and the arms of the confirmation were fixed after five seeds on CIFAR-10, which chose "random soft" as the best
# mixture: name, labels per class, an arm with its metric, and what it is compared with. "At T" is after the temperature that
# calmix fits to out-of-fold labels, and applies only if it helps there.
PLANNED = [
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
PLANNED_FROM_SCRATCH = [
    ("P6 guided pairs, weighted − no mixture, from scratch", 4, ("guided hard, weighted", ""), ("none", "")),
    ("P7 guided − random pairs, from scratch", 25, ("guided hard", ""), ("random hard", "")),
]


def comparisons(heads, networks):
    """The planned comparisons in every cell of data, network and base, corrected together."""
    found = compared(heads, PLANNED) + compared(networks, PLANNED_FROM_SCRATCH)
    for row, p in zip(found, holm([row["p"] for row in found])):
        row |= {"p_holm": p, "verdict": verdict(row["difference"], row["half95"], p, row["equal_within"])}
    return found


def compared(runs, planned):
    found = []
    for name, labels, (arm, after), (other, other_after) in planned:
        for data, network, base in runs.cells():
            of, against = [(data, network, "linear", labels, base, one) for one in (arm, other)]
            for metric in ["nll", "error"]:
                # The temperature does not change the error.
                left, right = (metric + after, metric + other_after) if metric == "nll" else (metric, metric)
                if (of, left) == (against, right):
                    continue
                shared, differences = runs.differences(of, left, against, right)
                if len(differences) > 2:
                    same = {"comparison": name, "data": data, "network": network, "labels": labels, "base": base, "metric": metric}
                    margin = EQUAL["few" if labels < 10 else "many"][metric]
                    found.append(same | difference(shared, differences) | {"equal_within": margin})
    return found


def difference(shared, differences):
    """A mean difference with its interval and test."""
    found = {"runs": len(shared), "seeds": seeds(shared), "difference": mean(differences), "half95": half95(differences)}
    return found | {"p": p_value(differences)}


def arms(runs):
    """Every arm: means, standard deviations and intervals over its seeds."""
    found = []
    for setting in sorted(runs.rows):
        of = lambda metric: runs.values(setting, metric).values()
        row = dict(zip(("data", "network", "head", "labels", "base", "arm"), setting))
        row |= {"runs": len(runs.rows[setting]), "seeds": seeds(runs.rows[setting])}
        row |= columns("error", of("error")) | columns("nll", of("nll"))
        # No label is held out of a network from scratch, so it has no temperature.
        temperatures = of("temperature")
        row |= columns("nll_at_t", of("nll_at_t") if temperatures else []) | columns("ece", of("ece"))
        row |= columns("ece_at_t", of("ece_at_t") if temperatures else [])
        found.append(row | {"t_applied": sum(one != 1.0 for one in temperatures) if temperatures else ""})
    return found


# Differences that were not planned: without a correction for their number.
UNPLANNED = [
    ("random hard", "none"),
    ("guided hard", "none"),
    ("guided hard, weighted", "none"),
    ("guided hard, weighted", "guided hard"),
    # As in the paper: its hard targets, whose metric is the ECE before calibration.
    ("guided hard", "random hard"),
]


def unplanned(heads, networks):
    """Arms against each other, paired by seed: all pairs of networks, and guided against random pairs of heads."""
    found = []
    for runs, pairs in [(heads, UNPLANNED[-1:]), (networks, UNPLANNED)]:
        for cell in runs.cells_by_labels():
            for arm, other in pairs:
                of, against = [(*cell, one) for one in (arm, other)]
                metrics = ["nll", "error", "ece"] + (["ece_at_t"] if runs is heads else [])
                for metric in metrics:
                    shared, differences = runs.differences(of, metric, against, metric)
                    if len(shared) < 3:
                        continue
                    row = dict(zip(("data", "network", "head", "labels", "base"), cell))
                    row |= {"arm": arm, "against": other, "metric": metric} | difference(shared, differences)
                    means = [mean([runs.values(one, metric)[seed] for seed in shared]) for one in (of, against)]
                    row |= {"mean": means[0], "mean_against": means[1], "lower": int((differences < 0).sum())}
                    found.append(row)
    return found


# Heads on one vector per image without steps, against SoftMatch; not planned either.
ONE_VECTOR = ["balanced-em", "lr-em"]


def one_vector(heads):
    """The NLL of heads without steps against no mixture at T and against random pairs with soft targets."""
    found = []
    for *cell, base, arm in sorted(heads.rows):
        if arm != "clean" or base not in ONE_VECTOR:
            continue
        for other, metric in [("none", "nll_at_t"), ("random soft", "nll")]:
            of, against = (*cell, base, arm), (*cell, "softmatch", other)
            shared, differences = heads.differences(of, "nll", against, metric)
            if len(shared) < 3:
                continue
            row = dict(zip(("data", "network", "head", "labels"), cell)) | {"base": base, "arm": arm}
            row |= {"against": f"softmatch, {other}" + (" at T" if metric == "nll_at_t" else ""), "metric": "nll"}
            means = [mean([heads.values(one, key)[seed] for seed in shared]) for one, key in ((of, "nll"), (against, metric))]
            row |= difference(shared, differences) | {"mean": means[0], "mean_against": means[1]}
            found.append(row | {"lower": int((differences < 0).sum())})
    return found


def crossover(runs, draws=2000):
    """The labels per class above which no mixture at T has a lower NLL than an arm, with an interval over draws of seeds."""
    found = []
    for data, network, base in runs.cells():
        for arm in ["random soft", "crossed soft", "guided soft"]:
            cells = []
            for labels in runs.counts(data, network):
                of, against = [(data, network, "linear", labels, base, one) for one in (arm, "none")]
                shared, differences = runs.differences(of, "nll", against, "nll_at_t")
                if len(shared) > 2:
                    cells.append((np.log(labels), differences))
            rng = np.random.default_rng(0)
            crossings = []
            for draw in range(draws + 1):
                # The first one is of the runs themselves.
                take = lambda values: values if draw == 0 else rng.choice(values, len(values))
                crossings.append(float(np.exp(zero([(at, take(values).mean()) for at, values in cells]))))
            # The ends may be infinite, so that there is nothing between them.
            low, high = np.quantile(crossings[1:], [0.025, 0.975], method="nearest")
            row = {"data": data, "network": network, "base": base, "arm": arm, "labels": number_of_labels(crossings[0])}
            found.append(row | {"low": number_of_labels(low), "high": number_of_labels(high)})
    return found


def zero(points):
    """Where a line through these points crosses zero upwards; the ends are below and above all of them."""
    for (left, low), (right, high) in zip(points, points[1:]):
        if low < 0 <= high:
            return left + (right - left) * -low / (high - low)
    return -np.inf if points[0][1] >= 0 else np.inf


def number_of_labels(count):
    return "below 4" if count == 0 else "above all" if np.isinf(count) else f"{count:.0f}"


# The data that chose nothing.
CONFIRMED = ["fashion-mnist", "cifar100"]
# The largest number of labels per class with which the preset `calibrated` mixes (recipes/presets/calibrated.toml).
MIXED_UP_TO = 5


def calibrated(labels):
    """The arm that the preset is with so many labels per class."""
    return "random soft" if labels <= MIXED_UP_TO else "none"


def preset(runs):
    """The preset `calibrated` against no mixture at T: is the upper end of the interval within what does not matter?"""
    found = []
    for data, network, base in runs.cells():
        for labels in runs.counts(data, network):
            arm = calibrated(labels)
            of, against = [(data, network, "linear", labels, base, one) for one in (arm, "none")]
            shared, differences = runs.differences(of, "nll_at_t", against, "nll_at_t")
            if data not in CONFIRMED or len(shared) < 3:
                continue
            row = {"data": data, "network": network, "labels": labels, "base": base, "arm": arm}
            row |= {"runs": len(shared), "seeds": seeds(shared)}
            row |= columns("nll_preset", runs.values(of, "nll_at_t").values())
            row |= columns("nll_none", runs.values(against, "nll_at_t").values())
            row |= {"difference": mean(differences), "half95": half95(differences)}
            bound = EQUAL["few" if labels < 10 else "many"]["nll"]
            kept = row["difference"] + row["half95"] <= bound
            found.append(row | {"bound": bound, "verdict": "kept" if kept else "missed"})
    return found


def guarantees(runs):
    """How sets and answers keep their guarantees on test images, over all arms of a cell."""
    cells = defaultdict(list)
    for setting, of in runs.rows.items():
        cells[setting[0], setting[1], setting[3]] += [line | {"arm": setting[4:]} for line in of.values() if line["coverage"]]
    found = []
    for (data, network, labels), lines in sorted(cells.items()):
        column = lambda key: [float(line[key]) for line in lines if line[key]]
        coverage = column("coverage")
        row = {"data": data, "network": network, "labels": labels, "runs": len(lines)}
        row |= {"seeds": seeds({int(line["seed"]) for line in lines}), "coverage": mean(coverage)}
        row |= {"coverage_lowest": min(coverage), "coverage_highest": max(coverage), "set_size": mean(column("set_size"))}
        for precision in [90, 95]:
            right = column(f"right_{precision}")
            row |= {f"answered_{precision}": mean(column(f"answered_{precision}")), f"runs_answering_{precision}": len(right)}
            row[f"right_{precision}"] = mean(right) if right else ""
            row[f"runs_below_{precision}"] = sum(one < precision / 100 for one in right)
        found.append(row)
    return found


# What scikit-learn is compared with: base, arm and whether the temperature is applied.
BESIDE = [("softmatch", "none"), ("softmatch", "random soft"), ("logistic-regression", "clean")]


def scikit_learn(runs):
    """scikit-learn, and calmix at T, on the vectors and labels of the same runs, over the seeds that all have."""
    classifiers = defaultdict(lambda: defaultdict(dict))
    for line in rows("heads/peers.csv"):
        # LabelSpreading gives some true classes no probability at all: its NLL is infinite.
        numbers = {metric: float(line[metric] or "inf") for metric in ("error", "nll", "ece")}
        classifiers[line["data"], line["backbone"], int(line["labels"])][line["peer"]][int(line["seed"])] = numbers
    found = []
    for (data, network, labels), peers in sorted(classifiers.items()):
        shared = set.intersection(*({*of} for of in peers.values()))
        for base, arm in BESIDE:
            lines = runs.rows.get((data, network, "linear", labels, base, arm), {})
            at_t = {seed: {"error": float(line["error"]), "nll": float(line["nll_at_t"]), "ece": float(line["ece_at_t"])}
                    for seed, line in lines.items() if seed in shared}
            if at_t:
                peers[f"calmix: {base}, {arm}, at T"] = at_t
        for name, of in peers.items():
            mine = shared & of.keys()
            row = {"data": data, "network": network, "labels": labels, "classifier": name, "runs": len(mine), "seeds": seeds(mine)}
            for metric in ["error", "nll", "ece"]:
                values = [of[seed][metric] for seed in sorted(mine)]
                finite = columns(metric, values if np.isfinite(values).all() else [])
                row |= finite if np.isfinite(values).all() else finite | {metric: "infinite"}
            found.append(row)
    return found


def premise(runs):
    """The share of wrong pseudo-labels in the easy and in the hard half, and where mixtures take them from."""
    found = []
    for setting in sorted(runs.rows):
        if setting[2] == "linear" and setting[5] in ("guided hard", "crossed hard", "guided soft", "crossed soft"):
            row = dict(zip(("data", "network", "head", "labels", "base", "arm"), setting))
            row |= {"runs": len(runs.rows[setting]), "seeds": seeds(runs.rows[setting])}
            for key in ["easy", "hard", "mixtures"]:
                row |= columns(key, runs.values(setting, key).values())
            found.append(row)
    return found


def deciles(lines):
    """The share of wrong pseudo-labels of networks by decile of APM."""
    found = []
    for labels, base, weight in sorted({(int(line["labels"]), line["base"], line["weight"]) for line in lines}):
        of = [line for line in lines if (int(line["labels"]), line["base"], line["weight"]) == (labels, base, weight)]
        row = {"labels": labels, "base": base, "arm": "guided hard, weighted" if weight == "base" else "guided hard"}
        row |= {"runs": len(of), "seeds": seeds({int(line["seed"]) for line in of})}
        for decile in range(1, 11):
            values = [float(line[f"error_{decile}"]) for line in of]
            row |= {f"error_{decile}": mean(values), f"error_{decile}_half95": half95(values)}
        found.append(row)
    return found
