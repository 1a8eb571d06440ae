#!/usr/bin/env python3
"""Tests bench --attention: its records, what it refuses, and a wrong kernel.

usage: test_bench_attention.py TILEGEMM WRONG_TILEGEMM FAKE_OPENBLAS SOURCE_FOLDER
"""
import os
import statistics

from bench_case import PROGRAMS, BenchCase, run_tests

# The leak sanitizer trips over the thread-local memory of libraries opened at run time.
REAL_PEERS = {"ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"}

with open("/proc/cpuinfo", encoding="utf-8") as cpuinfo:
    HAS_AVX512 = "avx512dq" in cpuinfo.read()


class Attention(BenchCase):
    def test_records(self):
        for text, pair_count in (("2,4,2,30,50,16", 1500), ("1,2,2,30,50,16:causal", 1065),
                                 ("1,2,1,30,50,16:causal=top_left:dv=24", 465),
                                 ("1,2,2,30,50,16:fp64:before=3:after=0", 114),
                                 ("1,4,2,7,9,8:bf16:bias:slopes:lse:qr=-40:qh=8", 63),
                                 ("1,1,1,0,5,8", 0), ("3,1,1,5,0,8:fp16", 0)):
            run = self.load("--attention", text, "--peer", "none")
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
        self.assertEqual(self.call("--attention", text, "--peer", "none",
                                   TILEGEMM_LOG="calls.log").returncode, 0)
        with open("calls.log", encoding="utf-8") as file:
            texts = {line.split("attention=")[1].split()[0] for line in file}
        records = self.load("--attention", *texts, "--peer", "none")["records"]
        self.assertEqual([record["shape"] for record in records], list(texts))

    def test_beside_products(self):
        done = self.call("--attention", "1,2,2,9,9,8", "--shape", "8x8x8", "--threads", "1,2",
                         "--peer", "none")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(done.stdout.count("\n1,2,2,9,9,8  fp32"), 2)
        self.assertEqual(done.stdout.count("\n8x8x8  fp32"), 2)

    def test_batch_invariant(self):
        record, = self.load("--attention", "3,2,2,9,9,8", "--batch-invariant", "--peer",
                            "none")["records"]
        self.assertEqual((record["shape"], record["is_right"]),
                         ("3,2,2,9,9,8:batch_invariant", True))

    def test_wrong_kernel(self):
        done = self.call("--attention", "1,2,2,9,9,8", "--peer", "none",
                         program=PROGRAMS["wrong"])
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
                (["--attention", text, "--kernel", "all"], "--kernel is not for"),
                (["--attention", text, "--cold"], "--cold is not for"),
                (["--attention", text, "--peer", "cudnn"], "'cudnn' runs on a GPU")):
            self.refuse(2, message, *words)
        for words, message in ((["--graph"], "--graph needs a GPU"),
                               (["--peer", "torch"], "'torch' is not a peer")):
            self.refuse(3, message, "--attention", text, *words)
        done = self.call("--attention", "1,1,1,8,8,8:kr=1000000000000", "--peer", "none")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stdout, "operands of 28000.0 GB do not fit")
        done = self.call("--attention", text, "--device", "sim")
        self.assertEqual(done.returncode, 2)
        self.assertRegex(done.stderr, "device sim has no attention; pass a context of device cpu")

    def test_other_peers(self):
        """A peer of products alone is named with its reason, and left out if none is named."""
        run = self.load("--attention", "1,2,2,9,9,8", "--peer", "openblas", **self.fake)
        summary, = run["summaries"]
        self.assertEqual(summary["skipped"], [{"name": "openblas", "kind": "peer",
                                               "reason": "it computes products alone"}])
        run = self.load("--attention", "1,2,2,9,9,8", **self.fake, **REAL_PEERS)
        self.assertEqual([peer["name"] for peer in run["head"]["peers"]], ["onednn"])


class OneDnn(BenchCase):
    """oneDNN computes attention by a product, a softmax and a product."""

    def measure(self, *texts):
        words = [word for text in texts for word in ("--attention", text)]
        run = self.load(*words, "--threads", "1", **REAL_PEERS)
        peer, = run["head"]["peers"]
        if not peer["is_open"]:
            self.skipTest(peer["reason"])
        self.assertEqual(peer["name"], "onednn")
        return run

    def test_records(self):
        texts = ["1,4,4,30,50,16", "2,4,2,30,50,16:causal", "1,2,1,30,50,16:causal=top_left:dv=24",
                 "3,2,2,50,30,8:causal=top_left", "2,6,2,1,300,64:causal", "1,1,1,1,1,1",
                 "2,3,3,7,9,8:scale=0.5:qb=3000:qh=1000:vb=2160:vh=720:vr=80"]
        if HAS_AVX512:
            texts += ["2,4,2,30,50,16:bf16:causal", "1,2,2,33,65,40:bf16:dv=24"]
        run = self.measure(*texts)
        records = [record for record in run["records"] if record["kind"] == "peer"]
        self.assertEqual(len(records), len(texts))
        for record, summary in zip(records, run["summaries"]):
            self.assertEqual((record["name"], record["is_right"]), ("onednn", True), record)
            self.assertLessEqual(record["max_bound_share"], 1)
            self.assertEqual(summary["best_peer"], "onednn")
            mine = next(mine for mine in run["records"] if mine["kind"] == "kernel"
                        and mine["shape"] == record["shape"])
            self.assertAlmostEqual(summary["ratio_to_best_peer"],
                                   record["median_s"] / mine["median_s"], places=6)

    def test_refusals(self):
        cases = (("1,2,2,9,9,8:fp16", "fp32 and bf16 only"), ("1,2,2,9,9,8:fp64", "fp32 and bf16"),
                 ("1,2,2,9,9,8:bias", "without bias"), ("1,2,2,9,9,8:slopes", "slopes"),
                 ("1,2,2,9,9,8:cap=2", "soft cap"), ("1,2,2,9,9,8:before=2", "window"),
                 ("1,2,2,9,9,8:lse", "log_sum_exp"), ("1,2,2,9,5,8:causal", "without keys is NaN"),
                 ("2,2,2,9,9,8:qh=1000", "even distances"), ("1,1,1,0,5,8", "a size of 0"),
                 ("1,4,2,9,9,8:qh=1000", "without gaps"), ("1,2,2,9,9,8:qe=2:qr=16", "distances"))
        run = self.measure(*(text for text, _ in cases))
        for summary, (_, reason) in zip(run["summaries"], cases):
            skipped, = summary["skipped"]
            self.assertEqual(skipped["name"], "onednn")
            self.assertIn(reason, skipped["reason"])
            self.assertIsNone(summary["ratio_to_best_peer"])

    def test_table(self):
        self.measure("1,1,1,1,1,1")
        done = self.call("--attention", "1,2,2,30,50,16", "--peer", "onednn", **REAL_PEERS)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertRegex(done.stdout, r"peer onednn: oneDNN 2\.")
        self.assertRegex(done.stdout, r"  vs peer  ")
        self.assertRegex(done.stdout, r"\n  onednn  .* 1\.00x ")
        self.assertRegex(done.stdout, r"x  1,2,2,30,50,16  fp32  .*: cpu_attention_\S+ .*, onednn ")

    def test_missing_library(self):
        done = self.call("--attention", "1,2,2,9,9,8", TILEGEMM_ONEDNN="/nowhere")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("peer onednn is not measured: TILEGEMM_ONEDNN = /nowhere", done.stdout)


if __name__ == "__main__":
    run_tests()
