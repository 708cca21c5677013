"""The planner: the example of calmix-core, its state, and what it refuses."""

import numpy as np
import pytest
from calmix import Planner

SETTINGS = {"method.base": "fixmatch", "method.mixup.pairing": "calibratemix", "method.mixup.start.rule": "step"}


def batch():
    return {
        "labelled_ids": [0, 1],
        "labels": [0, 1],
        "labelled_logits": [[2.0, 0.0, 0.0], [0.0, 0.5, 0.0]],
        "labelled_features": [[1.0, 0.0], [0.0, 1.0]],
        "unlabelled_ids": [2, 3, 4, 5],
        "unlabelled_logits": [[9.0, 0, 0], [0, 3.0, 0], [0, 0.1, 0], [0.2, 0, 0.1]],
        "unlabelled_features": [[1.0, 0.1], [0.2, 1.0], [0.7, 0.7], [-1.0, 0.2]],
    }


def planner(seed=0):
    return Planner(3, [0, 1], [2, 3, 4, 5], steps=1 << 20, seed=seed, settings=SETTINGS)


def test_plan_is_that_of_the_library():
    """The numbers of the example in the documentation of calmix-core."""
    plan = planner().plan(0, **batch())
    assert plan.pseudo_labels.tolist() == [0, 1, 1, 0]
    assert plan.pseudo_weights.tolist() == [1.0, 0.0, 0.0, 0.0]
    assert len(plan.first) == 2 and plan.targets.shape == (2, 3)
    assert set(plan.first) <= {0, 1} and set(plan.second) <= {2, 3, 4, 5}
    assert np.allclose(plan.targets.sum(axis=1), 1)


def test_state_restores_the_same_plans():
    one = planner()
    for step in range(5):
        one.plan(step, **batch())
        one.commit()
    two = planner()
    two.load_state_dict(one.state_dict())
    plans = [each.plan(5, **batch()) for each in (one, two)]
    for name in plans[0].__dataclass_fields__:
        assert (getattr(plans[0], name) == getattr(plans[1], name)).all(), name


def test_undone_plan_leaves_no_trace():
    one = planner()
    before = one.state_dict()
    one.plan(0, **batch())
    one.undo()
    assert one.state_dict() == before


def test_misuse_is_named():
    one = planner()
    with pytest.raises(RuntimeError, match="no plan"):
        one.commit()
    one.plan(0, **batch())
    with pytest.raises(RuntimeError, match="neither committed nor undone"):
        one.plan(1, **batch())
    one.commit()
    with pytest.raises(ValueError, match="sample 9 is not one of the unlabelled"):
        one.plan(1, **{**batch(), "unlabelled_ids": [2, 3, 4, 9]})
    with pytest.raises(ValueError, match="did you mean"):
        Planner(3, [0], [1], steps=10, settings={"method.bas": "fixmatch"})
    with pytest.raises(ValueError):
        one.load_state_dict({"method": b"{}", "labelled": b"", "unlabelled": b""})
