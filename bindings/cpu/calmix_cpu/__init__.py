"""Starts `calmix-torch` with the libtorch in this package and the two libraries of NVIDIA's that it is linked with."""

import importlib.util
import os
import signal
import sys
from pathlib import Path

NVIDIA = {"libcudart.so.13": "nvidia-cuda-runtime", "libcupti.so.13": "nvidia-cuda-cupti"}


def main():
    """Replaces this process by the program; returns only if a library is missing."""
    package = Path(__file__).parent
    program = package / "calmix-torch"
    folders = nvidia_folders()
    for library, distribution in NVIDIA.items():
        if not any((folder / library).exists() for folder in folders):
            has_pip = importlib.util.find_spec("pip") is not None
            install = f"{sys.executable} -m pip install" if has_pip else f"uv pip install --python {sys.executable}"
            needs = f"calmix-torch needs {library}, which is not installed for {sys.executable}"
            print(f'error: {needs}\ntry: {install} "{distribution}>=13.0,<13.1"', file=sys.stderr)
            # What calmix ends with if the same command would fail again.
            return 2
    named = os.environ.get("LD_LIBRARY_PATH")
    beside = package.parent / "nvidia" / "cu13" / "lib"
    is_beside = all((beside / library).exists() for library in NVIDIA)
    # The libraries name the folders where pip puts them, relative to their real place. What this variable names comes first.
    if named or program.is_symlink() or not is_beside:
        places = [package / "lib", *folders, *([named] if named else [])]
        os.environ["LD_LIBRARY_PATH"] = ":".join(map(str, places))
    # Python ignores these, and what is ignored stays so in the program.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    os.execv(program, [str(program), *sys.argv[1:]])


def nvidia_folders():
    """The folders of NVIDIA's libraries: in more than one place if environments build on each other."""
    package = importlib.util.find_spec("nvidia")
    places = (package.submodule_search_locations if package else None) or []
    return [Path(place) / "cu13" / "lib" for place in places]
