"""The folder of `calmix export --hub`, read as the Hub does, and downloaded from a server of this test."""

import hashlib
import json
import os
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

import calmix

huggingface_hub = pytest.importorskip("huggingface_hub")
pytest.importorskip("onnxruntime")

COMMIT = "0123456789abcdef0123456789abcdef01234567"


class Hub(BaseHTTPRequestHandler):
    """As much of the Hub as a download needs: the list of a repository's files, and the files by commit."""

    files = {}
    requested = []

    def do_GET(self):
        self.answer(with_body=True)

    def do_HEAD(self):
        self.answer(with_body=False)

    def answer(self, with_body):
        type(self).requested.append((self.command, self.path))
        path = self.path.partition("?")[0]
        if path.startswith("/api/models/me/digits/revision/"):
            siblings = [{"rfilename": name} for name in sorted(self.files)]
            self.send(json.dumps({"id": "me/digits", "sha": COMMIT, "siblings": siblings}).encode(), {}, with_body)
        elif path == f"/api/models/me/digits/tree/{COMMIT}":
            entries = [{"type": "file", "path": name, "size": len(file), "oid": "0" * 40} for name, file in self.files.items()]
            self.send(json.dumps(entries).encode(), {}, with_body)
        elif path.startswith(f"/me/digits/resolve/{COMMIT}/"):
            content = self.files[path.removeprefix(f"/me/digits/resolve/{COMMIT}/")]
            headers = {"ETag": f'"{hashlib.sha256(content).hexdigest()}"', "X-Repo-Commit": COMMIT}
            self.send(content, headers, with_body)
        else:
            self.send_error(404)

    def send(self, content, headers, with_body):
        self.send_response(200)
        for name, value in {**headers, "Content-Length": str(len(content))}.items():
            self.send_header(name, value)
        self.end_headers()
        if with_body:
            self.wfile.write(content)

    def log_message(self, *arguments):
        pass


@pytest.fixture(scope="module")
def exported(calmix_in, run_of_digits):
    printed = calmix_in(run_of_digits, "export", "run", "--to", "digits", "--hub", "--licence", "cc-by-4.0")
    assert "upload it: hf upload OWNER/digits digits\n" in printed
    return run_of_digits / "digits"


@pytest.fixture
def hub(exported, tmp_path):
    """Loads `me/digits` and predicts, in a process of its own, from a Hub that has the exported folder."""
    Hub.files = {path.relative_to(exported).as_posix(): path.read_bytes() for path in exported.rglob("*") if path.is_file()}
    Hub.requested = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    endpoint = f"http://127.0.0.1:{server.server_port}"
    script = (
        "import sys, numpy, calmix\n"
        "model = calmix.Model.from_pretrained('me/digits', threads=1, local_files_only=sys.argv[1] == 'offline')\n"
        "numpy.save('probabilities.npy', model.predict(numpy.load(sys.argv[2])).probabilities)\n"
    )

    def predict(vectors, network="online"):
        np.save(tmp_path / "vectors.npy", vectors)
        # The package reads these variables when it is imported.
        env = {**os.environ, "HF_ENDPOINT": endpoint, "HF_HOME": str(tmp_path / "cache")}
        command = [sys.executable, "-c", script, network, "vectors.npy"]
        ended = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True)
        return np.load(tmp_path / "probabilities.npy") if ended.returncode == 0 else ended.stderr

    yield predict
    server.shutdown()
    server.server_close()


def test_model_card_is_read(exported):
    card = huggingface_hub.ModelCard.load(exported / "README.md")
    assert (card.data.license, card.data.pipeline_tag) == ("cc-by-4.0", "tabular-classification")
    assert {"calmix", "conformal-prediction"} <= set(card.data.tags)
    assert "- `set`: contains the true class" in card.text
    [result, *_] = results = card.data.eval_results
    assert (result.dataset_split, {it.metric_type for it in results}) == ("train", {"accuracy", "ece", "nll", "brier_score"})
    measured = json.loads((exported.parent / "run" / "result.json").read_text())["evaluations"]
    errors = [it["calibrated"]["metrics"]["error"] for it in measured if it["split"] == "out-of-fold"]
    assert [it.metric_value for it in results if it.metric_type == "accuracy"] == [pytest.approx(1 - errors[0], abs=1e-12)]
    assert "](calibration.svg)" in card.text and (exported / "calibration.svg").read_text().startswith("<svg")
    config = json.loads((exported / "config.json").read_text())["calmix"]
    assert config["classes"] == [str(digit) for digit in range(10)] and config["coverage"] == 0.9
    assert (exported / "model.safetensors").is_file()


def test_repository_of_the_hub_answers_as_its_folder(exported, hub, digits):
    X, _, _ = digits
    wanted = calmix.Model(exported, threads=1).predict(X[1200:]).probabilities
    assert (hub(X[1200:]) == wanted).all()
    # Weights for PyTorch are not downloaded.
    downloaded = {path.rpartition("/")[2] for command, path in Hub.requested if "/resolve/" in path}
    assert {"model.onnx"} <= downloaded <= {"model.onnx", "reference.safetensors"}
    Hub.requested.clear()
    assert (hub(X[1200:], "offline") == wanted).all() and not Hub.requested


def test_repository_without_a_model_is_named(hub, digits):
    Hub.files = {"README.md": b"nothing"}
    assert "there is no exported model; calmix export RUN" in hub(digits[0][1200:])
