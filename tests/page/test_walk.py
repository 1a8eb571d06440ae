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
        self.click("4 x 4, tile 2")
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
        self.unfold()
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
                        self.assertEqual(text.replace(",", ""),
                                         f"{expected[x, y]:g}" if is_inside else "-")
                shared = [float(text.replace(",", "")) for kind in "ab"
                          for line in self.read_grid(kind) for text in line]
                self.assertEqual(shared, phases[2 * step]["shared"])

    def test_zeros_are_marked(self):
        self.link(m=6, n=7, k=5, kernel="edges", tile=4, blockRow=1, blockCol=1, at=4)
        self.assertEqual(self.count("table.tile-a td.zero"), 14)  # has 2 rows x 1 column inside
        self.assertEqual(self.count("table.tile-b td.zero"), 13)  # has 1 x 3
        self.assertEqual(self.count("svg .outside"), 12)  # of matrices and of tiles

    def test_terms(self):
        self.link(**FOUR, at=6)
        terms = self.read(".terms").split("\n")
        self.assertEqual(terms, ["D(0, 0) = 104 + 2 x 108 + 3 x 112 = 656",
                                 "D(0, 1) = 105 + 2 x 109 + 3 x 113 = 662",
                                 "D(1, 0) = 920 + 6 x 108 + 7 x 112 = 2352",
                                 "D(1, 1) = 929 + 6 x 109 + 7 x 113 = 2374"])
        self.assertEqual(self.read(".thread-scale h2"), "The threads of the block, a sum each")
        self.link(**FOUR, at=0, thread=1)
        self.assertEqual(self.read(".thread-scale h2"), "thread (0, 1), (row, column) in its block")
        for thread, row, col in ((0, 0, 4), (6, 1, 6), (13, 3, 5)):
            self.link(m=6, n=7, k=5, kernel="edges", tile=4, blockCol=1, at=2, thread=thread)
            place, terms, total = self.read(".terms").split(" = ")
            self.assertEqual(place, f"D({row}, {col})")
            self.assertEqual(eval(terms.replace("x", "*")), int(total))
            self.assertEqual(total, self.read_grid("d")[row][col - 4])
        self.link(m=6, n=7, k=5, kernel="edges", tile=4, blockCol=1, at=2, thread=7)
        self.assertIn("outside D", self.read(".terms"))

    def test_memory_has_no_sums_before_their_store(self):
        """The picture shows 32 numbers of A and B, the block's tiles and its sums, and D's own."""
        for place, block, stored in ((6, 0, []), (8, 0, ["656", "662", "2352", "2374"]),
                                     (2, 1, ["656", "662", "2352", "2374"])):
            self.link(**FOUR, at=place, blockCol=block)
            shown = [one.text for one in self.browser.find_all(".walk-picture text.cell")]
            self.assertEqual(sorted(shown[32:32 + len(shown) - 44]), sorted(stored))

    def test_large_numbers_are_readable(self):
        self.link(m=64, n=64, k=64, kernel="edges", tile=16, at=10 ** 6)
        self.assertIn("It stores 5,663,616 to D(0, 0)", self.read(".terms"))
        self.link(m=64, n=64, k=64, kernel="edges", tile=4, at=10 ** 6)
        shown = [one.text for one in self.browser.find_all(".walk-picture text.cell")]
        self.assertIn("5.66M5,663,616", shown)  # the whole number is its title
        self.assertFalse([text for text in shown if "e" in text])

    def test_moves(self):
        self.link(**FOUR)
        self.assertEqual(self.read_table("figure table")[:8],
                         [["(0, 0)", "reads", "A(0, 0)", "34"],
                          ["(0, 0)", "writes", "shared[0]", "34"],
                          ["(0, 0)", "reads", "B(0, 0)", "35"],
                          ["(0, 0)", "writes", "shared[4]", "35"],
                          ["(0, 1)", "reads", "A(0, 1)", "34"],
                          ["(0, 1)", "writes", "shared[1]", "34"],
                          ["(0, 1)", "reads", "B(0, 1)", "35"],
                          ["(0, 1)", "writes", "shared[5]", "35"]])
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
                          ("loaded", "global_read_elems"), ("uses", "naive_read_elems")):
            self.assertEqual(read_numbers(self.read_count(name)), [told[key], told[key]], told)

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

    def test_uses_only_grow(self):
        """From place to place, past ends of blocks too."""
        self.link(**FOUR)
        uses = []
        for _ in range(20):
            uses.append(read_numbers(self.read_count("uses"))[0])
            self.click("Step")
        self.assertEqual(uses, sorted(uses))
        self.assertEqual((uses[0], uses[9], uses[-1]), (0, 32, 64))

    def press_play(self, expected):
        """Presses the button that plays and pauses. Then its name is `expected`."""
        self.browser.find("#panel-walk button.play").click()
        self.assertEqual(self.read("#panel-walk button.play"), expected)

    def test_play(self):
        self.link(**FOUR, speed=2, at=7)
        self.press_play("Pause")
        self.wait_for(lambda: self.browser.read_state().get("blockCol") == "1")
        self.press_play("Play")
        place = self.browser.read_state()
        ActionChains(self.driver).pause(0.8).perform()
        self.assertEqual(self.browser.read_state(), place)
        self.link(**FOUR, speed=2, blockRow=1, blockCol=1, at=7)
        self.press_play("Pause")
        self.wait_for(lambda: self.read("button.play") == "Play")
        self.assertEqual(self.browser.read_state()["at"], "8")
        self.press_play("Pause")  # at the end it starts again
        self.assertNotIn("blockRow", self.browser.read_state())
        self.browser.show("owners")  # this stops the walk
        ActionChains(self.driver).pause(0.8).perform()
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
        self.focus(self.browser.find("#panel-walk .scrub"))
        self.press(Keys.ARROW_RIGHT)
        self.assertEqual(self.browser.read_state()["at"], "2")

    def test_scrub_is_dragged(self):
        self.link(**FOUR)
        slider = self.browser.find("#panel-walk .scrub")
        half = slider.rect["width"] // 2
        ActionChains(self.driver).move_to_element_with_offset(slider, 10 - half, 0) \
            .click_and_hold().move_by_offset(half - 10, 0).release().perform()
        self.assertEqual(self.browser.read_state()["at"], "4")

    def test_a_click_chooses_the_block(self):
        self.link(m=48, n=64, k=32, kernel="edges", tile=16)
        # Lies at column 38 of 64, row 43 of 48.
        self.click_at("#panel-walk .walk-picture .hit", 0.6, 0.9)
        self.assertEqual(self.read_count("block"), "row 2, column 2 of 3 x 4")
        self.browser.type_number("blockRow", 1)
        self.assertEqual(self.read_count("block"), "row 1, column 2 of 3 x 4")
        self.browser.type_number("blockCol", 3)
        self.assertEqual(self.read_count("block"), "row 1, column 3 of 3 x 4")

    def test_a_click_chooses_the_thread(self):
        self.link(m=48, n=64, k=32, kernel="edges", tile=16)
        self.click_at("#panel-walk .hit-thread", 0.6, 0.9)  # lies at column 9, row 14 of the tile
        self.assertEqual(self.browser.read_state()["thread"], str(14 * 16 + 9))
        self.assertIn("thread (14, 9)", self.read(".thread-scale"))

    def unfold(self):
        self.driver.execute_script(
            "document.querySelectorAll('#panel-walk details').forEach(one => { one.open = true; })")

    def test_one_screen(self):
        """Matrices, shared memory, registers and the line of code stand side by side on a screen of
        1440 x 900, whatever the size. On a phone the picture follows the controls."""
        self.browser.resize(1440, 900)
        try:
            for sizes in ((4, 4, 4), (55, 43, 48), (1000, 1200, 800), (16384,) * 3):
                self.link(**dict(zip("mnk", sizes)), kernel="edges", at=2)
                picture, code, play = (self.browser.find(f"#panel-walk {name}").rect for name in
                                       ("svg.walk-picture", ".kernel-source .here", ".play"))
                self.assertLess(play["y"], 220, sizes)
                self.assertLess(picture["y"] + picture["height"], 900, sizes)
                self.assertLess(code["y"] + code["height"], 900, sizes)
                self.assertGreater(code["x"], picture["x"] + picture["width"], sizes)
            self.browser.resize(400, 800)
            self.link(m=1000, n=1200, k=800, kernel="edges", at=2)
            player, picture = (self.browser.find(f"#panel-walk {name}").rect for name in
                               (".player", "svg.walk-picture"))
            self.assertLess(picture["y"] - player["y"] - player["height"], 60)
            self.assertLess(picture["y"], 430)
        finally:
            self.browser.resize(1200, 1000)

    def test_the_player_stays(self):
        self.browser.resize(400, 800)
        try:
            self.link(**FOUR)
            self.driver.execute_script("scrollTo(0, 500)")
            self.assertLess(self.driver.execute_script(
                "return document.querySelector('#panel-walk .play').getBoundingClientRect().top"),
                60)
        finally:
            self.browser.resize(1200, 1000)

    def test_motion(self):
        """Elements fly, threads wait, products light up, unless a person asked for less motion."""
        kinds = {0: ".flight", 1: ".waits", 2: ".lit", 8: ".flight"}
        for feature, name in (("no-preference", "fly"), ("reduce", "none")):
            self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {
                "features": [{"name": "prefers-reduced-motion", "value": feature}]})
            for at, kind in kinds.items():
                self.link(**FOUR, at=at)
                self.assertGreaterEqual(self.count(f".walk-picture {kind}"), 4, at)
            self.assertEqual(self.driver.execute_script(
                "return getComputedStyle(document.querySelector('.flight')).animationName"), name)
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})

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
            self.assertEqual(len(boxes[0]), 3)
            for (x, y, width, height), tile in zip(*boxes):
                self.assertGreaterEqual(min(tile[2:]), 6)
                self.assertGreaterEqual(tile[0], x - 0.01)
                self.assertGreaterEqual(tile[1], y - 0.01)
                self.assertLessEqual(tile[0] + tile[2], x + width + 0.01)
                self.assertLessEqual(tile[1] + tile[3], y + height + 0.01)

    def test_refusal(self):
        self.link(m=5, n=3, k=7, kernel="tiled", tile=2)
        self.assertIn("must divide", self.read(".warn"))
        self.click("Take the kernel edges")
        self.assertEqual(self.read_count("block"), "row 0, column 0 of 3 x 2")

    def test_marked_line(self):
        for kernel, at, text in (("edges", 0, "load<T>"), ("edges", 1, "has yet to write"),
                                 ("edges", 2, "compute<T>"), ("edges", 3, "still read"),
                                 ("naive", 0, "sum +="), ("buffered", 0, "copy_async_wait"),
                                 ("buffered", 1, "__syncthreads"), ("warp_tile", 2, "compute<T>")):
            self.link(m=64, n=64, k=64, kernel=kernel, at=at)
            self.assertIn(text, self.read(".kernel-source .here"))


if __name__ == "__main__":
    tilegemm[0] = os.path.abspath(sys.argv.pop(1))
    unittest.main()
