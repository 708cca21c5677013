"""One training step in plain PyTorch, from a plan that says who is mixed with whom and which labels count.

`concat` is the paper's sentence: everything in one batch. `joint` shows the mixtures on their own, `lean` leaves the weak
views out. `released` is what the authors' code does: after the warm-up it runs its base algorithm on the batch, then
once more with the mixtures, and adds both losses.
"""

from contextlib import contextmanager

import torch
from torch import nn
from torch.nn import functional as F


@contextmanager
def statistics_kept(model):
    """Whatever passes through the model meanwhile leaves no trace in BatchNorm's running statistics."""
    norms = [module for module in model.modules() if isinstance(module, nn.BatchNorm2d)]
    for norm in norms:
        norm.track_running_stats = False
    yield
    for norm in norms:
        norm.track_running_stats = True


def losses(model, case, batch, plan):
    """L_L, L_U, the further terms, L_mix, and the logits of the labelled rows where the plan was made."""
    if case["step"] == "lean" and not case["undecided"]:
        return lean(model, case, batch, plan)
    if case["step"] == "concat" and plan["mixes"]:
        return concat(model, case, batch, plan)
    if case["twice"] and plan["mixes"]:
        return released(model, case, batch, plan)
    return joint(model, case, batch, plan)


def joint(model, case, batch, plan):
    x, weak, strong = batch["x"], batch["weak"], batch["strong"]
    logits = model(torch.cat([x, weak, strong]))
    of_x, _, of_strong = logits.split([len(x), len(weak), len(strong)])
    terms = base(case, batch, of_x, of_strong, plan["first"])
    mix = torch.zeros(())
    if plan["mixes"]:
        with statistics_kept(model):
            mix = mixup_loss(case, model(mixtures(batch, plan)), plan)
    return terms, mix, of_x


def concat(model, case, batch, plan):
    x, weak, strong = batch["x"], batch["weak"], batch["strong"]
    with torch.no_grad(), statistics_kept(model):
        seen = model(torch.cat([x, weak]))[: len(x)]
    mixed = mixtures(batch, plan)
    logits = model(torch.cat([x, mixed, weak, strong]))
    of_x, of_mixed, _, of_strong = logits.split([len(x), len(mixed), len(weak), len(strong)])
    terms = base(case, batch, of_x, of_strong, plan["first"])
    return terms, mixup_loss(case, of_mixed, plan), seen


def lean(model, case, batch, plan):
    x, weak, strong = batch["x"], batch["weak"], batch["strong"]
    with torch.no_grad(), statistics_kept(model):
        seen = model(torch.cat([x, weak]))[: len(x)]
    mixed = mixtures(batch, plan)
    of_x, of_mixed, of_strong = model(torch.cat([x, mixed, strong])).split([len(x), len(mixed), len(strong)])
    terms = base(case, batch, of_x, of_strong, plan["first"])
    mix = mixup_loss(case, of_mixed, plan) if plan["mixes"] else torch.zeros(())
    return terms, mix, seen


def released(model, case, batch, plan):
    x, weak, strong = batch["x"], batch["weak"], batch["strong"]
    mixed = mixtures(batch, plan)
    first = model(torch.cat([x, weak, strong]))
    second = model(torch.cat([x, weak, strong, mixed]))
    terms = base(case, batch, first[: len(x)], first[len(x) + len(weak) :], plan["first"])
    of_x, _, of_strong, of_mixed = second.split([len(x), len(weak), len(strong), len(mixed)])
    again = base(case, batch, of_x, of_strong, plan["second"])
    mix = mixup_loss(case, of_mixed, plan)
    return [a + b for a, b in zip(terms, again)], mix, first[: len(x)]


def base(case, batch, of_x, of_strong, pseudo):
    """The labelled mean, the unlabelled mean over all rows (those that do not count are zeros in it), the fairness of the
    selected rows, and the logit distance of those whose strong view agrees with its pseudo-label."""
    labelled = F.cross_entropy(of_x, batch["labels"], label_smoothing=case["smoothing"])
    if len(of_strong) == 0:
        return [labelled] + 3 * [torch.zeros(())]
    rows = F.cross_entropy(
        of_strong, torch.tensor(pseudo["labels"]), reduction="none", label_smoothing=case["smoothing"]
    )
    weights = torch.tensor(pseudo["weights"])
    agrees = weights * (of_strong.argmax(1) == torch.tensor(pseudo["labels"]))
    return [
        labelled,
        (weights * rows).mean(),
        fairness(of_strong[weights > 0], torch.tensor(pseudo["fairness_target"])),
        logit_distance(of_strong, agrees, case["logit_margin"]),
    ]


def fairness(logits, target):
    """FreeMatch: the cross-entropy of target and mean prediction, the latter divided by the histogram of the rows."""
    if len(logits) == 0 or len(target) == 0:
        return torch.zeros(())
    p = logits.softmax(1)
    histogram = torch.bincount(p.argmax(1), minlength=p.shape[1]) / len(p)
    there = histogram > 0
    q = p.mean(0)[there] / histogram[there]
    return (target[there] * torch.log(q / q.sum() + 1e-12)).sum()


def logit_distance(logits, weights, margin):
    if margin is None or weights.sum() == 0:
        return torch.zeros(())
    rows = F.relu(logits.max(1, keepdim=True).values - logits - margin).mean(1)
    return (weights * rows).sum() / weights.sum()


def mixtures(batch, plan):
    """λ on the first image, 1 − λ on the second; both normalised weak views."""
    pool = torch.cat([batch["x"], batch["weak"]])
    made = [m["lambda"] * pool[m["a"]] + (1 - m["lambda"]) * pool[m["b"]] for m in plan["mixes"]]
    return torch.stack(made) if made else pool[:0]


def mixup_loss(case, logits, plan):
    """Soft cross-entropy, the mean over all mixtures; or the released code's: binary, the kinds of pairs added."""
    targets = torch.stack([target(case, logits.shape[1], m) for m in plan["mixes"]])
    if case["mix_loss"] == "cross-entropy":
        return F.cross_entropy(logits, targets)
    kinds = zip(logits.split(plan["kinds"]), targets.split(plan["kinds"]))
    return sum(F.binary_cross_entropy_with_logits(*kind) for kind in kinds if len(kind[0]))


def target(case, classes, mix):
    smooth = case["smoothing"]
    one_hot = torch.eye(classes) * (1 - smooth) + smooth / classes
    return mix["lambda"] * one_hot[mix["class_a"]] + (1 - mix["lambda"]) * one_hot[mix["class_b"]]


class Trainer:
    """The loop around the loss: SGD by PyTorch, decay on matrices alone, an average of the parameters."""

    def __init__(self, model, case):
        self.model, self.case = model.train(), case
        decayed = [p for p in model.parameters() if p.ndim > 1]
        plain = [p for p in model.parameters() if p.ndim == 1]
        sgd = case["optimiser"]
        self.sgd = torch.optim.SGD(
            [{"params": decayed, "weight_decay": sgd["weight_decay"]}, {"params": plain, "weight_decay": 0.0}],
            lr=0.1,
            momentum=sgd["momentum"],
            nesterov=sgd["nesterov"],
        )
        self.average = {name: p.detach().clone() for name, p in model.named_parameters()}

    def restore(self, live, average, momentum):
        self.model.load_state_dict(live, strict=True)
        for name, p in self.model.named_parameters():
            self.average[name] = average[name]
            self.sgd.state[p]["momentum_buffer"] = momentum[name].clone(memory_format=torch.preserve_format)

    def step(self, batch, plan):
        """What the step came to, as numbers, and the logits that the plan was made on."""
        for group in self.sgd.param_groups:
            group["lr"] = plan["rate"]
        terms, mix, seen = losses(self.model, self.case, batch, plan)
        labelled, unlabelled, fair, distance = terms
        weight = {name: self.case[f"{name}_weight"] for name in ("unlabelled", "fairness", "logit", "mix")}
        total = labelled + weight["unlabelled"] * unlabelled + weight["mix"] * mix
        total = total + weight["fairness"] * fair + weight["logit"] * distance
        self.sgd.zero_grad()
        total.backward()
        limit = self.case["clip"]
        norm = nn.utils.clip_grad_norm_(self.model.parameters(), float("inf") if limit is None else limit)
        self.sgd.step()
        keep = self.case["ema_decay"]
        with torch.no_grad():
            for name, p in self.model.named_parameters():
                self.average[name] = keep * self.average[name] + (1 - keep) * p
        metrics = [labelled, unlabelled, fair, distance, mix, total, norm]
        return [float(metric.detach()) for metric in metrics], seen.detach()

    def momentum(self):
        return {name: self.sgd.state[p]["momentum_buffer"] for name, p in self.model.named_parameters()}
