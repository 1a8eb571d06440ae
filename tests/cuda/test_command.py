"""Tests the command on a fake driver, which computes nothing: what it lists, refuses and finds
wrong.

usage: test_command.py TILEGEMM FOLDER_OF_THE_FAKE FOLDER_OF_THE_FAKE_PEERS
"""

import json
import os
import subprocess
import sys
import tempfile
import unittest

PEERS, FAKE, TILEGEMM = (os.path.abspath(sys.argv.pop()) for _ in range(3))


def call(*words, **changes):
    environment = {**os.environ, "LD_LIBRARY_PATH": FAKE, "FAKE_CUDA_HOST_MEMORY": "1", **changes}
    return subprocess.run([TILEGEMM, *words], env=environment, capture_output=True, text=True,
                          check=False)


class OnFakeDriver(unittest.TestCase):
    def test_info_lists_every_gpu(self):
        gpus = json.loads(call("info", "--json", TILEGEMM_THREADS="1").stdout)["gpus"]
        self.assertIsNone(gpus["reason"])
        self.assertEqual([gpu["device"] for gpu in gpus["devices"]], ["cuda:0", "cuda:1"])
        self.assertEqual(gpus["devices"][1]["sm_count"], 132)

    def test_info_says_why_there_is_none(self):
        done = call("info", FAKE_CUDA_VERSION="11000", TILEGEMM_THREADS="1")
        self.assertEqual(done.returncode, 0)
        self.assertRegex(done.stdout, "GPU +none: the NVIDIA driver is too old")

    def test_kernels_of_a_device(self):
        rows = json.loads(call("kernels", "--json", "--device", "cuda:1").stdout)
        self.assertEqual({row["device"] for row in rows if row["is_available"]}, {"cuda"})
        rows = json.loads(call("kernels", "--json", "--device", "cuda", "--isa", "sm75").stdout)
        self.assertEqual({row["isa"] for row in rows if row["is_available"]}, {"sm75"})

    def test_missing_devices(self):
        for words in (["kernels"], ["bench", "--shape", "8x8x8"]):
            done = call(*words, "--device", "cuda:7")
            self.assertEqual(done.returncode, 3, done.stderr)
            self.assertIn("cuda:0..cuda:1", done.stderr)

    def test_candidates_tell_what_they_would_do(self):
        def read(shape):
            done = call("explain", shape, "--device", "cuda", "--json")
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            return {row["kernel"]: row for row in json.loads(done.stdout)["candidates"]}

        simt = read("200x300x800")["cuda_simt_sm80_fp32_64x128x16"]
        self.assertEqual((simt["block_count"], simt["threads_per_block"]),
                         (4 * 3 * simt["split_count"], 128))
        self.assertEqual(simt["issued_flops"], 2 * 256 * 384 * 800)
        # Tiles that fill no round of blocks are a band of rows, whose splits are told.
        rows = read("1000x1200x800")
        simt = rows["cuda_simt_sm80_fp32_64x128x16"]
        self.assertEqual((simt["block_count"], simt["split_count"]), (13 * 10 + 3 * 10 * 4, 4))
        self.assertEqual(simt["issued_flops"], 2 * 1024 * 1280 * 800)
        edges = rows["cuda_edges_sm75_fp32_16x16x16"]
        self.assertEqual(edges["global_read_bytes"],
                         4 * (1000 * 800 * 75 + 800 * 1200 * 63))
        self.assertEqual(edges["occupancy"], 1)
        small = read("256x256x256")["cuda_small_sm75_fp32_16x32x128"]
        self.assertEqual(small["global_read_bytes"], 4 * 256 * (256 * 8 + 256 * 16))
        self.assertEqual(small["global_write_bytes"], 4 * 256 * 256)
        # Few columns are taken as rows; splits are written and read again.
        dot = read("4096x16x4096")["cuda_dot_sm80_fp32_16x64x128"]
        self.assertGreater(dot["split_count"], 1)
        self.assertEqual(dot["global_write_bytes"], 4 * 4096 * 16 * (1 + dot["split_count"]))
        for row in rows.values():
            self.assertEqual(row["is_legal"], row["block_count"] > 0, row)
            self.assertTrue(not row["is_legal"] or 0 < row["occupancy"] <= 1, row)
        cpu = json.loads(call("explain", "64x64x64", "--json", TILEGEMM_THREADS="1").stdout)
        self.assertEqual({row["block_count"] for row in cpu["candidates"]}, {0})

    def test_candidates_of_a_chip_are_those_of_its_device(self):
        """A plan for the chip that describes the GPU, made without the GPU, is the same to the last
        digit."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "chip.json")
            with open(path, "w", encoding="utf-8") as file:
                told = json.loads(call("explain", "8x8x8", "--kernel", "edges", "--tile", "8",
                                       "--json").stdout)
                self.assertEqual(told["gpu"]["name"], "cuda:0")
                json.dump(told["gpu"], file)
            for shape in ("1000x1200x800", "64x64x64", "1x4096x4096:nt", "512x512x512:bf16"):
                words = ["explain", shape, "--device", "cuda", "--json"]
                here = json.loads(call(*words).stdout)["candidates"]
                absent = json.loads(call(*words, "--gpu", path, LD_LIBRARY_PATH="").stdout)
                self.assertEqual(absent["candidates"], here)
                self.assertTrue(absent["chosen_kernel"].startswith("cuda_"))

    def test_the_ladder_is_explained_on_the_device_that_is_named(self):
        words = ("explain", "8x8x8", "--kernel", "edges", "--tile", "8", "--device")
        for device in ("cuda:0", "cuda:1"):
            told = json.loads(call(*words, device, "--json").stdout)
            self.assertEqual(told["gpu"]["name"], device)
            self.assertEqual(told["gpu_source"], "the driver")
        done = call(*words, "cuda:7")
        self.assertEqual((done.returncode, done.stdout), (3, ""))

    def test_chips_have_their_instruction_sets(self):
        """A chip of each generation can run its instruction set, and lacks the next one."""
        for chip, isa, lacks in (("t4", "sm75", "sm80"), ("a100", "sm80", "sm90a"),
                                 ("rtx4090", "sm89", "sm90a"), ("h200", "sm90a", ""),
                                 ("b200", "sm89", "sm90a")):
            done = call("explain", "512x512x512:prec=tf32", "--device", "cuda", "--gpu", chip,
                        "--json", LD_LIBRARY_PATH="")
            reasons = {row["reason"] for row in json.loads(done.stdout)["candidates"]}
            missing = {reason for reason in reasons if reason.startswith("needs ")}
            self.assertEqual(bool(missing), bool(lacks), chip)
            self.assertTrue(all(text.endswith(f" {isa}") for text in missing), chip)
            self.assertEqual(any(text.startswith(f"needs {lacks}, ") for text in missing),
                             bool(lacks), chip)

    def test_peers_of_the_other_device(self):
        done = call("bench", "--shape", "8x8x8", "--device", "cuda", "--peer", "openblas")
        self.assertEqual(done.returncode, 2)
        self.assertIn("runs on the CPU; pass --device cpu", done.stderr)
        done = call("bench", "--shape", "8x8x8", "--peer", "cublas")
        self.assertEqual(done.returncode, 2)
        self.assertIn("runs on a GPU; pass --device cuda", done.stderr)

    def test_bench_sees_that_nothing_was_computed(self):
        done = call("bench", "--shape", "64x64x64", "--device", "cuda", "--kernel", "ladder",
                    "--peer", "none", "--rounds", "1", "--json", "-", "--cold")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("is wrong at 64x64x64", done.stderr)
        records = json.loads(done.stdout)["records"]
        self.assertEqual([record["is_right"] for record in records if "cpu_" in record["name"]],
                         [True])
        self.assertFalse(any(record["is_right"] for record in records
                             if "cuda_" in record["name"]))

    def test_bench_tells_what_tiling_saves(self):
        """Times are the fake's; the reads are the model's: every operand n times, then n / T."""
        words = ("bench", "--shape", "96x96x96", "--device", "cuda", "--peer", "none", "--rounds",
                 "1", "--kernel", "ladder")
        tiling = json.loads(call(*words, "--json", "-").stdout)["summaries"][0]["tiling"]
        tile = int(tiling["tiled"].split("x")[-1])
        self.assertIn("_tiled_", tiling["tiled"])
        self.assertEqual(tiling["sequential"], "cpu_sequential_generic_fp32")
        self.assertEqual(tiling["coalesced_read_bytes"], 8 * 96**3)
        self.assertEqual(tiling["tiled_read_bytes"], 8 * 96**3 / tile)
        self.assertAlmostEqual(tiling["saved_read_share"], 1 - 1 / tile, 9)
        self.assertRegex(call(*words).stdout, r"Tiled against coalesced[^$]*\n  96x96x96 +\S+x ")
        done = call(*words[:2], "97x96x96", *words[3:], "--json", "-")
        self.assertIn("_edges_", json.loads(done.stdout)["summaries"][0]["tiling"]["tiled"])

    def test_bench_tells_the_host_time_of_short_calls(self):
        words = ("bench", "--shape", "64x64x64", "--device", "cuda", "--peer", "none", "--rounds",
                 "1", "--min-time", "0")
        done = call(*words, "--json", "-", FAKE_CUDA_ELAPSED_US="5")
        host = json.loads(done.stdout)["summaries"][0]["host_us"]
        self.assertEqual(set(host), {"bare_launch", "execute_plan", "multiply"})
        self.assertGreater(min(host.values()), 0.0)
        self.assertRegex(call(*words, FAKE_CUDA_ELAPSED_US="5").stdout,
                         r"host time of a repeated call: bare launch \S+ us, "
                         r"tg_execute_plan \S+ us, tg_multiply \S+ us")
        done = call(*words, "--json", "-", FAKE_CUDA_ELAPSED_US="200")
        self.assertIsNone(json.loads(done.stdout)["summaries"][0]["host_us"])

    def test_peers_compute_every_layout(self):
        """The fake cuBLAS multiplies, in memory that is the host's. The library's kernels do not
        run."""
        shapes = [f"7x5x{k}:{layout}{type}{alpha}" for k, type, alpha in
                  ((9, "", ""), (3, ":fp64", ":alpha=-2"), (1, "", ":lda=12:ldb=12:ldd=11"))
                  for layout in ("nn", "nt", "tn", "tt")]
        words = [word for shape in shapes for word in ("--shape", shape)]
        done = call("bench", "--device", "cuda", "--rounds", "1", "--json", "-", *words,
                    "--peer", "cublas", "--peer", "cublas_best", TILEGEMM_CUBLAS=PEERS)
        run = json.loads(done.stdout)
        peers = [record for record in run["records"] if record["kind"] == "peer"]
        self.assertEqual(len(peers), 2 * len(shapes), done.stderr)
        self.assertEqual([peer["name"] for peer in peers if not peer["is_right"]], [])
        self.assertEqual([(peer["name"], peer["version"]) for peer in run["head"]["peers"]],
                         [("cublas", "cuBLAS 130000"), ("cublas_best", "cuBLASLt 130000")])

    def test_peers_compute_batches_and_epilogues(self):
        """cuBLAS forms batches, cuBLASLt also adds C, a bias of each column and ReLU. D may be
        stored by columns, whose bias by rows is then cuBLASLt's."""
        batches = ["7x5x9:batch=3", "7x5x3:fp64:tt:batch=4", "7x5x9:nt:batch=3:dcol"]
        epilogues = ["7x5x9:bias=col:act=relu", "7x5x9:batch=2:beta=0.5:bias=col:act=relu",
                     "7x5x9:beta=-1", "7x5x9:dcol:bias=row:act=relu"]
        words = [word for shape in batches + epilogues for word in ("--shape", shape)]
        done = call("bench", "--device", "cuda", "--rounds", "1", "--json", "-", *words,
                    "--peer", "cublas", "--peer", "cublas_best", TILEGEMM_CUBLAS=PEERS)
        run = json.loads(done.stdout)
        peers = [record for record in run["records"] if record["kind"] == "peer"]
        self.assertEqual([peer["name"] for peer in peers],
                         ["cublas", "cublas_best"] * len(batches) +
                         ["cublas_best"] * len(epilogues), done.stderr)
        self.assertEqual([peer["shape"] for peer in peers if not peer["is_right"]], [])
        for shape, reason in (("7x5x9:bias=row", "a bias along the rows of D"),
                              ("7x5x9:act=silu", "relu and gelu_tanh")):
            done = call("bench", "--device", "cuda", "--rounds", "1", "--json", "-", "--shape",
                        shape, "--peer", "cublas_lt", TILEGEMM_CUBLAS=PEERS)
            self.assertIn(reason, json.loads(done.stdout)["summaries"][0]["skipped"][0]["reason"])

    def test_graph_needs_a_driver_that_has_graphs(self):
        for device in ("cuda", "cpu"):
            done = call("bench", "--device", device, "--shape", "8x8x8", "--graph")
            self.assertEqual(done.returncode, 3)
            self.assertIn("--graph needs a GPU whose driver has CUDA graphs", done.stderr)

    def test_peer_that_is_missing(self):
        done = call("bench", "--device", "cuda", "--shape", "8x8x8", "--peer", "cublas",
                    TILEGEMM_CUBLAS=FAKE)
        self.assertEqual(done.returncode, 3)
        self.assertIn("TILEGEMM_CUBLAS", done.stderr)

    def attend(self, *texts, code=1, **changes):
        """Our kernel does not run, so that the exit code tells that it is wrong."""
        words = [word for text in texts for word in ("--attention", text)]
        done = call("bench", "--device", "cuda", "--rounds", "1", "--json", "-", *words,
                    "--peer", "cudnn", TILEGEMM_CUDNN=PEERS, **changes)
        self.assertEqual(done.returncode, code, done.stderr)
        return json.loads(done.stdout)

    def test_cudnn_is_judged(self):
        """The fake leaves D as it is, which is NaN."""
        texts = ["1,2,2,9,9,64:bf16", "2,4,2,9,13,72:fp16:causal", "1,2,1,9,13,8:bf16:lse",
                 "1,2,2,13,9,8:bf16:causal=top_left"]
        run = self.attend(*texts)
        self.assertEqual([(peer["name"], peer["version"]) for peer in run["head"]["peers"]],
                         [("cudnn", "cuDNN 9.19.0")])
        peers = [record for record in run["records"] if record["kind"] == "peer"]
        self.assertEqual([(peer["name"], peer["is_right"]) for peer in peers],
                         [("cudnn", False)] * len(texts))
        for summary in run["summaries"]:
            self.assertEqual((summary["skipped"], summary["best_peer"]), ([], None))

    def test_cudnn_says_why_not(self):
        cases = (("1,2,2,9,9,8:fp32", "bf16 and fp16 only"),
                 ("1,2,2,9,9,12:bf16", "multiples of 8"),
                 ("1,2,2,9,9,8:bf16:bias", "without bias"), ("1,2,2,9,9,8:bf16:cap=3", "soft cap"),
                 ("1,2,2,9,9,8:bf16:before=3", "window"), ("1,2,2,9,9,8:bf16:slopes", "slopes"),
                 ("1,2,2,9,5,8:bf16:causal", "no more queries than keys"),
                 ("1,2,2,9,9,8:bf16:kr=12", "multiples of 8"), ("1,2,2,0,9,8:bf16", "size of 0"))
        run = self.attend(*(text for text, _ in cases))
        for summary, (_, reason) in zip(run["summaries"], cases):
            self.assertIn(reason, summary["skipped"][0]["reason"])
        for kind, step in ((17, "a tensor"), (15, "the graph"), (4, "the graph, for its heuristic"),
                           (5, "every plan of its heuristic"), (16, "the operands")):
            run = self.attend("1,2,2,9,9,8:bf16", FAKE_CUDNN_REFUSES=str(kind))
            reason = run["summaries"][0]["skipped"][0]["reason"]
            self.assertRegex(reason, f"^it refuses {step}:? .status 3000. the fake refuses$")
        done = call("bench", "--device", "cuda", "--shape", "8x8x8", "--peer", "cudnn", "--json",
                    "-", "--rounds", "1", TILEGEMM_CUDNN=PEERS)
        skipped, = json.loads(done.stdout)["summaries"][0]["skipped"]
        self.assertEqual(skipped["reason"], "it computes attention alone")

    def test_cudnn_that_is_missing(self):
        done = call("bench", "--device", "cuda", "--attention", "1,2,2,9,9,8:bf16", "--peer",
                    "cudnn", TILEGEMM_CUDNN=FAKE)
        self.assertEqual(done.returncode, 3)
        self.assertIn("TILEGEMM_CUDNN", done.stderr)

    def test_multiply_checks_what_came_back(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in ("a.mtx", "b.mtx"):
                with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                    file.write("%%MatrixMarket matrix array real general\n2 2\n1\n2\n3\n4\n")
            paths = [os.path.join(folder, name) for name in ("a.mtx", "b.mtx")]
            output = os.path.join(folder, "d.npy")
            words = ["multiply", *paths, "-o", output, "--type", "fp32", "--device", "cuda"]
            done = call(*words, "--check")
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn("the result is wrong", done.stderr)
            self.assertFalse(os.path.exists(output))
            for symbol in ("cuMemcpyHtoDAsync_v2", "cuMemcpyDtoHAsync_v2", "cuLaunchKernelEx"):
                with open(output, "wb") as file:
                    file.write(b"what was there")
                done = call(*words, FAKE_CUDA_FAILING=symbol)
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertIn("(999)", done.stderr)
                with open(output, "rb") as file:
                    self.assertEqual(file.read(), b"what was there")
                self.assertEqual(sorted(os.listdir(folder)), ["a.mtx", "b.mtx", "d.npy"])
            done = call(*words)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("cuda:0, cuda_", done.stdout)


if __name__ == "__main__":
    unittest.main()
