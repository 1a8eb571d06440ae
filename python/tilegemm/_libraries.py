"""What the extension asks of the libraries whose arrays it is given.

A library is imported here only where one of its arrays is an operand, so that it is there already.
"""

from __future__ import annotations

import importlib
import math
import sys
from typing import Any, cast

from . import _tilegemm


def _find_root(array: Any) -> str:
    """Returns the name of the package that the array's type is of, "cupy", "jaxlib", ..."""
    return type(array).__module__.partition(".")[0]


def find_numpy_dtype(name: str) -> Any:
    """Returns NumPy's dtype of a type; ml_dtypes has those that NumPy lacks."""
    import numpy
    if name in ("float32", "float64", "float16"):
        return numpy.dtype(name)
    return numpy.dtype(getattr(importlib.import_module("ml_dtypes"), name))


def find_stream(array: Any) -> Any:
    """Returns the current stream of the array's library on the array's device, 0 for the default
    one."""
    root = _find_root(array)
    if root == "torch":
        return sys.modules["torch"].cuda.current_stream(array.device).cuda_stream
    if root == "cupy":
        return sys.modules["cupy"].cuda.get_current_stream().ptr
    return 0


def records_gradients() -> bool:
    """Returns whether PyTorch records operations for gradients now."""
    torch = sys.modules.get("torch")
    return torch is not None and bool(torch.is_grad_enabled())


def make_array(like: Any, shape: tuple[int, ...], name: str) -> Any:
    """Returns an array of the library of `like` to write a result to, or None if arrays of that
    library never change."""
    root = _find_root(like)
    if root == "torch":
        torch = sys.modules["torch"]
        return torch.empty(shape, dtype=getattr(torch, name), device=like.device)
    if root == "cupy":
        return sys.modules["cupy"].empty(shape, dtype=find_numpy_dtype(name))
    return None


def make_memory_view(shape: tuple[int, ...], name: str) -> memoryview:
    """Returns a memoryview of a shape over zeros."""
    letter, size = {"float32": ("f", 4), "float64": ("d", 8), "float16": ("e", 2)}[name]
    count = math.prod(shape)
    if count == 0:
        raise _tilegemm.ArgumentError("a memoryview has no dimension of size 0; pass out")
    view: Any = memoryview(bytearray(count * size))
    return cast(memoryview, view.cast(letter, shape))


class _Lender:
    """Hands a capsule of DLPack to from_dlpack."""

    def __init__(self, capsule: Any, device: tuple[int, int]) -> None:
        self._capsule, self._device = capsule, device

    def __dlpack__(self, **_arguments: Any) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._device


def convert_capsule(like: Any, capsule: Any, device_kind: int, device_index: int) -> Any:
    """Returns the array of the library of `like` that takes over a capsule's memory."""
    lender = _Lender(capsule, (device_kind, device_index))
    if _find_root(like) in ("jax", "jaxlib"):
        return importlib.import_module("jax.dlpack").from_dlpack(lender)
    namespace = like.__array_namespace__() if hasattr(like, "__array_namespace__") else None
    if namespace is None:
        raise _tilegemm.OperandTypeError(
            f"the result cannot become a {type(like).__name__}, whose library has no from_dlpack; "
            "pass out")
    return namespace.from_dlpack(lender)
