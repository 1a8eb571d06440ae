#!/usr/bin/env python3
"""Tests the command simulate, its JSON, and the device sim of the other commands.

usage: test_simulate.py TILEGEMM
"""
import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import unittest

TILEGEMM = "tilegemm"
RUN_KEYS = set("kernel family ladder_rung m n k is_exact simulated_block_count load_efficiency "
               "store_efficiency shared_bytes compulsory_bytes l2_bytes l2_requests l2_hits lines "
               "findings".split())
LINE_KEYS = set("file line source global_load_requests global_load_sectors global_read_bytes "
                "global_store_requests global_store_sectors global_write_bytes "
                "shared_load_requests shared_store_requests bank_conflicts barriers flops "
                "l2_hits".split())
SUMMED = LINE_KEYS - {"file", "line", "source", "flops"}


def call(*words):
    return subprocess.run([TILEGEMM, *words], capture_output=True, text=True, timeout=120,
                          env={**os.environ, "LC_ALL": "C"})


def write_npy(path, row_count, col_count):
    """Writes a row-major matrix of FP32, as numpy.save does."""
    head = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({row_count}, {col_count}), }}"
    head = head.ljust(117) + "\n"
    values = [(i % 13) / 7 - 1 for i in range(row_count * col_count)]
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode()
                     + struct.pack(f"<{len(values)}f", *values))


class Refusing(unittest.TestCase):
    def refuse(self, code, text, *words):
        done = call(*words)
        self.assertEqual((done.returncode, done.stdout), (code, ""), words)
        self.assertRegex(done.stderr, text)


class Simulate(Refusing):
    maxDiff = None

    def read(self, command, *words):
        done = call(command, *words, "--json")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return json.loads(done.stdout)

    def test_same_keys_and_counts_as_the_model(self):
        words = ("55x43x48", "--kernel", "edges", "--tile", "16")
        simulated, predicted = self.read("simulate", *words), self.read("explain", *words)
        self.assertEqual((simulated["global_read_bytes"], simulated["global_write_bytes"]),
                         (64704, 9460))
        self.assertEqual(RUN_KEYS - set(simulated), set())
        shared = set(simulated) & set(predicted) - {"is_in_table"}
        self.assertTrue({"grid_x", "block_count", "global_load_sectors", "global_store_sectors",
                         "bank_conflicts", "barriers", "issued_flops", "counter_shared_turns",
                         "counter_bank_conflicts", "flop_per_byte"} <= shared)
        for key in shared:
            self.assertEqual(simulated[key], predicted[key], key)

    def test_lines_sum_to_the_whole(self):
        found = self.read("simulate", "70x50x40", "--kernel", "transposed")
        self.assertEqual(found["findings"], [])
        for line in found["lines"]:
            self.assertEqual(set(line), LINE_KEYS)
            self.assertEqual(line["file"], "l5_transposed.cu")
            self.assertTrue(line["line"] > 0 and line["source"])
        for key in SUMMED:
            self.assertEqual(sum(line[key] for line in found["lines"]), found[key], key)
        self.assertEqual(sum(line["flops"] for line in found["lines"]), found["issued_flops"])
        self.assertGreater(found["bank_conflicts"], 0)
        self.assertEqual(found["compulsory_bytes"], 4 * (70 * 40 + 40 * 50 + 70 * 50))
        self.assertTrue(0 < found["l2_hits"] < found["l2_requests"])

    def test_all_rungs(self):
        found = self.read("simulate", "33x35x37", "--kernel", "all")
        self.assertEqual({run["ladder_rung"] for run in found}, set(range(1, 13)) - {3})
        text = call("simulate", "33x35x37", "--kernel", "all").stdout
        self.assertIn("this rung checks no bounds: tile 8 must divide 33 x 35 x 37", text)
        for run in found:
            self.assertIn(run["kernel"], text)

    def test_sample_has_the_counts_of_the_whole(self):
        for shape, kernel in (("1000x1200x800", "edges"), ("512x512x512", "register_tile"),
                              ("300x200x1001", "cuda_warp_mma_sm80_bf16_128x128x32")):
            model = json.loads(call("explain", shape, "--kernel", kernel, "--gpu", "h100",
                                    "--json").stdout)
            model = model.get("kernels", [model])[0]
            found = self.read("simulate", shape, "--kernel", model["kernel"], "--sample")
            self.assertFalse(found["is_exact"])
            for key in SUMMED - {"l2_hits"} | {"issued_flops"}:
                self.assertEqual(found[key], model[key], (shape, kernel, key))
        self.assertTrue(self.read("simulate", "32x32x32", "-k", "edges", "--sample")["is_exact"])
        self.refuse(2, "--sample", "simulate", "32x32x32", "-k", "edges", "--sample", "--lines")

    def test_counts_beside_chips(self):
        words = ("simulate", "64x64x64", "--kernel", "all", "--gpu", "t4", "--gpu", "h100")
        text = call(*words).stdout
        lines = text.splitlines()
        self.assertIn("counted by the simulator, times predicted", lines[0])
        self.assertTrue(all(len(line) <= 100 for line in lines))
        counted = text.replace("counted by the simulator", "counted by the model")
        told = call("explain", *words[1:]).stdout.splitlines()
        for line in counted.splitlines()[4:-1]:
            self.assertIn(line.replace("*", " "), [row.replace("*", " ") for row in told])
        found = self.read(*words)
        explained = json.loads(call("explain", *words[1:], "--json").stdout)["gpus"]
        for run in found:
            for chip, name in zip(explained, ("t4", "h100")):
                row = next(row for row in chip["kernels"] if row["kernel"] == run["kernel"])
                self.assertEqual(run["predicted_s"][name], row["predicted_s"])
        # A tile without a row is predicted by its family.
        lone = self.read("simulate", "64x64x64", "-k", "edges", "--tile", "12", *words[4:])
        self.assertGreater(lone["predicted_s"]["t4"], 0)

    def test_samples(self):
        words = ("1000x1000x300", "--kernel", "cuda_edges_sm75_fp32_32x32x32")
        found = self.read("simulate", *words)
        self.assertFalse(found["is_exact"])
        self.assertLessEqual(found["simulated_block_count"], 9)
        self.assertIsNone(found["l2_hits"])
        predicted = self.read("explain", *words)
        for key in ("global_read_bytes", "global_write_bytes", "issued_flops", "barriers"):
            self.assertEqual(found[key], predicted[key], key)
        self.assertIn("counts are scaled up", call("simulate", *words).stdout)

    def test_text(self):
        text = call("simulate", "64x64x64", "--kernel", "transposed", "--lines").stdout
        self.assertIn("no race, no access out of bounds", text)
        self.assertIn("by a GPU's counters", text)
        self.assertIn("l5_transposed.cu", text)

    def test_trace_of_the_worked_example(self):
        text = call("simulate", "4x4x4", "--kernel", "tiled", "--tile", "2", "--trace").stdout
        first = text[:text.index("block (0, 1)")]
        sums = [line.rsplit(None, 1)[1] for line in first.splitlines() if "partial sums" in line]
        self.assertEqual(sums, "104 105 920 929 656 662 2352 2374".split())
        self.assertIn("thread (0, 1): reads A(0, 1), writes shared[1], reads B(0, 1), writes "
                      "shared[5]", first)

    def test_a_barrier_taken_out(self):
        """Without either barrier of the tiled kernel threads race for the tile, and sums are
        wrong."""
        words = ("simulate", "4x4x4", "--kernel", "tiled", "--tile", "2")
        for barrier, first in ((1, "never_written"), (2, "race")):
            done = call(*words, "--without-barrier", str(barrier), "--json")
            found = json.loads(done.stdout)["findings"]
            self.assertEqual(found[0]["kind"], first)
            self.assertIn("race", {one["kind"] for one in found})
        self.assertEqual(json.loads(call(*words, "--json").stdout)["findings"], [])
        self.refuse(2, "without_barrier = 3", *words, "--without-barrier", "3")
        self.refuse(2, "outside 1 to 16", *words, "--without-barrier", "17")

    def test_refusals(self):
        self.refuse(2, "name a kernel", "simulate", "8x8x8")
        self.refuse(2, "pass MxNxK alone", "simulate", "8x8x8:nt", "-k", "edges")
        self.refuse(2, "each from 1 to", "simulate", "8x0x8", "-k", "edges")
        self.refuse(3, "none of the kernels that the simulator runs", "simulate", "8x8x8",
                    "-k", "nothing")
        self.refuse(2, "tile = 128", "simulate", "8x8x8", "-k", "edges", "--tile", "128")
        self.refuse(2, "too large for --trace", "simulate", "999x999x8", "-k", "edges", "--trace")
        self.refuse(2, "1048576 multiply-adds", "simulate", "1x1x9999999", "-k", "edges", "--trace")
        self.refuse(2, "tile 16 must divide", "simulate", "17x16x16", "-k", "tiled", "--tile", "16")


class DeviceSim(Refusing):
    def test_multiply(self):
        with tempfile.TemporaryDirectory(prefix="tilegemm-test-") as folder:
            home = pathlib.Path(folder)
            write_npy(home / "a.npy", 35, 19)
            write_npy(home / "b.npy", 19, 35)
            words = ("multiply", str(home / "a.npy"), str(home / "b.npy"), "-o",
                     str(home / "d.npy"), "--device", "sim")
            done = call(*words, "--check")
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertIn("check: right", done.stdout)
            self.assertRegex(done.stdout, "sim, cuda_\\w+_sm75_fp32_")
            done = call(*words, "--transpose-a", "--transpose-b")
            self.assertEqual(done.returncode, 2)
            self.assertIn("the ladder's kernels take row-major matrices", done.stderr)

    def test_products_without_a_sum(self):
        """A product with k = 0 has no sum; the command writes what came out."""
        with tempfile.TemporaryDirectory(prefix="tilegemm-test-") as folder:
            home = pathlib.Path(folder)
            write_npy(home / "a.npy", 3, 0)
            write_npy(home / "b.npy", 0, 5)
            done = call("multiply", str(home / "a.npy"), str(home / "b.npy"), "-o",
                        str(home / "d.npy"), "--device", "sim", "--check")
            self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_bench_counts(self):
        """Bench shows counts instead of times, under the model's keys, and says that they are
        simulated."""
        words = ("bench", "--device", "sim", "--kernel", "ladder", "--shape", "96x64x32", "--shape",
                 "33x35x37")
        run = json.loads(call(*words, "--json", "-").stdout)
        self.assertEqual(run["head"]["mode"], "simulated")
        self.assertEqual(len(run["records"]), 11 + 10)  # tiled has no tile that divides 33
        for record in run["records"]:
            self.assertEqual((record["is_simulated"], record["median_s"], record["is_right"]),
                             (True, None, True))
            model = json.loads(call("explain", record["shape"], "--kernel", record["name"], "--gpu",
                                    "h200", "--json").stdout)
            for key in ("block_count", "global_read_bytes", "global_load_sectors",
                        "global_store_sectors", "bank_conflicts", "barriers", "issued_flops"):
                self.assertEqual(record[key], model[key], key)
        skipped = run["summaries"][1]["skipped"]
        self.assertEqual(len(skipped), 1)
        self.assertIn("checks no bounds", skipped[0]["reason"])
        text = call(*words).stdout
        self.assertIn("nothing is timed", text)
        for record in run["records"]:
            self.assertIn(record["name"], text)

    def test_bench_samples_what_is_large(self):
        words = ("bench", "--device", "sim", "--shape", "2048x2048x128")
        self.assertRegex(call(*words).stdout, r"sampled: 9 of \d+ blocks  planned")
        record = json.loads(call(*words, "--json", "-").stdout)["records"][0]
        self.assertEqual((record["is_exact"], record["is_right"]), (False, None))

    def test_bench_refusals(self):
        self.refuse(2, "cannot be simulated", "bench", "--device", "sim", "--shape", "8x8x8",
                    "--peer", "openblas")
        for shape, text in (("8x8x8:nt", "row-major"), ("8x8x8:fp64", "multiplies fp32"),
                            ("8x8x0", "no kernel was measured")):
            done = call("bench", "--device", "sim", "--shape", shape)
            self.assertEqual(done.returncode, 1)
            self.assertIn(text, done.stderr)
        done = call("bench", "--device", "sim", "--shape", "0x8x8")
        self.assertIn("no product is formed", done.stdout)

    def test_profile_without_counters(self):
        words = ("profile", "250x130x70", "--kernel", "edges,simt", "--device", "sim", "--gpu",
                 "h200")
        found = json.loads(call(*words, "--json").stdout)
        self.assertIsNone(found["command"])
        edges, simt = found["kernels"]
        sectors = edges["compared"]["global_load_sectors"]
        self.assertEqual((sectors["model"], sectors["counted"]), (sectors["simulated"], None))
        self.assertGreater(simt["compared"]["time_s"]["model"], 0)
        text = call(*words).stdout
        self.assertIn("nothing is counted on a GPU", text)
        lines = [line.split() for line in text.splitlines()]
        self.assertIn(["counter_bank_conflicts", "0", "0", "-"], lines)
        self.assertIn("neither counted by the model nor simulated", simt["note"])
        tiled = call("profile", "55x43x48", "-k", "tiled", "--device", "sim").stdout
        self.assertIn("tile 8 must divide 55 x 43 x 48", tiled)
        self.refuse(2, "leave --launch out", *words, "--launch")
        self.refuse(2, "no product is formed", "profile", "0x8x8", "--kernel", "edges")

    def test_attention(self):
        """The rungs of attention: counts are the model's, and a missing barrier is found."""
        text = "1,2,1,40,70,64:causal"
        found = json.loads(call("simulate", text, "--kernel", "all", "--json").stdout)
        self.assertEqual([one["family"] for one in found],
                         ["attention_naive", "attention_tiled", "attention_mma"])
        told = json.loads(call("explain", text, "--kernel", "all", "--json", "--gpu",
                               "h200").stdout)["kernels"]
        for one, other in zip(found, told):
            self.assertEqual(one["findings"], [])
            self.assertEqual(one["attention"], text)
            self.assertEqual(one["predicted_s"], {"h200": other["predicted_s"]})
            for key in ("global_load_sectors", "barriers", "issued_flops", "useful_flops"):
                self.assertEqual(one[key], other[key], (one["family"], key))
        raced = call("simulate", text, "--kernel", "attention_tiled", "--without-barrier", "2")
        self.assertEqual(raced.returncode, 1)
        self.assertIn("data race", raced.stdout)
        self.refuse(2, "are for products", "simulate", text, "--kernel", "all", "--sample")
        self.refuse(2, "bf16 or fp16", "simulate", text, "--kernel", "attention_mma")

    def test_kernels(self):
        rows = json.loads(call("kernels", "--device", "sim", "--json").stdout)
        available = [row for row in rows if row["is_available"]]
        self.assertTrue(available)
        self.assertEqual({row["device"] for row in available}, {"cuda", "sim"})
        self.assertEqual([row["ladder_rung"] for row in available
                          if row["family"].startswith("attention")], [1, 2, 2, 3, 3, 3, 3])

    def test_candidates(self):
        found = json.loads(call("explain", "100x90x80", "--device", "sim", "--json").stdout)
        chosen = next(row for row in found["candidates"] if row["is_chosen"])
        self.assertEqual(chosen["kernel"], found["chosen_kernel"])
        model = json.loads(call("explain", "100x90x80", "--kernel", chosen["kernel"], "--gpu",
                                "h200", "--json").stdout)
        for key in ("block_count", "threads_per_block", "global_read_bytes", "global_write_bytes",
                    "issued_flops", "occupancy", "predicted_s"):
            self.assertEqual(chosen[key], model[key], key)
        for row in found["candidates"]:
            self.assertEqual(row["is_chosen"], not row["reason"])
            self.assertEqual(row["is_legal"], row["block_count"] > 0)
        # If no kernel can run the problem, each says why.
        found = json.loads(call("explain", "8x8x8:nt", "--device", "sim", "--json").stdout)
        self.assertEqual((found["chosen_kernel"], len(found["candidates"]) > 17), ("", True))
        self.assertTrue(all(row["reason"] for row in found["candidates"]))


if __name__ == "__main__":
    TILEGEMM = os.path.abspath(sys.argv[1])
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])
