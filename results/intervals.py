"""Means, intervals and tests of differences that are paired by seed."""

import numpy as np
import scipy.stats

LEVEL = 0.95


def interval(differences):
    """Mean, half of the interval, and the p-value of no difference."""
    count, spread = len(differences), differences.std(ddof=1)
    half = scipy.stats.t.ppf((1 + LEVEL) / 2, count - 1) * spread / np.sqrt(count)
    p = scipy.stats.ttest_1samp(differences, 0.0).pvalue if spread > 0 else 1.0
    return differences.mean(), half, p


def holm(p_values):
    """Holm's correction."""
    order = np.argsort(p_values)
    corrected = np.empty(len(p_values))
    largest = 0.0
    for rank, place in enumerate(order):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[place]))
        corrected[place] = largest
    return corrected


def verdict(mean, half, p, margin):
    if p < 1 - LEVEL:
        return "lower" if mean < 0 else "higher"
    return "equal" if abs(mean) + half <= margin else "not separable"


def signed(value, digits):
    return f"{value:+.{digits}f}".replace("-", "−")


def mean_of(values, digits, factor=1.0):
    numbers = factor * np.array(list(values.values()))
    spread = numbers.std(ddof=1) if len(numbers) > 1 else 0.0
    return f"{numbers.mean():.{digits}f} ± {spread:.{digits}f}"
