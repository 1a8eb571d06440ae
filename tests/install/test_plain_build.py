"""Configures the project where only a C compiler, make and CMake can be found.

usage: test_plain_build.py SOURCE_DIR CMAKE CC

All else is hidden from CMake. Each part that is left out must say so in one line and name what
brings it, and the same part asked for with ON must end the configuration.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE_DIR, CMAKE, CC = sys.argv[1:4]
# gcc, make and CMake run these programs.
TOOLS = ("ar", "as", "ld", "nm", "objcopy", "objdump", "ranlib", "readelf", "strip", "sh", "make",
         "uname")
HIDDEN_FOLDERS = ("/usr/bin", "/bin", "/usr/local/bin", "/usr/local/cuda/bin", "/usr/include",
                  "/usr/local/include", "/usr/share/nodejs", "/usr/lib/wasm32-wasi")
LEFT_OUT = ("command: left out, it needs libjansson-dev",
            "tests: left out, it needs libcmocka-dev, python3, python3-numpy, the command",
            "CUDA backend: left out, it needs NVIDIA's CUDA toolkit",
            "simulator: left out, it needs g++, mawk",
            "distributed products: left out, it needs libopenmpi-dev",
            "page of reports: left out, it needs esbuild, clang, lld, wasi-libc")


class PlainBuildTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.tools = os.path.join(cls.folder.name, "tools")
        os.mkdir(cls.tools)
        for name in TOOLS:
            if shutil.which(name):
                os.symlink(shutil.which(name), os.path.join(cls.tools, name))
        cls.environment = {"PATH": cls.tools, "HOME": cls.folder.name, "LC_ALL": "C"}

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def configure(self, *options):
        return subprocess.run(
            [CMAKE, "-S", SOURCE_DIR, "-B", os.path.join(self.folder.name, "build"),
             "-G", "Unix Makefiles", f"-DCMAKE_MAKE_PROGRAM={self.tools}/make",
             f"-DCMAKE_C_COMPILER={shutil.which(CC)}", "-DCMAKE_CXX_COMPILER=hidden-NOTFOUND",
             f"-DCMAKE_IGNORE_PATH={';'.join(HIDDEN_FOLDERS)}",
             "-DCMAKE_DISABLE_FIND_PACKAGE_Python3=ON", *options],
            env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            check=False)

    def test_parts_are_left_out(self):
        result = self.configure()
        self.assertEqual(result.returncode, 0, result.stdout)
        for text in LEFT_OUT:
            lines = [line for line in result.stdout.splitlines() if text in line]
            self.assertEqual(len(lines), 1, f"'{text}' in:\n{result.stdout}")
        result = subprocess.run([CMAKE, "--build", os.path.join(self.folder.name, "build"),
                                 "--target", "tilegemm_check"], env=self.environment,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                check=False)
        self.assertEqual(result.returncode, 0, result.stdout)

    def test_parts_asked_for_are_errors(self):
        for option, package in (("TG_BUILD_CLI", "libjansson-dev"),
                                ("TG_BUILD_TESTS", "libcmocka-dev"), ("TG_CUDA", "nvcc"),
                                ("TG_SIM", "g++"), ("TG_PAGE", "esbuild"),
                                ("TG_MPI", "libopenmpi-dev")):
            result = self.configure(f"-D{option}=ON")
            self.assertNotEqual(result.returncode, 0, option)
            text = " ".join(result.stdout.split())
            self.assertIn(f"{option}=ON lacks", text)
            self.assertIn(package, text)
            self.assertIn(f"-D{option}=OFF", text)
            self.configure(f"-D{option}=AUTO")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
