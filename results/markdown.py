"""The few tables of the documents: each takes rows with named columns and returns lines of Markdown."""


from intervals import mean
from runs import rows
from study import calibrated


def table(head, body):
    """A table from the names of its columns and its rows."""
    line = lambda cells: "| " + " | ".join(map(str, cells)) + " |"
    return [line(head), "|" + "---|" * len(head), *map(line, body)]


def signed(value, digits):
    return f"{value:+.{digits}f}".replace("-", "−")


def within(row, digits, factor=1, name="difference", half="half95"):
    """A difference and half of its interval."""
    return f"{signed(factor * float(row[name]), digits)} ± {factor * float(row[half]):.{digits}f}"


def with_spread(row, name, digits, factor=1, spread="_sd"):
    return f"{factor * float(row[name]):.{digits}f} ± {factor * float(row[name + spread]):.{digits}f}"


def percent(value, digits=1):
    return f"{100 * float(value):.{digits}f}%" if value != "" else ""


# The comparisons of heads by their labels per class: the heading of each column.
COLUMNS = {
    4: {
        "P1 soft − hard targets, guided pairs": "P1: soft − hard targets, guided",
        "P2 guided − crossed pairs, soft": "P2: guided − crossed, soft",
        "guided − random pairs, soft": "guided − random, soft",
        "P4 random soft, raw − no mixture at T": "P4: random soft, raw − no mixture at T",
        "P8 random soft at T − raw": "P8: random soft at T − raw",
    },
    25: {
        "P3 guided − crossed pairs, soft": "P3: guided − crossed, soft",
        "guided − random pairs, soft": "guided − random, soft",
        "P5 random soft at T − no mixture at T": "P5: random soft − no mixture, both at T",
        "P8 no mixture at T − raw": "P8: no mixture at T − raw",
    },
}


def planned(comparisons, labels):
    """The NLL of the planned comparisons of heads, a row for each cell; significant ones in bold."""
    columns = COLUMNS[labels]
    cells = {}
    for row in comparisons:
        if row["comparison"] in columns and (row["metric"], row["labels"]) == ("nll", labels):
            shown = within(row, 3)
            cell = cells.setdefault((row["data"], row["base"]), {"n": row["runs"]})
            cell[row["comparison"]] = f"**{shown}**" if row["verdict"] in ("lower", "higher") else shown
    body = [[f"{data}, {base}", cell["n"], *(cell[name] for name in columns)] for (data, base), cell in cells.items()]
    return table(["data, base", "n", *columns.values()], body)


def scratch(unplanned):
    """Networks with 4 labels per class against no mixture, a row for each arm."""
    found = {}
    for row in unplanned:
        if row["network"] == "wrn-10-1" and row["against"] == "none":
            found.setdefault((row["base"], row["arm"]), {})[row["metric"]] = row
    body = []
    for (base, arm), by in found.items():
        nll = by["nll"]
        row = [base, arm, f"{nll['mean']:.3f}", f"{nll['mean_against']:.3f}", within(nll, 3), within(by["error"], 2, 100)]
        body.append([*row, within(by["ece"], 2, 100)])
    return table(["base", "arm", "NLL", "no mixture", "difference (95%)", "error, points", "ECE, points"], body)


def hard_targets(unplanned):
    """Guided minus random pairs with hard targets."""
    found = {}
    for row in unplanned:
        if (row["arm"], row["against"]) == ("guided hard", "random hard"):
            found.setdefault((row["network"], row["data"], row["labels"], row["base"]), {})[row["metric"]] = row
    body = []
    for (network, data, labels, base), by in found.items():
        ece = by["ece"]
        name = "from scratch" if network == "wrn-10-1" else "head"
        row = [f"{name}, {data}", labels, base, percent(ece["mean_against"]), within(ece, 2, 100), f"{ece['p']:.2g}"]
        row += [within(by["ece_at_t"], 2, 100) if "ece_at_t" in by else "", within(by["nll"], 3), within(by["error"], 2, 100)]
        body.append(row)
    head = ["network", "labels", "base", "ECE of random pairs", "guided − random: ECE, points", "p", "ECE at T, points", "NLL"]
    return table([*head, "error, points"], body)


def preset(found):
    """The cells in which the preset mixes; in the others it is no mixture at T."""
    body = []
    for row in found:
        if row["arm"] != "none":
            means = [with_spread(row, name, 3) for name in ("nll_preset", "nll_none")]
            body.append([f"{row['data']}, {row['base']}", row["runs"], *means, within(row, 3)])
    return table(["data, base", "n", "NLL of the preset (sd)", "no mixture at T (sd)", "difference (95%)"], body)


def crossover(found):
    cells = {}
    for row in found:
        between = f"{row['low']} to {row['high']}"
        certain = row["low"] == row["high"]
        shown = row["labels"] if certain else f"{row['labels']} ({between})"
        cells.setdefault(f"{row['data']}, {row['base']}", {})[row["arm"]] = shown
    arms = ["random soft", "crossed soft", "guided soft"]
    return table(["data, base", *arms], [[name, *(of[arm] for arm in arms)] for name, of in cells.items()])


def premise(found):
    """Wrong pseudo-labels with 4 labels per class and soft targets: the lowest and the highest mean of the bases."""
    columns = [("guided soft", "easy"), ("guided soft", "hard"), ("guided soft", "mixtures"), ("crossed soft", "mixtures")]
    body = []
    for data in sorted({row["data"] for row in found}):
        cells = []
        for arm, share in columns:
            values = [row[share] for row in found if (row["data"], row["labels"], row["arm"]) == (data, 4, arm)]
            cells.append(f"{percent(min(values))} to {percent(max(values))}")
        body.append([data, *cells])
    return table(["data", "easy half", "hard half", "mixtures of guided pairs", "mixtures of crossed pairs"], body)


def scikit_learn(found):
    """NLL of scikit-learn's logistic regression, and of SoftMatch with the preset `calibrated`."""
    cells = {}
    for row in found:
        cells.setdefault((row["data"], row["labels"]), {})[row["classifier"]] = row
    body = []
    for (data, labels), by in cells.items():
        names = ["logistic regression", "logistic regression, temperature", f"calmix: softmatch, {calibrated(labels)}, at T"]
        of = [by[name] for name in names]
        nll = [with_spread(row, "nll", 3) for row in of]
        body.append([data, labels, of[0]["runs"], *nll])
    return table(["data", "labels", "n", "NLL: logistic regression", "at its temperature", "SoftMatch, preset `calibrated`"], body)


def guarantees(found):
    body = []
    for row in found:
        coverage = f"{percent(row['coverage'])} ({percent(row['coverage_lowest'])} to {percent(row['coverage_highest'])})"
        answers = [percent(row["answered_90"]), f"{row['runs_answering_90']}", percent(row["right_90"]), row["runs_below_90"]]
        body.append([row["data"], row["labels"], row["runs"], coverage, *answers])
    head = ["data", "labels", "runs", "coverage of 90% sets (lowest to highest run)", "answered at 90% precision"]
    return table([*head, "runs that answer", "right", "runs below 90%"], body)


def scale(found, experiment, name):
    """The rows of an experiment, with their differences from its first row."""
    body = []
    for row in found:
        if row["experiment"] != experiment:
            continue
        cells = [row["configuration"], row["runs"]]
        for metric, digits, factor in [("error", 2, 100), ("nll", 3, 1), ("ece", 2, 100)]:
            cells.append(with_spread(row, metric, digits, factor))
            both = (f"{metric}_difference", f"{metric}_difference_half95")
            cells.append(within(row, digits, factor, *both) if row["pairs"] else "")
        body.append(cells)
    return table([name, "n", "error, %", "difference (95%)", "NLL", "difference", "ECE, %", "difference"], body)


# What follows shows numbers of `recorded`: measured before runs were kept, so that they are rows already.


def default():
    body = []
    for row in rows("recorded/default.csv"):
        error = [f"{100 * float(row[f'error_{views}']):.1f}" for views in ("five_views", "one_view")]
        nll = [with_spread(row, f"nll_{views}", 3) for views in ("five_views", "one_view")]
        body.append([row["data"], row["labels"], *error, *nll, within(row, 3, 1, "nll_difference", "nll_difference_half95")])
    head = ["images", "labels per class", "error: five views", "one view", "NLL: five views", "one view", "one − five (95%)"]
    return table(head, body)


def heads():
    """NLL at T of linear heads, and the ECE before and after the temperature without mixup."""
    cells = {}
    for row in rows("recorded/heads.csv"):
        if row["head"] == "linear":
            cells.setdefault((row["labels"], row["base"]), {})[row["mixup"]] = row
    body = []
    for (labels, base), by in cells.items():
        nll = [with_spread(by[name], "nll_at_t", 3, 1, "_spread") for name in ("none", "random", "CalibrateMix", "CalibrateMix, soft")]
        ece = " → ".join(f"{100 * float(by['none'][key]):.1f}" for key in ("ece", "ece_at_t"))
        body.append([labels, base, *nll, ece])
    head = ["labels", "base", "NLL at T: no mixup", "random", "CalibrateMix", "CalibrateMix, soft", "ECE → at T: no mixup"]
    return table(head, body)


def choice():
    body = []
    for row in rows("recorded/choice.csv"):
        # With more labels of CIFAR-10 every rule keeps the recipe's head, which is better in every run.
        if row["data"] == "cifar10" and row["labels"] != "4":
            continue
        nll = [row[f"nll_{head}"] for head in ("recipe", "alone")]
        lost = [row[f"nll_loss_{rule}"] for rule in ("rule", "one_error", "two_errors", "recipe")]
        body.append([f"{row['data']}, {row['labels']}", row["seeds"], *nll, row["alone_kept"], *lost])
    head = ["labels per class", "seeds", "NLL: recipe", "labels alone", "labels alone kept", "loss of the rule", "one standard error"]
    return table([*head, "two", "always the recipe's"], body)


def guarantees_heads():
    body = []
    for row in rows("recorded/guarantees-heads.csv"):
        coverage = f"{percent(row['coverage'])} ({percent(row['coverage_lowest'])} to {percent(row['coverage_highest'])})"
        answers = [percent(row[key]) for key in ("answered_90", "right_90")] + [row["runs_below_90"]]
        body.append([f"{row['data']}, {row['labels']}", coverage, *answers])
    head = ["labels per class", "coverage (lowest to highest run)", "answered at 90% precision", "right", "runs below"]
    return table(head, body)


TEMPERATURES = ["ece_10", "ece_20", "ece_50", "ece_100", "ece_20_likelihood"]


def temperature():
    """Means over the runs with a high, a middling and a low ECE: ECE, and the share of draws that are worse by over a point."""
    groups = {"7% or more": [], "2 to 7%": [], "below 2%": []}
    for row in rows("recorded/temperature.csv"):
        ece = float(row["ece"])
        groups["7% or more" if ece >= 0.07 else "2 to 7%" if ece >= 0.02 else "below 2%"].append(row)
    body = []
    for name, of in groups.items():
        column = lambda key: mean([float(row[key]) for row in of])
        cells = [f"{percent(column(key))} ({percent(column(key.replace('ece', 'worse')))})" for key in TEMPERATURES]
        body.append([name, len(of), percent(column("ece")), *cells])
    head = ["raw ECE", "runs", "mean", "n = 10", "n = 20", "n = 50", "n = 100", "maximum likelihood: n = 20"]
    return table(head, body)


def vectors():
    """Kept heads against logistic regression on the vectors of two networks."""
    tests = {}
    for row in rows("recorded/vectors-differences.csv"):
        if row["against"] == "logistic regression":
            tests[row["features"], row["data"], row["labels"], row["shift"]] = row
    body = []
    for row in rows("recorded/vectors.csv"):
        if row["version"] != "current":
            continue
        test = tests.get((row["features"], row["data"], row["labels"], row["shift"]))
        change = within(test, 3, 1, "nll_difference", "nll_difference_sd") if test else signed(float(row["nll_difference"]), 3)
        network = {"tf_efficientnet_lite0": "EfficientNet", "resnet50": "ResNet-50"}[row["features"]]
        name = ", ".join(filter(None, [network, row["data"], row["labels"], row["shift"]]))
        pairs = [percent(row["error_lr"]), percent(row["error_kept"]), row["nll_lr"], row["nll_kept"]]
        body.append([name, row["draws"], *pairs, change])
    return table(["vectors, data, labels", "n", "error: LR", "kept", "NLL: LR", "kept", "kept − LR (sd)"], body)
