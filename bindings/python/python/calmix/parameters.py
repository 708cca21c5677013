"""Parameters of estimators in the conventions of scikit-learn, which the package does not need."""

from __future__ import annotations

import inspect
import os
from collections.abc import Mapping
from typing import Any

from calmix.scikit_learn import from_sklearn


class Parameters:
    """What scikit-learn's `clone`, grids and displays need: the arguments of the constructor by their names."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Returns the parameters of the constructor."""
        del deep  # No parameter is an estimator.
        return {name: getattr(self, name) for name in _parameters(type(self))}

    def set_params(self, **params: object) -> Any:
        """Sets parameters of the constructor."""
        known = list(_parameters(type(self)))
        for name, value in params.items():
            if name not in known:
                raise ValueError(f"Invalid parameter {name!r} for {self!r}. Valid parameters are: {known}")
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        defaults = _parameters(type(self))
        changed = {name: value for name, value in self.get_params().items() if value is not defaults[name].default}
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in changed.items())})"

    def _not_fitted(self, call: str) -> Exception:
        message = f"This {type(self).__name__} is not fitted yet: call {call} first"
        error = from_sklearn("exceptions", "NotFittedError")
        return AttributeError(message) if error is None else error(message)


def _parameters(estimator: type) -> Mapping[str, inspect.Parameter]:
    parameters = inspect.signature(estimator.__init__).parameters  # type: ignore[misc]
    return {name: parameter for name, parameter in parameters.items() if name != "self"}


def thread_count(n_jobs: int | None) -> int:
    """The number of threads: one for `None`, all processors for −1."""
    if n_jobs is None:
        return 1
    processors = os.cpu_count() or 1
    return max(1, n_jobs if n_jobs > 0 else processors + 1 + n_jobs)


def check_share(name: str, value: object) -> float:
    """A number between 0 and 1."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < 1:
        raise ValueError(f"{name} is {value!r}, and must be a number between 0 and 1, such as 0.9")
    return float(value)
