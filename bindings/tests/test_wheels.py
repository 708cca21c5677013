"""Installs the built wheels into new environments, as users would, and runs them: `cargo xtask wheels test`.

CALMIX_DIST is the folder of the wheels, CALMIX_PYTORCH an interpreter whose environment has PyTorch 2.13.0, and
CALMIX_CARGO_BUILD a folder with `calmix` and `calmix-torch` as cargo builds them, whose models and exit codes must be the same.
"""

import csv
import hashlib
import io
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import zipfile
from pathlib import Path

from mach_o import MAGIC, MachO
from photographs import write_photographs

if "CALMIX_DIST" not in os.environ:
    raise unittest.SkipTest("CALMIX_DIST is not set: `cargo xtask wheels test` sets it")

DIST = Path(os.environ["CALMIX_DIST"])
TOOLS = Path(sys.executable).parent
MEGABYTE = 1_000_000
# Twenty steps of the smallest recipe. One thread and two micro-batches: the same bits with one process and with two.
TRAINING = ["train", "cpu-folder", "--set", "train.steps=20", "--set", "train.threads=1", "--set", "train.micro_batches=2"]
# As docs/reference/exit-codes.md has them.
EXIT_CODES = {
    ("--version",): 0,
    ("recipes",): 0,
    ("train", "--data", "nowhere"): 2,
    ("train", "no-such-recipe", "--data", "photos"): 2,
    ("predict", "nowhere", "photos"): 2,
    ("train", "--no-such-option"): 2,
}


# The files that differ between the wheels of the library.
PLATFORMS = {
    "manylinux_2_28_x86_64": ("calmix/_calmix.abi3.so", "calmix", b"\x7fELF"),
    "manylinux_2_28_aarch64": ("calmix/_calmix.abi3.so", "calmix", b"\x7fELF"),
    "win_amd64": ("calmix/_calmix.pyd", "calmix.exe", b"MZ"),
    "macosx_11_0_arm64": ("calmix/_calmix.abi3.so", "calmix", MAGIC),
    "macosx_10_12_x86_64": ("calmix/_calmix.abi3.so", "calmix", MAGIC),
}


def wheel(name):
    """The one wheel of a distribution for Linux on x86-64."""
    named = DIST.glob(f"{name.replace('-', '_')}-[0-9]*.whl")
    found = [path for path in named if re.search("-manylinux_[0-9_]+_x86_64|-any", path.name)]
    assert len(found) == 1, f"{DIST} has {len(found)} wheels of {name}"
    return found[0]


def built():
    """All wheels with compiled code: the library's for each platform, which need not all be there, and the other two."""
    return [*DIST.glob("calmix-[0-9]*.whl"), wheel("calmix-cpu"), wheel("calmix-torch")]


def run(command, code=0, **options):
    """Runs a command and checks how it ends; returns what it printed."""
    command = [str(part) for part in command]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, **options)
    printed = done.stdout + done.stderr
    assert done.returncode == code, f"{command} ended with {done.returncode}, not {code}:\n{printed}"
    return printed


def interpreter(version):
    """A Python of this version, if there is one."""
    done = subprocess.run([TOOLS / "uv", "python", "find", "--no-python-downloads", version], capture_output=True, text=True)
    if done.returncode != 0:
        raise unittest.SkipTest(f"there is no Python {version} on the PATH")
    return done.stdout.strip()


class Environment:
    """A virtual environment with wheels in it."""

    def __init__(self, folder, version, requirements, *, options=(), packages=None):
        run([interpreter(version), "-m", "venv", folder])
        self.programs = folder / "bin"
        (self.packages,) = folder.glob("lib/python*/site-packages")
        if packages is not None:
            (self.packages / "more.pth").write_text(f"{packages}\n")
        began = time.monotonic()
        pip = [self.programs / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        run([*pip, "--find-links", DIST, *options, *requirements])
        print(f"{' '.join(requirements)} for Python {version}: {time.monotonic() - began:.1f} s", file=sys.stderr)

    def program(self, name):
        return self.programs / name


class Place(unittest.TestCase):
    """A temporary folder with photographs in `photos`."""

    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(prefix="calmix-wheels-"))
        self.addCleanup(shutil.rmtree, self.folder)
        write_photographs(self.folder / "photos")

    def train(self, program, *more, launcher=(), name="run", **options):
        """Trains and returns the hash of the model."""
        run_folder = self.folder / "runs" / name
        data = ["--data", self.folder / "photos", "--run-dir", run_folder]
        run([*launcher, program, *TRAINING, *data, *more], cwd=self.folder, **options)
        return hashlib.sha256((run_folder / "model.safetensors").read_bytes()).hexdigest()

    def reference(self):
        """The hash of the model that cargo's build trains."""
        if "CALMIX_CARGO_BUILD" not in os.environ:
            self.skipTest("CALMIX_CARGO_BUILD is not set")
        return self.train(Path(os.environ["CALMIX_CARGO_BUILD"]) / "calmix", name="reference")

    def stopped(self, program, sent, *more):
        """The exit code of a training that a signal to its process group stops."""
        run_folder = self.folder / "runs" / f"stopped-{sent}-{len(more)}"
        data = ["--data", self.folder / "photos", "--run-dir", run_folder, "--set", "train.steps=100000"]
        command = [str(part) for part in [program, *TRAINING, *data, *more]]
        with open(self.folder / "log", "w+") as log:
            child = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True, cwd=self.folder)
            until = time.monotonic() + 120
            while not (run_folder / "events.jsonl").exists() or not (run_folder / "events.jsonl").stat().st_size:
                assert child.poll() is None and time.monotonic() < until, (self.folder / "log").read_text()
                time.sleep(0.2)
            os.killpg(child.pid, sent)
            return child.wait(timeout=120)


class Files(unittest.TestCase):
    """What is in the wheels, without installing them."""

    def test_sizes_are_below_their_bars(self):
        names = ["calmix", "calmix-cpu", "calmix-torch", "calmix-weights"]
        sizes = {name: wheel(name).stat().st_size / MEGABYTE for name in names}
        print({name: f"{size:.1f} MB" for name, size in sizes.items()}, file=sys.stderr)
        self.assertLess(sizes["calmix"], 12)
        self.assertLess(sizes["calmix-cpu"], 140)
        self.assertLess(sizes["calmix-torch"], 20)
        self.assertLess(sizes["calmix-weights"], 32)

    def test_tag_is_what_auditwheel_finds(self):
        for name, glibc in {"calmix": 28, "calmix-cpu": 34, "calmix-torch": 34}.items():
            shown = run([TOOLS / "auditwheel", "show", wheel(name)])
            # That libraries come from other wheels makes the whole "linux_x86_64", as PyTorch's own; versions of symbols decide.
            allowed = re.search(r'constrains the platform tag\s+to\s+"manylinux_2_(\d+)_x86_64"', shown)
            self.assertLessEqual(int(allowed[1]), glibc, shown)
            self.assertIn(f"-manylinux_2_{glibc}_x86_64.", wheel(name).name)

    def test_no_path_of_the_build_is_inside(self):
        for path in built():
            with zipfile.ZipFile(path) as archive:
                for entry in archive.namelist():
                    # PyTorch's own files are as they were.
                    if "/lib/lib" in entry and not entry.endswith("/libtorch.so"):
                        continue
                    content = archive.read(entry)
                    own = [str(Path.home()), str(Path(__file__).resolve().parents[2]), "/.cargo/", "/site-packages/torch/"]
                    for folder in own:
                        self.assertFalse(folder.encode() in content, f"{folder} in {entry} of {path.name}")

    def test_each_platform_has_its_own_files(self):
        version = wheel("calmix").name.split("-")[1]
        for path in DIST.glob("calmix-[0-9]*.whl"):
            module, program, magic = PLATFORMS[path.stem.split("-")[-1]]
            with zipfile.ZipFile(path) as archive:
                compiled = {entry for entry in archive.namelist() if archive.read(entry).startswith(magic)}
                self.assertEqual(compiled, {module, f"calmix-{version}.data/scripts/{program}"}, path.name)
                self.assertIn(b"PyInit__calmix", archive.read(module), path.name)

    def test_executables_keep_their_mode_and_times_are_fixed(self):
        executables = {"calmix": ".data/scripts/calmix", "calmix-cpu": "/calmix-torch", "calmix-torch": "/calmix-torch"}
        for name, ending in executables.items():
            with zipfile.ZipFile(wheel(name)) as archive:
                (program,) = [info for info in archive.infolist() if info.filename.endswith(ending)]
                self.assertEqual(program.external_attr >> 16 & 0o777, 0o755, name)
                self.assertEqual({info.date_time for info in archive.infolist()}, {(1980, 1, 1, 0, 0, 0)}, name)

    def test_macs_accept_the_files(self):
        system = ["/usr/lib/lib", "/System/Library/Frameworks/"]
        for path in DIST.glob("calmix-[0-9]*-macosx_*.whl"):
            oldest = re.search(r"macosx_(\d+_\d+)_", path.name)[1].replace("_", ".")
            module, program, _ = PLATFORMS[path.stem.split("-")[-1]]
            with zipfile.ZipFile(path) as archive:
                for entry in [entry for entry in archive.namelist() if entry.endswith((module, f"/scripts/{program}"))]:
                    file = MachO(archive.read(entry))
                    self.assertEqual(file.minimum, oldest, entry)
                    self.assertTrue(file.is_signed or "arm64" not in path.name, f"{entry} of {path.name}")
                    # The first of a library may be its own name.
                    others = [name for name in file.libraries if not any(name.startswith(folder) for folder in system)]
                    self.assertEqual(others, [], f"{entry} of {path.name}")

    def test_record_has_every_hash(self):
        for path in built():
            with zipfile.ZipFile(path) as archive:
                (record,) = [entry for entry in archive.namelist() if entry.endswith(".dist-info/RECORD")]
                rows = list(csv.reader(io.StringIO(archive.read(record).decode())))
                self.assertEqual(sorted(row[0] for row in rows), sorted(archive.namelist()))
                self.assertEqual([row[0] for row in rows if not row[1]], [record])

    def test_extras_are_of_the_same_version(self):
        version = wheel("calmix").name.split("-")[1]
        with zipfile.ZipFile(wheel("calmix")) as archive:
            metadata = archive.read(f"calmix-{version}.dist-info/METADATA").decode()
        for extra in ["cpu", "torch"]:
            self.assertRegex(metadata, rf"(?m)^Requires-Dist: calmix-{extra}=={re.escape(version)} ?; extra == ['\"]{extra}['\"]$")
            self.assertEqual(wheel(f"calmix-{extra}").name.split("-")[1], version)

    def test_licences_of_calmix_are_in_every_wheel(self):
        for name in ["calmix", "calmix-cpu", "calmix-torch"]:
            with zipfile.ZipFile(wheel(name)) as archive:
                (metadata,) = [entry for entry in archive.namelist() if entry.endswith(".dist-info/METADATA")]
                licences = metadata.replace("METADATA", "licenses")
                fields = archive.read(metadata).decode().split("\n\n")[0].splitlines()
                for licence in ["LICENSE-MIT", "LICENSE-APACHE"]:
                    own = (Path(__file__).resolve().parents[2] / licence).read_bytes()
                    self.assertEqual(archive.read(f"{licences}/{licence}"), own, name)
                    self.assertIn(f"License-File: {licence}", fields, name)
                self.assertIn("License-File: rust-crates.txt", fields, name)

    def test_weights_are_data_with_their_licences(self):
        self.assertTrue(wheel("calmix-weights").name.endswith("-py3-none-any.whl"))
        with zipfile.ZipFile(wheel("calmix-weights")) as archive:
            files = {entry for entry in archive.namelist() if ".dist-info/" not in entry}
            licences = {entry.split("/licenses/")[1] for entry in archive.namelist() if "/licenses/" in entry}
        names = ["tf_efficientnet_lite0", "tf_efficientnet_lite2"]
        expected = {f"calmix_weights/{name}/{file}" for name in names for file in ["model.safetensors", "config.json", "LICENSE"]}
        self.assertEqual(files, expected | {"calmix_weights/__init__.py"})
        self.assertEqual(licences, {"LICENSE-APACHE"} | {f"{name}/LICENSE" for name in names})

    def test_licences_travel_with_the_libraries(self):
        with zipfile.ZipFile(wheel("calmix-cpu")) as archive:
            licences = {entry.split("/licenses/")[1] for entry in archive.namelist() if "/licenses/" in entry}
        expected = {"NOTICE", "LICENSE-MIT", "LICENSE-APACHE", "rust-crates.txt", "gpl-3.0.txt", "gcc-exception-3.1.txt"}
        expected |= {"intel-simplified-software-license.txt", "intel-mkl-third-party-programs.txt", "pytorch/LICENSE"}
        self.assertLessEqual(expected, licences)


class Images(Place):
    """`calmix[images]`: from an empty environment to answers about photographs, without libtorch and without a step between."""

    def check(self, calmix, **options):
        """Trains on 300 photographs and predicts; returns what the training printed."""
        write_photographs(self.folder / "photos", labelled=20, unlabelled=240)
        isolated = {**os.environ, "CALMIX_WEIGHTS": str(self.folder / "none"), **options}
        began = time.monotonic()
        printed = run([calmix, "train", "--data", "photos"], cwd=self.folder, env=isolated)
        trained = time.monotonic()
        predicted = run([calmix, "predict", "runs/head-folder-1", "photos/unlabelled"], cwd=self.folder, env=isolated)
        print(f"trained in {trained - began:.1f} s, predicted in {time.monotonic() - trained:.1f} s", file=sys.stderr)
        self.assertEqual(predicted.count("unlabelled/"), 240)
        self.assertIn("recipe head-folder, since you have pretrained weights", printed)
        self.assertIn("weights tf_efficientnet_lite2 at 224 pixels", printed)

    def test_python_3_13(self):
        environment = Environment(self.folder / "env", "3.13", ["calmix[images]"])
        self.check(environment.program("calmix"))
        listed = run([environment.program("calmix"), "weights", "list"])
        self.assertIn("site-packages/calmix_weights/tf_efficientnet_lite0/model.safetensors", listed)

    def test_onnx_is_the_same_extra(self):
        environment = Environment(self.folder / "env", "3.10", ["calmix[onnx]"])
        self.assertTrue((environment.packages / "calmix_weights").is_dir())
        self.assertTrue((environment.packages / "onnxruntime").is_dir())

    def test_uv_tool(self):
        folders = {"UV_TOOL_DIR": str(self.folder / "tools"), "UV_TOOL_BIN_DIR": str(self.folder / "bin")}
        install = [TOOLS / "uv", "tool", "install", "--quiet", "--find-links", DIST, "--python", interpreter("3.13")]
        run([*install, "calmix[images]"], env={**os.environ, **folders})
        self.check(self.folder / "bin/calmix")

    def test_download_is_below_its_bar(self):
        download = [interpreter("3.13"), "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
        run([*download, "--find-links", DIST, "--dest", self.folder / "files", "calmix[images]"])
        sizes = {path.name: path.stat().st_size / MEGABYTE for path in (self.folder / "files").iterdir()}
        print({name: f"{size:.1f} MB" for name, size in sizes.items()}, f"{sum(sizes.values()):.1f} MB", file=sys.stderr)
        self.assertLess(sum(sizes.values()), 90, sizes)


class Cpu(Place):
    """`calmix[cpu]` in the oldest and the newest Python."""

    def check(self, version):
        environment = Environment(self.folder / "env", version, ["calmix[cpu]"])
        calmix = environment.program("calmix")
        self.assertEqual(run([calmix, "--version"]), run([environment.program("calmix-torch"), "--version"]))
        own = self.train(calmix)
        # What a user's variable names does not replace the libraries of the package.
        wrong = self.folder / "wrong"
        wrong.mkdir()
        (wrong / "libtorch_cpu.so").write_bytes(b"not a library")
        variable = {**os.environ, "LD_LIBRARY_PATH": str(wrong)}
        self.assertEqual(self.train(calmix, name="variable", env=variable), own)
        self.assertEqual(self.train(calmix, "--processes", "2", name="two"), own)
        self.assertEqual(self.stopped(calmix, signal.SIGINT), 130)
        self.assertEqual(self.stopped(calmix, signal.SIGINT, "--processes", "2"), 130)
        self.assertEqual(self.stopped(calmix, signal.SIGTERM), 75)
        for arguments, code in EXIT_CODES.items():
            run([calmix, *arguments], code=code, cwd=self.folder)
        self.assertEqual(own, self.reference())

    def test_python_3_10(self):
        self.check("3.10")

    def test_python_3_13(self):
        self.check("3.13")

    def test_download_is_below_its_bar(self):
        download = [interpreter("3.13"), "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
        run([*download, "--find-links", DIST, "--dest", self.folder / "files", "calmix[cpu]"])
        sizes = {path.name: path.stat().st_size / MEGABYTE for path in (self.folder / "files").iterdir()}
        print({name: f"{size:.1f} MB" for name, size in sizes.items()}, file=sys.stderr)
        self.assertLess(sum(sizes.values()), 160, sizes)

    def test_libraries_of_nvidia_in_another_place(self):
        whole = Environment(self.folder / "whole", "3.13", ["calmix[cpu]"])
        alone = Environment(self.folder / "alone", "3.13", ["calmix", "calmix-cpu"], options=["--no-deps"])
        doctor = [alone.program("calmix-torch"), "--version"]
        said = run(doctor, code=2)
        self.assertRegex(said, r"^error: calmix-torch needs libcudart\.so\.13, which is not installed")
        self.assertRegex(said, r'\ntry: \S+/python\S* -m pip install "nvidia-cuda-runtime>=13\.0,<13\.1"\n$')
        run(doctor, env={**os.environ, "PYTHONPATH": str(whole.packages)})


class Torch(Place):
    """`calmix[torch]` with a PyTorch beside it, elsewhere, of another version and without one."""

    def pytorch(self):
        """The packages of an environment that has PyTorch."""
        python = os.environ["CALMIX_PYTORCH"]
        found = run([python, "-c", "import importlib.util; print(importlib.util.find_spec('torch').origin)"])
        return Path(found.strip()).parent.parent

    def fake(self, version):
        """A folder with a package torch of this version that has the libraries of the real one."""
        folder = self.folder / f"torch-{version}"
        (folder / "torch").mkdir(parents=True)
        (folder / "torch/__init__.py").write_text("raise ImportError('the launcher must not import it')\n")
        (folder / "torch/version.py").write_text(f"__version__ = '{version}'\n")
        (folder / "torch/lib").symlink_to(self.pytorch() / "torch/lib")
        return {**os.environ, "PYTHONPATH": str(folder)}

    def test_torch_elsewhere(self):
        environment = Environment(self.folder / "env", "3.11", ["calmix[torch]"], packages=self.pytorch())
        calmix = environment.program("calmix")
        own = self.train(calmix)
        self.assertEqual(self.train(calmix, "--processes", "2", name="two"), own)
        torchrun = [Path(os.environ["CALMIX_PYTORCH"]).parent / "torchrun", "--no-python", "--nproc-per-node", "2"]
        self.assertEqual(self.train(calmix, launcher=torchrun, name="torchrun"), own)
        self.assertEqual(self.stopped(calmix, signal.SIGINT), 130)
        for arguments, code in EXIT_CODES.items():
            run([calmix, *arguments], code=code, cwd=self.folder)
        self.assertEqual(own, self.reference())

    def test_torch_beside_absent_and_wrong(self):
        environment = Environment(self.folder / "env", "3.13", ["calmix", "calmix-torch"], options=["--no-deps"])
        program = environment.program("calmix-torch")
        said = run([environment.program("calmix"), "doctor"], code=2)
        self.assertRegex(said, r"^error: calmix-torch needs PyTorch 2\.13\.0, which is not installed for \S+\n")
        self.assertRegex(said, r"\ntry: \S+/python\S* -m pip install torch==2\.13\.0\n$")
        said = run([program, "--version"], code=2, env=self.fake("2.12.0"))
        self.assertRegex(said, r"^error: calmix-torch needs PyTorch 2\.13\.0, and \S+/torch is PyTorch 2\.12\.0\ntry: ")
        run([program, "--version"], env=self.fake("2.13.0+cpu"))
        for name in ["torch", "nvidia"]:
            (environment.packages / name).symlink_to(self.pytorch() / name)
        # cargo sets a path of libraries, which comes before that of the program.
        variables = {name: os.environ[name] for name in os.environ if name != "LD_LIBRARY_PATH"}
        traced = run([program, "--version"], env={**variables, "LD_DEBUG": "libs"})
        self.assertIn(f"{environment.packages}/calmix_torch/../torch/lib/libtorch_cpu.so", traced, "by its own path")

    def test_both_in_one_environment(self):
        environment = Environment(self.folder / "env", "3.11", ["calmix[torch,cpu]"], packages=self.pytorch())
        run([environment.program("calmix-torch"), "--version"])
        run([environment.program("python"), "-m", "pip", "uninstall", "--yes", "--quiet", "calmix-torch"])
        run([environment.program("calmix"), "doctor"], code=2, env={"PATH": "/usr/bin:/bin"})


class Tools(Place):
    """`uv tool install` and `pipx install`."""

    def test_uv_tool(self):
        folders = {"UV_TOOL_DIR": str(self.folder / "tools"), "UV_TOOL_BIN_DIR": str(self.folder / "bin")}
        install = [TOOLS / "uv", "tool", "install", "--quiet", "--find-links", DIST, "--python", interpreter("3.13")]
        run([*install, "calmix[cpu]"], env={**os.environ, **folders})
        self.assertEqual([path.name for path in (self.folder / "bin").iterdir()], ["calmix"])
        own = self.train(self.folder / "bin/calmix", env={"PATH": "/usr/bin:/bin"})
        # Files that are symbolic links into uv's cache have another real place, where NVIDIA's libraries are not beside them.
        linked = {**os.environ, **folders, "UV_LINK_MODE": "symlink", "UV_CACHE_DIR": str(self.folder / "cache")}
        run([*install, "--reinstall", "calmix[cpu]"], env=linked)
        run([self.folder / "tools/calmix/bin/calmix-torch", "--version"])
        self.assertEqual(own, self.reference())

    def test_pipx(self):
        folders = {"PIPX_HOME": str(self.folder / "pipx"), "PIPX_BIN_DIR": str(self.folder / "bin")}
        install = [TOOLS / "pipx", "install", "--quiet", "--python", interpreter("3.10"), f"--pip-args=--find-links={DIST}"]
        run([*install, "calmix[cpu]"], env={**os.environ, **folders})
        own = self.train(self.folder / "bin/calmix", env={"PATH": "/usr/bin:/bin"})
        self.assertEqual(own, self.reference())


if __name__ == "__main__":
    unittest.main(verbosity=2)
