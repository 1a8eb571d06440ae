"""The tests of the commands on files share files, calls, and the bound of a product."""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

import numpy as np

PROGRAMS = {"right": "tilegemm", "wrong": "wrong"}
UNIT = {"f2": 2.0**-11, "f4": 2.0**-24, "f8": 2.0**-53, "bf16": 2.0**-8}


def to_bf16(values):
    """Rounds to bfloat16 (nearest even) and returns the float32 values."""
    bits = np.asarray(values, "<f4").view("<u4").astype(np.uint64)
    bits = (bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000
    return bits.astype("<u4").view("<f4")


def write_npy(path, descr, shape, data, version=1, order="False"):
    text = f"{{'descr': {descr!r}, 'fortran_order': {order}, 'shape': {shape}, }}".encode()
    length = len(text).to_bytes(2 if version == 1 else 4, "little")
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY" + bytes([version, 0]) + length + text + data)


def save_bf16(path, values):
    write_npy(path, "<V2", values.shape, (values.view("<u4") >> 16).astype("<u2").tobytes())


def load_bf16(path):
    return np.load(path).view("<u2").astype("<u4").__lshift__(16).view("<f4")


class MultiplyCase(unittest.TestCase):
    COMMAND = "multiply"
    maxDiff = None

    def setUp(self):
        self.home = os.getcwd()
        self.folder = tempfile.mkdtemp(prefix="tilegemm-test-")
        os.chdir(self.folder)
        self.random = np.random.default_rng(1)

    def tearDown(self):
        os.chdir(self.home)
        shutil.rmtree(self.folder)

    def make(self, *shape, dtype="<f4"):
        return self.random.uniform(-1, 1, shape).astype(dtype)

    def call(self, *words, program=None, **options):
        words = [program or PROGRAMS["right"], self.COMMAND, *words]
        return subprocess.run(words, capture_output=True, text=True, timeout=120, **options)

    def multiply(self, *words):
        """Runs with --check and expects success and silence on stderr."""
        done = self.call(*words, "--check")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("check: right", done.stdout)
        return done

    def refuse(self, code, message, *words, **options):
        """Expects the exit code, the message alone on stderr, and no new file."""
        before = sorted(os.listdir("."))
        done = self.call(*words, **options)
        self.assertEqual(done.returncode, code, done.stderr)
        if message is not None:
            self.assertEqual(done.stderr, f"tilegemm {self.COMMAND}: {message}\n")
        self.assertEqual(done.stdout, "")
        self.assertEqual(sorted(os.listdir(".")), before)
        return done

    def call_unprivileged(self, *words):
        """Runs the command as a user whom file modes hold back."""
        if os.geteuid() == 0 and not shutil.which("setpriv"):
            self.skipTest("root may do anything, and setpriv is not there to be someone else")
        os.chmod(".", 0o777)
        front = ["setpriv", "--reuid=65534", "--clear-groups"] if os.geteuid() == 0 else []
        done = subprocess.run([*front, PROGRAMS["right"], self.COMMAND, *words],
                              capture_output=True, text=True, timeout=60)
        if done.returncode in (126, 127):  # the command or its library did not start
            self.skipTest("the command is not in a folder that others may read")
        return done

    def assert_close(self, d, a, b, unit, extra=0.0):
        a, b = np.asarray(a, "f8"), np.asarray(b, "f8")
        bound = (a.shape[1] + 2) * min(unit, 2.0**-24) * (abs(a) @ abs(b) + abs(extra))
        bound += 1.01 * unit * abs(a @ b + extra) + 1e-30
        self.assertTrue((abs(np.asarray(d, "f8") - (a @ b + extra)) <= bound).all())


class OutputCase(MultiplyCase):
    """There are inputs a.npy and b.npy, and outputs that hold OLD."""
    OLD = b"what was there"

    def setUp(self):
        super().setUp()
        np.save("a.npy", self.make(600, 1))
        np.save("b.npy", self.make(1, 700))
        for path in ("d.npy", "d.mtx"):
            with open(path, "wb") as file:
                file.write(self.OLD)

    def assert_old(self):
        for path in ("d.npy", "d.mtx"):
            with open(path, "rb") as file:
                self.assertEqual(file.read(), self.OLD)
        self.assertEqual(list_temporary_files(), [])


def list_temporary_files():
    return [name for name in os.listdir(".") if ".tmp-" in name]


def run_tests():
    """Runs the tests of the calling script: SCRIPT TILEGEMM WRONG_TILEGEMM [unittest's words]."""
    PROGRAMS["right"], PROGRAMS["wrong"] = (os.path.abspath(path) for path in sys.argv[1:3])
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
