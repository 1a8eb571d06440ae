#!/usr/bin/env python3
"""Tests the command report: what it writes, what it refuses, and files of others that it is given.

usage: test_report.py TILEGEMM
"""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

TILEGEMM = "tilegemm"
RECORD = {"shape": "8x8x8", "m": 8, "n": 8, "k": 8, "layout": "nn", "type": "fp32", "threads": 1,
          "device": "cpu", "name": "cpu_x", "kind": "kernel", "median_s": 1e-6, "spread": 0.1,
          "gflop_per_s": 1.0, "max_error": 0.0, "max_bound_share": 0.0, "is_right": True}
MARKUP = "</script><script>alert(1)</script><!--"
LARGE = unittest.skipIf("TG_IS_SANITIZED" in os.environ, "takes minutes under a sanitizer")
FURTHER = unittest.skipIf("TG_IS_SANITIZED" in os.environ, "runs the code that other tests run")


def has_page():
    done = subprocess.run([TILEGEMM, "report", "4x4x4", "--bench", "/dev/null/none"],
                          capture_output=True, text=True, timeout=60)
    return "has no page" not in done.stderr


class Report(unittest.TestCase):
    def setUp(self):
        self.home = os.getcwd()
        self.folder = tempfile.mkdtemp(prefix="tilegemm-report-")
        os.chdir(self.folder)

    def tearDown(self):
        os.chdir(self.home)
        shutil.rmtree(self.folder)

    def call(self, *words):
        return subprocess.run([TILEGEMM, "report", *words], capture_output=True, text=True,
                              timeout=200, check=False)

    def refuse(self, code, text, *words):
        """Asserts that the command refuses with the text and writes nothing."""
        before = sorted(os.listdir())
        done = self.call(*words)
        self.assertEqual((done.returncode, done.stdout), (code, ""), done.stderr)
        self.assertIn(text, done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertEqual(sorted(os.listdir()), before)

    def read_data(self, path):
        with open(path, encoding="utf-8") as file:
            page = file.read()
        places = re.findall(r'<script type="application/json" id="report-data">(.*?)</script>',
                            page, re.S)
        self.assertEqual(len(places), 1)
        return json.loads(places[0]), page

    def write(self, content, path="bench.json"):
        with open(path, "w", encoding="utf-8") as file:
            file.write(content if isinstance(content, str) else json.dumps(content))
        return path

    @FURTHER
    def test_page(self):
        done = self.call("20x16x12", "--gpu", "t4")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))
        self.assertEqual(os.listdir(), ["report.html"])
        self.assertLess(os.path.getsize("report.html"), 3000000)
        data, page = self.read_data("report.html")
        self.assertEqual(data["state"], {"m": 20, "n": 16, "k": 12, "tile": 8, "chip": "t4"})
        of_shape = [one for one in data["simulations"]
                    if (one["m"], one["n"], one["k"]) == (20, 16, 12)]
        # The 15 rows are all except those of tiled, whose tiles do not divide 20 rows. Five rungs
        # have tile 8.
        self.assertEqual(len(of_shape), 15 + 5)
        self.assertFalse([one for one in of_shape if "owners" in one or "whole_k" in one])
        self.assertTrue(all(one["is_exact"] and one["requests"] for one in of_shape))
        self.assertTrue(all(one["phases"] for one in data["traces"]))
        self.assertEqual(data["candidates"]["device"]["device"], "cpu")
        lessons = [one for one in data["simulations"] if one["m"] == 55]
        self.assertTrue(lessons)
        for lesson in lessons:
            self.check_lesson(lesson, "55x43x48", "--kernel", lesson["kernel"])
        walk = data["traces"][0]
        self.assertTrue(walk["phases"] and walk["requests"])
        self.check_lesson(walk, "4x4x4", "--kernel", "tiled", "--tile", "2", "--trace",
                          "--requests")
        for address in re.findall(r'(?:src|href)="([^"]*)"', page):
            self.assertTrue(address.startswith("data:"), address)

    def check_lesson(self, lesson, *words):
        """What was simulated when the command was built is what the command simulates now."""
        told = json.loads(subprocess.run([TILEGEMM, "simulate", *words, "--json"],
                                         capture_output=True, text=True, timeout=60,
                                         check=True).stdout)
        shared = told.keys() & lesson.keys()
        self.assertLess({"kernel", "global_load_sectors", "lines"}, shared)
        self.assertEqual({key: told[key] for key in shared}, {key: lesson[key] for key in shared},
                         lesson["kernel"])

    @LARGE
    def test_matrices_past_what_the_simulator_counts(self):
        done = self.call("70000x70000x8")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))
        data, _ = self.read_data("report.html")
        self.assertEqual(data["state"]["m"], 70000)
        self.assertEqual([one for one in data["simulations"] if one["m"] == 70000], [])
        self.assertTrue(data["simulations"])

    @LARGE
    def test_large_shape(self):
        """Blocks are sampled and k is cut, and both are said."""
        done = self.call("1000x1202x1003")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        data, _ = self.read_data("report.html")
        depths = {one["k"] for one in data["simulations"] if one["m"] == 1000}
        self.assertIn(1003, depths)
        self.assertLess(min(depths), 1003)
        self.assertTrue(all(depth % 8 == 1003 % 8 for depth in depths), depths)
        self.assertFalse(any(one["is_exact"] for one in data["simulations"] if one["m"] == 1000))
        self.check_whole([one for one in data["simulations"] if one["k"] < one["m"] == 1000])

    def check_whole(self, cut):
        """If k was cut, the counts of the whole k are told, exact as the model's."""
        self.assertTrue(cut)
        for one in cut:
            told = json.loads(subprocess.run(
                [TILEGEMM, "explain", "1000x1202x1003", "--gpu", "h200", "--json", "--kernel",
                 one["family"], "--tile", str(one["tile_rows"])],
                capture_output=True, text=True, timeout=60, check=True).stdout)
            whole = dict(one["whole_k"])
            self.assertEqual(whole.pop("k"), 1003)
            self.assertEqual(whole, {key: told[key] for key in whole}, one["kernel"])
            self.assertGreater(whole["useful_flops"], one["useful_flops"])

    @FURTHER
    def test_tile(self):
        """The page opens with a tile that D has two of both ways, or with the one given."""
        for words, tile in ((["4x4x4"], 2), (["5x7x9", "--tile", "3"], 3), (["1x1x1"], 2)):
            self.assertEqual(self.call(*words).returncode, 0)
            data, _ = self.read_data("report.html")
            self.assertEqual(data["state"]["tile"], tile)
            rungs = [one["ladder_rung"] for one in data["simulations"]
                     if one["tile_rows"] == tile and one["m"] == data["state"]["m"]]
            self.assertLessEqual({1, 2, 4, 5, 6}, set(rungs), words)
        self.refuse(2, "--tile = 33", "8x8x8", "--tile", "33")

    def test_counters_of_nsight_compute(self):
        """The CSV of Nsight Compute is read as `profile` reads it, if the grids are those of the
        sizes."""
        header = ["ID", "Kernel Name", "Block Size", "Grid Size",
                  "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum", "dram__bytes_read.sum"]
        rows = [header, ["", "", "", "", "sector", "byte"],
                ["0", "cuda_edges_sm75_fp32_16x16x16", "(16, 16, 1)", "(2, 3, 1)", "1,234", "567"],
                ["1", "void somebody_elses", "(1, 1, 1)", "(1, 1, 1)", "5", "6"],
                ["3", "cuda_edges_sm75_fp32_16x16x16", "(16, 16, 1)", "(2, 3, 1)", "9", "9"],
                ["2", "cuda_naive_sm75_fp32_16x16x1", "(16, 16, 1)", "(3, 2, 1)", "99", "1"]]

        def write(rows):
            with open("counters.csv", "w", encoding="utf-8") as file:
                file.write("==PROF== Connected\n" + "".join(
                    ",".join(f'"{field}"' for field in row) + "\n" for row in rows))

        write(rows)
        done = self.call("40x20x12", "--gpu", "t4", "--profile", "counters.csv")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        data, _ = self.read_data("report.html")
        self.assertEqual([(one["kernel"], one["global_load_sectors"]) for one in data["counted"]],
                         [("cuda_naive_sm75_fp32_16x16x1", 99),
                          ("cuda_edges_sm75_fp32_16x16x16", 1234)])
        self.assertEqual({(one["m"], one["n"], one["k"], one["gpu"]) for one in data["counted"]},
                         {(40, 20, 12, "t4")})
        self.refuse(2, "the report's sizes make it (5, 2, 1)", "70x20x12", "--profile",
                    "counters.csv")
        write(rows[:2])
        self.refuse(2, "counts no kernel of the ladder", "40x20x12", "--profile", "counters.csv")
        with open("counters.csv", "w", encoding="utf-8") as file:
            file.write("==ERROR==x")
        self.refuse(2, "counts no kernel of the ladder", "40x20x12", "--profile", "counters.csv")
        rows[2][3] = "\x1b[2J"
        write(rows)
        self.refuse(2, "with a grid of ?[2J, but", "40x20x12", "--profile", "counters.csv")
        os.mkfifo("pipe")
        for option in ("--profile", "--bench"):
            self.refuse(2, "'pipe' is not a regular file", "40x20x12", option, "pipe")

    @FURTHER
    def test_deep_shape_of_little_d(self):
        """The tiles that are multiplied decide where k is cut, however little of D lies in them."""
        done = self.call("7x1x1100")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        data, _ = self.read_data("report.html")
        depths = {one["kernel"]: one["k"] for one in data["simulations"] if one["m"] == 7}
        self.assertEqual(depths["cuda_naive_sm75_fp32_16x16x1"], 1100)
        self.assertEqual(depths["cuda_warp_tile_sm75_fp32_128x128x8"], 132)

    def test_wrong_arguments(self):
        for text, *words in (("8x8", "8x8"), ("1 to 1000000", "0x8x8"),
                             ("1 to 1000000", "8x8x2000000"), ("row-major", "8x8x8:bf16"),
                             ("one shape too many", "8x8x8", "8x8x8")):
            if text == "one shape too many":
                self.assertEqual(self.call(*words).returncode, 2)
            else:
                self.refuse(2, text, *words)
        self.refuse(3, "--gpu", "8x8x8", "--gpu", "abacus")
        self.refuse(3, "none/r.html", "8x8x8", "-o", "none/r.html")
        self.refuse(3, "none.json", "8x8x8", "--bench", "none.json")

    def test_markup_stays_text(self):
        self.write({"head": {"date": MARKUP, "machine": {"processor": MARKUP}},
                    "records": [{**RECORD, "name": MARKUP, "shape": MARKUP}]})
        done = self.call("4x4x4", "--bench", "bench.json")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        data, page = self.read_data("report.html")
        self.assertEqual(data["bench"][0]["records"][0]["name"], MARKUP)
        self.assertNotIn("alert(1)</script>", page)

    def test_wrong_bench_files(self):
        self.write("keep", "report.html")
        for content, text in (
                ("", "is not JSON"), ("{", "is not JSON"), ("[]", '"records"'),
                ("[" * 100000, "is not JSON"), ('{"records": 1}', '"records"'),
                ({"records": [1]}, '"shape"'),
                ({"records": [{**RECORD, "m": "8"}]}, '"m"'),
                ({"records": [{**RECORD, "gflop_per_s": -1}]}, '"gflop_per_s"'),
                ({"records": [{**RECORD, "name": "x" * 201}]}, '"name"'),
                ({"records": [{**RECORD, "name": None}]}, '"name"'),
                ({"records": [{**RECORD, "is_right": 1}]}, '"is_right"'),
                ({"records": [RECORD] * 4001}, "more than 4000 records"),
                ('{"records": [{"m": 1e999}]}', "is not JSON")):
            self.write(content)
            self.refuse(2, text, "4x4x4", "--bench", "bench.json")
        with open("bench.json", "wb") as file:
            file.write(b'{"records": "\xff\xfe"}')
        self.refuse(2, "is not JSON", "4x4x4", "--bench", "bench.json")
        with open("bench.json", "w", encoding="utf-8") as file:
            file.truncate(100 << 20)
        self.refuse(2, "at most 32 MiB", "4x4x4", "--bench", "bench.json")
        self.refuse(2, "not a regular file", "4x4x4", "--bench", ".")
        with open("report.html", encoding="utf-8") as file:
            self.assertEqual(file.read(), "keep")

    def test_wrong_profile_files(self):
        right = {"m": 8, "n": 8, "k": 8, "kernels": [
            {"kernel": MARKUP, "counted": {"time_ns": "x", "shared_loads": 1}}]}
        for content, text in (("{", "is not JSON"), ("{}", '"kernels"'),
                              ({**right, "m": None}, '"m"'),
                              ({**right, "kernels": [3]}, '"kernel"'),
                              ({**right, "kernels": [{"kernel": 3}]}, '"kernel"')):
            self.write(content)
            self.refuse(2, text, "4x4x4", "--profile", "bench.json")
        self.write(right)
        self.assertEqual(self.call("4x4x4", "--profile", "bench.json").returncode, 0)
        counted = self.read_data("report.html")[0]["counted"]
        self.assertEqual((counted[0]["kernel"], counted[0]["shared_loads"], counted[0]["time_ns"]),
                         (MARKUP, 1, None))

    def test_no_such_device(self):
        """The default device is missing: nothing is written."""
        os.environ["TILEGEMM_DEVICE"] = "nonesuch"
        try:
            self.refuse(3, "nonesuch", "8x8x8")
        finally:
            del os.environ["TILEGEMM_DEVICE"]

    def test_too_large_a_page(self):
        self.write({"records": [{**RECORD, "name": "x" * 200, "shape": "y" * 200}] * 4000})
        self.refuse(2, "more than 3000000 bytes", "4x4x4", *["--bench", "bench.json"] * 2)

    def test_interrupted(self):
        self.write("keep", "report.html")
        with subprocess.Popen([TILEGEMM, "report", "1000x1000x1000"]) as running:
            time.sleep(0.5)
            running.send_signal(signal.SIGINT)
            self.assertEqual(running.wait(60), -signal.SIGINT)
        self.assertEqual(os.listdir(), ["report.html"])
        with open("report.html", encoding="utf-8") as file:
            self.assertEqual(file.read(), "keep")

    def test_full_disk(self):
        if not os.path.exists("/dev/full"):
            self.skipTest("no /dev/full")
        self.assertNotEqual(self.call("4x4x4", "-o", "/dev/full").returncode, 0)


class NoPage(unittest.TestCase):
    def test_says_what_is_missing(self):
        done = subprocess.run([TILEGEMM, "report"], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 3)
        self.assertIn("tilegemm has no page to write, for it was", done.stderr)


if __name__ == "__main__":
    TILEGEMM = os.path.abspath(sys.argv.pop(1))
    unittest.main(argv=[sys.argv[0], "Report" if has_page() else "NoPage"], verbosity=2)
