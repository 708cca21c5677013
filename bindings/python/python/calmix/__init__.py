"""Classifiers from few labels and many unlabelled samples, with confidence you can act on.

- `CalmixClassifier`: a scikit-learn estimator on embeddings, with calibrated probabilities, prediction sets of guaranteed
  coverage, and abstention.
- `calmix.calibration`: measures of calibration with confidence intervals, and calibrators.
- `Planner`: CalibrateMix, FixMatch, FlexMatch, SoftMatch and FreeMatch for training loops of one's own.
"""

from calmix import calibration
from calmix._calmix import __version__
from calmix.classifier import CalmixClassifier, Candidate, NllDifference, OutOfFold
from calmix.planner import Plan, Planner

__all__ = [
    "CalmixClassifier",
    "Candidate",
    "NllDifference",
    "OutOfFold",
    "Plan",
    "Planner",
    "__version__",
    "calibration",
]
