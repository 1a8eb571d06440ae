"""The command on a fake driver, which computes nothing: what it lists, refuses and finds wrong.

usage: test_command.py TILEGEMM FOLDER_OF_THE_FAKE
"""

import json
import os
import subprocess
import sys
import tempfile
import unittest

FAKE, TILEGEMM = os.path.abspath(sys.argv.pop()), os.path.abspath(sys.argv.pop())


def call(*words, **changes):
    environment = {**os.environ, "LD_LIBRARY_PATH": FAKE, **changes}
    return subprocess.run([TILEGEMM, *words], env=environment, capture_output=True, text=True,
                          check=False)


class OnFakeDriver(unittest.TestCase):
    def test_info_lists_every_gpu(self):
        gpus = json.loads(call("info", "--json", TILEGEMM_THREADS="1").stdout)["gpus"]
        self.assertIsNone(gpus["reason"])
        self.assertEqual([gpu["device"] for gpu in gpus["devices"]], ["cuda:0", "cuda:1"])
        self.assertEqual(gpus["devices"][1]["sm_count"], 132)

    def test_info_says_why_there_is_none(self):
        done = call("info", FAKE_CUDA_VERSION="11000", TILEGEMM_THREADS="1")
        self.assertEqual(done.returncode, 0)
        self.assertRegex(done.stdout, "GPU +none: the NVIDIA driver is too old")

    def test_kernels_of_a_device(self):
        rows = json.loads(call("kernels", "--json", "--device", "cuda:1").stdout)
        self.assertEqual({row["device"] for row in rows if row["is_available"]}, {"cuda"})
        rows = json.loads(call("kernels", "--json", "--device", "cuda", "--isa", "sm75").stdout)
        self.assertEqual({row["isa"] for row in rows if row["is_available"]}, {"sm75"})

    def test_missing_devices(self):
        for words in (["kernels"], ["bench", "--shape", "8x8x8"]):
            done = call(*words, "--device", "cuda:7")
            self.assertEqual(done.returncode, 3, done.stderr)
            self.assertIn("cuda:0..cuda:1", done.stderr)

    def test_peers_of_the_other_device(self):
        done = call("bench", "--shape", "8x8x8", "--device", "cuda", "--peer", "openblas")
        self.assertEqual(done.returncode, 2)
        self.assertIn("runs on the CPU; pass --device cpu", done.stderr)
        done = call("bench", "--shape", "8x8x8", "--peer", "cublas")
        self.assertEqual(done.returncode, 2)
        self.assertIn("runs on a GPU; pass --device cuda", done.stderr)

    def test_bench_sees_that_nothing_was_computed(self):
        done = call("bench", "--shape", "64x64x64", "--device", "cuda", "--kernel", "ladder",
                    "--peer", "none", "--rounds", "1", "--json", "-", "--cold")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("is wrong at 64x64x64", done.stderr)
        records = json.loads(done.stdout)["records"]
        self.assertEqual([record["is_right"] for record in records if "cpu_" in record["name"]],
                         [True])
        self.assertFalse(any(record["is_right"] for record in records
                             if "cuda_" in record["name"]))

    def test_multiply_checks_what_came_back(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in ("a.mtx", "b.mtx"):
                with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                    file.write("%%MatrixMarket matrix array real general\n2 2\n1\n2\n3\n4\n")
            paths = [os.path.join(folder, name) for name in ("a.mtx", "b.mtx")]
            output = os.path.join(folder, "d.npy")
            words = ["multiply", *paths, "-o", output, "--type", "fp32", "--device", "cuda"]
            done = call(*words, "--check")
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn("the result is wrong", done.stderr)
            self.assertFalse(os.path.exists(output))
            done = call(*words)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("cuda:0, cuda_", done.stdout)


if __name__ == "__main__":
    unittest.main()
