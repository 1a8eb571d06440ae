from collections.abc import Sequence
from typing import Any, Literal, Protocol, SupportsIndex, TypeAlias, TypeVar, final, overload

from typing_extensions import Buffer

class _DLPackArray(Protocol):
    def __dlpack__(self, *, stream: Any = ...) -> Any: ...

class _CudaArray(Protocol):
    @property
    def __cuda_array_interface__(self) -> Any: ...

class _CudaStream(Protocol):
    def __cuda_stream__(self) -> Any: ...

class _TorchStream(Protocol):
    @property
    def cuda_stream(self) -> int: ...

class _CupyStream(Protocol):
    @property
    def ptr(self) -> int: ...

_Array: TypeAlias = _DLPackArray | _CudaArray | Buffer
_Stream: TypeAlias = int | _CudaStream | _TorchStream | _CupyStream
_Activation: TypeAlias = Literal["none", "relu", "gelu_erf", "gelu_tanh", "silu"]
_Precision: TypeAlias = Literal[
    "default", "ieee_fp32", "ieee_fp64", "tf32", "bf16x3", "bf16x6", "bf16x9", "fp16x3"
]
_Causal: TypeAlias = Literal["bottom_right", "top_left"]
_A = TypeVar("_A", bound=_Array)

class Error(Exception): ...
class ArgumentError(Error, ValueError): ...
class OperandTypeError(Error, TypeError): ...
class UnsupportedError(Error, NotImplementedError): ...
class OutOfMemoryError(Error, MemoryError): ...
class DeviceError(Error, RuntimeError): ...

def matmul(
    a: _A,
    b: _Array,
    out: _Array | None = None,
    *,
    bias: _Array | None = None,
    activation: _Activation | None = None,
    alpha: float = 1.0,
    beta: float = 0.0,
    c: _Array | None = None,
    scale_a: float | _Array | None = None,
    scale_b: float | _Array | None = None,
    precision: _Precision = "default",
    batch_invariant: bool = False,
    stream: _Stream | None = None,
) -> _A: ...
@overload
def attention(
    q: _A,
    k: _Array,
    v: _Array,
    out: _Array | None = None,
    *,
    causal: bool | _Causal = False,
    scale: float | None = None,
    soft_cap: float | None = None,
    keys_before: SupportsIndex | None = None,
    keys_after: SupportsIndex | None = None,
    bias: _Array | None = None,
    slopes: _Array | None = None,
    key_lengths: Sequence[SupportsIndex] | None = None,
    log_sum_exp: Literal[False] = False,
    batch_invariant: bool = False,
) -> _A: ...
@overload
def attention(
    q: _A,
    k: _Array,
    v: _Array,
    out: _Array | None = None,
    *,
    causal: bool | _Causal = False,
    scale: float | None = None,
    soft_cap: float | None = None,
    keys_before: SupportsIndex | None = None,
    keys_after: SupportsIndex | None = None,
    bias: _Array | None = None,
    slopes: _Array | None = None,
    key_lengths: Sequence[SupportsIndex] | None = None,
    log_sum_exp: Literal[True],
    batch_invariant: bool = False,
) -> tuple[_A, _A]: ...
def describe(
    a: _Array,
    b: _Array,
    out: _Array | None = None,
    *,
    bias: _Array | None = None,
    activation: _Activation | None = None,
    alpha: float = 1.0,
    beta: float = 0.0,
    c: _Array | None = None,
    scale_a: float | _Array | None = None,
    scale_b: float | _Array | None = None,
    precision: _Precision = "default",
    batch_invariant: bool = False,
    stream: _Stream | None = None,
) -> tuple[str, str]: ...
def list_candidates(problem: str, device: str | None, chip: str | None, /) -> list[tuple[Any, ...]]: ...
def open_torch() -> bool: ...
def override_torch(
    is_on: bool, fp32: bool, bf16: bool, batch_invariant: bool, /
) -> None: ...
def run_command(arguments: list[bytes], /) -> int: ...
def get_version() -> str: ...
@final
class Plan:
    def __new__(
        cls,
        a: _Array,
        b: _Array,
        out: _Array | None = None,
        *,
        bias: _Array | None = None,
        activation: _Activation | None = None,
        alpha: float = 1.0,
        beta: float = 0.0,
        c: _Array | None = None,
        scale_a: float | _Array | None = None,
        scale_b: float | _Array | None = None,
        precision: _Precision = "default",
        batch_invariant: bool = False,
        stream: _Stream | None = None,
    ) -> Plan: ...
    def __call__(
        self,
        a: _A,
        b: _Array,
        out: _Array | None = None,
        *,
        bias: _Array | None = None,
        c: _Array | None = None,
        scale_a: float | _Array | None = None,
        scale_b: float | _Array | None = None,
        stream: _Stream | None = None,
    ) -> _A: ...
    @property
    def problem(self) -> str: ...
    @property
    def kernel(self) -> str: ...
    @property
    def workspace_bytes(self) -> int: ...
    @property
    def predicted_s(self) -> float: ...
    @property
    def thread_count(self) -> int: ...
