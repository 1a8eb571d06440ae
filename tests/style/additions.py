"""The additions that test_additions.py makes to a copy of the tree, each as docs/add_a_kernel.md
tells them: a family of GPU kernels, a type, an operand of the epilogue.
"""

import os
import re


class Tree:
    """Holds a copy of the tree, and notes which files each addition changes or adds."""

    def __init__(self, root):
        self.root = root
        self.touched = set()

    def read(self, path):
        with open(os.path.join(self.root, path), encoding="utf-8") as file:
            return file.read()

    def write(self, path, text):
        os.makedirs(os.path.dirname(os.path.join(self.root, path)), exist_ok=True)
        with open(os.path.join(self.root, path), "w", encoding="utf-8") as file:
            file.write(text)
        self.touched.add(path)

    def replace(self, path, pattern, replacement, count=1):
        """Replaces each match of a pattern. There must be at least `count` matches."""
        text, found = re.subn(pattern, replacement, self.read(path), flags=re.M | re.S)
        if found < count:
            raise AssertionError(f"{path} has {found} of {count} places for '{pattern}'")
        self.write(path, text)

    def double(self, path, pattern, change, count=1):
        """Adds after each match of a pattern the same text, changed."""
        self.replace(path, pattern, lambda match: match.group() + change(match.group()), count)


def add_family(tree):
    """Adds family brief, a copy of family small in which the body and the instances are one file,
    and so are the planner's. Its time has small's figures."""
    def rename(text):
        return text.replace("small", "brief").replace("SMALL", "BRIEF")

    folder = "src/kernels/small/"
    instances = tree.read(folder + "small.cu")
    for name in ("small.cuh", "small_piece.cuh", "small_short.cuh", "small_terms.cuh",
                 "small_direct.cuh"):
        instances = instances.replace(f'#include "kernels/small/{name}"\n',
                                      tree.read(folder + name))
    tree.write("src/kernels/brief/brief.cu", rename(instances))
    planner = "src/cuda/families/small"
    header = tree.read(planner + ".h")

    def join(*names):
        text = "".join(tree.read(planner + name) for name in names)
        return rename(text.replace('#include "cuda/families/small.h"\n', header))

    tree.write(rename(planner + ".c"), join(".c", "_direct.c", "_loads.c", "_strips.c", "_relay.c",
                                             "_chains.c", "_lines.c"))
    relay_args = f'#include "{folder[4:]}small_relay_args.h"\n'
    tree.write(rename(planner + "_launch.c"),
               join("_launch.c").replace(rename(relay_args),
                                         rename(tree.read(folder + "small_relay_args.h"))))
    tree.write(rename(folder + "small_shape.h"), rename(tree.read(folder + "small_shape.h")))
    tree.double("src/model/tile_model.h", r"^double tgi_model_small_seconds\([^;]*;\n", rename)
    tree.double("src/model/tile_model.c", r"^double tgi_model_small_seconds\(.*?\n}\n",
                lambda text: "\n" + text.replace("_small_seconds", "_brief_seconds"))
    tree.double("src/core/kernels.def", r"^TGI_FAMILY\(cuda, small, .*?\)\n", rename)
    tree.double("src/core/kernels.def", r"^TGI_CUDA_ROW\(small, small, sm75, fp32[^\n]*\n"
                "(?!TGI_CUDA_ROW\\(small, small, sm75, fp32)", rename)
    tree.double("src/cuda/families/families.def", r"^TGI_CUDA_FAMILY\(small, small, .*?\)\n",
                rename)
    tree.double("src/CMakeLists.txt",
                r"^ +(cuda/families|kernels/small)/small(_launch)?\.cu?\b.*?\n", rename, 3)


def add_type(tree):
    """Adds type twin: the numbers of FP16 with the other sign, by conversions of its own, and a
    kernel on the CPU that converts element by element."""
    def rename(text):
        return text.replace("FP16", "TWIN").replace("fp16", "twin")

    tree.replace("include/tilegemm.h", r"^    TG_TYPE_FP32 = 0,", "    TG_TYPE_TWIN = 6,\n\\g<0>")
    tree.double("src/core/types.def", r"^TGI_TYPE\(FP8_E5M2.*?\)\n",
                lambda _: "TGI_TYPE(TWIN, twin, 2, FLOAT, FP32, TGI_TYPES_fp32 | TGI_TYPES_twin)\n")
    tree.replace("src/core/dtype.h", r"^#endif\n\Z", """\
TGI_INLINE float tgi_fp32_from_twin(uint16_t bits)
{
    return -tgi_fp32_from_fp16(bits);
}

TGI_INLINE uint16_t tgi_twin_from_fp32(float value)
{
    return tgi_fp16_from_fp32(-value);
}

\\g<0>""")
    tree.double("src/core/types.c", r": type == TG_TYPE_FP16 +\? tgi_\w+\(\w+\)\n", rename, 2)
    tree.double("src/core/kernels.def", r"^TGI_CPU_ROW\(packed, generic, fp16, [^\n]*\n", rename)
    tree.replace("src/cpu/names.h", r"^#define e5m2_scalar [^\n]*\n", """\
\\g<0>typedef uint16_t twin_elem;
#define twin_scalar tgi_fp32_from_twin
""")
    tree.double("src/cpu/isa_body.h", r'^#define IN_NAME e5m2\n#include "cpu/copy_body.h"\n'
                "#undef IN_NAME\n", lambda text: text.replace("e5m2", "twin"))
    tree.double("src/cpu/isa_body.h", r"\[TG_TYPE_FP8_E5M2\] = PACKED_KERNELS\(e5m2\),",
                lambda _: " [TG_TYPE_TWIN] = PACKED_KERNELS(twin),")
    tree.replace("src/cpu/finish_body.h",
                 r"^    if \(type == TG_TYPE_FP8_E4M3 [^\n]*\n +ACC_LOCAL\(write_fp8_rows\)", """\
    if (type == TG_TYPE_TWIN) {
        uint16_t *twin = target;
        for (; rows > 0; rows--, twin += target_row, sums += sums_row)
            for (int64_t j = 0; j < cols; j++)
                twin[j * stride] = tgi_twin_from_fp32(sums[j]);
        return;
    }
\\g<0>""")
    tree.double("src/cpu/finish_body.h", r"^    case TG_TYPE_FP16:\n.*?break;\n", rename)
    for path in ("src/check/compare.c", "src/check/fill.c", "cli/files/matrix_convert.c",
                 "cli/files/mtx_write.c", "cli/files/npy_write.c"):
        tree.double(path, r"^ +case TG_TYPE_FP16:\n", rename)
    tree.replace("src/check/freivalds.c", r"([\w>-]+)->d\.type == TG_TYPE_FP16\)",
                 "\\1->d.type == TG_TYPE_FP16 || \\1->d.type == TG_TYPE_TWIN)", 2)
    tree.replace("tests/kernels/CMakeLists.txt", r" fp8_e5m2\)", " fp8_e5m2 twin)")
    tree.replace("tests/kernels/CMakeLists.txt", r" rows_fp8_e5m2\b", "\\g<0> rows_twin")


def add_operand_row(tree, name, factor, key, executors):
    """Describes an operand: D = activation(alpha A B + beta C + bias + factor operand)."""
    tree.double("src/core/operands.def", r"^TGI_FACTOR\(beta, 0\.0\)\n",
                lambda text: text.replace("beta", factor))
    tree.double("src/core/operands.def", r"^TGI_OPERAND\(c, .*?\)\n", lambda _: (
        f'TGI_OPERAND({name}, "{name}", MATRIX, EPILOGUE, m, n, d_type, {name}, "{key}",\n'
        f"            {executors}, p->{factor} != 0.0)\n"))
    tree.replace("include/tilegemm.h", r"^    double alpha, beta;",
                 f"    tg_matrix {name};\n    double {factor};\n    double alpha, beta;")
    tree.replace("include/tilegemm.h", r"^    const void \*a, \*b, \*c;",
                 f"    const void *{name};\n\\g<0>")


def add_operand(tree):
    """Adds operand residual with factor gamma, which all three executors of the epilogue apply. The
    tests' oracle has it too, in a file of its own."""
    add_operand_row(tree, "residual", "gamma", "r", "TGI_BY_ALL")
    for kind, sum_type in (("fp32", "float"), ("fp64", "double")):
        tree.replace("src/core/epilogue.h", rf"^TGI_INLINE {sum_type} tgi_add_bias_{kind}", f"""\
TGI_INLINE {sum_type} tgi_add_residual_{kind}({sum_type} t, double gamma, {sum_type} residual)
{{
    return t + ({sum_type})gamma * residual;
}}

\\g<0>""")
    tree.replace("src/cpu/finish_body.h", r"^    if \(e->activation != TG_ACTIVATION_NONE\)", """\
    if (e->gamma != 0) {
        const char *source =
            (const char *)f->residual + (i * p->residual.row + col * p->residual.col) * bytes;
        ACC_LOCAL(read_row)(c, source, cols, p->residual.col, p->d_type);
        for (int64_t j = 0; j < cols; j++)
            row[j] = ACC_EPILOGUE(add_residual)(row[j], e->gamma, c[j]);
    }
\\g<0>""")
    for kind, sum_type, read in (
            ("fp32", "float", "tgi_read_element(args.residual, at, tgi_find_d_type(p))"),
            ("fp64", "double", "static_cast<const double *>(args.residual)[at]")):
        tree.replace("src/kernels/epilogue/further_operands.cuh",
                     rf"tgi_apply_operands\([^)]*{sum_type} sum\)\n{{\n    return sum;", f"""\
tgi_apply_operands(
    const tgi_gemm_args &args, int64_t batch, int64_t row, int64_t col, {sum_type} sum)
{{
    const tgi_problem &p = args.problem;
    const int64_t at = tgi_offset(p.residual, batch, row, col);
    if (p.epilogue.gamma != 0.0)
        sum = tgi_add_residual_{kind}(sum, p.epilogue.gamma,
                                      {read});
    return sum;""")
    add_operand_to_oracle(tree, "src/check/expected_epilogue.c")


def add_refused_operand(tree):
    """Adds operand mask, which no executor on a GPU applies."""
    add_operand_row(tree, "mask", "delta", "q", "TGI_BY_ROWS")


def add_operand_to_oracle(tree, path):
    tree.replace(path, r"^    return added;", """\
    if (problem->gamma != 0)
        add(&added, check_round_scalar(problem, problem->gamma) *
                        (long double)check_get_element(
                            problem->residual.type, problem->residual.data,
                            check_get_offset(&problem->residual, batch, row, col)));
\\g<0>""")
    tree.replace(path, r"\(has_scale \? 6 : 3\)", "\\g<0> + (problem->gamma != 0 ? 2 : 0)")


# The most files that an addition touches. An operand has five of the product and one of the oracle.
ADDITIONS = {"family": (add_family, 9), "type": (add_type, 15), "operand": (add_operand, 6),
             "refused operand": (add_refused_operand, 2)}
