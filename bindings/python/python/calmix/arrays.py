"""What the package takes as an array: NumPy's arrays, what NumPy converts, and tensors on the CPU without a copy."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray


def as_array(given: ArrayLike, name: str) -> NDArray[Any]:
    """Returns `given` as a NumPy array, without a copy where that is possible.

    Tensors that NumPy cannot read are refused with the call that helps, instead of being copied in silence.
    """
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(given, torch.Tensor):
        if given.requires_grad:
            raise TypeError(f"{name} is a tensor that requires a gradient: pass {name}.detach()")
        if given.device.type != "cpu":
            raise TypeError(f"{name} is a tensor on {given.device}: pass {name}.cpu()")
        if given.dtype in (torch.bfloat16, torch.float16):
            raise TypeError(f"{name} is a tensor of {given.dtype}, which NumPy cannot compute with: pass {name}.float()")
        return given.numpy()
    if hasattr(given, "tocsr"):
        raise TypeError(f"{name} is a sparse matrix, but dense data is required: pass {name}.toarray()")
    array = np.asarray(given)
    if array.dtype.kind == "c":
        raise ValueError(f"{name}: Complex data not supported")
    return array
