"""A PyTorch loop with `calmix.Planner` against the engine: the same weights and batches, ten steps."""

import json
import os
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from calmix import Planner
from safetensors.torch import load_file
from torch.nn import functional as F

PARITY = Path(__file__).resolve().parents[3] / "crates/calmix-engine/tests/parity"
sys.path.append(str(PARITY))
from networks import network  # noqa: E402
from step import statistics_kept  # noqa: E402

LABELLED, UNLABELLED, STEPS = 12, 40, 100
SETTINGS = {
    "method.base": "softmatch",
    "method.softmatch.momentum": 0.9,
    "method.mixup.pairing": "calibratemix",
    "method.mixup.start.rule": "step",
    "method.mixup.start.step": 2,
}


@pytest.fixture(scope="module")
def recorded():
    """The folder with the steps of the engine: `ten_steps_are_recorded_for_python` in its tests writes it."""
    folder = Path(os.environ["CALMIX_PLANNER_CASE"])
    return folder, json.loads((folder / "case.json").read_text())


def test_ten_steps_stay_within_a_thousandth_of_the_engine(recorded):
    folder, case = recorded
    trained, average, plans = trained_with_planner(folder, case, seed=3)
    assert len(case["steps"]) == 10
    for step, (ours, engine) in enumerate(zip(plans, case["steps"], strict=True)):
        assert ours.pseudo_labels.tolist() == engine["first"]["labels"], step
        assert np.allclose(ours.pseudo_weights, engine["first"]["weights"], atol=1e-3), step
        assert ours.first.tolist() == [mix["a"] for mix in engine["mixes"]], step
        assert ours.second.tolist() == [mix["b"] for mix in engine["mixes"]], step
        assert np.allclose(ours.mix_lambda, [mix["lambda"] for mix in engine["mixes"]], atol=1e-6), step
    assert distance(folder, trained, "end.live") < 1e-3
    assert distance(folder, average, "end.ema") < 1e-3
    # Ten steps move the weights by far more than the bar, and another seed mixes other images.
    assert distance(folder, load_file(folder / "start.live.safetensors"), "end.live") > 1e-2
    assert distance(folder, trained_with_planner(folder, case, seed=4)[0], "end.live") > 1e-3


def distance(folder, tensors, name):
    """The largest relative distance of a tensor from that of the engine."""
    largest = 0.0
    for key, engine in load_file(folder / f"{name}.safetensors").items():
        if engine.is_floating_point() and key in tensors:
            largest = max(largest, float((tensors[key] - engine).norm() / engine.norm().clamp(min=0.1)))
    return largest


def trained_with_planner(folder, case, seed):
    torch.set_num_threads(1)
    model = network(case["architecture"], case["first_block"], case["stride"], case["classes"]).train()
    model.load_state_dict(load_file(folder / "start.live.safetensors"))
    model = model.to(memory_format=torch.channels_last)
    features = []
    model.fc.register_forward_pre_hook(lambda _, given: features.append(given[0].detach()))
    decayed = [p for p in model.parameters() if p.ndim > 1]
    plain = [p for p in model.parameters() if p.ndim == 1]
    sgd = case["optimiser"]
    groups = [{"params": decayed, "weight_decay": sgd["weight_decay"]}, {"params": plain}]
    optimiser = torch.optim.SGD(groups, lr=0.1, momentum=sgd["momentum"], nesterov=sgd["nesterov"])
    average = load_file(folder / "start.ema.safetensors")
    images = load_file(folder / "images.safetensors")
    planner = Planner(case["classes"], range(LABELLED), range(UNLABELLED), steps=STEPS, seed=seed, settings=SETTINGS)
    plans = []
    for step, batch in enumerate(case["steps"]):
        x, weak, strong = (normalised(case, images[f"{view}.{step}"]) for view in ("x", "weak", "strong"))
        both = torch.cat([x, weak])
        with torch.no_grad(), statistics_kept(model):
            features.clear()
            logits = model(both)
        plan = planner.plan(
            step,
            labelled_ids=batch["ids"],
            labels=batch["labels"],
            labelled_logits=logits[: len(x)],
            labelled_features=features[0][: len(x)],
            unlabelled_ids=batch["unlabelled_ids"],
            unlabelled_logits=logits[len(x) :],
            unlabelled_features=features[0][len(x) :],
        )
        plans.append(plan)
        share = torch.from_numpy(plan.mix_lambda)[:, None, None, None]
        mixed = share * both[plan.first] + (1 - share) * both[plan.second]
        of_x, of_mixed, of_strong = model(torch.cat([x, mixed, strong])).split([len(x), len(mixed), len(strong)])
        weight = planner.loss_weights
        loss = weight["labelled"] * F.cross_entropy(of_x, torch.tensor(batch["labels"]))
        rows = F.cross_entropy(of_strong, torch.from_numpy(plan.pseudo_labels), reduction="none")
        loss = loss + weight["unlabelled"] * (torch.from_numpy(plan.pseudo_weights) * rows).mean()
        rows = F.cross_entropy(of_mixed, torch.from_numpy(plan.targets), reduction="none")
        loss = loss + weight["mixup"] * (torch.from_numpy(plan.mix_weights) * rows).sum()
        for group in optimiser.param_groups:
            group["lr"] = batch["rate"]
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        planner.commit()
        keep = case["ema_decay"]
        with torch.no_grad():
            for name, p in model.named_parameters():
                average[name] = keep * average[name] + (1 - keep) * p
    # The averaged model has the statistics of the live one.
    return model.state_dict(), average | dict(model.named_buffers()), plans


def normalised(case, pixels):
    mean, deviation = (torch.tensor(case[name], dtype=torch.float64) for name in ("mean", "deviation"))
    return ((pixels.double() / 255 - mean) / deviation).float().permute(0, 3, 1, 2)
