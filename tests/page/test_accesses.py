#!/usr/bin/env python3
"""Tests coalescing and banks in a browser: requests beside those of simulate, mouse and keys.

usage: test_accesses.py TILEGEMM
"""
import os
import re
import sys
import unittest

from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from browser import read_json
from picture_case import PictureCase, TILES, read_numbers, tilegemm

# A report holds simulations of these tiles without a row in the kernel table, at this size. It
# opens with tile 16, and holds that one at its own size.
FURTHER, FURTHER_SHAPE = (3, 5, 8, 12, 20), "60x120x60"


class Accesses(PictureCase):
    view = "accesses"
    shape = "250x130x70"

    def test_requests_are_the_simulators(self):
        for kernel, tile in ((kernel, tile) for kernel, tiles in TILES.items() for tile in tiles):
            is_row = read_json(tilegemm[0], "explain", self.shape, "--kernel", kernel, "--tile",
                               str(tile))["is_in_table"]
            if not is_row and tile not in (16, *FURTHER):
                continue
            shape = self.shape if is_row or tile == 16 else FURTHER_SHAPE
            told = read_json(tilegemm[0], "simulate", shape, "--kernel", kernel, "--tile",
                             str(tile), "--requests")
            groups = {}
            for one in told["requests"]:
                key = (one["line"], one["caller_line"], one["space"], one["is_write"])
                groups.setdefault(key, []).append(one)
            self.link(kernel=kernel, tile=tile)
            select = self.browser.find("select[data-key=access]")
            names = [option.text for option in select.find_elements(By.TAG_NAME, "option")]
            self.assertEqual(len(names), len(groups))
            for index, name in enumerate(names):
                group = groups[self.read_name(name)]
                self.link(kernel=kernel, tile=tile, access=index, request=len(group) - 1)
                self.check_request(group[-1], told)

    def read_name(self, name):
        line, caller, verb, place = re.fullmatch(
            r"line (\d+)(?: \(called at (\d+)\))? (reads|writes|copies to) (.*)", name).groups()
        return int(line), int(caller or 0), place.replace("shared memory", "S"), verb != "reads"

    def check_request(self, one, told):
        lanes = [lane for lane in one["lanes"] if lane is not None]
        rows = [[int(text) for text in row] for row in self.read_table("figure table")]
        size = one["elem_bytes"] * one["elem_count"]
        shown = read_numbers(self.read(".status"))
        if one["space"] == "S":
            turns = sum(group["turns"] for group in one["groups"])
            groups = sum(group["turns"] > 0 for group in one["groups"])
            self.assertEqual(shown, [len(lanes), size * len(lanes), turns, turns - groups])
            self.assertEqual([row[1] for row in rows], lanes)
            self.assertEqual([row[3] for row in rows], [lane % 32 for lane in lanes])
            self.assertEqual(self.count(".accesses text.side"), turns)  # each row is a turn
            return
        self.assertEqual(shown, [len(lanes), size * len(lanes), one["sector_count"],
                                 32 * one["sector_count"]])
        cols = told["k"] if one["space"] == "A" else told["n"]
        self.assertEqual([row[1] * cols + row[2] for row in rows], lanes)
        self.assertEqual(len({row[5] for row in rows}), one["sector_count"])
        self.assertEqual(self.count(".accesses .sector"), one["sector_count"])
        self.assertEqual(self.count(".accesses .unused") + self.count(".accesses .asked"),
                         8 * one["sector_count"])

    def test_the_conflict_and_its_cure(self):
        self.click("Rung 5: B transposed, 32 turns")
        self.assertIn("32 turns of shared memory, 31 of them bank conflicts", self.read(".status"))
        self.assertEqual((self.count(".asked"), self.count(".conflict")), (1, 31))
        self.click("Rung 6: the cure, a column of padding")
        self.assertIn("1 turn of shared memory, 0 of them", self.read(".status"))
        self.assertEqual((self.count(".asked"), self.count(".conflict")), (32, 0))
        self.click("Rung 1: a warp down a column of A")
        self.assertEqual(read_numbers(self.read(".status"))[2], 32)
        self.click("Rung 2: a warp along a row of B")
        self.assertIn(read_numbers(self.read(".status"))[2], (4, 5))

    def test_controls(self):
        self.link(kernel="transposed", tile=32)
        shown = set()
        for option in range(3):
            self.browser.choose("access", option)
            shown.add(self.read("pre.one-line") + self.read("figcaption") + self.read(".status"))
        self.assertEqual(len(shown), 3)
        self.focus(self.browser.find("#range-request"))
        self.press(Keys.ARROW_RIGHT)
        self.assertEqual(self.browser.read_state()["request"], "1")

    def test_sizes(self):
        """The view shows the requests of the state if the report holds them. Otherwise it shows the
        report's own, and says so."""
        for m, n, k, shown in ((128, 128, 32, "128 x 128 x 32"), (999, 9, 9, "250 x 130 x 70")):
            self.link(m=m, n=n, k=k, kernel="edges", tile=16)
            self.assertIn(shown, self.browser.find_all(".hint")[-1].text)

    def test_small_tiles(self):
        self.link(kernel="edges", tile=2)
        self.assertIn("4 lanes ask for 16 bytes", self.read(".status"))


if __name__ == "__main__":
    tilegemm[0] = os.path.abspath(sys.argv.pop(1))
    unittest.main()
