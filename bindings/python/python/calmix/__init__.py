"""Classifiers from few labels and many unlabelled samples, with confidence you can act on.

- `CalmixClassifier`: a scikit-learn estimator on embeddings, with calibrated probabilities, prediction sets of guaranteed
  coverage, and abstention.
- `calmix.calibration`: measures of calibration with confidence intervals, and calibrators.
- `Planner`: CalibrateMix, FixMatch, FlexMatch, SoftMatch and FreeMatch for training loops of one's own.
- `PredictionSets` and `Abstainer`: the same guarantees around the probabilities of any model.
- `Monitor`: an alarm for rows that are no longer like those of before, which may be looked at after every batch.
- `Model`: a model that `calmix export` wrote, on onnxruntime.
- `review` chooses samples to label or to check, as the command does.
- `report` writes an HTML page about predictions; `read_run` reads the folder of a run of the command `calmix`.
"""

from calmix import calibration
from calmix._calmix import __version__
from calmix.abstainer import Abstainer
from calmix.classifier import CalmixClassifier, Candidate, MixEstimate, NllDifference, OutOfFold
from calmix.model import Answers, Model, Verdict
from calmix.monitor import Monitor, MonitorState
from calmix.planner import Plan, Planner
from calmix.prediction_sets import PredictionSets
from calmix.report import read_run, report
from calmix.review import review

__all__ = [
    "Abstainer",
    "Answers",
    "CalmixClassifier",
    "Candidate",
    "MixEstimate",
    "Model",
    "Monitor",
    "MonitorState",
    "NllDifference",
    "OutOfFold",
    "Plan",
    "Planner",
    "PredictionSets",
    "Verdict",
    "__version__",
    "calibration",
    "read_run",
    "report",
    "review",
]
