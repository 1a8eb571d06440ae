"""Shows that the commands of tools/check can fail.

usage: test_checks.py ROOT

Each case writes a small tree with one fault and expects the tool to name it.
"""

import contextlib
import importlib.machinery
import importlib.util
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.abspath(sys.argv.pop())
CLEAN = {
    "include/tilegemm.h": "int tg_get_one(void);\n",
    "src/core/one.c": '#include "tilegemm.h"\n\nint tg_get_one(void)\n{\n    return 1;\n}\n',
    "src/plan/plan.h": "int tgi_plan_count(void);\n",
    "src/cpu/cpu.c": '#include "plan/plan.h"\n\n#include <stdio.h>\n',
    "src/check/check.h": '#include "tilegemm.h"\n',
    "cli/main.c": '#include "check/check.h"\n#include "tilegemm.h"\n',
    "tests/test_one.c": '#include "../src/cpu/cpu.c"\n',
}


def run_tool(name, files):
    """(exit status, output) of a tool on a tree of CLEAN overlaid with `files`."""
    with tempfile.TemporaryDirectory() as root:
        for path, text in {**CLEAN, **files}.items():
            os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
            with open(os.path.join(root, path), "w", encoding="utf-8") as file:
                file.write(text)
        shutil.copy(os.path.join(ROOT, ".clang-format"), root)
        result = subprocess.run([sys.executable, os.path.join(ROOT, "tools", "check", name), root],
                                capture_output=True, text=True, check=False)
    return result.returncode, result.stdout + result.stderr


def load_tool(name):
    """A tool as a module."""
    loader = importlib.machinery.SourceFileLoader(name, os.path.join(ROOT, "tools", "check", name))
    sys.dont_write_bytecode = True
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    loader.exec_module(module)
    return module


class ToolCase(unittest.TestCase):
    tool = ""

    def expect_clean(self, files):
        status, output = run_tool(self.tool, files)
        self.assertEqual(status, 0, output)

    def expect_fault(self, files, text):
        status, output = run_tool(self.tool, files)
        self.assertEqual(status, 1, output)
        self.assertIn(text, output)


class StyleTest(ToolCase):
    tool = "style"

    def test_clean_tree_passes(self):
        self.expect_clean({})

    def test_layout(self):
        self.expect_fault({"src/core/a.c": "int  a;\n"}, "src/core/a.c:1: layout")

    def test_width(self):
        self.expect_fault({"src/core/a.def": "/* " + "x" * 98 + " */\n"}, "104 columns")

    def test_file_length(self):
        self.expect_clean({"src/core/a.c": "int a;\n" * 400})
        self.expect_fault({"src/core/a.c": "int a;\n" * 401}, "401 lines")

    def test_c_function_length(self):
        text = "int f(int x)\n{\n" + "    x++;\n" * 77 + "    return x;\n}\n"
        self.expect_clean({"src/core/a.c": text})
        text = text.replace("{\n", "{\n    x++;\n")
        self.expect_fault({"src/core/a.c": text}, "a function of 81 lines")

    def test_python_and_shell_function_length(self):
        self.expect_fault({"tools/a.py": "def f():\n" + "    pass\n" * 80}, "of 81 lines")
        self.expect_fault({"tools/a.sh": "f() {\n" + "    :\n" * 80 + "}\n"}, "of 82 lines")

    def test_script(self):
        text = "export function f(x) {\n" + "    x++;\n" * 78 + "}\n"
        self.expect_clean({"page/a.js": text})
        self.expect_fault({"page/a.js": text.replace("{\n", "{\n    x++;\n")}, "of 81 lines")
        text = "const a = {\n    f(x) {\n" + "        x++;\n" * 79 + "    },\n};\n"
        self.expect_fault({"page/a.js": text}, "page/a.js:2: a function of 81 lines")
        self.expect_fault({"page/a.js": "const fastPath = 1;\n"}, "'fast_Path' holds the word")
        self.expect_clean({"page/a.js": "const a = new Map(); // a fast one\nf('new', `fast`);\n"})

    def test_names(self):
        self.expect_fault({"src/core/a.c": "int fast_path;\n"}, "'fast_path' holds the word 'fast'")
        self.expect_fault({"src/core/string_util.c": "int a;\n"}, "file name with the word 'util'")
        self.expect_clean({"src/core/a.c": "int news; /* a fast, new helper */\n"})
        self.expect_clean({"src/core/a.def": "cuMemAlloc_v2\n"})
        self.expect_fault({"src/core/a.def": "memory_v2\n"}, "'memory_v2' holds the word 'v2'")

    def test_device_code(self):
        self.expect_fault({"src/kernels/a.cu": "int  a;\n"}, "src/kernels/a.cu:1: layout")
        self.expect_fault({"src/kernels/a.cuh": "int fast_a;\n"}, "holds the word 'fast'")

    def test_white_space_and_leftovers(self):
        self.expect_fault({"tools/a.sh": "ls \n"}, "white space at the end")
        self.expect_fault({"tools/a.sh": "\tls\n"}, "tab")
        self.expect_fault({"tools/a.sh": "ls"}, "no newline at the end")
        self.expect_fault({"src/core/a.c": "int a; /* TO" "DO: more */\n"}, "leftover mark")


class LayersTest(ToolCase):
    tool = "layers"

    def test_clean_tree_passes(self):
        self.expect_clean({})

    def test_lower_sees_upper(self):
        self.expect_fault({"src/core/a.c": '#include "plan/plan.h"\n'},
                          "src/core may not include src/plan/plan.h")
        self.expect_fault({"src/core/a.c": '#include "../plan/plan.h"\n'}, "may not include")
        self.expect_fault({"src/core/a.c": "#  include <plan/plan.h>\n"}, "may not include")

    def test_device_code_sees_host_code(self):
        self.expect_fault({"src/kernels/a.cu": '#include "plan/plan.h"\n'},
                          "src/kernels may not include src/plan/plan.h")

    def test_command_sees_inside(self):
        self.expect_fault({"cli/a.c": '#include "plan/plan.h"\n'}, "cli may not include")
        self.expect_fault({"cli/a.c": '\n#include "../src/plan/plan.h"\n'}, "cli/a.c:2")

    def test_unknown_folder(self):
        self.expect_fault({"src/other/a.c": "int a;\n"}, "folder src/other has no rule")

    def test_script(self):
        views = {"page/chart.js": "", "page/app.js": "", "page/views/a.js": ""}
        self.expect_clean({**views, "page/views/b.js": "import {a} from '../chart.js';\n"})
        for path, name, text in (
                ("page/views/b.js", "d3-axis", "is imported by page/chart.js alone"),
                ("page/b.js", "other", "is imported by nobody alone"),
                ("page/b.js", "./none.js", "is no file of page/"),
                ("page/b.js", "./views/a.js", "may not import page/views/a.js"),
                ("page/views/b.js", "../app.js", "may not import page/app.js"),
                ("page/b.js", "../cli/main.c", "is no file of page/")):
            self.expect_fault({**views, path: f"import {{a}} from '{name}';\n"}, text)

    def test_missing_file(self):
        self.expect_fault({"cli/a.c": '#include "absent.h"\n'}, '"absent.h" is no file')


class CountsTest(unittest.TestCase):
    def test_junit(self):
        module = load_tool("configurations")
        case = '<testcase name="t" status="{}">{}</testcase>'.format
        text = "<testsuite>" + "".join([
            case("run", ""), case("run", ""), case("fail", '<failure message=""/>'),
            case("notrun", '<skipped message="SKIP_RETURN_CODE=77"/><system-out>why</system-out>'),
            case("notrun", '<skipped message="Unable to find executable"/>'),
            case("disabled", "")]) + "</testsuite>"
        with tempfile.NamedTemporaryFile("w", suffix=".xml") as file:
            file.write(text)
            file.flush()
            self.assertEqual(module.read_counts(file.name), (2, 3, 1))


class RecordTest(unittest.TestCase):
    def verify(self, tests, changed=""):
        """(exit status, output) of a record of these tests, of a file that has changed since."""
        module = load_tool("gpu")
        with tempfile.TemporaryDirectory() as module.ROOT:
            path = os.path.join(module.ROOT, "src/cuda/a.c")
            record = os.path.join(module.ROOT, module.RECORD)
            for name in (path, record):
                os.makedirs(os.path.dirname(name))
            with open(path, "w", encoding="utf-8") as file:
                file.write("int a;\n")
            with open(record, "w", encoding="utf-8") as file:
                json.dump({"device": "one", "date": "2026-01-01", "exact_shapes": 100,
                           "tests": tests, "files": module.hash_inputs()}, file)
            with open(path, "a", encoding="utf-8") as file:
                file.write(changed)
            output = io.StringIO()
            with contextlib.redirect_stdout(output):
                status = module.verify()
        return status, output.getvalue()

    def test_record(self):
        whole = {"name": "ones", "result": "passed", "shapes": 100}
        other = {"name": "rows", "result": "passed"}
        self.assertEqual(self.verify([whole, other])[0], 0)
        for tests, changed, text in (
                ([whole], "int b;\n", "src/cuda/a.c: changed"),
                ([whole, {**other, "result": "failed"}], "", "rows: failed"),
                ([{**whole, "shapes": 99}, other], "", "ones: ended before all its 100 shapes")):
            status, output = self.verify(tests, changed)
            self.assertEqual(status, 1, output)
            self.assertIn(text, output)


if __name__ == "__main__":
    unittest.main()
