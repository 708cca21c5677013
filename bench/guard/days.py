"""Thirty days of Fashion-MNIST with a change on day 20: when `calmix monitor` raises its alarm, by the kind of the change.

    python bench/guard/days.py DATASETS/fashion-mnist CALMIX [DRAWS]

A head is trained on the pixels of 10,000 images with 25 labels per class. Each day has 200 other images. Prints a table in Markdown:
the day of the alarm (of 20 on, unless it was false), the first day on which the verdict of a day alone is not that the guarantees
apply, and on days 20 to 30 the error that is estimated without labels beside the true one.
"""

import gzip
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

DAYS = 30
CHANGE = 20
ROWS = 200
SIDE = 28


def read_idx(path, offset):
    opened = gzip.open(path) if path.suffix == ".gz" else open(path, "rb")
    with opened as file:
        return np.frombuffer(file.read(), dtype=np.uint8, offset=offset)


def load(folder):
    def file(name):
        [path] = [path for path in folder.glob(f"{name}*")]
        return path

    images = [read_idx(file(f"{part}-images"), 16).reshape(-1, SIDE, SIDE) for part in ("train", "t10k")]
    labels = [read_idx(file(f"{part}-labels"), 8) for part in ("train", "t10k")]
    return np.concatenate(images).astype(np.float32) / 255, np.concatenate(labels)


def blurred(images, _):
    padded = np.pad(images, ((0, 0), (1, 1), (1, 1)), mode="edge")
    return sum(padded[:, i : i + SIDE, j : j + SIDE] for i in range(3) for j in range(3)) / 9


def changes(rng):
    """For each kind, what becomes of the images of a day, and the weight of each class."""
    plain = np.ones(10)
    rare = 0.1 ** (rng.permutation(10) / 9)
    keep = lambda images, share: images
    noise = lambda images, share: np.clip(images + rng.normal(0, 0.1, images.shape), 0, 1).astype(np.float32)
    darker = lambda images, share: images * 0.8
    def foreign(images, share):
        turned = images.copy()
        rows = rng.uniform(size=len(images)) < share
        turned[rows] = np.rot90(images[rows], axes=(1, 2))
        return turned
    return {
        "none": (keep, plain, 0),
        "blur, 3 × 3": (blurred, plain, 1),
        "noise, σ = 0.1": (noise, plain, 1),
        "20% darker": (darker, plain, 1),
        "a fifth of the images turned": (foreign, plain, 0.2),
        "all images turned": (foreign, plain, 1),
        "mix of classes 1:10": (keep, rare, 0),
    }


def run(program, *arguments, codes=(0,)):
    ended = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, check=False)
    if ended.returncode not in codes:
        raise SystemExit(f"calmix {arguments}: {ended.returncode}\n{ended.stderr}")
    return ended


def simulate(program, images, labels, seed):
    """Returns for each kind the day of the alarm, the first day with another verdict, and both errors after the change."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(labels))
    train, rest = order[:10_000], order[10_000:]
    results = {}
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        np.save(folder / "train.npy", images[train].reshape(len(train), -1))
        chosen = np.concatenate([np.flatnonzero(labels[train] == label)[:25] for label in range(10)])
        lines = [str(labels[train[row]]) if row in set(chosen) else "" for row in range(len(train))]
        (folder / "labels.csv").write_text("label\n" + "\n".join(lines) + "\n")
        model = folder / "run"
        run(program, "train", "--features", folder / "train.npy", "--labels", folder / "labels.csv", "--run-dir", model,
            "--threads", 1, "--quiet")
        for kind, (change, weights, share) in changes(rng).items():
            outputs = []
            wrong = rows = 0
            for day in range(1, DAYS + 1):
                p = weights[labels[rest]] if day >= CHANGE else np.ones(len(rest))
                drawn = rng.choice(rest, ROWS, replace=False, p=p / p.sum())
                shown = change(images[drawn], share) if day >= CHANGE else images[drawn]
                np.save(folder / "day.npy", shown.reshape(ROWS, -1))
                output = folder / f"{len(results)}-{day}.csv"
                run(program, "predict", model, folder / "day.npy", "--out", output, "--threads", 1)
                outputs.append(output)
                if day >= CHANGE:
                    cells = [line.split(",")[1] for line in output.read_text().splitlines()[1:]]
                    wrong += sum(cell != str(label) for cell, label in zip(cells, labels[drawn]))
                    rows += ROWS
            page = ["--report", f"days-{seed}.html"] if kind == "blur, 3 × 3" else []
            found = json.loads(run(program, "monitor", model, *outputs, "--json", *page, codes=(0, 10)).stdout)
            batches = found["batches"]
            alone = [at for at, batch in enumerate(batches, 1) if batch["verdict"] != "applies"]
            estimated = np.mean([batch["estimated_error"] for batch in batches[CHANGE - 1 :]])
            results[kind] = (found["alarm"], alone[0] if alone else None, estimated, wrong / rows)
            print(seed, kind, results[kind], file=sys.stderr, flush=True)
    return results


def days(found):
    """Days in order, with a dash for none."""
    return ", ".join("–" if day is None else str(day) for day in sorted(found, key=lambda day: (day is None, day)))


def main(folder, program, draws):
    images, labels = load(Path(folder))
    runs = [simulate(program, images, labels, seed) for seed in range(draws)]
    print("| change on day 20 | day of the alarm | first other verdict of a day alone | estimated error | true error |")
    print("|---|---|---|---|---|")
    for kind in runs[0]:
        alarm, alone, estimated, true = zip(*(result[kind] for result in runs))
        print(f"| {kind} | {days(alarm)} | {days(alone)} | {100 * np.mean(estimated):.1f}% | {100 * np.mean(true):.1f}% |")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 5)
