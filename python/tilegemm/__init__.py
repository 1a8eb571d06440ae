"""Matrix multiplication for any size, any layout, with a stated error bound.

    >>> import numpy, tilegemm
    >>> a = numpy.array([[1, 2, 3], [4, 5, 6]], dtype=numpy.float32)
    >>> tilegemm.matmul(a, a.T)
    array([[14., 32.],
           [32., 77.]], dtype=float32)

matmul multiplies arrays of NumPy, CuPy, PyTorch, JAX and whatever else speaks DLPack,
__cuda_array_interface__ or the buffer protocol, where they are. attention computes softmax(scale
Q K^T + bias) V of such arrays. plan chooses a kernel once for many calls. explain lists
the kernels for a product and why each lost; bench times them; report makes a page of it.
tilegemm.torch has operators for torch.compile and replaces PyTorch's own.
"""

from ._explain import Candidate, Explanation, explain
from ._tilegemm import (ArgumentError, DeviceError, Error, OperandTypeError, OutOfMemoryError, Plan,
                        UnsupportedError, attention, get_version, matmul)
from ._tilegemm import Plan as plan
from ._run import BenchResult, Report, bench, report

__version__ = get_version()
__all__ = ["ArgumentError", "BenchResult", "Candidate", "DeviceError", "Error", "Explanation",
           "OperandTypeError", "OutOfMemoryError", "Plan", "Report", "UnsupportedError",
           "attention", "bench", "explain", "matmul", "plan", "report"]
