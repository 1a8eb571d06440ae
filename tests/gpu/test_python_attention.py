#!/usr/bin/env python3
"""The Python function attention on tensors of PyTorch in a GPU's memory, in all its types.

usage: test_python_attention.py BUILD_DIR

The extension is that of the build folder, if it has one (TG_PYTHON=ON), else the installed one.
"""
import atexit
import os
import shutil
import sys
import tempfile
import unittest

SKIPPED = 77
PACKAGE = os.path.join(os.path.dirname(__file__), "..", "..", "python", "tilegemm")
UNITS = {"float32": 2.0**-24, "float64": 2.0**-53, "bfloat16": 2.0**-8, "float16": 2.0**-11}
SHAPES = ((2, 4, 2, 33, 70, 64), (1, 4, 4, 17, 130, 128), (3, 2, 1, 9, 40, 200),
          (5, 8, 2, 1, 700, 256), (2, 3, 3, 200, 200, 40), (4, 8, 8, 1, 3000, 64))


def import_package(build):
    """Returns the package: its files, copied without an extension built in place, beside a link to
    the build's extension."""
    extension = os.path.join(build, "python", "_tilegemm.abi3.so")
    if os.path.isfile(extension):
        parent = tempfile.mkdtemp(prefix="tilegemm-test-")
        atexit.register(shutil.rmtree, parent)
        folder = os.path.join(parent, "tilegemm")
        shutil.copytree(PACKAGE, folder, ignore=shutil.ignore_patterns("*.so"))
        os.symlink(os.path.abspath(extension), os.path.join(folder, "_tilegemm.abi3.so"))
        sys.path.insert(0, parent)
    import tilegemm
    return tilegemm


def attend(q, k, v, causal):
    """Returns D, the weighted |V| and the logarithms in FP64."""
    q, k, v = (x.double() for x in (q, k, v))
    k, v = (x.repeat_interleave(q.shape[1] // k.shape[1], 1) for x in (k, v))
    scores = q @ k.mT / q.shape[3]**0.5
    if causal:
        m, n = scores.shape[2:]
        seen = torch.ones(m, n, dtype=torch.bool, device=q.device).tril(n - m)
        scores = scores.masked_fill(~seen, -torch.inf)
    logarithms = scores.logsumexp(-1)
    weights = scores.softmax(-1).nan_to_num(0.0)
    return weights @ v, weights @ v.abs(), logarithms


class Attention(unittest.TestCase):
    def make(self, name, batch, heads, kv_heads, m, n, size):
        generator = torch.Generator("cuda").manual_seed(7)
        return [torch.randn(batch, count, rows, size, device="cuda", generator=generator,
                            dtype=torch.float64).to(getattr(torch, name))
                for count, rows in ((heads, m), (kv_heads, n), (kv_heads, n))]

    def assert_near(self, name, found, exact, size):
        worst = ((found.double() - exact).abs() / (size + 1e-30)).max().item()
        self.assertLessEqual(worst, (400 if UNITS[name] < 1e-6 else 4) * UNITS[name])

    def test_results(self):
        for name in UNITS:
            for shape in SHAPES:
                for causal in (False, True):
                    with self.subTest(name=name, shape=shape, causal=causal):
                        q, k, v = self.make(name, *shape)
                        d, sums = tilegemm.attention(q, k, v, causal=causal, log_sum_exp=True)
                        exact, size, logarithms = attend(q, k, v, causal)
                        self.assertEqual((d.dtype, d.device, d.shape), (q.dtype, q.device, q.shape))
                        self.assertEqual(sums.dtype, torch.float64 if name == "float64"
                                         else torch.float32)
                        self.assert_near(name, d, exact, size)
                        self.assertLess((sums.double() - logarithms).abs().max().item(),
                                        1e-11 if name == "float64" else 2e-5)

    def test_views_out_and_lengths(self):
        for name in UNITS:
            with self.subTest(name=name):
                q, k, v = self.make(name, 2, 4, 2, 30, 90, 64)
                q = q.transpose(1, 2).contiguous().transpose(1, 2)  # [batch][row][head][element]
                out = torch.empty_like(q)
                self.assertIs(tilegemm.attention(q, k, v, out, key_lengths=[90, 41]), out)
                for entry, length in enumerate((90, 41)):
                    one = slice(entry, entry + 1)
                    exact, size, _ = attend(q[one], k[one, :, :length], v[one, :, :length], False)
                    self.assert_near(name, out[one], exact, size)

    def test_batch_invariance(self):
        """The bits of an entry are those that it has alone."""
        for name in UNITS:
            for batch, *shape in ((6, 4, 2, 1, 3000, 64), (9, 8, 8, 20, 250, 128),
                                  (7, 2, 2, 300, 300, 64), (64, 8, 2, 1, 1000, 128)):
                with self.subTest(name=name, shape=shape):
                    q, k, v = self.make(name, batch, *shape)
                    whole = tilegemm.attention(q, k, v, causal=True, batch_invariant=True)
                    for entry in (0, batch // 2, batch - 1):
                        one = slice(entry, entry + 1)
                        alone = tilegemm.attention(q[one], k[one], v[one], causal=True,
                                                   batch_invariant=True)
                        self.assertTrue(torch.equal(alone, whole[one]), entry)


if __name__ == "__main__":
    try:
        import torch
        tilegemm = import_package(sys.argv[1])
    except ImportError as error:
        print(f"skipped: {error}")
        sys.exit(SKIPPED)
    if not torch.cuda.is_available():
        print("skipped: there is no GPU")
        sys.exit(SKIPPED)
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])
