"""What scikit-learn expects of an estimator, for a package that does not need it: its exceptions and warnings, and metadata
routing.

With `sklearn.set_config(enable_metadata_routing=True)`, a pipeline or a search passes `groups` and the like to the methods that
request them. scikit-learn reads the requests by `get_metadata_routing`, and copies `_metadata_request` to clones.
"""

from __future__ import annotations

import inspect
import sys
from importlib import import_module
from typing import Any, TypeVar

_Self = TypeVar("_Self", bound="MetadataRequests")


def from_sklearn(module: str, name: str) -> Any:
    """An object of scikit-learn if it was imported, otherwise `None`: its users catch its exceptions."""
    if "sklearn" not in sys.modules:
        return None
    return getattr(import_module(f"sklearn.{module}"), name)


class MetadataRequests:
    """Requests of the arguments that `fit` and `score` have beside X and y."""

    def set_fit_request(self: _Self, **requests: bool | str | None) -> _Self:
        """Says which arguments of `fit` a pipeline or a search passes on, such as `groups=True`.

        `True` means that it must be passed on if it is given, `False` that it must not, `None` that giving it is an error, and
        a string that it is given under that name. Needs `sklearn.set_config(enable_metadata_routing=True)`.
        """
        return self._request("fit", requests)

    def set_score_request(self: _Self, **requests: bool | str | None) -> _Self:
        """Says which arguments of `score` a search passes on, as for `set_fit_request`."""
        return self._request("score", requests)

    def get_metadata_routing(self) -> Any:
        """Returns the requests, for scikit-learn."""
        return getattr(self, "_metadata_request", None) or self._default_request()

    def _request(self: _Self, method: str, requests: dict[str, bool | str | None]) -> _Self:
        from sklearn import get_config

        if not get_config()["enable_metadata_routing"]:
            raise RuntimeError(
                f"set_{method}_request needs metadata routing: call sklearn.set_config(enable_metadata_routing=True) first"
            )
        unknown = sorted(set(requests) - set(_metadata(getattr(self, method))))
        if unknown:
            raise TypeError(
                f"Unexpected args: {unknown}. {method} has {_metadata(getattr(self, method))} beside X and y"
            )
        routing = self.get_metadata_routing()
        for name, alias in requests.items():
            getattr(routing, method).add_request(param=name, alias=alias)
        self._metadata_request = routing
        return self

    def _default_request(self) -> Any:
        from sklearn.utils.metadata_routing import MetadataRequest

        routing = MetadataRequest(owner=type(self).__name__)
        for method in ("fit", "score"):
            for name in _metadata(getattr(self, method)):
                getattr(routing, method).add_request(param=name, alias=None)
        return routing


def _metadata(method: Any) -> list[str]:
    """The arguments of a method beside X and y."""
    return [name for name in inspect.signature(method).parameters if name not in ("X", "y")]
