"""A real MLflow: models are logged, registered, loaded, served and asked by HTTP, and answer as `calmix predict`.

Servers and clients run without PyTorch. `CALMIX_WHEELS` names a folder with the wheel of calmix; then the environment that MLflow
makes of the pinned requirements is tested too.
"""

import base64
import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import calmix

mlflow = pytest.importorskip("mlflow")

PACKAGE = str(Path(calmix.__file__).parents[1])


def without_torch(python, **more):
    """The variables of a process that finds the package, and no PyTorch."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith("MLFLOW_")}
    programs = os.pathsep.join([str(Path(python).parent), variables["PATH"]])
    return {**variables, "PYTHONPATH": PACKAGE, "PATH": programs, **more}


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


class Server:
    """A process that listens on a port; it and its children end with the block."""

    def __init__(self, arguments, folder, path, python=sys.executable, **more):
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        self.log = folder / f"server-{port}.log"
        command = [python, "-m", "mlflow", *arguments, "--host", "127.0.0.1", "--port", str(port)]
        with open(self.log, "w") as log:
            self.process = subprocess.Popen(
                command, cwd=folder, stdout=log, stderr=log, env=without_torch(python, **more), start_new_session=True
            )
        self.path = path

    def __enter__(self):
        begun = time.monotonic()
        while True:
            assert self.process.poll() is None and time.monotonic() - begun < 240, self.log.read_text()
            try:
                urllib.request.urlopen(self.url + self.path, timeout=10).read()
                return self
            except (urllib.error.URLError, ConnectionError, TimeoutError):
                time.sleep(0.2)

    def __exit__(self, *error):
        os.killpg(self.process.pid, 15)
        self.process.wait()


def ask(url, request):
    """Sends JSON to a served model; returns the rows of the answer."""
    headers = {"Content-Type": "application/json"}
    body = urllib.request.Request(f"{url}/invocations", json.dumps(request).encode(), headers)
    with urllib.request.urlopen(body, timeout=120) as answer:
        return json.load(answer)["predictions"]


def assert_same(found, wanted):
    """Compares rows of answers with those of `calmix predict --format jsonl`."""
    assert len(found) == len(wanted) > 0
    for row, right in zip(found, wanted):
        for column in ["label", "set", "abstain"]:
            assert row[column] == right[column], (row, right)
        probabilities = np.array([value for name, value in row.items() if name.startswith("p(")])
        assert np.abs(probabilities - right["probabilities"]).max() <= 1e-6
        assert abs(row["confidence"] - right["confidence"]) <= 1e-6


@pytest.fixture(scope="module")
def tracking(tmp_path_factory):
    """A tracking server with its own store of artifacts."""
    folder = tmp_path_factory.mktemp("tracking")
    arguments = ["server", "--backend-store-uri", "sqlite:///mlflow.db", "--workers", "1"]
    with Server(arguments, folder, "/health") as server:
        mlflow.set_tracking_uri(server.url)
        yield server


@pytest.fixture(scope="module", params=["vectors", "images"])
def case(request, calmix_in, run_of_digits, run_of_images):
    """A folder with a run and its export, the answers of the command, a request of the same rows, and the rows as Python has them."""
    options = ["--coverage", "0.8", "--precision", "0.8"]
    predict = ["--probabilities", "--format", "jsonl", *options]
    if request.param == "vectors":
        folder = run_of_digits
        rows = calmix_in(folder, "predict", "run", "new.npy", *predict)
        vectors = np.load(folder / "new.npy")
        wanted = [json.loads(line) for line in rows.splitlines()]
        body, inputs = {"inputs": vectors.tolist()}, vectors
    else:
        folder = run_of_images
        rows = calmix_in(folder, "predict", "run", "new", *predict)
        wanted = [json.loads(line) for line in rows.splitlines()]
        images = [(folder / row["path"]).read_bytes() for row in wanted]
        body = {"dataframe_split": {"columns": ["image"], "data": [[base64.b64encode(image).decode()] for image in images]}}
        inputs = pd.DataFrame({"image": images}, index=[f"image {row}" for row in range(len(images))])
    if not (folder / "pets").exists():
        calmix_in(folder, "export", "run", "--to", "pets", "--mlflow", *options)
    return folder, wanted, body, inputs


def loads(uri, inputs):
    """Loads a model as pyfunc and predicts, without a warning; returns the rows."""
    model = mlflow.pyfunc.load_model(uri)
    frame = model.predict(inputs)
    assert isinstance(frame, pd.DataFrame)
    if isinstance(inputs, pd.DataFrame):
        assert list(frame.index) == list(inputs.index)
    assert [column.name for column in model.metadata.get_output_schema()] == list(frame.columns)
    return frame.to_dict("records")


def test_folder_of_the_command_is_a_model(case, caplog):
    folder, wanted, _, inputs = case
    uri = str(folder / "pets")
    assert_same(loads(uri, inputs), wanted)
    assert "mismatch" not in caplog.text, caplog.text
    example = mlflow.models.Model.load(uri).load_input_example(uri)
    assert len(mlflow.pyfunc.load_model(uri).predict(example)) == 4


def test_model_is_logged_registered_loaded_and_served(case, tracking, tmp_path):
    import calmix.mlflow

    folder, wanted, body, inputs = case
    name = f"pets-{folder.name}"
    mlflow.set_experiment("logged")
    with mlflow.start_run():
        info = calmix.mlflow.log_model(folder / "pets", registered_model_name=name)
    assert_same(loads(info.model_uri, inputs), wanted)
    assert_same(loads(f"models:/{name}/1", inputs), wanted)
    arguments = ["models", "serve", "-m", f"models:/{name}/1", "--env-manager", "local"]
    with Server(arguments, tmp_path, "/ping", MLFLOW_TRACKING_URI=tracking.url) as server:
        assert_same(ask(server.url, body), wanted)
        example = json.loads((folder / "pets" / "serving_input_example.json").read_text())
        assert len(ask(server.url, example)) == 4
        with pytest.raises(urllib.error.HTTPError, match="400"):
            ask(server.url, {"inputs": [[1.0, 2.0]]})


def test_command_pushes_the_same_model(case, tracking, calmix_in, tmp_path):
    folder, wanted, body, inputs = case
    push = ["push", "run", "--mlflow", tracking.url, "--model", "--coverage", "0.8", "--precision", "0.8"]
    printed = calmix_in(folder, *push)
    uri = next(word for word in printed.split() if word.startswith("models:/"))
    assert f"model sent: {uri}" in printed
    assert f"the server has this model: {uri}" in calmix_in(folder, *push)
    found = loads(uri, inputs)
    assert_same(found, wanted)
    downloaded = Path(mlflow.artifacts.download_artifacts(uri, dst_path=tmp_path))
    for file in (folder / "pets").iterdir():
        # The cards have the names of their folders; the server writes who registered a model.
        if file.is_file() and file.name != "README.md":
            assert (downloaded / file.name).read_bytes() == file.read_bytes(), file.name
    version = mlflow.register_model(uri, f"pushed-{folder.name}")
    assert_same(loads(f"models:/{version.name}/{version.version}", inputs), wanted)
    run = mlflow.get_run(mlflow.get_logged_model(uri.removeprefix("models:/")).source_run_id)
    assert run.outputs.model_outputs[0].model_id == uri.removeprefix("models:/")


def test_other_folders_are_refused(case, calmix_in, tmp_path):
    import calmix.mlflow

    folder, *_ = case
    calmix_in(folder, "export", "run", "--to", tmp_path / "plain")
    with pytest.raises(FileNotFoundError, match="--mlflow"):
        calmix.mlflow.save_model(tmp_path / "plain", tmp_path / "copy")
    calmix.mlflow.save_model(folder / "pets", tmp_path / "copy")
    description = tmp_path / "copy" / "MLmodel"
    description.write_text(description.read_text().replace("calmix.mlflow", "os.path"))
    with pytest.raises(ValueError, match="calmix did not write this model"):
        calmix.mlflow.save_model(tmp_path / "copy", tmp_path / "copy-2")


def test_environment_of_the_requirements_serves(case, tmp_path):
    wheels = os.environ.get("CALMIX_WHEELS")
    if not wheels:
        pytest.skip("CALMIX_WHEELS names no folder with the wheel of calmix")
    folder, wanted, body, _ = case
    environment = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", environment], check=True)
    python = environment / "bin" / "python"
    install = ["-m", "pip", "install", "--quiet", "-r", folder / "pets" / "requirements.txt"]
    subprocess.run([python, *install], check=True, env={**os.environ, "PIP_FIND_LINKS": wheels, "PYTHONPATH": ""})
    check = "import importlib.util, sys; sys.exit(importlib.util.find_spec('torch') is not None)"
    subprocess.run([python, "-c", check], check=True, env={**os.environ, "PYTHONPATH": ""})
    arguments = ["models", "serve", "-m", str(folder / "pets"), "--env-manager", "local"]
    with Server(arguments, tmp_path, "/ping", python=python, PYTHONPATH="") as server:
        assert_same(ask(server.url, body), wanted)
