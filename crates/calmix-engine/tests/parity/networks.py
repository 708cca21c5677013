"""The engine's networks once more, in PyTorch, under the names that files of this field have."""

import math

import torch
from torch import nn
from torch.nn import functional as F


def network(name, first_block, stride, classes):
    """The network of that name; `first_block` is `google` or `torch`, `stride` is `3x3` or `1x1`."""
    if name == "resnet50":
        return ResNet50(stride, classes)
    if name.startswith("tf_efficientnet_lite"):
        return EfficientNetLite(*LITE[int(name[-1])], classes)
    depth, width = (int(number) for number in name.removeprefix("wrn-").split("-"))
    return WideResNet(depth, width, first_block, classes)


def conv(channels_in, channels_out, side, stride, bias=False):
    return nn.Conv2d(channels_in, channels_out, side, stride=stride, padding=side // 2, bias=bias)


class WideBlock(nn.Module):
    """Pre-activation. `opening` says that this is the first block of the whole network."""

    def __init__(self, channels_in, channels_out, stride, opening, first_block):
        super().__init__()
        self.bn1 = nn.BatchNorm2d(channels_in, momentum=0.001, eps=1e-3)
        self.conv1 = conv(channels_in, channels_out, 3, stride)
        self.bn2 = nn.BatchNorm2d(channels_out, momentum=0.001, eps=1e-3)
        self.conv2 = conv(channels_out, channels_out, 3, 1)
        self.widens = channels_in != channels_out
        if self.widens or stride != 1:
            self.convShortcut = conv(channels_in, channels_out, 1, stride)
        self.opening = opening
        self.first_block = first_block

    def forward(self, x):
        active = F.leaky_relu(self.bn1(x), 0.1)
        main, side = active, x
        if self.widens and self.opening:
            side = active
        elif self.widens and self.first_block == "torch":
            main = x
        out = self.conv2(F.leaky_relu(self.bn2(self.conv1(main)), 0.1))
        return out + (self.convShortcut(side) if hasattr(self, "convShortcut") else side)


class WideStage(nn.Module):
    def __init__(self, blocks):
        super().__init__()
        self.layer = nn.Sequential(*blocks)

    def forward(self, x):
        return self.layer(x)


class WideResNet(nn.Module):
    """1 + 3·(2n + 1) layers at full size, or 1 + 4·(2n + 1) where the first stage halves it too."""

    def __init__(self, depth, width, first_block, classes):
        super().__init__()
        stages = 3 if (depth - 1) % 3 == 0 and (depth - 1) // 3 % 2 == 1 else 4
        blocks = ((depth - 1) // stages - 1) // 2
        self.conv1 = conv(3, 16, 3, 1, bias=True)
        self.stages = stages
        channels = 16
        for stage in range(stages):
            wide = 16 * width * 2**stage
            halves = stage > 0 or stages == 4
            built = []
            for n in range(blocks):
                stride = 2 if halves and n == 0 else 1
                built.append(WideBlock(channels, wide, stride, stage == 0 and n == 0, first_block))
                channels = wide
            self.add_module(f"block{stage + 1}", WideStage(built))
        self.bn1 = nn.BatchNorm2d(channels, momentum=0.001, eps=1e-3)
        self.fc = nn.Linear(channels, classes)

    def forward(self, x):
        x = self.conv1(x)
        for stage in range(self.stages):
            x = getattr(self, f"block{stage + 1}")(x)
        return self.fc(F.leaky_relu(self.bn1(x), 0.1).mean(dim=(2, 3)))


class Bottleneck(nn.Module):
    def __init__(self, channels_in, inner, stride, place):
        super().__init__()
        out = 4 * inner
        self.conv1 = conv(channels_in, inner, 1, stride if place == "1x1" else 1)
        self.bn1 = nn.BatchNorm2d(inner)
        self.conv2 = conv(inner, inner, 3, stride if place == "3x3" else 1)
        self.bn2 = nn.BatchNorm2d(inner)
        self.conv3 = conv(inner, out, 1, 1)
        self.bn3 = nn.BatchNorm2d(out)
        self.downsample = None
        if stride != 1 or channels_in != out:
            self.downsample = nn.Sequential(conv(channels_in, out, 1, stride), nn.BatchNorm2d(out))

    def forward(self, x):
        out = F.relu(self.bn1(self.conv1(x)))
        out = F.relu(self.bn2(self.conv2(out)))
        return F.relu(self.bn3(self.conv3(out)) + (x if self.downsample is None else self.downsample(x)))


class ResNet50(nn.Module):
    def __init__(self, stride, classes):
        super().__init__()
        self.conv1 = conv(3, 64, 7, 2)
        self.bn1 = nn.BatchNorm2d(64)
        channels = 64
        for stage, count in enumerate([3, 4, 6, 3]):
            inner = 64 * 2**stage
            blocks = []
            for n in range(count):
                blocks.append(Bottleneck(channels, inner, 2 if n == 0 and stage > 0 else 1, stride))
                channels = 4 * inner
            self.add_module(f"layer{stage + 1}", nn.Sequential(*blocks))
        self.fc = nn.Linear(channels, classes)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.bn1(self.conv1(x))), 3, stride=2, padding=1)
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(torch.flatten(F.adaptive_avg_pool2d(x, 1), 1))


# Width and depth of EfficientNet-Lite 0, 1, 2.
LITE = [(1.0, 1.0), (1.0, 1.1), (1.1, 1.2)]


class SameConv(nn.Conv2d):
    """TensorFlow's "same": the odd zero is below and to the right."""

    def forward(self, x):
        ends = []
        for size in (x.shape[3], x.shape[2]):
            stride, side = self.stride[0], self.kernel_size[0]
            zeros = max((math.ceil(size / stride) - 1) * stride + side - size, 0)
            ends += [zeros // 2, zeros - zeros // 2]
        return super().forward(F.pad(x, ends))


class InvertedResidual(nn.Module):
    def __init__(self, channels_in, expansion, side, stride, out):
        super().__init__()
        wide = channels_in * expansion
        self.widens = expansion != 1
        norm = lambda channels: nn.BatchNorm2d(channels, eps=1e-3)
        if self.widens:
            self.conv_pw = conv(channels_in, wide, 1, 1)
            self.bn1 = norm(wide)
        self.conv_dw = SameConv(wide, wide, side, stride=stride, groups=wide, bias=False)
        self.add_module("bn2" if self.widens else "bn1", norm(wide))
        self.add_module("conv_pwl" if self.widens else "conv_pw", conv(wide, out, 1, 1))
        self.add_module("bn3" if self.widens else "bn2", norm(out))
        self.adds = stride == 1 and channels_in == out

    def forward(self, x):
        if self.widens:
            wide = F.relu6(self.bn1(self.conv_pw(x)))
            out = self.bn3(self.conv_pwl(F.relu6(self.bn2(self.conv_dw(wide)))))
        else:
            out = self.bn2(self.conv_pw(F.relu6(self.bn1(self.conv_dw(x)))))
        return out + x if self.adds else out


class EfficientNetLite(nn.Module):
    def __init__(self, width, depth, classes):
        super().__init__()
        self.conv_stem = SameConv(3, 32, 3, stride=2, bias=False)
        self.bn1 = nn.BatchNorm2d(32, eps=1e-3)
        stages = [(3, 1, 16, 1), (3, 2, 24, 2), (5, 2, 40, 2), (3, 2, 80, 3), (5, 1, 112, 3), (5, 2, 192, 4), (3, 1, 320, 1)]
        channels, built = 32, []
        for stage, (side, stride, out, count) in enumerate(stages):
            rounded = max(8, int(out * width + 4) // 8 * 8)
            out = rounded + 8 if rounded < 0.9 * out * width else rounded
            count = count if stage in (0, 6) else math.ceil(count * depth)
            blocks = []
            for n in range(count):
                blocks.append(InvertedResidual(channels, 6 if stage else 1, side, stride if n == 0 else 1, out))
                channels = out
            built.append(nn.Sequential(*blocks))
        self.blocks = nn.Sequential(*built)
        self.conv_head = conv(channels, 1280, 1, 1)
        self.bn2 = nn.BatchNorm2d(1280, eps=1e-3)
        self.classifier = nn.Linear(1280, classes)

    def forward(self, x):
        x = self.blocks(F.relu6(self.bn1(self.conv_stem(x))))
        x = F.relu6(self.bn2(self.conv_head(x)))
        return self.classifier(x.mean(dim=(2, 3)))
