"""Shows that tools/check/style and layers can fail.

usage: test_checks.py ROOT

Each case writes a small tree with one fault and expects the tool to name it.
"""

import importlib.machinery
import importlib.util
import io
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
    """Returns (exit status, output) of a tool on a tree of CLEAN overlaid with `files`."""
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
    """Returns a tool as a module."""
    sys.path.insert(0, os.path.join(ROOT, "tools", "check"))  # finds the modules that it imports
    loader = importlib.machinery.SourceFileLoader(name, os.path.join(ROOT, "tools", "check", name))
    sys.dont_write_bytecode = True
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    loader.exec_module(module)
    return module


class ToolCase(unittest.TestCase):
    """Runs the tool of this name on small trees."""
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

    def test_environment(self):
        self.expect_clean({"tests/b.c": 'char *a = getenv("A");\n',
                           "cli/a.c": 'char *a = secure_getenv("A"); /* not getenv(A) */\n'})
        self.expect_fault({"cli/a.c": 'char *a = getenv("A");\n'}, "cli/a.c:1: getenv; call")

    def test_assembly(self):
        text = 'void a(void)\n{\n    asm volatile("nanosleep.u32 0;");\n}\n'
        self.expect_clean({"src/kernels/ptx/b.cuh": text, "src/a.c": "/* This is no asm. */\n"})
        self.expect_fault({"src/kernels/a.cuh": text}, "src/kernels/a.cuh:3: assembly; wrap")

    def test_repeated_file_names(self):
        self.expect_clean({"src/cpu/CMakeLists.txt": "", "src/core/CMakeLists.txt": "",
                           "tests/cli/golden/main.c": "int a;\n"})
        self.expect_fault({"tests/one.c": "int a;\n"},
                          "tests/one.c:1: a second file one.c; the first is src/core/one.c")

    def test_repeated_definitions(self):
        self.expect_clean({"src/cpu/a.h": "typedef struct tgi_a tgi_a;\n",
                           "src/core/a.c": "struct tgi_a {\n    int b;\n};\n",
                           "src/sim/left_out.c": "int tg_get_one(void)\n{\n    return 0;\n}\n"})
        for first, second, kind in (
                ("struct tgi_a {\n    int b;\n};\n", "enum tgi_a { TGI_B };\n", "type 'tgi_a'"),
                ("typedef int (*tgi_a)(int);\n", "typedef int tgi_a;\n", "type 'tgi_a'"),
                ("int f(int a)\n{\n    return a;\n}\n", "int f(void)\n{\n    return 1;\n}\n",
                 "function 'f'"),
                ("static int tgi_f(void)\n{\n    return 1;\n}\n",
                 "static int tgi_f(void)\n{\n    return 2;\n}\n", "function 'tgi_f'")):
            self.expect_fault({"src/core/b.c": first, "tests/c.c": second},
                              f"tests/c.c:1: a second {kind}; the first is in src/core/b.c:1")
        plain = "struct pair {\n    int a, b;\n};\n"
        inner = "struct tgi_%s {\n    struct pair {\n        int a, b;\n    };\n};\n"
        self.expect_fault({"cli/b.c": plain, "src/core/c.c": plain},
                          "src/core/c.c:1: a second type 'pair'; the first is in cli/b.c:1")
        self.expect_clean({"src/core/b.c": plain, "tests/c.c": plain, "src/c.cuh": inner % "one",
                           "src/d.cuh": inner % "two", "src/kernels/ladder/d.cu": plain})
        private = "static int f(void)\n{\n    return 1;\n}\n"
        self.expect_clean({"src/core/b.c": private, "tests/c.c": private})


class LanguageTest(unittest.TestCase):
    """Tests the rules of comments and documents."""

    def find_faults(self, path, text):
        prose = load_tool("prose.py")
        faults = []
        prose.check_comments(path, text, faults)
        prose.check_document(path, text, faults)
        return "\n".join(f"{fault_path}:{line}: {message}" for fault_path, line, message in faults)

    def find_headers(self, path, text):
        faults = []
        load_tool("prose.py").check_header(path, text, faults)
        return "\n".join(message for _, _, message in faults)

    def test_examples_fit(self):
        for width, is_right in ((79, True), (80, False)):
            faults = []
            example = "  tilegemm multiply a.npy".ljust(width, "x")
            load_tool("prose.py").check_examples("cli/a.c", f'    "{example}\\n"\n', faults)
            self.assertEqual(faults == [], is_right, faults)

    def test_fragments(self):
        for comment in ("Of D, over all batch entries.", "The same for B.", "As above.",
                        "The same strips where tiles follow rows.",
                        "Likewise.", "1 where the grid runs along rows.", "1 if A is transposed.",
                        "What tiles of a block share.", "Where accesses begin.",
                        "Those of a tile."):
            for path, text in (("src/core/a.c", f"int a;\n\n/* {comment} */\nint b;\n"),
                               ("page/a.js", f"let a;\n\n// {comment}\nlet b;\n")):
                self.assertIn(f"{path}:3: a comment that begins", self.find_faults(path, text))
        self.assertIn("a sentence that begins with 'Of'", self.find_faults(
            "src/core/a.c", "/* Rows end. Of others, one is legal. */\nint b;\n"))
        for comment in ("Returns 1 if A is transposed.", "Offsets are in bytes.",
                        "Bits are the same for any thread count.", "All end. Of course A ends."):
            self.assertEqual(self.find_faults("src/core/a.c", f"/* {comment} */\nint b;\n"), "")
        self.assertEqual(self.find_faults("src/core/a.c", "int b; /* 1 if transposed */\n"), "")

    def test_fragments_after_a_hash(self):
        for path in ("Makefile", "src/CMakeLists.txt", "cmake/a.cmake", "tools/check/a",
                     "tests/a.py"):
            self.assertIn(f"{path}:2: a comment that begins",
                          self.find_faults(path, "a\n# Of the page.\nb\n"))
            self.assertEqual(self.find_faults(path, "#!/bin/sh\na # of the page\n# It is.\n"), "")
        self.assertEqual(self.find_faults("bench/suites/a.txt", "# Of the page.\n"), "")

    def test_fragments_behind_code(self):
        for comment in ("of D", "that a block takes", "those of B", "whose sums wait", "what it is",
                        "which is read", "the same for B", "as above", "likewise",
                        "else a thread reads too early"):
            for path, text in (("src/core/a.h", f"int a;\nint b; /* {comment} */\n"),
                               ("page/a.js", f"let a;\nlet b; // {comment}\n")):
                self.assertIn(f"{path}:2: a comment that begins", self.find_faults(path, text))
        for comment in ("bytes of D", "0: none", "off by default", "as wide as a tile"):
            self.assertEqual(self.find_faults("src/core/a.h", f"int b; /* {comment} */\n"), "")

    def test_files_need_a_verb(self):
        for header in ("The clock of a device", "Vectors of AVX-512, as wide as a line",
                       "A block that is kept, which others read", "cuBLAS with its default choice"):
            self.assertIn("begins without a verb",
                          self.find_headers("src/core/a.h", f"/* {header}. It ticks. */\n"))
            self.assertIn("begins without a verb",
                          self.find_headers("src/kernels/a.cuh", f"/* {header}. */\n"))
            for ladder in ("ladder", "attention_ladder"):
                self.assertEqual(
                    self.find_headers(f"src/kernels/{ladder}/l.cu", f"/* {header}. */\n"), "")
        for header in ("Declares the clock", "The clock is that of a device", "Tests of bits fail",
                       "tilegemm info: shows the machine"):
            self.assertEqual(self.find_headers("cli/a.h", f"/*\n * {header}. */\n"), "")

    def test_functions_need_a_verb(self):
        for comment in ("One kernel in full.", "Peer of that name, or NULL."):
            self.assertIn("without a verb", self.find_faults(
                "cli/a.h", f"/* {comment} */\nint cli_find(const char *name);\n"))
            self.assertEqual(self.find_faults("cli/a.h", f"/* {comment} */\nint cli_a;\n"), "")
        for comment in ("Returns the peer.", "The caller must free it.", "PTX cp.async."):
            self.assertEqual(self.find_faults(
                "cli/a.h", f"/* {comment} */\nint cli_find(const char *name);\n"), "")

    def test_private_words(self):
        for word, field in (("copy engine", "TMA"), ("parts of k", "splits"),
                            ("split-K parts", "splits"), ("panel of k", "slab"),
                            ("movers", "relayout warp"), ("mended", "repair"),
                            ("loose", "unaligned"), ("16 steps of k", "values of k"),
                            ("keep step", "keep pace"), ("pass over k", "walk over k"),
                            ("compiler pass", "compilation"),
                            ("wild elements", "non-finite elements")):
            self.assertIn(f"write '{field}'", self.find_faults(
                "src/core/a.c", f"/* The {word} is used. */\nint b;\n"))
            self.assertIn(f"docs/a.md:2: '{word}'",
                          self.find_faults("docs/a.md", f"\nThe {word}.\n"))
            self.assertEqual(self.find_faults("docs/a.md", f"A `{word}`.\n```\n{word}\n```\n"), "")
        self.assertEqual(self.find_faults("docs/a.md", "The family loose, which recommends.\n"), "")

    def test_private_names(self):
        style, faults = load_tool("style"), []
        text = "int mend_tile, is_a_turned, is_d_boxed, a_is_loose, has_wild;\n" \
            "int recommend, returned;\n" \
            "TGI_CUDA_ROW(loose, TGI_FAMILY_cuda_loose, TGI_IMAGE_loose)\n"
        style.check_names("src/core/a.c", text, faults)
        self.assertEqual([fault[1] for fault in faults], [1, 1, 1, 1, 1])

    def test_names_of_distances(self):
        style, faults = load_tool("style"), []
        style.check_names("src/core/a.c", "int row_step, RowStep, COL_STEP, k_step_bytes;\n"
                                          "int step, step_count, stepElems, rank_step_s;\n", faults)
        style.check_names("page/a.js", "const rowStep = 1, stepCount = 2;\n", faults)
        self.assertEqual([fault[1] for fault in faults], [1, 1, 1, 1, 1])

    def test_glossary(self):
        head = "| word | meaning |\n|---|---|\n"
        for first, second in (("rank", "rank"), ("m, n, k", "queries, n"),
                              ("rank (MPI)", "rank (MPI)"), ("rank", "rank (MPI)"),
                              ("rank (MPI)", "rank"), ("part (of k)", "part (of keys)")):
            text = head + f"| {first} | one |\n\n" + head + f"| {second} | two |\n"
            self.assertIn("docs/glossary.md:7: a second row of '",
                          self.find_faults("docs/glossary.md", text))
            self.assertEqual(self.find_faults("docs/a.md", text), "")
        self.assertEqual(self.find_faults("docs/glossary.md", head + "| rank (MPI) | one |\n"
                                          "| rank (CUDA) | two |\n| \\|A\\|, B | m |\n"), "")

    def test_width_of_documents(self):
        wide = "x" * 121 + "\n"
        for path in ("README.md", "docs/a.md"):
            self.assertIn(f"{path}:2: 121 columns", self.find_faults(path, "\n" + wide))
            self.assertIn(f"{path}:1: 161 columns", self.find_faults(path, "|" + "x" * 160 + "\n"))
        for path, text in (("docs/a.md", "| " + wide), ("docs/a.md", "```\n" + wide + "```\n"),
                           ("docs/a.md", wide[1:]), ("docs/notes/a.md", wide),
                           ("docs/benchmarks.md", wide)):
            self.assertEqual(self.find_faults(path, text), "")


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
        self.expect_fault({"cli/other/a.c": "int a;\n"}, "folder cli/other has no rule")
        self.expect_fault({"src/cuda/other/a.c": "int a;\n"}, "folder src/cuda/other has no rule")

    def test_rooms(self):
        for path, target, is_right in (
                ("cli/bench/a.c", "cli/peers/b.h", True),
                ("cli/peers/a.c", "cli/bench/b.h", False),
                ("cli/multiply/a.c", "cli/report/b.h", False),
                ("src/cuda/a.c", "src/cuda/families/b.h", True),
                ("src/cuda/runtime/a.c", "src/cuda/families/b.h", False),
                ("src/cuda/families/a_launch.c", "src/cuda/runtime/b.h", True),
                ("src/cuda/families/a.c", "src/cuda/runtime/b.h", False),
                ("src/cuda/families/a.c", "src/cuda/families/b_launch.h", False),
                ("src/kernels/a/a.cuh", "src/kernels/copy/b.cuh", True),
                ("src/kernels/a/a.cuh", "src/kernels/c/b.cuh", False),
                ("src/kernels/copy/a.cuh", "src/kernels/c/b.cuh", False),
                ("src/kernels/ptx/a.cuh", "src/kernels/epilogue/b.cuh", False)):
            name = os.path.relpath(target, "cli" if target.startswith("cli") else "src")
            files = {path: f'#include "{name}"\n', target: "int a;\n"}
            if is_right:
                self.expect_clean(files)
            else:
                self.expect_fault(files, f"may not include {target}")

    def test_circles(self):
        self.expect_clean({"src/core/a.h": "int a;\n", "src/core/b.h": '#include "a.h"\n',
                           "src/core/a.c": '#include "a.h"\n', "src/core/c.c": '#include "b.h"\n'})
        for files in ({"src/core/a.h": '#include "b.h"\n', "src/core/b.h": '#include "a.h"\n'},
                      {"src/core/a.c": '#include "b.h"\n', "src/core/b.c": '#include "a.h"\n',
                       "src/core/a.h": "int a;\n", "src/core/b.h": "int b;\n"}):
            self.expect_fault(files, "includes go in a circle: src/core/a, src/core/b")

    def test_script(self):
        page = {"page/parts/chart.js": "", "page/app.js": "", "page/views/a.js": ""}
        for path, name in (("page/views/b.js", "../parts/chart.js"), ("page/b.js", "./views/a.js"),
                           ("page/views/b.js", "./a.js")):
            self.expect_clean({**page, path: f"import {{a}} from '{name}';\n"})
        for path, name, text in (
                ("page/views/b.js", "d3-axis", "is imported by page/parts/chart.js alone"),
                ("page/b.js", "other", "is imported by nobody alone"),
                ("page/b.js", "./none.js", "is no file of page/"),
                ("page/parts/b.js", "../views/a.js", "may not import page/views/a.js"),
                ("page/other/b.js", "../views/a.js", "may not import page/views/a.js"),
                ("page/views/b.js", "../app.js", "may not import page/app.js"),
                ("page/b.js", "./app.js", "may not import page/app.js"),
                ("page/b.js", "../cli/main.c", "is no file of page/")):
            self.expect_fault({**page, path: f"import {{a}} from '{name}';\n"}, text)

    def test_missing_file(self):
        self.expect_fault({"cli/a.c": '#include "absent.h"\n'}, '"absent.h" is no file')


if __name__ == "__main__":
    unittest.main()
