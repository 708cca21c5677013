"""Repeats recorded steps of a head in plain PyTorch: gradients by autograd, SGD and the average by PyTorch.

Reads folders of cases, one per line: case.json and case.safetensors. Prints one JSON line for each: the largest relative
distance of a gradient when each step starts from the recorded weights, in f64, and the number of steps that this leaves out
because a hidden unit is so near to zero that rounding decides whether it is on; and the distance of the weights and of their average
when all steps follow each other, in f32.
"""

import json
import sys
from pathlib import Path

import torch
from safetensors.torch import load_file

torch.set_num_threads(1)
sys.path.insert(0, sys.argv[1])
import step as peer  # noqa: E402  the losses that the engine is compared with


def places():
    """Name, shape and start of each parameter, matrices first, then biases."""
    width, hidden, classes = case["width"], case["hidden"], case["classes"]
    read = hidden or width
    shapes = [("hidden.weight", (hidden, width))] if hidden else []
    shapes += [("classifier.weight", (classes, read))]
    shapes += [("hidden.bias", (hidden,))] if hidden else []
    shapes += [("classifier.bias", (classes,))]
    return shapes


def network(flat):
    width, hidden, classes = case["width"], case["hidden"], case["classes"]
    layers = torch.nn.ModuleDict()
    if hidden:
        layers["hidden"] = torch.nn.Linear(width, hidden)
    layers["classifier"] = torch.nn.Linear(hidden or width, classes)
    start = 0
    state = {}
    for name, shape in places():
        length = int(torch.tensor(shape).prod())
        state[name] = flat[start : start + length].reshape(shape)
        start += length
    layers.load_state_dict(state)
    return layers


def logits(layers, x):
    if "hidden" in layers:
        x = torch.relu(layers["hidden"](x))
    return layers["classifier"](x)


def flat(layers, of):
    named = dict(layers.named_parameters())
    return torch.cat([of(named[name]).reshape(-1) for name, _ in places()])


def total(layers, n, plan):
    labels = torch.tensor(plan["labels"])
    z = logits(layers, numbers[f"inputs.{n}"].to(layers["classifier"].weight.dtype))
    mixes = len(plan["mix_weights"])
    of_x, of_mixed, of_strong = z.split([len(labels), mixes, len(z) - len(labels) - mixes])
    labelled, unlabelled, fair, distance = peer.base(case, {"labels": labels}, of_x, of_strong, plan["pseudo"])
    loss = labelled + case["unlabelled_weight"] * unlabelled
    loss = loss + case["fairness_weight"] * fair + case["logit_weight"] * distance
    if mixes:
        targets = torch.tensor(plan["targets"]).reshape(mixes, -1)
        weights = torch.tensor(plan["mix_weights"])
        if case["binary"]:
            rows = torch.nn.functional.binary_cross_entropy_with_logits(of_mixed, targets, reduction="none").mean(1)
        else:
            rows = torch.nn.functional.cross_entropy(of_mixed, targets, reduction="none")
        loss = loss + case["mix_weight"] * (weights * rows).sum()
    return loss


def apart(ours, theirs):
    return float((ours - theirs).norm() / theirs.norm())


def is_at_a_kink(layers, n):
    """Whether f32 may switch a hidden unit otherwise than f64."""
    if "hidden" not in layers:
        return False
    return bool((layers["hidden"](numbers[f"inputs.{n}"].double()).abs() < 5e-7).any())


def compare():
    gradients = []
    kinks = 0
    for n, plan in enumerate(case["steps"]):
        layers = network(numbers[f"weights.{n}"]).double()
        if is_at_a_kink(layers, n):
            kinks += 1
            continue
        torch.set_default_dtype(torch.float64)
        total(layers, n, plan).backward()
        torch.set_default_dtype(torch.float32)
        gradients.append(apart(numbers[f"gradient.{n}"], flat(layers, lambda p: p.grad)))

    layers = network(numbers["weights.0"])
    matrices = [p for p in layers.parameters() if p.ndim > 1]
    biases = [p for p in layers.parameters() if p.ndim == 1]
    sgd = torch.optim.SGD(
        [{"params": matrices, "weight_decay": case["weight_decay"]}, {"params": biases, "weight_decay": 0.0}],
        lr=0.1,
        momentum=case["momentum"],
        nesterov=case["nesterov"],
    )
    average = flat(layers, lambda p: p.detach()).clone()
    for n, plan in enumerate(case["steps"]):
        for group in sgd.param_groups:
            group["lr"] = plan["rate"]
        sgd.zero_grad()
        total(layers, n, plan).backward()
        if case["clip"] is not None:
            torch.nn.utils.clip_grad_norm_(layers.parameters(), case["clip"])
        sgd.step()
        average = case["ema_decay"] * average + (1 - case["ema_decay"]) * flat(layers, lambda p: p.detach())
    live = apart(numbers["live"], flat(layers, lambda p: p.detach()))
    return {"gradient": max(gradients), "kinks": kinks, "live": live, "average": apart(numbers["average"], average)}


for line in sys.stdin:
    folder = Path(line.strip())
    case = json.loads((folder / "case.json").read_text())
    numbers = load_file(folder / "case.safetensors")
    print(json.dumps(compare()), flush=True)
