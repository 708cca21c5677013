"""Whether builds of calmix for several platforms compute the same bits: `same_bits.py FOLDER NAME=COMMAND…`, with NumPy.

Each command is a calmix, such as `linux=target/debug/calmix`, `arm64=qemu-aarch64 -L /usr/aarch64-linux-gnu CALMIX` or
`windows=wine64 calmix.exe`. Every one trains on the same drawn vectors, 16 and 700 numbers wide, and predicts them. Prints what
differs from the first, and ends with 1 if a label does.
"""

import csv
import filecmp
import os
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np

FILES = ["model.safetensors", "projection.safetensors", "result.json", "split.json"]
# Samples, classes, labels, width, distance of the classes.
CASES = {"narrow": (500, 5, 60, 16, 1.0), "wide": (1500, 10, 100, 700, 0.35)}


def draw(folder, name):
    samples, classes, labels, width, distance = CASES[name]
    generator = np.random.default_rng(5)
    labels_of = np.arange(samples) % classes
    centres = generator.normal(size=(classes, width))
    vectors = generator.normal(size=(samples, width)) + distance * centres[labels_of]
    np.save(folder / f"{name}.npy", vectors.astype("f4"))
    lines = [f"{row},c{labels_of[row]}\n" for row in range(labels)]
    (folder / f"{name}.csv").write_text("row,label\n" + "".join(lines))


def run(command, folder, *arguments):
    # Under an emulator a program cannot restart itself, as calmix does to set this variable.
    environment = os.environ | {"ORT_DISABLE_TELEMETRY": "1", "WINEDEBUG": "-all"}
    subprocess.run([*command, *arguments], cwd=folder, env=environment, check=True, capture_output=True)


def rows(file):
    with open(file, newline="") as lines:
        return list(csv.DictReader(lines))


def main():
    folder = Path(sys.argv[1]).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    programs = dict(argument.split("=", 1) for argument in sys.argv[2:])
    first = next(iter(programs))
    is_other_label = False
    for case in CASES:
        draw(folder, case)
        for name, command in programs.items():
            command, run_folder, out = shlex.split(command), f"{case}-{name}", f"{case}-{name}-out.csv"
            run(command, folder, "train", "--features", f"{case}.npy", "--labels", f"{case}.csv", "--run-dir", run_folder, "-q")
            run(command, folder, "predict", run_folder, f"{case}.npy", "--out", out)
            if name == first:
                continue
            differing = [file for file in FILES if not filecmp.cmp(folder / f"{case}-{first}" / file, folder / run_folder / file, False)]
            pairs = list(zip(rows(folder / f"{case}-{first}-out.csv"), rows(folder / out), strict=True))
            largest = max(abs(float(one["confidence"]) - float(other["confidence"])) for one, other in pairs)
            labels = sum(one["label"] != other["label"] for one, other in pairs)
            is_other_label |= labels > 0
            print(f"{case}, {name}: {', '.join(differing) or 'no file'} differs; confidence by {largest:.2g}, {labels} labels")
    sys.exit(is_other_label)


if __name__ == "__main__":
    main()
