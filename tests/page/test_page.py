#!/usr/bin/env python3
"""The page in a browser: its shell, and the views of roofline, reads, ladder and plan, used as a
person would, their numbers beside those of the command.

usage: test_page.py TILEGEMM
"""
import json
import os
import random
import shutil
import sys
import tempfile
import unittest

from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

from browser import Browser, read_json, write_report

TILEGEMM = "tilegemm"
SHAPE = (60, 52, 44)
FAMILIES = ("naive", "coalesced", "tiled", "edges", "transposed", "padded", "register_column",
            "register_tile", "vector", "buffered", "warp_tile")
CHIPS = ("t4", "a100", "h200", "rtx4090")
MARKUP = "<img src=http://127.0.0.1:9/x onerror=\"document.title='broken'\"></script><b>"


def make_record(name, kind, shape, rate, **changes):
    m, n, k = shape
    return {"shape": f"{m}x{n}x{k}", "m": m, "n": n, "k": k, "layout": "nn", "type": "fp32",
            "threads": 1, "device": "cuda:0", "name": name, "kind": kind,
            "median_s": 2 * m * n * k / rate / 1e9, "spread": 0.02, "gflop_per_s": rate,
            "max_error": 1.5e-7, "max_bound_share": 0.01, "is_right": True, **changes}


def make_bench(path):
    """A result file of which some texts are markup."""
    records = [make_record("cuda_naive_sm75_fp32_16x16x1", "kernel", SHAPE, 100.0),
               make_record("cuda_warp_tile_sm75_fp32_128x128x8", "kernel", SHAPE, 900.0),
               make_record("cuda_small_sm75_fp32_16x16x64", "kernel", SHAPE, 1200.0),
               make_record("cublas", "peer", SHAPE, 1000.0),
               make_record(MARKUP, "peer", SHAPE, 10.0, is_right=False)]
    records += [make_record("cublas", "peer", (size, size, size), 500.0 + size)
                for size in range(52, 60)]
    head = {"date": "2026-11-21", "mode": "cold", "version": MARKUP,
            "machine": {"processor": "GPU " + MARKUP}}
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"head": head, "records": records}, file)


def make_profile(path):
    kernel = {"kernel": "cuda_edges_sm75_fp32_16x16x16",
              "counted": {"global_load_sectors": 1234, "dram_read_bytes": 5678.0,
                          "load_conflicts": None}}
    with open(path, "w", encoding="utf-8") as file:
        json.dump(dict(zip("mnk", SHAPE)) | {"gpu": "h200", "kernels": [kernel]}, file)


class Page(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="tilegemm-page-")
        cls.bench = os.path.join(cls.folder, "bench.json")
        cls.path = os.path.join(cls.folder, "report.html")
        make_bench(cls.bench)
        cls.profile = os.path.join(cls.folder, "profile.json")
        make_profile(cls.profile)
        write_report(TILEGEMM, cls.path, "x".join(map(str, SHAPE)), "--gpu", "h200", "--bench",
                     cls.bench, "--profile", cls.profile)
        cls.browser = Browser()

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
        shutil.rmtree(cls.folder)

    def setUp(self):
        self.browser.open(self.path)

    def tearDown(self):
        self.assertEqual(self.browser.list_faults(), [])
        self.assertEqual(self.browser.find_all("[role=alert]"), [])

    def assert_near(self, left, right, message):
        self.assertLess(abs(left - right), 1e-6 * max(abs(left), abs(right), 1e-300), message)

    def explain(self, m, n, k, kernel, tile, chip):
        words = ["explain", f"{m}x{n}x{k}", "--kernel", kernel, "--gpu", chip]
        return read_json(TILEGEMM, *words, *(["--tile", str(tile)] if tile else []))

    def test_faults_are_seen(self):
        """The checks of console and network can fail."""
        run = self.browser.driver.execute_script
        run("console.error('a fault')")
        self.assertIn("a fault", str(self.browser.list_faults()))
        run("document.querySelector('meta[http-equiv]').remove(); fetch('http://127.0.0.1:9/x')"
            ".catch(() => {})")
        ActionChains(self.browser.driver).pause(0.3).perform()
        self.assertTrue(self.browser.list_faults())

    def test_hatches_of_every_view(self):
        """A pattern's name is one of the document's: each chart has its own, also after others."""
        for view in ("reads", "ladder"):
            self.browser.show(view)
        names = self.browser.driver.execute_script(
            "return [...document.querySelectorAll('pattern')].map(one => one.id)")
        self.assertGreater(len(names), 5)
        self.assertEqual(len(names), len(set(names)))

    def test_print_has_the_tables_and_the_choice(self):
        self.browser.show("reads")
        run = self.browser.driver.execute_script
        count = "return document.querySelectorAll('#panel-reads details[open]').length"
        self.assertEqual(run(count), 0)
        run("dispatchEvent(new Event('beforeprint'))")
        self.assertEqual(run(count), 3)
        run("dispatchEvent(new Event('afterprint'))")
        self.assertEqual(run(count), 0)
        self.browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
        try:
            self.assertIn("Reads counted; edges, tile", self.browser.find("header").text)
            self.assertEqual(self.browser.find_all("header .controls"), [])
        finally:
            self.browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})

    def test_no_chart_of_another_size(self):
        self.browser.show("roofline")
        for key in "mnk":
            self.browser.type_number(key, 1000000)
        self.assertIn("no kernel at this size", self.browser.find("#panel-roofline").text)
        self.assertEqual(self.browser.find_all("#panel-roofline figure svg"), [])
        self.browser.open(self.path, "m=61")
        self.browser.show("ladder")
        self.assertIn("Not measured at this size", self.browser.find("#panel-ladder").text)

    def test_size_beyond_the_simulator(self):
        """Every view opens on matrices that the simulator does not count."""
        path = os.path.join(self.folder, "huge.html")
        write_report(TILEGEMM, path, "70000x70000x8", "--gpu", "h200")
        self.browser.open(path)
        for view in ("walk", "owners", "roofline", "reads", "accesses", "ladder", "plan"):
            self.browser.show(view)
            self.assertTrue(self.browser.find(f"#panel-{view}").text)
            self.assertEqual(self.browser.list_faults(), [], view)

    def test_model_is_the_commands(self):
        """30 random cases typed in: the tables show what explain prints."""
        choose = random.Random(1)
        for _ in range(30):
            m, n, k = (choose.choice((choose.randint(1, 70), choose.randint(1, 3000)))
                       for _ in range(3))
            family, chip = choose.choice(FAMILIES), choose.choice(CHIPS)
            for key, value in (("m", m), ("n", n), ("k", k)):
                self.browser.type_number(key, value)
            self.browser.choose("kernel", family)
            self.browser.choose("chip", chip)
            tile = int(self.browser.find("select[data-key=tile]").get_attribute("value"))
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
            self.assert_near(chosen[0][3], told["useful_flops"] / told["predicted_s"] / 1e9, case)
            self.assertEqual(chosen[0][7],
                             told["bound"] if told["is_legal"] else told["reason"], case)
            self.check_reads(told, case)

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
        """30 random small sizes: what the page counts is what simulate counts."""
        choose = random.Random(2)
        self.browser.show("reads")
        for _ in range(30):
            m, n, k = (choose.randint(1, 40) for _ in range(3))
            family, tile = choose.choice(("naive", "coalesced", "edges")), choose.choice((2, 4))
            for key, value in (("m", m), ("n", n), ("k", k)):
                self.browser.type_number(key, value)
            self.browser.choose("kernel", family)
            self.browser.choose("tile", tile)
            told = read_json(TILEGEMM, "simulate", f"{m}x{n}x{k}", "--kernel", family, "--tile",
                             str(tile))
            name = f"{family} {tile} x {tile}"
            tables = self.browser.read_tables("reads")
            found = [row for row in tables[0] if row[0] == name]
            self.assertEqual(found[0][1], told["global_read_bytes"], (m, n, k, name))
            row = [row for row in tables[1] if row[0] == name][0]
            self.assertEqual(row[1], 32 * told["global_load_sectors"], (m, n, k, name))

    def test_simulated_columns(self):
        """At the report's shape the simulator's figures stand beside the model's."""
        self.browser.show("reads")
        for family in FAMILIES[3:]:
            self.browser.choose("kernel", family)
            tables = self.browser.read_tables("reads")
            for row in tables[0] + tables[1]:
                self.assertEqual(row[1], row[2], row)
        self.browser.type_number("m", 61)
        self.assertEqual({row[2] for row in self.browser.read_tables("reads")[0]}, {"-"})

    def test_counted_columns(self):
        """What a GPU's counters counted stands beside it."""
        self.browser.show("reads")
        asked, sectors, dram = ({row[0]: row for row in table}["edges 16 x 16"][3]
                                for table in self.browser.read_tables("reads")[:3])
        self.assertEqual((asked, sectors, dram), ("-", 32 * 1234, 5678))

    def test_source_margin(self):
        """Counts in the margin of a source are those of simulate."""
        self.browser.show("ladder")
        told = read_json(TILEGEMM, "simulate", "x".join(map(str, SHAPE)), "--kernel",
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

    def test_ladder_of_a_bench_file(self):
        self.browser.show("ladder")
        rows = self.browser.read_tables("ladder")[0]
        self.assertEqual([row[2] for row in rows], [100, 900, 1200, 10, 1000])
        self.assertEqual(rows[3][7], "WRONG")
        self.assertTrue(rows[3][0].startswith(MARKUP))  # as text
        self.assertEqual(self.browser.driver.title, "tilegemm 60x52x44")
        cliffs = self.browser.read_tables("ladder")[2]
        self.assertEqual([row[0] for row in cliffs], list(range(52, 117)))
        self.assertEqual([row[-1] for row in cliffs[:9]], [500 + size for size in range(52, 60)]
                         + ["-"])
        told = self.explain(70, 70, 70, "edges", 16, "h200")
        self.assert_near(cliffs[18][1], told["useful_flops"] / told["predicted_s"] / 1e9, "cliff")
        self.browser.choose("run", 1)
        self.assertIn("52x52x52", self.browser.find("#panel-ladder figcaption").text)

    def test_roofline_of_a_bench_file(self):
        self.browser.show("roofline")
        rows = self.browser.read_tables("roofline")[0]
        measured = {row[0]: row for row in rows if row[1].startswith("measured")}
        naive = self.explain(*SHAPE, "cuda_naive_sm75_fp32_16x16x1", 0, "h200")
        row = measured["cuda_naive_sm75_fp32_16x16x1"]
        self.assert_near(row[2], naive["flop_per_byte"], row)
        self.assertEqual(row[3], 100)
        m, n, k = SHAPE
        row = [row for name, row in measured.items() if name.startswith("cublas")][0]
        self.assert_near(row[2], 2 * m * n * k / (4 * (m * k + k * n + m * n)), row)

    def test_plan(self):
        self.browser.show("plan")
        told = read_json(TILEGEMM, "explain", "x".join(map(str, SHAPE)))
        tables = self.browser.read_tables("plan")
        reasons = {row[0]: row[4] for row in tables[0]}
        here = [one for one in told["candidates"] if not one["reason"].startswith("runs on ")]
        self.assertEqual(set(reasons), {one["kernel"] for one in here})
        for one in here:
            self.assertEqual(reasons[one["kernel"]],
                             "chosen" if one["is_chosen"] else one["reason"])
        self.assertEqual(tables[0][0][0], told["chosen_kernel"])
        ladder = {row[0]: row for row in tables[-1]}
        self.assertEqual(len(ladder), 17 + 3)  # rows, and what was measured beside them
        self.assertNotEqual(ladder["cuda_warp_tile_sm75_fp32_128x128x8"][3], "-")
        self.browser.type_number("m", 61)
        self.assertIn("tilegemm report 61x52x44", self.browser.find("#panel-plan .hint").text)

    def test_sliders(self):
        """By keys and by the pointer, within the family's tiles."""
        self.browser.show("roofline")
        slider = self.browser.find("#panel-roofline input[data-key=tile]")
        slider.send_keys(Keys.ARROW_RIGHT)
        self.assertEqual(self.browser.read_state()["tile"], "32")
        slider.send_keys(Keys.HOME)
        self.assertEqual(self.browser.read_state()["tile"], "2")
        ActionChains(self.browser.driver).drag_and_drop_by_offset(
            slider, slider.size["width"] // 2, 0).perform()
        self.assertIn(int(self.browser.read_state()["tile"]), (16, 32, 64))
        registers = self.browser.find("#panel-roofline input[data-key=registers]")
        registers.send_keys(Keys.END)
        self.assertEqual(self.browser.read_state()["kernel"], "register_tile")
        self.assertEqual(self.browser.read_state()["tile"], "128")
        self.browser.show("reads")
        size = self.browser.find("#panel-reads input[data-key=size]")
        size.send_keys(Keys.END)
        state = self.browser.read_state()
        self.assertEqual((state["m"], state["n"], state["k"]), ("8192",) * 3)

    def test_keyboard_alone(self):
        """Tab reaches controls and tabs, arrows change tabs."""
        body = self.browser.find("body")
        body.send_keys(Keys.TAB)
        reached = set()
        for _ in range(12):
            focus = self.browser.driver.switch_to.active_element
            reached.add(focus.get_attribute("data-key") or focus.get_attribute("role"))
            if focus.get_attribute("role") == "tab":
                break
            focus.send_keys(Keys.TAB)
        self.assertLessEqual({"m", "n", "k", "kernel", "tile", "chip", "theme", "tab"}, reached)
        tab = self.browser.driver.switch_to.active_element
        tab.send_keys(Keys.END)
        self.assertEqual(self.browser.driver.switch_to.active_element.get_attribute(
            "aria-selected"), "true")
        self.browser.driver.switch_to.active_element.send_keys(Keys.HOME)
        self.assertTrue(self.browser.find("[role=tabpanel]"))

    def test_state_in_the_address(self):
        self.browser.open(self.path, "view=ladder&m=77&kernel=padded&chip=t4&tile=bogus&x=1")
        self.assertEqual(self.browser.find("select[data-key=kernel]").get_attribute("value"),
                         "padded")
        self.assertEqual(self.browser.find("h1").text, "D = A B: 77 x 52 x 44 on T4")
        self.assertEqual(self.browser.find("[role=tab][aria-selected=true]").text, "The ladder")
        self.browser.open(self.path, "view=none&m=-5&n=1e99&kernel=%3Cb%3E&chip=none")
        self.assertEqual(len(self.browser.find_all("[role=tabpanel]")), 1)

    def test_every_chart_has_a_table(self):
        for tab in self.browser.find_all("[role=tab]"):
            tab.click()
            for figure in self.browser.find_all("figure"):
                summary = figure.find_element("css selector", "summary")
                if not figure.find_element("css selector", "details").get_attribute("open"):
                    summary.click()
                self.assertTrue(figure.find_elements("css selector", "tbody tr"), tab.text)
            for drawing in self.browser.find_all("[role=tabpanel] svg[role=img]"):
                self.assertTrue(drawing.get_attribute("aria-label"), tab.text)

    def test_phone(self):
        """At 360 pixels nothing sticks out sideways, in light and in dark."""
        read, grounds = self.browser.driver.execute_script, set()
        self.browser.resize(360, 740)
        try:
            for theme in ("light", "dark"):
                self.browser.choose("theme", theme)
                for tab in self.browser.find_all("[role=tab]"):
                    read("arguments[0].click()", tab)
                    self.assertEqual(read("return document.documentElement.scrollWidth"), 360,
                                     tab.get_attribute("id"))
                grounds.add(read("return getComputedStyle(document.body).backgroundColor"))
            self.assertEqual(len(grounds), 2)
        finally:
            self.browser.resize(1200, 1000)


if __name__ == "__main__":
    TILEGEMM = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)
