"""Checks what the compiler made of the production kernels for Hopper, and of family mma and of
attention for every chip. No register is spilled and no local memory used but where that is known.
The kernels of src/kernels/wgmma have the instructions of Hopper's tensor cores. Every kernel waits
for the stream before it accesses global memory.

usage: test_compiler_report.py IMAGES_FOLDER KERNELS_DEF DISASSEMBLER_FOLDER
"""

import functools
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

HOPPER = ("sm_90a", "sm_90")  # an image has machine code for one of them, if for any
# Rows of FP8 of family small are strips alone, whose one function serves both types.
OTHER_NAMES = {f"cuda_small_sm89_{kind}_32x32x64": "tgi_strip_64_fp8"
               for kind in ("fp8_e4m3", "fp8_e5m2")}
# Rows with few registers to spare have these (stack, spill store, spill load bytes), the most of
# their kernels and chips. They grow only where bench/notes measures it. Family mma spills ahead
# of its products, around the call of code for edges. Of attention's rows for Hopper the warpgroup
# that copies spills, and the others in steps at an edge, those of few keys between subtiles; its
# rows of mma.sync keep there what is for all steps. Of the rows of src/kernels/wgmma the largest
# of family loose has some, whose warpgroups have fewer registers, in activations for a D of FP32,
# and 64 x 128 of family few, of which two blocks share a multiprocessor, where it has terms.
# Rows of family dot spill around the epilogue, the wide tile of FP64 two registers. Attention's
# rows of few queries have elements that are read one by one in local memory.
KNOWN_FRAMES = {"cuda_small_sm75_fp32_16x16x64": (8, 4, 4),
                "cuda_small_sm75_fp32_16x16x32": (8, 4, 4),
                "cuda_dot_sm80_fp32_16x64x128": (16, 12, 36),
                "cuda_dot_sm80_bf16_32x64x128": (112, 196, 332),
                "cuda_dot_sm80_fp16_32x64x128": (112, 196, 332),
                **{f"cuda_loose_sm90a_{kind}_128x256x64": (120, 116, 124)
                   for kind in ("bf16", "fp16")},
                **{f"cuda_few_sm90a_{kind}_64x128x64": (232, 364, 324)
                   for kind in ("bf16", "fp16")},
                **{f"cuda_attend_sm90a_{kind}_{tile}": (128, 176, 232)
                   for kind in ("bf16", "fp16") for tile in ("192x64", "128x128", "128x192",
                                                             "128x256")},
                **{f"cuda_attend_few_keys_sm90a_{kind}_{tile}": (16, 12, 12)
                   for kind in ("bf16", "fp16") for tile in ("64x64", "64x128", "32x256")},
                **{f"cuda_attend_sm80_{kind}_{tile}": frame for kind in ("bf16", "fp16")
                   for tile, frame in (("128x64", (8, 12, 12)), ("128x128", (40, 72, 100)),
                                       ("64x256", (32, 28, 72)))},
                "cuda_dmma_sm80_fp64_128x128x16": (8, 4, 4),
                "cuda_dmma_sm75_fp64_32x32x32": (8, 8, 12),
                "cuda_dmma_tma_sm90a_fp64_32x32x16": (8, 8, 8),
                "cuda_dmma_tma_sm90a_fp64_64x64x16": (48, 44, 80),
                "cuda_mma_sm80_bf16_128x256x64": (128, 124, 156),
                "cuda_mma_sm80_bf16_128x128x32": (136, 124, 140),
                "cuda_mma_sm80_bf16_64x64x64": (80, 212, 244),
                "cuda_mma_sm80_bf16_16x64x64": (16, 12, 12),
                "cuda_mma_sm80_fp16_128x256x64": (128, 124, 156),
                "cuda_mma_sm80_fp16_128x128x32": (136, 124, 140),
                "cuda_mma_sm80_fp16_64x64x64": (80, 212, 244),
                "cuda_mma_sm80_fp16_16x64x64": (16, 12, 12),
                "cuda_mma_sm75_fp8_e4m3_64x32x64": (16, 28, 28),
                "cuda_mma_sm75_fp8_e5m2_64x32x64": (16, 28, 28),
                "cuda_mma_sm80_tf32_128x256x32": (24, 24, 24),
                "cuda_mma_sm80_tf32_128x128x16": (48, 44, 44),
                "cuda_mma_sm80_fp8_e4m3_64x64x128": (56, 52, 96),
                "cuda_mma_sm80_fp8_e5m2_64x64x128": (16, 16, 16),
                "cuda_attend_few_queries_sm90a_fp32_2x256": (16, 12, 12),
                "cuda_attend_few_queries_sm90a_fp64_2x256": (128, 0, 0)}
ENTRY = re.compile(r"Compiling entry function '(\w+)' for '(\w+)'")
FUNCTION = re.compile(r"Function properties for (\w+)")
FRAME = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
ROW = re.compile(r"^TGI_CUDA_ROW\((.*)\)", re.M)
ATTENTION_ROW = re.compile(r"^TGI_ATTENTION_ROW\((.*)\)", re.M)
# These instructions access global memory, wait for the kernel ahead, and use the tensor cores.
ACCESSES = ("LDG", "LDGSTS", "STG", "UTMALDG", "UTMASTG")
WAIT = "ACQBULK"
TOLD = r"\b(" + "|".join((*ACCESSES, WAIT, "HGMMA", "QGMMA")) + r")\b"
NOT_PRODUCTION = {"ladder", "rungs", "peak"}  # kernels of these images are never launched early
# FP8 has its own instructions.
INSTRUCTIONS = {"fp8_e4m3": "QGMMA", "fp8_e5m2": "QGMMA"}


def read_frames(report, chip):
    """Returns {entry function: (stack, spill store, spill load bytes)} of one chip in a report of
    ptxas."""
    frames, entry, function = {}, None, None
    for line in report.split("\n"):
        found = ENTRY.search(line)
        if found:
            entry = found.group(1) if found.group(2) == chip else None
        found = FUNCTION.search(line)
        if found:
            function = found.group(1)
        found = FRAME.search(line)
        if found and entry and function == entry:  # leaves out functions that it calls
            frames[entry] = tuple(int(count) for count in found.groups())
    return frames


def read_rows(text):
    """Yields (image, family, type, name) of each production row."""
    for row in ROW.findall(text):
        (image, family, isa, kind, _, _, math, _, rows, cols, depth) = \
            (part.strip() for part in row.split(",")[:11])
        if image not in ("image", "ladder"):
            word = {"tf32": "tf32", "fp64": "fp32w"}.get(math, kind)
            yield image, family, kind, f"cuda_{family}_{isa}_{word}_{rows}x{cols}x{depth}"


def read_attention_rows(text):
    """Yields (image, family, type, name, bytes of local memory) of each row of attention. Rows of
    many keys have their sums of non-finite elements there, one float for each of D that a thread
    has, and a number that tells whether they are in use."""
    for row in ATTENTION_ROW.findall(text):
        image, family, isa, kind, queries, head, products, warps = \
            (part.strip() for part in row.split(",")[:8])
        warp_rows = 16 * max(1, int(queries) // (16 * int(warps)))
        has_sums = products in ("groups", "warps", "splits", "clusters")
        yield (image, family, kind, f"cuda_{family}_{isa}_{kind}_{queries}x{head}",
               warp_rows * int(head) // 32 * 4 + 8 if has_sums else 0)


def find_capability(text):
    """Returns the compute capability that a chip or a row names, 80 for sm_80 and for sm80."""
    return int(re.search(r"sm_?(\d+)", text).group(1))


def list_words(command, environment):
    """Returns the names of functions and of the instructions that TOLD names in what the command
    prints. It prints some 50 MB, in which grep finds them ten times as fast as Python."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as tool:
        found = subprocess.run(["grep", "-oE", rf"Function : \w+|{TOLD}"], stdin=tool.stdout,
                               capture_output=True, text=True, check=False,
                               env={**environment, "LC_ALL": "C"}).stdout
    if tool.returncode != 0:
        raise subprocess.CalledProcessError(tool.returncode, command)
    return found.split("\n")[:-1]


def disassemble(image):
    """Returns {function: its instructions that TOLD names, each once, in order of appearance}.
    Returns None without the disassembler."""
    folders = [os.environ.get("PATH", ""), "/usr/local/cuda/bin",
               *map(str, DISASSEMBLER.glob("lib/python3*/site-packages/nvidia/*/bin"))]
    path = os.pathsep.join(folders)  # finds nvdisasm by its name
    tool = shutil.which("cuobjdump", path=path)
    if not tool:
        return None
    report = image.with_suffix(".txt").read_text(encoding="utf-8")
    chips = [chip for chip in HOPPER if f"for '{chip}'" in report]
    functions = {}
    for chip in chips:
        words = list_words([tool, "-sass", "-arch", chip, str(image)],
                           {**os.environ, "PATH": path})
        for word in words:
            if word.startswith("Function : "):
                told = functions.setdefault(word[len("Function : "):], {})
            else:
                told[word] = None
    return {name: list(told) for name, told in functions.items()}


@functools.lru_cache(maxsize=None)
def find_instructions(image):
    """Returns disassemble(image). It takes seconds, so a file beside the image keeps the answer
    until the image or this test changes."""
    state = hashlib.sha256(image.read_bytes() + pathlib.Path(__file__).read_bytes()).hexdigest()
    kept = image.with_suffix(".instructions.json")
    if kept.exists():
        told = json.loads(kept.read_text(encoding="utf-8"))
        if told["state"] == state:
            return told["functions"]
    functions = disassemble(image)
    if functions is not None:
        kept.write_text(json.dumps({"state": state, "functions": functions}), encoding="utf-8")
    return functions


class Report(unittest.TestCase):
    def setUp(self):
        self.rows = list(read_rows(KERNELS.read_text(encoding="utf-8")))
        self.assertGreater(len(self.rows), 0)

    def test_no_spills(self):
        """Rows have code for Hopper, or for earlier chips alone. Family mma is read on every
        chip."""
        reports = {image: (IMAGES / f"{image}.txt").read_text(encoding="utf-8")
                   for image in {row[0] for row in self.rows}}
        for image, family, _, name in self.rows:
            chips = {found.group(2) for found in ENTRY.finditer(reports[image])}
            chips = chips if family == "mma" else chips & set(HOPPER) or chips
            for chip in sorted(chips):
                self.check_frames(image, OTHER_NAMES.get(name, name),
                                  read_frames(reports[image], chip))

    def test_no_spills_of_attention(self):
        table = KERNELS.parent / "attention_kernels.def"
        rows = list(read_attention_rows(table.read_text(encoding="utf-8")))
        self.assertGreater(len(rows), 0)
        for image, _, _, name, local_bytes in rows:
            report = (IMAGES / f"{image}.txt").read_text(encoding="utf-8")
            for chip in {found.group(2) for found in ENTRY.finditer(report)}:
                if find_capability(chip) >= find_capability(name):  # others have no such row
                    self.check_frames(image, name, read_frames(report, chip), local_bytes)

    def check_frames(self, image, name, frames, local_bytes=0):
        """Checks the frames of a row on one chip, of which local_bytes are meant to be there."""
        with self.subTest(name):
            of_row = {entry: frame for entry, frame in frames.items() if entry.startswith(name)}
            self.assertTrue(of_row, f"the report on {image} does not tell of {name}")
            for entry, frame in of_row.items():
                stack, *spills = KNOWN_FRAMES.get(name, (0, 0, 0))
                for found, known in zip(frame, (stack + local_bytes, *spills)):
                    self.assertLessEqual(found, known, f"{entry}: {frame}")

    def test_tensor_core_instructions(self):
        folder = KERNELS.parent.parent / "kernels" / "wgmma"
        rows = [row for row in self.rows if (folder / f"{row[0]}.cu").exists()]
        self.assertGreater(len(rows), 0)
        images = {image: find_instructions(IMAGES / f"{image}.fatbin")
                  for image in {row[0] for row in rows}}
        if None in images.values():
            self.skipTest("this machine has no cuobjdump")
        for image, _, kind, name in rows:
            with self.subTest(name):
                of_row = [told for entry, told in images[image].items() if entry.startswith(name)]
                self.assertTrue(of_row)
                for told in of_row:
                    self.assertIn(INSTRUCTIONS.get(kind, "HGMMA"), told)

    def test_kernels_wait_for_the_stream(self):
        """Every production kernel may be launched before the kernel ahead of it has ended."""
        functions = {}
        for image in IMAGES.glob("*.fatbin"):
            if image.stem in NOT_PRODUCTION:
                continue
            found = find_instructions(image)
            if found is None:
                self.skipTest("this machine has no cuobjdump")
            functions.update(found)
        self.assertGreater(len(functions), len(self.rows))
        for name, told in functions.items():
            with self.subTest(name):
                self.assertIn(WAIT, told)
                self.assertFalse(set(told[:told.index(WAIT)]) & set(ACCESSES),
                                 "memory is used before the wait")

    def test_reader_finds_spills(self):
        report = ("ptxas info    : Compiling entry function 'one' for 'sm_90a'\n"
                  "ptxas info    : Function properties for one\n"
                  "    8 bytes stack frame, 16 bytes spill stores, 24 bytes spill loads\n"
                  "ptxas info    : Function properties for called\n"
                  "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
                  "ptxas info    : Compiling entry function 'two' for 'sm_80'\n"
                  "ptxas info    : Function properties for two\n"
                  "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n")
        self.assertEqual(read_frames(report, HOPPER[0]), {"one": (8, 16, 24)})


if __name__ == "__main__":
    IMAGES, KERNELS, DISASSEMBLER = map(pathlib.Path, sys.argv[1:4])
    unittest.main(argv=sys.argv[:1])
