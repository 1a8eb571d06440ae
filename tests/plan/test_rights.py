#!/usr/bin/env python3
"""Tests that no environment variable acts in a set-user-ID program that uses the library.

usage: test_rights.py PROGRAM        (rights_program.c)
"""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

PROGRAM = sys.argv[1]
NOBODY = 65534


@unittest.skipUnless(os.geteuid() == 0 and shutil.which("setpriv"),
                     "root alone can make such a program and then be someone else")
class Rights(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="tilegemm-test-")
        self.addCleanup(shutil.rmtree, self.folder)
        os.chmod(self.folder, 0o755)
        self.program = shutil.copy(PROGRAM, os.path.join(self.folder, "program"))
        self.own = os.path.join(self.folder, "own")
        os.mkdir(self.own)
        os.chown(self.own, NOBODY, NOBODY)

    def call(self, **environment):
        done = subprocess.run(
            ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", self.program],
            env={**os.environ, **environment}, capture_output=True, text=True, timeout=60,
            check=True)
        return done.stdout.split(), done.stderr

    def read_log(self, name):
        with open(os.path.join(self.own, name), encoding="utf-8") as file:
            return file.read()

    def test_own_rights(self):
        os.chmod(self.program, 0o755)
        found, _ = self.call(TILEGEMM_LOG=os.path.join(self.own, "log"))
        self.assertEqual(found, ["0", "TG_STATUS_OK"])
        self.assertRegex(self.read_log("log"), "^tilegemm problem=2x2x3 .*\n$")
        self.assertEqual(self.call(TILEGEMM_THREADS="0")[0], ["0", "TG_STATUS_INVALID_ARGUMENT"])

    def test_rights_of_the_owner(self):
        target = os.path.join(self.folder, "target")
        with open(target, "w", encoding="utf-8") as file:
            file.write("owned by root\n")
        os.chmod(target, 0o600)
        os.chmod(self.program, 0o4755)
        made = os.path.join(self.own, "made")
        for log in (target, made, "1"):
            found, errors = self.call(TILEGEMM_LOG=log, TILEGEMM_THREADS="0", TILEGEMM_ISA="none",
                                      TILEGEMM_DEVICE="abacus")
            if found[0] == "0":
                self.skipTest(f"{self.folder} is on a file system without set-user-ID programs")
            self.assertEqual((found, errors), (["1", "TG_STATUS_OK"], ""))
        self.assertFalse(os.path.exists(made))
        with open(target, encoding="utf-8") as file:
            self.assertEqual(file.read(), "owned by root\n")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])
