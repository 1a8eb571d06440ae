#!/usr/bin/env python3
"""Tests the page with random products in a browser: it shows what the command prints.

usage: test_random_products.py TILEGEMM
"""
import os
import random
import sys
import unittest

from selenium.webdriver.support.ui import Select

from browser import read_json
from page_case import FAMILIES, PageCase, choose_seed, count_cases, tilegemm

CHIPS = ("t4", "a100", "h200", "rtx4090")
ON_TENSOR_CORES = ("warp_mma", "warpgroup_mma")


class RandomProducts(PageCase):
    def test_model_is_the_commands(self):
        """Types in 30 random cases: the tables show what explain prints."""
        choose = random.Random(choose_seed(1))
        for _ in range(count_cases(30)):
            m, n, k = (choose.choice((choose.randint(1, 70), choose.randint(1, 3000)))
                       for _ in range(3))
            family, chip = choose.choice(FAMILIES), choose.choice(CHIPS)
            self.type_sizes(m, n, k)
            self.browser.choose("kernel", family)
            self.browser.choose("chip", chip)
            tiles = Select(self.browser.find("select[data-key=tile]"))
            tile = int(choose.choice(tiles.options).text)
            tiles.select_by_value(str(tile))
            told = self.explain(m, n, k, family, tile, chip)
            case = (m, n, k, family, tile, chip)
            self.browser.show("roofline")
            values = dict(self.browser.read_tables("roofline")[1])
            self.assert_near(values["FLOP a byte asked for"], told["flop_per_byte"], case)
            self.assertEqual(values["threads a block"], told["threads_per_block"], case)
            self.assertEqual(values["registers a thread"], told["registers_per_thread"], case)
            self.assertEqual(values["blocks a multiprocessor"], told["resident_blocks"], case)
            chosen = [row for row in self.browser.read_tables("roofline")[0]
                      if row[0].endswith("(chosen)")]
            self.assertEqual(len(chosen), 1, case)
            self.assertEqual(chosen[0][4], told["shared_bytes"], case)
            times = [row for row in values if row.startswith("predicted")]
            if told["is_legal"]:
                self.assert_near(chosen[0][3], told["useful_flops"] / told["predicted_s"] / 1e9,
                                 case)
                self.assertEqual(len(times), 2, case)
            else:  # nothing is predicted for what cannot run
                self.assertEqual((chosen[0][3], times), ("-", []), case)
            self.assertEqual(chosen[0][7],
                             told["bound"] if told["is_legal"] else told["reason"], case)
            self.check_verdict(told, case)
            self.check_reads(told, case)

    def check_verdict(self, told, case):
        """The words say on which side of the ridge of its unit the tile lies."""
        text = self.browser.find("#panel-roofline .verdict").text
        is_left = told["flop_per_byte"] < told["ridge_flop_per_byte"]
        self.assertIn("not legal" if not told["is_legal"] else "left of the ridge" if is_left
                      else "right of the ridge", text, case)
        units = {row[0]: row for row in self.browser.read_tables("roofline")[2]}
        names = ("BF16 tensor cores", "FP16 tensor cores") if told["family"] in ON_TENSOR_CORES \
            else ("FP32 units",)
        unit = next(units[name] for name in names if name in units)
        self.assertAlmostEqual(unit[2], told["ridge_flop_per_byte"], delta=0.06)

    def check_reads(self, told, case):
        self.browser.show("reads")
        tables = self.browser.read_tables("reads")
        name = f"{told['family']} {told['tile_rows']} x {told['tile_cols']}"
        levels = (told["global_read_bytes"], 32 * told["global_load_sectors"],
                  told["dram_read_bytes"])
        for table, bytes_read in zip(tables, levels):
            self.assert_near({row[0]: row for row in table}[name][1], bytes_read, case)
        row = {row[0]: row for row in tables[3]}[name]
        self.assertEqual([row[1], row[3], row[5]],
                         [told["shared_load_requests"], told["bank_conflicts"], told["barriers"]],
                         case)

    def test_counts_are_the_simulators(self):
        """Types in 30 random small sizes: what the page counts is what simulate counts."""
        choose = random.Random(choose_seed(2))
        self.browser.show("reads")
        for _ in range(count_cases(30)):
            m, n, k = (choose.randint(1, 40) for _ in range(3))
            family = choose.choice(("naive", "coalesced", "edges", "transposed", "padded"))
            tile = choose.randint(1, 32)
            self.type_sizes(m, n, k)
            self.browser.choose("kernel", family)
            self.browser.choose("tile", tile)
            told = read_json(tilegemm[0], "simulate", f"{m}x{n}x{k}", "--kernel", family, "--tile",
                             str(tile))
            name = f"{family} {tile} x {tile}"
            tables = self.browser.read_tables("reads")
            found = [row for row in tables[0] if row[0] == name]
            self.assertEqual(found[0][1], told["global_read_bytes"], (m, n, k, name))
            row = [row for row in tables[1] if row[0] == name][0]
            self.assertEqual(row[1], 32 * told["global_load_sectors"], (m, n, k, name))


if __name__ == "__main__":
    tilegemm[0] = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)
