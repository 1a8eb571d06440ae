#!/usr/bin/env python3
"""Calls the shared library from another language, through exported functions alone.

usage: test_ctypes.py LIBRARY CC INCLUDE_DIR

The structs are described here as a binding would; a C program made from the header holds each
member's place and size against the description.
"""

import ctypes
import os
import subprocess
import sys
import tempfile
import unittest
from ctypes import byref, c_char_p, c_double, c_float, c_int, c_int64, c_size_t, c_void_p, sizeof

LIBRARY, CC, INCLUDE_DIR = sys.argv[1:4]
TG_TYPE_FP32 = 0
TG_STATUS_OK, TG_STATUS_INVALID_ARGUMENT = 0, 1


class Matrix(ctypes.Structure):
    NAME = "tg_matrix"
    _fields_ = [("data", c_void_p), ("type", c_int), ("row_count", c_int64),
                ("col_count", c_int64), ("row_stride", c_int64), ("col_stride", c_int64),
                ("batch_stride", c_int64)]


# The least version of a problem has these members; the members after them are zero by default.
PROBLEM_START = [("struct_bytes", c_size_t), ("a", Matrix), ("b", Matrix), ("c", Matrix),
                 ("d", Matrix), ("op_a", c_int), ("op_b", c_int), ("batch_count", c_int64),
                 ("alpha", c_double), ("beta", c_double)]


class Problem(ctypes.Structure):
    NAME = "tg_problem"
    _fields_ = PROBLEM_START + [
        ("precision", c_int), ("is_batch_invariant", c_int), ("bias", c_int),
        ("bias_data", c_void_p), ("activation", c_int), ("a_scale", c_int), ("b_scale", c_int),
        ("d_scale", c_int), ("a_scale_data", c_void_p), ("b_scale_data", c_void_p),
        ("d_scale_data", c_void_p)]


class OldProblem(ctypes.Structure):
    _fields_ = PROBLEM_START


class Buffers(ctypes.Structure):
    NAME = "tg_buffers"
    _fields_ = [("struct_bytes", c_size_t)] + [
        (name, c_void_p) for name in ("a", "b", "c", "d", "bias", "a_scale", "b_scale", "d_scale",
                                      "workspace")] + [
        ("workspace_bytes", c_int64), ("stream", c_void_p)]


class ContextOptions(ctypes.Structure):
    NAME = "tg_context_options"
    _fields_ = [("struct_bytes", c_size_t), ("device", c_char_p), ("isa", c_char_p),
                ("thread_count", c_int), ("workspace_limit_bytes", c_int64)]


class PlanOptions(ctypes.Structure):
    NAME = "tg_plan_options"
    _fields_ = [("struct_bytes", c_size_t), ("kernel", c_char_p)]


class PlanInfo(ctypes.Structure):
    NAME = "tg_plan_info"
    _fields_ = [("struct_bytes", c_size_t), ("kernel", c_char_p), ("workspace_bytes", c_int64),
                ("thread_count", c_int), ("predicted_s", c_double)]


class DeviceInfo(ctypes.Structure):
    NAME = "tg_device_info"
    _fields_ = [("struct_bytes", c_size_t), ("device", c_char_p), ("name", c_char_p),
                ("isa", c_char_p), ("thread_count", c_int), ("l1_bytes", c_int64),
                ("l2_bytes", c_int64), ("l3_bytes", c_int64), ("bus", c_char_p),
                ("compute_capability", c_int), ("sm_count", c_int), ("registers_per_sm", c_int),
                ("shared_bytes_per_sm", c_int64), ("shared_bytes_per_block", c_int64),
                ("memory_bytes", c_int64), ("clock_hz", c_double),
                ("memory_bytes_per_s", c_double)]


STRUCTS = (Matrix, Problem, Buffers, ContextOptions, PlanOptions, PlanInfo, DeviceInfo)


def load():
    library = ctypes.CDLL(LIBRARY)
    library.tg_get_error_detail.restype = c_char_p
    library.tg_init_matrix.argtypes = [c_void_p, c_int, c_void_p, c_int64, c_int64]
    library.tg_init_matrix.restype = None
    library.tg_init_problem.argtypes = [c_void_p, c_size_t, c_void_p, c_void_p, c_void_p]
    library.tg_init_buffers.argtypes = [c_void_p, c_size_t, c_void_p]
    library.tg_init_context_options.argtypes = [c_void_p, c_size_t]
    library.tg_init_plan_options.argtypes = [c_void_p, c_size_t]
    library.tg_get_plan_info.argtypes = [c_void_p, c_void_p, c_size_t]
    library.tg_get_device_info.argtypes = [c_void_p, c_void_p, c_size_t]
    library.tg_parse_problem.argtypes = [c_char_p, c_void_p, c_size_t]
    library.tg_destroy_plan.argtypes = library.tg_destroy_context.argtypes = [c_void_p]
    library.tg_destroy_plan.restype = library.tg_destroy_context.restype = None
    return library


class Product:
    """Holds a 2 x 3 by 3 x 2 product of FP32 in a problem of the given version."""

    def __init__(self, library, problem_class, struct_bytes=None):
        self.a = (c_float * 6)(1, 2, 3, 4, 5, 6)
        self.b = (c_float * 6)(1, 0, 0, 1, 1, 1)
        self.d = (c_float * 4)(-1, -1, -1, -1)
        self.problem = problem_class()
        views = [Matrix() for _ in range(3)]
        for view, memory, rows, cols in zip(views, (self.a, self.b, self.d), (2, 3, 2), (3, 2, 2)):
            library.tg_init_matrix(byref(view), TG_TYPE_FP32, memory, rows, cols)
        self.status = library.tg_init_problem(
            byref(self.problem), sizeof(problem_class) if struct_bytes is None else struct_bytes,
            *(byref(view) for view in views))


class CtypesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.library = load()

    def succeed(self, status):
        self.assertEqual(status, TG_STATUS_OK, self.library.tg_get_error_detail().decode())

    def refuse(self, status, *parts):
        self.assertEqual(status, TG_STATUS_INVALID_ARGUMENT)
        for part in parts:
            self.assertIn(part, self.library.tg_get_error_detail().decode())

    def test_the_layouts_are_those_of_the_header(self):
        lines = ["#include <stdio.h>", "#include <tilegemm.h>", "int main(void) {"]
        described = []
        for struct in STRUCTS:
            name = struct.NAME
            lines.append(f'printf("{name} %zu\\n", sizeof({name}));')
            described.append(f"{name} {sizeof(struct)}")
            for member, _ in struct._fields_:
                place = getattr(struct, member)
                lines.append(f'printf("{name}.{member} %zu %zu\\n", offsetof({name}, {member}), '
                             f'sizeof((({name} *)0)->{member}));')
                described.append(f"{name}.{member} {place.offset} {place.size}")
        lines.append("return 0; }")
        with tempfile.TemporaryDirectory() as folder:
            source, program = os.path.join(folder, "layout.c"), os.path.join(folder, "layout")
            with open(source, "w", encoding="utf-8") as file:
                file.write("\n".join(lines) + "\n")
            subprocess.run([CC, "-std=c11", "-I", INCLUDE_DIR, source, "-o", program], check=True)
            text = subprocess.run([program], check=True, capture_output=True, text=True).stdout
        self.assertEqual(text.splitlines(), described)

    def test_a_product(self):
        product = Product(self.library, Problem)
        self.succeed(product.status)
        self.assertEqual(product.problem.struct_bytes, sizeof(Problem))
        self.succeed(self.library.tg_multiply(None, byref(product.problem)))
        self.assertEqual(list(product.d), [4, 5, 10, 11])

    def test_a_product_by_a_plan(self):
        options, plan_options = ContextOptions(), PlanOptions()
        context, plan = c_void_p(), c_void_p()
        info, device, buffers = PlanInfo(), DeviceInfo(), Buffers()
        product = Product(self.library, Problem)
        self.succeed(self.library.tg_init_context_options(byref(options), sizeof(options)))
        options.device, options.thread_count = b"cpu", 2
        self.succeed(self.library.tg_create_context(byref(options), byref(context)))
        self.succeed(self.library.tg_get_device_info(context, byref(device), sizeof(device)))
        self.assertEqual((device.device, device.thread_count), (b"cpu", 2))
        self.succeed(self.library.tg_init_plan_options(byref(plan_options), sizeof(plan_options)))
        plan_options.kernel = b"cpu_packed"
        self.succeed(self.library.tg_create_plan(context, byref(product.problem),
                                                 byref(plan_options), byref(plan)))
        self.succeed(self.library.tg_get_plan_info(plan, byref(info), sizeof(info)))
        self.assertTrue(info.kernel.startswith(b"cpu_packed"))
        self.succeed(self.library.tg_init_buffers(byref(buffers), sizeof(buffers),
                                                  byref(product.problem)))
        self.succeed(self.library.tg_execute_plan(plan, byref(buffers)))
        self.assertEqual(list(product.d), [4, 5, 10, 11])
        self.library.tg_destroy_plan(plan)
        self.library.tg_destroy_context(context)

    def test_a_problem_of_an_older_version(self):
        product = Product(self.library, OldProblem)
        self.succeed(product.status)
        product.problem.alpha = 2
        self.succeed(self.library.tg_multiply(None, byref(product.problem)))
        self.assertEqual(list(product.d), [8, 10, 20, 22])

    def test_sizes_that_are_none(self):
        for struct_bytes in (0, sizeof(c_void_p), 1 << 20):
            self.refuse(Product(self.library, Problem, struct_bytes).status,
                        f"struct_bytes = {struct_bytes} ", "tg_problem", "tg_init_problem")
            product = Product(self.library, Problem)
            product.problem.struct_bytes = struct_bytes
            self.refuse(self.library.tg_multiply(None, byref(product.problem)),
                        f"struct_bytes = {struct_bytes} ", "tg_problem", "tg_init_problem")
            self.assertEqual(list(product.d), [-1, -1, -1, -1])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
