#!/usr/bin/env python3
"""Tests the command attention on real files: results, summaries, messages and exit codes.

usage: test_attention.py TILEGEMM WRONG_TILEGEMM
"""
import json

import numpy as np

from multiply_case import (PROGRAMS, UNIT, MultiplyCase, list_temporary_files, load_bf16, run_tests,
                           save_bf16, to_bf16, write_npy)


def attend(q, k, v, mask=None, scale=None, cap=0.0, bias=0.0):
    """Returns D in FP64 of arrays [batch][head][row][element]."""
    q, k, v = (np.asarray(x, "f8") for x in (q, k, v))
    share = q.shape[1] // k.shape[1]
    k, v = (np.repeat(x, share, axis=1) for x in (k, v))
    s = q @ k.swapaxes(2, 3) * (scale if scale is not None else q.shape[3]**-0.5)
    s = (cap * np.tanh(s / cap) if cap else s) + bias
    if mask is not None:
        s = np.where(mask, s, -np.inf)
    largest = s.max(axis=3, keepdims=True, initial=-np.inf)
    weights = np.exp(s - np.where(np.isinf(largest), 0, largest))
    total = weights.sum(axis=3, keepdims=True)
    return weights @ v / np.where(total == 0, 1, total)


class Attention(MultiplyCase):
    COMMAND = "attention"
    QKV = ("q.npy", "k.npy", "v.npy", "-o", "d.npy")

    def save(self, **arrays):
        for name, array in arrays.items():
            np.save(name + ".npy", array)

    def attend(self, *words):
        return self.multiply(*self.QKV, *words)  # with --check

    def assert_near(self, d, expected, unit):
        self.assertEqual(d.shape, expected.shape)
        self.assertLess(abs(np.asarray(d, "f8") - expected).max(), 30 * unit)

    def test_types(self):
        q, k, v = self.make(2, 4, 13, 24), self.make(2, 2, 37, 24), self.make(2, 2, 37, 16)
        for name in ("f2", "f4", "f8"):
            q, k, v = (x.astype("<" + name) for x in (q, k, v))
            self.save(q=q, k=k, v=v)
            self.attend()
            d = np.load("d.npy")
            self.assertEqual(d.dtype.str, "<" + name)
            self.assert_near(d, attend(q, k, v), max(UNIT[name], 2.0**-48))
        q, k, v = (to_bf16(x) for x in (q, k, v))
        for name, array in (("q.npy", q), ("k.npy", k), ("v.npy", v)):
            save_bf16(name, array)
        self.attend()
        self.assert_near(load_bf16("d.npy"), attend(q, k, v), UNIT["bf16"])
        self.attend("--type", "fp64")
        self.assert_near(np.load("d.npy"), attend(q, k, v), UNIT["f8"])

    def test_masks(self):
        q, k, v = self.make(2, 2, 13, 8), self.make(2, 2, 17, 8), self.make(2, 2, 17, 8)
        i, j = np.arange(13)[:, None], np.arange(17)
        self.save(q=q, k=k, v=v)
        for words, mask in ((("--causal",), j <= i + 4), (("--causal-top-left",), j <= i),
                            (("--before", "3", "--after=2"), (j >= i - 3) & (j <= i + 2)),
                            (("--causal", "--before", "0"), j == i + 4)):
            self.attend(*words)
            self.assert_near(np.load("d.npy"), attend(q, k, v, mask), UNIT["f4"])
        self.save(q=k, k=q, v=v[:, :, :13])  # four queries see no key
        self.attend("--causal")
        d = np.load("d.npy")
        self.assert_near(d, attend(k, q, v[:, :, :13], j[:13] <= np.arange(17)[:, None] - 4),
                         UNIT["f4"])
        self.assertEqual(abs(d[:, :, :4]).max(), 0)

    def test_scores(self):
        q, k, v = self.make(2, 6, 5, 8), self.make(1, 3, 7, 8), self.make(1, 3, 7, 8)
        slopes = self.make(6)
        self.save(q=q, k=k, v=v, slopes=slopes)
        self.attend("--scale=-0.5", "--soft-cap", "0.75")
        self.assert_near(np.load("d.npy"), attend(q, k, v, scale=-0.5, cap=0.75), UNIT["f4"])
        fall = -slopes[:, None, None] * abs(np.arange(5)[:, None] - np.arange(7))
        self.attend("--slopes", "slopes.npy")
        self.assert_near(np.load("d.npy"), attend(q, k, v, bias=fall), UNIT["f4"])
        for shape in ((2, 6, 5, 7), (2, 1, 5, 7), (6, 1, 7), (5, 1), (7,)):
            bias = self.make(*shape, dtype="<f8")
            self.save(bias=bias.astype("<f4"))
            self.attend("--bias", "bias.npy")
            self.assert_near(np.load("d.npy"), attend(q, k, v, bias=bias.astype("<f4")), UNIT["f4"])

    def test_dimensions(self):
        """D has Q's dimensions; Fortran order, archives, text and integers are read."""
        for dims in (1, 2, 3, 4):
            q, k, v = self.make(1, 1, 1, 6), self.make(1, 1, 9, 6), self.make(1, 1, 9, 4)
            expected = attend(q, k, v).reshape((1, 1, 1, 4)[4 - dims:])
            q = q.reshape((1, 1, 1, 6)[4 - dims:])
            self.save(q=q, k=k[0] if dims < 4 else k, v=v[0, 0] if dims < 3 else v[0])
            self.attend()
            self.assert_near(np.load("d.npy"), expected, UNIT["f4"])
        q, k, v = self.make(2, 4, 5, 8), self.make(2, 4, 9, 8), self.make(2, 4, 9, 8)
        np.savez("all.npz", q=np.asfortranarray(q), k=np.asfortranarray(k), v=v)
        self.multiply("all.npz:q", "all.npz:k", "all.npz:v", "-o", "d.npy")
        self.assert_near(np.load("d.npy"), attend(q, k, v), UNIT["f4"])
        with open("q.mtx", "w") as file:
            file.write("%%MatrixMarket matrix array real general\n1 2\n1\n0\n")
        self.save(k=np.array([[2, 0], [0, 1]]), v=np.array([[3.0], [3.0]]))
        self.multiply("q.mtx", "k.npy", "v.npy", "-o", "d.mtx")
        with open("d.mtx") as file:
            self.assertEqual(file.read(), "%%MatrixMarket matrix array real general\n1 1\n3\n")

    def test_empty(self):
        for m, n, batch in ((0, 3, 1), (3, 0, 1), (3, 2, 0)):
            self.save(q=self.make(batch, 2, m, 8), k=self.make(batch, 1, n, 8),
                      v=self.make(batch, 1, n, 4))
            self.attend()
            d = np.load("d.npy")
            self.assertEqual((d.shape, d.sum()), ((batch, 2, m, 4), 0))

    def test_json_and_quiet(self):
        self.save(q=self.make(2, 4, 5, 8), k=self.make(1, 2, 7, 8), v=self.make(1, 2, 7, 6))
        told = json.loads(self.call(*self.QKV, "--causal", "--check", "--json").stdout)
        self.assertEqual((told["attention"], told["written"], told["check"]["ok"],
                          told["check"]["compared_rows"]),
                         ("2,4,2,5,7,8:causal:dv=6:kb=0:vb=0", True, True, 40))
        self.assertEqual([told[key] for key in ("batch_count", "head_count", "kv_head_count", "m",
                                                "n", "head_size", "v_head_size", "type")],
                         [2, 4, 2, 5, 7, 8, 6, "fp32"])
        done = self.call(*self.QKV, "--quiet")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))

    def test_batch_invariant(self):
        self.save(q=self.make(2, 4, 5, 8), k=self.make(2, 2, 7, 8), v=self.make(2, 2, 7, 8))
        told = json.loads(self.call(*self.QKV, "--batch-invariant", "--check", "--json").stdout)
        self.assertEqual((told["attention"], told["check"]["ok"]),
                         ("2,4,2,5,7,8:batch_invariant", True))

    def test_sample(self):
        """Large arrays are checked in a sample, which has the first row."""
        self.save(q=self.make(1, 4, 1100, 64), k=self.make(1, 4, 1100, 64),
                  v=self.make(1, 4, 1100, 64))
        words = (*self.QKV, "--causal", "--check", "--json")
        told = json.loads(self.call(*words).stdout)
        self.assertTrue(1000 < told["check"]["compared_rows"] < 4400)
        done = self.call(*words, program=PROGRAMS["wrong"])
        self.assertEqual((done.returncode, json.loads(done.stdout)["check"]["bad_row"]), (1, 0))

    def test_wrong_result(self):
        self.save(q=self.make(3, 8), k=self.make(4, 8), v=self.make(4, 8), d=np.ones(3))
        done = self.call(*self.QKV, "--check", program=PROGRAMS["wrong"])
        self.assertEqual(done.returncode, 1)
        self.assertIn("the result is wrong: row 0 of head 0 of batch entry 0 is beyond its bound",
                      done.stderr)
        self.assertIn("check: WRONG", done.stdout)
        self.assertEqual((np.load("d.npy").tolist(), list_temporary_files()), ([1, 1, 1], []))

    def test_output_over_input(self):
        q, k, v = self.make(2, 5, 8), self.make(2, 5, 8), self.make(2, 5, 8)
        self.save(q=q, k=k, v=v)
        self.multiply("q.npy", "k.npy", "v.npy", "-o", "k.npy")
        self.assert_near(np.load("k.npy"), attend(q[None], k[None], v[None])[0], UNIT["f4"])

    def test_refusals(self):
        self.save(q=self.make(2, 4, 5, 8), k=self.make(2, 3, 7, 8), v=self.make(2, 3, 7, 8),
                  k2=self.make(2, 2, 7, 8), v2=self.make(2, 2, 6, 8), one=self.make(2, 2, 7, 8),
                  wide=self.make(2, 2, 7, 9), three=self.make(3, 2, 7, 8),
                  double=self.make(2, 2, 7, 8, dtype="<f8"), bias=self.make(5, 6),
                  slopes=self.make(3), bytes=np.zeros((2, 2, 7, 8), "u1"))
        out = ("-o", "x.npy")
        for code, message, *words in (
                (2, "q.npy has 4 heads and k.npy has 3; the heads of K divide those of Q", "k.npy",
                 "v.npy"),
                (2, "k2.npy is 2 x 2 x 7 x 8 and v2.npy is 2 x 2 x 6 x 8; K and V have the same "
                    "heads and rows", "k2.npy", "v2.npy"),
                (2, "q.npy is 2 x 4 x 5 x 8 and wide.npy is 2 x 2 x 7 x 9: their head sizes 8 and "
                    "9 differ", "wide.npy", "wide.npy"),
                (2, "q.npy has 2 batch entries and three.npy has 3; pass as many, or 1 for all",
                 "three.npy", "three.npy"),
                (2, "q.npy holds fp32 and double.npy holds fp64; pass --type fp64, in which both "
                    "are exact", "one.npy", "double.npy"),
                (2, "bytes.npy holds elements of one byte; pass --type fp32 for integers",
                 "one.npy", "bytes.npy"),
                (2, "bias.npy is 5 x 6 and the scores are 2 x 4 x 5 x 7; pass a bias of these "
                    "dimensions, or 1 where one value serves all", "one.npy", "one.npy", "--bias",
                 "bias.npy"),
                (2, "slopes.npy is 3; pass a vector of 4 slopes, one for each head of Q",
                 "one.npy", "one.npy", "--slopes", "slopes.npy"),
                (2, "--type = fp8_e4m3 has no attention; pass fp32, fp64, bf16 or fp16", "one.npy",
                 "one.npy", "--type", "fp8_e4m3"),
                (2, "--before = -1 is less than 0; pass one of at least 0", "one.npy", "one.npy",
                 "--before=-1"),
                (3, None, "none.npy", "one.npy")):
            self.refuse(code, message, "q.npy", *words, *out)
        write_npy("huge.npy", "<f4", "(0, 1, 1099511627776, 1099511627776)", b"")
        self.refuse(2, "m = 1099511627776 is above the limit; pass 2147483647 or less", "huge.npy",
                    "huge.npy", "huge.npy", *out)
        for words in (("q.npy", "k.npy", *out), ("q.npy", "k.npy", "v.npy"),
                      ("q.npy", "k.npy", "v.npy", "v.npy", *out),
                      (*self.QKV, "--json", "--quiet")):
            self.refuse(2, None, *words)


if __name__ == "__main__":
    run_tests()
