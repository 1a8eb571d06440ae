"""Our kernels in place of PyTorch's own: out=, what is taken, and that all is as before when the
block ends."""

import os
import subprocess
import sys

import pytest
import tilegemm.torch
import torch

DEVICES = ["cpu"] + (["cuda"] if torch.cuda.is_available() else [])


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
