"""PyTorch's own samples and errors of mm, addmm, bmm, baddbmm, linear and matmul, on our kernels in
place of PyTorch's."""

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
