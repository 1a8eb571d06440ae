#!/usr/bin/env python3
"""Writes the ladder's kernels with one fault each, for a test of the simulator that must see them.

usage: make_mutants.py LADDER_FOLDER OUTPUT_FOLDER

Makes one source for each mutation, mutants.cu around them all, and mutants.def with a row for each:
MUTANT(symbol, row's name, m, n, k, what it must be caught by). Fails if a text that a mutation
replaces is not in the source.
"""
import os
import sys

RAGGED = (37, 41, 43)
FOURS = (37, 44, 44)  # reads rows of B and D by float4
EIGHTS = (37, 48, 48)  # reads rows of A and B by 16 bytes
WHOLE = (64, 64, 64)
BARRIER = "__syncthreads();"
STEPS = "RACE | NEVER_WRITTEN"

# Each entry has a file, its row and its shape.
KERNELS = {
    "l1_naive": ("naive_sm75_fp32_16x16x1", 16, RAGGED),
    "l2_coalesced": ("coalesced_sm75_fp32_16x16x1", 16, RAGGED),
    "l3_tiled": ("tiled_sm75_fp32_16x16x16", 16, WHOLE),
    "l4_edges": ("edges_sm75_fp32_16x16x16", 16, RAGGED),
    "l5_transposed": ("transposed_sm75_fp32_32x32x32", 32, RAGGED),
    "l6_padded": ("padded_sm75_fp32_32x32x32", 32, RAGGED),
    "l7_register_column": ("register_column_sm75_fp32_64x64x8", 64, RAGGED),
    "l8_register_tile": ("register_tile_sm75_fp32_128x128x8", 128, RAGGED),
    "l9_vector": ("vector_sm75_fp32_128x128x8", 128, RAGGED),
    "l10_buffered": ("buffered_sm75_fp32_128x128x8", 128, RAGGED),
    "l11_warp_tile": ("warp_tile_sm75_fp32_128x128x8", 128, RAGGED),
    "l12_warp_mma": ("warp_mma_sm80_bf16_128x128x32", 128, RAGGED),
}
IN_BACKGROUND = ("l10_buffered", "l11_warp_tile", "l12_warp_mma")
OUTSIDE = "OUT_OF_BOUNDS | RACE"
STORE = [("if (row < m && col < n)", "if (col < n)"), ("if (row < m && col < n)", "if (row < m)")]
STORE4 = [("if (row >= m || col >= n)", "if (col >= n)"),
          ("if (row >= m || col >= n)", "if (row >= m)", FOURS),
          ("j < 4 && col + j < n", "j < 4")]
LOAD = [("row < m && k0 + x < k ?", "k0 + x < k ?"), ("row < m && k0 + x < k ?", "row < m ?"),
        ("k0 + y < k && col < n ?", "col < n ?"), ("k0 + y < k && col < n ?", "k0 + y < k ?")]
LOAD_REGISTERS = [("row < m && p < k ?", "p < k ?"), ("row < m && p < k ?", "row < m ?"),
                  ("p < k && col < n ?", "col < n ?"), ("p < k && col < n ?", "p < k ?")]
LOAD_ASYNC = [("row < m ? k - (k0 + a_col) : 0", "k - (k0 + a_col)"),
              ("row < m ? k - (k0 + a_col) : 0", "row < m ? 4 : 0"),
              ("k0 + b_row < k ? n - col : 0", "n - col"),
              ("k0 + b_row < k ? n - col : 0", "k0 + b_row < k ? 4 : 0")]
LOAD_UNITS = [("row < m ? k - (k0 + a_col) : 0", "k - (k0 + a_col)"),
              ("row < m ? k - (k0 + a_col) : 0", "k - (k0 + a_col)", EIGHTS),
              ("row < m ? k - (k0 + a_col) : 0", "row < m ? 8 : 0"),
              ("k0 + b_row < k ? n - col : 0", "n - col"),
              ("k0 + b_row < k ? n - col : 0", "k0 + b_row < k ? 8 : 0", EIGHTS)]
STORE2 = [("if (row >= m || col >= n)", "if (col >= n)"),
          ("if (row >= m || col >= n)", "if (row >= m)", EIGHTS),
          ("if (col + 1 < n)", "")]
LOAD4 = [("if (row >= row_count || col >= col_count)", "if (col >= col_count)"),
         ("if (row >= row_count || col >= col_count)", "if (row >= row_count)"),
         ("col + 1 < col_count ? from[1] : 0.0f", "from[1]"),
         ("col + 2 < col_count ? from[2] : 0.0f", "from[2]"),
         ("col + 3 < col_count ? from[3] : 0.0f", "from[3]")]
EDGES = {
    "l1_naive": [("if (row >= m || col >= n)", "if (col >= n)"),
                 ("if (row >= m || col >= n)", "if (row >= m)")],
    "l2_coalesced": [("if (row >= m || col >= n)", "if (col >= n)"),
                     ("if (row >= m || col >= n)", "if (row >= m)")],
    "l4_edges": LOAD + STORE,
    "l5_transposed": LOAD + STORE,
    "l6_padded": LOAD + STORE,
    "l7_register_column": LOAD_REGISTERS + STORE,
    "l8_register_tile": LOAD_REGISTERS + STORE,
    "l9_vector": LOAD4 + STORE4,
    "l10_buffered": LOAD_ASYNC + STORE4,
    "l11_warp_tile": LOAD_ASYNC + STORE4,
    "l12_warp_mma": LOAD_UNITS + STORE2,
}


def replace(text, old, replacement, occurrence, name):
    """Returns `text` with the given occurrence of `old` replaced."""
    parts = text.split(old)
    if len(parts) <= occurrence + 1:
        sys.exit(f"make_mutants.py: {name} has no '{old}' number {occurrence}: the mutation is to "
                 "be written for the source as it is now")
    return old.join(parts[:occurrence + 1]) + replacement + old.join(parts[occurrence + 1:])


def list_mutations(name, text):
    """Yields (label, old, replacement, occurrence, caught by, shape or None for the kernel's own).
    """
    barrier_count = text.count(BARRIER)
    expected_count = 0 if name in ("l1_naive", "l2_coalesced") else \
        1 if name in IN_BACKGROUND else 2
    if barrier_count != expected_count:
        sys.exit(f"make_mutants.py: {name} has {barrier_count} barriers, not {expected_count}")
    for i in range(barrier_count):
        yield f"barrier{i}", BARRIER, "", i, STEPS + " | UNFINISHED_COPY", None
    for i, (old, replacement, *shape) in enumerate(EDGES.get(name, ())):
        yield f"edge{i}", old, replacement, 0, OUTSIDE, shape[0] if shape else None
    if name == "l6_padded":
        yield "padding", "b[T][T + 1];", "b[T][T];", 0, "CONFLICTS", None
    if name == "l12_warp_mma":
        yield "swizzle_a", "(col / 8) ^ (row / 2 % 4)", "col / 8", 0, "CONFLICTS", EIGHTS
        yield "swizzle_b", "(col / 8) ^ (row % 8)", "col / 8", 0, "CONFLICTS", EIGHTS
        for instruction in ("tgi_read_matrices(", "tgi_multiply_16x8x16<"):  # a lane skips it
            yield ("lane_" + instruction[4:-1], instruction,
                   f"if (threadIdx.x > 0) {instruction}", 0, "DIVERGENT_BARRIER", EIGHTS)
    if name in IN_BACKGROUND:
        yield ("wait", "tgi_copy_async_wait<0>();", "", 0, "UNFINISHED_COPY",
               EIGHTS if name == "l12_warp_mma" else None)
    if expected_count:  # a column of threads skips a barrier
        yield ("divergent", BARRIER, f"if (threadIdx.x > 0) {BARRIER}", 0, "DIVERGENT_BARRIER",
               None)


def main():
    folder, output = sys.argv[1:]
    source = ['#include "kernels/ptx/async_copy.cuh"\n#include "kernels/ptx/convert.cuh"\n'
              '#include "kernels/ptx/warp_mma.cuh"\n']
    table = []
    for name, (row, tile, shape) in KERNELS.items():
        with open(os.path.join(folder, name + ".cu"), encoding="utf-8") as file:
            text = file.read()
        elem = "uint16_t" if "_bf16_" in row else "float"
        for label, old, replacement, occurrence, caught, own in list_mutations(name, text):
            symbol = f"mutant_{name}_{label}"
            with open(os.path.join(output, symbol + ".cu"), "w", encoding="utf-8") as file:
                file.write(replace(text, old, replacement, occurrence, name))
            source.append(f"namespace {symbol}_space\n{{\n#include \"{symbol}.cu\"\n}}\n"
                          f"extern \"C\" void {symbol}(const {elem} *a, const {elem} *b, "
                          f"{elem} *d, int m, int n, int k)\n{{\n"
                          f"    {symbol}_space::multiply<{tile}>(a, b, d, m, n, k);\n}}\n")
            m, n, k = own or shape
            table.append(f"MUTANT({symbol}, \"cuda_{row}\", {m}, {n}, {k}, {caught})\n")
    with open(os.path.join(output, "mutants.cu"), "w", encoding="utf-8") as file:
        file.writelines(source)
    with open(os.path.join(output, "mutants.def"), "w", encoding="utf-8") as file:
        file.writelines(table)


if __name__ == "__main__":
    main()
