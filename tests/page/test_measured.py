#!/usr/bin/env python3
"""Tests measured figures and plans in a browser: which records the views take, what they say of
them, and plans beside those of explain.

usage: test_measured.py TILEGEMM
"""
import os
import random
import sys
import unittest

from browser import read_json
from page_case import MARKUP, PageCase, SHAPE, make_file, make_record, tilegemm

NAIVE, PADDED = "cuda_naive_sm75_fp32_16x16x1", "cuda_padded_sm75_fp32_32x32x32"
WARP, SMALL = "cuda_warp_tile_sm75_fp32_128x128x8", "cuda_small_sm75_fp32_16x16x64"
FUSED = ":bias=col:act=relu"
CHIPS = ("t4", "a100", "h100", "h200", "rtx4090", "b200")


def make_first():
    """Makes records of which some texts are markup, and whose wrong result has no error."""
    records = [make_record(NAIVE, "kernel", SHAPE, 100.0),
               make_record(WARP, "kernel", SHAPE, 900.0),
               make_record(SMALL, "kernel", SHAPE, 1200.0),
               make_record("cublas", "peer", SHAPE, 1000.0),
               make_record(MARKUP, "peer", SHAPE, 10.0, is_right=False, max_error=None,
                           max_bound_share=None),
               make_record(SMALL, "kernel", SHAPE, 1100.0, FUSED),
               make_record("cublas_lt", "peer", SHAPE, 550.0, FUSED)]
    records += [make_record("cublas", "peer", (size, size, size), 500.0 + size)
                for size in range(52, 60)]
    records += [make_record(SMALL, "kernel", (60, size, 44), 2.0 * size, ":bf16", type="bf16")
                for size in (100, 101, 102, 300, 301)]
    return records


class Measured(PageCase):
    @classmethod
    def make_files(cls):
        here = read_json(tilegemm[0], "explain", "8x8x8", "--device", "cpu")["device"]
        cls.threads = here["thread_count"]
        files = [
            make_file(cls.folder, "first.json", make_first(), version=MARKUP),
            make_file(cls.folder, "second.json", [make_record(NAIVE, "kernel", SHAPE, 111.0),
                                                  make_record(PADDED, "kernel", SHAPE, 300.0)]),
            make_file(cls.folder, "hot.json", [
                make_record(NAIVE, "kernel", SHAPE, 150.0),
                make_record(PADDED, "kernel", SHAPE, 77.0, ":prec=ieee_fp32")], mode="hot"),
            make_file(cls.folder, "other.json", [make_record(NAIVE, "kernel", SHAPE, 50.0),
                                                 make_record("cublas", "peer", SHAPE, 60.0)],
                      processor="NVIDIA A100-SXM4-80GB"),
            make_file(cls.folder, "unknown.json", [make_record(NAIVE, "kernel", SHAPE, 5.0)],
                      processor="GPU " + MARKUP),
            make_file(cls.folder, "cpu.json", [
                make_record("cpu_packed_generic_fp32", "kernel", SHAPE, rate, device="cpu",
                            threads=threads)
                for threads, rate in ((cls.threads + 1, 7.0), (cls.threads, 8.0))],
                      processor=here["name"])]
        return [word for path in files for word in ("--bench", path)]

    def read_rates(self, view):
        """Returns the GFLOP/s of the records at the page's size that a view shows, by name."""
        self.browser.show(view)
        rows = self.browser.read_tables(view)[0]
        if view == "roofline":
            return {row[0]: row[3] for row in rows if row[1].startswith("measured")}
        times = {row[0]: row[2] for row in rows if len(row) == 6 and row[2] != "-"}
        m, n, k = SHAPE
        scale = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3}
        return {name: 2e-9 * m * n * k / (float(text.split()[0]) * scale[text.split()[1]])
                for name, text in times.items()}

    def check_rates(self, expected):
        for view in ("roofline", "plan"):
            rates = self.read_rates(view)
            self.assertEqual({name.replace(", library", ""): round(rate)
                              for name, rate in rates.items()}, expected, view)

    def test_the_chip_and_the_caches_choose(self):
        first = {NAIVE: 100, WARP: 900, SMALL: 1200, "cublas": 1000, MARKUP: 10, PADDED: 300}
        self.check_rates(first)
        origins = {row[0]: row[4] for row in self.browser.read_tables("plan")[0]}
        self.assertEqual((origins[NAIVE], origins[PADDED]), ("first.json, cold",
                                                             "second.json, cold"))
        hint = self.browser.find("#panel-plan .hint").text
        self.assertIn("on H200 SXM with cold caches: 22 results of first.json, second.json", hint)
        self.assertIn("2 on NVIDIA A100-SXM4-80GB", hint)
        self.assertIn("2 with hot caches", hint)
        self.assertIn(f"1 on GPU {MARKUP}", hint)  # shows it as text
        self.browser.choose("mode", "hot")
        self.check_rates({NAIVE: 150, PADDED: 77})
        self.browser.choose("mode", "cold")
        self.browser.choose("chip", "a100")
        self.check_rates({NAIVE: 50, "cublas": 60})
        self.browser.choose("chip", "t4")
        self.check_rates({})
        self.browser.show("ladder")  # a processor's run belongs to no chip, and says so
        self.assertIn(f"{self.threads + 1} threads, cold, cpu.json",
                      self.browser.find("#panel-ladder figcaption").text)
        self.browser.type_number("m", 61)
        self.assertIn("Not measured at this size", self.read_panel("ladder"))
        self.assertEqual(self.browser.driver.title, "tilegemm 61x52x44")

    def test_points_of_the_roofline(self):
        self.browser.show("roofline")
        rows = self.browser.read_tables("roofline")[0]
        measured = {row[0]: row for row in rows if row[1] == "measured: first.json, cold"}
        naive = self.explain(*SHAPE, NAIVE, 0, "h200")
        self.assert_near(measured[NAIVE][2], naive["flop_per_byte"], NAIVE)
        m, n, k = SHAPE
        once = 2 * m * n * k / (4 * (m * k + k * n + m * n))
        self.assert_near(measured["cublas, library"][2], once, "cublas")
        told = self.plan(SHAPE, "h200")
        small = [row for row in told["candidates"] if row["kernel"] == SMALL][0]
        self.assert_near(measured[SMALL][2], 2 * m * n * k / small["global_read_bytes"], SMALL)

    def test_the_ladder_of_a_run(self):
        self.browser.show("ladder")
        rows = self.browser.read_tables("ladder")[0]
        measured = [row for row in rows if row[2] != "-"]
        self.assertEqual([row[2] for row in measured], [100, 900, 1200, 10, 1000])
        self.assertEqual((measured[3][4], measured[4][4]),
                         ("not a number: WRONG", "1.5e-7, 0.010 of the bound"))
        self.assertTrue(measured[3][0].startswith(MARKUP))  # shows it as text
        for row, name in zip(measured, (NAIVE, WARP)):  # the prediction is that of the same tile
            told = self.explain(*SHAPE, name, 0, "h200")
            rate = told["useful_flops"] / told["predicted_s"] / 1e9
            self.assert_near(row[1], rate, name)
            self.assertAlmostEqual(float(row[3].split()[0]) / (row[2] / rate), 1, delta=1e-3)
        rungs = [row[0].split()[0] for row in rows if row[0][0].isdigit()]
        self.assertEqual(sorted(map(int, rungs)), list(range(1, len(rungs) + 1)))
        self.browser.choose("run", 1)
        self.assertIn(FUSED, self.browser.find("#panel-ladder figcaption").text)
        self.browser.choose("run", -1)
        self.browser.choose("chip", "a100")
        self.assertIn("NVIDIA A100-SXM4-80GB, cold, other.json",
                      self.browser.find("#panel-ladder figcaption").text)

    def test_fused_kernels_beside_libraries(self):
        """The view shows the quickest kernel of a product and the libraries: speed, error, what is
        fused."""
        self.browser.show("ladder")
        rows = self.browser.read_tables("ladder")[3]
        self.assertEqual([row[:4] for row in rows], [
            ["60x52x44", "nothing", SMALL, 1200], ["60x52x44", "nothing", "cublas, library", 1000],
            ["60x52x44", "nothing", MARKUP + ", library", 10],
            ["60x52x44" + FUSED, "bias=col, act=relu", SMALL, 1100],
            ["60x52x44" + FUSED, "bias=col, act=relu", "cublas_lt, library", 550]])
        self.assertEqual([row[4] for row in rows], ["1.2 x", "1 x", "0.01 x", "2 x", "1 x"])
        self.assertEqual([row[5] for row in rows], ["1.5e-7"] * 2 + ["not a number"]
                         + ["1.5e-7"] * 2)
        self.browser.choose("beside", "fused")
        self.assertEqual({row[0] for row in self.browser.read_tables("ladder")[3]},
                         {"60x52x44" + FUSED})
        self.browser.choose("beside", "all")
        self.assertEqual(len({row[0] for row in self.browser.read_tables("ladder")[3]}), 15)
        self.browser.choose("chip", "t4")
        self.assertNotIn("beside libraries", self.read_panel("ladder"))

    def read_cliffs(self):
        return self.browser.read_tables("ladder")[2]

    def test_cliffs_of_cubes(self):
        self.browser.show("ladder")
        rows = self.read_cliffs()
        self.assertEqual([row[0] for row in rows], list(range(52, 117)))
        self.assertEqual([row[-1] for row in rows[:9]],
                         [500 + size for size in range(52, 60)] + ["-"])
        told = self.explain(70, 70, 70, "edges", 16, "h200")
        self.assert_near(rows[18][1], told["useful_flops"] / told["predicted_s"] / 1e9, "cliff")
        told = self.plan((70, 70, 70), "h200")
        chosen = [row for row in told["candidates"] if row["is_chosen"]][0]
        self.assertEqual(rows[18][3], chosen["kernel"])
        self.assert_near(rows[18][2], chosen["gflop_per_s"], "planned")

    def test_cliffs_along_one_size(self):
        """Families of sizes that a file holds are found and labelled, and run along one size by
        choice."""
        self.browser.show("ladder")
        labels = [one.text for one in self.browser.find_all(".families button")]
        self.assertEqual(labels, ["m = n = k from 52 to 59: 8 sizes",
                                  "n from 100 to 102, m = 60, k = 44: 3 sizes, bf16",
                                  "n from 300 to 301, m = 60, k = 44: 2 sizes, bf16"])
        self.browser.find_all(".families button")[1].click()
        self.assertEqual(self.browser.find("h1").text, "D = A B: 60 x 100 x 44 on H200 SXM")
        self.assertIn("Cliff map: bf16 at n = 100 to 164", self.read_panel("ladder"))
        rows = self.read_cliffs()
        self.assertEqual([row[-1] for row in rows[:4]], [200, 202, 204, "-"])
        self.assertEqual({row[1] for row in rows}, {"-"})  # the model's kernels multiply FP32
        self.browser.choose("products", "")
        self.browser.choose("sweep", "k")
        told = self.explain(60, 100, 44 + 9, "edges", 16, "h200")
        row = self.read_cliffs()[9]
        self.assertEqual(row[0], 53)
        self.assert_near(row[1], told["useful_flops"] / told["predicted_s"] / 1e9, "along k")

    def plan(self, shape, chip):
        return read_json(tilegemm[0], "explain", "x".join(map(str, shape)), "--device", "cuda",
                         "--gpu", chip)

    def check_plan(self, told, tables, case):
        here = {one["kernel"]: one for one in told["candidates"]
                if one["refusal"] != "other_device"}
        tables = [table for table in tables if any(row[0] in here for row in table)]
        rows = {row[0]: row for table in tables for row in table if row[0] in here}
        self.assertEqual(set(rows), set(here), case)
        for name, one in here.items():
            reason = "chosen" if one["is_chosen"] else one["reason"]
            self.assertEqual(rows[name][-1][:len(reason)], reason, case)
            if one["is_legal"]:
                number, unit = rows[name][1].split()
                seconds = float(number.replace(",", "")) * {"ns": 1e-9, "us": 1e-6, "ms": 1e-3,
                                                            "s": 1}[unit]
                self.assertAlmostEqual(seconds / one["predicted_s"], 1, delta=1e-3, msg=str(case))
        self.assertEqual(tables[0][0][0], told["chosen_kernel"], case)

    def test_plans_are_the_planners(self):
        """30 random products and chips have the candidates of explain, without such a GPU."""
        choose = random.Random(3)
        self.browser.show("plan")
        for _ in range(30):
            sizes = [choose.choice((choose.randint(1, 20), choose.randint(1, 9000)))
                     for _ in range(3)]
            chip = choose.choice(CHIPS)
            self.type_sizes(*sizes)
            self.browser.choose("chip", chip)
            self.check_plan(self.plan(sizes, chip), self.browser.read_tables("plan"),
                            (sizes, chip))

    def test_plan_of_the_processor(self):
        """The processor's plan is that from when the page was written; records with as many threads
        stand beside it."""
        self.browser.show("plan")
        told = read_json(tilegemm[0], "explain", "x".join(map(str, SHAPE)), "--device", "cpu")
        tables = self.browser.read_tables("plan")
        self.check_plan(told, tables, SHAPE)
        measured = next(row for table in tables for row in table
                        if row[0] == "cpu_packed_generic_fp32")
        self.assertEqual(measured[4], "cpu.json, cold")
        m, n, k = SHAPE
        self.assertEqual(measured[2], f"{2 * m * n * k / 8e3:.2f} us")
        self.browser.type_number("m", 61)
        self.assertIn("tilegemm report 61x52x44",
                      self.browser.find("#panel-plan .processor").text)


if __name__ == "__main__":
    tilegemm[0] = os.path.abspath(sys.argv.pop(1))
    unittest.main()
