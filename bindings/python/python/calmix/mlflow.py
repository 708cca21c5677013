"""Exported models in MLflow, which runs them on onnxruntime, without PyTorch.

`calmix export RUN --to FOLDER --mlflow` writes an MLflow model, so MLflow's own functions load and serve the folder as it is.
`log_model` sends it to a tracking server, and so does the command `calmix push RUN --model`. Nothing is pickled: MLflow loads the
model by this module, which reads `model.onnx` as `calmix.Model` does.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

from calmix.model import Model

_Path = str | os.PathLike[str]

_DESCRIPTION = "MLmodel"


def log_model(folder: _Path, name: str = "model", *, registered_model_name: str | None = None, **options: Any) -> Any:
    """Logs an exported model to MLflow, in the active run if there is one, and returns MLflow's `ModelInfo`.

    Parameters
    ----------
    folder : path
        The folder that `calmix export RUN --to FOLDER --mlflow` wrote.
    name : str
        The name of the model in MLflow.
    registered_model_name : str or None
        Also makes a version of the registered model with this name.
    **options
        Further arguments of `mlflow.models.Model.log`, such as `metadata`, `tags`, `params` and `model_type`.
    """
    models = _mlflow_models()
    import calmix.mlflow as flavour

    return models.Model.log(
        artifact_path=None,
        name=name,
        flavor=flavour,
        registered_model_name=registered_model_name,
        folder=folder,
        **options,
    )


def save_model(folder: _Path, path: _Path, mlflow_model: Any = None) -> None:
    """Copies an exported model to a new folder, as MLflow's other flavours save theirs.

    Parameters
    ----------
    folder : path
        The folder that `calmix export RUN --to FOLDER --mlflow` wrote.
    path : path
        The new folder.
    mlflow_model : mlflow.models.Model or None
        The description that the model is added to; `log_model` passes it.
    """
    models = _mlflow_models()
    description = Path(folder) / _DESCRIPTION
    if not description.is_file():
        raise FileNotFoundError(
            f"{description}: the folder is not an MLflow model: calmix export RUN --to FOLDER --mlflow writes one"
        )
    exported = models.Model.load(os.fspath(description))
    if exported.flavors.get("python_function", {}).get("loader_module") != "calmix.mlflow":
        raise ValueError(f"{description}: calmix did not write this model; export it again with --mlflow")
    # Refuses models that cannot be loaded.
    Model(folder)
    shutil.copytree(folder, path)
    if mlflow_model is None:
        return
    mlflow_model.flavors.update(exported.flavors)
    mlflow_model.signature = exported.signature
    mlflow_model.saved_input_example_info = exported.saved_input_example_info
    mlflow_model.save(os.fspath(Path(path) / _DESCRIPTION))


class PythonFunction:
    """A model as MLflow calls it.

    Parameters
    ----------
    folder : path
        The folder of the MLflow model.
    """

    def __init__(self, folder: _Path) -> None:
        self.model = Model(folder)

    def predict(self, model_input: Any) -> Any:
        """Returns the answers for vectors or encoded images, as `calmix.Model.predict_frame` does."""
        return self.model.predict_frame(model_input)


def _load_pyfunc(path: str) -> PythonFunction:
    """Loads the model for MLflow, which calls this function by its name."""
    return PythonFunction(path)


def _mlflow_models() -> Any:
    try:
        from mlflow import models
    except ImportError as error:
        raise ImportError("calmix.mlflow needs MLflow: pip install mlflow") from error
    return models
