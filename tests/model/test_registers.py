#!/usr/bin/env python3
"""Tests that the registers that the model takes for the ladder are those that nvcc gives it.

usage: test_registers.py SOURCE_FOLDER NVCC [--update]

With --update it writes the rows of src/model/ladder_registers.def and compares nothing. It exits
with 77 if nvcc is of another release than the file names: its figures may then differ.
"""
import os
import re
import subprocess
import sys
import tempfile

CHIPS = ("75", "80", "86", "90a")


def compile_for(source, nvcc, chip, folder):
    """Returns the registers of each (family, tile), as ptxas reports them. Sources whose rows the
    chip cannot run give none."""
    reports = ""
    for name in ("ladder", "rungs"):
        if name == "rungs" and chip != "90a":
            continue
        reports += subprocess.run(
            [nvcc, "-cubin", "-std=c++17", "-O3", "-I", f"{source}/src", "-I",
             f"{source}/include", f"-gencode=arch=compute_{chip},code=sm_{chip}", "-Xptxas", "-v",
             "-o", os.path.join(folder, "ladder.cubin"),
             f"{source}/src/kernels/ladder/{name}.cu"],
            capture_output=True, text=True, check=True).stderr
    found = re.findall(r"entry function 'cuda_(\w+?)_sm\d+a?_\w+?_(\d+)x.*?Used (\d+) registers",
                       reports, re.DOTALL)
    return {(family, int(tile)): int(count) for family, tile, count in found}


def main():
    source, nvcc = sys.argv[1:3]
    path = os.path.join(source, "src", "model", "ladder_registers.def")
    with open(path, encoding="utf-8") as file:
        text = file.read()
    release = re.search(r"CUDA (\d+\.\d+)", text).group(1)
    version = subprocess.run([nvcc, "--version"], capture_output=True, text=True, check=True)
    if f"release {release}" not in version.stdout:
        print(f"skipped: {nvcc} is not of CUDA {release}")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        counts = [compile_for(source, nvcc, chip, folder) for chip in CHIPS]
    for i in reversed(range(len(CHIPS) - 1)):  # a chip that cannot run it has the next one's
        counts[i] = {**counts[i + 1], **counts[i]}
    keys = [(family, int(tile)) for family, tile in
            re.findall(r"^TGI_LADDER_REGISTERS\((\w+), (\d+)", text, re.MULTILINE)]
    keys += sorted(set(counts[0]) - set(keys))
    rows = [f"TGI_LADDER_REGISTERS({family}, {tile}, "
            f"{', '.join(str(count[family, tile]) for count in counts)})\n"
            for family, tile in keys if (family, tile) in counts[0]]
    written = text[:text.index("TGI_LADDER_REGISTERS(", text.index("*/"))] + "".join(rows)
    if sys.argv[3:] == ["--update"]:
        with open(path, "w", encoding="utf-8") as file:
            file.write(written)
        return 0
    for was, row in zip(text.splitlines(), written.splitlines()):
        if was != row:
            print(f"{path}: {was}\n  nvcc gives {row}")
    return 0 if written == text else 1


if __name__ == "__main__":
    sys.exit(main())
