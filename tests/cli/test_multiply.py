#!/usr/bin/env python3
"""Tests the command multiply on real files: results, summaries, messages and exit codes.

usage: test_multiply.py TILEGEMM WRONG_TILEGEMM
"""
import json
import os

import numpy as np

from multiply_case import (UNIT, MultiplyCase, load_bf16, run_tests, save_bf16, to_bf16,
                           write_npy)


class Results(MultiplyCase):
    def test_types_orders_versions(self):
        for name in ("f2", "f4", "f8"):
            for version in ((1, 0), (2, 0), (3, 0)):
                for order in "CF":
                    a = np.asarray(self.make(17, 23, dtype="<" + name), order=order)
                    b = np.asarray(self.make(23, 9, dtype="<" + name), order=order)
                    for path, matrix in (("a.npy", a), ("b.npy", b)):
                        with open(path, "wb") as file:
                            np.lib.format.write_array(file, matrix, version)
                    self.multiply("a.npy", "b.npy", "-o", "d.npy")
                    d = np.load("d.npy")
                    self.assertEqual((d.shape, d.dtype.str), ((17, 9), "<" + name))
                    self.assert_close(d, a, b, UNIT[name])

    def test_bf16(self):
        a, b = to_bf16(self.make(5, 7)), to_bf16(self.make(7, 6))
        save_bf16("a.npy", a)
        save_bf16("b.npy", b)
        self.multiply("a.npy", "b.npy", "-o", "d.npy")
        self.assert_close(load_bf16("d.npy"), a, b, UNIT["bf16"])
        self.multiply("a.npy", "b.npy", "-o", "d.npy", "--output-type", "fp32")
        self.assertEqual(np.load("d.npy").dtype.str, "<f4")
        self.assert_close(np.load("d.npy"), a, b, UNIT["f4"])

    def test_fp8(self):
        ones = np.full((3, 5), 0x38, "u1")  # 1 in E4M3
        np.save("a.npy", ones)
        write_npy("b.npy", "|V1", (5, 2), ones[:2].tobytes())  # ml_dtypes writes it so
        self.multiply("a.npy", "b.npy", "-o", "d.npy", "--type", "fp8_e4m3", "--output-type",
                      "fp32")
        self.assertEqual(np.load("d.npy").tolist(), [[5, 5]] * 3)
        done = self.call("a.npy", "b.npy", "-o", "d.npy", "--type", "fp8_e4m3")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(np.load("d.npy").tobytes(), bytes([0x4a]) * 6)
        self.multiply("a.npy", "b.npy", "-o", "d.npy", "--type", "fp8_e5m2", "--output-type",
                      "bf16")  # the same bytes are 1/2 there
        self.assertEqual(load_bf16("d.npy").tolist(), [[1.25, 1.25]] * 3)
        self.refuse(2, "a.npy holds elements of one byte; pass --type fp8_e4m3 or --type fp8_e5m2, "
                       "or --type fp32 for integers", "a.npy", "b.npy", "-o", "new.npy")
        self.refuse(2, "b.npy: elements of one byte are taken as FP8, not converted to fp32; pass "
                       "--type fp8_e4m3 or --type fp8_e5m2",
                    "a.npy", "b.npy", "-o", "new.npy", "--type", "fp32")
        self.refuse(2, "--check takes no D in fp8_e4m3, which stops at 448; pass --output-type "
                       "bf16",
                    "a.npy", "b.npy", "-o", "new.npy", "--type", "fp8_e4m3", "--check")
        np.save("large.npy", np.full((5, 2), 449.0))
        self.refuse(2, "large.npy: element (0, 0) = 449 is beyond the largest fp8_e4m3, 448; pass "
                       "a --type with a wider range",
                    "large.npy", "large.npy", "--transpose-a", "-o", "new.npy", "--type",
                    "fp8_e4m3")

    def test_bf16_of_ml_dtypes(self):
        try:
            import ml_dtypes
        except ImportError:
            self.skipTest("the Python package ml_dtypes is not installed")
        a = self.make(5, 7).astype(ml_dtypes.bfloat16)
        b = self.make(7, 6).astype(ml_dtypes.bfloat16)
        np.save("a.npy", a)
        np.save("b.npy", b)
        self.multiply("a.npy", "b.npy", "-o", "d.npy")
        self.assert_close(np.load("d.npy").view(ml_dtypes.bfloat16), a, b, UNIT["bf16"])

    def test_transposes_and_c(self):
        a, b, c = self.make(8, 5), self.make(6, 8), self.make(5, 6)
        for name, matrix in (("a", a), ("b", b), ("c", c)):
            np.save(name + ".npy", matrix)
        turned = ("--transpose-a", "--transpose-b", "-o", "d.npy")
        self.multiply("a.npy", "b.npy", *turned)
        self.assert_close(np.load("d.npy"), a.T, b.T, UNIT["f4"])
        self.multiply("a.npy", "b.npy", *turned, "--c", "c.npy")
        self.assert_close(np.load("d.npy"), a.T, b.T, UNIT["f4"], c.astype("f8"))
        self.multiply("a.npy", "b.npy", *turned, "--c", "c.npy", "--beta=-2", "--alpha", "0.5")
        self.assert_close(np.load("d.npy"), a.T * 0.5, b.T, UNIT["f4"], -2 * c.astype("f8"))
        self.multiply("a.npy", "b.npy", *turned, "--c", "c.npy", "--beta", "0")
        self.assert_close(np.load("d.npy"), a.T, b.T, UNIT["f4"])

    def test_one_transpose(self):
        a, b = self.make(6, 6), self.make(6, 6)
        np.save("a.npy", a)
        np.save("b.npy", b)
        self.multiply("a.npy", "b.npy", "-o", "d.npy", "--transpose-a")
        self.assert_close(np.load("d.npy"), a.T, b, UNIT["f4"])
        self.multiply("a.npy", "b.npy", "-o", "d.npy", "--transpose-b")
        self.assert_close(np.load("d.npy"), a, b.T, UNIT["f4"])

    def test_output_over_inputs(self):
        a, b, c = self.make(6, 6), self.make(6, 6), self.make(6, 6)
        for name, matrix in (("a", a), ("b", b), ("c", c)):
            np.save(name + ".npy", matrix)
        self.multiply("a.npy", "b.npy", "--c", "c.npy", "-o", "c.npy")
        self.assert_close(np.load("c.npy"), a, b, UNIT["f4"], c.astype("f8"))
        self.multiply("a.npy", "b.npy", "-o", "a.npy")
        self.assert_close(np.load("a.npy"), a, b, UNIT["f4"])

    def test_mtx(self):
        with open("a.mtx", "w") as file:
            file.write("%%MatrixMarket matrix coordinate real symmetric\n% c\n2 2 2\n"
                       "1 1 1.5\n2 1 -2\n")
        with open("b.mtx", "w") as file:
            file.write("%%MatrixMarket matrix array integer general\r\n2 3\r\n"
                       + "\r\n".join("123456"))
        self.multiply("a.mtx", "b.mtx", "-o", "d.mtx")
        with open("d.mtx") as file:
            self.assertEqual(file.read(), "%%MatrixMarket matrix array real general\n2 3\n"
                                          "-2.5\n-2\n-3.5\n-6\n-4.5\n-10\n")
        np.save("b.npy", np.array([[1, 3, 5], [2, 4, 6]], "<f4"))
        self.multiply("a.mtx", "b.npy", "-o", "d.npy")
        expected = np.array([[-2.5, -3.5, -4.5], [-2, -6, -10]], "<f4")
        np.testing.assert_array_equal(np.load("d.npy"), expected)
        self.assertEqual(np.load("d.npy").dtype.str, "<f4")

    def test_conversion(self):
        a, b = self.make(4, 5, dtype="<f8"), self.make(5, 3)
        np.save("a.npy", a)
        np.save("b.npy", b)
        self.multiply("a.npy", "b.npy", "-o", "d.npy", "--type", "fp64")
        self.assert_close(np.load("d.npy"), a, b, UNIT["f8"])
        self.multiply("a.npy", "b.npy", "-o", "d.npy", "--type", "fp16")
        self.assert_close(np.load("d.npy"), a.astype("<f2"), b.astype("<f2"), UNIT["f2"])

    def test_misaligned_data(self):
        a, b = self.make(3, 4), self.make(4, 2)
        for pad in range(4):
            for name, matrix in (("a.npy", a), ("b.npy", b)):
                shape = f"({matrix.shape[0]}, {' ' * pad}{matrix.shape[1]})"
                write_npy(name, "<f4", shape, matrix.tobytes(), version=2)
            self.multiply("a.npy", "b.npy", "-o", "d.npy")
            self.assert_close(np.load("d.npy"), a, b, UNIT["f4"])

    def test_empty(self):
        for m, n, k in ((0, 3, 2), (3, 0, 2), (3, 2, 0)):
            np.save("a.npy", self.make(m, k))
            np.save("b.npy", self.make(k, n))
            self.multiply("a.npy", "b.npy", "-o", "d.npy")
            np.testing.assert_array_equal(np.load("d.npy"), np.zeros((m, n), "<f4"))

    def test_empty_and_huge(self):
        """One size is 0, the other 2^48, the largest: an empty product takes no time."""
        write_npy("tall.npy", "<f4", "(281474976710656, 0)", b"")
        write_npy("wide.npy", "<f4", "(0, 281474976710656)", b"")
        write_npy("none.npy", "<f4", "(0, 0)", b"")
        for a, b in (("tall.npy", "none.npy"), ("none.npy", "wide.npy")):
            for words in (["-o", "d.npy"], ["-o", "d.mtx"], ["-o", "d.npy", "--type", "fp64"]):
                self.multiply(a, b, *words)

    def test_special_values(self):
        a, b = self.make(4, 4), self.make(4, 4)
        a[1, 2], b[0, 3] = np.nan, np.inf
        np.save("a.npy", a)
        np.save("b.npy", b)
        done = self.multiply("a.npy", "b.npy", "-o", "d.npy")
        self.assertIn("3 rows compared, 1 skipped", done.stdout)
        with np.errstate(invalid="ignore"):
            np.testing.assert_array_equal(np.isfinite(np.load("d.npy")), np.isfinite(a @ b))

    def test_thread_counts_and_summary(self):
        a, b = self.make(70, 80), self.make(80, 90)
        np.save("a.npy", a)
        np.save("b.npy", b)
        self.multiply("a.npy", "b.npy", "-o", "one.npy", "--threads", "1")
        done = self.multiply("a.npy", "b.npy", "-o", "two.npy", "--threads", "2")
        with open("one.npy", "rb") as one, open("two.npy", "rb") as two:
            self.assertEqual(one.read(), two.read())
        self.assertRegex(done.stdout,
                         r"^two\.npy: 70x90 fp32 = 70x80 times 80x90 fp32; cpu, \w+, "
                         r"\d+ threads?, \S+ ms, \S+ GFLOP/s\n"
                         r"check: right in 20 rounds of Freivalds' method; worst row at \S+ of "
                         r"its bound, largest bound \S+; 70 rows compared, 0 skipped \(NaN, Inf "
                         r"or overflow\), 0 elements NaN or Inf as they must be\n$")

    def test_thread_count_is_obeyed(self):
        np.save("a.npy", self.make(600, 600))
        for count in (1, 2):
            done = self.call("a.npy", "a.npy", "-o", "d.npy", "--json", "--threads", str(count))
            self.assertEqual(json.loads(done.stdout)["threads"], count)

    def test_precision_is_obeyed(self):
        """The exact precisions exist for their own type alone."""
        np.save("a.npy", self.make(4, 4))
        self.multiply("a.npy", "a.npy", "-o", "d.npy", "--precision", "ieee_fp32")
        done = self.refuse(2, None, "a.npy", "a.npy", "-o", "d.npy", "--precision", "ieee_fp64")
        self.assertIn("ieee_fp64", done.stderr)
        self.multiply("a.npy", "a.npy", "-o", "d.npy", "--precision", "ieee_fp64", "--type",
                      "fp64")

    def test_json_and_quiet(self):
        np.save("a.npy", self.make(4, 5))
        np.save("b.npy", self.make(5, 6))
        done = self.call("a.npy", "b.npy", "-o", "d.npy", "--json", "--check")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        summary = json.loads(done.stdout)
        self.assertEqual(
            list(summary),
            ["output", "written", "m", "n", "k", "batch_count", "type", "output_type", "precision",
             "alpha", "beta", "has_bias", "activation", "device", "kernel", "threads",
             "panels", "resumed_panels", "time_s",
             "gflop_per_s", "check"])
        self.assertEqual((summary["m"], summary["n"], summary["k"], summary["type"],
                          summary["written"], summary["check"]["ok"]),
                         (4, 6, 5, "fp32", True, True))
        done = self.call("a.npy", "b.npy", "-o", "d.npy", "--quiet", "--check")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))


class Refusals(MultiplyCase):
    def setUp(self):
        super().setUp()
        np.save("a.npy", self.make(3, 4))
        np.save("b.npy", self.make(4, 5))
        np.save("b8.npy", self.make(4, 5, dtype="<f8"))

    def test_usage(self):
        hint = ("Try `tilegemm multiply --help' or `tilegemm multiply --usage' for more\n"
                "information.")
        for words, message in (
                (("a.npy", "-o", "d.npy"), "pass two files, A and B"),
                (("a.npy", "b.npy"), "pass the file to write: -o D.npy or -o D.mtx"),
                (("a.npy", "b.npy", "b.npy", "-o", "d.npy"),
                 "'b.npy' is one file too many; pass two, A and B"),
                (("a.npy", "b.npy", "-o", "d.npy", "--beta", "2"),
                 "--beta = 2 needs a matrix C; pass --c FILE or --beta 0"),
                (("a.npy", "b.npy", "-o", "d.npy", "--json", "--quiet"),
                 "--json and --quiet exclude each other; pass one")):
            self.refuse(2, f"{message}\n{hint}", *words)
        for words in (("--type", "int8"), ("--output-type", "x"), ("--precision", "tf16"),
                      ("--threads", "0"), ("--threads", "1025"), ("--alpha", "one"),
                      ("--alpha", "nan"), ("--unknown",)):
            done = self.refuse(2, None, "a.npy", "b.npy", "-o", "d.npy", *words)
            self.assertIn(words[0].lstrip("-"), done.stderr)

    def test_help(self):
        done = self.call("--help")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("Usage: tilegemm multiply [OPTION...] A B -o D\n", done.stdout)
        self.assertIn("  tilegemm multiply a.npy b.npy -o d.npy --transpose-b --check\n",
                      done.stdout)

    def test_missing(self):
        self.refuse(3, "none.npy: cannot open it: No such file or directory",
                    "none.npy", "b.npy", "-o", "d.npy")
        self.refuse(3, "none/d.npy: cannot write it: No such file or directory; what was there "
                       "is unchanged", "a.npy", "b.npy", "-o", "none/d.npy")
        self.refuse(3, None, "a.npy", "b.npy", "-o", "d.npy", "--device", "abacus")

        for beta in ("0", "1"):
            self.refuse(3, "none.npy: cannot open it: No such file or directory", "a.npy", "b.npy",
                        "--c", "none.npy", "--beta", beta, "-o", "d.npy")

    def test_underflow(self):
        for option in ("--alpha", "--beta"):
            self.refuse(2, f"{option} = 1e-400 is too small, it would become 0; pass 0 or a "
                           "magnitude of at least 4.94066e-324",
                        "a.npy", "b.npy", "--c", "a.npy", option, "1e-400", "-o", "d.npy")
        np.save("c.npy", self.make(3, 5))
        words = ("a.npy", "b.npy", "--c", "c.npy", "-o", "d.npy")
        for option in ("--alpha", "--beta"):
            self.refuse(2, f"{option} = -1e-50 becomes 0 in FP32, in which fp32 matrices are "
                           "scaled (least magnitude 1.4013e-45); pass --type fp64 or "
                           f"{option} 0", *words, f"{option}=-1e-50")
            self.multiply(*words, f"{option}=-1e-50", "--type", "fp64", "--output-type", "fp64")
            self.multiply(*words, f"{option}=1e-45")

    @staticmethod
    def write_column(path, rows, cols):
        with open(path, "w") as file:
            file.write("%%MatrixMarket matrix coordinate real general\n"
                       f"{rows} {cols} 1\n1 1 1.0\n")

    def test_memory(self):
        """The product is refused from the sizes in the header, alone and on top of what is loaded
        already."""
        with open("/proc/meminfo") as file:
            kib = next(int(line.split()[1]) for line in file if line.startswith("MemAvailable"))
        self.write_column("column.mtx", kib * 1024 // 8 * 2, 1)
        self.write_column("one.mtx", 1, 1)
        done = self.refuse(1, None, "column.mtx", "one.mtx", "-o", "d.npy")
        self.assertRegex(done.stderr, rf"needs {kib * 1024 // 8 * 16} bytes as a dense matrix, "
                                      r"\d+ are available")
        self.write_column("column.mtx", kib * 1024 // 8 * 6 // 10, 1)
        self.write_column("row.mtx", 1, kib * 1024 // 8 * 6 // 10)
        done = self.refuse(1, None, "column.mtx", "row.mtx", "-o", "d.npy")
        self.assertRegex(done.stderr, r"multiply: row\.mtx: .* bytes as a dense matrix, \d+ are")
        self.write_column("column.mtx", kib * 16 // 10, 1)
        self.write_column("row.mtx", 1, 80)
        done = self.refuse(1, None, "column.mtx", "row.mtx", "-o", "d.mtx")
        self.assertRegex(done.stderr, r"out of memory: D needs \d+ bytes, \d+ are available")

    def test_not_a_matrix_file(self):
        os.mkdir("folder")
        os.mkfifo("fifo")
        open("empty.npy", "w").close()
        with open("text.npy", "w") as file:
            file.write("1 2\n3 4\n")
        for path, message in (
                ("-", "-: standard input cannot be mapped; store the matrix in a .npy or .mtx "
                      "file (a file named - is ./-)"),
                ("folder", "folder: not a regular file; matrices are read from regular files "
                           "only"),
                ("fifo", "fifo: not a regular file; matrices are read from regular files only"),
                ("empty.npy", "empty.npy: the file is empty"),
                ("text.npy", "text.npy: neither a NumPy .npy or .npz nor a MatrixMarket .mtx file "
                             "(it starts with no signature of theirs)")):
            code = 3 if path in ("folder", "fifo") else 2
            self.refuse(code, message, path, "b.npy", "-o", "d.npy")

    def test_unreadable(self):
        os.chmod("a.npy", 0)
        done = self.call_unprivileged("a.npy", "b.npy", "-o", "d.npy")
        self.assertEqual((done.returncode, done.stderr),
                         (3, "tilegemm multiply: a.npy: cannot open it: Permission denied\n"))

    def test_output_names(self):
        os.mkdir("d.npy")
        os.symlink("/dev/null", "null.npy")
        self.refuse(2, "d.txt: the name has no known extension; end it with .npy or .mtx",
                    "a.npy", "b.npy", "-o", "d.txt")
        for path in ("d.npy", "null.npy"):
            self.refuse(2, f"{path}: not a regular file; the output replaces a regular file or "
                           "makes a new one", "a.npy", "b.npy", "-o", path)

    def test_shapes(self):
        self.refuse(2, "a.npy is 3 x 4 and a.npy is 3 x 4: the inner sizes 4 and 3 differ; see "
                       "--transpose-a and --transpose-b", "a.npy", "a.npy", "-o", "d.npy")
        self.refuse(2, "a.npy is 3 x 4 and D is 3 x 5; C must have D's shape",
                    "a.npy", "b.npy", "--c", "a.npy", "-o", "d.npy")

    def test_types(self):
        self.refuse(2, "a.npy holds fp32 and b8.npy holds fp64; pass --type fp64, in which "
                       "both are exact", "a.npy", "b8.npy", "-o", "d.npy")
        self.refuse(2, "--output-type = fp64 is not possible where A and B are fp32; pass fp32",
                    "a.npy", "b.npy", "-o", "d.npy", "--output-type", "fp64")
        np.save("c.npy", self.make(3, 5, dtype="<f8"))
        self.refuse(2, "c.npy holds fp64 and D is fp32; pass --output-type fp32 to convert it, "
                       "with rounding where that is narrower",
                    "a.npy", "b.npy", "--c", "c.npy", "-o", "d.npy")
        np.save("huge.npy", np.full((3, 4), 1e39))
        self.refuse(2, "huge.npy: element (0, 0) = 1e+39 is beyond the largest fp32, 3.40282e+38; "
                       "pass a --type with a wider range",
                    "huge.npy", "b8.npy", "-o", "d.npy", "--type", "fp32")
        for array, reason in ((self.make(3, 4).astype(">f4"), "byte-swapped"),
                              (self.make(3, 4, dtype="c8"), "save a.real and a.imag"),
                              (self.make(2, 2, 2, 2), "4 dimensions"),
                              (np.array(1.0), "0 dimensions"),
                              (np.zeros((3, 4), "f4,f4"), "structured"),
                              (np.zeros((3, 4), object), "never loaded")):
            np.save("other.npy", array, allow_pickle=True)
            done = self.refuse(2, None, "other.npy", "b.npy", "-o", "d.npy")
            self.assertIn(reason, done.stderr)

    def test_damaged_files(self):
        with open("a.npy", "rb") as file:
            whole = file.read()
        for length in (1, 6, 9, 10, 60, 128, len(whole) - 1):
            with open("cut.npy", "wb") as file:
                file.write(whole[:length])
            self.refuse(2, None, "cut.npy", "b.npy", "-o", "d.npy")
        write_npy("lie.npy", "<f4", "(4294967296, 4294967296)", b"")
        self.refuse(2, "lie.npy: the shape (4294967296, 4294967296) needs more than 2^63 - 1 "
                       "bytes; the header lies", "lie.npy", "b.npy", "-o", "d.npy")
        with open("long.npy", "wb") as file:
            file.write(b"\x93NUMPY\x02\x00\xff\xff\xff\xff{}")
        self.refuse(2, "long.npy: the file is truncated or its header lies: the header claims "
                       "4294967295 bytes, the file has 14 in all", "long.npy", "b.npy", "-o",
                    "d.npy")
        with open("sparse.mtx", "w") as file:
            file.write("%%MatrixMarket matrix coordinate real general\n"
                       "1000000000 1000000000 1\n1 1 1\n")
        done = self.refuse(1, None, "sparse.mtx", "b.npy", "-o", "d.npy", "--type", "fp64")
        self.assertIn("needs 8000000000000000000 bytes as a dense matrix", done.stderr)


if __name__ == "__main__":
    run_tests()
