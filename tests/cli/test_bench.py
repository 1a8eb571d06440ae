#!/usr/bin/env python3
"""Tests the command bench: its JSON, its table, suites, and what it refuses.

usage: test_bench.py TILEGEMM WRONG_TILEGEMM FAKE_OPENBLAS SOURCE_FOLDER

WRONG_TILEGEMM is the command with wrong kernels (wrong_execute.c). FAKE_OPENBLAS is a library that
takes the place of OpenBLAS (fake_openblas.c). Times are not judged, because other jobs run on this
machine.
"""
import fcntl
import json
import os
import statistics
import subprocess

from bench_case import PROGRAMS, BenchCase, run_tests

SUITES = ("square", "cubes", "layouts", "odd", "skinny", "llm", "tokens", "cliff",
          "rounded", "seeds")
ISA_NAMES = ("generic", "avx2", "avx512", "avx512_bf16", "amx")
RECORD_KEYS = {"m", "n", "k", "layout", "type", "precision", "threads", "device", "name", "kind",
               "median_s", "min_s", "max_s", "gflop_per_s", "max_error", "samples_s", "shape",
               "is_right", "max_bound_share", "repeat_count", "spread", "sustained_s"}
SUMMARY_KEYS = {"shape", "m", "n", "k", "best_kernel", "best_peer", "ratio_to_best_peer",
                "planned_kernel", "plan_us", "one_shot_median_s", "host_us", "tiling", "skipped"}
HEAD_KEYS = {"version", "source", "compiler", "date", "command", "machine", "peers",
             "environment", "mode", "min_time_s", "round_count"}


class Records(BenchCase):
    def test_keys_and_arithmetic(self):
        run = self.load("--shape", "31x17x23:nt:fp64", "--shape", "16x16x16", "--threads", "1,2",
                        "--kernel", "all", "--peer", "openblas", **self.fake)
        self.assertLessEqual(HEAD_KEYS, set(run["head"]))
        self.assertEqual(run["head"]["mode"], "hot")
        self.assertEqual(len(run["summaries"]), 4)
        for record in run["records"]:
            self.assertLessEqual(RECORD_KEYS, set(record))
            samples = record["samples_s"]
            self.assertEqual(len(samples), 3)
            self.assertAlmostEqual(record["median_s"] / statistics.median(samples), 1, 6)
            self.assertEqual((record["min_s"], record["max_s"]), (min(samples), max(samples)))
            flop_count = 2 * record["m"] * record["n"] * record["k"]
            self.assertAlmostEqual(
                record["gflop_per_s"] * record["median_s"] / flop_count * 1e9, 1, 6)
            self.assertTrue(record["is_right"])
            self.assertLessEqual(record["max_bound_share"], 1)
        first = run["records"][0]
        self.assertEqual([first[key] for key in ("m", "n", "k", "layout", "type", "threads")],
                         [31, 17, 23, "nt", "fp64", 1])
        for summary in run["summaries"]:
            self.assertLessEqual(SUMMARY_KEYS, set(summary))
            self.check_summary(summary, run["records"])

    def test_turns(self):
        """A bench waits while another has the turn; a file that cannot be opened is refused."""
        words = ("--shape", "8x8x8", "--peer", "none", "--rounds", "1", "--min-time", "0")
        with open("turns", "w", encoding="utf-8") as turns:
            fcntl.flock(turns, fcntl.LOCK_EX)
            with subprocess.Popen([PROGRAMS["right"], "bench", *words, "--turns", "turns"],
                                  stdout=subprocess.DEVNULL) as run:
                with self.assertRaises(subprocess.TimeoutExpired):
                    run.wait(0.5)
                fcntl.flock(turns, fcntl.LOCK_UN)
                self.assertEqual(run.wait(60), 0)
        self.refuse(2, "--turns = '/nowhere/turns' cannot be opened", *words, "--turns",
                    "/nowhere/turns")

    def test_brief(self):
        run = self.load("--shape", "60x70x3000", "--peer", "none", "--brief")
        record, summary = run["records"][0], run["summaries"][0]
        self.assertTrue(record["is_right"])
        self.assertGreater(record["median_s"], 0)
        self.assertIsNone(summary["peak_flop_per_s"])
        self.assertIsNone(summary["one_shot_median_s"])

    def test_sustained_and_types(self):
        run = self.load("--shape", "40x30x20", "--type", "fp8_e4m3,bf16", "--peer", "none",
                        "--batch-invariant", "--sustained", "0.01")
        self.assertEqual([record["shape"] for record in run["records"]],
                         ["40x30x20:fp8_e4m3:d=bf16:batch_invariant",
                          "40x30x20:bf16:batch_invariant"])
        for record in run["records"]:
            self.assertGreater(record["sustained_s"], 0)
        run = self.load("--shape", "8x8x8", "--precision", "tf32", "--peer", "none")
        self.assertEqual(run["records"][0]["precision"], "tf32")
        self.assertIsNone(run["records"][0]["sustained_s"])

    def check_summary(self, summary, records):
        mine = [record for record in records
                if (record["shape"], record["threads"]) == (summary["shape"], summary["threads"])]
        best = {}
        for kind in ("kernel", "peer"):
            best[kind] = min((record["median_s"], record["name"]) for record in mine
                             if record["kind"] == kind)
        self.assertEqual(best["kernel"][1], summary["best_kernel"])
        self.assertEqual((best["peer"][1], summary["best_peer"]), ("openblas", "openblas"))
        self.assertAlmostEqual(
            summary["ratio_to_best_peer"] * best["kernel"][0] / best["peer"][0], 1, 6)
        self.assertGreater(summary["plan_us"]["first"], 0)

    def test_types_and_shape_text(self):
        run = self.load("--shape", "24x8x40", "--type", "fp32,fp64,bf16", "--peer", "none")
        self.assertEqual([record["type"] for record in run["records"]], ["fp32", "fp64", "bf16"])
        again = self.load(*(word for record in run["records"]
                            for word in ("--shape", record["shape"])), "--peer", "none")
        self.assertEqual([record["type"] for record in again["records"]],
                         ["fp32", "fp64", "bf16"])

    def test_ladder(self):
        table = json.loads(subprocess.run([PROGRAMS["right"], "kernels", "--json"], timeout=60,
                                          capture_output=True, text=True).stdout)
        ladder = {row["name"]: row["ladder_rung"] for row in table
                  if row["ladder_rung"] is not None and row["type"] == "fp32"}
        run = self.load("--shape", "40x40x40", "--kernel", "ladder", "--peer", "none")
        names = [record["name"] for record in run["records"]]
        self.assertGreaterEqual(len(names), 2)
        self.assertEqual([ladder[name] for name in names], sorted(ladder[name] for name in names))
        self.assertEqual(ladder[names[0]], 0)
        done = self.call("--shape", "40x40x40", "--kernel", "ladder", "--peer", "none")
        self.assertRegex(done.stdout, rf"{names[0]} .* 1\.0x ")
        self.assertIn("speedup", done.stdout)

    def test_cold(self):
        run = self.load("--shape", "64x64x64", "--peer", "none", "--cold")
        self.assertEqual(run["head"]["mode"], "cold")

    def test_long_kernels_are_left_out(self):
        """Long kernels are left out of a group, but run if they are named."""
        name = "cpu_sequential_generic_fp32"
        words = ["--shape", "100x100x100", "--peer", "none", "--max-time", "0.00001"]
        run = self.load(*words, "--kernel", "ladder")
        skipped = {entry["name"]: entry["reason"] for entry in run["summaries"][0]["skipped"]}
        self.assertRegex(skipped[name], "predicted to take .* of --max-time and --within; name")
        run = self.load(*words, "--kernel", name)
        self.assertEqual([record["name"] for record in run["records"]], [name])

    def test_file(self):
        with open("run.json", "w", encoding="utf-8") as file:
            file.write("old")
        done = self.call("--shape", "8x8x8", "--peer", "none", "--json", "run.json")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("contender", done.stdout)
        with open("run.json", encoding="utf-8") as file:
            self.assertEqual(len(json.load(file)["records"]), 1)
        self.assertEqual(os.listdir("."), ["run.json"])

    def test_wrong_kernel(self):
        run = self.load("--shape", "8x8x8", "--peer", "none", code=1, program=PROGRAMS["wrong"])
        self.assertFalse(run["records"][0]["is_right"])
        self.assertGreater(run["records"][0]["max_bound_share"], 1)
        self.assertIsNone(run["summaries"][0]["best_kernel"])
        done = self.call("--shape", "8x8x8", "--peer", "none", program=PROGRAMS["wrong"])
        self.assertIn("WRONG", done.stdout)
        self.assertRegex(done.stderr, "tilegemm bench: cpu_.* is wrong at 8x8x8")


class Refusals(BenchCase):
    def test_values(self):
        for message, *words in (
                (r"--threads = '0x' is not a whole number; pass one from 1 to 1024",
                 "--threads", "1,0x"),
                (r"--threads = 0 is outside 1 to 1024", "--threads", "0"),
                (r"--type = 'fp31' is not an element type; pass fp32,", "--type", "fp31"),
                (r"--precision = 'half' is not a precision", "--precision", "half"),
                (r"--rounds = 0 is outside 1 to", "--rounds", "0"),
                (r"--peer = 'none' and --peer = 'openblas' exclude each other", "--shape", "8x8x8",
                 "--peer", "openblas"),
                (r"--shape 8x8x8", "8x8x8")):
            with self.subTest(words):
                self.refuse(2, message, "--peer", "none", *words)
        self.refuse(2, "tilegemm bench: ", "--shape", "8x8")

    def test_missing(self):
        self.refuse(3, "--kernel = 'cpu_nothing' is not a kernel", "--kernel", "cpu_nothing",
                    "--shape", "8x8x8")
        self.refuse(3, "--peer = 'nothing' is not a peer; pass", "--peer", "nothing", "--shape",
                    "8x8x8")
        self.refuse(3, "peer mkl: TILEGEMM_MKL = /nowhere has no library", "--peer", "mkl",
                    "--shape", "8x8x8", TILEGEMM_MKL="/nowhere")
        self.refuse(3, "--suite = 'nothing' is neither a suite nor a file", "--suite", "nothing")

    def test_instruction_sets(self):
        """An instruction set is refused before a peer is opened, whose own error would come first,
        and before the head."""
        words = ("--shape", "8x8x8", "--peer", "mkl")
        self.refuse(2, 'isa = "nothing"', *words, "--isa", "nothing", TILEGEMM_MKL="/nowhere")
        self.refuse(2, 'TILEGEMM_ISA = "nothing"', *words, TILEGEMM_ISA="nothing",
                    TILEGEMM_MKL="/nowhere")
        self.refuse(3, 'TILEGEMM_DEVICE = "nothing"', *words, TILEGEMM_DEVICE="nothing")
        here = json.loads(subprocess.run([PROGRAMS["right"], "info", "--json"], capture_output=True,
                                         text=True, timeout=60).stdout)["instruction_sets"]
        for isa in set(ISA_NAMES) - set(here):
            self.refuse(3, f"isa = {isa}, but", *words, "--isa", isa, TILEGEMM_MKL="/nowhere")

    def test_unwritable_file(self):
        """It is refused before anything is measured."""
        done = self.call("--shape", "8x8x8", "--peer", "none", "--json", "nowhere/run.json")
        self.assertNotEqual(done.returncode, 0)
        self.assertEqual(done.stdout, "")
        self.assertIn("nowhere/run.json", done.stderr)

    def test_broken_suites(self):
        for text, message in (("8x8x8 # one\n8x8\n", r"own\.txt:2: this line is not a shape"),
                              ("# nothing\n\n", r"own\.txt holds no shape")):
            with open("own.txt", "w", encoding="utf-8") as file:
                file.write(text)
            self.refuse(2, message, "--suite", "own.txt", "--peer", "none")


class Unmeasured(BenchCase):
    """A run that ends without the samples asked for is no success."""

    def test_illegal_kernel(self):
        words = ["--kernel", "cpu_sequential_generic_fp64", "--peer", "none", "--shape", "8x8x8"]
        run = self.load(*words, code=2)
        self.assertEqual(run["records"], [])
        self.assertIn("can run none of the shapes given", self.call(*words).stderr)
        self.assertEqual(len(self.load(*words, "--shape", "8x8x8:fp64")["records"]), 1)

    def test_no_memory(self):
        """The padding counts too: m n k alone would fit."""
        done = self.call("--shape", "8x8x8:lda=1000000000000", "--peer", "none")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stdout, "operands of 28000.0 GB do not fit")
        self.assertIn("no kernel was measured", done.stderr)

    def test_late_failure(self):
        """If a call fails while it is timed, a kernel's failure is an error and a peer's is a
        reason."""
        for call_count in ("1", "5", "40"):
            done = self.call("--shape", "100x100x100", "--peer", "none", "--rounds", "50",
                             program=PROGRAMS["wrong"], WRONG_EXECUTE_CALLS=call_count)
            self.assertEqual(done.returncode, 1)
            self.assertRegex(done.stderr, "cpu_.* failed at 100x100x100")
            run = self.load("--shape", "100x100x100", "--peer", "onednn_sgemm", "--rounds", "50",
                            TILEGEMM_ONEDNN=PROGRAMS["openblas"], FAKE_ONEDNN_CALLS=call_count)
            self.assertEqual({record["kind"] for record in run["records"]}, {"kernel"})
            self.assertEqual([(entry["name"], entry["reason"])
                              for entry in run["summaries"][0]["skipped"]],
                             [("onednn_sgemm", "the library reports a failure at this shape")])


class Replay(BenchCase):
    def replay(self, log):
        with open(log, encoding="utf-8") as file:
            problems = sorted({line.split("problem=")[1].split()[0] for line in file})
        for problem in problems:
            with self.subTest(problem):
                done = self.call("--shape", problem, "--peer", "none", "--rounds", "1",
                                 "--min-time", "0", "--json", "-")
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                record = json.loads(done.stdout)["records"][0]
                self.assertEqual(record["shape"], problem)
                is_empty = 0 in (record[key] for key in ("m", "n", "k", "batch_count"))
                self.assertEqual(record["gflop_per_s"] == 0, is_empty)
        return problems

    def test_bench_calls(self):
        shapes = ["0x3x5", "3x0x5", "3x5x0", "3x4x5:batch=0", "7x9x11:tt:fp64",
                  "5x6x7:batch=3:alpha=2:beta=0.5:bias=col:act=gelu_erf", "5x6x7:bf16:d=fp32",
                  "5x6x7:rsa=20:csa=2", "4x4x4:alpha=0"]
        done = self.call(*(word for shape in shapes for word in ("--shape", shape)), "--peer",
                         "none", "--rounds", "1", TILEGEMM_LOG="calls.log")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(len(self.replay("calls.log")), len(shapes))
        done = self.call("--shape", "0x3x5", "--peer", "openblas",
                         **self.fake)
        self.assertIn("peers are not measured on products with a size of 0", done.stdout)

    def test_multiply_calls(self):
        for name, head, count in (("a", "2 3", 6), ("b", "3 4", 12)):
            with open(name + ".mtx", "w", encoding="utf-8") as file:
                file.write("%%MatrixMarket matrix array real general\n" + head + "\n" +
                           "1\n" * count)
        done = subprocess.run([PROGRAMS["right"], "multiply", "a.mtx", "b.mtx", "-o", "d.mtx"],
                              capture_output=True, text=True, timeout=60,
                              env={**os.environ, "TILEGEMM_LOG": "calls.log"})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertGreaterEqual(len(self.replay("calls.log")), 1)


class Suites(BenchCase):
    def test_reasons_of_any_text(self):
        """No record is lost if a reason is not UTF-8, too long, or cut inside a character."""
        with open("own.txt", "wb") as file:
            file.write(b"8x8x8 # caf\xe9 \xc3\xa9\n9x9x9 # " + b"x" * 638 + "é\n".encode() +
                       b"10x10x10 # " + b"y" * 5000 + b"\n"
                       # The reasons hold longer forms, a surrogate, a code beyond the last
                       # character, a cut character, and right ones.
                       b"11x11x11 # \xc0\xaf \xe0\x80\xaf \xf0\x80\x80\xaf \xed\xa0\x80 "
                       b"\xf4\x90\x80\x80 \xff \xe2\x82 \xe2\x82\xac \xf0\x9f\x98\x80\n")
        run = self.load("--suite", "own.txt", "--peer", "none")
        self.assertEqual([record["reason"] for record in run["records"]],
                         ["caf? é", "x" * 638, "y" * 639,
                          "?? ??? ???? ??? ???? ? ?? \u20ac \U0001f600"])
        self.assertEqual(len(run["summaries"]), 4)

    def test_suite_comes_before_file(self):
        with open("square", "w", encoding="utf-8") as file:
            file.write("8x8x8 # mine\n")
        run = self.load("--suite", "./square", "--peer", "none")
        self.assertEqual(run["records"][0]["reason"], "mine")

    def test_own_suite(self):
        with open("own.txt", "w", encoding="utf-8") as file:
            file.write("# head\n\n8x8x8 # first\n  9x9x9:nt\n")
        run = self.load("--suite", "own.txt", "--peer", "none")
        self.assertEqual([(record["shape"], record["reason"]) for record in run["records"]],
                         [("8x8x8", "first"), ("9x9x9:nt", "")])

    def test_every_line_has_its_reason(self):
        for suite in SUITES:
            path = os.path.join(PROGRAMS["source"], "bench", "suites", suite + ".txt")
            with open(path, encoding="utf-8") as file:
                lines = [line for line in file.read().splitlines()
                         if not line.startswith(("#", "--"))]
            self.assertGreater(len(lines), 0)
            shapes = []
            for line in lines:
                self.assertRegex(line, r"^\d+x\d+x\d+(:[a-z0-9=_]+)* +# \S", suite)
                shapes.append(line.split()[0])
            self.assertEqual(len(set(shapes)), len(shapes), suite)

    def test_rounded_is_cliff_in_multiples_of_64(self):
        def read(suite):
            path = os.path.join(PROGRAMS["source"], "bench", "suites", suite + ".txt")
            with open(path, encoding="utf-8") as file:
                return [line.split() for line in file if not line.startswith("#")]
        for (shape, *_), (rounded, *reason) in zip(read("cliff"), read("rounded"), strict=True):
            sizes, colon, layout = shape.partition(":")
            expected = "x".join(str(-(-int(size) // 64) * 64) for size in sizes.split("x"))
            self.assertEqual(rounded, expected + colon + layout)
            self.assertEqual(reason, ["#", "beside", shape])

    def test_options_of_a_suite(self):
        """The options of a suite count unless the command has its own."""
        with open("suite.txt", "w", encoding="utf-8") as file:
            file.write("--kernel ladder # all of it\n--max-time 7 # seconds\n8x8x8 # small\n")
        words = ("--suite", "./suite.txt", "--threads", "1", "--peer", "none")
        run = self.load(*words)
        self.assertEqual(run["head"]["max_time_s"], 7)
        self.assertIn("cpu_sequential_generic_fp32", {r["name"] for r in run["records"]})
        run = self.load(*words, "--kernel", "best", "--max-time", "2")
        self.assertEqual(run["head"]["max_time_s"], 2)
        self.assertEqual(len(run["records"]), 1)
        for line in ("--kernel fastest", "--max-time soon", "--peer none"):
            with open("suite.txt", "w", encoding="utf-8") as file:
                file.write(line + "\n8x8x8\n")
            self.refuse(2, "suite.txt:1: ", "--suite", "./suite.txt")

    def test_suites_are_found_by_name(self):
        """The unknown peer is named after the suite was read, so that nothing long is run."""
        for suite in SUITES:
            done = self.call("--suite", suite, "--peer", "nothing")
            self.assertEqual(done.returncode, 3)
            self.assertRegex(done.stderr, "'nothing' is not a peer")


if __name__ == "__main__":
    run_tests()
