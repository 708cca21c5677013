"""The runs of the study, read from their CSV files."""

import csv
from collections import defaultdict
from pathlib import Path

import numpy as np

from intervals import half95, mean, spread

HERE = Path(__file__).parent


class Runs:
    """The runs of a CSV file, by setting (data, network, head, labels per class, base, arm) and seed."""

    def __init__(self, file):
        self.rows = defaultdict(dict)
        self.failed = 0
        for line in rows(file):
            if line["failed"]:
                self.failed += 1
                continue
            setting = (line["data"], line["backbone"], line["head"], int(line["labels"]), line["base"], line["arm"])
            self.rows[setting][int(line["seed"])] = line

    def cells(self):
        """Data, network and base of the runs without mixtures."""
        return sorted({(setting[0], setting[1], setting[4]) for setting in self.rows if setting[5] == "none"})

    def cells_by_labels(self):
        """Everything of a setting but its arm."""
        return sorted({setting[:5] for setting in self.rows})

    def counts(self, data, network):
        """The numbers of labels per class."""
        return sorted({setting[3] for setting in self.rows if setting[:2] == (data, network)})

    def values(self, setting, metric):
        """The metric of each run of a setting, by seed."""
        return {seed: float(line[metric]) for seed, line in self.rows.get(setting, {}).items() if line[metric]}

    def differences(self, setting, metric, against, against_metric):
        """The seeds that two settings share, and the metric of the one minus that of the other."""
        of, other = self.values(setting, metric), self.values(against, against_metric)
        shared = sorted(of.keys() & other.keys())
        return shared, np.array([of[seed] - other[seed] for seed in shared])


def rows(file):
    """The lines of a CSV file in this folder."""
    with open(HERE / file) as lines:
        return list(csv.DictReader(lines))


def seeds(numbers):
    """Seeds as ranges: `0-4 7`."""
    ranges = []
    for number in sorted(numbers):
        if ranges and ranges[-1][1] == number - 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    return " ".join(f"{first}-{last}" if last > first else str(first) for first, last in ranges)


def columns(name, values):
    """Mean, standard deviation and half of the 95% interval, as three columns; empty without values."""
    values = list(values)
    found = (mean(values), spread(values), half95(values)) if values else ("", "", "")
    return dict(zip((name, f"{name}_sd", f"{name}_half95"), found))
