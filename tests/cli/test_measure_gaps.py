#!/usr/bin/env python3
"""Tests tools/measure/measure_gaps: what it draws, what it makes of losers, and a run of it.

usage: test_measure_gaps.py BUILD SOURCE_FOLDER
"""
import importlib.machinery
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import unittest

BUILD, SOURCE = sys.argv[1:3]
TOOL = os.path.join(SOURCE, "tools", "measure", "measure_gaps")


def load():
    sys.dont_write_bytecode = True
    loader = importlib.machinery.SourceFileLoader("measure_gaps", TOOL)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("measure_gaps",
                                                                             loader))
    loader.exec_module(module)
    return module


class Gaps(unittest.TestCase):
    def setUp(self):
        self.tool = load()

    def draw(self, *words):
        return self.tool.draw_all(self.tool.parse(["--build", BUILD, *words]))

    def test_seed_alone_decides(self):
        first = self.draw("--seed", "5", "--shapes", "40")
        self.assertEqual(first, self.draw("--seed", "5", "--shapes", "40"))
        self.assertEqual(first["fp64"], self.draw("--seed", "5", "--shapes", "40", "--kinds",
                                                  "fp64")["fp64"])
        self.assertNotEqual(first, self.draw("--seed", "6", "--shapes", "40"))

    def test_shapes_are_problems(self):
        """The library reads every text that is drawn, and asks about none twice."""
        for kind, texts in self.draw("--device", "cuda", "--shapes", "12").items():
            for text in texts:
                done = subprocess.run([os.path.join(BUILD, "tilegemm"), "explain", text, "--gpu",
                                       "h100"], capture_output=True, text=True, check=False)
                self.assertEqual((done.returncode, done.stderr), (0, ""), (kind, text))

    def test_cause(self):
        for rows, planned_s, cause in (({"other": 1.0}, 2.0, "plan"), ({"other": 1.9}, 2.0,
                                                                      "kernels"),
                                       ({}, 2.0, "kernels")):
            loser = {"ratio": 0.6}
            self.tool.explain_loser(loser, rows, planned_s)
            self.assertEqual(loser["cause"], cause, rows)

    def test_families(self):
        for shape, family in (((16, 16, 16, 50), "batch, sides under 17"),
                              ((3, 4096, 4096, 1), "few rows or columns, odd sizes"),
                              ((64, 4096, 4096, 1), "thin"), ((4096, 4096, 32, 1), "short k"),
                              ((256, 320, 65536, 1), "long k"), ((4096, 4096, 999, 1),
                                                                 "large, odd sizes")):
            self.assertEqual(self.tool.find_family(*shape), family)

    def test_run(self):
        with tempfile.TemporaryDirectory() as folder:
            output = os.path.join(folder, "gaps.json")
            done = subprocess.run([TOOL, "--build", BUILD, "--shapes", "1", "--seed", "3",
                                   "--kinds", "batch_fp32", "--output", output],
                                  capture_output=True, text=True, check=False)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            with open(output, encoding="utf-8") as file:
                result = json.load(file)
            self.assertEqual((result["seed"], result["kinds"]), (3, ["batch_fp32"]))
            for record in result["records"]:
                self.assertAlmostEqual(record["ratio"], record["peer_s"] / record["kernel_s"], 6)
                self.assertEqual("cause" in record, record["ratio"] < 0.95)

    def test_mistakes(self):
        for words, message in ((["--kinds", "int8"], "--kinds = 'int8' is no kind"),
                               (["--build", "/nowhere"], "no program /nowhere/tilegemm")):
            done = subprocess.run([TOOL, "--build", BUILD, *words], capture_output=True, text=True,
                                  check=False)
            self.assertEqual(done.returncode, 2)
            self.assertIn(message, done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
