#!/usr/bin/env python3
"""Tests the command explain: known figures, chips, tiles, candidates, errors.

usage: test_explain.py TILEGEMM
"""
import itertools
import json
import os
import subprocess
import sys
import tempfile
import unittest

TILEGEMM = "tilegemm"
KEYS = ("grid_x grid_y block_count global_read_bytes global_write_bytes global_read_elems "
        "useful_flops issued_flops flop_per_byte shared_bytes occupancy predicted_s bound "
        "global_load_sectors global_store_sectors bank_conflicts global_load_requests "
        "shared_load_requests shared_store_requests barriers").split()
CHIPS = ("t4", "a40", "l4", "a100", "rtx3090", "rtx4090", "h100", "h100_pcie", "h200", "b200",
         "rtx5090")


def call(*words):
    return subprocess.run([TILEGEMM, "explain", *words], capture_output=True, text=True,
                          timeout=60, env={**os.environ, "LC_ALL": "C", "TILEGEMM_THREADS": "1"})


class Explain(unittest.TestCase):
    def read(self, *words):
        done = call(*words, "--json")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return json.loads(done.stdout)

    def print(self, *words):
        done = call(*words)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout

    def refuse(self, code, text, *words):
        done = call(*words)
        self.assertEqual((done.returncode, done.stdout), (code, ""), words)
        self.assertIn(text, done.stderr)

    def test_panels(self):
        words = ("65536x65536x65536", "--gpu", "h100", "--memory", "8G")
        found = self.read(*words)
        self.assertEqual((found["device"], found["memory_limit_bytes"]), ("h100", 1 << 33))
        self.assertLessEqual(found["memory_bytes"], 1 << 33)
        rows, cols = -(-65536 // found["row_count"]), -(-65536 // found["col_count"])
        self.assertEqual(found["panel_count"], rows * cols)
        side = 65536 ** 2 * 4
        walks = -(-(cols if found["held"] == "b" else rows) // found["held_count"])
        # Two panels of what streams stay at each turn: the last one is shorter.
        streamed = found["row_count"] if found["held"] == "b" else found["col_count"]
        last = 65536 - (-(-65536 // streamed) - 1) * streamed
        kept = walks // 2 * (streamed + last) + (walks - 1) // 2 * 2 * streamed
        self.assertAlmostEqual(found["read_bytes"] / side, 1 + walks - kept / 65536, places=6)
        self.assertAlmostEqual(found["written_bytes"] / side, 1, places=6)
        self.assertGreater(found["predicted_s"], 1)
        self.assertAlmostEqual(found["balance_bytes_per_s"] * found["predicted_s"] / 1e9,
                               found["read_bytes"] / 1e9, places=3)
        self.assertEqual(found["bound"], "products")
        self.assertGreater(found["total_s"], found["predicted_s"])
        text = self.print(*words)
        self.assertIn(f"{found['panel_count']} panels of {found['row_count']} x", text)
        self.assertRegex(text, r"bound     products: copies take 1\.\d+ s, 55.44 GB/s each way")
        self.assertIn("total     ", text)
        self.assertIn("GB/s, above it products", text)
        self.assertEqual(self.read("1000x1000x1000:fp16", "--gpu", "t4", "--memory",
                                   "8G")["bound"], "copies")
        self.assertEqual(self.read("9x8x7", "--memory", "1M")["bound"], "")
        self.assertEqual(self.read("9x8x7:batch=5", "--memory", "1M")["panel_count"], 1)
        self.refuse(2, "is less than the 60 that one row", "9x8x7", "--memory", "50")
        self.refuse(2, "--memory = '8X' is not a size", "9x8x7", "--memory", "8X")
        for more in (["--kernel", "edges"], ["--tile", "16"], ["--gpu", "t4"]):
            self.refuse(2, "--memory shows the panels of a product on one device", *words, *more)

    def test_known_figures(self):
        found = self.read("55x43x48", "--kernel", "edges", "--tile", "16")
        self.assertEqual((found["global_read_bytes"], found["global_write_bytes"]), (64704, 9460))
        self.assertEqual(set(KEYS) - set(found), set())
        found = self.read("142x146x110", "-k", "cuda_edges_sm75_fp32_32x32x32")
        self.assertEqual((found["useful_flops"], found["issued_flops"]), (4561040, 6553600))
        found = self.read("1000x1200x800", "--kernel", "edges", "--tile", "16", "--gpu", "T4")
        self.assertEqual((found["grid_x"], found["grid_y"], found["block_count"]), (75, 63, 4725))
        for tile in (16, 32, 64):
            found = self.read("512x512x512", "--kernel", "tiled", "--tile", str(tile))
            self.assertEqual(found["flop_per_byte"], tile / 4)
            self.assertEqual(found["global_read_elems"], 2 * 512 ** 3 // tile)
            self.assertEqual(found["block_read_elems"], 2 * tile * 512)
        found = self.read("512x512x512", "--kernel", "naive", "--tile", "16")
        self.assertEqual((found["global_read_elems"], found["flop_per_byte"]), (2 * 512 ** 3, 0.25))
        self.assertEqual(found["block_read_elems"], 2 * 512 * 16 * 16)

    def test_text_names_the_edges(self):
        text = self.print("1000x1200x800", "--kernel", "edges", "--tile", "16", "--gpu", "h100")
        self.assertIn("75 x 63 = 4,725 blocks of 256 threads", text)
        self.assertIn("last row of blocks: rows 992 .. 999 of D, 8 of 16", text)
        self.assertIn("columns: 16 divides 1,200", text)
        self.assertIn("64,704 bytes", self.print("55x43x48", "-k", "edges", "--tile", "16"))

    def test_all_rungs(self):
        found = self.read("300x200x100", "--kernel", "all", "--gpu", "a100")
        self.assertEqual({row["ladder_rung"] for row in found["kernels"]}, set(range(1, 14)))
        legal = [row for row in found["kernels"] if row["is_legal"]]
        quickest = min(legal, key=lambda row: row["predicted_s"])
        self.assertEqual(found["quickest_kernel"], quickest["kernel"])
        self.assertEqual({row["family"] for row in found["kernels"] if not row["is_legal"]},
                         {"tiled", "warpgroup_mma"})
        text = self.print("300x200x100", "--kernel", "all", "--gpu", "a100")
        for row in found["kernels"]:
            self.assertIn(row["kernel"], text)

    def test_chips_that_are_not_here(self):
        """The planner chooses production kernels of every type, on every chip, without a GPU."""
        for chip, shape, family in (("h200", "4096x4096x4096:nt:bf16", "wgmma"),
                                    ("a100", "1000x1000x1000:fp64", "dmma"),
                                    ("t4", "1000x1000x1000", "simt"),
                                    ("h100", "1x20000x4097:nt:fp8_e4m3:d=bf16", "dot"),
                                    ("a100", "16x32001x4096:bf16", "rank"),
                                    ("l4", "1000x1200x800:fp16", "mma"),
                                    ("rtx4090", "4x1000x5000:fp16", "small"),
                                    ("a40", "1000x1200x800:nt:fp8_e4m3:d=bf16", "mma"),
                                    ("l40s", "1000x1200x800:prec=tf32", "mma"),
                                    ("t4", "64x64x64:bf16", "mma"),
                                    ("b200", "64x4096x4096:fp16", "mma")):
            found = self.read(shape, "--gpu", chip)
            self.assertEqual(found["device"]["device"], chip)
            self.assertIn(f"cuda_{family}_", found["chosen_kernel"])
            rows = {row["kernel"]: row for row in found["candidates"]}
            self.assertEqual([name for name, row in rows.items() if row["reason"] == ""],
                             [found["chosen_kernel"]])
            self.assertGreater(rows[found["chosen_kernel"]]["block_count"], 0)
            text = self.print(shape, "--gpu", chip)
            self.assertIn("planned from its figures", text)
            for name, row in rows.items():
                is_shown = row["refusal"] not in ("other_device", "other_type")
                self.assertEqual(name in text, is_shown, name)
        none = self.read("64x64x2147483648:bf16", "--gpu", "t4")
        self.assertEqual(none["chosen_kernel"], "")

    def test_no_prediction_above_the_peak(self):
        for chip in CHIPS:
            for size, parts in itertools.product(
                    ("1000x1200x800", "4096x4096x4096", "128x128x65536"),
                    (":prec=ieee_fp32", ":nt:bf16")):
                shape = size + parts
                found = self.read(shape, "--device", "cuda", "--gpu", chip)
                peak = found["device"]["peak_flop_per_s"]
                # Slices go to the matrix instructions, which have another peak.
                above = [row["kernel"] for row in found["candidates"]
                         if row["is_legal"] and 1e9 * row["gflop_per_s"] > peak
                         and not row["kernel"].startswith(("cuda_bf16x_", "cuda_fp16x_"))]
                self.assertEqual(above, [], (chip, shape))

    def test_chips(self):
        times = set()
        for name in CHIPS:
            found = self.read("2048x2048x2048", "-k", "warp_tile", "--gpu", name)
            self.assertEqual(found["gpu"]["name"], name)
            times.add(found["predicted_s"])
        self.assertEqual(len(times), len(CHIPS))

    def test_chip_file(self):
        chip = self.read("64x64x64", "-k", "padded", "--gpu", "l4")["gpu"]
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "chip.json")

            def write(content):
                with open(path, "w", encoding="utf-8") as file:
                    file.write(content if isinstance(content, str) else json.dumps(content))

            write({**chip, "name": "mine", "sm_count": 1})
            found = self.read("640x640x64", "-k", "padded", "--gpu", path)
            self.assertEqual((found["gpu"]["name"], found["gpu"]["sm_count"]), ("mine", 1))
            whole = self.read("640x640x64", "-k", "padded", "--gpu", "l4")
            self.assertGreater(found["predicted_s"], whole["predicted_s"])
            for content, text in (("{", "chip.json"), ("[]", "JSON object"),
                                  ({**chip, "sm_counts": 1}, '"sm_counts" is not a key'),
                                  ({**chip, 999 * "k": 1}, f'"{64 * "k"}" is not a key'),
                                  ({**chip, "\x1b[2J": 1}, '"?[2J" is not a key'),
                                  ({**chip, "title": "a\x1b[31m"}, "without control characters"),
                                  ({**chip, "sm_count": 1.5}, '"sm_count" must be a whole number'),
                                  ({**chip, "sm_count": 2**31}, "whole number of 32 bits"),
                                  ({**chip, "sm_count": 0}, "sm_count = 0; pass 1 to 65536"),
                                  ({**chip, "clock_hz": "1"}, '"clock_hz" must be a number'),
                                  ({**chip, "clock_hz": -1}, "clock_hz = -1; pass 1000000 to"),
                                  ({**chip, "name": 5}, '"name" must be text'),
                                  ('{"sm_count": 1, "sm_count": 2}', "duplicate object key"),
                                  ({key: chip[key] for key in chip if key != "l2_bytes"},
                                   'the key "l2_bytes" is missing')):
                write(content)
                self.refuse(2, text, "64x64x64", "-k", "padded", "--gpu", path)

    def test_tiles(self):
        found = self.read("512x512x512", "--tile", "auto", "--gpu", "rtx4090")
        tiles = {row["tile_rows"]: row for row in found["tiles"]}
        self.assertEqual(sorted(tiles), list(range(1, 129)))
        self.assertEqual([tile for tile in tiles if tiles[tile]["is_legal"]], list(range(1, 33)))
        self.assertIn("1089 threads", tiles[33]["reason"])
        self.assertIn("4096 threads", tiles[64]["reason"])
        best = min((row for row in tiles.values() if row["is_legal"]),
                   key=lambda row: row["predicted_s"])
        self.assertEqual(found["recommended_tile"], best["tile_rows"])
        text = self.print("512x512x512", "--tile", "auto", "--gpu", "rtx4090")
        self.assertIn(f"Recommended: tile {found['recommended_tile']}", text)
        self.assertIn("no: 1089 threads a block", text)
        self.assertNotIn("1156 threads", text)  # says the reason only once
        self.assertIn("Larger tiles, up to 128, are not legal", text)
        sides = [row["tile_rows"] for row in
                 self.read("512x512x512", "-k", "register_column", "--tile", "auto")["tiles"]]
        self.assertEqual(sides, [8, 16, 32, 64])

    def test_why_a_tile_is_not_legal(self):
        """The command tells the resource that a multiprocessor lacks, and each reason where it
        begins."""
        chip = self.read("64x64x64", "-k", "padded", "--gpu", "h200")["gpu"]
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "chip.json")
            for change, text in (({"threads_per_sm": 512},
                                  "529 threads a block; a multiprocessor of h200 has 512"),
                                 ({"shared_bytes_per_sm": 2000},
                                  "968 bytes of shared memory a block and the system's; a "
                                  "multiprocessor of h200 has 2000"),
                                 ({"registers_per_sm": 2048},
                                  "4096 registers a block; h200 has 2048")):
                with open(path, "w", encoding="utf-8") as file:
                    json.dump({**chip, **change}, file)
                found = self.print("512x512x512", "--tile", "auto", "--gpu", path)
                self.assertIn(text, found)
                self.assertIn("1089 threads a block; the limit is 1024", found)

    def test_chips_side_by_side(self):
        words = ("512x512x512", "--kernel", "all")
        alone = {chip: self.read(*words, "--gpu", chip) for chip in ("t4", "h100")}
        both = self.read(*words, "--gpu", "t4", "--gpu", "h100")
        self.assertEqual(both, {"gpus": [alone["t4"], alone["h100"]]})
        lines = self.print(*words, "--gpu", "t4", "--gpu", "h100").splitlines()
        self.assertTrue(all(len(line) <= 100 for line in lines))
        self.assertEqual(lines[3].split()[-2:], ["t4", "h100"])
        rows = lines[4:-1]
        self.assertEqual([row.split()[0] for row in rows],
                         [row["kernel"] for row in alone["t4"]["kernels"]])
        for chip, column in (("t4", rows[0].index(" ms")), ("h100", rows[0].rindex(" us"))):
            quickest = [row.split()[0] for row in rows if row[column + 3] == "*"]
            self.assertEqual(quickest, [alone[chip]["quickest_kernel"]])
        self.assertRegex(rows[-1], r"^cuda_warpgroup_mma.* - +\S+ us\*$")
        planned = self.read("512x512x512", "--gpu", "t4", "--gpu", "h100")
        self.assertEqual([one["gpu"]["name"] for one in planned["gpus"]], ["t4", "h100"])
        text = self.print("512x512x512", "--gpu", "t4", "--gpu", "h100")
        for one in planned["gpus"]:
            self.assertRegex(text, rf"(?m)^{one['chosen_kernel']} .*\*")

    def test_illegal_tile_has_no_time(self):
        found = self.read("512x512x512", "--kernel", "edges", "--tile", "40", "--gpu", "h100")
        self.assertFalse(found["is_legal"])
        for key in ("predicted_s", "launch_s", "shared_s", "peak_share"):
            self.assertIsNone(found[key])
        for words in (("--kernel", "edges"), ()):
            text = self.print("512x512x512", *words, "--tile", "40", "--gpu", "h100")
            self.assertIn("1600 threads a block; the limit is 1024", text)
            self.assertNotRegex(text, r"\d [um]s\b")

    def test_chip_of_json_is_a_chip_file(self):
        """The keys that the error line of a chip's file names are printed, with every form."""
        chip = self.read("8x8x8", "--gpu", "h100")["gpu"]
        self.assertEqual(chip, self.read("8x8x8", "--gpu", "h100", "--kernel", "edges")["gpu"])
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "chip.json")
            with open(path, "w", encoding="utf-8") as file:
                json.dump(chip, file)
            self.assertEqual(self.read("8x8x8", "--gpu", path)["gpu"], chip)
            self.refuse(2, "is a directory", "8x8x8", "--kernel", "edges", "--gpu", folder)

    def test_any_tile(self):
        """The command explains every rung that can have the tile, whether the table has a row of it
        or not."""
        found = self.read("55x43x48", "--tile", "12")["kernels"]
        self.assertEqual([row["ladder_rung"] for row in found], [1, 2, 3, 4, 5, 6])
        self.assertEqual({(row["tile_rows"], row["is_in_table"]) for row in found}, {(12, False)})
        edges = [row for row in found if row["family"] == "edges"][0]
        told = json.loads(subprocess.run(
            [TILEGEMM, "simulate", "55x43x48", "--kernel", "edges", "--tile", "12", "--json"],
            capture_output=True, text=True, timeout=60, check=True).stdout)
        self.assertEqual({key: told[key] for key in told if key in edges},
                         {key: edges[key] for key in told if key in edges})
        self.assertEqual(self.read("8x8x8", "--tile", "8")["kernels"][2]["is_in_table"], True)

    def test_few_rows_of_lines_that_begin_anywhere(self):
        """Odd lines are read where they begin, by rank and small, or moved on the way. Others are
        repacked for the tiles."""
        for shape, family in (("16x20001x1000", "rank"), ("1x8193x8193", "loose"),
                              ("16x32001x4095:nt", "loose"), ("1x57344x8191:nt", "loose"),
                              ("1x1001x1001:nt", "small"), ("16x1001x1001", "small"),
                              ("16x32064x4096", "wgmma")):
            found = self.read(f"{shape}:bf16", "--device", "cuda", "--gpu", "h200")
            self.assertIn(f"cuda_{family}_", found["chosen_kernel"], shape)
            # A kernel is tried along either side of D. The side that the plan does not take may
            # have been refused.
            self.assertEqual([row["reason"] for row in found["candidates"] if row["is_chosen"]],
                             [""], shape)
        found = self.read("16x8191x8192:bf16", "--device", "cuda", "--gpu", "h200")
        row = next(row for row in found["candidates"]
                   if "cuda_rank_" in row["kernel"] and row["is_legal"])
        cols = row["block_count"] // row["split_count"]  # tiles, read once with all of A
        sums = row["split_count"] * 16 * 8191 * 4
        self.assertEqual(row["global_read_bytes"], 2 * 8192 * (16 * cols + 8191) + sums)

    def test_chosen_kernel_of_a_choice(self):
        """The planner's choice is told, whichever kernels are listed."""
        every = self.read("512x512x512", "--gpu", "h200")
        some = self.read("512x512x512", "--gpu", "h200", "--kernel", "small")
        self.assertTrue(every["chosen_kernel"])
        self.assertEqual(some["chosen_kernel"], every["chosen_kernel"])
        self.assertNotIn(some["chosen_kernel"], [row["kernel"] for row in some["candidates"]])

    def test_candidates(self):
        found = self.read("96x80x64:nt:beta=1")
        chosen = [row for row in found["candidates"] if row["is_chosen"]]
        self.assertEqual([row["kernel"] for row in chosen], [found["chosen_kernel"]])
        self.assertEqual(found["useful_flops"], 2 * 96 * 80 * 64)
        for row in found["candidates"]:
            self.assertEqual(row["reason"] == "", row["is_chosen"])
            self.assertEqual(row["predicted_s"] > 0, row["is_legal"])
        lines = self.print("96x80x64:nt:beta=1").splitlines()
        self.assertRegex(lines[2], rf"^{found['chosen_kernel']} .* chosen$")
        self.assertIn("figures of a Zen 5", lines[-2])
        self.assertRegex(lines[-1], r"^\d\d+ kernels multiply other types, \d\d+ run on another")
        reasons = {row["reason"] for row in found["candidates"]}
        self.assertIn("multiplies fp64, the inputs are fp32", reasons)

    def test_kernels_outside_the_ladder(self):
        for kernel, chip, shape in (("simt", "a100", "300x200x100:tn"), ("wgmma", "h200",
                                     "64x64x64:bf16"), ("cuda_dot_sm80", "l4", "1x99x999:nt")):
            found = self.read(shape, "--kernel", kernel, "--gpu", chip)
            names = [row["kernel"] for row in found["candidates"]]
            self.assertTrue(names and all(kernel in name for name in names), names)
            self.assertTrue(any(row["is_legal"] for row in found["candidates"]), names)
        found = self.read("64x64x64", "--kernel", "cpu_sequential_generic_fp32")
        self.assertEqual([row["is_legal"] for row in found["candidates"]], [True])
        self.assertIn("on h200", self.print("64x64x64", "--kernel", "small"))

    def test_refusals(self):
        for code, text, words in (
                (2, "name a shape", []), (2, "one shape too many", ["8x8x8", "8x8x8"]),
                (2, "has no k", ["8x8"]), (2, "has no n", ["8"]), (2, "k is not", ["8x8x8x8"]),
                (2, "--tile = 'x'", ["8x8x8", "--tile", "x"]),
                (2, "pass 1 to 128", ["8x8x8", "--kernel", "edges", "--tile", "129"]),
                (2, "--tile = 129", ["8x8x8", "--tile", "129"]),
                (2, "--tile = 0", ["8x8x8", "--tile", "0"]),
                (2, "pass 1 to 128", ["8x8x8", "--kernel", "edges", "--tile", "200"]),
                (2, "one chip too many", ["8x8x8", *["--gpu", "t4"] * 5]),
                (2, "pass 128", ["8x8x8", "--kernel", "vector", "--tile", "16"]),
                (2, "in its name", ["8x8x8", "--kernel", "cuda_edges_sm75_fp32_8x8x8", "--tile",
                                    "16"]),
                (2, "MxNxK alone", ["8x8x8:nt", "--kernel", "all"]),
                (2, "m = 0", ["0x8x8", "--kernel", "edges", "--tile", "8"]),
                (2, "ladder", ["8x8x8", "--kernel", "simt", "--tile", "64"]),
                (3, "nothing", ["8x8x8", "--kernel", "nothing"]),
                (3, "rtx5090", ["8x8x8", "--gpu", "nothing"]),
                (2, "--device = 'cpu'", ["8x8x8", "--device", "cpu", "--gpu", "t4"]),
                (2, "--device = 'sim'", ["8x8x8", "-k", "edges", "--device", "sim", "--gpu", "t4"]),
                (2, "--device = 'cpu'", ["8x8x8", "-k", "edges", "--device", "cpu"]),
                (3, "nothing", ["8x8x8", "-k", "edges", "--device", "nothing"]),
                (2, "one family", ["8x8x8", "--kernel", "all", "--tile", "auto"]),
                (3, "rtx5090", ["8x8x8", "--device", "cuda", "--gpu", "nothing"]),
                (3, "cpu", ["8x8x8", "--device", "nothing"])):
            self.refuse(code, text, *words)

    def test_attention(self):
        for text, pairs, operands, scores in (
                ("2,4,2,30,50,16", 2 * 4 * 1500, 2 * (120 + 100) * 32 * 4, 2 * 4 * 1500 * 4),
                ("1,2,1,30,50,16:causal:bf16:dv=8", 2 * 1065, (60 + 50) * 24 * 2, 2 * 1500 * 4),
                ("1,1,1,30,50,16:fp64:before=3:after=0", 114, 80 * 32 * 8, 1500 * 8),
                ("2,1,1,30,50,16:qoffsets:koffsets", 3000, 2 * 80 * 32 * 4, 3000 * 4),
                ("1,1,1,0,0,1", 0, 0, 0)):
            shown = self.read(text)
            sizes = 24 if "dv=8" in text else 32
            self.assertEqual((shown["flops"], shown["exponentials"], shown["operand_bytes"],
                              shown["score_bytes"]), (2 * pairs * sizes, pairs, operands, scores))
            self.assertRegex(shown["kernel"], "^cpu_attention_")
            self.assertGreater(shown["workspace_bytes"], 0)
            self.assertIn(f"  kernel         {shown['kernel']}\n", self.print(text))

    def test_attention_refusals(self):
        text = "1,2,2,9,9,8"
        self.refuse(2, "no part of an attention", "1,2")
        self.refuse(2, "does not divide head_count = 3", "1,3,2,9,9,8")
        self.refuse(3, "is no rung of attention", text, "--kernel", "edges")
        self.refuse(2, "multiplies bf16 or fp16", text, "--kernel", "attention_mma")
        for tile in ("8", "auto"):
            self.refuse(2, "--tile is not for an attention", text, "--tile", tile)
        self.refuse(2, "device sim has no attention", text, "--device", "sim")


if __name__ == "__main__":
    TILEGEMM = os.path.abspath(sys.argv.pop(1))
    unittest.main()
