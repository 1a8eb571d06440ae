#!/usr/bin/env python3
"""Tests the command bench beside other libraries: what it gives them to compute, how it takes the
samples, and what it makes of them.

usage: test_bench_peers.py TILEGEMM WRONG_TILEGEMM FAKE_OPENBLAS SOURCE_FOLDER

FAKE_OPENBLAS (fake_openblas.c) replaces OpenBLAS, and oneDNN's sgemm.
"""
import itertools
import json
import os
import re
import statistics
import unittest

from bench_case import PROGRAMS, BenchCase, run_tests

# The leak sanitizer trips over the thread-local memory of libraries opened at run time.
REAL_PEERS = {"ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"}

with open("/proc/cpuinfo", encoding="utf-8") as cpuinfo:
    HAS_AVX512 = "avx512dq" in cpuinfo.read()


class Peers(BenchCase):
    def test_wrong_peer_has_no_ratio(self):
        run = self.load("--shape", "8x8x8", "--peer", "openblas", **self.fake,
                        FAKE_OPENBLAS_WRONG="1")
        peer = next(record for record in run["records"] if record["kind"] == "peer")
        self.assertFalse(peer["is_right"])
        self.assertIsNone(run["summaries"][0]["best_peer"])
        self.assertIsNone(run["summaries"][0]["ratio_to_best_peer"])

    def test_environment(self):
        """The variable is set before the library is opened, if the CPU has AVX-512. The user's
        value stays."""
        run = self.load("--shape", "8x8x8", "--peer", "openblas", **self.fake)
        peer = run["head"]["peers"][0]
        self.assertEqual(peer["version"], "fake 1.0")
        self.assertEqual(peer["kernel"], "SKYLAKEX" if HAS_AVX512 else "none")
        self.assertEqual(peer["environment_kept"], [])
        run = self.load("--shape", "8x8x8", "--peer", "openblas", **self.fake,
                        OPENBLAS_CORETYPE="Zen")
        peer = run["head"]["peers"][0]
        self.assertEqual(peer["kernel"], "Zen")
        self.assertEqual(peer["environment_kept"], ["OPENBLAS_CORETYPE"])
        done = self.call("--shape", "8x8x8", "--peer", "openblas", **self.fake,
                         OPENBLAS_CORETYPE="Zen", OPENBLAS_L2_SIZE="256")
        for setting in ("OPENBLAS_CORETYPE=Zen", "OPENBLAS_L2_SIZE=256"):
            self.assertIn(f"warning: {setting} of the environment is kept and may slow openblas",
                          done.stderr)

    def test_layouts(self):
        """Every peer computes every layout that a BLAS can name, with alpha, and batches."""
        shapes = [f"13x7x9:{layout}{rest}" for layout in ("nn", "nt", "tn", "tt")
                  for rest in ("", ":dcol", ":lda=40:ldb=41:ldd=42", ":fp64", ":batch=3",
                               ":batch=2:dcol:fp64")]
        words = [word for shape in (*shapes, "1x9x5", "9x1x5", "9x5x1", "1x9x5:tt:dcol",
                                        "13x7x9:alpha=3", "13x7x9:fp64:alpha=3")
                 for word in ("--shape", shape)]
        self.check_layouts(*words, "--peer", "openblas", **self.fake)
        self.check_layouts(*words, "--peer", "onednn_sgemm",
                           TILEGEMM_ONEDNN=PROGRAMS["openblas"])
        self.check_layouts(*words, **REAL_PEERS)

    def check_layouts(self, *words, **options):
        run = self.load(*words, "--rounds", "1", "--threads", "1", **options)
        peers = {peer["name"] for peer in run["head"]["peers"] if peer["is_open"]}
        if not peers:
            self.skipTest("no peer is installed")
        for record in run["records"]:
            self.assertTrue(record["is_right"], (record["name"], record["shape"]))
        seen = {record["name"] for record in run["records"] if record["kind"] == "peer"}
        self.assertEqual(seen, peers)

    @unittest.skipUnless(HAS_AVX512, "oneDNN multiplies bf16 with AVX-512")
    def test_onednn_bf16(self):
        run = self.load("--shape", "33x29x31:bf16", "--shape", "33x29x31:tt:bf16:d=fp32",
                        **REAL_PEERS)
        peer = next(peer for peer in run["head"]["peers"] if peer["name"] == "onednn")
        if not peer["is_open"]:
            self.skipTest(peer["reason"])
        mine = [record for record in run["records"] if record["name"] == "onednn"]
        self.assertEqual([record["is_right"] for record in mine], [True, True])

    def test_onednn_epilogues(self):
        """oneDNN adds C and a bias and activates, after each product of a batch."""
        shapes = [f"13x7x9:{rest}" for rest in
                  ("bias=col:act=relu", "bias=row:act=silu:batch=3", "beta=1", "act=gelu_tanh:dcol",
                   "beta=1:bias=col:act=gelu_erf:dcol:batch=2")]
        words = [word for shape in shapes for word in ("--shape", shape)]
        run = self.load(*words, "--threads", "1", **REAL_PEERS)
        peer = next(peer for peer in run["head"]["peers"] if peer["name"] == "onednn")
        if not peer["is_open"]:
            self.skipTest(peer["reason"])
        mine = [record["is_right"] for record in run["records"] if record["name"] == "onednn"]
        self.assertEqual(mine, [True] * len(shapes))

    def test_unfused(self):
        """The product and a pass over D stand beside the fused product, and are not our best."""
        shapes = ["9x8x7:bias=col:act=silu", "9x8x7:batch=3:beta=2:bias=row:dcol", "9x8x7",
                  "9x8x7:bf16:act=relu"]
        words = [word for shape in shapes for word in ("--shape", shape)]
        run = self.load(*words, "--kernel", "best", "--kernel", "unfused", "--peer", "none")
        unfused = [record for record in run["records"] if record["name"] == "unfused"]
        self.assertEqual(len(unfused), 3)
        self.assertTrue(all(record["is_right"] for record in unfused))
        self.assertNotIn("unfused", [summary["best_kernel"] for summary in run["summaries"]])

    def test_what_a_blas_cannot(self):
        for shape, reason in (("8x8x8:beta=1", "in place"), ("8x8x8:bias=col", "no bias"),
                              ("8x8x8:bf16", "fp32 and fp64"),
                              ("8x8x8:rsa=20:csa=2", "strided")):
            with self.subTest(shape):
                run = self.load("--shape", shape, "--peer", "openblas",
                                **self.fake)
                self.assertEqual([record["kind"] for record in run["records"]], ["kernel"])
                self.assertIn(reason, run["summaries"][0]["skipped"][0]["reason"])


class Table(BenchCase):
    """The table says what the JSON says."""

    def measure(self, *words):
        done = self.call(*words, "--json", "run.json", **self.fake)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        with open("run.json", encoding="utf-8") as file:
            return done.stdout, json.load(file)

    def test_ratios(self):
        """There are three shapes, so that the two sides of the summary never hold equally many."""
        text, run = self.measure("--shape", "200x200x200", "--shape", "100x100x100", "--shape",
                                 "1x1x2000:fp64", "--threads", "1", "--peer", "openblas")
        table = text.split("Time of the best peer over time of our best kernel\n")[1]
        side, seen = None, []
        for line in table.splitlines():
            match = re.match(r"  (\d+\.\d+)x  (\S+)  ", line)
            if match:
                seen.append((match.group(2), match.group(1), side))
            elif not line.startswith("Geometric"):
                side = line
        expected = sorted((summary["ratio_to_best_peer"], summary["shape"])
                          for summary in run["summaries"])
        self.assertEqual(seen, [(shape, f"{ratio:.3f}", "slower than the best peer:"
                                 if ratio < 1 else "as fast or faster:")
                                for ratio, shape in expected])
        for kind, count in (("fp32", 2), ("fp64", 1)):
            mean = statistics.geometric_mean(summary["ratio_to_best_peer"]
                                             for summary in run["summaries"]
                                             if summary["type"] == kind)
            self.assertRegex(table, rf"Geometric mean of {kind}, 1 thread: {mean:.3f}x over "
                                    rf"{count} shapes?\n")

    def test_columns(self):
        text, run = self.measure("--shape", "40x40x40", "--kernel", "ladder", "--peer", "openblas")
        median = {record["name"]: record["median_s"] for record in run["records"]}
        base = median["cpu_sequential_generic_fp32"]
        for name, own in median.items():
            line = next(line for line in text.splitlines() if line.startswith(f"  {name} "))
            self.assertIn(f" {base / own:.1f}x ", line)
            self.assertIn(f" {median['openblas'] / own:.2f}x ", line)


class Sampling(BenchCase):
    def read_log(self, *words):
        """Returns what the fake library was asked for: ["threads", count] and ["gemm", address of
        D]."""
        self.load("--peer", "openblas", *words, FAKE_OPENBLAS_LOG="fake.log", **self.fake)
        with open("fake.log", encoding="utf-8") as file:
            calls = [line.split() for line in file]
        os.remove("fake.log")
        return calls

    def test_thread_count(self):
        calls = self.read_log("--shape", "8x8x8", "--threads", "3,1")
        counts = [count for name, count in calls if name == "threads"]
        self.assertEqual(counts, ["3", "1"])
        self.assertEqual(calls[0], ["threads", "3"])

    def test_cold_operands_rotate(self):
        """Each sample of a cold run has other operands; all samples of a hot run have the same."""
        for option, is_cold in (("--hot", False), ("--cold", True)):
            calls = self.read_log("--shape", "256x256x64", "--threads", "1", option,
                                  "--min-time", "0")
            used = {address for name, address in calls if name == "gemm"}
            self.assertEqual(len(used) > 3, is_cold, used)

    def test_contenders_take_turns(self):
        names = ["cpu_sequential_generic_fp32", "cpu_blocked_generic_fp32"]
        self.load("--shape", "8x8x8", "--kernel", names[0], "--kernel", names[1], "--peer", "none",
                  "--rounds", "5", "--min-time", "0", TILEGEMM_LOG="calls.log")
        with open("calls.log", encoding="utf-8") as file:
            kernels = [line.split("kernel=")[1].split()[0] for line in file]
        turns = [name for name, _ in itertools.groupby(kernels)]
        self.assertGreaterEqual(len([name for name in turns if name == names[0]]), 5)

    def test_spread(self):
        run = self.load("--shape", "8x8x8", "--peer", "openblas", "--rounds", "5", **self.fake)
        for record in run["records"]:
            ordered = sorted(record["samples_s"])
            self.assertAlmostEqual(record["spread"], (ordered[3] - ordered[1]) / ordered[2], 6)

    def test_short_calls_fill_a_sample(self):
        record = self.load("--shape", "2x2x2", "--peer", "none", "--min-time", "0.01")["records"][0]
        self.assertGreater(record["repeat_count"], 10)

    def test_long_contenders_stop(self):
        """A long contender stops after three samples, or after fewer if fewer are asked for."""
        for rounds, count in (("9", 3), ("2", 2)):
            run = self.load("--shape", "64x64x64", "--peer", "none", "--max-time", "0",
                            "--rounds", rounds)
            self.assertEqual(len(run["records"][0]["samples_s"]), count)

    def test_batch_counts(self):
        record = self.load("--shape", "5x6x7:batch=11", "--peer", "none")["records"][0]
        self.assertAlmostEqual(record["gflop_per_s"] * record["median_s"] * 1e9 / (2 * 5 * 6 * 7),
                               11, 4)

    def test_precision(self):
        run = self.load("--shape", "8x8x8", "--peer", "none", "--precision", "ieee_fp32")
        self.assertEqual(run["records"][0]["precision"], "ieee_fp32")
        self.assertIn("prec=ieee_fp32", run["records"][0]["shape"])

    def test_idle_kernel(self):
        """D is spoilt before each contender, so that no contender passes with the result of the one
        before."""
        run = self.load("--shape", "8x8x8", "--kernel", "cpu_sequential_generic_fp32", "--kernel",
                        "cpu_blocked_generic_fp32", "--peer", "none", code=1,
                        program=PROGRAMS["wrong"], WRONG_EXECUTE_IDLE="1")
        self.assertEqual([record["is_right"] for record in run["records"]], [True, False])
        self.assertEqual(run["summaries"][0]["best_kernel"], "cpu_sequential_generic_fp32")


if __name__ == "__main__":
    run_tests()
