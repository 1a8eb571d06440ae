#!/usr/bin/env python3
"""Tests the walk tile by tile in a browser: numbers beside those of explain and simulate, mouse and
keys.

usage: test_walk.py TILEGEMM
"""
import math
import os
import random
import sys
import unittest

from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

from browser import read_json
from picture_case import PictureCase, TILES, read_numbers, tilegemm

PLAY_WAIT_S = 30
PHASES = {0: ("multiply",), 1: ("wait for the copy", "barrier", "multiply"),
          2: ("load", "barrier", "multiply", "barrier")}  # indexed by the barriers of a step
FOUR = {"m": 4, "n": 4, "k": 4, "kernel": "tiled", "tile": 2}


class Walk(PictureCase):
    view = "walk"

    def read_grid(self, kind):
        return self.read_table(f"table.tile-{kind}")

    def read_count(self, name):
        return self.read(f"[data-count={name}]")

    def read_phase(self):
        return self.read(".clock [aria-current]")

    def wait_for(self, condition):
        WebDriverWait(self.driver, PLAY_WAIT_S, 0.02).until(lambda driver: condition())

    def test_walkthrough(self):
        self.click("4 x 4, tile 2: the walkthrough")
        phases = ["load", "barrier", "multiply", "barrier"] * 2 + ["store"]
        sums = [["·", "·"], ["·", "·"]]
        for place, phase in enumerate(phases):
            self.assertEqual(self.read_phase(), phase)
            self.assertIn(phase, self.read(".status"))
            if place == 0:
                self.assertEqual(self.read_grid("a"), [["0", "1"], ["4", "5"]])
                self.assertEqual(self.read_grid("b"), [["100", "101"], ["104", "105"]])
            if place == 2:
                sums = [["104", "105"], ["920", "929"]]
            if place == 6:
                sums = [["656", "662"], ["2352", "2374"]]
            self.assertEqual(self.read_grid("d"), sums, place)
            self.click("Step")
        # The next block comes past the end of a block.
        self.assertEqual(self.read_count("block"), "row 0, column 1 of 2 x 2")
        self.click("Step back")
        self.assertEqual(self.read_phase(), "store")
        self.assertEqual(read_numbers(self.read_count("issued")), [32, 128])
        self.assertEqual(read_numbers(self.read_count("loaded")), [16, 64])
        self.assertIn("simulator", self.read("#panel-walk .hint"))

    def test_sums_and_tiles_are_the_simulators(self):
        """The last block, which edges cut, has the simulator's sums. The report holds the first
        four cases."""
        for m, n, k, kernel, tile in ((4, 4, 4, "tiled", 2), (6, 7, 5, "edges", 4),
                                      (3, 5, 3, "edges", 2), (5, 7, 9, "edges", 3),
                                      (5, 9, 6, "edges", 2), (11, 6, 9, "edges", 4),
                                      (13, 11, 8, "edges", 5)):
            told = read_json(tilegemm[0], "simulate", f"{m}x{n}x{k}", "--kernel", kernel, "--tile",
                             str(tile), "--trace")
            row, col = (m - 1) // tile, (n - 1) // tile
            phases = [phase for phase in told["phases"] if phase["block"] == [col, row]]
            for step in range(math.ceil(k / tile)):
                self.link(m=m, n=n, k=k, kernel=kernel, tile=tile, blockRow=row, blockCol=col,
                          at=4 * step + 2)
                expected = {tuple(one["thread"]): one["value"]
                            for one in phases[2 * step + 1]["sums"]}
                for y, line in enumerate(self.read_grid("d")):
                    for x, text in enumerate(line):
                        is_inside = row * tile + y < m and col * tile + x < n
                        self.assertEqual(text, f"{expected[x, y]:g}" if is_inside else "-")
                shared = [float(text) for kind in "ab" for line in self.read_grid(kind)
                          for text in line]
                self.assertEqual(shared, phases[2 * step]["shared"])

    def test_zeros_are_marked(self):
        self.link(m=6, n=7, k=5, kernel="edges", tile=4, blockRow=1, blockCol=1, at=4)
        self.assertEqual(self.count("table.tile-a td.zero"), 14)  # has 2 rows x 1 column inside
        self.assertEqual(self.count("table.tile-b td.zero"), 13)  # has 1 x 3
        self.assertEqual(self.count("svg .outside"), 6)

    def test_terms(self):
        self.link(**FOUR, at=6)
        terms = self.read(".terms").split("\n")
        self.assertEqual(terms[0], "D(0, 0) = 104 + 2 x 108 + 3 x 112 = 656")
        self.link(m=6, n=7, k=5, kernel="edges", tile=4, blockCol=1, at=2)
        terms = self.read(".terms").split("\n")
        self.assertEqual(len(terms), 12)  # has 4 rows x 3 columns inside
        sums = [text for line in self.read_grid("d") for text in line if text != "-"]
        for line, total in zip(terms, sums):
            place, terms, end = line.split(" = ")
            self.assertTrue(place.startswith("D("))
            self.assertEqual((eval(terms.replace("x", "*")), end), (int(total), total))

    def test_moves(self):
        self.link(**FOUR)
        self.assertEqual(self.read_table("figure table")[:4],
                         [["(0, 0)", "reads", "A(0, 0)", "34"],
                          ["(0, 0)", "writes", "shared[0]", "34"],
                          ["(0, 0)", "reads", "B(0, 0)", "35"],
                          ["(0, 0)", "writes", "shared[4]", "35"]])
        self.link(**FOUR, at=8)
        self.assertEqual([row[2] for row in self.read_table("figure table")],
                         ["D(0, 0)", "D(0, 1)", "D(1, 0)", "D(1, 1)"])

    def test_counts_are_the_models(self):
        source = random.Random(7)
        for _ in range(30):
            m, n, k = (source.randint(1, 300) for _ in range(3))
            kernel = source.choice(sorted(TILES))
            tile = source.choice(TILES[kernel])
            told = read_json(tilegemm[0], "explain", f"{m}x{n}x{k}", "--kernel", kernel, "--tile",
                             str(tile), "--gpu", "h200")
            self.check_end(told)
            self.check_within(told, source)

    def check_end(self, told):
        """At the end of the last block, everything is done that the model counts."""
        steps = math.ceil(told["k"] / told["tile_depth"])
        phases = PHASES[told["barriers"] // told["block_count"] // steps]
        self.link(m=told["m"], n=told["n"], k=told["k"], kernel=told["family"],
                  tile=told["tile_rows"], blockRow=10 ** 6, blockCol=10 ** 6, at=10 ** 6)
        self.assertEqual(self.read_phase(), "store")
        self.assertEqual(self.count(".clock li"), len(phases) + 1)
        for name, key in (("issued", "issued_flops"), ("useful", "useful_flops"),
                          ("loaded", "global_read_elems")):
            self.assertEqual(read_numbers(self.read_count(name)), [told[key], told[key]], told)
        self.assertAlmostEqual(float(self.read_count("reuse").replace(",", "")) / told["reuse"], 1,
                               delta=1e-3)

    def check_within(self, told, source):
        """Anywhere, what is done is the rows of blocks above, the blocks at the left, and a part of
        this one."""
        m, n, k = told["m"], told["n"], told["k"]
        steps = math.ceil(k / told["tile_depth"])
        phases = PHASES[told["barriers"] // told["block_count"] // steps]
        row = source.randrange(math.ceil(m / told["tile_rows"]))
        col = source.randrange(math.ceil(n / told["tile_cols"]))
        at = source.randrange(steps * len(phases))
        self.link(m=m, n=n, k=k, kernel=told["family"], tile=told["tile_rows"], blockRow=row,
                  blockCol=col, at=at)
        self.assertEqual(self.read_phase(), phases[at % len(phases)])
        self.assertEqual(read_numbers(self.read_count("step")), [at // len(phases) + 1, steps])
        is_multiplied = at % len(phases) >= phases.index("multiply")
        depth = min(k, (at // len(phases) + is_multiplied) * told["tile_depth"])
        top, left = row * told["tile_rows"], col * told["tile_cols"]
        height, width = min(told["tile_rows"], m - top), min(told["tile_cols"], n - left)
        self.assertEqual(read_numbers(self.read_count("useful"))[0],
                         2 * (top * n * k + height * left * k + height * width * depth), told)

    def test_play(self):
        self.link(**FOUR, speed=8)
        self.click("Play")
        self.wait_for(lambda: self.browser.read_state().get("blockCol") == "1")
        self.click("Pause")
        place = self.browser.read_state()
        ActionChains(self.driver).pause(0.4).perform()
        self.assertEqual(self.browser.read_state(), place)
        self.link(**FOUR, speed=8, blockRow=1, blockCol=1, at=5)
        self.click("Play")
        self.wait_for(lambda: self.read("button.play") == "Play")
        self.assertEqual(self.browser.read_state()["at"], "8")
        self.link(**FOUR, speed=8)
        self.click("Play")
        self.browser.show("owners")  # this stops the walk
        ActionChains(self.driver).pause(0.4).perform()
        self.browser.show("walk")
        self.assertEqual(self.read("button.play"), "Play")

    def test_keys(self):
        self.link(**FOUR)
        self.focus(next(one for one in self.browser.find_all("button") if one.text == "Step"))
        self.press(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
        self.assertEqual(self.read_grid("d"), [["104", "105"], ["920", "929"]])
        self.press(Keys.ARROW_LEFT)
        self.assertEqual(self.browser.read_state()["at"], "1")
        self.press(Keys.END)
        self.assertEqual(self.read_phase(), "store")
        self.press(Keys.HOME)
        self.assertEqual(self.read_phase(), "load")
        self.press(Keys.ENTER)
        self.assertEqual(self.browser.read_state()["at"], "1")
        self.focus(self.browser.find("#walk-scrub"))
        self.press(Keys.ARROW_RIGHT)
        self.assertEqual(self.browser.read_state()["at"], "2")

    def test_scrub_is_dragged(self):
        self.link(**FOUR)
        slider = self.browser.find("#walk-scrub")
        half = slider.rect["width"] // 2
        ActionChains(self.driver).move_to_element_with_offset(slider, 10 - half, 0) \
            .click_and_hold().move_by_offset(half - 10, 0).release().perform()
        self.assertEqual(self.browser.read_state()["at"], "4")

    def test_a_click_chooses_the_block(self):
        self.link(m=48, n=64, k=32, kernel="edges", tile=16)
        self.click_at(".walk-picture .hit", 0.6, 0.9)  # lies at column 38 of 64, row 43 of 48
        self.assertEqual(self.read_count("block"), "row 2, column 2 of 3 x 4")
        self.browser.type_number("blockRow", 1)
        self.assertEqual(self.read_count("block"), "row 1, column 2 of 3 x 4")
        self.browser.type_number("blockCol", 3)
        self.assertEqual(self.read_count("block"), "row 1, column 3 of 3 x 4")

    def find_wide(self):
        """Returns the drawings and tables of numbers that a screen must scroll."""
        return self.driver.execute_script(
            "return [...document.querySelectorAll('#panel-walk :is(.scroll, .grid-of-numbers)')]"
            ".filter(one => one.scrollWidth > one.clientWidth + 1)"
            ".map(one => `${one.ariaLabel} ${one.scrollWidth}`)")

    def test_fits(self):
        """Tiles of 16 columns fit on a desk, beside the picture. On a phone the picture fits."""
        for sizes in ((256, 256, 256), (55, 43, 48), (1000, 1200, 800)):
            state = dict(zip("mnk", sizes), kernel="edges", tile=16, at=2, blockRow=10 ** 6)
            self.link(**state)
            self.assertEqual(self.find_wide(), [], sizes)
            picture, grid = (self.browser.find(name).rect for name in
                             ("svg.walk-picture", "table.tile-a"))
            if sizes[0] < 1000:  # larger ones have numbers of six digits
                self.assertGreater(grid["x"], picture["x"] + picture["width"], sizes)
                self.assertLess(grid["y"], picture["y"] + picture["height"], sizes)
            self.browser.resize(360, 740)
            try:
                self.link(**state, speed=4)
                self.assertNotIn("drawing", " ".join(self.find_wide()))
                self.link(**FOUR)
                self.assertEqual(self.find_wide(), [])
            finally:
                self.browser.resize(1200, 1000)

    def test_tiles_of_large_matrices_are_seen(self):
        """Tiles are drawn within their matrices at every corner, tiles of less than a pixel too."""
        read = self.driver.execute_script
        for corner in (0, 10 ** 6):
            self.link(m=8192, n=8192, k=8192, kernel="edges", tile=16, blockRow=corner,
                      blockCol=corner, at=2 if corner == 0 else 4 * 511)
            boxes = read("""
                const box = one => {
                    const {x, y, width, height} = one.getBBox();
                    return [x, y, width, height];
                };
                const all = name => [...document.querySelectorAll(`.walk-picture ${name}`)];
                return ['.matrix', '.tile'].map(name => all(name).map(box));""")
            for (x, y, width, height), tile in zip(*boxes):
                self.assertGreaterEqual(min(tile[2:]), 6)
                self.assertGreaterEqual(tile[0], x - 0.01)
                self.assertGreaterEqual(tile[1], y - 0.01)
                self.assertLessEqual(tile[0] + tile[2], x + width + 0.01)
                self.assertLessEqual(tile[1] + tile[3], y + height + 0.01)

    def test_headings_stand_above_what_they_name(self):
        """Beside the picture or below it, shared memory and its tiles go together."""
        for state in (dict(m=8192, n=8192, k=8192, kernel="edges", tile=16),
                      dict(m=55, n=43, k=48, kernel="edges", tile=16), dict(FOUR),
                      dict(m=4, n=4, k=4, kernel="naive", tile=16)):
            self.link(**state)
            gaps = self.driver.execute_script("""
                const text = document.createRange();
                return [...document.querySelectorAll('#panel-walk h2')].map(heading => {
                    text.selectNodeContents(heading.nextElementSibling);
                    const [first] = text.getClientRects();
                    const {left, bottom} = heading.getBoundingClientRect();
                    return [first.left - left, first.top - bottom];
                });""")
            for across, down in gaps:
                self.assertLess(abs(across), 2, state)
                self.assertLess(down, 40, state)

    def test_refusal(self):
        self.link(m=5, n=3, k=7, kernel="tiled", tile=2)
        self.assertIn("must divide", self.read(".warn"))
        self.click("Take the kernel edges")
        self.assertEqual(self.read_count("block"), "row 0, column 0 of 3 x 2")

    def test_marked_line(self):
        for kernel, at, text in (("edges", 0, "load<T>"), ("edges", 1, "has yet to write"),
                                 ("edges", 2, "compute<T>"), ("edges", 3, "still reads"),
                                 ("naive", 0, "sum +="), ("buffered", 0, "copy_async_wait"),
                                 ("buffered", 1, "__syncthreads"), ("warp_tile", 2, "compute<T>")):
            self.link(m=64, n=64, k=64, kernel=kernel, at=at)
            self.assertIn(text, self.read(".kernel-source .here"))


if __name__ == "__main__":
    tilegemm[0] = os.path.abspath(sys.argv.pop(1))
    unittest.main()
