"""Shows what an addition costs: makes those of additions.py in a copy of the tree, counts the files
that each touches, builds the library and the command, and uses what was added. Products with the
new operand are compared with the tests' oracle, and an oracle without it must refuse them.

usage: test_additions.py ROOT CMAKE CC NVCC      (NVCC: empty where there is none)
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
ROOT, CMAKE, CC, NVCC = sys.argv[1:]
sys.path.insert(0, os.path.join(ROOT, "tools", "check"))
from additions import ADDITIONS, Tree  # noqa: E402
from source_tree import list_files  # noqa: E402

PRODUCT = """#include <stdio.h>
#include <tilegemm.h>

int main(void)
{
    float a[2] = {1, 2}, b[2] = {3, 4}, d[1] = {0}, residual[1] = {5};
    tg_problem problem = tg_make_problem(tg_make_matrix(TG_TYPE_FP32, a, 1, 2),
                                         tg_make_matrix(TG_TYPE_FP32, b, 2, 1),
                                         tg_make_matrix(TG_TYPE_FP32, d, 1, 1));
    problem.residual = tg_make_matrix(TG_TYPE_FP32, residual, 1, 1);
    problem.gamma = 10;
    if (tg_multiply(NULL, &problem) != TG_STATUS_OK)
        return puts(tg_get_error_detail()), 1;
    printf("%g\\n", d[0]);
    return 0;
}
"""

# Compares a product with the operand by a kernel on the simulator with the same on the CPU. The
# numbers are integers, whose sums BF16 holds.
FRAGMENTS = """#include <stdio.h>
#include <string.h>
#include <tilegemm.h>

enum { m = 70, n = 50, k = 40 };
static uint16_t a[m * k], b[k * n], c[m * n], d[2][m * n];

static int multiply(const char *device, const char *kernel, uint16_t *target)
{
    tg_context_options where;
    tg_plan_options how = {sizeof how, kernel};
    tg_context *context;
    tg_plan *plan;
    tg_problem problem = tg_make_problem(tg_make_matrix(TG_TYPE_BF16, a, m, k),
                                         tg_make_matrix(TG_TYPE_BF16, b, k, n),
                                         tg_make_matrix(TG_TYPE_BF16, target, m, n));
    problem.residual = tg_make_matrix(TG_TYPE_BF16, c, m, n);
    problem.gamma = 2;
    tg_buffers buffers = {.struct_bytes = sizeof buffers, .a = a, .b = b, .residual = c,
                          .d = target};
    tg_init_context_options(&where, sizeof where);
    where.device = device;
    return tg_create_context(&where, &context) || tg_create_plan(context, &problem, &how, &plan) ||
           tg_execute_plan(plan, &buffers);
}

static void fill(uint16_t *matrix, int count)
{
    static const uint16_t values[] = {0, 0x3f80, 0xbf80, 0x4000, 0xc000}; /* 0, 1, -1, 2, -2 */
    static unsigned random = 1;
    for (int i = 0; i < count; i++)
        matrix[i] = values[(random = random * 1664525 + 1013904223) / 65536 % 5];
}

int main(int count, char **words)
{
    fill(a, m * k);
    fill(b, k * n);
    fill(c, m * n);
    if (count < 2 || multiply("cpu", NULL, d[0]) || multiply("sim", words[1], d[1]))
        return puts(tg_get_error_detail()), 1;
    return puts(memcmp(d[0], d[1], sizeof d[0]) ? "elements differ" : "all elements are equal") < 0;
}
"""

# Problems that use the operand, with and without the other terms of the epilogue.
PRODUCTS = [word for problem in ("37x29x41:gamma=2", "37x29x41:fp64:gamma=-1:beta=0.5",
                                 "50x3x70:tn:bf16:gamma=0.5:bias=row:act=relu",
                                 "5x64x9:fp8_e4m3:gamma=2", "64x48x0:gamma=3")
            for word in ("--shape", problem)]


def run(*command, **options):
    done = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(command)}:\n{(done.stdout + done.stderr)[-4000:]}")
    return done.stdout


class Additions(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        """One copy has all additions, so that it is built once."""
        cls.folder = tempfile.mkdtemp(prefix="tilegemm-additions-")
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        for path in list_files(ROOT):
            target = os.path.join(cls.folder, path)
            os.makedirs(os.path.dirname(target), exist_ok=True)
            shutil.copy2(os.path.join(ROOT, path), target)
        cls.touched = {}
        for name, (add, _) in ADDITIONS.items():
            tree = Tree(cls.folder)
            add(tree)
            cls.touched[name] = tree.touched
        cls.build = os.path.join(cls.folder, "build")
        run(CMAKE, "-S", cls.folder, "-B", cls.build, f"-DCMAKE_C_COMPILER={CC}",
            "-DCMAKE_BUILD_TYPE=None", "-DTG_CUDA_ARCHITECTURES=", "-DTG_BUILD_TESTS=OFF",
            "-DTG_PAGE=OFF", "-DTG_SIM=ON")
        run(CMAKE, "--build", cls.build, "--target", "tilegemm_command")
        cls.tilegemm = os.path.join(cls.build, "tilegemm")

    def test_files_touched(self):
        for name, (_, limit) in ADDITIONS.items():
            paths = sorted(self.touched[name])
            print(f"{name}: {len(paths)} files: {' '.join(paths)}")
            self.assertLessEqual(len(paths), limit, name)

    def test_family_is_planned(self):
        told = json.loads(run(self.tilegemm, "explain", "64x64x64", "--gpu", "h200", "--kernel",
                              "brief", "--json"))
        rows = [row for row in told["candidates"] if row["kernel"].startswith("cuda_brief_")]
        self.assertTrue(rows)
        self.assertTrue(all(row["predicted_s"] > 0 for row in rows), rows)

    def test_family_is_compiled(self):
        if not NVCC:
            self.skipTest("no nvcc")
        source = os.path.join(self.folder, "src", "kernels", "brief", "brief.cu")
        done = subprocess.run(
            [NVCC, "-fatbin", "-std=c++17", "-O3", "--Werror", "all-warnings", "-Xptxas", "-v",
             "-arch=sm_90", "-I", os.path.join(self.folder, "src"), "-I",
             os.path.join(self.folder, "include"), "-o", os.path.join(self.folder, "brief.fatbin"),
             source], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("'cuda_brief_sm75_fp32_", done.stdout + done.stderr)

    def test_body_lacks_nothing(self):
        """A body without one of the functions that kernels/body.cuh states does not compile."""
        if not NVCC:
            self.skipTest("no nvcc")
        words = ("setup", "load", "multiply", "finish")
        source = os.path.join(self.folder, "body.cu")
        for left_out in ("", *words):
            members = " ".join(f"void {word}(int);" for word in words if word != left_out)
            with open(source, "w", encoding="utf-8") as file:
                file.write(f'#include "kernels/body.cuh"\nstruct body {{ {members} }};\n'
                           "__global__ void form(void)\n"
                           "{ tgi_check_body<body>(); tgi_check_sum<body>(); }\n")
            done = subprocess.run(
                [NVCC, "-ptx", "-std=c++17", "-I", os.path.join(self.folder, "src"), "-I",
                 os.path.join(self.folder, "include"), "-o", source + ".ptx", source],
                capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode == 0, left_out == "", done.stderr)
            self.assertIn(f"a body has {left_out}(" if left_out else "", done.stderr)

    def test_type_is_multiplied(self):
        text = run(self.tilegemm, "bench", "--shape", "20x30x40", "--type", "twin", "--kernel",
                   "all", "--peer", "none", "--rounds", "1", "--min-time", "0")
        self.assertIn("cpu_packed_generic_twin", text)

    def compile_program(self, name, text):
        """Returns the path of a program that uses the copy's library."""
        source = os.path.join(self.folder, name + ".c")
        with open(source, "w", encoding="utf-8") as file:
            file.write(text)
        program, library = os.path.join(self.folder, name), os.path.join(self.build, "lib")
        run(CC, "-std=c11", "-I" + os.path.join(self.folder, "include"), source, "-L" + library,
            "-ltilegemm", "-Wl,-rpath," + library, "-o", program)
        return program

    def test_operand_is_added(self):
        told = run(self.compile_program("product", PRODUCT))
        self.assertEqual(told, "61\n")  # 1 * 3 + 2 * 4 + 10 * 5

    def test_operand_agrees_with_the_oracle(self):
        """Every row of the CPU forms products with the operand. An oracle that lacks the operand
        finds each of them wrong."""
        def count_wrong():
            done = subprocess.run(
                [self.tilegemm, "bench", *PRODUCTS, "--kernel", "all", "--peer", "none",
                 "--rounds", "1", "--min-time", "0", "--json", "-"],
                capture_output=True, text=True, check=False)
            rows = [row for row in json.loads(done.stdout)["records"] if row["kind"] == "kernel"]
            wrong = [row for row in rows if not row["is_right"]]
            return len(rows), len(wrong), done.returncode

        rows, wrong, status = count_wrong()
        self.assertGreater(rows, 2 * len(PRODUCTS))
        self.assertEqual((wrong, status), (0, 0))
        path = os.path.join(self.folder, "src/check/expected_epilogue.c")
        with open(path, encoding="utf-8") as file:
            text = file.read()
        for mutant in (text.replace("if (problem->gamma != 0)", "if (0)"), text):
            with open(path, "w", encoding="utf-8") as file:
                file.write(mutant)
            run(CMAKE, "--build", self.build, "--target", "tilegemm_command")
            rows, wrong, status = count_wrong()
            self.assertEqual(wrong, 0 if mutant == text else rows)
            self.assertEqual(status == 0, mutant == text)

    def test_operand_agrees_in_fragments(self):
        """Rows of family mma, whose epilogue is by fragments, form products with the operand on the
        simulator, with the bits of the CPU."""
        told = run(self.compile_program("fragments", FRAGMENTS), "cuda_mma_sm80_bf16")
        self.assertEqual(told, "all elements are equal\n")

    def test_operand_is_compiled_in_fragments(self):
        """A warpgroup's tile applies the operand too, also if C comes through stages."""
        if not NVCC:
            self.skipTest("no nvcc")
        source = os.path.join(self.folder, "src", "kernels", "wgmma", "wgmma_tf32.cu")
        done = subprocess.run(
            [NVCC, "-ptx", "-std=c++17", "--Werror", "all-warnings", "-arch=sm_90a", "-I",
             os.path.join(self.folder, "src"), "-I", os.path.join(self.folder, "include"), "-o",
             os.path.join(self.folder, "wgmma.ptx"), source], capture_output=True, text=True,
            check=False)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_operand_is_planned(self):
        """Every row that serves a problem serves it with the operand, but for rungs, which have no
        epilogue. A row whose executor an operand does not name refuses it."""
        def explain(problem):
            told = json.loads(run(self.tilegemm, "explain", problem, "--gpu", "h100", "--json"))
            return {row["kernel"]: row for row in told["candidates"]
                    if row["kernel"].startswith("cuda_") and row["refusal"] != "other_type"}

        with open(os.path.join(self.folder, "src/cuda/families/families.def"),
                  encoding="utf-8") as file:
            rungs = tuple(f"cuda_{family}_" for family in re.findall(
                r"^TGI_CUDA_FAMILY\((\w+), ladder, \w+\)", file.read(), re.M))
        for size in ("512x512x512", "16x512x512"):
            without, using = explain(size + ":bf16"), explain(size + ":bf16:gamma=1")
            refused = explain(size + ":bf16:delta=1")
            self.assertEqual(without.keys(), using.keys())
            for name, row in using.items():
                if name.startswith(rungs):
                    self.assertEqual(row["refusal"], "epilogue", name)
                    continue
                self.assertEqual(row["is_legal"], without[name]["is_legal"], name)
                self.assertFalse(refused[name]["is_legal"], name)
                if row["is_legal"]:
                    self.assertEqual(refused[name]["refusal"], "epilogue", name)
                    self.assertIn("mask", refused[name]["reason"], name)
            self.assertTrue(any(row["is_legal"] for row in using.values()))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
