#!/usr/bin/env python3
"""Tests tools/measure/measure_gaps: what it draws, what it makes of losers, and a run of it; and
what tools/measure/measure_epilogues draws and prints.

usage: test_measure_gaps.py BUILD SOURCE_FOLDER
"""
import contextlib
import importlib.machinery
import importlib.util
import io
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

BUILD, SOURCE = sys.argv[1:3]
FOLDER = os.path.join(SOURCE, "tools", "measure")
TOOL = os.path.join(FOLDER, "measure_gaps")


def load(name):
    sys.dont_write_bytecode = True
    sys.path.insert(0, FOLDER)
    loader = importlib.machinery.SourceFileLoader(name, os.path.join(FOLDER, name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    loader.exec_module(module)
    return module


class Gaps(unittest.TestCase):
    def setUp(self):
        self.tool = load("measure_gaps")

    def draw(self, *words):
        return self.tool.draw_all(self.tool.parse(["--build", BUILD, *words]))

    def test_seed_alone_decides(self):
        first = self.draw("--seed", "5", "--shapes", "40")
        self.assertEqual(first, self.draw("--seed", "5", "--shapes", "40"))
        self.assertEqual([pair for pair in first if pair[0] == "fp64"],
                         self.draw("--seed", "5", "--shapes", "40", "--kinds", "fp64"))
        self.assertNotEqual(first, self.draw("--seed", "6", "--shapes", "40"))
        self.assertEqual(sum(kind.startswith("batch") for kind, _ in first), 2 * 10)

    def test_pieces(self):
        """Pieces hold all shapes in order."""
        shapes = self.draw("--shapes", "60")
        pieces = self.tool.cut(shapes)
        self.assertEqual([pair for piece in pieces for pair in piece], shapes)
        self.assertEqual({len(piece) for piece in pieces[:-1]}, {self.tool.PIECE})

    def test_shapes_are_problems(self):
        """The library reads every text that is drawn, and asks about none twice."""
        for kind, text in self.draw("--device", "cuda", "--shapes", "12"):
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
                self.assertAlmostEqual(record["ratio"], record["peer_s"] / record["kernel_s"], 3)
                self.assertEqual("cause" in record, record["ratio"] < 0.95)

    def test_tables(self):
        """The kind with the larger share of losers comes first, and so does the worst loser."""
        tables = load("gap_tables.py")
        common = {"mode": "hot", "family": "thin", "kernel": "ours", "kernel_s": 2e-6,
                  "peer": "theirs", "peer_s": 1e-6, "cause": "plan"}
        records = [{**common, "kind": kind, "shape": f"{kind} {ratio}", "ratio": ratio}
                   for kind, ratio in (("fp32", 0.9), ("fp32", 2.0), ("fp32", 1.5), ("fp64", 0.5),
                                       ("fp64", 1.0))]
        lines = tables.make_summary(records).splitlines()
        self.assertEqual([line.split(" | ")[2:] for line in lines[2:]],
                         [["2", "50.0 %", "50.0 %", "0.71", "0.50 |"],
                          ["3", "33.3 %", "0.0 %", "1.39", "0.90 |"]])
        self.assertIn("| fp64 0.5 |", tables.make_losers(records).splitlines()[2])
        self.assertIn("| fp32 | thin | 1 | 1 | 0 | 0 | 0.90 |", tables.make_families(records))
        records[0]["cause"] = "unknown"
        self.assertIn("| fp32 | thin | 1 | 0 | 0 | 1 | 0.90 |", tables.make_families(records))

    def test_section(self):
        """A file of a processor says nothing about cuBLAS, and how many threads it used."""
        tables = load("gap_tables.py")
        for gpu in ({}, {"gpu": {"sm_count": 132}}):
            head = {"machine": {"processor": "chip", "l1_bytes": 49152, **gpu}, "source": "0",
                    "date": "2026-01-01", "command": ["bench", "--threads", "2"]}
            record = {"kind": "fp32", "mode": "cold", "ratio": 1.5}
            with tempfile.TemporaryDirectory() as folder:
                path = pathlib.Path(folder, "gaps.json")
                path.write_text(json.dumps({"head": head, "records": [record], "seed": 1,
                                            "shapes": 1}), encoding="utf-8")
                section = tables.make_section(path, "gaps.json")
            self.assertEqual("cuBLAS" in section, bool(gpu))
            self.assertIn("chip\n" if gpu else "chip with 48 KiB of L1\n", section)
            self.assertIn("| fp32 |" if gpu else "| fp32, 2 threads |", section)

    def test_newest(self):
        """The README has each kind by the newest run that measured it."""
        tables = load("gap_tables.py")

        def run(date, ratios):
            return {"head": {"date": date}, "records": [
                {"kind": kind, "mode": "hot", "ratio": ratio} for kind, ratio in ratios]}

        chosen = tables.select_newest([run("2026-01-02", [("fp32", 2.0), ("fp32", 3.0)]),
                                       run("2026-01-01", [("fp32", 0.5), ("fp64", 0.9)])])
        self.assertEqual([2.0, 3.0, 0.9], [record["ratio"] for record in chosen])

    def test_dead_bench(self):
        """A shape that ends bench costs no other shape of its piece."""
        run = self.tool.Run(self.tool.parse(["--build", BUILD]))
        shapes = [("fp32", f"{index}x1x1") for index in range(1, 12)]
        measured = []

        def compare(_mode, piece, _gpu):
            if shapes[6] in piece:
                raise self.tool.BenchDied("SIGILL ended bench")
            measured.extend(piece)

        printed = io.StringIO()
        with unittest.mock.patch.object(run, "compare", compare), \
                unittest.mock.patch.object(run, "write"), contextlib.redirect_stderr(printed):
            self.assertFalse(run.measure("cold", shapes))
        self.assertEqual(measured, shapes[:6] + shapes[7:])
        self.assertEqual(printed.getvalue(),
                         "measure_gaps: 7x1x1, cold: SIGILL ended bench\n")

    def test_unexplained(self):
        """A loser stays in the result if bench fails when it is to be explained."""
        run = self.tool.Run(self.tool.parse(["--build", BUILD]))
        loser = {"kind": "fp32", "shape": "1x1x1", "ratio": 0.5, "cause": "unknown"}
        printed = io.StringIO()
        with unittest.mock.patch.object(run, "call", side_effect=RuntimeError("no bench")), \
                contextlib.redirect_stderr(printed):
            self.assertFalse(run.explain("cold", [loser]))
        self.assertEqual(loser["cause"], "unknown")
        self.assertIn("no bench", printed.getvalue())

    def test_mistakes(self):
        for words, message in ((["--kinds", "int8"], "--kinds = 'int8' is no kind"),
                               (["--gpus", "2"], "--gpus and --jobs go with --device cuda"),
                               (["--device", "cuda", "--jobs", "0"], "--jobs = 0 is no count"),
                               (["--device", "cuda", "--gpus", "0"], "--gpus = 0 is no count"),
                               (["--device", "cuda:1"], "invalid choice: 'cuda:1'"),
                               (["--build", "/nowhere"], "no program /nowhere/tilegemm")):
            done = subprocess.run([TOOL, "--build", BUILD, *words], capture_output=True, text=True,
                                  check=False)
            self.assertEqual(done.returncode, 2)
            self.assertIn(message, done.stderr)


class Epilogues(unittest.TestCase):
    def setUp(self):
        self.tool = load("measure_epilogues")

    def test_shapes_are_problems(self):
        for device, words in (("cuda", ["--gpu", "h200"]), ("cpu", ["--device", "cpu"])):
            figures = self.tool.DEVICES[device]
            for kind in self.tool.KINDS:
                text = self.tool.draw_shape(random.Random(7), kind, figures)
                self.assertEqual(text, self.tool.draw_shape(random.Random(7), kind, figures))
                self.assertEqual("batch=" in text, kind.startswith("batch"))
                for epilogue in self.tool.EPILOGUES.values():
                    done = subprocess.run(
                        [os.path.join(BUILD, "tilegemm"), "explain", text + epilogue, *words],
                        capture_output=True, text=True, check=False)
                    self.assertEqual((done.returncode, done.stderr), (0, ""), text + epilogue)

    def test_tables(self):
        """Ratios stand in the column of the shape's k; what was not measured is a dash."""
        times = {name: {"us": None, "unfused_us": None, "peer_us": None}
                 for name in self.tool.EPILOGUES}
        times["plain"] = {"us": 10.0, "unfused_us": None, "peer_us": 20.0}
        times["bias"] = {"us": 15.0, "unfused_us": 12.0, "peer_us": None}
        times["c"] = {"us": 14.0, "unfused_us": None, "peer_us": 12.0}
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            self.tool.print_tables([{"type": "bf16", "mode": "hot", "k": 512, "c_us": 2.0,
                                     "epilogues": times}])
        rows = {line.split()[0]: re.split("  +", line)[1:]
                for line in printed.getvalue().split("\n")
                if line.split()[:1] and line.split()[0] in self.tool.EPILOGUES}
        self.assertEqual(rows["plain"], ["-", "1.000, 1.00", "-", "-", "0.500, 0.50, 0"])
        self.assertEqual(rows["bias"], ["-", "1.500, 1.50", "-", "1.250, 1.25, 1", "-"])
        self.assertEqual(rows["c"], ["-", "1.200, 1.20", "-", "-", "1.167, 1.17, 1"])
        self.assertEqual(rows["silu"], ["-"] * 5)

    def test_losers(self):
        """What exceeds a limit is named; reading C has its own time, and a short k no limit."""
        times = {name: {"kernel": "row", "us": 10.0, "unfused_us": 10.0, "peer_us": None}
                 for name in self.tool.EPILOGUES}
        record = {"type": "bf16", "mode": "hot", "shape": "2000x2000x2048:nt:bf16", "k": 2048,
                  "c_us": 2.0, "epilogues": times}

        def find_losers():
            return self.tool.find_losers(record)

        self.assertEqual(list(find_losers()), [])
        times["bias"]["us"], times["c"]["us"] = 10.4, 12.6
        times["gelu"]["peer_us"] = 8.9
        found = [(limit, round(ratio, 2)) for limit, ratio, _ in find_losers()]
        self.assertEqual(found, [("over two passes", 1.04), ("over plain", 1.04),
                                 ("over the peer", 1.12), ("over two passes", 1.26)])
        times["c"]["us"] = 12.8
        self.assertEqual([limit for limit, *_ in find_losers()][-1], "over plain")
        record["k"] = 511
        self.assertNotIn("over plain", [limit for limit, *_ in find_losers()])

    def test_files_join(self):
        with tempfile.TemporaryDirectory() as folder:
            paths = [pathlib.Path(folder, name) for name in ("a", "b")]
            for path in paths:
                path.write_text(self.tool.format_json(
                    {"seed": 7, "shapes": 1, "device": "cpu", "head": {"date": "now"}},
                    [{"shape": path.name}]),
                    encoding="utf-8")
            head, records = self.tool.read_runs(paths)
        self.assertEqual(head, {"seed": 7, "shapes": 1, "device": "cpu", "head": {"date": "now"}})
        self.assertEqual([record["shape"] for record in records], ["a", "b"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
