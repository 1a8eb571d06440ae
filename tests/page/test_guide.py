#!/usr/bin/env python3
"""Tests a visitor's first minutes in a browser: what the page opens with, the chapters by keyboard,
at the sizes of a desk and a phone, the way to the visitor's own product.

usage: test_guide.py TILEGEMM
"""
import os
import sys
import unittest

from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

from browser import read_json
from page_case import PageCase, SMALL_TEXTS, make_file, make_record, tilegemm

OWN = (96, 80, 64)
CHAPTERS = 13
PLAY_WAIT_S = 20
# This script returns the names of patterns that pictures fill with and that do not exist.
MISSING_STRIPES = """
    return [...document.querySelectorAll('main svg *')].map(
        one => getComputedStyle(one).fill.match(/url\\("#(.*)"\\)/)?.[1]).filter(
        id => id && !document.getElementById(id));"""
EDGES = "cuda_edges_sm75_fp32_16x16x16"
WARP_MMA = "cuda_warp_mma_sm80_bf16_128x128x32"


class Guide(PageCase):
    shape = OWN

    @classmethod
    def make_files(cls):
        return ["--bench", make_file(cls.folder, "own.json", [
            make_record(WARP_MMA, "kernel", OWN, 432.0, ":bf16", type="bf16"),
            make_record("cublas", "peer", OWN, 987.0, ":bf16", type="bf16"),
            make_record(EDGES, "kernel", OWN, 321.0), make_record("cublas", "peer", OWN, 654.0)])]

    def setUp(self):
        self.browser.open(self.path)

    def read(self, selector):
        return self.browser.find(f"#panel-guide {selector}").text

    def read_facts(self):
        names, values = ([one.text for one in self.browser.find_all(f"#panel-guide .facts {tag}")]
                         for tag in ("dt", "dd"))
        return dict(zip(names, values))

    def press(self, *keys):
        ActionChains(self.browser.driver).send_keys(*keys).perform()

    def go(self, chapter, **state):
        self.browser.open(self.path, "&".join(
            f"{key}={value}" for key, value in {"chapter": chapter - 1, **state}.items()))

    def wait_for(self, condition):
        WebDriverWait(self.browser.driver, PLAY_WAIT_S, 0.05).until(lambda driver: condition())

    def test_the_page_opens_with_the_walk_running(self):
        """Whatever the report's size, 4 x 4 matrices are multiplied, and a sentence says what it
        is."""
        self.assertEqual(self.browser.find("h1").text, "How a GPU multiplies matrices")
        self.assertIn("your own 96 x 80 x 64", self.read(".lead"))
        self.assertEqual(self.read("button.play"), "Pause")
        self.wait_for(lambda: int(self.browser.read_state().get("at", 0)) >= 3)
        self.browser.find("#panel-guide button.play").click()
        self.assertEqual(self.read("button.play"), "Play")
        self.assertRegex(self.read("[data-count=block]"), "of 2 x 2$")

    def test_nothing_runs_for_who_asked_for_less_motion(self):
        driver = self.browser.driver
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {
            "features": [{"name": "prefers-reduced-motion", "value": "reduce"}]})
        try:
            self.browser.open(self.path)
            self.assertEqual(self.read("button.play"), "Play")
            ActionChains(driver).pause(0.8).perform()
            self.assertNotIn("at", self.browser.read_state())
        finally:
            driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})

    def test_one_click_to_the_own_product(self):
        self.browser.find(".own-product").click()
        self.assertEqual(self.browser.find("h1").text, "D = A B: 96 x 80 x 64 on H200 SXM")
        self.assertEqual(self.browser.read_state()["view"], "walk")
        self.browser.open(self.path, "m=5&n=6&k=7")
        self.browser.find(".own-product").click()
        self.assertEqual(self.browser.find("h1").text, "D = A B: 96 x 80 x 64 on H200 SXM")

    def test_chapters_by_keyboard(self):
        """Arrows lead through the chapters. Each has a heading, a control that keys reach, and a
        figure, and fits a screen of 1440 x 900."""
        self.browser.resize(1440, 900)
        run = self.browser.driver.execute_script
        try:
            self.go(1)
            run("document.querySelector('.path [aria-current]').focus()")
            titles = set()
            for chapter in range(1, CHAPTERS + 1):
                titles.add(self.read("h2"))
                self.assertTrue(self.read("h2").startswith(f"{chapter}. "))
                self.assertEqual(len(self.browser.find_all("#panel-guide figure")), 1, chapter)
                self.assertTrue(self.browser.find_all(
                    "#panel-guide .chapter :is(input, select, fieldset button)"), chapter)
                self.assertLess(run("return document.querySelector('#panel-guide .chapter"
                                    ":not([hidden]) figure .drawing').getBoundingClientRect()"
                                    ".bottom"), 900, chapter)
                self.assertEqual(run(SMALL_TEXTS), [], chapter)
                self.press(Keys.ARROW_RIGHT)
            self.assertEqual(len(titles), CHAPTERS)
            self.press(Keys.ARROW_RIGHT)  # the last chapter stays
            self.assertEqual(self.browser.read_state()["chapter"], str(CHAPTERS - 1))
            self.press(Keys.ARROW_LEFT)
            self.assertEqual(self.browser.read_state()["chapter"], str(CHAPTERS - 2))
        finally:
            self.browser.resize(1200, 1000)

    def test_chapters_on_a_phone(self):
        """Nothing sticks out at 320 pixels, every text can be read at 400, and arrows tell of more
        tabs."""
        run = self.browser.driver.execute_script
        more = "return document.querySelector('.bar nav').dataset.more"
        try:
            for width in (320, 400):
                self.browser.resize(width, 800)
                self.go(1)
                self.assertEqual(run(more), "right")
                for chapter in range(1, CHAPTERS + 1):
                    self.assertEqual(run("return document.documentElement.scrollWidth"), width,
                                     chapter)
                    self.assertEqual(run(SMALL_TEXTS) if width == 400 else [], [], chapter)
                    if chapter < CHAPTERS:
                        self.browser.find(".path .next").click()
        finally:
            self.browser.resize(1200, 1000)

    def test_chapters_opened_alone(self):
        """Each has the stripes that its picture fills areas with."""
        for chapter in range(1, CHAPTERS + 1):
            self.go(chapter)
            self.assertEqual(self.browser.driver.execute_script(MISSING_STRIPES), [], chapter)

    def test_the_pipeline_fits_a_phone(self):
        try:
            self.browser.resize(320, 800)
            self.go(10)
            drawing = self.browser.find("svg.pipeline").rect
            self.assertLessEqual(drawing["x"] + drawing["width"], 320)
        finally:
            self.browser.resize(1200, 1000)

    def test_naive_reads(self):
        self.go(2, readers=16)
        facts = self.read_facts()
        self.assertEqual((facts["reads so far"], facts["different elements"],
                          facts["reads of each"]), ("128", "32", "4"))
        told = self.explain(*OWN, "naive", 16, "h200")
        self.assertEqual(facts["reads in your 96 x 80 x 64"], f"{told['global_read_elems']:,}")
        self.go(2, readers=0)
        self.assertEqual(self.read_facts()["reads so far"], "0")

    def test_facts_are_the_commands(self):
        self.go(3, lessonTile=8)
        told = self.explain(*OWN, "edges", 8, "h200")
        self.assertEqual(self.read_facts()["reads with this tile"],
                         f"{told['global_read_elems']:,}")
        for chapter, state, name, kernel, key in (
                (4, {"lanes": "coalesced"}, "sectors", "coalesced", "global_load_sectors"),
                (4, {"lanes": "naive"}, "sectors", "naive", "global_load_sectors"),
                (7, {"rowWords": "transposed"}, "conflicts", "transposed", "bank_conflicts"),
                (7, {"rowWords": "padded"}, "conflicts", "padded", "bank_conflicts")):
            self.go(chapter, **state)
            told = self.explain(*OWN, kernel, 32, "h200")
            self.assertEqual(self.read_facts()[f"{name} in your 96 x 80 x 64"], f"{told[key]:,}")
        self.go(6, side=6)
        told = self.explain(6, 6, 6, "edges", 4, "h200")
        self.assertEqual(self.read_facts()["FLOP issued"], f"{told['issued_flops']:,}")

    def test_races_are_the_simulators(self):
        for barrier in (1, 2):
            told = read_json(tilegemm[0], "simulate", "4x4x4", "--kernel", "tiled", "--tile", "2",
                             "--without-barrier", str(barrier), may_find=True)
            self.go(5, barrier=barrier)
            self.assertEqual(self.read_facts()["races found"], str(len(told["findings"])))
            self.assertEqual(self.read(".loop del").strip(), "__syncthreads();")
        self.assertEqual(self.read_facts()["wrong sums"], "3 of 4")
        self.assertIn("not 662", self.read("svg.race"))
        self.go(5)
        self.assertEqual(self.read_facts()["wrong sums"], "0 of 4")

    def test_occupancy(self):
        """It is the command's, and the limiter's bar says so."""
        for kernel, tile, chip in (("edges", 4, "t4"), ("edges", 16, "h200"),
                                   ("register_tile", 128, "a40")):
            told = self.explain(4096, 4096, 4096, kernel, tile, chip)
            self.go(9, resident=f"{kernel}+{tile}", chip=chip)
            facts = self.read_facts()
            self.assertEqual(facts["occupancy"], f"{100 * told['occupancy']:.4g} %")
            self.assertEqual(facts["blocks a multiprocessor"], str(told["resident_blocks"]))
            limits = [text for text in self.read("figure .drawing").split("\n")
                      if "no more blocks" in text]
            self.assertEqual(len(limits), 1)
            places = self.browser.find_all("svg.warps text")
            self.assertEqual(len(places), told["resident_blocks"] * told["warps_per_block"])

    def test_roofs(self):
        """An H100's tensor cores have a ridge of 295 FLOP a byte; a tile of 591 crosses it."""
        self.go(11, chip="h100")
        self.assertEqual(self.read_facts()["BF16 tensor cores crossed by T ="], "591")
        self.assertIn("BF16 tensor cores: ridge 295.2", self.read("svg.plot"))

    def test_attention(self):
        """The traffic is the command's, and the softmax ends at the mean of its definition."""
        self.go(12, length=1024, chip="a100")
        facts = self.read_facts()
        for fact, kernel in (("predicted, naive", "attention_naive"),
                             ("predicted, tiled", "attention_tiled")):
            told = read_json(tilegemm[0], "explain", "1,4,4,1024,1024,64", "--kernel", kernel,
                             "--gpu", "a100")
            value, unit = facts[fact].split()
            self.assertAlmostEqual(float(value) * {"us": 1e-6, "ms": 1e-3}[unit],
                                   told["predicted_s"], delta=1e-3 * told["predicted_s"])
        self.assertEqual(facts["score matrix"], "16 MiB")
        self.assertNotIn("NaN", self.browser.find("#panel-guide .plot").get_attribute("innerHTML"))
        scores, values = (1, 3, 2, 0, 5, 2, 3, 4), (8, 0, 4, 8, 2, 8, 0, 4)
        for tiles in (1, 2, 3, 4):
            self.go(12, keyTiles=tiles)
            weights = [2 ** score for score in scores[:2 * tiles]]
            mean = sum(w * v for w, v in zip(weights, values)) / sum(weights)
            self.assertIn(f"the mean so far is {float(f'{mean:.4g}'):g}.",
                          self.read(".softmax-words"))

    def test_the_last_chapter_is_measured(self):
        self.go(CHAPTERS)
        text = self.read("figure svg")
        self.assertIn("321 GFLOP/s measured", text)
        self.assertIn("654 GFLOP/s measured", text)
        self.assertIn("12 warp mma 128 x 128, BF16", text)
        self.assertIn("432 GFLOP/s measured", text)
        self.assertNotIn("987", text)  # the library multiplied BF16
        self.browser.choose("chip", "t4")
        self.assertNotIn("measured", self.read("figure svg"))


if __name__ == "__main__":
    tilegemm[0] = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)
