"""Every measure has the bits of the Rust library, on cases that a program of the library draws and measures."""

import json
import os
import subprocess

import numpy as np
import pytest
from calmix import calibration

CASES = 1_000


@pytest.fixture(scope="module")
def cases():
    program = os.environ.get("CALMIX_DRAWN_MEASURES")
    if not program:
        pytest.skip("CALMIX_DRAWN_MEASURES does not name the program; `cargo xtask check python` sets it")
    lines = subprocess.run([program, str(CASES)], check=True, capture_output=True, text=True).stdout.splitlines()
    return [json.loads(line) for line in lines]


def test_measures_have_the_bits_of_rust(cases):
    compared = {}
    for number, case in enumerate(cases):
        labels, given = inputs(case)
        for name, expected in case["measures"]:
            value = getattr(calibration, name)(labels, **given, **options(name, case))
            assert bits(value) == expected, f"case {number}: {name} is {value}, in Rust {np.uint64(expected).view(float)}"
            kind = (name, case["width"], case["are_logits"])
            compared[kind] = compared.get(kind, 0) + 1
    assert len(cases) == CASES
    assert len(compared) == 9 * 2 * 2 and min(compared.values()) == CASES // 4, compared


def test_bins_and_intervals_have_the_bits_of_rust(cases):
    with_interval = 0
    for number, case in enumerate(cases):
        labels, given = inputs(case)
        how = options("ece", case)
        found = calibration.reliability_bins(labels, **given, **how)
        expected = [tuple(each) for each in case["reliability_bins"]]
        assert [(each.count, bits(each.confidence), bits(each.accuracy)) for each in found] == expected, number
        if case["ece_interval"] is not None:
            estimate = calibration.ece(labels, **given, **how, interval=0.95, random_state=number)
            assert [bits(estimate.low), bits(estimate.high)] == case["ece_interval"], number
            with_interval += 1
    assert with_interval >= CASES // 25


def test_cases_tell_types_edges_and_bins_apart(cases):
    """Rounded numbers, the other edges or one bin more give other bits in many cases: equality is not an accident."""
    rounded = edges = bins = 0
    for case in cases:
        labels, given = inputs(case)
        how = options("ece", case)
        expected = dict(case["measures"])["ece"]
        if case["width"] == 64:
            singles = {name: rows.astype(np.float32) for name, rows in given.items()}
            rounded += bits(calibration.ece(labels, **singles, **how)) != expected
        turned = {**how, "edges": "left" if case["edges"] == "right" else "right"}
        edges += bits(calibration.ece(labels, **given, **turned)) != expected
        bins += bits(calibration.ece(labels, **given, **{**how, "bins": case["bins"] + 1})) != expected
    assert rounded > 400 and edges > 20 and bins > 500, (rounded, edges, bins)


def inputs(case):
    """The labels, and the rows by the name of their argument."""
    words, floats = (np.uint32, np.float32) if case["width"] == 32 else (np.uint64, np.float64)
    rows = np.array(case["numbers"], dtype=words).view(floats).reshape(-1, case["classes"])
    return np.array(case["labels"]), {"logits" if case["are_logits"] else "y_prob": rows}


def options(name, case):
    given = {"bins": case["bins"], "edges": case["edges"]}
    if name in ("ece", "debiased_squared_error"):
        return {**given, "binning": case["binning"]}
    return given if name == "class_wise_ece" else {}


def bits(value):
    return int(np.float64(value).view(np.uint64))
