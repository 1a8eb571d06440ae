"""The tests of the command bench share a folder of their own, and short runs."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

PROGRAMS = {"right": "tilegemm", "wrong": "wrong", "openblas": "fake", "source": "."}
PEER_VARIABLES = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE", "BLIS_ARCH_TYPE",
                  "MKL_ENABLE_INSTRUCTIONS")


class BenchCase(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.home = os.getcwd()
        self.fake = {"TILEGEMM_OPENBLAS": PROGRAMS["openblas"]}  # replaces OpenBLAS
        self.folder = tempfile.mkdtemp(prefix="tilegemm-test-")
        os.chdir(self.folder)

    def tearDown(self):
        os.chdir(self.home)
        shutil.rmtree(self.folder)

    def call(self, *words, program=None, **variables):
        """Makes a short run; a variable whose value is None is taken away."""
        environment = {name: value for name, value in os.environ.items()
                       if name not in PEER_VARIABLES}
        environment.update(variables)
        return subprocess.run(
            [program or PROGRAMS["right"], "bench", "--min-time", "0.0001", "--rounds", "3",
             *words], capture_output=True, text=True, timeout=120, env=environment)

    def load(self, *words, code=0, **options):
        done = self.call(*words, "--json", "-", **options)
        self.assertEqual(done.returncode, code, done.stderr)
        return json.loads(done.stdout)

    def refuse(self, code, message, *words, **options):
        done = self.call(*words, **options)
        self.assertEqual((done.returncode, done.stdout), (code, ""), done.stderr)
        self.assertRegex(done.stderr, message)


def run_tests():
    """Runs the tests of the calling script: SCRIPT TILEGEMM WRONG_TILEGEMM FAKE_OPENBLAS
    SOURCE_FOLDER [unittest's words]."""
    PROGRAMS.update(zip(PROGRAMS, map(os.path.abspath, sys.argv[1:5])))
    unittest.main(argv=sys.argv[:1] + sys.argv[5:])
