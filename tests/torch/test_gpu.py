"""Arrays on a GPU: CuPy, JAX and PyTorch; streams; CUDA graphs; a trace that holds no copy and no
synchronisation."""

import os

import numpy
import pytest
import tilegemm
import tilegemm.torch
import torch

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")
OPS = torch.ops.tilegemm


def make(*shape, dtype=torch.float32):
    return torch.randint(-4, 5, shape, device="cuda").to(dtype)


def test_cupy():
    cupy = pytest.importorskip("cupy")
    a, b = (cupy.random.randint(-4, 5, shape).astype("float32") for shape in ((65, 70), (70, 33)))
    result = tilegemm.matmul(a, b)
    assert isinstance(result, cupy.ndarray) and (result == a @ b).all()
    assert (tilegemm.matmul(a.T[::-1, ::2], a[::2]) == a.T[::-1, ::2] @ a[::2]).all()
    with cupy.cuda.Stream(non_blocking=True) as stream:
        x = a * 2
        y = tilegemm.matmul(x, b)
        stream.synchronize()
        assert (y == 2 * (a @ b)).all()
    other = cupy.cuda.Stream(non_blocking=True)
    y = tilegemm.matmul(a, b, stream=other)
    other.synchronize()
    assert (y == a @ b).all()


def test_jax():
    os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"  # other tests need the memory too
    jax = pytest.importorskip("jax")
    if jax.default_backend() != "gpu":
        pytest.skip("JAX has no GPU")
    a = jax.numpy.arange(65 * 70, dtype="float32").reshape(65, 70) % 7
    result = tilegemm.matmul(a, a.T)
    assert isinstance(result, jax.Array) and result.devices() == a.devices()
    exact = numpy.asarray(a) @ numpy.asarray(a).T
    assert numpy.array_equal(numpy.asarray(result), exact)
    low = a.astype(jax.numpy.bfloat16)
    assert numpy.allclose(numpy.asarray(tilegemm.matmul(low, low.T), "float32"), exact, rtol=0.01)


def test_libraries_that_mix():
    cupy = pytest.importorskip("cupy")
    a, b = make(65, 70), make(70, 33)
    expected = a @ b
    out = torch.empty_like(expected)
    assert tilegemm.matmul(cupy.asarray(a), b, out) is out and torch.equal(out, expected)
    assert torch.equal(tilegemm.matmul(a, cupy.asarray(b)), expected)
    with pytest.raises(tilegemm.ArgumentError, match="a is on GPU 0 and b is on CPU 0"):
        tilegemm.matmul(a, b.cpu())


def test_current_stream():
    a, b = make(2000, 2000), make(2000, 2000)
    expected = (3 * a) @ b
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(20):
            x = a * 3
            ours, other = tilegemm.matmul(x, b), OPS.mm(x, b)
            x.zero_()
    stream.synchronize()
    torch.testing.assert_close(ours, expected)
    torch.testing.assert_close(other, expected)


@pytest.mark.parametrize("shape", [(64, 64, 64), (512, 512, 4096), (1000, 1200, 800)])
def test_graphs(shape):
    m, n, k = shape
    a, b = make(m, k), make(k, n)
    out = torch.empty(m, n, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        kept = OPS.mm(a, b)
        tilegemm.matmul(a, b, out)
    with tilegemm.torch.enable():
        other = torch.cuda.CUDAGraph()
        with torch.cuda.graph(other):
            third = torch.addmm(kept, a, b)
    a.copy_(make(m, k))
    graph.replay()
    other.replay()
    torch.testing.assert_close(kept, a @ b)
    torch.testing.assert_close(out, a @ b)
    torch.testing.assert_close(third, 2 * (a @ b))


def trace(calls):
    """Returns the names of what the calls do on the processor and on the GPU."""
    for call in calls:
        call()
    torch.cuda.synchronize()
    with torch.profiler.profile() as profile:
        for call in calls:
            call()
    return [event.name for event in profile.events()]


def find_faults(names):
    """Returns the copies and the waits, but the one by which the profiler itself ends."""
    faults = [name for name in names if "memcpy" in name.lower() or "memset" in name.lower()
              or "ynchronize" in name]
    if "cudaDeviceSynchronize" in faults:
        faults.remove("cudaDeviceSynchronize")
    return faults


def test_trace_holds_no_copy_and_no_synchronisation():
    a, b = make(1000, 1200), make(1200, 800)
    low_a, low_b = a.bfloat16(), b.bfloat16()
    bias = make(800)
    out = torch.empty(1000, 800, device="cuda")
    calls = (lambda: tilegemm.matmul(a, b), lambda: tilegemm.matmul(a, b, out, bias=bias),
             lambda: OPS.mm(a, b), lambda: OPS.addmm(bias, a, b), lambda: tilegemm.matmul(b.T, a.T),
             lambda: OPS.mm(low_a, low_b), lambda: OPS.linear(low_a, low_b.T))
    names = trace(calls)
    own = [name for name in names if name.startswith("cuda_")]
    assert len(own) >= len(calls), "\n".join(names)
    assert not find_faults(names), "\n".join(names)
    with tilegemm.torch.enable():
        assert not find_faults(trace((lambda: a @ b, lambda: torch.addmm(bias, a, b))))
    assert find_faults(trace((lambda: a.cpu(),))) and find_faults(trace((lambda: a[0, 0].item(),)))


def test_precision_of_float32():
    a, b = torch.randn(512, 4096, device="cuda"), torch.randn(4096, 512, device="cuda")
    exact = a.double() @ b.double()
    scale = a.double().abs() @ b.double().abs()
    with tilegemm.torch.enable():
        error = ((a @ b).double() - exact).abs() / scale
    assert error.max() < 4100 * 2.0 ** -24
