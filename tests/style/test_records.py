"""Shows that the records of tools/check/gpu and configurations can fail.

usage: test_records.py ROOT
"""

import contextlib
import io
import json
import os
import tempfile
import unittest

from test_checks import load_tool


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
    def verify(self, tests, changed="", asked=()):
        """Returns (exit status, output) for a record of these tests, of which `asked` and those
        recorded are the list, and of a file to which `changed` has been added since."""
        module = load_tool("gpu")
        module.list_names = lambda: [test["name"] for test in tests] + list(asked)
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
        status, output = self.verify([whole], asked=("rows",))
        self.assertEqual(status, 1, output)
        self.assertIn("rows: is not in the record", output)

    def test_memory_that_others_have(self):
        """A test that finds too little memory beside others runs again, alone; no other does."""
        module, entries = load_tool("gpu"), []
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
            mark = os.path.join(folder, "mark")
            script = f"test -e {mark} || {{ touch {mark}; echo CUDA_ERROR_OUT_OF_MEMORY; false; }}"
            module.run_tests([("large", ["sh", "-c", script]), ("wrong", ["false"])],
                             dict(os.environ), 20, 2, entries.append)
        self.assertEqual({entry["name"]: entry["result"] for entry in entries},
                         {"large": "passed", "wrong": "failed"})

    def test_comments_and_layout_are_no_code(self):
        whole = {"name": "ones", "result": "passed", "shapes": 100}
        for changed in ("/* one */\n", "  // two\n", "\n\n"):
            self.assertEqual(self.verify([whole], changed)[0], 0)
        hash_code = load_tool("gpu").hash_code
        self.assertEqual(hash_code("int a = 1; /* one */\n"), hash_code("int a =\n    1;\n"))
        for one, other in (("int a = 1;", "int a = 2;"), ("int a;", "inta;"),
                           ('f("/* 1 */");', 'f("/* 2 */");'), ('f("// 1");', 'f("// 2");')):
            self.assertNotEqual(hash_code(one), hash_code(other))


if __name__ == "__main__":
    unittest.main()
