"""Measures tilegemm beside PyTorch on the GPU: products of the sizes of the ladder, host time of a
call, and training steps of transformers. Prints JSON.

usage: measure.py [products] [host] [training]
"""

import json
import statistics
import sys
import time

import tilegemm
import tilegemm.torch
import torch
import transformers

SIZES = (256, 512, 1024, 2048, 4096, 8192, 16384)


def time_call(call, seconds=0.08):
    """Returns the median of seven samples of the time of a call, on the GPU."""
    call()
    torch.cuda.synchronize()
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    count, samples = 1, []
    while len(samples) < 7:
        start.record()
        for _ in range(count):
            call()
        end.record()
        end.synchronize()
        elapsed_s = start.elapsed_time(end) / 1e3
        if elapsed_s < seconds / 7 and not samples and count < 4096:
            count *= 2
            continue
        samples.append(elapsed_s / count)
    return statistics.median(samples)


def compare(ours, theirs):
    """Times two calls in turn, twice, and returns the shorter time of each in microseconds."""
    times = [(time_call(ours), time_call(theirs)) for _ in range(2)]
    return {"ours_us": 1e6 * min(t[0] for t in times), "torch_us": 1e6 * min(t[1] for t in times)}


def measure_products():
    rows = []
    for name, dtype, precision in (("fp32", torch.float32, "highest"),
                                   ("tf32", torch.float32, "high"),
                                   ("bf16", torch.bfloat16, "highest")):
        torch.set_float32_matmul_precision(precision)
        ours = "tf32" if name == "tf32" else "default"
        for size in SIZES:
            a, b = (torch.randn(size, size, device="cuda", dtype=dtype) for _ in range(2))
            out = torch.empty_like(a)
            hot = compare(lambda: tilegemm.matmul(a, b, out, precision=ours),
                          lambda: torch.mm(a, b, out=out))
            ring = [[torch.randn_like(a) for _ in range(3)]
                    for _ in range(max(2, 150_000_000 // (3 * a.nbytes)))] if size < 8192 else []
            cold = {}
            if ring:
                turn = [0]
                def take():
                    turn[0] += 1
                    return ring[turn[0] % len(ring)]
                def run_ours():
                    x, y, z = take()
                    tilegemm.matmul(x, y, z, precision=ours)
                def run_theirs():
                    x, y, z = take()
                    torch.mm(x, y, out=z)
                cold = compare(run_ours, run_theirs)
            rows.append({"type": name, "size": size, "hot": hot, "cold": cold})
    torch.set_float32_matmul_precision("highest")
    return rows


def time_host(call, count=2000):
    """Returns the shortest time of the host for a call, in microseconds; the GPU keeps up."""
    best = 1e9
    for _ in range(10):
        torch.cuda.synchronize()
        start_s = time.perf_counter()
        for _ in range(count // 10):
            call()
        best = min(best, (time.perf_counter() - start_s) / (count // 10))
    return best * 1e6


def measure_host():
    a, b, c = (torch.randn(64, 64, device="cuda") for _ in range(3))
    out, op = torch.empty_like(a), torch.ops.tilegemm.mm.default
    rows = {"torch.mm": time_host(lambda: torch.mm(a, b)),
            "torch.mm out": time_host(lambda: torch.mm(a, b, out=out)),
            "torch.addmm": time_host(lambda: torch.addmm(c, a, b)),
            "tilegemm.matmul": time_host(lambda: tilegemm.matmul(a, b)),
            "tilegemm.matmul out": time_host(lambda: tilegemm.matmul(a, b, out)),
            "ops.mm": time_host(lambda: op(a, b))}
    with torch.inference_mode():
        rows["ops.mm, inference mode"] = time_host(lambda: op(a, b))
        rows["torch.mm, inference mode"] = time_host(lambda: torch.mm(a, b))
    with tilegemm.torch.enable():
        rows["torch.mm, replaced"] = time_host(lambda: torch.mm(a, b))
        rows["torch.addmm, replaced"] = time_host(lambda: torch.addmm(c, a, b))
    return rows


def time_training(config, is_compiled):
    torch.manual_seed(0)
    model = transformers.GPT2LMHeadModel(config).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    tokens = torch.randint(0, config.vocab_size, (8, 1024), device="cuda")
    forward = torch.compile(model) if is_compiled else model

    def step():
        logits = forward(tokens).logits
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), tokens.flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    losses = [step().item() for _ in range(3)]
    torch.cuda.synchronize()
    samples = []
    for _ in range(4):
        start_s = time.perf_counter()
        step()
        torch.cuda.synchronize()
        samples.append(time.perf_counter() - start_s)
    return {"step_s": min(samples), "losses": losses}


def measure_training():
    rows = []
    for name, is_compiled, sizes in (
            ("small", False, {}), ("medium", False, {"n_embd": 1024, "n_layer": 24, "n_head": 16}),
            ("small", True, {})):
        config = transformers.GPT2Config(resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, **sizes)
        own = time_training(config, is_compiled)
        torch._dynamo.reset()
        with tilegemm.torch.enable():
            ours = time_training(config, is_compiled)
        torch._dynamo.reset()
        rows.append({"model": f"gpt2 {name}", "is_compiled": is_compiled, "torch": own,
                     "ours": ours, "ratio": own["step_s"] / ours["step_s"]})
        print(rows[-1], file=sys.stderr)
    return rows


def main():
    parts = {"products": measure_products, "host": measure_host, "training": measure_training}
    chosen = sys.argv[1:] or list(parts)
    torch.backends.cuda.matmul.allow_tf32 = False
    result = {"gpu": torch.cuda.get_device_name(), "torch": torch.__version__,
              **{name: parts[name]() for name in chosen}}
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
