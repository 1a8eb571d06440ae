#!/usr/bin/env python3
"""Tests bench --attention: its records, what it refuses, and a wrong kernel.

usage: test_bench_attention.py TILEGEMM WRONG_TILEGEMM FAKE_OPENBLAS SOURCE_FOLDER
"""
import statistics

from bench_case import PROGRAMS, BenchCase, run_tests


class Attention(BenchCase):
    def test_records(self):
        for text, pair_count in (("2,4,2,30,50,16", 1500), ("1,2,2,30,50,16:causal", 1065),
                                 ("1,2,1,30,50,16:causal=top_left:dv=24", 465),
                                 ("1,2,2,30,50,16:fp64:before=3:after=0", 114),
                                 ("1,4,2,7,9,8:bf16:bias:slopes:lse:qr=-40:qh=8", 63),
                                 ("1,1,1,0,5,8", 0), ("3,1,1,5,0,8:fp16", 0)):
            run = self.load("--attention", text)
            record, = run["records"]
            self.assertEqual((record["kind"], record["is_right"]), ("kernel", True), text)
            self.assertRegex(record["name"], "^cpu_attention_")
            self.assertLessEqual(record["max_bound_share"], 1)
            flops = 2 * record["batch_count"] * record["head_count"] * pair_count * (
                record["head_size"] + record["v_head_size"])
            self.assertAlmostEqual(record["gflop_per_s"] * record["median_s"] * 1e9, flops,
                                   delta=1e-6 * flops)
            self.assertEqual(record["median_s"], statistics.median(record["samples_s"]))
            summary, = run["summaries"]
            self.assertEqual(summary["best_kernel"], record["name"])
            self.assertEqual(summary["planned_kernel"], record["name"])
            self.assertIsNone(summary["best_peer"])
            self.assertEqual(run["head"]["peers"], [])

    def test_replay_of_a_log(self):
        text = "1,4,2,7,9,8:bf16:causal:scale=0.3:cap=2:bias:qh=8:qr=-40"
        self.assertEqual(self.call("--attention", text, TILEGEMM_LOG="calls.log").returncode, 0)
        with open("calls.log", encoding="utf-8") as file:
            texts = {line.split("attention=")[1].split()[0] for line in file}
        records = self.load("--attention", *texts)["records"]
        self.assertEqual([record["shape"] for record in records], list(texts))

    def test_beside_products(self):
        done = self.call("--attention", "1,2,2,9,9,8", "--shape", "8x8x8", "--threads", "1,2",
                         "--peer", "none")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(done.stdout.count("\n1,2,2,9,9,8  fp32"), 2)
        self.assertEqual(done.stdout.count("\n8x8x8  fp32"), 2)

    def test_wrong_kernel(self):
        done = self.call("--attention", "1,2,2,9,9,8", program=PROGRAMS["wrong"])
        self.assertEqual(done.returncode, 1)
        self.assertIn("WRONG", done.stdout)

    def test_refusals(self):
        text = "1,2,2,9,9,8"
        for words, message in (
                (["--attention", "1,2"], '"1,2" is no part of an attention'),
                (["--attention", "1,3,2,9,9,8"], "does not divide head_count = 3"),
                (["--attention", text + ":lengths"], "a list is not for --attention"),
                (["--attention", text, "--type", "fp64"], "--type is not for --attention"),
                (["--attention", text, "--precision", "tf32"], "--precision is not for"),
                (["--attention", text, "--batch-invariant"], "--batch-invariant is not for"),
                (["--attention", text, "--kernel", "all"], "--kernel is not for"),
                (["--attention", text, "--cold"], "--cold is not for"),
                (["--attention", text, "--graph"], "--graph is not for")):
            self.refuse(2, message, *words)
        done = self.call("--attention", "1,1,1,8,8,8:kr=1000000000000", "--peer", "none")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stdout, "operands of 28000.0 GB do not fit")
        done = self.call("--attention", text, "--device", "sim")
        self.assertEqual(done.returncode, 2)
        self.assertRegex(done.stderr, "device sim has no attention; pass a context of device cpu")


if __name__ == "__main__":
    run_tests()
