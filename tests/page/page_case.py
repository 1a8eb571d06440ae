"""The tests of the page's views of measurements and predictions share result files, and a report of
them."""
import json
import os
import shutil
import tempfile
import unittest

from browser import Browser, read_json, write_report

SHAPE = (60, 52, 44)
FAMILIES = ("naive", "coalesced", "tiled", "edges", "transposed", "padded", "register_column",
            "register_tile", "vector", "buffered", "warp_tile", "warp_mma", "warpgroup_mma")
VIEWS = ("guide", "walk", "owners", "roofline", "reads", "accesses", "ladder", "plan")
MARKUP = "<img src=http://127.0.0.1:9/x onerror=\"document.title='broken'\"></script><b>"
# This script returns the texts that are smaller than 11 pixels on the screen.
SMALL_TEXTS = """
    return [...document.querySelectorAll('main *')].filter(one => one.checkVisibility() &&
        [...one.childNodes].some(node => node.nodeType === 3 && node.textContent.trim()) &&
        !one.closest('title')).map(one => {
            const svg = one.ownerSVGElement;
            const scale = svg ? svg.getBoundingClientRect().width / svg.viewBox.baseVal.width : 1;
            return [parseFloat(getComputedStyle(one).fontSize) * scale, one.textContent];
        }).filter(([size]) => size < 10.9).map(String);"""
tilegemm = ["tilegemm"]  # path of the command; the program that runs the tests sets it


def count_cases(count):
    """Returns how many of `count` cases run: one of TG_TEST_STRIDE, at least one."""
    stride = int(os.environ.get("TG_TEST_STRIDE", "1"))
    return (count + stride - 1) // stride


def choose_seed(seed):
    """Returns the seed of random cases, another one for each TG_TEST_FIRST."""
    return seed + 1000003 * int(os.environ.get("TG_TEST_FIRST", "0"))


def make_record(name, kind, shape, rate, suffix="", **changes):
    m, n, k = shape
    return {"shape": f"{m}x{n}x{k}{suffix}", "m": m, "n": n, "k": k, "layout": "nn", "type": "fp32",
            "threads": 1, "device": "cuda:0", "name": name, "kind": kind,
            "median_s": 2 * m * n * k / rate / 1e9, "spread": 0.02, "gflop_per_s": rate,
            "max_error": 1.5e-7, "max_bound_share": 0.01, "is_right": True, **changes}


def make_file(folder, name, records, processor="NVIDIA H200", mode="cold", version="0.1.0"):
    """Writes a result file. Returns its path."""
    path = os.path.join(folder, name)
    head = {"date": "2026-11-21", "mode": mode, "version": version,
            "machine": {"processor": processor}}
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"head": head, "records": records}, file)
    return path


class PageCase(unittest.TestCase):
    """Opens a report before each test. Nothing may be asked for or complained of."""
    shape = SHAPE

    @classmethod
    def make_files(cls):
        """Returns options of the command, with the files that they name."""
        return []

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="tilegemm-page-")
        cls.path = os.path.join(cls.folder, "report.html")
        write_report(tilegemm[0], cls.path, "x".join(map(str, cls.shape)), "--gpu", "h200",
                     *cls.make_files())
        cls.browser = Browser()

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
        shutil.rmtree(cls.folder)

    def setUp(self):
        self.browser.open(self.path, "view=walk")

    def tearDown(self):
        self.assertEqual(self.browser.list_faults(), [])
        self.assertEqual(self.browser.find_all("[role=alert]"), [])

    def assert_near(self, left, right, message):
        self.assertLess(abs(left - right), 1e-6 * max(abs(left), abs(right), 1e-300), message)

    def explain(self, m, n, k, kernel, tile, chip):
        words = ["explain", f"{m}x{n}x{k}", "--kernel", kernel, "--gpu", chip]
        return read_json(tilegemm[0], *words, *(["--tile", str(tile)] if tile else []))

    def type_sizes(self, *sizes):
        for key, value in zip("mnk", sizes):
            self.browser.type_number(key, value)

    def read_panel(self, view):
        return self.browser.find(f"#panel-{view}").text
