class Block(nn.Module):
    def __init__(self, wide_in, wide_out, stride, reads):
        super().__init__()
        self.reads = reads
        self.bn1 = nn.BatchNorm2d(wide_in, eps=EPSILON)
        self.conv1 = nn.Conv2d(wide_in, wide_out, 3, stride, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(wide_out, eps=EPSILON)
        self.conv2 = nn.Conv2d(wide_out, wide_out, 3, 1, 1, bias=False)
        is_same = wide_in == wide_out and stride == 1
        self.convShortcut = None if is_same else nn.Conv2d(wide_in, wide_out, 1, stride, bias=False)

    def forward(self, x):
        activated = F.leaky_relu(self.bn1(x), 0.1)
        main = x if self.reads == "raw" else activated
        side = activated if self.reads == "activated" else x
        out = self.conv2(F.leaky_relu(self.bn2(self.conv1(main)), 0.1))
        return out + (x if self.convShortcut is None else self.convShortcut(side))


class Stage(nn.Module):
    def __init__(self, blocks):
        super().__init__()
        self.layer = nn.Sequential(*blocks)


class WideResNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 16, 3, 1, 1)
        wide = 16
        for stage in range(STAGES):
            blocks = []
            for n in range(BLOCKS):
                out = 16 * WIDTH * 2**stage
                stride = 2 if n == 0 and (stage > 0 or STAGES == 4) else 1
                first = "activated" if stage == 0 else FIRST_BLOCK
                blocks.append(Block(wide, out, stride, first if n == 0 and wide != out else "main"))
                wide = out
            setattr(self, f"block{stage + 1}", Stage(blocks))
        self.bn1 = nn.BatchNorm2d(wide, eps=EPSILON)
        self.fc = nn.Linear(wide, CLASSES)

    def forward(self, x):
        x = self.conv1(x)
        for stage in range(STAGES):
            x = getattr(self, f"block{stage + 1}").layer(x)
        return self.fc(F.leaky_relu(self.bn1(x), 0.1).mean((2, 3)))
