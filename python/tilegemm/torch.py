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

from . import _tilegemm

__all__ = ["enable", "inductor", "linear"]

_has_cuda = _tilegemm.open_torch()
_ACTIVATIONS = ("none", "relu", "gelu_erf", "gelu_tanh", "silu")


def _register_fakes() -> None:
    @torch.library.register_fake("tilegemm::mm")
    def fake_mm(self: Tensor, mat2: Tensor) -> Tensor:
        torch._check(self.dim() == 2 and mat2.dim() == 2, lambda: "self must be a matrix")
        torch._check(self.shape[1] == mat2.shape[0],
                     lambda: f"mat1 and mat2 shapes cannot be multiplied ({self.shape[0]}x"
                             f"{self.shape[1]} and {mat2.shape[0]}x{mat2.shape[1]})")
        return self.new_empty((self.shape[0], mat2.shape[1]))

    @torch.library.register_fake("tilegemm::bmm")
    def fake_bmm(self: Tensor, mat2: Tensor) -> Tensor:
        return self.new_empty((self.shape[0], self.shape[1], mat2.shape[2]))

    @torch.library.register_fake("tilegemm::addmm")
    def fake_addmm(self: Tensor, mat1: Tensor, mat2: Tensor, *, beta: float = 1.0,
                   alpha: float = 1.0) -> Tensor:
        return mat1.new_empty((mat1.shape[0], mat2.shape[1]))

    @torch.library.register_fake("tilegemm::linear")
    def fake_linear(input: Tensor, weight: Tensor, bias: Tensor | None = None, *,
                    activation: int = 0) -> Tensor:
        return input.new_empty((*input.shape[:-1], weight.shape[0]))

    @torch.library.register_fake("tilegemm::scaled_mm")
    def fake_scaled_mm(self: Tensor, mat2: Tensor, scale_a: Tensor, scale_b: Tensor,
                       bias: Tensor | None = None, *,
                       out_dtype: torch.dtype | None = None) -> Tensor:
        return self.new_empty((self.shape[0], mat2.shape[1]), dtype=out_dtype or torch.bfloat16)


def _sum_to(gradient: Tensor, shape: torch.Size) -> Tensor:
    """Sums a gradient over the dimensions along which a tensor of `shape` was broadcast."""
    return gradient if gradient.shape == shape else gradient.sum_to_size(shape)


def _register_gradients() -> None:
    ops = torch.ops.tilegemm

    def save(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.save_for_backward(*inputs[:2])

    def mm_backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        a, b = ctx.saved_tensors
        needs_a, needs_b = ctx.needs_input_grad
        return (ops.mm(gradient, b.mT) if needs_a else None,
                ops.mm(a.mT, gradient) if needs_b else None)

    def bmm_backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        a, b = ctx.saved_tensors
        needs_a, needs_b = ctx.needs_input_grad
        return (ops.bmm(gradient, b.mT) if needs_a else None,
                ops.bmm(a.mT, gradient) if needs_b else None)

    def save_addmm(ctx: Any, inputs: tuple[Any, ...], keyword_only_inputs: dict[str, float],
                   output: Tensor) -> None:
        ctx.save_for_backward(inputs[1], inputs[2])
        ctx.shape = inputs[0].shape
        ctx.beta, ctx.alpha = keyword_only_inputs["beta"], keyword_only_inputs["alpha"]

    def addmm_backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        a, b = ctx.saved_tensors
        needs_c, needs_a, needs_b = ctx.needs_input_grad[:3]
        scaled = gradient if ctx.alpha == 1 else gradient * ctx.alpha
        return (_sum_to(gradient, ctx.shape) * ctx.beta if needs_c else None,
                ops.mm(scaled, b.mT) if needs_a else None,
                ops.mm(a.mT, scaled) if needs_b else None)

    def save_linear(ctx: Any, inputs: tuple[Any, ...], keyword_only_inputs: dict[str, int],
                    output: Tensor) -> None:
        if keyword_only_inputs["activation"]:
            raise NotImplementedError("the gradient of linear with an activation: call the "
                                      "activation of torch.nn.functional instead")
        ctx.save_for_backward(inputs[0], inputs[1])

    def linear_backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        input, weight = ctx.saved_tensors
        needs_input, needs_weight, *needs_bias = ctx.needs_input_grad  # a bias may be left out
        rows = gradient.reshape(-1, gradient.shape[-1])
        return (ops.mm(rows, weight).reshape(input.shape) if needs_input else None,
                ops.mm(rows.mT, input.reshape(-1, input.shape[-1])) if needs_weight else None,
                *(rows.sum(0) if is_needed else None for is_needed in needs_bias))

    torch.library.register_autograd("tilegemm::mm", mm_backward, setup_context=save)
    torch.library.register_autograd("tilegemm::bmm", bmm_backward, setup_context=save)
    torch.library.register_autograd("tilegemm::addmm", addmm_backward, setup_context=save_addmm)
    torch.library.register_autograd("tilegemm::linear", linear_backward, setup_context=save_linear)


_autocast_library = torch.library.Library("tilegemm", "IMPL")


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

    _autocast_library.impl(name, call, key)


_register_fakes()
_register_gradients()
for _name in ("mm", "bmm", "addmm", "linear"):
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
