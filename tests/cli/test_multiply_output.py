#!/usr/bin/env python3
"""Tests what the command multiply writes, and that a failure leaves the file that was there.

usage: test_multiply_output.py TILEGEMM WRONG_TILEGEMM

WRONG_TILEGEMM is the command with wrong kernels (wrong_execute.c).
"""
import json
import os
import pty
import resource
import subprocess

import numpy as np

from multiply_case import PROGRAMS, OutputCase, run_tests, write_npy


class Output(OutputCase):
    def test_write_protected(self):
        """A protected file is refused, though the folder may be written and a rename would replace
        it."""
        os.chmod("d.npy", 0o444)
        done = self.call_unprivileged("a.npy", "b.npy", "-o", "d.npy")
        self.assertEqual((done.returncode, done.stderr),
                         (2, "tilegemm multiply: d.npy: cannot write it: Permission denied; what "
                             "was there is unchanged\n"))
        self.assert_old()

    def test_file_size_limit(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (100000, 100000))

        for path in ("d.npy", "d.mtx"):
            self.refuse(1, f"{path}: cannot write it: File too large; what was there is "
                           "unchanged", "a.npy", "b.npy", "-o", path, preexec_fn=limit)
            self.assert_old()

    def test_no_space(self):
        size = 1 << 22
        write_npy("tall.npy", "<f8", f"({size}, 0)", b"")
        write_npy("wide.npy", "<f8", f"(0, {size})", b"")
        done = self.refuse(1, None, "tall.npy", "wide.npy", "-o", "d.npy")
        self.assertRegex(done.stderr, r"d\.npy: no space left: it needs 1407374883\d+ bytes, its "
                                      r"file system has \d+ free; what was there is unchanged")
        self.assert_old()

    def test_full_file_system(self):
        """Writing fails for the text, the reserved .npy and the JSON of bench, on a disk of 256 KiB
        that something else has filled except for a page or two."""
        script = ("mount -t tmpfs -o size=256k none full && cd full && cp ../a.npy ../b.npy . && "
                  "for name in d.mtx d.npy run.json; do echo old >$name; done; "
                  "head -c {fill} /dev/zero >filler 2>/dev/null; {program} {words}; echo $?; "
                  "ls; cat d.mtx d.npy run.json")
        os.mkdir("full")
        bench = "bench --shape 8x8x8 --peer none --threads 1 --min-time 0 --json run.json"
        reason = "cannot write it: No space left on device"
        for fill, words, pattern in (
                ("0", "multiply a.npy b.npy -o d.mtx", f"d.mtx: {reason}"),
                ("0", "multiply a.npy b.npy -o d.npy", r"d.npy: no space left: it needs \d+ bytes, "
                                                       r"its file system has \d+ free"),
                ("1M", "multiply a.npy b.npy -o d.mtx", f"d.mtx: {reason}"),
                ("1M", "multiply a.npy b.npy -o d.npy", "d.npy: no space left: .* has 0 free"),
                ("1M", bench, f"run.json: {reason}")):
            with self.subTest(words):
                line = script.format(fill=fill, program=PROGRAMS["right"], words=words)
                done = subprocess.run(["unshare", "--mount", "sh", "-c", line],
                                      capture_output=True, text=True, timeout=120)
                if "mount:" in done.stderr or "unshare:" in done.stderr:
                    self.skipTest(f"no small file system can be mounted: {done.stderr.strip()}")
                table, end = done.stdout.rsplit("1\na.npy\n", 1)
                self.assertEqual(end, "b.npy\nd.mtx\nd.npy\nfiller\nrun.json\nold\nold\nold\n")
                self.assertEqual(bool(table), "bench" in words)
                self.assertRegex(done.stderr,
                                 rf"^tilegemm \w+: {pattern}; what was there is unchanged\n$")

    def test_size_overflow(self):
        write_npy("tall.npy", "<f8", "(4294967296, 0)", b"")
        write_npy("wide.npy", "<f8", "(0, 4294967296)", b"")
        self.refuse(2, "D would be 4294967296 x 4294967296 fp64, more than 2^63 - 1 bytes",
                    "tall.npy", "wide.npy", "-o", "d.npy")
        self.assert_old()

    def test_wrong_result(self):
        for path in ("d.npy", "d.mtx"):
            done = self.call("a.npy", "b.npy", "-o", path, "--check", program=PROGRAMS["wrong"])
            self.assertEqual(done.returncode, 1)
            self.assertRegex(done.stderr, r"^tilegemm multiply: the result is wrong: row 0 is off "
                                          rf"by \S+ times its bound; {path} is not written\n$")
            self.assertIn("check: WRONG", done.stdout)
            self.assert_old()
        done = self.call("a.npy", "b.npy", "-o", "d.npy", "--check", "--json",
                         program=PROGRAMS["wrong"])
        summary = json.loads(done.stdout)
        self.assertEqual((done.returncode, summary["written"], summary["check"]["ok"],
                          summary["check"]["bad_row"]), (1, False, False, 0))
        self.assertEqual(self.call("a.npy", "b.npy", "-o", "d.npy",
                                   program=PROGRAMS["wrong"]).returncode, 0)

    def test_progress(self):
        """Progress appears only on a terminal, and is wiped at the end."""
        np.save("a.npy", self.make(3000, 1, dtype="<f8"))
        np.save("b.npy", self.make(1, 3000, dtype="<f8"))
        self.assert_progress(b"writing", "a.npy", "b.npy", "-o", "d.mtx")
        np.save("a.npy", np.ones((8000, 8000), "<f2"))
        np.save("b.npy", np.ones((8000, 1), "<f2"))
        self.assert_progress(b"checking", "a.npy", "b.npy", "-o", "d.npy", "--check")

    def assert_progress(self, label, *words):
        words = [PROGRAMS["right"], "multiply", *words]
        master, slave = pty.openpty()
        job = subprocess.Popen(words, stderr=slave, stdout=subprocess.DEVNULL)
        os.close(slave)
        shown = b""
        while True:
            try:
                part = os.read(master, 4096)
            except OSError:  # Linux ends a terminal so
                break
            if not part:
                break
            shown += part
        os.close(master)
        self.assertEqual(job.wait(timeout=60), 0)
        self.assertRegex(shown, rb"\r" + label + rb": +\d+ %")
        self.assertTrue(shown.endswith(b"\r\x1b[K"), shown[-20:])


if __name__ == "__main__":
    run_tests()
