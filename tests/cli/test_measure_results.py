"""Tests tools/measure/measure_results: what it runs, prints and refuses. Also tests that `tilegemm
bench` accepts every run of bench/runs.txt.
"""

import os
import pathlib
import re
import stat
import subprocess
import sys
import tempfile
import unittest

TILEGEMM, SOURCE = sys.argv.pop(1), pathlib.Path(sys.argv.pop(1))
TOOL = SOURCE / "tools" / "measure" / "measure_results"

# The stub replaces the command: it writes the requested result, and fails for
# one precision.
STUB = """#!/bin/sh
case "$*" in *fp16x3*) echo "no such device"; exit 3;; esac
while [ "$1" != --json ]; do shift; done
echo "{}" > "$2"
echo "Geometric mean of fp32, 1 thread: 1.500x over 2 shapes"
"""


def measure(*arguments):
    return subprocess.run([str(TOOL), *arguments], capture_output=True, text=True, check=False)


class MeasureResults(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.build = pathlib.Path(folder.name)
        self.output = self.build / "results"
        program = self.build / "tilegemm"
        program.write_text(STUB)
        program.chmod(program.stat().st_mode | stat.S_IXUSR)

    def run_tool(self, *arguments):
        return measure("--build", str(self.build), "--output", str(self.output), *arguments)

    def test_runs_what_is_named(self):
        done = self.run_tool("fp64", "ladder")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(sorted(path.name for path in self.output.iterdir()),
                         ["fp64.json", "fp64.txt", "ladder.json", "ladder.txt"])
        self.assertIn("fp64: measured in 0 s. Geometric mean of fp32", done.stdout)

    def test_tells_a_failure_and_goes_on(self):
        done = self.run_tool("fp32_fp16x3", "tf32")
        self.assertEqual(done.returncode, 1)
        self.assertIn("fp32_fp16x3: failed", done.stdout)
        self.assertTrue((self.output / "tf32.json").exists())

    def test_begins_nothing_that_takes_too_long(self):
        done = self.run_tool("--seconds", "30", "seeds", "ladder")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("seeds: left out", done.stdout)
        self.assertFalse((self.output / "seeds.json").exists())
        self.assertTrue((self.output / "ladder.json").exists())

    def test_refuses_unknown_names_and_a_folder_without_the_program(self):
        self.assertIn("no run 'nosuch'", self.run_tool("nosuch").stderr)
        done = measure("--build", str(self.build / "nowhere"), "fp64")
        self.assertEqual(done.returncode, 2)
        self.assertIn("no program", done.stderr)

    def test_bench_takes_the_arguments_of_every_run(self):
        """Without a GPU each run is refused for want of one, and for nothing else."""
        text = (SOURCE / "bench" / "runs.txt").read_text()
        runs = [words.split() for words in re.findall(r"^\w.*\n(?: .*\n)+", text, re.M)]
        self.assertGreater(len(runs), 10)
        environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "none"}
        for name, _, *arguments in runs:
            with self.subTest(name):
                done = subprocess.run([TILEGEMM, "bench", "--device", "cuda", *arguments],
                                      capture_output=True, text=True, check=False,
                                      cwd=self.build, env=environment)
                self.assertRegex(done.stderr, "cuda|GPU|driver")
                self.assertNotIn("Try ", done.stderr)


if __name__ == "__main__":
    unittest.main()
