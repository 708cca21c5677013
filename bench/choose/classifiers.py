"""The classifiers of `run.py`: each takes labelled and unlabelled rows, and returns probabilities, and prediction sets if it has any.

All that rest on LogisticRegression share its C, which folds choose by the NLL.
"""

import warnings

import numpy as np
from calmix import CalmixClassifier
from mapie.classification import CrossConformalClassifier
from sklearn.calibration import CalibratedClassifierCV
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier

CS = [0.1, 1, 10, 100, 1000]
COVERAGE = 0.9


class Draw:
    """Vectors with labels for a few of the first rows, −1 for the others; the last rows are the test."""

    def __init__(self, raw, projected, labels, seed):
        self.raw, self.projected, self.labels, self.seed = raw, projected, labels, seed
        self.train = len(labels)
        self.kept = np.flatnonzero(labels >= 0)
        self.few = min(5, np.bincount(labels[self.kept]).min())

    def labelled(self):
        return self.projected[self.kept], self.labels[self.kept]

    def test(self):
        return self.projected[self.train :]

    def folds(self):
        return StratifiedKFold(self.few, shuffle=True, random_state=self.seed)


def chosen_c(draw):
    search = GridSearchCV(LogisticRegression(max_iter=1000), {"C": CS}, scoring="neg_log_loss", cv=draw.folds())
    return search.fit(*draw.labelled()).best_params_["C"]


def base(draw):
    return LogisticRegression(C=chosen_c(draw), max_iter=1000)


def calmix(draw):
    classifier = CalmixClassifier(random_state=draw.seed, n_jobs=1).fit(draw.raw[: draw.train], draw.labels)
    test = draw.raw[draw.train :]
    return classifier.predict_proba(test), classifier.predict_set(test, COVERAGE)


def logistic_regression(draw):
    return base(draw).fit(*draw.labelled()).predict_proba(draw.test()), None


def calibrated(draw, method):
    model = CalibratedClassifierCV(base(draw), method=method, cv=draw.folds()).fit(*draw.labelled())
    return model.predict_proba(draw.test()), None


def self_training(draw):
    model = SelfTrainingClassifier(base(draw)).fit(draw.projected[: draw.train], draw.labels)
    return model.predict_proba(draw.test()), None


def label_spreading(draw):
    model = LabelSpreading(kernel="knn", n_neighbors=10).fit(draw.projected[: draw.train], draw.labels)
    # Rows that no label reaches are NaN.
    return np.nan_to_num(model.predict_proba(draw.test())), None


def mapie(draw):
    """Cross-conformal sets, which MAPIE refuses for ten labels or fewer; its probabilities are those of LogisticRegression."""
    if len(draw.kept) <= 1 / (1 - COVERAGE):
        return None, None
    model = CrossConformalClassifier(base(draw), confidence_level=COVERAGE, cv=draw.folds())
    _, sets = model.fit_conformalize(*draw.labelled()).predict_set(draw.test())
    return None, sets[:, :, 0]


CLASSIFIERS = {
    "calmix": calmix,
    "LogisticRegression": logistic_regression,
    "CalibratedClassifierCV, sigmoid": lambda draw: calibrated(draw, "sigmoid"),
    "CalibratedClassifierCV, temperature": lambda draw: calibrated(draw, "temperature"),
    "SelfTrainingClassifier": self_training,
    "LabelSpreading": label_spreading,
    "MAPIE": mapie,
}


def predicted(name, draw):
    with warnings.catch_warnings():
        # With fewer than ten labels calmix warns that nothing is calibrated; others warn of the same in words of theirs.
        warnings.simplefilter("ignore")
        return CLASSIFIERS[name](draw)
