"""What the package takes as an array: NumPy's arrays, what NumPy converts, and tensors on the CPU without a copy."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

# Half of the largest float32.
_MAX_LENGTH = float(np.finfo(np.float32).max) / 2


def as_array(given: ArrayLike, name: str) -> NDArray[Any]:
    """Returns `given` as a NumPy array, without a copy where that is possible.

    Tensors that NumPy cannot read are refused with the call that helps, instead of being copied in silence, and so are arrays
    with masked values, whose masks NumPy would drop.
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
    refuse_masked(given, name)
    array = np.asarray(given)
    if array.dtype.kind == "c":
        raise ValueError(f"{name}: Complex data not supported")
    return array


def as_vectors(array: NDArray[Any], name: str) -> NDArray[np.float32]:
    """Vectors along the last axis as float32, contiguous; a row that cannot be scaled to unit length is refused.

    A vector is divided by its length after a mean is subtracted. Both are at most half of the largest float32 in length, so the
    difference has a length in float32, too.
    """
    with np.errstate(over="ignore"):
        vectors = np.ascontiguousarray(array, dtype=np.float32)
    squares = np.einsum("...d,...d->...", vectors, vectors, dtype=np.float64)
    # Squares of NaN and infinity are neither.
    is_valid = (squares <= _MAX_LENGTH**2).all(axis=tuple(range(1, squares.ndim)))
    if is_valid.all():
        return vectors
    row = int(is_valid.argmin())
    if np.isfinite(vectors[row]).all():
        raise ValueError(f"{name}: row {row} is a vector longer than {_MAX_LENGTH:.2g}: divide the vectors by a number")
    raise ValueError(f"{name}: row {row} contains NaN, infinity or a value too large for dtype('float32')")


def refuse_masked(given: object, name: str) -> None:
    """Names the first row with a masked value, of a masked array or of a list of them."""
    if isinstance(given, np.ma.MaskedArray):
        masks = np.ma.getmaskarray(given)
        masked = masks.reshape(len(masks), -1).any(axis=1) if masks.ndim > 0 else masks.reshape(1)
    elif isinstance(given, (list, tuple)):
        masked = np.array([isinstance(row, np.ma.MaskedArray) and bool(np.ma.getmaskarray(row).any()) for row in given])
    else:
        return
    if masked.any():
        row = int(masked.argmax())
        raise ValueError(f"{name}: row {row} has a masked value: leave out such rows, or pass {name}.filled(VALUE)")
