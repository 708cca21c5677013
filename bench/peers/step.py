"""Training steps of SoftMatch with CalibrateMix in PyTorch, on tensors already in place:
`released|concat|joint|lean`.

What a user of PyTorch pays for the same work as calmix, without data loading:

- `released`: two passes over [x; u_weak; u_strong], the base loss counted twice, the mixup loss on a third batch: the
  cost of the code that the authors published.
- `concat`: [x; u_weak] without gradient, then one pass with it over [x; mixtures; u_weak; u_strong] (the paper's sentence).
- `joint`: one pass over [x; u_weak; u_strong], then one over the mixtures alone.
- `lean`: [x; u_weak] without gradient, then one pass with it over [x; mixtures; u_strong].

WRN-28-2, channels-last, bf16 by autocast, two threads.
"""

import sys

import torch
import torch.nn as nn
import torch.nn.functional as F

from worker import serve

STEPS = 4  # in a repetition
DEPTH, WIDTH, CLASSES, LABELLED, MU, THREADS = 28, 2, 10, 16, 7, 2


class Block(nn.Module):
    def __init__(self, cin, cout, stride, activate_shortcut):
        super().__init__()
        self.bn1 = nn.BatchNorm2d(cin, eps=1e-3, momentum=1e-3)
        self.conv1 = nn.Conv2d(cin, cout, 3, stride, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(cout, eps=1e-3, momentum=1e-3)
        self.conv2 = nn.Conv2d(cout, cout, 3, 1, 1, bias=False)
        self.shortcut = nn.Conv2d(cin, cout, 1, stride, 0, bias=False) if cin != cout else None
        self.activate_shortcut = activate_shortcut

    def forward(self, x):
        a = F.leaky_relu(self.bn1(x), 0.1, inplace=True)
        residual = x if self.shortcut is None else self.shortcut(a if self.activate_shortcut else x)
        return residual + self.conv2(F.leaky_relu(self.bn2(self.conv1(a)), 0.1, inplace=True))


class WideResNet(nn.Module):
    def __init__(self, depth, width, classes):
        super().__init__()
        n, chans = (depth - 4) // 6, [16, 16 * width, 32 * width, 64 * width]
        blocks = []
        for stage in range(3):
            for i in range(n):
                cin = chans[stage] if i == 0 else chans[stage + 1]
                stride = 2 if stage > 0 and i == 0 else 1
                blocks.append(Block(cin, chans[stage + 1], stride, stage == 0))
        self.stem = nn.Conv2d(3, 16, 3, 1, 1, bias=False)
        self.blocks = nn.Sequential(*blocks)
        self.bn = nn.BatchNorm2d(chans[3], eps=1e-3, momentum=1e-3)
        self.fc = nn.Linear(chans[3], classes)

    def forward(self, x):
        x = F.leaky_relu(self.bn(self.blocks(self.stem(x))), 0.1, inplace=True)
        feats = x.float().mean((2, 3))
        return self.fc(feats), feats


def channels_last(tensor):
    return tensor.contiguous(memory_format=torch.channels_last)


def margins(logits):
    top2 = logits.topk(2, dim=1)
    return top2.values[:, 0] - top2.values[:, 1], top2.indices[:, 0]


def pick(anchors, pool, feats_l, feats_u, k):
    sim = F.normalize(feats_l[anchors]) @ F.normalize(feats_u[pool]).T
    cand = sim.topk(max(1, min(k, sim.shape[1])), dim=1, largest=False).indices
    return pool[cand.gather(1, torch.randint(cand.shape[1], (cand.shape[0], 1))).squeeze(1)]


def weights(zu):
    conf = zu.softmax(1).max(1).values
    return torch.exp(-((conf - conf.mean()).clamp(max=0) ** 2) / (2 * conf.var() / 4 + 1e-8))


def soft_ce(logits, target):
    return -(target * F.log_softmax(logits, 1)).sum(1).mean()


class Training:
    def __init__(self, mode):
        self.mode = mode
        self.bl, self.bu = LABELLED, LABELLED * MU
        self.net = WideResNet(DEPTH, WIDTH, CLASSES).to(memory_format=torch.channels_last).train()
        self.ema = [p.detach().clone() for p in self.net.parameters()]
        self.opt = torch.optim.SGD(
            self.net.parameters(), lr=0.03, momentum=0.9, nesterov=True, weight_decay=5e-4
        )
        self.x, self.uw, self.us = (channels_last(torch.randn(n, 3, 32, 32)) for n in [self.bl, self.bu, self.bu])
        self.y = torch.randint(CLASSES, (self.bl,))

    def forward(self, *parts):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            logits, feats = self.net(channels_last(torch.cat(parts)))
        return logits.float(), feats.float()

    def plan(self, z, f):
        """The mixtures, their targets, and the pseudo-labels, by the outputs of the network for [x; u_weak]."""
        bl, y = self.bl, self.y
        zl, zu, fl, fu = z[:bl], z[bl : bl + self.bu], f[:bl], f[bl : bl + self.bu]
        ml = zl.gather(1, y[:, None]).squeeze(1) - zl.scatter(1, y[:, None], -1e9).max(1).values
        mu, pseudo = margins(zu)
        order_l, order_u = ml.argsort(), mu.argsort()
        lh, le = order_l[: len(order_l) // 2], order_l[len(order_l) // 2 :]
        uh, ue = order_u[: len(order_u) // 2], order_u[len(order_u) // 2 :]
        k = max(1, round(0.05 * len(uh)))
        a = torch.cat([le, lh])
        b = torch.cat([pick(le, uh, fl, fu, k), pick(lh, ue, fl, fu, k)])
        lam = torch.distributions.Beta(0.4, 0.4).sample()
        xm = lam * self.x[a] + (1 - lam) * self.uw[b]
        ym = lam * F.one_hot(y[a], CLASSES).float() + (1 - lam) * F.one_hot(pseudo[b], CLASSES).float()
        return channels_last(xm), ym, pseudo

    def base_loss(self, zl, zs, pseudo, weight):
        return F.cross_entropy(zl, self.y) + (F.cross_entropy(zs, pseudo, reduction="none") * weight).mean()

    def loss(self):
        bl, bu, x, uw, us = self.bl, self.bu, self.x, self.uw, self.us
        if self.mode in ("lean", "concat"):
            with torch.no_grad():
                z, f = self.forward(x, uw)
                xm, ym, pseudo = self.plan(z, f)
                w = weights(z[bl:])
            if self.mode == "concat":
                z2, _ = self.forward(x, xm, uw, us)
                base = self.base_loss(z2[:bl], z2[2 * bl + bu :], pseudo, w)
                return base + soft_ce(z2[bl : 2 * bl], ym)
            z2, _ = self.forward(x, xm, us)
            return self.base_loss(z2[:bl], z2[2 * bl :], pseudo, w) + soft_ce(z2[bl : 2 * bl], ym)
        z, f = self.forward(x, uw, us)
        zd = z.detach()
        xm, ym, pseudo = self.plan(zd, f.detach())
        loss = self.base_loss(z[:bl], z[bl + bu :], pseudo, weights(zd[bl : bl + bu]))
        if self.mode == "joint":
            return loss + soft_ce(self.forward(xm)[0], ym)
        z2, _ = self.forward(x, uw, us, xm)
        w2 = weights(z2.detach()[bl : bl + bu])
        loss = loss + self.base_loss(z2[:bl], z2[bl + bu : bl + 2 * bu], pseudo, w2)
        return loss + F.binary_cross_entropy_with_logits(z2[bl + 2 * bu :], ym)

    def step(self):
        self.opt.zero_grad(set_to_none=True)
        loss = self.loss()
        loss.backward()
        self.opt.step()
        with torch.no_grad():
            torch._foreach_mul_(self.ema, 0.999)
            torch._foreach_add_(self.ema, [p.detach() for p in self.net.parameters()], alpha=0.001)
        return loss.item()


def main():
    match sys.argv[1:]:
        case ["released" | "concat" | "joint" | "lean" as mode]:
            torch.set_num_threads(THREADS)
            torch.manual_seed(0)
            training = Training(mode)
            serve(lambda: [training.step() for _ in range(STEPS)])
        case other:
            sys.exit(f"the cases of step are `released|concat|joint|lean`, not {other}")


if __name__ == "__main__":
    main()
