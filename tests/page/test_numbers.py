#!/usr/bin/env python3
"""Tests numbers of the page in a browser: roofline, reads and the ladder's sources beside what the
command prints.

usage: test_numbers.py TILEGEMM
"""
import json
import os
import sys
import unittest

from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

from browser import read_json, write_report
from page_case import (FAMILIES, PageCase, SHAPE, VIEWS, make_file, make_record, tilegemm)


def make_profile(folder, name, rate, **gpu):
    kernel = {"kernel": "cuda_edges_sm75_fp32_16x16x16",
              "counted": {"global_load_sectors": rate, "dram_read_bytes": 5678.0,
                          "load_conflicts": None}}
    path = os.path.join(folder, name)
    with open(path, "w", encoding="utf-8") as file:
        json.dump(dict(zip("mnk", SHAPE)) | gpu | {"kernels": [kernel]}, file)
    return path


class Numbers(PageCase):
    @classmethod
    def make_files(cls):
        bench = make_file(cls.folder, "bench.json", [
            make_record("cuda_naive_sm75_fp32_16x16x1", "kernel", SHAPE, 100.0),
            make_record("cublas", "peer", SHAPE, 1000.0)])
        here = make_profile(cls.folder, "here.json", 1234, gpu="cuda:0", gpu_title="NVIDIA H200")
        other = make_profile(cls.folder, "other.json", 99, gpu="a100", gpu_title="A100 SXM 80GB")
        return ["--bench", bench, "--profile", other, "--profile", here]

    def test_simulated_columns(self):
        """At the report's shape the simulator's figures stand beside the model's."""
        self.browser.show("reads")
        for family in FAMILIES[3:]:
            self.browser.choose("kernel", family)
            tables = self.browser.read_tables("reads")
            for row in tables[0] + tables[1]:
                is_simulated = not row[0].startswith("warpgroup_mma ")
                self.assertEqual(row[2], row[1] if is_simulated else "-", row)
        self.browser.type_number("m", 61)
        self.assertEqual({row[2] for row in self.browser.read_tables("reads")[0]}, {"-"})

    def write_deep(self):
        """Writes a report of a product whose k is too large to simulate. Returns its path."""
        path = os.path.join(self.folder, "deep.html")
        if not os.path.exists(path):
            write_report(tilegemm[0], path, "600x500x9003", "--gpu", "h200")
        return path

    def test_simulated_columns_of_a_cut_k(self):
        """If k is too large to simulate, the counts are continued, and equal the model's."""
        self.browser.open(self.write_deep(), "view=reads")
        for family in ("edges", "padded", "register_tile", "warp_tile"):
            self.browser.choose("kernel", family)
            tables = self.browser.read_tables("reads")
            for row in tables[0] + tables[1]:
                is_simulated = not row[0].startswith("warpgroup_mma ")
                self.assertEqual(row[2], row[1] if is_simulated else "-", row)
            for row in tables[3]:
                self.assertEqual((row[1], row[3], row[5]), (row[2], row[4], row[6]), row)
            self.assertRegex(self.browser.find("#panel-reads .verdict").text,
                             r"blocks were simulated, and their counts scaled up; k was cut to "
                             r"[\d,]+, and to less, and the counts continued to 9,003")

    def test_tiles_without_a_row(self):
        """If no compiled kernel has the tile, the figures are called the model's. Other views name
        what there is."""
        self.browser.open(self.path, "view=reads&tile=13&m=55&n=43&k=48")
        self.assertIn("No GPU kernel is compiled with this tile (cuda_edges_sm75_fp32_13x13x13)",
                      self.browser.find("header .kernel-note").text)
        self.assertIn("tilegemm simulate 55x43x48 --kernel edges --tile 13 counts them",
                      self.browser.find("#panel-reads .verdict").text)
        self.browser.show("accesses")
        self.assertIn("choose tile 2, 3, 4, 5, 8, 12, 16, 20, 32, or make a report that holds it: "
                      "tilegemm report 55x43x48 --tile 13",
                      self.browser.find("#panel-accesses .warn").text)
        self.browser.choose("tile", 12)
        self.assertIn("cuda_edges_sm75_fp32_12x12x12",
                      self.browser.find("#panel-accesses").text)
        self.browser.choose("tile", 16)
        self.assertEqual(self.browser.find_all("header .kernel-note"), [])
        # Another rung keeps a tile that the user chose, and replaces a tile of the table by its
        # own.
        for tile, kernel, shown in ((12, "padded", "12"), (16, "padded", "32"),
                                    (16, "register_column", "64"), (12, "register_tile", "128")):
            self.browser.open(self.path, f"view=walk&tile={tile}")
            self.browser.choose("kernel", kernel)
            self.assertEqual(self.browser.find("select[data-key=tile]").get_attribute("value"),
                             shown, (tile, kernel))

    def test_counted_columns(self):
        """The counts of the counters of the chip at hand stand beside it."""
        self.browser.show("reads")
        asked, sectors, dram = ({row[0]: row for row in table}["edges 16 x 16"][3]
                                for table in self.browser.read_tables("reads")[:3])
        self.assertEqual((asked, sectors, dram), ("-", 32 * 1234, 5678))
        figures = [one.text for one in self.browser.find_all("#panel-reads figure svg")]
        self.assertIn("edges 16 x 16; simulated", figures[0])
        self.assertIn("; counted 38.56 KiB", figures[1])
        self.assertIn("; counted 5.545 KiB", figures[2])
        self.browser.choose("chip", "a100")
        sectors = {row[0]: row for row in self.browser.read_tables("reads")[1]}["edges 16 x 16"][3]
        self.assertEqual(sectors, 32 * 99)
        self.browser.choose("chip", "t4")
        self.assertEqual({row[3] for row in self.browser.read_tables("reads")[1]}, {"-"})

    def test_source_margin(self):
        """The counts in the margin of a source are those of simulate."""
        self.browser.show("ladder")
        told = read_json(tilegemm[0], "simulate", "x".join(map(str, SHAPE)), "--kernel",
                         "cuda_transposed_sm75_fp32_32x32x32")
        self.browser.choose("kernel", "transposed")
        margin = {row[4]: row for row in self.browser.read_tables("ladder")[-1]
                  if any(row[:4])}
        counted = [line for line in told["lines"] if line["global_load_sectors"]
                   + line["global_store_sectors"] + line["shared_load_requests"]
                   + line["shared_store_requests"]]
        self.assertTrue(counted)
        self.assertEqual(set(margin), {str(line["line"]) for line in counted})
        for line in counted:
            row = margin[str(line["line"])]
            self.assertEqual(row[5].strip(), line["source"].strip())
            expected = (line["global_read_bytes"] + line["global_write_bytes"],
                        line["global_load_sectors"] + line["global_store_sectors"],
                        line["shared_load_requests"] + line["shared_store_requests"],
                        line["bank_conflicts"])
            self.assertEqual([value or 0 for value in row[:4]], list(expected), line["line"])

    def test_source_margin_says_of_what(self):
        """The margin says whose counts it has: those of the product above, of it with k cut, or of
        another."""
        self.browser.show("ladder")

        def read():
            return self.browser.find("#panel-ladder .origin").text

        self.assertIn("in 60 x 52 x 44 by cuda_edges_sm75_fp32_16x16x16", read())
        self.assertIn("All its blocks ran. That is the product above.", read())
        self.browser.type_number("m", 61)
        self.assertIn("It is not the product above: tilegemm report 61x52x44 simulates", read())
        self.browser.type_number("m", 60)
        self.browser.choose("counts", "cuda_edges_sm75_fp32_8x8x8 64x64x64")
        self.assertIn("in 64 x 64 x 64 by cuda_edges_sm75_fp32_8x8x8", read())
        self.browser.open(self.write_deep(), "view=ladder&kernel=register_tile")
        self.assertRegex(read(), r"in 600 x 500 x \d+ by cuda_register_tile.* of its 20 blocks "
                         "ran, and their counts were scaled up. It is the product above with k cut "
                         r"from 9,003 to [\d,]+,")

    def press_right(self, slider):
        slider.send_keys(Keys.ARROW_RIGHT)
        return slider.get_attribute("aria-valuetext")

    def test_sliders(self):
        """The sliders move by keys and by the pointer, within the family's tiles."""
        self.browser.show("roofline")
        slider = self.browser.find("#panel-roofline input[data-key=tile]")
        slider.send_keys(Keys.ARROW_RIGHT)
        self.assertEqual(self.browser.read_state()["tile"], "17")
        slider.send_keys(Keys.HOME)
        self.assertEqual(self.browser.read_state()["tile"], "1")
        ActionChains(self.browser.driver).drag_and_drop_by_offset(
            slider, slider.size["width"] // 2, 0).perform()
        self.assertGreater(int(self.browser.read_state()["tile"]), 24)
        # Register tiles are those of the ladder and of the planner's kernels.
        registers = self.browser.find("#panel-roofline input[data-key=registers]")
        shown = [registers.get_attribute("aria-valuetext")]
        while self.press_right(registers) != shown[-1]:
            shown.append(registers.get_attribute("aria-valuetext"))
        self.assertEqual((shown[0], shown[-1]), ("1 x 1", "8 x 16"))
        self.assertGreaterEqual(len(shown), 7)
        name = self.browser.read_state()["row"]
        told = read_json(tilegemm[0], "explain", "x".join(map(str, SHAPE)), "--device", "cuda",
                         "--gpu", "h200")
        row = [row for row in told["candidates"] if row["kernel"] == name][0]
        values = dict(self.browser.read_tables("roofline")[1])
        self.assertEqual((values["kernel"], values["threads a block"]),
                         (name, row["threads_per_block"]))
        chosen = [row for row in self.browser.read_tables("roofline")[0]
                  if row[0].endswith("(chosen)")][0]
        self.assertEqual(chosen[4], row["shared_bytes"])
        self.assert_near(chosen[3], row["gflop_per_s"], name)
        registers.send_keys(Keys.HOME)
        self.assertEqual(self.browser.read_state().get("kernel", "edges"), "edges")
        self.browser.show("reads")
        size = self.browser.find("#panel-reads input[data-key=size]")
        self.assertIn("60 x 52 x 44; moving this makes them equal",
                      size.get_attribute("aria-valuetext"))
        size.send_keys(Keys.END)
        state = self.browser.read_state()
        self.assertEqual(size.get_attribute("aria-valuetext"), "8,192")
        self.assertEqual((state["m"], state["n"], state["k"]), ("8192",) * 3)

    def test_points_of_note_have_names(self):
        """The tile of the sliders and the planner's choice are named at every size and width."""
        try:
            for width in (400, 1200):
                self.browser.resize(width, 1000)
                for side in (256, 2048, 4096):
                    for tile in (1, 16, 32):
                        self.browser.open(self.path, f"view=roofline&m={side}&n={side}&k={side}"
                                                     f"&tile={tile}")
                        names = [one.text for one in self.browser.find_all(
                            "#panel-roofline .chosen-name")]
                        self.assertEqual(len(names), 2, (width, side, tile))
                        self.assertIn(f"edges {tile} x {tile}", names)
        finally:
            self.browser.resize(1200, 1000)

    def test_no_chart_of_another_size(self):
        self.browser.show("roofline")
        self.browser.choose("tile", 12)
        for key in "mnk":
            self.browser.type_number(key, 1000000)
        self.assertIn("no kernel at this size", self.browser.find("#panel-roofline").text)
        self.assertEqual(self.browser.find_all("#panel-roofline figure svg"), [])
        self.browser.open(self.path, "view=walk&m=61")
        self.browser.show("ladder")
        self.assertIn("Not measured at this size", self.browser.find("#panel-ladder").text)

    def test_what_cannot_run_is_called_so(self):
        """Each view says why there is nothing for tiles with too many threads and sizes too large
        to count."""
        for state, reason in (("tile=64", "the limit is 1024 threads"),
                              ("tile=12&m=1000000&n=1000000&k=1000000", "exceed 63 bits")):
            for view in ("walk", "owners", "roofline", "reads", "accesses"):
                self.browser.open(self.path, f"view={view}&{state}")
                text = self.browser.find(f"#panel-{view}").text
                self.assertIn("no kernel at this size" if view == "roofline" and "m=" in state
                              else reason, text, view)
                self.assertNotIn("tilegemm simulate", text, view)

    def test_size_beyond_the_simulator(self):
        """Every view opens on matrices that the simulator does not count."""
        path = os.path.join(self.folder, "huge.html")
        write_report(tilegemm[0], path, "70000x70000x8", "--gpu", "h200")
        self.browser.open(path)
        for view in VIEWS:
            self.browser.show(view)
            self.assertTrue(self.browser.find(f"#panel-{view}").text)
            self.assertEqual(self.browser.list_faults(), [], view)


if __name__ == "__main__":
    tilegemm[0] = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)
