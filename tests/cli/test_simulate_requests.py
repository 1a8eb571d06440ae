#!/usr/bin/env python3
"""Tests the command simulate: requests of a warp, owners of elements, the walk as JSON.

usage: test_simulate_requests.py TILEGEMM
"""
import collections
import json
import os
import subprocess
import sys
import unittest

TILEGEMM = "tilegemm"
FAMILIES = ("naive", "coalesced", "tiled", "edges", "transposed", "padded", "register_column",
            "register_tile", "vector", "buffered", "warp_tile", "warp_mma")


def call(*words):
    return subprocess.run([TILEGEMM, "simulate", *words], capture_output=True, text=True,
                          timeout=60, env={**os.environ, "LC_ALL": "C"})


class Simulate(unittest.TestCase):
    def read(self, *words):
        done = call(*words, "--json")
        self.assertEqual((done.returncode, done.stderr), (0, ""), words)
        return json.loads(done.stdout)

    def requests(self, kernel, text, space, is_write=False):
        """Returns the requests of the lines of a kernel that hold `text`."""
        found = self.read("256x256x64", "--kernel", kernel, "--requests")["requests"]
        chosen = [one for one in found if text in one["source"] and one["space"] == space
                  and one["is_write"] == is_write]
        self.assertTrue(chosen, (kernel, text))
        return chosen

    def test_sectors_of_a_request(self):
        for one in self.requests("cuda_naive_sm75_fp32_32x32x1", "a[", "A"):
            self.assertEqual(one["sector_count"], 32)
            strides = {right - left for left, right in zip(one["lanes"], one["lanes"][1:])}
            self.assertEqual(strides, {64})  # each lane has a row of A
        for one in self.requests("cuda_coalesced_sm75_fp32_32x32x1", "b[", "B"):
            self.assertEqual(one["sector_count"], 4)

    def test_turns_of_a_request(self):
        text = "tile.b[threadIdx.x][p]"
        for kernel, turns, stride in (("transposed", 32, 32), ("padded", 1, 33)):
            by_columns = [one for one in self.requests(kernel, text, "S")
                          if one["lanes"][0] >= 32 * 32]
            self.assertEqual(len(by_columns), 4)
            for one in by_columns:
                self.assertEqual(one["groups"],
                                 [{"first_lane": 0, "lane_count": 32, "turns": turns}])
                self.assertEqual(one["lanes"][31] - one["lanes"][0], 31 * stride)

    def test_calls_tell_the_operand(self):
        reads = self.requests("vector", "float4 v", "S")
        self.assertEqual(len({one["line"] for one in reads}), 1)
        self.assertEqual(len({one["caller_line"] for one in reads}), 3)

    def test_owners(self):
        for family in FAMILIES:
            found = self.read("256x256x32", "--kernel", family, "--requests")
            owners = [thread for row in found["owners"] for thread in row]
            self.assertEqual(len(owners), found["tile_rows"] * found["tile_cols"])
            self.assertEqual(found["threads_x"] * found["threads_y"], found["threads_per_block"])
            each = len(owners) // found["threads_per_block"]
            self.assertEqual(collections.Counter(owners),
                             {thread: each for thread in range(found["threads_per_block"])})
        tile = self.read("256x256x64", "--kernel", "register_tile", "--requests")["owners"]
        for row in (0, 17, 127):
            for col in (0, 30, 127):
                self.assertEqual(tile[row][col], row % 16 * 16 + col % 16)
        cut = self.read("9x7x5", "--kernel", "edges", "--tile", "8", "--requests")["owners"]
        self.assertEqual([len(row) for row in cut], [7] * 8)

    def test_walk(self):
        found = self.read("4x4x4", "--kernel", "tiled", "--tile", "2", "--trace")
        block = [phase for phase in found["phases"] if phase["block"] == [0, 0]]
        self.assertEqual([sum_["value"] for sum_ in block[1]["sums"]], [104, 105, 920, 929])
        self.assertEqual([sum_["value"] for sum_ in block[3]["sums"]], [656, 662, 2352, 2374])
        self.assertEqual(block[0]["shared"], [0, 1, 4, 5, 100, 101, 104, 105])
        self.assertEqual([move["index"] for move in block[0]["moves"] if move["space"] == "A"],
                         [0, 1, 4, 5])
        self.assertEqual(len(block[4]["moves"]), 4)
        self.assertEqual(len(found["phases"]), 4 * 5)

    def test_text(self):
        done = call("64x64x64", "--kernel", "transposed", "--requests")
        self.assertEqual(done.returncode, 0)
        self.assertIn("from shared memory, 1 a lane, turns 32: 1024 1056 1088", done.stdout)
        self.assertIn("to D, 1 a lane, sectors 4: 0 1 2", done.stdout)
        done = call("2x2x2", "--kernel", "edges", "--tile", "4", "--requests")
        self.assertIn("from A, 1 a lane, sectors 1: 0 1 - - 2 3 -", done.stdout)


if __name__ == "__main__":
    TILEGEMM = os.path.abspath(sys.argv.pop(1))
    unittest.main()
