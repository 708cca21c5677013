"""Blocks, groups and rounds as rows: each configuration, and its differences from a baseline with the same seeds."""

from intervals import half95, mean
from runs import columns, rows, seeds

ROUNDS = [
    ("random", "2,000 random rows (round 0)"),
    ("confident", "200 of each predicted class, the most confident"),
    ("above", "200 of each predicted class, random ones with a confidence of at least 0.6"),
    ("above-twice", "the same, predicted by the model of the row above"),
]


def scale():
    """Every configuration of the three experiments."""
    runs, of_rounds = rows("scale/runs.csv"), rows("scale/rounds.csv")
    found = []
    for shards in ["shuffled", "sorted"]:
        of = lambda order: by_seed(runs, sweep="blocks", shards=shards, order=order)
        found += row("blocks", f"{shards}, `samples`", of("samples"))
        found += row("blocks", f"{shards}, `blocks`", of("blocks"), of("samples"))
    one = by_seed(runs, sweep="groups", groups="1")
    found += row("groups", "1, 0.03", one)
    for count, lr in [("2", "0.03"), ("2", "0.06"), ("4", "0.03"), ("4", "0.12")]:
        found += row("groups", f"{count}, {lr}", by_seed(runs, sweep="groups", groups=count, lr=lr), one)
    whole = by_seed(of_rounds, unlabelled="all")
    found += row("rounds", "all 10,000 at once", whole)
    for kind, name in ROUNDS:
        found += row("rounds", name, by_seed(of_rounds, unlabelled=kind), whole)
    return found


def by_seed(lines, **wanted):
    return {int(line["seed"]): line for line in lines if all(line[key] == value for key, value in wanted.items())}


def row(experiment, name, of, against=None):
    """One row, or none without runs; the differences are empty for the baseline."""
    if not of:
        return []
    found = {"experiment": experiment, "configuration": name, "runs": len(of), "seeds": seeds(of)}
    shared = sorted(of.keys() & against.keys()) if against else []
    found["pairs"] = len(shared)
    for metric in ["error", "nll", "ece"]:
        found |= columns(metric, [float(line[metric]) for line in of.values()])
        differences = [float(of[seed][metric]) - float(against[seed][metric]) for seed in shared]
        found[f"{metric}_difference"] = mean(differences) if shared else ""
        found[f"{metric}_difference_half95"] = half95(differences) if shared else ""
    return [found]
