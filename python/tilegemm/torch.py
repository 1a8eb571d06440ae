"""tilegemm's operators in PyTorch, and kernels in place of PyTorch's own.

    import torch, tilegemm.torch

    d = torch.ops.tilegemm.mm(a, b)               # mm, bmm, addmm, linear, scaled_mm
    with tilegemm.torch.enable():                 # an unchanged program takes our kernels
        loss = model(batch).sum()
        loss.backward()

The operators are registered from C through libtorch's C interface, so that one build serves every
PyTorch from 2.9 on. torch.compile keeps them in its graphs. They have gradients.
"""

from __future__ import annotations

import contextlib
import threading
from typing import Any, Callable, Iterator

import torch
from torch import Tensor
from torch.utils.checkpoint import _StopRecomputationError

from . import _tilegemm

__all__ = ["enable", "inductor", "linear"]

_has_cuda = _tilegemm.open_torch()
_ACTIVATIONS = ("none", "relu", "gelu_erf", "gelu_tanh", "silu")


def _register_fakes() -> None:
    @torch.library.register_fake("tilegemm::_mm_unrecorded")
    def fake_mm(self: Tensor, mat2: Tensor) -> Tensor:
        torch._check(self.dim() == 2 and mat2.dim() == 2, lambda: "self must be a matrix")
        torch._check(self.shape[1] == mat2.shape[0],
                     lambda: f"mat1 and mat2 shapes cannot be multiplied ({self.shape[0]}x"
                             f"{self.shape[1]} and {mat2.shape[0]}x{mat2.shape[1]})")
        return self.new_empty((self.shape[0], mat2.shape[1]))

    @torch.library.register_fake("tilegemm::_bmm_unrecorded")
    def fake_bmm(self: Tensor, mat2: Tensor) -> Tensor:
        return self.new_empty((self.shape[0], self.shape[1], mat2.shape[2]))

    @torch.library.register_fake("tilegemm::_addmm_unrecorded")
    def fake_addmm(self: Tensor, mat1: Tensor, mat2: Tensor, *, beta: float = 1.0,
                   alpha: float = 1.0) -> Tensor:
        return mat1.new_empty((mat1.shape[0], mat2.shape[1]))

    @torch.library.register_fake("tilegemm::_linear_unrecorded")
    def fake_linear(input: Tensor, weight: Tensor, bias: Tensor | None = None, *,
                    activation: int = 0) -> Tensor:
        return input.new_empty((*input.shape[:-1], weight.shape[0]))

    @torch.library.register_fake("tilegemm::scaled_mm")
    def fake_scaled_mm(self: Tensor, mat2: Tensor, scale_a: Tensor, scale_b: Tensor,
                       bias: Tensor | None = None, *,
                       out_dtype: torch.dtype | None = None) -> Tensor:
        return self.new_empty((self.shape[0], mat2.shape[1]), dtype=out_dtype or torch.bfloat16)


_ops = torch.ops.tilegemm


class _Function(torch.autograd.Function):
    generate_vmap_rule = True

    @classmethod
    def apply(cls, *arguments: Any, **keywords: Any) -> Any:
        """Leaves out that PyTorch completes arguments with their defaults by inspecting `forward`,
        which takes longer than all the rest."""
        if torch._C._are_functorch_transforms_active():
            return super().apply(*arguments, **keywords)
        return super(torch.autograd.Function, cls).apply(*arguments)


class _Mm(_Function):
    @staticmethod
    def forward(a: Tensor, b: Tensor) -> Any:
        return _ops._mm_unrecorded.default(a, b)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        a, b = ctx.saved_tensors
        needs_a, needs_b = ctx.needs_input_grad
        return (_ops.mm(gradient, b.mT) if needs_a else None,
                _ops.mm(a.mT, gradient) if needs_b else None)


class _Bmm(_Function):
    @staticmethod
    def forward(a: Tensor, b: Tensor) -> Any:
        return _ops._bmm_unrecorded.default(a, b)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        a, b = ctx.saved_tensors
        needs_a, needs_b = ctx.needs_input_grad
        return (_ops.bmm(gradient, b.mT) if needs_a else None,
                _ops.bmm(a.mT, gradient) if needs_b else None)


class _Addmm(_Function):
    @staticmethod
    def forward(c: Tensor, a: Tensor, b: Tensor, beta: float, alpha: float) -> Any:
        return _ops._addmm_unrecorded.default(c, a, b, beta=beta, alpha=alpha)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        c, a, b, ctx.beta, ctx.alpha = inputs
        ctx.shape = c.shape
        ctx.save_for_backward(a, b)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        a, b = ctx.saved_tensors
        needs_c, needs_a, needs_b = ctx.needs_input_grad[:3]
        scaled = gradient if ctx.alpha == 1 else gradient * ctx.alpha
        return (gradient.sum_to_size(ctx.shape) * ctx.beta if needs_c else None,
                _ops.mm(scaled, b.mT) if needs_a else None,
                _ops.mm(a.mT, scaled) if needs_b else None, None, None)


class _Linear(_Function):
    @staticmethod
    def forward(input: Tensor, weight: Tensor, bias: Tensor | None, activation: int) -> Any:
        return _ops._linear_unrecorded.default(input, weight, bias, activation=activation)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        input, weight, _, ctx.activation = inputs
        ctx.save_for_backward(input, weight)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        if ctx.activation:
            raise NotImplementedError("linear with an activation has no gradient; call the "
                                      "activation of torch.nn.functional instead")
        input, weight = ctx.saved_tensors
        needs_input, needs_weight, needs_bias, _ = ctx.needs_input_grad
        rows = gradient.reshape(-1, gradient.shape[-1])
        return (_ops.mm(rows, weight).reshape(input.shape) if needs_input else None,
                _ops.mm(rows.mT, input.reshape(-1, input.shape[-1])) if needs_weight else None,
                rows.sum(0) if needs_bias else None, None)


_FUNCTIONS: dict[str, type[_Function]] = {
    "mm": _Mm, "bmm": _Bmm, "addmm": _Addmm, "linear": _Linear}
_library = torch.library.Library("tilegemm", "IMPL")


def _make_recorder(name: str, apply: Callable[..., Any]) -> Callable[..., Any]:
    """Gives `apply`, which takes no keywords, the signature of an operator."""
    def record_addmm(self: Tensor, mat1: Tensor, mat2: Tensor, *, beta: float = 1.0,
                     alpha: float = 1.0) -> Any:
        return apply(self, mat1, mat2, beta, alpha)

    def record_linear(input: Tensor, weight: Tensor, bias: Tensor | None = None, *,
                      activation: int = 0) -> Any:
        return apply(input, weight, bias, activation)

    return {"addmm": record_addmm, "linear": record_linear}.get(name, apply)


def _register_gradient(name: str) -> None:
    """Lets an operator go straight to its kernel in C, which passes on what requires a gradient,
    unless a mode, a subclass of Tensor or a transform of torch.func stands in between, or the
    tensors have no memory."""
    function = _FUNCTIONS[name]
    _library.impl(name, torch.library.fallthrough_kernel, "Autograd")
    for key in ("Python", "FuncTorchDynamicLayerFrontMode", "Meta"):
        _library.impl(name, _make_recorder(name, function.apply), key)

    # The kernel in C runs below every transform, where PyTorch's own `apply` is enough.
    apply = super(torch.autograd.Function, function).apply

    def record(*arguments: Any) -> Any:
        try:
            return apply(*arguments)
        except _StopRecomputationError:
            # A checkpoint has the last tensor that it recomputes. Its exception does not pass the
            # kernel in C, so that the block runs to its end.
            with torch.no_grad():
                return function.forward(*arguments)

    _library.impl(f"_{name}_recorded", _make_recorder(name, record), "CompositeImplicitAutograd")


def _register_autocast(name: str, device: str, key: str) -> None:
    """Lets an operator take the type that torch.autocast has, as PyTorch's own do."""
    operator = getattr(torch.ops.tilegemm, name).default
    keys = torch._C.DispatchKeySet(getattr(torch._C.DispatchKey, key))

    def cast(value: Any) -> Any:
        is_cast = (isinstance(value, Tensor) and value.device.type == device
                   and value.is_floating_point() and value.dtype != torch.float64)
        return value.to(torch.get_autocast_dtype(device)) if is_cast else value

    def call(*arguments: Any, **keywords: Any) -> Any:
        with torch._C._ExcludeDispatchKeyGuard(keys):
            return operator(*map(cast, arguments), **keywords)

    _library.impl(name, call, key)


_register_fakes()
for _name in _FUNCTIONS:
    _register_gradient(_name)
    _register_autocast(_name, "cpu", "AutocastCPU")
    _register_autocast(_name, "cuda", "AutocastCUDA")


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None,
           activation: str = "none") -> Tensor:
    """Return activation(input @ weight.T + bias) in one kernel.

    input is (..., k), weight (n, k), bias (n,), the result (..., n), of one type on one device.
    activation is "none", "relu", "gelu_erf", "gelu_tanh" or "silu"; only "none" has a gradient.

    Raises ValueError for another activation, RuntimeError for shapes and types that do not fit.
    """
    if activation not in _ACTIVATIONS:
        raise ValueError(f"activation = {activation!r} is none of {', '.join(_ACTIVATIONS)}")
    result: Tensor = torch.ops.tilegemm.linear(input, weight, bias,
                                               activation=_ACTIVATIONS.index(activation))
    return result


_lock = threading.Lock()
_depth = 0


def _replace_addmm(name: str, key: str, library: torch.library.Library) -> None:
    """Puts a kernel in place of aten::addmm or baddbmm and its out= form. PyTorch's own computes
    complex numbers, whose beta and alpha may be complex too."""
    ours = getattr(torch.ops.tilegemm, f"_{name}").default
    ours_out = getattr(torch.ops.tilegemm, f"_{name}_out").default
    own = torch.library.get_kernel(f"aten::{name}", key)  # type: ignore[arg-type]
    own_out = torch.library.get_kernel(f"aten::{name}.out", key)  # type: ignore[arg-type]

    def add(keys: Any, self: Tensor, a: Tensor, b: Tensor, *, beta: Any = 1,
            alpha: Any = 1) -> Any:
        if a.is_floating_point():
            return ours(self, a, b, beta, alpha)
        return own.call_boxed(keys, self, a, b, beta=beta, alpha=alpha)

    def add_out(keys: Any, self: Tensor, a: Tensor, b: Tensor, *, beta: Any = 1, alpha: Any = 1,
                out: Tensor) -> Any:
        if a.is_floating_point():
            return ours_out(self, a, b, beta, alpha, out)
        return own_out.call_boxed(keys, self, a, b, beta=beta, alpha=alpha, out=out)

    library.impl(name, add, key, with_keyset=True, allow_override=True)
    library.impl(f"{name}.out", add_out, key, with_keyset=True, allow_override=True)


@contextlib.contextmanager
def enable(fp32: bool = True, bf16: bool = False, batch_invariant: bool = False) -> Iterator[None]:
    """Put tilegemm's kernels in place of PyTorch's own mm, addmm, bmm and baddbmm, on the CPU and
    on CUDA, for the whole process until the block ends.

    fp32    take products of float32. They keep the bound of IEEE float32, so that nothing is taken
            while torch.get_float32_matmul_precision() allows less, where PyTorch is faster.
    bf16    take products of bfloat16
    batch_invariant  the bits of a row depend on no other row

    Autograd, autocast and torch.compile go on as before, since they act above these kernels. What
    the library refuses goes to PyTorch's own kernel. Blocks may be nested; the outermost decides.

    Raises Error where PyTorch refuses the kernels.
    """
    global _depth
    with _lock:
        _depth += 1
        library = torch.library.Library("aten", "IMPL") if _depth == 1 else None
        if library:
            is_exact = torch.get_float32_matmul_precision() == "highest"
            _tilegemm.override_torch(True, fp32 and is_exact, bf16, batch_invariant)
            for key in ("CPU", "CUDA") if _has_cuda else ("CPU",):
                for name in ("addmm", "baddbmm"):
                    _replace_addmm(name, key, library)
    try:
        yield
    finally:
        with _lock:
            _depth -= 1
            if library:
                library._destroy()
                _tilegemm.override_torch(False, False, False, False)


def inductor() -> Callable[[], None]:
    """Offer tilegemm to the autotuning of torch.compile(mode="max-autotune").

    It times each product beside cuBLAS and Triton and takes the fastest. Return a function that
    withdraws the offer.
    """
    import torch._inductor.config as config

    def tilegemm_mm(a: Tensor, b: Tensor, out: Tensor) -> None:
        _tilegemm.matmul(a, b, out)

    config.external_matmul.append(tilegemm_mm)

    def withdraw() -> None:
        config.external_matmul.remove(tilegemm_mm)

    return withdraw
