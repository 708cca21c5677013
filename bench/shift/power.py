"""Which verdict a model gives: `power.py FOLDER DRAWS`, with NumPy, onnxruntime and the package calmix. `$CALMIX` is the program.

FOLDER has vectors: `train.npy` with `train-labels.npy`, `clean.npy` with `clean-labels.npy` (new samples like those of training), and any other
`KIND.npy` of strange samples. A run is trained on 25 labels per class and the other training vectors without labels. Each cell is the share of
DRAWS batches with each verdict: all rows clean, all of one kind, 5% or 20% of one kind, or clean in a random mix of 1:10.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

CALMIX = os.environ.get("CALMIX", "calmix")
PER_CLASS = 25
SIZES = [50, 200, 1000]


def calmix(*arguments, folder):
    return subprocess.run([CALMIX, *map(str, arguments)], cwd=folder, check=True, capture_output=True, text=True).stdout


def train(source, folder):
    from calmix import Model

    vectors, labels = np.load(source / "train.npy"), np.load(source / "train-labels.npy")
    rng = np.random.default_rng(0)
    rows = np.concatenate([rng.permutation(np.flatnonzero(labels == k))[:PER_CLASS] for k in np.unique(labels)])
    np.save(folder / "train.npy", vectors)
    (folder / "labels.csv").write_text("id,label\n" + "".join(f"{row},{labels[row]}\n" for row in sorted(rows)))
    calmix("train", "--features", "train.npy", "--labels", "labels.csv", "--run-dir", "run", "--quiet",
           "--set", "evaluate.bootstrap=0", folder=folder)
    calmix("export", "run", "--to", "model", folder=folder)
    return Model(folder / "model", threads=1)


def mix_rows(labels, n, rng):
    """Rows of a random mix of 1:10."""
    present = np.unique(labels)
    share = 10.0 ** (-rng.permutation(len(present)) / (len(present) - 1))
    counts = rng.multinomial(n, share / share.sum())
    return np.concatenate([rng.choice(np.flatnonzero(labels == k), c) for k, c in zip(present, counts)])


def batches_of(source):
    """For each kind of batch, a function of the number of rows and a generator that draws one."""
    clean, labels = np.load(source / "clean.npy"), np.load(source / "clean-labels.npy")
    known = {"train", "train-labels", "clean", "clean-labels"}
    kinds = {path.stem: np.load(path) for path in sorted(source.glob("*.npy")) if path.stem not in known}
    batches = {"clean": lambda n, rng: clean[rng.choice(len(clean), n, False)],
               "mix of 1:10": lambda n, rng: clean[mix_rows(labels, n, rng)]}
    for kind, rows in kinds.items():
        for share in [0.05, 0.2, 1.0]:
            def batch(n, rng, rows=rows, share=share):
                strange = int(round(share * n))
                return np.concatenate([rows[rng.choice(len(rows), strange, strange > len(rows))],
                                       clean[rng.choice(len(clean), n - strange, False)]])
            batches[f"{kind}, {share:.0%}"] = batch
    return batches


def main():
    source, draws = Path(sys.argv[1]), int(sys.argv[2])
    batches = batches_of(source)
    print("| batch | rows | applies | mix differs | void |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        model = train(source, Path(folder))
        for name, batch in batches.items():
            for n in SIZES:
                found = []
                for draw in range(draws):
                    rows = batch(n, np.random.default_rng([draw, n])).astype(np.float32)
                    found.append(model.predict(rows, batch=len(rows)).verdict.verdict)
                shares = [np.mean([verdict == word for verdict in found]) for word in ["applies", "mix-differs", "void"]]
                print(f"| {name} | {n:,} | " + " | ".join(f"{share:.2f}" for share in shares) + " |", flush=True)


if __name__ == "__main__":
    main()
