"""Matrix multiplication for any size, any layout, with a stated error bound.

    >>> import numpy, tilegemm
    >>> a = numpy.array([[1, 2, 3], [4, 5, 6]], dtype=numpy.float32)
    >>> tilegemm.matmul(a, a.T)
    array([[14., 32.],
           [32., 77.]], dtype=float32)

The arrays are those of NumPy, CuPy, PyTorch and JAX, and all that have DLPack,
__cuda_array_interface__ or the buffer protocol. They are read in place.

matmul       multiplies two arrays
attention    computes softmax(scale Q K^T + bias) V
plan         chooses a kernel once for many calls
explain      lists the kernels for a product, with the reason why each was not chosen
bench        times the kernels beside other libraries
report       writes a page about a product
tilegemm.torch has operators for torch.compile, and can replace PyTorch's own kernels.
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
