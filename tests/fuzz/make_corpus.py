#!/usr/bin/env python3
"""Writes the seeds of the fuzz targets: small files that reach every branch of the readers.

usage: make_corpus.py FOLDER    makes FOLDER/npy, FOLDER/mtx and FOLDER/problem
"""
import os
import sys


def make_npy(version, text, data):
    length = len(text).to_bytes(2 if version == 1 else 4, "little")
    return b"\x93NUMPY" + bytes([version, 0]) + length + text.encode() + data


def list_npy():
    for descr, size in (("<f4", 4), ("<f8", 8), ("<f2", 2), ("<V2", 2), ("|V2", 2)):
        for order in ("False", "True"):
            text = f"{{'descr': '{descr}', 'fortran_order': {order}, 'shape': (2, 3), }}  \n"
            yield make_npy(1, text, bytes(range(6 * size)))
    for version in (1, 2, 3, 4):
        yield make_npy(version, '{"shape":(1,1,),"descr":"<f4","fortran_order":False}', bytes(4))
    for shape in ("()", "(4,)", "(1, 2, 2)", "(0, 5)", "(-1, 4)", "(1L, 4L)",
                  "(4294967296, 4294967296)", "(9223372036854775808, 1)"):
        yield make_npy(1, f"{{'descr':'<f4','fortran_order':False,'shape':{shape}}}", bytes(16))
    for descr in ("'>f4'", "'|O'", "'<i4'", "[('x', '<f4')]", "('<f4', (2,))"):
        yield make_npy(1, f"{{'descr':{descr},'fortran_order':False,'shape':(1,1)}}", bytes(4))
    yield b"\x93NUMPY\x02\x00\xff\xff\xff\xff{}"


def list_mtx():
    banner = "%%MatrixMarket matrix {} {} {}\n"
    lower = "2 1 -1.5e3\n3 2 .25\n"
    for kind in ("general", "symmetric", "skew-symmetric", "hermitian"):
        for field in ("real", "integer", "complex", "pattern"):
            yield banner.format("coordinate", field, kind) + "% comment\n3 3 2\n" + lower
            yield banner.format("array", field, kind) + "3 3\n" + "1\n-2\n+3\n" * 3
    yield banner.format("array", "real", "general") + "2 2\r\nnan\r\n-inf\r\n\r\n1e-320\r\n65504"
    yield banner.format("coordinate", "real", "general") + "2 2 2\n1 1 1\n1 1 2\n"
    yield banner.format("coordinate", "real", "general") + "1000000000 1000000000 1\n1 1 1\n"
    yield banner.format("array", "real", "general") + "0 7\n"


def list_problem():
    yield from ("8x8x8", "0x5x0", "8x8", "8x8x8:nt:bf16:d=fp32", "8x9x7:tt:fp64", "8x9x7:dcol",
                "8x8x8:batch=4:alpha=2:beta=-1e-3:bias=col:act=gelu_erf:prec=ieee_fp32",
                "8x8x8:lda=10:ldb=12:ldc=9:ldd=11:beta=1", "8x8x8:rsa=1:csa=-8:bsa=64:batch=2",
                "8x8x8:alpha=inf:beta=nan", "9223372036854775807x0x9223372036854775807",
                "8x4000000000x4000000000:batch=2", "8x8x8:rsd=0:csd=-9223372036854775808")
    for name in ("relu", "gelu_tanh", "silu", "none"):
        yield f"4x4x4:act={name}:bias=row:prec=default:fp16"


def write_all(folder, files):
    os.makedirs(folder, exist_ok=True)
    for index, content in enumerate(files):
        with open(os.path.join(folder, f"seed-{index:02}"), "wb") as file:
            file.write(content)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    write_all(os.path.join(sys.argv[1], "npy"), list_npy())
    write_all(os.path.join(sys.argv[1], "mtx"), (text.encode() for text in list_mtx()))
    write_all(os.path.join(sys.argv[1], "problem"), (text.encode() for text in list_problem()))
