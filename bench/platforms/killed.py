"""Kills commands of calmix at 20 moments each, continues them, and compares what they write: `killed.py FOLDER COMMAND [WHAT…]`.

COMMAND is a calmix, such as `wine64 calmix.exe`; WHAT is `predict`, `train` or `calibrate`, by default all three. Needs NumPy. A
killed `predict --resume`, `resume` or repeated `calibrate` must end in the bytes of a command that nobody killed. On Windows
and under Wine a kill is TerminateProcess, elsewhere SIGKILL.
"""

import filecmp
import os
import random
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

ROWS, TRAINED, CLASSES, WIDTH, KILLS = 1_000_000, 20_000, 5, 16, 20
# What depends on the clock, or is of one process.
OTHERS = {"timing.jsonl", "calmix.lock"}


class Calmix:
    """A calmix, and how to kill it."""

    def __init__(self, folder, command):
        self.folder, self.command = folder, command
        self.environment = os.environ | {"ORT_DISABLE_TELEMETRY": "1", "WINEDEBUG": "-all"}

    def __call__(self, *arguments):
        began = time.monotonic()
        done = subprocess.run([*self.command, *arguments], cwd=self.folder, env=self.environment, capture_output=True, text=True)
        assert done.returncode == 0, f"{arguments} ended with {done.returncode}:\n{done.stdout}{done.stderr}"
        return time.monotonic() - began

    def killed(self, seconds, *arguments):
        """Whether the command was still running after this time; it is killed then."""
        options = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        process = subprocess.Popen([*self.command, *arguments], cwd=self.folder, env=self.environment, **options)
        time.sleep(seconds)
        if process.poll() is not None:
            return False
        if "wine" in self.command[0]:
            # The process that the system knows is that of Wine's loader; TerminateProcess names the one that Windows would have.
            taskkill = [self.command[0], "taskkill", "/f", "/im", Path(self.command[-1]).name]
            killed = subprocess.run(taskkill, env=self.environment, **options, check=False).returncode == 0
            process.wait()
            # It finds no process if the command ended by itself while `taskkill` started.
            return killed
        process.kill()
        return process.wait() != 0


def draw(folder):
    generator = np.random.default_rng(1)
    labels = np.arange(ROWS) % CLASSES
    vectors = generator.normal(size=(ROWS, WIDTH)).astype("f4")
    vectors[np.arange(ROWS), labels] += 2.5
    np.save(folder / "vectors.npy", vectors)
    np.save(folder / "few.npy", vectors[:TRAINED])
    np.save(folder / "new.npy", vectors[TRAINED : 2 * TRAINED])
    write = lambda name, rows: (folder / name).write_text("row,label\n" + "".join(f"{row},c{labels[row]}\n" for row in rows))
    write("labels.csv", range(100))
    # TRAINED is a multiple of the number of classes, so the rows of both files have the same classes.
    write("new.csv", range(2000))


def moments(kills, whole):
    """Times at which a command that takes `whole` is killed, until that happened `kills` times."""
    drawn = random.Random(3)
    for _ in range(10 * kills):
        yield drawn.uniform(0.05, 1) * whole


def differing(one, other):
    """The files that two folders do not have alike."""
    names = {str(path.relative_to(folder)) for folder in (one, other) for path in folder.rglob("*") if path.is_file()}
    named = sorted(name for name in names if Path(name).name not in OTHERS)
    return [name for name in named if not (one / name).is_file() or not (other / name).is_file() or not filecmp.cmp(one / name, other / name, False)]


def predict(calmix):
    folder, out = calmix.folder, calmix.folder / "killed.csv"
    whole = calmix("predict", "run", "vectors.npy", "--out", "whole.csv")
    kills = 0
    for seconds in moments(KILLS, whole):
        resume = ["--resume"] if out.exists() else []
        # Each goes on from the one before, so a tenth of the time lets all kills fall into one output.
        if calmix.killed(seconds / 10, "predict", "run", "vectors.npy", "--out", out.name, *resume):
            kills += 1
            print(f"predict, kill {kills}: {out.stat().st_size if out.exists() else 0:,} bytes", flush=True)
        if kills == KILLS:
            break
    calmix("predict", "run", "vectors.npy", "--out", out.name, *(["--resume"] if out.exists() else []))
    return kills, [] if filecmp.cmp(out, folder / "whole.csv", False) else [out.name]


def train(calmix):
    folder = calmix.folder
    arguments = ["train", "--features", "few.npy", "--labels", "labels.csv", "-q", "--run-dir"]
    whole = calmix(*arguments, "whole")
    kills, others = 0, set()
    for seconds in moments(KILLS, whole):
        run = folder / "killed"
        shutil.rmtree(run, ignore_errors=True)
        if not calmix.killed(seconds, *arguments, run.name):
            continue
        kills += 1
        is_begun = (run / "recipe.toml").exists()
        print(f"train, kill {kills} after {seconds:.2f} of {whole:.2f} s: {'resumed' if is_begun else 'begun again'}", flush=True)
        if is_begun:
            calmix("resume", run.name, "-q")
        else:
            calmix(*arguments, run.name)
        others.update(differing(run, folder / "whole"))
        if kills == KILLS:
            break
    return kills, sorted(others)


def calibrate(calmix):
    folder = calmix.folder
    arguments = ["calibrate", "--on", "new.npy", "--labels", "new.csv"]
    shutil.copytree(folder / "run", folder / "calibrated")
    whole = calmix(arguments[0], "calibrated", *arguments[1:])
    kills, others = 0, set()
    for seconds in moments(KILLS, whole):
        run = folder / "recalibrated"
        shutil.rmtree(run, ignore_errors=True)
        shutil.copytree(folder / "run", run)
        if not calmix.killed(seconds, arguments[0], run.name, *arguments[1:]):
            continue
        kills += 1
        # Between kill and repetition the run must still answer.
        calmix("inspect", run.name)
        calmix(arguments[0], run.name, *arguments[1:])
        # The version before is kept: that of the run, or the same one if the kill came after it was written.
        others.update(set(differing(run, folder / "calibrated")) - {"model.previous.json"})
        print(f"calibrate, kill {kills} after {seconds:.2f} of {whole:.2f} s", flush=True)
        if kills == KILLS:
            break
    return kills, sorted(others)


def main():
    folder, command = Path(sys.argv[1]).resolve(), shlex.split(sys.argv[2])
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    calmix = Calmix(folder, command)
    draw(folder)
    calmix("train", "--features", "few.npy", "--labels", "labels.csv", "--run-dir", "run", "-q")
    chosen = sys.argv[3:] or ["predict", "train", "calibrate"]
    failed = False
    for what, check in {"predict": predict, "train": train, "calibrate": calibrate}.items():
        if what in chosen:
            kills, others = check(calmix)
            print(f"{what}: {kills} kills; {'the same bytes' if not others else f'OTHER BYTES in {others}'} as without", flush=True)
            failed |= bool(others) or kills < KILLS
    sys.exit(failed)


if __name__ == "__main__":
    main()
