#!/usr/bin/env python3
"""Tests who computes what in a browser: owners beside those of simulate, mouse and keys.

usage: test_owners.py TILEGEMM
"""
import math
import os
import random
import sys
import unittest

from selenium.webdriver.common.keys import Keys

from browser import read_json
from picture_case import PictureCase, TILES, tilegemm

FIGURE = "figure:has(.owners) table"


class Owners(PictureCase):
    view = "owners"
    shape = "1000x1200x800"

    def read_fact(self, name):
        return self.read(f"[data-fact={name}]")

    def test_owners_are_the_simulators(self):
        source = random.Random(11)
        for kernel, tile in ((kernel, tile) for kernel, tiles in TILES.items() for tile in tiles):
            told = read_json(tilegemm[0], "simulate", "128x128x8", "--kernel", kernel, "--tile",
                             str(tile), "--requests")
            thread = source.randrange(told["threads_per_block"])
            m, n = source.randint(1, 400), source.randint(1, 400)
            row = source.randrange(math.ceil(m / told["tile_rows"]))
            col = source.randrange(math.ceil(n / told["tile_cols"]))
            self.link(m=m, n=n, kernel=kernel, tile=tile, thread=thread, blockRow=row, blockCol=col)
            self.check_elements(told, thread, m, n, row, col)
            self.check_facts(told, thread, m, n)

    def check_elements(self, told, thread, m, n, row, col):
        top, left = row * told["tile_rows"], col * told["tile_cols"]
        expected = [[str(y), str(x), str(top + y), str(left + x),
                     "yes" if top + y < m and left + x < n else "outside"]
                    for y, line in enumerate(told["owners"])
                    for x, owner in enumerate(line) if owner == thread]
        self.assertEqual(self.read_table(FIGURE), expected, told["kernel"])
        rows = sorted({int(line[2]) for line in expected if int(line[2]) < m})
        self.assertEqual(self.expand(self.read_fact("rows")), rows)

    def expand(self, text):
        """Reads "0 .. 2, 5" as [0, 1, 2, 5]."""
        if text == "none inside":
            return []
        ranges = [[int(word) for word in part.split("..")] for part in text.split(",")]
        return [number for ends in ranges for number in range(ends[0], ends[-1] + 1)]

    def check_facts(self, told, thread, m, n):
        x, y = thread % told["threads_x"], thread // told["threads_x"]
        self.assertEqual(self.read_fact("thread"),
                         f"{thread} = ({y}, {x}), lane {thread % 32} of warp {thread // 32}")
        explained = read_json(tilegemm[0], "explain", f"{m}x{n}x800", "--kernel", told["family"],
                              "--tile", str(told["tile_rows"]), "--gpu", "h200")
        self.assertEqual(self.read_fact("registers"), str(explained["registers_per_thread"]))
        self.assertIn(f"= {explained['threads_per_block']:,}", self.read_fact("threads"))
        self.assertIn(f"= {explained['block_count']:,}", self.read_fact("tiles"))
        grid = self.read_table("figure:has(.tile-grid) table")
        self.assertEqual(grid[2:], [["all", str(explained["block_count"])],
                                    ["cut by an edge", str(explained["edge_block_count"])]])

    def test_mouse_and_keys(self):
        self.link(m=1000, n=1200, kernel="register_tile", tile=128)
        self.click_at(".owners .hit", 0.5 / 128, 17.5 / 128)
        self.assertEqual(self.browser.read_state()["thread"], "16")
        self.press(Keys.ARROW_RIGHT)  # the drawing has the focus
        self.assertEqual(self.browser.read_state()["thread"], "17")
        self.press(Keys.ARROW_DOWN)
        self.assertEqual(self.browser.read_state()["thread"], "33")
        self.click_at(".tile-grid .hit", 0.95, 0.95)
        self.assertEqual(self.read_fact("tile"), "rows 896 .. 999, columns 1152 .. 1199")
        self.press(Keys.ARROW_UP, Keys.ARROW_LEFT)
        self.assertEqual(self.read_fact("tile"), "rows 768 .. 895, columns 1024 .. 1151")
        self.focus(self.browser.find("#range-thread"))
        self.press(Keys.END)
        self.assertIn("255 = (15, 15), lane 31 of warp 7", self.read_fact("thread"))

    def test_warps(self):
        self.link(kernel="warp_tile", tile=128)
        warps = self.read_table("details:not(figure details) table")
        self.assertEqual(len(warps), 8)
        self.assertEqual(warps[3], ["3", "96 .. 127", "32 .. 63", "64 .. 127"])
        lines = self.driver.execute_script(
            "return document.querySelector('.warp-edge').getAttribute('d')")
        self.assertEqual((lines.count("h"), lines.count("v")), (3 * 128, 128))  # has 4 x 2 warps

    def test_what_cannot_run(self):
        """The view also shows tiles with too many threads: who would compute what, and that they
        cannot run."""
        self.link(kernel="edges", tile=33)
        text = self.read("#panel-owners")
        self.assertIn("cannot run: 1089 threads a block; the limit is 1024 threads", text)
        self.assertEqual(self.read_fact("threads"), "33 x 33 = 1,089, 35 warps")


if __name__ == "__main__":
    tilegemm[0] = os.path.abspath(sys.argv.pop(1))
    unittest.main()
