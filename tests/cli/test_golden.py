#!/usr/bin/env python3
"""Compares what the command prints, word for word, with the transcripts in tests/cli/golden.

usage: test_golden.py TILEGEMM SOURCE_FOLDER [--update]

With --update it writes the transcripts and compares nothing. A transcript has # for what differs
from run to run or from machine to machine (times, paths, processors). Of the kernel table it keeps
the rows of the generic instruction set, which every machine has, and as JSON those of fp32.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

TILEGEMM, SOURCE = "tilegemm", "."
COMMANDS = ("multiply", "attention", "bench", "explain", "simulate", "profile", "report", "kernels",
            "info")
FILES = {
    "a.mtx": "%%MatrixMarket matrix array real general\n2 3\n1\n4\n2\n5\n3\n6\n",
    "b.mtx": "%%MatrixMarket matrix array real general\n3 2\n1\n0\n1\n0\n1\n1\n",
    "cut.mtx": "%%MatrixMarket matrix array real general\n3 2\n1\n",
    "text.npy": "1 2\n3 4\n",
    "suite.txt": "8x8x8 # right\n8x8 # wrong\n",
}
PRODUCT = "multiply a.mtx b.mtx -o d.mtx"
MULTIPLY = (PRODUCT, PRODUCT + " --check", PRODUCT + " --type bf16 --output-type fp32",
            PRODUCT + " --json", PRODUCT + " --json --check --alpha -2 --c c.mtx --beta 0.5",
            PRODUCT + " --quiet --check")
ATTENTION = "attention a.mtx a.mtx a.mtx -o d.mtx --threads 1"
ATTENTIONS = (ATTENTION, ATTENTION + " --causal --check", ATTENTION + " --json --check --type bf16",
              ATTENTION + " --quiet --check")
MISTAKES = (
    "", "divide", "--colour",
    "multiply", "multiply a.mtx b.mtx", "multiply a.mtx b.mtx a.mtx -o d.mtx",
    "multiply a.mtx b.mtx -o d.txt", "multiply none.npy b.mtx -o d.mtx",
    "multiply a.mtx b.mtx --c none.mtx -o d.mtx", "multiply a.mtx b.mtx -o none/d.mtx",
    "multiply a.mtx a.mtx -o d.mtx", "multiply a.mtx b.mtx --c a.mtx -o d.mtx",
    "multiply cut.mtx b.mtx -o d.mtx", "multiply text.npy b.mtx -o d.mtx",
    PRODUCT + " --type int8", PRODUCT + " --output-type fp16", PRODUCT + " --precision tf16",
    PRODUCT + " --threads 0", PRODUCT + " --alpha one", PRODUCT + " --beta 2",
    PRODUCT + " --device abacus",
    "attention", "attention a.mtx a.mtx -o d.mtx", "attention a.mtx b.mtx b.mtx -o d.mtx",
    ATTENTION + " --before -1", ATTENTION + " --type fp8_e4m3", ATTENTION + " --bias b.mtx",
    "bench 8x8x8", "bench --shape 8x8", "bench --shape 8x8x8:fp8", "bench --shape 8x8x8:size=2",
    "bench --shape 8x9x10:lda=9", "bench --suite none", "bench --suite ./suite.txt",
    "bench --shape 8x8x8 --kernel cpu_none", "bench --shape 8x8x8 --peer none --type int8",
    "bench --shape 8x8x8 --peer abacus", "bench --shape 8x8x8 --isa none",
    "bench --shape 8x8x8 --peer none --json none/run.json", "kernels --isa none", "kernels all",
    "info all")


def keep_generic_rows(text):
    lines = text.splitlines(keepends=True)
    return "".join(line for line in lines if re.search(r"^kernel |^\S+ +\S+ +generic ", line))


def keep_generic_objects(text):
    objects = re.findall(r"  \{\n(?:    .*\n)+  \},?\n", text)
    return "".join(entry for entry in objects
                   if '"isa": "generic"' in entry and '"type": "fp32"' in entry)


def hide_measured(text):
    text = re.sub(r"cpu_\w+", "cpu_#", text)
    text = re.sub(r"\S+ (ms|GFLOP/s)\b", r"# \1", text)
    text = re.sub(r"worst row at \S+ of its bound, largest bound [^;]+;",
                  "worst row at # of its bound, largest bound #;", text)
    text = re.sub(r"worst element at \S+ of", "worst element at # of", text)
    return re.sub(r'("(?:time_s|gflop_per_s|worst_share|max_bound)": )[^,\n]+', r"\1#", text)


def hide_machine(text):
    for pattern, shown in (
            (r"(tilegemm +[\d.]+, source ).*", r"\1#, built with #"), (r"(library +).*",
             r"\1#, # bytes"), (r"(processor +).*", r"\1#, # online"),
            (r"(system +).*", r"\1#, # GiB of memory"),
            (r"(clock +).*", r"\1# MHz now, governor #"),
            (r"(instruction sets +generic \(used\)).*", r"\1 #"),
            (r"(data caches +).*", r"\1L1 # KiB, L2 # KiB, L3 # KiB"),
            (r"(  \S+(?: \(as fp32\))?) +[\d.]+ GFLOP/s +[\d.]+ GFLOP/s",
             r"\1 # GFLOP/s # GFLOP/s")):
        text = re.sub(f"^{pattern}$", shown, text, flags=re.MULTILINE)
    text = re.sub(r"^GPU .*", "GPU #\n", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r'("gpus": \{).*(\})', r"\1#\2", text, flags=re.DOTALL)
    text = re.sub(r'("instruction_sets": \[)[^\]]*', r"\1#", text)
    text = re.sub(r'("(?!threads)\w+": )-?\d[\d.e+]*', r"\1#", text)
    return re.sub(r'("(?:source|compiler|path|processor|system|governor)": )"[^"]*"', r'\1"#"',
                  text)


def hide_nothing(text):
    return text


# Each transcript has its command lines and what is done to the output of each.
TRANSCRIPTS = {
    **{f"{name or 'tilegemm'}_help": ([f"{name} --help"], hide_nothing)
       for name in ("", *COMMANDS)},
    "kernels": (["kernels --isa generic"], keep_generic_rows),
    "kernels_json": (["kernels --isa generic --json"], keep_generic_objects),
    "multiply": (MULTIPLY, hide_measured),
    "attention": (ATTENTIONS, hide_measured),
    "info": (["info"], hide_machine),
    "info_json": (["info --json"], hide_machine),
    "mistakes": (MISTAKES, hide_nothing),
}


def call(line):
    """Runs the words in a folder with FILES, on one thread, with neither language nor terminal."""
    environment = {name: value for name, value in os.environ.items()
                   if name != "ARGP_HELP_FMT" and not name.startswith("TILEGEMM_")}
    environment.update(LC_ALL="C", TILEGEMM_ISA="generic", TILEGEMM_THREADS="1")
    return subprocess.run([TILEGEMM, *line.split()], capture_output=True, text=True, timeout=60,
                          env=environment)


def transcribe(name):
    lines, hide = TRANSCRIPTS[name]
    parts = []
    for line in lines:
        done = call(line)
        # A build without CUDA knows one device.
        errors = done.stderr.replace("pass cpu, cuda or cuda:0..cuda:63", "pass cpu")
        parts.append(f"$ tilegemm {line}".rstrip() + "\n" + hide(done.stdout) + errors +
                     f"exit code {done.returncode}\n")
    return "\n".join(parts)


def golden_path(name):
    return os.path.join(SOURCE, "tests", "cli", "golden", name + ".out")


def enter_folder():
    folder = tempfile.mkdtemp(prefix="tilegemm-test-")
    os.chdir(folder)
    for name, text in {**FILES, "c.mtx": FILES["b.mtx"].replace("3 2\n1\n0\n", "2 2\n")}.items():
        with open(name, "w", encoding="utf-8") as file:
            file.write(text)
    return folder


class Golden(unittest.TestCase):
    maxDiff = None

    def test_transcripts(self):
        folder = enter_folder()
        try:
            for name in TRANSCRIPTS:
                with self.subTest(name), open(golden_path(name), encoding="utf-8") as file:
                    self.assertEqual(transcribe(name), file.read(),
                                     "test_golden.py --update accepts the text")
        finally:
            os.chdir("/")
            shutil.rmtree(folder)

    def test_every_transcript_is_compared(self):
        files = os.listdir(os.path.dirname(golden_path("")))
        self.assertEqual(sorted(files), sorted(f"{name}.out" for name in TRANSCRIPTS))


def update():
    folder = enter_folder()
    for name in TRANSCRIPTS:
        with open(golden_path(name), "w", encoding="utf-8") as file:
            file.write(transcribe(name))
    shutil.rmtree(folder)


if __name__ == "__main__":
    TILEGEMM, SOURCE = (os.path.abspath(path) for path in sys.argv[1:3])
    if sys.argv[3:] == ["--update"]:
        update()
    else:
        unittest.main(argv=sys.argv[:1] + sys.argv[3:])
