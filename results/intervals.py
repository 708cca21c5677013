"""Means, intervals and tests of differences that are paired by seed."""

from math import fsum

import numpy as np
import scipy.stats

LEVEL = 0.95


def mean(values):
    """Rounded once, so that every machine writes the same digits."""
    return fsum(values) / len(values)


def spread(values):
    """The standard deviation; 0 for a single value."""
    return float(np.std(values, ddof=1)) if len(values) > 1 else 0.0


def half95(values):
    """Half of Student's 95% interval of the mean."""
    count = len(values)
    return float(scipy.stats.t.ppf((1 + LEVEL) / 2, count - 1)) * spread(values) / count**0.5 if count > 1 else 0.0


def p_value(differences):
    """The probability of such a mean if there is no difference."""
    return float(scipy.stats.ttest_1samp(differences, 0.0).pvalue) if spread(differences) > 0 else 1.0


def holm(p_values):
    """Holm's correction."""
    order = np.argsort(p_values)
    corrected = np.empty(len(p_values))
    largest = 0.0
    for rank, place in enumerate(order):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[place]))
        corrected[place] = largest
    return [float(p) for p in corrected]


def verdict(mean, half, p, margin):
    if p < 1 - LEVEL:
        return "lower" if mean < 0 else "higher"
    return "equal" if abs(mean) + half <= margin else "not separable"
