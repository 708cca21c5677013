"""Starts `calmix-torch` with the libtorch of the installed PyTorch."""

import importlib.util
import os
import re
import signal
import sys
from pathlib import Path

TORCH = "2.13.0"


def main():
    """Replaces this process by the program; returns only if there is no PyTorch for it."""
    try:
        libraries = torch_folder() / "lib"
    except LookupError as error:
        has_pip = importlib.util.find_spec("pip") is not None
        install = f"{sys.executable} -m pip install" if has_pip else f"uv pip install --python {sys.executable}"
        print(f"error: {error}\ntry: {install} torch=={TORCH}", file=sys.stderr)
        # What calmix ends with if the same command would fail again.
        return 2
    program = Path(__file__).parent / "calmix-torch"
    named = os.environ.get("LD_LIBRARY_PATH")
    beside = program.resolve().parent.parent / "torch" / "lib"
    # The program looks into the folder `torch` beside its own, but after those that this variable names.
    if named or libraries.resolve() != beside.resolve():
        os.environ["LD_LIBRARY_PATH"] = f"{libraries}:{named}" if named else str(libraries)
    # Python ignores these, and what is ignored stays so in the program.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    os.execv(program, [str(program), *sys.argv[1:]])


def torch_folder():
    """Finds PyTorch without importing it, which would take seconds."""
    needs = f"calmix-torch needs PyTorch {TORCH}"
    package = importlib.util.find_spec("torch")
    if package is None or package.origin is None:
        raise LookupError(f"{needs}, which is not installed for {sys.executable}")
    folder = Path(package.origin).parent
    try:
        text = (folder / "version.py").read_text(encoding="utf-8")
    except OSError:
        text = ""
    # The part after `+` says for which processors it was built.
    version = re.search(r"^__version__ = ['\"]([^'\"+]+)", text, re.MULTILINE)
    if version is None:
        raise LookupError(f"{needs}, and {folder} does not state its version")
    if version[1] != TORCH:
        raise LookupError(f"{needs}, and {folder} is PyTorch {version[1]}")
    return folder
