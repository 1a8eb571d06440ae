#!/usr/bin/env python3
"""Checks that no program or library searches the current directory for the libraries that it loads.

usage: test_runpath.py BUILD_DIR CMAKE CC

The check holds for every ELF file of an installed tree and of the build tree, but for its folder of
peers, which others have made.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

BUILD_DIR, CMAKE, CC = sys.argv[1:4]
COMMAND = os.path.join(BUILD_DIR, "tilegemm")
MARK = b"a planted library runs"
PLANTED = f"""
#include <unistd.h>
__attribute__((constructor)) static void run(void)
{{
    if (write(2, "{MARK.decode()}\\n", {len(MARK) + 1}) < 0)
        _exit(1);
}}
"""


def list_elf_files(folder):
    for parent, below, names in os.walk(folder):
        if parent == BUILD_DIR and "peers" in below:
            below.remove("peers")
        for name in names:
            path = os.path.join(parent, name)
            try:
                with open(path, "rb") as file:
                    if not os.path.islink(path) and file.read(4) == b"\x7fELF":
                        yield path
            except OSError:  # another test has removed it
                pass


def list_entries(path):
    """Returns the folders in which the loader searches for the libraries of an ELF file."""
    text = subprocess.run(["readelf", "-dW", path], capture_output=True, text=True, check=False,
                          env={**os.environ, "LC_ALL": "C"}).stdout
    return [entry for found in re.findall(r"\((?:RUNPATH|RPATH)\).*\[(.*)\]", text)
            for entry in found.split(":")]


def find_faults(folder):
    """Returns (faults, number of entries) of all ELF files below the folder."""
    faults, count = [], 0
    for path in list_elf_files(folder):
        for entry in list_entries(path):
            count += 1
            if not re.match(r"/|\$ORIGIN(/|$)", entry):
                faults.append(f"{path}: RUNPATH has '{entry}'")
    return faults, count


class Runpath(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="tilegemm-test-")
        self.addCleanup(shutil.rmtree, self.folder)

    def compile(self, name, *words):
        """Makes a library whose constructor prints MARK."""
        path = os.path.join(self.folder, name)
        subprocess.run([CC, "-shared", "-fPIC", "-x", "c", "-", "-o", path, *words],
                       input=PLANTED, text=True, check=True)
        return path

    def test_build_tree(self):
        faults, count = find_faults(BUILD_DIR)
        self.assertEqual(faults, [])
        self.assertGreater(count, 0)

    def test_installed_tree(self):
        prefix = os.path.join(self.folder, "prefix")
        subprocess.run([CMAKE, "--install", BUILD_DIR, "--prefix", prefix],
                       stdout=subprocess.DEVNULL, check=True)
        self.assertEqual(find_faults(prefix)[0], [])
        command = os.path.join(prefix, "bin", "tilegemm")
        if os.path.exists(command):
            self.assertNotEqual(list_entries(command), [])
            self.run_command(command, "--version")

    def test_faults_are_found(self):
        for number, entry in enumerate(("", "lib", "/usr/lib:", ".", "$ORIGINAL")):
            path = self.compile(f"lib{number}.so", f"-Wl,-rpath,{entry}:/usr/lib")
            faults, _ = find_faults(self.folder)
            self.assertEqual([fault.split(":")[0] for fault in faults], [path], entry)
            os.remove(path)

    def run_command(self, command, *words, **environment):
        """Returns what the command prints on stderr in the folder of the planted libraries."""
        variables = {name: value for name, value in os.environ.items()
                     if name != "LD_LIBRARY_PATH" and not name.startswith("TILEGEMM_")}
        done = subprocess.run([command, *words], cwd=self.folder, env={**variables, **environment},
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=60,
                              check=False)
        return done.stderr

    @unittest.skipUnless(os.path.exists(COMMAND), "the command was not built")
    def test_current_directory(self):
        """Plants a library under each name that the loader is asked for."""
        needed = re.findall(r"\(NEEDED\).*\[(.*)\]", subprocess.run(
            ["readelf", "-dW", COMMAND], capture_output=True, text=True, check=True).stdout)
        names = set()
        for path in (COMMAND, os.path.join(BUILD_DIR, "lib", "libtilegemm.so")):
            with open(path, "rb") as file:
                names.update(re.findall(rb"\0(lib[\w.-]+\.so[.\d]*)\0", file.read()))
        opened = {name.decode() for name in names} - set(needed)
        self.assertIn("libopenblas.so.0", opened)
        first = self.compile("planted.so")
        bench = "bench --shape 8x8x8 --rounds 1 --min-time 0 --threads 1"
        calls = (["--version"], ["info"], bench.split())
        for name in opened:
            shutil.copy(first, os.path.join(self.folder, name))
        self.assertIn(MARK, self.run_command(COMMAND, *calls[-1], LD_LIBRARY_PATH=self.folder))
        for name in needed:
            shutil.copy(first, os.path.join(self.folder, name))
        for words in calls:
            self.assertNotIn(MARK, self.run_command(COMMAND, *words))
            relative = {f"TILEGEMM_{peer}": peer_library for peer, peer_library in (
                ("OPENBLAS", "libopenblas.so.0"), ("BLIS", "."), ("MKL", "./libmkl_rt.so"))}
            self.assertNotIn(MARK, self.run_command(COMMAND, *words, **relative))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[4:])
