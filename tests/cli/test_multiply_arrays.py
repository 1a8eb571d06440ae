"""Tests what multiply takes beside matrices of floating-point numbers: batches, vectors, bias and
activation, integers, archives.

usage: test_multiply_arrays.py TILEGEMM WRONG_TILEGEMM
"""
import json
import pathlib

import numpy as np

from multiply_case import UNIT, MultiplyCase, load_bf16, run_tests, save_bf16, to_bf16


def read_folder():
    return {path.name: path.read_bytes() for path in pathlib.Path().iterdir()}


class Arrays(MultiplyCase):
    def product(self, a, b, *words, checks=True):
        """Returns D of two saved arrays, checked by --check."""
        np.save("a.npy", a)
        np.save("b.npy", b)
        call = self.multiply if checks else self.call
        done = call("a.npy", "b.npy", "-o", "d.npy", *words)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return np.load("d.npy")

    def assert_product(self, d, a, b, extra=0.0):
        exact = np.matmul(np.asarray(a, "f8"), np.asarray(b, "f8")) + extra
        self.assertEqual(d.shape, exact.shape)
        k = a.shape[-1]
        bound = (k + 3) * UNIT["f4"] * (np.matmul(abs(a), abs(b)) + abs(np.asarray(extra)))
        self.assertTrue(np.all(abs(d - exact) <= bound + 1e-30))

    def test_batches(self):
        for shape_a, shape_b in (((3, 5, 7), (3, 7, 4)), ((3, 5, 7), (7, 4)), ((5, 7), (2, 7, 4)),
                                 ((1, 5, 7), (3, 7, 4)), ((2, 5, 7), (7,)), ((7,), (2, 7, 4)),
                                 ((0, 5, 7), (7, 4)), ((2, 0, 7), (7, 4))):
            for order in "CF":
                a, b = (np.asarray(self.make(*shape), order=order) for shape in (shape_a, shape_b))
                self.assert_product(self.product(a, b), a, b)
        a, b = self.make(3, 7, 5), self.make(3, 4, 7)
        d = self.product(a, b, "--transpose-a", "--transpose-b")
        self.assert_product(d, a.transpose(0, 2, 1), b.transpose(0, 2, 1))
        c, one = self.make(3, 5, 4), self.make(5, 4)
        for name, of_c in (("c.npy", c), ("one.npy", one)):
            np.save(name, of_c)
            d = self.product(a, b, "--transpose-a", "--transpose-b", "--c", name)
            self.assert_product(d, a.transpose(0, 2, 1), b.transpose(0, 2, 1), of_c)
        d = self.product(a.astype("f8"), b.astype("f8"), "--type", "fp32", "--transpose-a",
                         "--transpose-b")
        self.assert_product(d, a.transpose(0, 2, 1), b.transpose(0, 2, 1))

    def test_vectors(self):
        a, v, b = self.make(5, 7), self.make(7), self.make(7, 4)
        self.assert_product(self.product(a, v), a, v)
        self.assert_product(self.product(v, b), v, b)
        d = self.product(v, v)
        self.assertEqual(d.shape, ())
        self.assertAlmostEqual(float(d), float(v.astype("f8") @ v), delta=1e-5)
        np.save("c.npy", self.make(5))
        self.assert_product(self.product(a, v, "--c", "c.npy"), a, v, np.load("c.npy"))
        self.assert_product(self.product(v, b, "--transpose-a"), v, b)
        self.refuse(2, "d.mtx would hold an array of 1 dimensions, and a .mtx file holds a matrix; "
                       "end its name with .npy", "a.npy", "b.npy", "-o", "d.mtx")

    def test_bias_and_activation(self):
        a, b = self.make(5, 7), self.make(7, 4)
        for bias in (self.make(4), self.make(1, 4), self.make(5, 1)):
            np.save("bias.npy", bias)
            self.assert_product(self.product(a, b, "--bias", "bias.npy"), a, b, bias)
            d = self.product(a, b, "--bias", "bias.npy", "--activation", "relu", checks=False)
            self.assertTrue(np.allclose(d, np.maximum(a @ b + bias, 0), atol=1e-5))
        batch = self.make(3, 5, 7)
        self.assert_product(self.product(batch, b, "--bias", "bias.npy"), batch, b, bias)
        self.refuse(2, "bias.npy is 5 x 1 and D is 4 x 4; pass a bias of 4 values or 1 x 4 for D's "
                       "columns, or 4 x 1 for its rows", "b.npy", "b.npy", "--transpose-a", "-o",
                    "x.npy", "--bias", "bias.npy")
        self.refuse(2, None, "a.npy", "b.npy", "-o", "x.npy", "--check", "--activation", "relu")
        self.refuse(2, None, "a.npy", "b.npy", "-o", "x.npy", "--activation", "tanh")

    def test_integers(self):
        for dtype in ("i1", "<i2", "<i4", "<i8", "<u2", "<u4", "<u8", "?"):
            a = self.random.integers(0, 2 if dtype == "?" else 100, (5, 7)).astype(dtype)
            b = self.make(7, 4)
            self.assert_product(self.product(a, b), a.astype("f8"), b)
        a, b = self.random.integers(-99, 100, (2, 5, 7)), self.random.integers(-99, 100, (7, 4))
        d = self.product(a, b)
        self.assertEqual((d.dtype, d.tolist()), (np.dtype("f8"), (a @ b).tolist()))
        self.product(a.astype("u1"), b.astype("u1"), "--type", "fp32")
        self.refuse(2, "a.npy holds elements of one byte; pass --type fp8_e4m3 or --type fp8_e5m2, "
                       "or --type fp32 for integers", "a.npy", "b.npy", "-o", "x.npy")
        for value, dtype, words in ((2**24 + 1, "<i4", ("--type", "fp32")), (2**53 + 1, "<i8", ()),
                                    (2**64 - 1, "<u8", ()), (-2**63 + 1, "<i8", ()),
                                    (257, "<i2", ("--type", "bf16"))):
            np.save("a.npy", np.array([[0, value]], dtype))
            np.save("b.npy", np.ones((2, 1)))
            done = self.refuse(2, None, "a.npy", "b.npy", "-o", "x.npy", *words)
            self.assertRegex(done.stderr, r"element \(0, 1\) = .* is not exact in")
        d = self.product(np.array([[-2**63, 2**53]]), np.array([[1], [0]]))
        self.assertEqual(d.tolist(), [[-2.0**63]])

    def test_bits_of_bf16(self):
        a, b = to_bf16(self.make(5, 7)), to_bf16(self.make(7, 4))
        for name, values in (("a.npy", a), ("b.npy", b)):
            np.save(name, (values.view("<u4") >> 16).astype("<u2"))
        self.multiply("a.npy", "b.npy", "-o", "d.npy", "--type", "bf16")
        found = load_bf16("d.npy")
        save_bf16("a.npy", a)
        save_bf16("b.npy", b)
        self.multiply("a.npy", "b.npy", "-o", "d.npy")
        self.assertEqual(found.tolist(), load_bf16("d.npy").tolist())

    def test_archives(self):
        a, b = self.make(5, 7), self.make(7, 4)
        np.savez("both.npz", a=a, b=b)
        np.savez("one.npz", b)
        np.savez_compressed("small.npz", a=a)
        np.save("a.npy", a)
        for words in (("both.npz:a", "both.npz:b"), ("a.npy", "one.npz"),
                      ("a.npy", "one.npz:arr_0")):
            self.multiply(*words, "-o", "d.npy")
            self.assert_product(np.load("d.npy"), a, b)
        self.refuse(2, "both.npz: the archive has the arrays a, b; name one, as in FILE.npz:NAME",
                    "both.npz", "one.npz", "-o", "x.npy")
        self.refuse(2, "both.npz:c: the archive has the arrays a, b; name one, as in "
                       "FILE.npz:NAME", "both.npz:c", "one.npz", "-o", "x.npy")
        self.refuse(2, "small.npz: the array is compressed; save it with numpy.savez, which stores "
                       "arrays as they are", "small.npz", "one.npz", "-o", "x.npy")
        self.refuse(3, None, "none.npz:a", "one.npz", "-o", "x.npy")
        with open("both.npz", "rb") as file:
            whole = file.read()
        for length in range(4, len(whole), 7):
            with open("cut.npz", "wb") as file:
                file.write(whole[:length])
            self.refuse(2, None, "cut.npz:a", "one.npz", "-o", "x.npy")
        for place in range(0, len(whole), 11):  # no damage ends the command by a signal
            with open("bad.npz", "wb") as file:
                file.write(whole[:place] + b"\xff\xff\xff\xff" + whole[place + 4:])
            self.assertIn(self.call("bad.npz:a", "one.npz", "-o", "y.npy").returncode, (0, 2))

    def test_json(self):
        np.save("a.npy", self.make(3, 5, 7))
        np.save("b.npy", self.make(7, 4))
        np.save("bias.npy", self.make(4))
        done = self.call("a.npy", "b.npy", "-o", "d.npy", "--bias", "bias.npy", "--activation",
                         "silu", "--json")
        told = json.loads(done.stdout)
        self.assertEqual([told[key] for key in ("m", "n", "k", "batch_count", "has_bias",
                                                "activation")], [5, 4, 7, 3, True, "silu"])

    def test_failed_run_leaves_files(self):
        """Wrong batches, a wrong bias and an inexact integer leave the output that was there."""
        np.save("a.npy", self.make(3, 5, 7))
        np.save("b.npy", self.make(2, 7, 4))
        np.save("i.npy", np.array([[2**60 + 1]]))
        np.save("d.npy", np.ones(3))
        before = read_folder()
        for words in (("a.npy", "b.npy"), ("i.npy", "i.npy"), ("b.npy", "b.npy"),
                      ("a.npy", "a.npy", "--transpose-a", "--bias", "b.npy")):
            self.refuse(2, None, *words, "-o", "d.npy")
        self.assertEqual(read_folder(), before)


if __name__ == "__main__":
    run_tests()
