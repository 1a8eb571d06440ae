"""Tests that the committed figures of the models are as tools/measure/fit_model writes them, that
its check refuses files that are not, that the figures of the CPU and of attention are what it fits
to the committed calls, that those of the GPU model choose well among such calls, and that
docs/model.md names them.

usage: test_figures.py SOURCE_FOLDER
"""

import contextlib
import importlib.machinery
import io
import pathlib
import re
import subprocess
import sys
import tempfile
import types
import unittest


def check(*paths):
    """Returns the exit status and the output of fit_model --check."""
    result = subprocess.run([sys.executable, str(ROOT / "tools/measure/fit_model"), "--check",
                             *map(str, paths)], capture_output=True, text=True, check=False)
    return result.returncode, result.stdout + result.stderr


def read_names():
    """Returns the names of all figures of the GPU model."""
    text = (ROOT / "src/model/figures/h200.def").read_text(encoding="utf-8")
    return set(re.findall(r"^TGI_FIGURE(?:_LIST)?\((\w+)", text, re.M))


def compare_names(document):
    """Returns the figures that the document lacks, and the words of it that only look like one:
    they begin as some figure does, and are neither a figure nor the name of a file."""
    names = read_names()
    begins = "|".join({name.split("_")[0] for name in names})
    words = set(re.findall(rf"\b(?:{begins})_\w+\b(?![.*])", document))
    return names - words, words - names


class Figures(unittest.TestCase):
    def test_committed_files(self):
        files = sorted((ROOT / "src/model/figures").glob("*.def"))
        self.assertGreaterEqual(len(files), 2)
        status, output = check(*files)
        self.assertEqual(status, 0, output)

    def test_document(self):
        text = (ROOT / "docs/model.md").read_text(encoding="utf-8")
        self.assertEqual(compare_names(text), (set(), set()))
        renamed = text.replace("`wgmma_call_s`", "`wgmma_recall_s`")
        self.assertEqual(compare_names(renamed), ({"wgmma_call_s"}, {"wgmma_recall_s"}))

    def test_fit(self):
        """zen5.def and h200_attention.def are what the fits to the committed calls give."""
        tool = ROOT / "tools/measure/fit_model"
        python = tool.read_text(encoding="utf-8").split("\n", 1)[0][2:]
        if subprocess.run([python, "-c", "import numpy"], check=False).returncode:
            self.skipTest("no numpy")
        for chip, first, *calls in (
                ("zen5", "cpu/first_zen5.csv", "cpu/plans_zen5.csv"),
                ("h200_attention", "h200/first_attention.csv", "h200/attention_choices.csv",
                 "h200/attention_choices_real.csv")):
            results = ROOT / "bench/results"
            done = subprocess.run([python, str(tool), "--verify", "--chip", chip, "--from",
                                   str(results / first), *(str(results / name) for name in calls)],
                                  capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_choices(self):
        """The figures of h200.def choose well among the committed calls, others do not."""
        results = ROOT / "bench/results/h200"
        tool = ROOT / "tools/measure/fit_model"
        python = tool.read_text(encoding="utf-8").split("\n", 1)[0][2:]
        if subprocess.run([python, "-c", "import numpy"], check=False).returncode:
            self.skipTest("no numpy")
        words = [python, str(tool), "--judge", *(str(results / f"plans_{name}.csv")
                                                for name in ("drawn", "fp32", "wgmma"))]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        with tempfile.TemporaryDirectory() as folder:
            first = pathlib.Path(folder) / "first.csv"
            text = (ROOT / "src/model/figures/h200.def").read_text(encoding="utf-8")
            values = re.findall(r'^TGI_FIGURE\((\w+), ([^,]+), "(\w*)', text, re.M)
            lists = re.findall(r'^TGI_FIGURE_LIST\((\w+), [^"]*"[^"]*", "[^"]*",\s*([^)]*)\)', text,
                               re.M)
            first.write_text("name,value\n" + "".join(
                f"{name},{float(value) * (4 if name.startswith('wgmma') and unit == 's' else 1)}\n"
                for name, value, unit in values) + "".join(
                    f"{name},{' '.join(value.replace(',', ' ').split())}\n"
                    for name, value in lists), encoding="utf-8")
            done = subprocess.run([*words, "--from", str(first)], capture_output=True, text=True,
                                  check=False)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)

    def test_other_fit(self):
        """A fit that gives another figure, or bad choices, is refused."""
        loader = importlib.machinery.SourceFileLoader("fit_model",
                                                      str(ROOT / "tools/measure/fit_model"))
        tool = types.ModuleType(loader.name)
        tool.__file__ = loader.path
        sys.modules[loader.name] = tool
        loader.exec_module(tool)
        path = ROOT / "src/model/figures/zen5.def"
        figures = tool.read_figures(path.read_text(encoding="utf-8"))
        with contextlib.redirect_stdout(io.StringIO()) as output:
            self.assertEqual(tool.verify("zen5", path, figures, 1.0), 0)
            self.assertEqual(tool.verify("zen5", path, figures, 0.5), 1)
            figures[-1].values[0] = str(1.1 * float(figures[-1].values[0]))
            self.assertEqual(tool.verify("zen5", path, figures, 1.0), 1)
        self.assertIn("only 50.0 %", output.getvalue())
        self.assertIn(f"{figures[-1].name} is", output.getvalue())

    def assert_refused(self, change, told):
        text = (ROOT / "src/model/figures/h200.def").read_text(encoding="utf-8")
        changed = change(text)
        self.assertNotEqual(changed, text)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "changed.def"
            path.write_text(changed, encoding="utf-8")
            status, output = check(path)
        self.assertNotEqual(status, 0)
        self.assertIn(told, output)

    def test_other_layout(self):
        self.assert_refused(lambda text: text.replace(", 1.6e-6, ", ",  1.6e-6, ", 1),
                            "not as fit_model writes it")

    def test_figure_twice(self):
        self.assert_refused(lambda text: text.replace("(wgmma_call_s,", "(wgmma_launch_s,", 1),
                            "stands twice")

    def test_value_that_is_no_number(self):
        self.assert_refused(lambda text: text.replace(", 1.6e-6, ", ", quick, ", 1), "quick")

    def test_list_that_lacks_a_value(self):
        self.assert_refused(lambda text: text.replace("132, 132, ", "132, ", 1), "are announced")

    def test_entry_that_cannot_be_read(self):
        self.assert_refused(lambda text: text.replace("TGI_FIGURE(wgmma_call_s",
                                                      "TGI_FIGURE (wgmma_call_s", 1), "can be read")


if __name__ == "__main__":
    ROOT = pathlib.Path(sys.argv[1])
    unittest.main(argv=sys.argv[:1])
