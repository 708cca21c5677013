"""What the tests share: digits with few labels, the command that the estimator is compared with, and its runs."""

import os
import struct
import subprocess
import zlib
from pathlib import Path

import numpy as np
import pytest


def png(pixels):
    """The file of an image."""

    def chunk(kind, content):
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    height, width, _ = pixels.shape
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)
    return b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


@pytest.fixture(scope="session")
def digits():
    """Vectors of scikit-learn's digits, labels of which all but ten per class are −1, and the truth."""
    from sklearn.datasets import load_digits

    X, truth = load_digits(return_X_y=True)
    X = X.astype(np.float32)
    order = np.random.default_rng(0).permutation(len(X))
    X, truth = X[order], truth[order]
    y = np.full(len(X), -1)
    for label in range(10):
        rows = np.flatnonzero(truth[:1200] == label)[:10]
        y[rows] = label
    return X, y, truth


@pytest.fixture(scope="session")
def command():
    """The command `calmix` of the same commit."""
    program = os.environ.get("CALMIX_PROGRAM")
    if not program:
        pytest.skip("CALMIX_PROGRAM does not name the command; `cargo xtask check python` sets it")
    return Path(program)


@pytest.fixture(scope="session")
def calmix_in(command):
    """Runs the command in a folder; it must succeed. Returns what it prints."""

    def run(folder, *arguments):
        ended = subprocess.run([str(command), *map(str, arguments)], cwd=folder, capture_output=True, text=True)
        assert ended.returncode == 0, ended.stderr
        return ended.stdout

    return run


@pytest.fixture(scope="session")
def run_of_digits(calmix_in, digits, tmp_path_factory):
    """A folder with a run on vectors, `run`, and further vectors, `new.npy`."""
    folder = tmp_path_factory.mktemp("digits")
    X, y, _ = digits
    np.save(folder / "vectors.npy", X[:1200])
    np.save(folder / "new.npy", X[1200:])
    labels = "".join(f"{row},{label}\n" for row, label in enumerate(y[:1200]) if label >= 0)
    (folder / "labels.csv").write_text("id,label\n" + labels)
    calmix_in(folder, "train", "--features", "vectors.npy", "--labels", "labels.csv", "--run-dir", "run")
    return folder


@pytest.fixture(scope="session")
def run_of_images(calmix_in, tmp_path_factory):
    """A folder with a run on images, `run`, and further images in `new`: a head on an encoder with random weights."""
    torch = pytest.importorskip("torch")
    folder = tmp_path_factory.mktemp("images")
    rng = np.random.default_rng(0)
    for place, numbers in [("photos", 16), ("new", 4)]:
        for name, shade in [("cat", 60), ("dog", 190)]:
            (folder / place / name).mkdir(parents=True)
            for number in range(numbers):
                pixels = np.clip(shade + rng.integers(-50, 50, (40, 36, 3)), 0, 255).astype(np.uint8)
                (folder / place / name / f"{number}.png").write_bytes(png(pixels))
    torch.manual_seed(0)
    layers = [torch.nn.Conv2d(3, 8, 8, 8), torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten()]
    encoder = torch.nn.Sequential(*layers).eval()
    inputs = (torch.zeros(2, 3, 32, 32),)
    axes = {"images": {0: "n"}, "features": {0: "n"}}
    names = {"input_names": ["images"], "output_names": ["features"], "dynamic_axes": axes}
    torch.onnx.export(encoder, inputs, str(folder / "encoder.onnx"), dynamo=False, opset_version=17, **names)
    settings = ["--set", "network.weights=encoder.onnx", "--set", "augment.size=32"]
    calmix_in(folder, "train", "--data", "photos", "--run-dir", "run", "--threads", "1", *settings)
    return folder
