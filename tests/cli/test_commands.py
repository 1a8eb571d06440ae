#!/usr/bin/env python3
"""Tests the command's front: help texts, version, exit codes, kernels, info, man page and
completion.

usage: test_commands.py TILEGEMM SOURCE_FOLDER MANUAL_FOLDER
"""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

ISA_NAMES = ("generic", "avx2", "avx512", "avx512_bf16", "amx")
COMMANDS = ("multiply", "attention", "bench", "explain", "simulate", "profile", "report", "kernels",
            "info")
TILEGEMM, SOURCE, MANUAL = "tilegemm", ".", "."


def call(*words, **environment):
    """Runs the command. The help texts depend on neither language nor terminal."""
    variables = {**os.environ, "LC_ALL": "C", **environment}
    variables.pop("ARGP_HELP_FMT", None)
    return subprocess.run([TILEGEMM, *words], capture_output=True, text=True, timeout=60,
                          env=variables)


def read(*path):
    with open(os.path.join(SOURCE, *path), encoding="utf-8") as file:
        return file.read()


def help_text(command):
    return call(*([command] if command else []), "--help")


def list_options(command):
    """Returns the long options of a command, as its help shows them."""
    options = re.findall(r"^ +(?:-.,)? +--([a-z-]+)", help_text(command).stdout, re.MULTILINE)
    return sorted(set(options) - {"help", "usage", "version"})


class Front(unittest.TestCase):
    maxDiff = None

    def test_help_has_examples(self):
        for command in COMMANDS:
            self.assertIn(f"Examples:\n  tilegemm {command}", help_text(command).stdout)

    def test_version(self):
        number = re.search(r"VERSION_MAJOR (\d+)\n.*MINOR (\d+)\n.*PATCH (\d+)",
                           read("include", "tilegemm.h")).groups()
        for words in (["--version"], *([command, "--version"] for command in COMMANDS)):
            done = call(*words)
            self.assertEqual((done.returncode, done.stdout), (0, f"tilegemm {'.'.join(number)}\n"))

    def test_exit_codes(self):
        for code, words in (
                (2, []), (2, ["nothing"]), (2, ["--nothing"]), (2, ["bench", "--nothing"]),
                (2, ["kernels", "word"]), (2, ["info", "word"]), (2, ["multiply"]),
                (2, ["kernels", "--isa", "nothing"])):
            with self.subTest(words):
                self.refuse(code, *words)

    def refuse(self, code, *words, **environment):
        done = call(*words, **environment)
        self.assertEqual((done.returncode, done.stdout), (code, ""))
        self.assertTrue(done.stderr.startswith("tilegemm"), done.stderr)

    def test_names_of_the_environment(self):
        """An instruction set that no build knows is wrong usage. One that this CPU lacks, or a
        device, is missing. Every command agrees."""
        here = json.loads(call("info", "--json").stdout)["instruction_sets"]
        with tempfile.TemporaryDirectory() as folder:
            matrix = os.path.join(folder, "a.mtx")
            with open(matrix, "w", encoding="utf-8") as file:
                file.write("%%MatrixMarket matrix array real general\n1 1\n1\n")
            for words in (["kernels"], ["info"], ["bench", "--shape", "8x8x8", "--peer", "none"],
                          ["multiply", matrix, matrix, "-o", os.path.join(folder, "d.mtx")]):
                with self.subTest(words):
                    self.refuse(2, *words, TILEGEMM_ISA="nothing")
                    self.refuse(3, *words, TILEGEMM_DEVICE="nothing")
                    for isa in set(ISA_NAMES) - set(here):
                        self.refuse(3, *words, TILEGEMM_ISA=isa)

    def assert_unwritten(self, done, reason):
        """A text longer than the stream's buffer fails before its end, where the reason is gone."""
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr,
                         f"standard output: ({reason}|an earlier part of it was lost)\n$")
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)

    def test_full_disk(self):
        """Output that cannot be written is a failure, told in one line."""
        for words in (["kernels"], ["kernels", "--json"], ["explain", "8x8x8", "--gpu", "t4"],
                      ["explain", "8x8x8", "--json"], ["info", "--json"], ["--version"],
                      *([*command, option] for command in ([], *([name] for name in COMMANDS))
                        for option in ("--help", "--usage"))):
            with self.subTest(words), open("/dev/full", "w", encoding="utf-8") as full:
                done = subprocess.run([TILEGEMM, *words], stdout=full, stderr=subprocess.PIPE,
                                      text=True, timeout=60)
                self.assert_unwritten(done, "No space left on device")
        with open("/dev/full", "w", encoding="utf-8") as full:
            done = subprocess.run([TILEGEMM, "nothing"], stdout=full, stderr=subprocess.PIPE,
                                  text=True, timeout=60)
        self.assertEqual(done.returncode, 2)
        self.assertNotIn("standard output", done.stderr)

    def test_reader_that_has_gone(self):
        """The signal ends the command in silence; without it there is an error."""
        for is_ignored in (False, True):
            reader, writer = os.pipe()
            os.close(reader)
            done = subprocess.run([TILEGEMM, "kernels"], stdout=writer, stderr=subprocess.PIPE,
                                  text=True, timeout=60, restore_signals=not is_ignored)
            os.close(writer)
            if is_ignored:
                self.assert_unwritten(done, "Broken pipe")
            else:
                self.assertEqual((done.returncode, done.stderr), (-signal.SIGPIPE, ""))

    def test_closed_output(self):
        done = subprocess.run(["sh", "-c", 'exec "$0" kernels >&-', TILEGEMM],
                              stderr=subprocess.PIPE, text=True, timeout=60)
        self.assert_unwritten(done, "Bad file descriptor")


class Lists(unittest.TestCase):
    def test_kernels(self):
        done = call("kernels", "--json")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        rows = json.loads(done.stdout)
        for row in rows:
            self.assertEqual(
                sorted(row), ["device", "family", "idea", "is_available", "isa", "ladder_rung",
                              "name", "tile_cols", "tile_rows", "type"])
        self.assertEqual(len({row["name"] for row in rows}), len(rows))
        text = call("kernels").stdout
        self.assertEqual([line.split()[0] for line in text.splitlines()[1:]],
                         [row["name"] for row in rows])
        generic = json.loads(call("kernels", "--json", "--isa", "generic").stdout)
        self.assertEqual({row["isa"] for row in generic if row["is_available"]}, {"generic"})

    def test_info(self):
        done = call("info", "--json", TILEGEMM_THREADS="1", TILEGEMM_ISA="generic")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        found = json.loads(done.stdout)
        self.assertEqual(sorted(found), ["compiler", "gpus", "has_simulator", "instruction_sets",
                                         "library", "machine", "peaks", "source", "threads",
                                         "version"])
        self.assertEqual(bool(found["gpus"]["devices"]), found["gpus"]["reason"] is None)
        self.assertEqual(found["instruction_sets"][0], "generic")
        self.assertEqual((found["machine"]["isa"], found["threads"]), ("generic", 1))
        self.assertEqual([peak["type"] for peak in found["peaks"]],
                         ["fp32", "fp64", "bf16", "fp16"])
        self.assertTrue(all(peak["flop_per_s"] > 0 for peak in found["peaks"]))
        self.assertEqual(found["library"]["bytes"], os.path.getsize(found["library"]["path"]))
        text = call("info", TILEGEMM_THREADS="1").stdout
        self.assertEqual(found["has_simulator"], "--device sim" in text)
        for word in ("processor", "instruction sets", "data caches", "threads", "measured peak",
                     "simulator"):
            self.assertIn(word, text)


class Documents(unittest.TestCase):
    def test_manual_pages(self):
        """Each command has a page with its options, and sections that stand once."""
        for command in ("", *COMMANDS):
            name = f"tilegemm-{command}.1" if command else "tilegemm.1"
            page = self.manual(name)
            titles = re.findall(r"^\.SH (.+)$", page, re.M)
            self.assertEqual(len(titles), len(set(titles)), name)
            self.assertEqual(titles[:2], ["NAME", "SYNOPSIS"])
            options = page.split(".SH OPTIONS\n")[1].split("\n.SH ")[0] if command else ""
            self.assertEqual(sorted(re.findall(r"^\.BR? .*\\-\\-([a-z\\-]+)", options, re.M)),
                             sorted(option.replace("-", "\\-")
                                    for option in (list_options(command) if command else ())),
                             command)
            if shutil.which("groff"):
                done = subprocess.run(["groff", "-man", "-ww", "-z", "-Tutf8",
                                       os.path.join(MANUAL, name)], capture_output=True, text=True)
                self.assertEqual((done.returncode, done.stderr), (0, ""), name)
        self.assertIn("tilegemm\\-bench (1)", self.manual("tilegemm.1"))

    def test_completions_name_every_option(self):
        zsh, fish = self.manual("_tilegemm"), self.manual("tilegemm.fish")
        for command in COMMANDS:
            options = list_options(command)
            self.assertGreater(len(options), 0)
            of_zsh = zsh.split(f"    {command})\n")[1].split(";;")[0]
            for option in options:
                self.assertIn(f"--{option}", self.complete(command, f"--{option}"), command)
                self.assertRegex(of_zsh, rf"--{option}\b")
                self.assertIn(f"_from {command}' -l {option} ", fish)
        for shell, name in (("bash", "tilegemm.bash"), ("zsh", "_tilegemm"),
                            ("fish", "tilegemm.fish")):
            if shutil.which(shell):
                done = subprocess.run([shell, "-n", os.path.join(MANUAL, name)],
                                      capture_output=True, text=True, check=False)
                self.assertEqual((done.returncode, done.stderr), (0, ""), shell)

    def test_completed_words_are_taken(self):
        """Suites are those of their folder, peers those of --help."""
        suites = {name.removesuffix(".txt")
                  for name in os.listdir(os.path.join(SOURCE, "bench", "suites"))}
        self.assertEqual(set(self.complete("bench", "--suite", "")) & suites, suites)
        peers = set(self.complete("bench", "--peer", "")) - {"all", "none"}
        text = " ".join(help_text("bench").stdout.split())
        for peer in peers:
            self.assertRegex(text, rf"\b{peer}\b")

    def manual(self, name):
        with open(os.path.join(MANUAL, name), encoding="utf-8") as file:
            return file.read()

    def test_completion(self):
        self.assertEqual(sorted(self.complete("")),
                         ["--help", "--usage", "--version", *sorted(COMMANDS)])
        self.assertEqual(self.complete("be"), ["bench"])
        self.assertEqual(self.complete("bench", "--type", "fp"),
                         ["fp32", "fp64", "fp16", "fp8_e4m3", "fp8_e5m2"])
        self.assertEqual(self.complete("bench", "--type", "=", "fp6"), ["fp64"])
        self.assertEqual(self.complete("bench", "--peer", "onednn_"), ["onednn_sgemm"])
        self.assertIn("ladder", self.complete("bench", "-k", ""))
        self.assertIn("cpu_sequential_generic_fp32", self.complete("bench", "-k", "cpu_seq"))

    def complete(self, *words):
        """Returns what bash offers for the last of the words."""
        script = ('PATH="$1:$PATH"; source "$2"; shift 2; COMP_WORDS=(tilegemm "$@")\n'
                  'COMP_CWORD=$#; _tilegemm_complete; printf "%s\\n" "${COMPREPLY[@]}"')
        done = subprocess.run(
            ["bash", "-c", script, "bash", os.path.dirname(TILEGEMM),
             os.path.join(MANUAL, "tilegemm.bash"), *words],
            capture_output=True, text=True, timeout=60)
        self.assertEqual(done.stderr, "")
        return done.stdout.split()


if __name__ == "__main__":
    TILEGEMM, SOURCE, MANUAL = (os.path.abspath(path) for path in sys.argv[1:4])
    unittest.main(argv=sys.argv[:1] + sys.argv[4:])
