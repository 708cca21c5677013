"""What `calmix export --mlflow` writes, without MLflow; test_mlflow.py runs it there."""

import base64
import importlib.metadata
import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import calmix.mlflow

pytest.importorskip("onnxruntime")


@pytest.fixture(scope="module")
def of_digits(calmix_in, run_of_digits):
    calmix_in(run_of_digits, "export", "run", "--to", "for-mlflow", "--mlflow")
    return run_of_digits / "for-mlflow"


@pytest.fixture(scope="module")
def of_images(calmix_in, run_of_images):
    calmix_in(run_of_images, "export", "run", "--to", "for-mlflow", "--mlflow")
    return run_of_images / "for-mlflow"


def test_signature_names_the_columns_of_the_answers(of_digits):
    description = json.loads((of_digits / "MLmodel").read_text())
    loader = description["flavors"]["python_function"]["loader_module"]
    assert loader == calmix.mlflow.__name__ and hasattr(calmix.mlflow, "_load_pyfunc")
    signature = description["signature"]
    [tensor] = json.loads(signature["inputs"])
    assert tensor["tensor-spec"] == {"dtype": "float32", "shape": [-1, 64]}
    example = np.array(json.loads((of_digits / "input_example.json").read_text()), dtype=np.float32)
    request = json.loads((of_digits / "serving_input_example.json").read_text())
    assert (np.array(request["inputs"], dtype=np.float32) == example).all()
    frame = calmix.mlflow._load_pyfunc(str(of_digits)).predict(example)
    assert list(frame.columns) == [column["name"] for column in json.loads(signature["outputs"])]
    assert len(frame) == 4


def test_images_are_a_column_of_bytes(of_images):
    signature = json.loads((of_images / "MLmodel").read_text())["signature"]
    assert json.loads(signature["inputs"]) == [{"type": "binary", "name": "image", "required": True}]
    table = json.loads((of_images / "input_example.json").read_text())
    assert table["columns"] == ["image"]
    images = pd.DataFrame({"image": [base64.b64decode(image) for [image] in table["data"]]}, index=list("wxyz"))
    frame = calmix.mlflow._load_pyfunc(str(of_images)).predict(images)
    assert list(frame.index) == list("wxyz") and set(frame["label"]) <= {"cat", "dog"}


def test_requirements_are_those_of_the_tests(of_digits):
    lines = (of_digits / "requirements.txt").read_text().splitlines()
    assert f"calmix=={calmix.__version__}" in lines
    newest = [line.partition(";")[0].split("==") for line in lines if '< "3.11"' not in line]
    installed = {name: version for name, version in newest if name in ["numpy", "onnxruntime", "pandas"]}
    assert len(installed) == 3
    for name, version in installed.items():
        assert importlib.metadata.version(name) == version, name


def test_without_mlflow_the_error_names_it(of_digits):
    code = f"import sys; sys.modules['mlflow'] = None; import calmix.mlflow; calmix.mlflow.log_model({str(of_digits)!r})"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "pip install mlflow" in ended.stderr
