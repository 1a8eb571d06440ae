"""The operators of torch.ops.tilegemm on each device that is here: values, gradients, opcheck,
errors."""

import pytest
import tilegemm
import tilegemm.torch
import torch
from torch.library import opcheck
from torch.utils.checkpoint import checkpoint

OPS = torch.ops.tilegemm
DEVICES = ["cpu"] + (["cuda"] if torch.cuda.is_available() else [])
FP8 = torch.float8_e4m3fn


@pytest.fixture(params=DEVICES, name="device")
def fixture_device(request):
    torch.manual_seed(5)
    return request.param


def make(device, *shape, dtype=torch.float32, gradient=False):
    return torch.randint(-4, 5, shape, device=device).to(dtype).requires_grad_(gradient)


def list_calls(device, **kind):
    """Yields (operator, arguments, keywords, PyTorch's own result)."""
    def make_one(*shape):
        return make(device, *shape, **kind)
    a, b = make_one(5, 7), make_one(7, 3)
    yield "mm", (a, b), {}, a @ b
    yield "mm", (make_one(7, 5).mT, b), {}, None
    yield "mm", (make_one(10, 14)[::2, ::2], b), {}, None
    yield "mm", (make_one(0, 7), b), {}, None
    yield "mm", (make_one(5, 0), make_one(0, 3)), {}, None
    yield "bmm", (make_one(2, 5, 7), make_one(2, 7, 3)), {}, None
    yield "bmm", (make_one(5, 2, 7).transpose(0, 1), make_one(2, 3, 7).mT), {}, None
    for shape in ((3,), (1, 3), (5, 1), (5, 3), (1,), ()):
        yield "addmm", (make_one(*shape), a, b), {"beta": 2.0, "alpha": 3.0}, None
    yield "addmm", (make_one(3), a, b), {}, None
    yield "linear", (make_one(2, 5, 7), make_one(3, 7), make_one(3)), {}, None
    yield "linear", (make_one(7), make_one(3, 7)), {}, None
    yield "linear", (make_one(5, 7), make_one(3, 7), make_one(3, 2)[:, 1]), {}, None
    yield "linear", (make_one(2, 1, 5, 7), make_one(3, 7), None), {}, None


def compute_own(name, arguments, keywords):
    own = torch.nn.functional.linear if name == "linear" else getattr(torch, name)
    return own(*arguments, **keywords)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
def test_values(device, dtype):
    for name, arguments, keywords, _ in list_calls(device, dtype=dtype):
        result = getattr(OPS, name)(*arguments, **keywords)
        expected = compute_own(name, arguments, keywords)
        assert result.dtype == dtype and result.stride() == expected.contiguous().stride()
        assert torch.equal(result, expected), name


def test_gradients(device):
    for name, arguments, keywords, _ in list_calls(device, dtype=torch.float64, gradient=True):
        leaves = [x for x in arguments if x is not None]
        result = getattr(OPS, name)(*arguments, **keywords)
        weights = torch.rand_like(result)
        found = torch.autograd.grad((result * weights).sum(), leaves)
        own = torch.autograd.grad((compute_own(name, arguments, keywords) * weights).sum(), leaves)
        for ours, theirs in zip(found, own):
            torch.testing.assert_close(ours, theirs)


def test_second_gradients(device):
    for name, arguments, keywords, _ in list_calls(device, dtype=torch.float64, gradient=True):
        if min(arguments[1].shape) and len(arguments) == 2:
            assert torch.autograd.gradgradcheck(getattr(OPS, name), arguments), name


@pytest.mark.parametrize("is_reentrant", [False, True])
def test_checkpoints(device, is_reentrant):
    """Activation checkpointing ends the recomputation of a block inside our operator."""
    def make_gradients(mm, linear):
        torch.manual_seed(7)
        a, b = make(device, 5, 7, gradient=True), make(device, 7, 3, gradient=True)

        def inner(x):
            return mm(x, b)

        def outer(x):
            x = checkpoint(inner, x.sin(), use_reentrant=is_reentrant)
            return linear(x, b, b[:, 0]).relu()

        checkpoint(outer, a, use_reentrant=is_reentrant).sum().backward()
        return a.grad, b.grad

    for ours, own in zip(make_gradients(OPS.mm, OPS.linear),
                         make_gradients(torch.mm, torch.nn.functional.linear)):
        torch.testing.assert_close(ours, own)


def test_transforms_of_functions(device):
    a, b, c = make(device, 5, 7), make(device, 7, 3), make(device, 3)

    def sum_up(mm, addmm, linear):
        return lambda x: (addmm(c, x, b).sin() + linear(mm(x, b), b.mT[:, :3], c)[:, :3]).sum()

    ours = sum_up(OPS.mm, OPS.addmm, OPS.linear)
    own = sum_up(torch.mm, torch.addmm, torch.nn.functional.linear)
    torch.testing.assert_close(torch.func.grad(ours)(a), torch.func.grad(own)(a))
    many = torch.stack((a, 2 * a))
    torch.testing.assert_close(torch.func.vmap(torch.func.grad(ours))(many),
                               torch.func.vmap(torch.func.grad(own))(many))


class Recorder(torch.utils._python_dispatch.TorchDispatchMode):
    """Lists the operators that it sees."""

    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, function, types, arguments=(), keywords=None):
        self.names.append(function.name())
        return function(*arguments, **(keywords or {}))


def test_who_stands_between(device):
    """Modes, subclasses and tensors without memory get the product and its gradient."""
    a, b = make(device, 5, 7, gradient=True), make(device, 7, 3)
    with Recorder() as recorder:
        OPS.mm(a, b).sum().backward()
        OPS.mm(b.mT, b)
    assert recorder.names.count("tilegemm::_mm_unrecorded") == 3
    torch.testing.assert_close(a.grad, torch.ones(5, 3, device=device) @ b.mT)
    assert OPS.mm(a.to("meta"), b.to("meta")).requires_grad
    assert not OPS.mm(a.detach().to("meta"), b.to("meta")).requires_grad
    negative = torch.complex(a.detach(), a.detach()).conj().imag.requires_grad_()
    result = OPS.mm(negative, b)
    torch.testing.assert_close(result, -(a @ b))
    assert torch.autograd.grad(result.sum(), negative)[0].shape == (5, 7)


def test_opcheck(device):
    for name, arguments, keywords, _ in list_calls(device, gradient=True):
        opcheck(getattr(OPS, name).default, arguments, keywords)
    low = make(device, 16, 32).to(FP8)
    scales = torch.tensor(2.0, device=device), torch.ones(16, device=device)
    # PyTorch's own operators lack FP8 on the CPU, which the check of the schema calls.
    opcheck(OPS.scaled_mm.default, (low, low.mT, *scales), {},
            test_utils=("test_autograd_registration", "test_faketensor"))


def test_scaled_mm(device):
    a, b = make(device, 16, 32), make(device, 32, 48)
    rows, cols = torch.rand(16, 1, device=device), torch.rand(1, 48, device=device)
    low_a, low_b = a.to(FP8), b.mT.contiguous().to(FP8).mT
    for scales in ((rows, cols), (rows.flatten(), cols[0]), (rows[0, 0], cols[0, 0])):
        result = OPS.scaled_mm(low_a, low_b, *scales, out_dtype=torch.float32)
        torch.testing.assert_close(result, (a @ b) * scales[0].view(-1, 1) * scales[1])
    assert OPS.scaled_mm(low_a, low_b, rows, cols).dtype == torch.bfloat16
    bias = torch.rand(48, device=device)
    result = OPS.scaled_mm(low_a, low_b, rows, cols, bias, out_dtype=torch.float32)
    torch.testing.assert_close(result, (a @ b) * rows * cols + bias)
    with pytest.raises(RuntimeError, match="scale_a has 3 values"):
        OPS.scaled_mm(low_a, low_b, rows[:3], cols)


def test_activations(device):
    functions = {"none": lambda x: x, "relu": torch.relu, "silu": torch.nn.functional.silu,
                 "gelu_erf": torch.nn.functional.gelu,
                 "gelu_tanh": lambda x: torch.nn.functional.gelu(x, approximate="tanh")}
    x, weight, bias = make(device, 2, 5, 7), make(device, 3, 7), make(device, 3)
    for name, function in functions.items():
        result = tilegemm.torch.linear(x, weight, bias, name)
        torch.testing.assert_close(result, function(torch.nn.functional.linear(x, weight, bias)))
    with pytest.raises(ValueError, match="activation = 'tanh' is none of"):
        tilegemm.torch.linear(x, weight, bias, "tanh")
    with pytest.raises(RuntimeError, match="activation has no gradient"):
        tilegemm.torch.linear(x, weight.requires_grad_(), bias, "relu")


def test_errors(device):
    a, b = make(device, 5, 7), make(device, 7, 3)
    for call, text in (
            (lambda: OPS.mm(a, a), "mat1 and mat2 shapes cannot be multiplied"),
            (lambda: OPS.mm(a, b.double()), "same dtype"),
            (lambda: OPS.mm(a.int(), b.int()), "convert the operands"),
            (lambda: OPS.mm(a[0], b), "matrix"),
            (lambda: OPS.bmm(a, b), "3D"),
            (lambda: OPS.addmm(make(device, 4), a, b), "size of the addend"),
            (lambda: OPS.addmm(make(device, 3).double(), a, b), "type and device"),
            (lambda: OPS.linear(a, b), "7 columns and the weight 3"),
            (lambda: OPS.linear(make(device, 4, 5, 7)[:, ::2], b.mT), "contiguous"),
            (lambda: OPS.linear(a, b.mT, make(device, 4)), "bias")):
        with pytest.raises(RuntimeError, match=text):
            call()
    if device == "cuda":
        with pytest.raises(RuntimeError, match="same device"):
            OPS.mm(a, b.cpu())


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_autocast(device, dtype):
    def run():
        results = []
        for name, arguments, keywords, _ in list_calls(device, gradient=True):
            result = getattr(OPS, name)(*arguments, **keywords)
            result.sum().backward()
            results.append((result.dtype, arguments[1].grad.dtype if arguments[1].is_leaf
                            else torch.float32))
        return results

    with torch.autocast(device, dtype=dtype):
        assert set(run()) == {(dtype, torch.float32)}
        a = make(device, 3, 4, dtype=torch.float64)
        assert OPS.mm(a, a.mT).dtype == torch.float64
        compiled = torch.compile(lambda x: OPS.mm(x, x.mT), fullgraph=True, backend="aot_eager")
        assert compiled(make(device, 3, 4)).dtype == dtype
    assert set(run()) == {(torch.float32, torch.float32)}


def test_matmul_of_tensors(device):
    a, b = make(device, 2, 5, 7), make(device, 7, 3)
    result = tilegemm.matmul(a, b)
    assert isinstance(result, torch.Tensor) and torch.equal(result, a @ b)
    assert torch.equal(tilegemm.matmul(a.mT, a), a.mT @ a)
    out = torch.empty(2, 5, 3, device=device)
    assert tilegemm.matmul(a, b, out) is out and torch.equal(out, a @ b)
    parameter = torch.nn.Parameter(a)
    with pytest.raises(tilegemm.OperandTypeError, match="requires a gradient"):
        tilegemm.matmul(parameter, b)
    with torch.no_grad():
        assert torch.equal(tilegemm.matmul(parameter, b), a @ b)
    negative = torch.complex(make(device, 3, 4), make(device, 3, 4)).conj().imag
    with pytest.raises(tilegemm.OperandTypeError, match="resolve_neg"):
        tilegemm.matmul(negative, make(device, 4, 2))
    assert torch.equal(tilegemm.matmul(a.bfloat16(), b.bfloat16()), a.bfloat16() @ b.bfloat16())
    with pytest.raises(RuntimeError):  # PyTorch's own: the tensor has no memory
        tilegemm.matmul(a.to("meta"), b)
