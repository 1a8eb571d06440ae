#!/usr/bin/env python3
"""Tests the command multiply on matrices larger than its memory, and that an interrupted run goes
on where it was.

usage: test_multiply_partial.py TILEGEMM WRONG_TILEGEMM

WRONG_TILEGEMM is the command with products that fail or end the process (wrong_execute.c).
"""
import fcntl
import json
import os
import resource
import signal
import subprocess

import numpy as np

from multiply_case import PROGRAMS, MultiplyCase, list_temporary_files, run_tests

PARTIAL = "d.npy.partial"
GOES_ON = ("tilegemm multiply: interrupted; what is done is in d.npy.partial, and the same command "
           "goes on from there\n")
REMEDY = "repeat that run to go on, or remove the file to start anew"
WORDS = ("a.npy", "b.npy", "-o", "d.npy", "--memory", "16K")


class Partial(MultiplyCase):
    def setUp(self):
        super().setUp()
        np.save("a.npy", self.make(90, 60))
        np.save("b.npy", self.make(60, 75))

    def interrupt(self, done_count, number=signal.SIGKILL, words=WORDS):
        """Ends a run by a signal after the given number of panels."""
        environment = {**os.environ, "WRONG_EXECUTE_CALLS": str(done_count),
                       "WRONG_EXECUTE_SIGNAL": str(int(number))}
        done = self.call(*words, program=PROGRAMS["wrong"], env=environment)
        self.assertEqual(done.returncode, -number)
        self.assertEqual(list_temporary_files(), [])
        return done

    def go_on(self, *words):
        """Runs to the end. Returns the panels and those that were done before."""
        done = self.call(*(words or WORDS), "--json", "--check")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertFalse(os.path.exists(PARTIAL))
        facts = json.loads(done.stdout)
        self.assertTrue(facts["check"]["ok"])
        return facts["panels"], facts["resumed_panels"]

    def assert_bits(self, *words):
        """D in panels has the bits of D at once."""
        for memory in ("6K", "16K"):
            self.assertEqual(self.call(*words, "-o", "whole.npy").returncode, 0)
            done = self.call(*words, "-o", "d.npy", "--memory", memory, "--json")
            self.assertEqual((done.returncode, done.stderr), (0, ""), (words, memory))
            with open("whole.npy", "rb") as whole, open("d.npy", "rb") as d:
                self.assertEqual(whole.read(), d.read(), (words, memory))
        return json.loads(done.stdout)

    def test_bits(self):
        np.save("bias.npy", self.make(75))
        np.save("column.npy", self.make(90, 1))
        np.save("c.npy", self.make(90, 75))
        np.save("fortran.npy", np.asfortranarray(self.make(90, 60)))
        self.assertGreater(self.assert_bits("a.npy", "b.npy")["panels"], 1)
        self.assert_bits("fortran.npy", "b.npy", "--c", "c.npy", "--alpha", "2", "--beta", "-1")
        self.assert_bits("a.npy", "b.npy", "--bias", "bias.npy", "--activation", "relu")
        self.assert_bits("a.npy", "b.npy", "--bias", "column.npy", "--activation", "silu")
        self.assert_bits("a.npy", "b.npy", "--alpha", "0", "--c", "c.npy")
        np.save("at.npy", self.make(60, 90, dtype="<f8"))
        np.save("bt.npy", self.make(75, 60, dtype="<f8"))
        self.assert_bits("at.npy", "bt.npy", "--transpose-a", "--transpose-b")

    def test_sizes(self):
        for m, n, k in ((0, 9, 9), (9, 0, 9), (900, 9, 0), (1, 1, 400), (1, 3000, 3), (3000, 1, 3),
                        (17, 109, 31)):
            np.save("a.npy", self.make(m, k))
            np.save("b.npy", self.make(k, n))
            self.assert_bits("a.npy", "b.npy")
        np.save("a.npy", self.make(9, 20, 30))
        np.save("b.npy", self.make(9, 30, 20))
        self.assertGreater(self.assert_bits("a.npy", "b.npy")["panels"], 1)
        np.save("b.npy", self.make(30, 20))
        self.assert_bits("a.npy", "b.npy")
        np.save("b.npy", self.make(30))
        self.assert_bits("a.npy", "b.npy")

    def test_killed(self):
        for number, told in ((signal.SIGKILL, ""), (signal.SIGINT, GOES_ON),
                             (signal.SIGTERM, GOES_ON)):
            with open("d.npy", "wb") as file:
                file.write(b"what was there")
            self.assertEqual(self.interrupt(3, number).stderr, told)
            with open("d.npy", "rb") as file:
                self.assertEqual(file.read(), b"what was there")
            self.interrupt(2, number)
            count, resumed_count = self.go_on()
            self.assertGreater(count, 8)
            self.assertEqual(resumed_count, 5)
        self.assertEqual(self.go_on()[1], 0)
        self.assert_close(np.load("d.npy"), np.load("a.npy"), np.load("b.npy"), 2.0**-24)

    def test_what_is_done_stays(self):
        """The panels that are done are not formed again, and all others are."""
        self.interrupt(4)
        with open(PARTIAL, "r+b") as file:
            file.seek(128)
            file.write(np.float32(7).tobytes())
        done = self.call(*WORDS)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("4 of ", done.stdout)
        d = np.load("d.npy")
        self.assertEqual(d[0, 0], 7)
        d[0, 0] = np.load("a.npy")[0] @ np.load("b.npy")[:, 0]
        self.assert_close(d, np.load("a.npy"), np.load("b.npy"), 2.0**-22)

    def test_memory_of_a_resumed_run(self):
        """The panels stay those of the run that was interrupted, whatever memory there is."""
        self.interrupt(3)
        count, resumed_count = self.go_on(*WORDS[:4])
        self.assertEqual((count, resumed_count), (self.go_on()[0], 3))

    def test_failure(self):
        done = self.call(*WORDS, program=PROGRAMS["wrong"],
                         env={**os.environ, "WRONG_EXECUTE_CALLS": "6"})
        self.assertEqual((done.returncode, done.stderr.count("\n")), (1, 1))
        self.assertRegex(done.stderr, r"; 6 of \d+ panels are in d.npy.partial, and the same "
                                      r"command goes on from there\n$")
        self.assertEqual(self.go_on()[1], 6)

    def test_failure_at_once(self):
        """Nothing stays of a run that has done nothing."""
        done = self.call(*WORDS, program=PROGRAMS["wrong"],
                         env={**os.environ, "WRONG_EXECUTE_CALLS": "0"})
        self.assertEqual(done.returncode, 1)
        self.assertEqual(sorted(os.listdir(".")), ["a.npy", "b.npy"])

    def test_other_runs(self):
        self.interrupt(3)
        start = f"{PARTIAL} is of an interrupted run with another product: "
        np.save("c.npy", self.make(90, 75))
        for words, fact in ((("--alpha", "2"), "--alpha was 1 and is 2"),
                            (("--c", "c.npy"), "the file of C was none and is c.npy"),
                            (("--precision", "tf32"), "--precision was default and is tf32"),
                            (("--activation", "relu"), "--activation was none and is relu")):
            self.refuse(2, f"{start}{fact}; {REMEDY}", *WORDS, *words)
        found = os.stat("b.npy")
        os.utime("b.npy", ns=(found.st_atime_ns, found.st_mtime_ns + 1))
        done = self.refuse(2, None, *WORDS)
        self.assertRegex(done.stderr, r"the time of B was \d+\.\d{9} and is \d+\.\d{9}; repeat")
        os.utime("b.npy", ns=(found.st_atime_ns, found.st_mtime_ns))
        self.assertEqual(self.go_on()[1], 3)
        self.interrupt(3)
        np.save("a.npy", self.make(91, 60))
        self.refuse(2, f"{start}the size of A was 21728 bytes and is 21968 bytes; {REMEDY}",
                    *WORDS)
        os.remove(PARTIAL)
        self.assertEqual(self.go_on()[1], 0)

    def test_other_files(self):
        """A file of that name that is no partial D is refused and stays as it is."""
        for content in (b"mine", b"m" * 16384, b""):
            with open(PARTIAL, "wb") as file:
                file.write(content)
            self.assertIn("move it away", self.refuse(2, None, *WORDS).stderr)
            with open(PARTIAL, "rb") as file:
                self.assertEqual(file.read(), content)
        os.remove(PARTIAL)
        self.interrupt(3)
        with open(PARTIAL, "r+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            self.refuse(1, f"{PARTIAL}: another run writes it; wait for its end", *WORDS)
            file.seek(-8, os.SEEK_END)
            file.write(b"\xff" * 8)
        self.refuse(2, f"{PARTIAL} is damaged; remove it to start anew", *WORDS)

    def test_wrong_result(self):
        """A D that the check finds wrong does not stay."""
        done = self.call(*WORDS, "--check", program=PROGRAMS["wrong"])
        self.assertEqual(done.returncode, 1)
        self.assertEqual(sorted(os.listdir(".")), ["a.npy", "b.npy"])

    def test_no_space(self):
        """The space of D is reserved before the work, so that it does not end in the middle."""
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (10000, 10000))

        self.refuse(1, "d.npy: cannot write it: File too large; what was there is unchanged",
                    *WORDS, preexec_fn=limit)
        os.mkdir("full")
        script = ("mount -t tmpfs -o size=16k none full && cd full && "
                  f"{PROGRAMS['right']} multiply ../a.npy ../b.npy -o d.npy --memory 16K; "
                  "echo $?; ls")
        done = subprocess.run(["unshare", "--mount", "sh", "-c", script], capture_output=True,
                              text=True, timeout=120)
        if "mount:" in done.stderr or "unshare:" in done.stderr:
            self.skipTest(f"no small file system can be mounted: {done.stderr.strip()}")
        self.assertEqual(done.stdout, "1\n")
        self.assertRegex(done.stderr, "d.npy: no space left: it needs ")

    def test_limits(self):
        self.refuse(2, "a memory limit of 400 bytes is less than the 484 that one row of op(A), "
                       "one column of op(B) and their element of D take; allow more",
                    *WORDS[:4], "--memory", "400")
        for text in ("0", "-1", "8X", "G", "1e30", "nan", "8GB"):
            done = self.refuse(2, None, *WORDS[:4], "--memory", text)
            self.assertIn(f"--memory = '{text}' is not a size of 1 byte or more", done.stderr)
        self.assertEqual(self.go_on(*WORDS[:4], "--memory", "0.5G"), (1, 0))


if __name__ == "__main__":
    run_tests()
