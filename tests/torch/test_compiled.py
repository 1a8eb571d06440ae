"""torch.compile: it keeps our operators in its graphs, compiles programs that take our kernels, and
times us among others."""

import pytest
import tilegemm.torch
import torch
import torch._inductor.config
import transformers

OPS = torch.ops.tilegemm
DEVICES = ["cpu"] + (["cuda"] if torch.cuda.is_available() else [])


@pytest.mark.parametrize("device", DEVICES)
def test_operators(device):
    def make(*shape):
        return torch.randint(-4, 5, shape, device=device).float()

    weight = make(3, 7).requires_grad_()

    def function(x, y):
        z = OPS.addmm(x[0], OPS.mm(x, y), x[:3, :3], beta=0.5)
        batch = OPS.bmm(z[None], y[None, :3])[0]
        return OPS.linear(torch.relu(z), OPS.mm(weight, weight.mT)) + batch

    arguments = make(5, 3), make(3, 3)
    for backend in ("aot_eager", "inductor"):
        compiled = torch.compile(function, fullgraph=True, backend=backend)
        torch.testing.assert_close(compiled(*arguments), function(*arguments))
        found, = torch.autograd.grad(compiled(*arguments).sum(), weight)
        own, = torch.autograd.grad(function(*arguments).sum(), weight)
        torch.testing.assert_close(found, own)


@pytest.mark.parametrize("device", DEVICES)
def test_override_and_autocast(device):
    layer = torch.nn.Linear(7, 3, device=device)
    x = torch.rand(2, 5, 7, device=device)

    def function(x):
        return torch.relu(layer(x)) @ layer.weight

    own = function(x)
    with tilegemm.torch.enable(bf16=True):
        compiled = torch.compile(function, fullgraph=True)
        torch.testing.assert_close(compiled(x), own)
        with torch.profiler.profile() as profile:
            compiled(x)
        # On a GPU inductor adds the bias in a kernel of its own, and what is left is an mm: there
        # the names of the kernels themselves, the table's rows, tell whose they are.
        wanted = "tilegemm::_addmm" if device == "cpu" else "cuda_"
        names = {event.name for event in profile.events()}
        assert any(name.startswith(wanted) for name in names), names
        with torch.autocast(device, dtype=torch.bfloat16):
            assert layer(x).dtype == torch.bfloat16


@pytest.mark.parametrize("device", DEVICES)
def test_training_step(device):
    torch.manual_seed(11)
    config = transformers.GPT2Config(vocab_size=500, n_positions=128, n_embd=96, n_layer=1,
                                     n_head=4, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0)
    model = transformers.GPT2LMHeadModel(config).to(device)
    tokens = torch.randint(0, 500, (2, 32), device=device)

    def step():
        model.zero_grad()
        logits = model(tokens).logits
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), tokens.flatten())
        loss.backward()
        return loss.item(), model.transformer.h[0].mlp.c_fc.weight.grad.clone()

    own_loss, own_gradient = step()
    with tilegemm.torch.enable():
        model.compile(fullgraph=True)
        loss, gradient = step()
    assert loss == pytest.approx(own_loss, rel=1e-5)
    torch.testing.assert_close(gradient, own_gradient, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("device", DEVICES)
def test_inductor_offer(device, monkeypatch):
    config, calls = torch._inductor.config, []
    before, multiply = list(config.external_matmul), tilegemm.torch._tilegemm.matmul

    def count(*arguments):
        calls.append(arguments)
        return multiply(*arguments)

    monkeypatch.setattr(tilegemm.torch._tilegemm, "matmul", count)
    withdraw = tilegemm.torch.inductor()
    try:
        a, b = torch.rand(64, 64, device=device), torch.rand(64, 64, device=device)
        with config.patch(max_autotune_gemm_backends="ATEN"):
            compiled = torch.compile(lambda x, y: x @ y, mode="max-autotune-no-cudagraphs",
                                     fullgraph=True)
            torch.testing.assert_close(compiled(a, b), a @ b)
        assert calls
    finally:
        withdraw()
    assert config.external_matmul == before
