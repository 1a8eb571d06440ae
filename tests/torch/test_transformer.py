"""A small transformer of `transformers` with random weights: 20 steps of training and 64 generated
tokens by our kernels and by PyTorch's own."""

import pytest
import tilegemm.torch
import torch
import transformers

DEVICES = ["cpu"] + (["cuda"] if torch.cuda.is_available() else [])


def make_model(device):
    torch.manual_seed(11)
    config = transformers.GPT2Config(vocab_size=500, n_positions=128, n_embd=96, n_layer=3,
                                     n_head=4, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0)
    return transformers.GPT2LMHeadModel(config).to(device)


def train(device):
    """Returns the losses of 20 steps, and the model."""
    model = make_model(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    tokens = torch.randint(0, 500, (4, 64), generator=torch.Generator().manual_seed(2)).to(device)
    losses = []
    for _ in range(20):
        loss = model(tokens, labels=tokens).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, model


def generate(model, device):
    tokens = torch.arange(8, device=device)[None]
    return model.generate(tokens, max_new_tokens=64, do_sample=False, pad_token_id=0)


@pytest.mark.parametrize("device", DEVICES)
def test_training_and_generation(device):
    own, model = train(device)
    own_tokens = generate(model, device)
    with tilegemm.torch.enable():
        ours, _ = train(device)
        tokens = generate(model, device)
    assert own[-1] < own[0]
    torch.testing.assert_close(torch.tensor(ours), torch.tensor(own), rtol=2e-4, atol=0)
    assert tokens.shape == (1, 72) and torch.equal(tokens, own_tokens)
