"""Kills a `calmix predict` at 20 moments, resumes it, and compares the output: `killed.py FOLDER COMMAND`, with NumPy.

COMMAND is a calmix, such as `wine64 calmix.exe`. The file must have the bytes of an output in one piece.
"""

import os
import random
import shlex
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

ROWS, CLASSES, WIDTH, KILLS = 1_000_000, 5, 16, 20


def main():
    folder, command = Path(sys.argv[1]).resolve(), shlex.split(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    environment = os.environ | {"ORT_DISABLE_TELEMETRY": "1", "WINEDEBUG": "-all"}
    call = lambda *arguments: subprocess.run([*command, *arguments], cwd=folder, env=environment, check=True, capture_output=True)
    generator = np.random.default_rng(1)
    labels = np.arange(ROWS) % CLASSES
    vectors = generator.normal(size=(ROWS, WIDTH)).astype("f4")
    vectors[np.arange(ROWS), labels] += 2.5
    np.save(folder / "vectors.npy", vectors)
    np.save(folder / "few.npy", vectors[:500])
    (folder / "labels.csv").write_text("row,label\n" + "".join(f"{row},c{labels[row]}\n" for row in range(60)))
    call("train", "--features", "few.npy", "--labels", "labels.csv", "--run-dir", "run", "-q")
    began = time.monotonic()
    call("predict", "run", "vectors.npy", "--out", "whole.csv")
    whole = time.monotonic() - began
    moments, kills, tries = random.Random(3), 0, 0
    out = folder / "killed.csv"
    while kills < KILLS and tries < 10 * KILLS:
        tries += 1
        resume = ["--resume"] if out.exists() else []
        arguments = [*command, "predict", "run", "vectors.npy", "--out", out.name, *resume]
        process = subprocess.Popen(arguments, cwd=folder, env=environment, stderr=subprocess.DEVNULL, start_new_session=True)
        time.sleep(moments.uniform(0.02, 2 / KILLS) * whole)
        if process.poll() is None:
            # By the command line: under Wine the process that computes is not a child of this one.
            subprocess.run(["pkill", "-9", "-f", "predict run vectors.npy --out killed.csv"], check=False)
            process.wait()
            kills += 1
            print(f"kill {kills}: {out.stat().st_size if out.exists() else 0:,} bytes", flush=True)
    call("predict", "run", "vectors.npy", "--out", out.name, *(["--resume"] if out.exists() else []))
    is_same = out.read_bytes() == (folder / "whole.csv").read_bytes()
    print(f"{kills} kills; the output has {'the same bytes' if is_same else 'OTHER BYTES'} as one in one piece")
    sys.exit(not is_same)


if __name__ == "__main__":
    main()
