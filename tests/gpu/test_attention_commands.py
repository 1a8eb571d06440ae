#!/usr/bin/env python3
"""Attention in FP32, FP64 and FP16 on a GPU by the commands: files, bench, explain, the log.

usage: test_attention_commands.py TILEGEMM
"""
import array
import json
import os
import random
import struct
import subprocess
import sys
import tempfile
import unittest

SKIPPED = 77
CODES = {"fp32": ("<f4", "f"), "fp64": ("<f8", "d"), "fp16": ("<f2", "e")}
UNIT = {"fp32": 2.0**-24, "fp64": 2.0**-53, "fp16": 2.0**-11}
PROBLEMS = (("2,4,2,33,70,64", ("--causal",)), ("1,4,4,17,130,128", ("--soft-cap", "3")),
            ("1,2,1,9,40,200", ("--before", "11")), ("1,8,2,1,700,256", ()))


def call(*words, **variables):
    return subprocess.run([TILEGEMM, *words], capture_output=True, text=True, timeout=120,
                          check=False, env={**os.environ, **variables})


def save(path, kind, dims, values):
    """Writes an array of the type as .npy, without NumPy."""
    descr, code = CODES[kind]
    head = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {tuple(dims)}, }}"
    head += " " * (-(len(head) + 11) % 64) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode())
        file.write(struct.pack(f"<{len(values)}{code}", *values))


def load(path, kind):
    """Returns the elements of an array that tilegemm wrote."""
    with open(path, "rb") as file:
        data = file.read()
    begin = 10 + struct.unpack_from("<H", data, 8)[0]
    code = CODES[kind][1]
    return struct.unpack_from(f"<{(len(data) - begin) // struct.calcsize(code)}{code}", data, begin)


class Commands(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.random = random.Random(5)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def save_operands(self, text, kind, is_ones=False):
        batch, heads, kv_heads, m, n, size = map(int, text.split(","))
        for name, dims in (("q", (batch, heads, m, size)), ("k", (batch, kv_heads, n, size)),
                           ("v", (batch, kv_heads, n, size))):
            count = dims[0] * dims[1] * dims[2] * dims[3]
            values = array.array("d", (1.0 if is_ones and name == "v" else self.random.gauss(0, 1)
                                       for _ in range(count)))
            save(self.path(name + ".npy"), kind, dims, values)

    def attend(self, *words):
        done = call("attention", *(self.path(name + ".npy") for name in "qkv"), "-o",
                    self.path("d.npy"), "--device", "cuda", "--check", "--json", *words)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_files(self):
        for kind in CODES:
            for text, words in PROBLEMS:
                self.save_operands(text, kind)
                found = self.attend("--log-sum-exp", self.path("l.npy"), *words)
                self.assertTrue(found["check"]["ok"], (kind, text))
                self.assertIn(f"_{kind}_", found["kernel"])
                self.assertTrue(found["device"].startswith("cuda"), found["device"])

    def test_ones(self):
        """A V of ones gives ones, up to a few roundings in FP32 and FP64."""
        for kind in CODES:
            for text, words in PROBLEMS:
                self.save_operands(text, kind, is_ones=True)
                self.attend(*words)
                most = 32 * UNIT[kind] if kind != "fp16" else 0.0
                worst = max(abs(value - 1.0) for value in load(self.path("d.npy"), kind))
                self.assertLessEqual(worst, most, (kind, text))

    def test_bench(self):
        for kind in CODES:
            for text, _ in PROBLEMS:
                done = call("bench", "--attention", f"{text}:{kind}", "--device", "cuda", "--json",
                            "-", "--rounds", "3", "--min-time", "0.001")
                self.assertEqual(done.returncode, 0, done.stderr)
                record = next(record for record in json.loads(done.stdout)["records"]
                              if record["kind"] == "kernel")
                self.assertTrue(record["is_right"], record)
                self.assertIn(f"_{kind}_", record["name"])
                self.assertGreater(record["gflop_per_s"], 0)

    def test_explain(self):
        for kind in CODES:
            for text, _ in PROBLEMS:
                done = call("explain", f"{text}:{kind}", "--device", "cuda")
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertRegex(done.stdout, rf"cuda_attend_\w*{kind}_")

    def test_log(self):
        """A line of the log replays, with its kernel."""
        for kind in CODES:
            self.save_operands(PROBLEMS[0][0], kind)
            log = self.path("calls.log")
            done = call("attention", *(self.path(name + ".npy") for name in "qkv"), "-o",
                        self.path("d.npy"), "--device", "cuda", "--causal", TILEGEMM_LOG=log)
            self.assertEqual(done.returncode, 0, done.stderr)
            with open(log, encoding="utf-8") as file:
                line = file.readlines()[-1]
            os.remove(log)
            text = line.split("attention=")[1].split()[0]
            self.assertIn(f"_{kind}_", line)
            done = call("bench", "--attention", text, "--device", "cuda", "--json", "-",
                        "--rounds", "2", "--min-time", "0.0001")
            self.assertEqual(done.returncode, 0, done.stderr)
            names = [record["name"] for record in json.loads(done.stdout)["records"]]
            self.assertTrue(any(name in line for name in names), (line, names))

    def test_refusals(self):
        for text in ("1,1,1,4,4,264:fp32", "1,1,1,4,4,8:fp64:dv=257"):
            done = call("explain", text, "--device", "cuda")
            self.assertNotEqual(done.returncode, 0)
            self.assertIn("on a GPU neither is above 256", done.stderr)


if __name__ == "__main__":
    TILEGEMM = os.path.abspath(sys.argv[1])
    if call("explain", "1,1,1,1,1,8", "--device", "cuda").returncode != 0:
        print("skipped: there is no GPU")
        sys.exit(SKIPPED)
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])
