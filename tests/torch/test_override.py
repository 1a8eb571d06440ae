"""PyTorch's own programs on our kernels: its samples of mm, addmm, bmm, baddbmm, linear and matmul,
autograd, autocast, torch.compile, out=, and that all is as before when the block ends."""

import os
import subprocess
import sys

import pytest
import tilegemm.torch
import torch
from torch.testing._internal.common_methods_invocations import op_db

DEVICES = ["cpu"] + (["cuda"] if torch.cuda.is_available() else [])
NAMES = ("mm", "addmm", "bmm", "baddbmm", "nn.functional.linear", "matmul", "__rmatmul__", "addbmm")
OPERATORS = [op for op in op_db if op.name in NAMES]
DTYPES = [torch.float32, torch.bfloat16, torch.float64, torch.complex64, torch.int64]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("op", OPERATORS, ids=lambda op: op.full_name)
def test_samples_of_pytorch(op, dtype, device):
    if dtype not in op.supported_dtypes(device):
        pytest.skip(f"PyTorch has no {op.full_name} of {dtype} on {device}")
    has_gradient = dtype in op.supported_backward_dtypes(device)
    count = 0
    for sample in op.sample_inputs(device, dtype, requires_grad=has_gradient):
        def run():
            torch.manual_seed(3)
            result = op(sample.input, *sample.args, **sample.kwargs)
            leaves = [x for x in (sample.input, *sample.args)
                      if isinstance(x, torch.Tensor) and x.requires_grad]
            if not leaves:
                return [result]
            weights = torch.rand(result.shape, device=device).to(dtype)
            gradients = torch.autograd.grad(result, leaves, weights, allow_unused=True)
            return [result, *(x for x in gradients if x is not None)]
        own = run()
        with tilegemm.torch.enable(fp32=True, bf16=True):
            ours = run()
        assert len(own) == len(ours)
        for x, y in zip(ours, own):
            assert x.stride() == y.stride()
            torch.testing.assert_close(x, y)
        count += 1
    assert count > 0


@pytest.mark.parametrize("op", [op for op in OPERATORS if op.error_inputs_func],
                         ids=lambda op: op.full_name)
def test_errors_of_pytorch(op):
    with tilegemm.torch.enable():
        for wrong in op.error_inputs("cpu"):
            sample = wrong.sample_input
            with pytest.raises(wrong.error_type):
                op(sample.input, *sample.args, **sample.kwargs)


@pytest.mark.parametrize("device", DEVICES)
def test_out(device):
    a, b, c = (torch.rand(shape, device=device) for shape in ((5, 7), (7, 3), (5, 3)))
    expected = a @ b
    with tilegemm.torch.enable():
        for out in (torch.empty(5, 3, device=device), torch.empty(3, 5, device=device).mT,
                    torch.empty(0, device=device)):
            assert torch.mm(a, b, out=out) is out
            torch.testing.assert_close(out, expected)
        for out in (torch.empty(5, 3, device=device), torch.empty(0, device=device)):
            assert torch.addmm(c, a, b, beta=2, alpha=0.5, out=out) is out
            torch.testing.assert_close(out, 2 * c + 0.5 * expected)
        kept = c.clone()
        torch.testing.assert_close(kept.addmm_(a, b), c + expected)
        out = torch.empty(2, 5, 3, device=device)
        torch.bmm(a.expand(2, 5, 7), b.expand(2, 7, 3), out=out)
        torch.testing.assert_close(out, expected.expand(2, 5, 3))


@pytest.mark.parametrize("device", DEVICES)
def test_compiled_and_autocast(device):
    layer = torch.nn.Linear(7, 3, device=device)
    x = torch.rand(2, 5, 7, device=device)

    def function(x):
        return torch.relu(layer(x)) @ layer.weight

    own = function(x)
    with tilegemm.torch.enable(bf16=True):
        torch.testing.assert_close(torch.compile(function, fullgraph=True)(x), own)
        with torch.autocast(device, dtype=torch.bfloat16):
            assert layer(x).dtype == torch.bfloat16


PROGRAM = """
import sys, tilegemm.torch, torch
def run():
    a, b = torch.rand(2, 5, 7), torch.rand(2, 7, 3)
    for call in (lambda: a[0] @ b[0], lambda: torch.addmm(a[0, 0, :3], a[0], b[0]),
                 lambda: torch.bmm(a, b), lambda: torch.baddbmm(a[:, :, :3], a, b),
                 lambda: torch.nn.functional.linear(a[0], b[0].mT, b[0, 0])):
        call()
def mark(text):
    print(text, file=sys.stderr, flush=True)
run(); mark("--")
with tilegemm.torch.enable():
    with tilegemm.torch.enable(fp32=False):
        run()
    mark("--")
    torch.rand(5, 5).double() @ torch.rand(5, 5).double()
mark("--")
run(); mark("--")
with tilegemm.torch.enable(fp32=False):
    run()
torch.set_float32_matmul_precision("high")
with tilegemm.torch.enable():
    run()
"""


def test_what_is_taken():
    """The library's log has a line for each product that it computes."""
    run = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True,
                         check=True, env={**os.environ, "TILEGEMM_LOG": "1"})
    parts = [sum("fp32" in line or "5x" in line for line in part.splitlines()
                 if line.startswith("tilegemm"))
             for part in run.stderr.split("--\n")]
    assert parts == [0, 5, 0, 0, 0], run.stderr


def test_batch_invariance():
    a, b = torch.rand(40, 300), torch.rand(300, 50)
    with tilegemm.torch.enable(batch_invariant=True):
        whole = a @ b
        assert all(torch.equal((a[i:i + 1] @ b)[0], whole[i]) for i in range(40))


def test_inductor_offer():
    import torch._inductor.config as config
    before = list(config.external_matmul)
    withdraw = tilegemm.torch.inductor()
    try:
        a, b = torch.rand(64, 64), torch.rand(64, 64)
        out = torch.empty(64, 64)
        config.external_matmul[-1](a, b, out)
        torch.testing.assert_close(out, a @ b)
        compiled = torch.compile(lambda x, y: x @ y, mode="max-autotune-no-cudagraphs",
                                 fullgraph=True)
        torch.testing.assert_close(compiled(a, b), a @ b)
    finally:
        withdraw()
    assert config.external_matmul == before
