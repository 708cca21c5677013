"""Starts two commands of calmix at once on one output, ten times each: `together.py FOLDER COMMAND [WHAT…]`.

COMMAND is a calmix, such as `wine64 calmix.exe`; WHAT is `predict`, `resume`, `train` or `calibrate`, by default all. Needs NumPy.
One of the two may be refused, with a message; the output must have the bytes of a command that ran alone.
"""

import filecmp
import random
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

from killed import Calmix, differing, draw

TIMES = 10


def both(calmix, arguments, seconds):
    """Exit codes and last lines of two equal commands, the second of which starts some seconds after the first."""
    options = {"cwd": calmix.folder, "env": calmix.environment, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    first = subprocess.Popen([*calmix.command, *arguments], text=True, errors="replace", **options)
    time.sleep(seconds)
    second = subprocess.Popen([*calmix.command, *arguments], text=True, errors="replace", **options)
    texts = [process.communicate()[0] for process in (first, second)]
    return [(process.returncode, text) for process, text in zip((first, second), texts)]


def outcome(ended):
    """Whether both ended as they may, and how."""
    refusals = [text for code, text in ended if code != 0]
    is_right = len(refusals) < 2 and all("error: " in text and "panic" not in text for text in refusals)
    said = [next((line for line in text.splitlines() if line.startswith("error: ")), text[-200:]) for text in refusals]
    return is_right, "; ".join(said) or "both succeeded"


def predict(calmix, seconds, *options):
    out = calmix.folder / "together.csv"
    for file in calmix.folder.glob(out.name + "*"):
        file.unlink()
    if options:
        # An output that was begun, which both go on with.
        while not calmix.killed(random.Random(seconds).uniform(0.3, 0.8) * calmix.whole, "predict", "run", "vectors.npy", "--out", out.name):
            out.unlink(missing_ok=True)
        options = options if out.exists() else []
    right, said = outcome(both(calmix, ["predict", "run", "vectors.npy", "--out", out.name, *options], seconds))
    return right and filecmp.cmp(out, calmix.folder / "whole.csv", False), said


def train(calmix, seconds):
    run = calmix.folder / "together"
    shutil.rmtree(run, ignore_errors=True)
    arguments = ["train", "--features", "few.npy", "--labels", "labels.csv", "-q", "--run-dir", run.name]
    right, said = outcome(both(calmix, arguments, seconds))
    return right and not differing(run, calmix.folder / "run"), said


def calibrate(calmix, seconds):
    run = calmix.folder / "calibrated-by-two"
    shutil.rmtree(run, ignore_errors=True)
    shutil.copytree(calmix.folder / "run", run)
    right, said = outcome(both(calmix, ["calibrate", run.name, "--on", "new.npy", "--labels", "new.csv"], seconds))
    # The version before is that of the run, or the same one if both calibrated.
    return right and not set(differing(run, calmix.folder / "calibrated")) - {"model.previous.json"}, said


def main():
    folder, command = Path(sys.argv[1]).resolve(), shlex.split(sys.argv[2])
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    calmix = Calmix(folder, command)
    draw(folder)
    calmix("train", "--features", "few.npy", "--labels", "labels.csv", "--run-dir", "run", "-q")
    shutil.copytree(folder / "run", folder / "calibrated")
    calmix("calibrate", "calibrated", "--on", "new.npy", "--labels", "new.csv")
    calmix.whole = calmix("predict", "run", "vectors.npy", "--out", "whole.csv")
    checks = {"predict": predict, "resume": lambda *of: predict(*of, "--resume"), "train": train, "calibrate": calibrate}
    failed = False
    for what, check in checks.items():
        if what in (sys.argv[3:] or checks):
            for time_of in range(TIMES):
                # From the same moment to half a second apart.
                right, said = check(calmix, 0.05 * time_of)
                failed |= not right
                print(f"{what}, {0.05 * time_of:.2f} s apart: {'right' if right else 'WRONG'}: {said}", flush=True)
    sys.exit(failed)


if __name__ == "__main__":
    main()
