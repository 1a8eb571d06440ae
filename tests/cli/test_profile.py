#!/usr/bin/env python3
"""Tests the command profile, with a program instead of Nsight Compute that prints recorded
CSV.

usage: test_profile.py TILEGEMM SOURCE_FOLDER
"""
import csv
import io
import json
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile
import unittest

TILEGEMM, SOURCE = "tilegemm", pathlib.Path(".")
EDGES, TRANSPOSED = "cuda_edges_sm75_fp32_8x8x8", "cuda_transposed_sm75_fp32_32x32x32"
SIMT = "cuda_simt_sm80_fp32_64x128x16"


class Profile(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="tilegemm-test-")
        self.home = pathlib.Path(self.folder.name)
        self.load("250x130x70")

    def load(self, name):
        text = (SOURCE / f"bench/results/h200/counters_{name}.csv").read_text()
        self.header, self.units, *self.rows = csv.reader(io.StringIO(text))

    def tearDown(self):
        self.folder.cleanup()

    def play(self, rows, code=0, before="==PROF== Connected to process 7 (tilegemm)"):
        """Makes a profiler that prints these rows and keeps the words that it was called with."""
        out = io.StringIO()
        writer = csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator="\n")
        writer.writerows([self.header, self.units, *rows] if rows else [])
        (self.home / "out").write_text(f"{before}\n{out.getvalue()}")
        profiler = self.home / "ncu"
        profiler.write_text(f"#!/bin/sh\nprintf '%s\\n' \"$@\" > '{self.home}/words'\n"
                            f"cat '{self.home}/out'\nexit {code}\n")
        profiler.chmod(0o755)

    def call(self, *words):
        return subprocess.run([TILEGEMM, "profile", *words], capture_output=True, text=True,
                              timeout=120,
                              env={**os.environ, "TILEGEMM_NCU": str(self.home / "ncu")})

    def read(self, *words):
        done = self.call(*words, "--gpu", "h200", "--json")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return json.loads(done.stdout)

    def find(self, kernel):
        return next(row for row in self.rows if row[self.header.index("Kernel Name")] == kernel)

    def change(self, row, **values):
        changed = list(row)
        for name, value in values.items():
            place = [i for i, title in enumerate(self.header) if title.startswith(name)]
            self.assertEqual(len(place), 1, name)
            changed[place[0]] = value
        return changed

    def test_counted_predicted_simulated(self):
        self.play([self.find(EDGES), self.find(TRANSPOSED)])
        found = self.read("250x130x70", "--kernel", "edges,transposed")
        self.assertEqual([kernel["kernel"] for kernel in found["kernels"]], [EDGES, TRANSPOSED])
        edges, transposed = found["kernels"]
        self.assertEqual(edges["compared"]["global_load_sectors"],
                         {"model": 130511, "simulated": 130511, "counted": 130511})
        # The hardware's counter tells 160 conflicts, all of them turns that it added.
        self.assertEqual(edges["compared"]["counter_bank_conflicts"],
                         {"model": 0, "simulated": 0, "counted": 0})
        self.assertEqual(edges["counted"]["added_turns"], 160)
        self.assertEqual(transposed["compared"]["counter_bank_conflicts"],
                         {"model": 979200, "simulated": 979200, "counted": 979200})
        self.assertEqual(transposed["compared"]["issued_flops"]["counted"], 2 * 3932160)
        self.assertIsNone(edges["compared"]["time_s"]["simulated"])
        for kernel in found["kernels"]:
            self.assertGreater(kernel["compared"]["time_s"]["model"], 0)
            for key in ("compute_throughput_percent", "memory_throughput_percent",
                        "l1_throughput_percent", "l2_throughput_percent",
                        "dram_throughput_percent", "l1_hit_percent", "l2_hit_percent",
                        "memory_bytes_per_s", "occupancy_percent", "time_ns"):
                self.assertGreaterEqual(kernel["counted"][key], 0, key)

    def test_text(self):
        self.play([self.find(EDGES), self.find(TRANSPOSED)])
        done = self.call("250x130x70", "--kernel", f"transposed,{EDGES}", "--gpu", "h200")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        lines = [line.split() for line in done.stdout.splitlines()]
        self.assertIn(["counter_bank_conflicts", "979,200", "979,200", "979,200"], lines)
        self.assertIn(["l1_hit_percent", *(
            f"{float(self.find(kernel)[self.header.index('l1tex__t_sector_hit_rate.pct')]):.1f}"
            for kernel in (TRANSPOSED, EDGES))], lines)
        self.assertIn("160 turns more than the instructions need", done.stdout)

    def test_command_line(self):
        self.play([self.find(EDGES)])
        found = self.read("250x130x70", "--kernel", EDGES, "--device", "cuda:1")
        words = (self.home / "words").read_text().splitlines()
        self.assertEqual(shlex.split(found["command"])[1:], words)
        self.assertEqual(words[words.index("--clock-control") + 1], "none")
        program = words.index(os.path.realpath(TILEGEMM))
        self.assertEqual(words[program + 1:], ["profile", "250x130x70", "--kernel", EDGES,
                                               "--device", "cuda:1", "--launch"])
        metrics = words[words.index("--metrics") + 1].split(",")
        self.assertLessEqual(set(metrics), set(self.header))

    def test_launches_of_one_call_go_together(self):
        main = self.change(self.find(EDGES), **{"Kernel Name": SIMT + "_vv", "gpu__time": "3,000",
                                                "l1tex__t_sector_hit": "10"})
        finish = self.change(main, **{"Kernel Name": "cuda_simt_finish", "gpu__time": "1,000",
                                      "l1tex__t_sector_hit": "50"})
        self.play([main, finish, self.find(EDGES)])
        found = self.read("64x64x512", "--kernel", f"{SIMT},edges")
        simt = found["kernels"][0]
        self.assertEqual((simt["launch_count"], simt["counted"]["time_ns"]), (2, 4000))
        self.assertEqual(simt["counted"]["l1_hit_percent"], 20)
        self.assertEqual(simt["counted"]["global_load_sectors"], 2 * 130511)
        self.assertIsNone(simt["compared"]["global_load_sectors"]["model"])
        self.assertEqual(found["kernels"][1]["launch_count"], 1)

    def test_attention(self):
        """Rungs of attention have the types that they take, whatever the text says."""
        text, names = "1,4,2,128,128,64", "attention_naive,attention_tiled,attention_mma"
        self.load("attention")
        self.play([row for row in self.rows if row[0] == text])
        found = self.read(text, "--kernel", names)
        self.assertEqual((found["attention"], found["m"], found["n"], found["k"]),
                         (text, 128, 128, 64))
        self.assertEqual([kernel["kernel"] for kernel in found["kernels"]],
                         ["attention_naive_sm75_fp32_32x256", "attention_tiled_sm75_fp32_32x64",
                          "attention_mma_sm80_bf16_64x64"])
        for kernel in found["kernels"]:
            self.assertIsNone(kernel["compared"]["issued_flops"]["counted"])
            for key in ("global_load_requests", "global_load_sectors", "global_store_requests",
                        "global_store_sectors", "counter_shared_loads", "counter_shared_turns",
                        "counter_bank_conflicts"):
                counts = kernel["compared"][key]
                self.assertEqual((counts["model"], counts["simulated"]),
                                 (counts["counted"],) * 2, (kernel["kernel"], key))
        words = (self.home / "words").read_text().splitlines()
        self.assertEqual(words[words.index(os.path.realpath(TILEGEMM)) + 1:],
                         ["profile", text, "--kernel",
                          ",".join(kernel["kernel"] for kernel in found["kernels"]), "--device",
                          "cuda", "--launch"])

    def test_attention_types(self):
        """A family takes the text's type if it has it, a row its own type."""
        text, words = "1,1,1,40,70,64", ("--device", "sim", "-k")
        for suffix, name, row in (("", "attention_mma_sm80_fp16_64x64", "mma_sm80_fp16_64x64"),
                                  (":fp16", "attention_mma", "mma_sm80_fp16_64x64"),
                                  (":fp64", "attention_mma", "mma_sm80_bf16_64x64"),
                                  (":fp64", "attention_naive", "naive_sm75_fp32_32x256"),
                                  (":bf16", "attention_tiled", "tiled_sm75_fp32_32x64")):
            kernel = self.read(text + suffix, *words, name)["kernels"][0]
            self.assertEqual((kernel["kernel"], kernel["note"]), (f"attention_{row}", ""))

    def test_attention_above_the_limit(self):
        """Its tensors would not fit into memory: they are not made."""
        kernel = self.read("1,1,1,16777000,16777000,64", "--device", "sim", "-k",
                           "attention_tiled")["kernels"][0]
        self.assertIn("not simulated: above 2^25", kernel["note"])
        self.assertIsNone(kernel["compared"]["counter_shared_loads"]["simulated"])

    def test_attention_refusals(self):
        self.refuse(3, 'kernel = "edges" is no rung of attention; pass attention_naive',
                    "1,1,1,8,8,64", "-k", "edges")
        self.refuse(2, "head_size = 264.* takes multiples of 8", "1,1,1,8,8,264", "-k",
                    "attention_naive")
        self.refuse(2, "is no part of an attention", "1,1", "-k", "attention_naive")

    def test_missing_metric_is_null(self):
        place = self.header.index("l1tex__t_sector_hit_rate.pct")
        self.header[place] = "another"
        self.play([self.find(EDGES)])
        found = self.read("250x130x70", "--kernel", "edges")
        self.assertIsNone(found["kernels"][0]["counted"]["l1_hit_percent"])
        place = self.header.index("l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum")
        self.header[place] = "one more"
        self.play([self.find(EDGES)])
        found = self.read("250x130x70", "--kernel", "edges")
        self.assertEqual(found["kernels"][0]["compared"]["counter_bank_conflicts"],
                         {"model": 0, "simulated": 0, "counted": None})
        self.header[self.header.index("smsp__sass_inst_executed_op_ldsm.sum")] = "a third"
        self.play([self.find(EDGES)])
        found = self.read("250x130x70", "--kernel", "edges")
        self.assertIsNone(found["kernels"][0]["compared"]["counter_shared_loads"]["counted"])

    def refuse(self, code, text, *words):
        done = self.call(*words)
        self.assertEqual((done.returncode, done.stdout), (code, ""), words)
        self.assertRegex(done.stderr, text)

    def test_missing_profiler(self):
        self.refuse(3, r"(?s)ncu does not start \(No such file.*install NVIDIA Nsight Compute, or "
                       r"set TILEGEMM_NCU.*the command is: \S*/ncu --csv .*--launch\n$",
                    "250x130x70", "--kernel", "edges", "--gpu", "h200")

    def test_failing_profiler(self):
        words = ("250x130x70", "--kernel", "edges,transposed", "--gpu", "h200")
        self.play([], 1, "==ERROR== ERR_NVGPUCTRPERM - no permission")
        self.refuse(1, "0 of 2 kernels were counted: ERR_NVGPUCTRPERM - no permission", *words)
        self.play([self.find(EDGES)])
        self.refuse(1, "1 of 2 kernels were counted; the command was", *words)
        self.play([self.find(EDGES), self.find(TRANSPOSED)], 1)
        self.refuse(1, "2 of 2 kernels were counted; the command was", *words)

    def test_refusals(self):
        self.refuse(3, "--kernel = 'wrong' is not a kernel or family", "8x8x8", "-k", "edges,wrong")
        self.refuse(3, "--kernel = 'packed' is not a kernel or family", "8x8x8", "-k", "packed")
        self.refuse(2, "--device = 'cpu' has no counters", "8x8x8", "-k", "edges", "--device",
                    "cpu")
        self.refuse(2, "name kernels", "8x8x8")
        self.refuse(2, "name a shape", "-k", "edges")
        self.refuse(2, "8x8", "8x8", "-k", "edges")


if __name__ == "__main__":
    TILEGEMM, SOURCE = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2])
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
