"""SoftMatch with CalibrateMix in a PyTorch loop of one's own: scikit-learn's digits, 100 of 1,300 with a label."""

import numpy as np
import torch
from calmix import Planner, calibration
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional as F

STEPS, BATCH, UNLABELLED = 600, 32, 128
torch.manual_seed(0)
rng = np.random.default_rng(0)
images, labels = load_digits(return_X_y=True)
images = torch.tensor(images / 16, dtype=torch.float32).reshape(-1, 1, 8, 8)
order = rng.permutation(len(labels))
labelled, test = np.sort(order[:100]), order[1300:]
unlabelled = np.sort(order[:1300])  # labelled samples are trained on without their label too

body = nn.Sequential(nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 32, 3, padding=1), nn.ReLU(), nn.Flatten())
head = nn.Linear(32 * 64, 10)
optimiser = torch.optim.SGD([*body.parameters(), *head.parameters()], lr=0.03, momentum=0.9, nesterov=True)
settings = {"method.base": "softmatch", "method.mixup.pairing": "calibratemix"}
planner = Planner(10, labelled, unlabelled, steps=STEPS, settings=settings)


def weak(x):
    return torch.roll(x, tuple(rng.integers(-1, 2, size=2)), dims=(2, 3))


def strong(x):
    return weak(x) * (torch.rand_like(x) > 0.3) + 0.1 * torch.randn_like(x)


for step in range(STEPS):
    x_ids = rng.choice(labelled, BATCH)
    u_ids = rng.choice(unlabelled, UNLABELLED)
    x, u = weak(images[x_ids]), weak(images[u_ids])
    with torch.no_grad():  # observe: what does the network say?
        features = body(torch.cat([x, u]))
        logits = head(features)
    of_x = {"labelled_ids": x_ids, "labelled_logits": logits[:BATCH], "labelled_features": features[:BATCH]}
    of_u = {"unlabelled_ids": u_ids, "unlabelled_logits": logits[BATCH:], "unlabelled_features": features[BATCH:]}
    plan = planner.plan(step, labels=labels[x_ids], **of_x, **of_u)
    both, share = torch.cat([x, u]), torch.from_numpy(plan.mix_lambda)[:, None, None, None]
    mixed = share * both[plan.first] + (1 - share) * both[plan.second]
    out = head(body(torch.cat([x, strong(images[u_ids]), mixed])))  # learn
    x_out, u_out, mixed_out = out.split([BATCH, UNLABELLED, len(mixed)])
    u_loss = F.cross_entropy(u_out, torch.from_numpy(plan.pseudo_labels), reduction="none")
    mixed_loss = F.cross_entropy(mixed_out, torch.from_numpy(plan.targets), reduction="none")
    loss = planner.loss_weights["labelled"] * F.cross_entropy(x_out, torch.from_numpy(labels[x_ids]))
    loss += planner.loss_weights["unlabelled"] * (torch.from_numpy(plan.pseudo_weights) * u_loss).mean()
    loss += planner.loss_weights["mixup"] * (torch.from_numpy(plan.mix_weights) * mixed_loss).sum()
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
    planner.commit()

with torch.no_grad():
    logits = head(body(images[test]))
print(f"error {calibration.error(labels[test], logits=logits):.3f}, ECE {calibration.ece(labels[test], logits=logits):.3f}")
