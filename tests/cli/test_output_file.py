#!/usr/bin/env python3
"""Tests the names, rights and links of outputs, what a signal leaves of them, and the standard
streams.

usage: test_output_file.py TILEGEMM WRONG_TILEGEMM
"""
import errno
import os
import resource
import shlex
import signal
import struct
import subprocess
import time

import numpy as np

from multiply_case import PROGRAMS, OutputCase, list_temporary_files, run_tests

HARMLESS = {signal.SIGCHLD, signal.SIGCONT, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU,
            signal.SIGURG, signal.SIGWINCH}
# A sanitizer's handler of a crash ends the process in its own way.
UNHANDLED = ":".join(f"handle_{name}=0" for name in ("segv", "sigbus", "sigfpe", "sigill", "abort"))
SANITIZERS = {f"{name}_OPTIONS": UNHANDLED for name in ("ASAN", "TSAN", "UBSAN")}
ROWS = 2000  # of a D whose writing takes long enough for a signal to come meanwhile
ACCESS_LIST, DEFAULT_LIST = "system.posix_acl_access", "system.posix_acl_default"


def make_list(user):
    """Returns an access list: the owner and `user` write, the group reads, others do nothing."""
    entries = ((1, 6, -1), (2, 6, user), (4, 4, -1), (16, 6, -1), (32, 0, -1))
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHi", *entry) for entry in entries)


class Rights(OutputCase):
    def replace(self, path="d.npy", **options):
        """Writes the output and returns its (permissions, owner, group)."""
        done = self.call("a.npy", "b.npy", "-o", path, **options)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(np.load(path).shape, (600, 700))
        self.assertEqual(list_temporary_files(), [])
        found = os.stat(path)
        return found.st_mode & 0o7777, found.st_uid, found.st_gid

    def test_permissions(self):
        for mask, mode in ((0o027, 0o640), (0, 0o666), (0o077, 0o600)):
            os.remove("d.npy")
            self.assertEqual(self.replace(preexec_fn=lambda mask=mask: os.umask(mask))[0], mode)
        for mode in (0o600, 0o666, 0o640, 0o755, 0o200):
            os.chmod("d.npy", mode)
            self.assertEqual(self.replace(preexec_fn=lambda: os.umask(0o027))[0], mode)
        os.chmod("d.npy", 0o6755)
        self.assertEqual(self.replace()[0], 0o755)

    def test_owner(self):
        if os.geteuid() != 0:
            self.skipTest("root alone gives files away")
        os.chown("d.npy", 1234, 1235)
        os.chmod("d.npy", 0o660)
        self.assertEqual(self.replace(), (0o660, 1234, 1235))

    def test_owner_of_another(self):
        """Who may write the file of another becomes its owner; another group gets no rights."""
        if os.geteuid() != 0:
            self.skipTest("root alone makes such files")
        for group, mode in ((0, 0o666), (1235, 0o606)):
            os.chown("d.npy", 1234, group)
            os.chmod("d.npy", 0o666)
            done = self.call_unprivileged("a.npy", "b.npy", "-o", "d.npy")
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            found = os.stat("d.npy")
            self.assertEqual((found.st_mode & 0o777, found.st_uid, found.st_gid),
                             (mode, 65534, 0))

    def test_access_list(self):
        try:
            os.setxattr("d.npy", ACCESS_LIST, make_list(1234))
        except OSError as error:
            self.assertEqual(error.errno, errno.ENOTSUP)
            self.skipTest("this file system has no access lists")
        mode = os.stat("d.npy").st_mode & 0o777
        self.assertEqual(self.replace()[0], mode)
        self.assertEqual(os.getxattr("d.npy", ACCESS_LIST), make_list(1234))
        os.removexattr("d.npy", ACCESS_LIST)
        os.chmod("d.npy", 0o640)
        os.setxattr(".", DEFAULT_LIST, make_list(1234))
        self.assertEqual(self.replace()[0], 0o640)
        self.assertNotIn(ACCESS_LIST, os.listxattr("d.npy"))

    def test_folder_write_protected(self):
        """A file in a folder that takes no other file cannot be replaced."""
        os.mkdir("locked")
        os.rename("d.npy", "locked/d.npy")
        os.chmod("locked/d.npy", 0o666)
        os.chmod("locked", 0o555)
        done = self.call_unprivileged("a.npy", "b.npy", "-o", "locked/d.npy")
        os.chmod("locked", 0o755)
        os.rename("locked/d.npy", "d.npy")
        self.assertEqual((done.returncode, done.stderr),
                         (2, "tilegemm multiply: locked/d.npy: cannot make a file beside it, which "
                             "would replace it: Permission denied; what was there is unchanged\n"))
        self.assert_old()


class Names(OutputCase):
    def write(self, path):
        done = self.call("a.npy", "b.npy", "-o", path)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(list_temporary_files(), [])
        return np.load(path).shape == (600, 700)

    def test_links(self):
        """The file behind the links is written, also one that does not exist yet."""
        os.mkdir("below")
        os.symlink("below/second.npy", "first.npy")
        os.symlink("real.npy", "below/second.npy")
        os.symlink(os.path.abspath("first.npy"), "absolute.npy")
        for path in ("first.npy", "first.npy", "absolute.npy"):
            self.assertTrue(self.write(path))
            self.assertTrue(os.path.islink(path) and os.path.islink("below/second.npy"))
            self.assertFalse(os.path.islink("below/real.npy"))
            self.assertEqual(sorted(os.listdir("below")), ["real.npy", "second.npy"])
        os.remove("below/real.npy")
        self.assertTrue(self.write("absolute.npy"))
        os.symlink("none/real.npy", "lost.npy")
        os.symlink("circle.npy", "circle.npy")
        for path, code, reason in (("lost.npy", 3, "No such file or directory"),
                                   ("circle.npy", 2, "Too many levels of symbolic links")):
            self.refuse(code, f"{path}: cannot write it: {reason}; what was there is unchanged",
                        "a.npy", "b.npy", "-o", path)

    def test_hard_link(self):
        os.link("d.npy", "other.npy")
        self.assertTrue(self.write("d.npy"))
        with open("other.npy", "rb") as file:
            self.assertEqual(file.read(), self.OLD)

    def test_long_name(self):
        self.assertTrue(self.write("d" * 251 + ".npy"))

    def test_other_kinds(self):
        os.mkfifo("pipe.npy")
        os.mkdir("folder.npy")
        os.symlink("/dev/full", "full.npy")
        for path in ("pipe.npy", "folder.npy", "full.npy"):
            self.refuse(2, f"{path}: not a regular file; the output replaces a regular file or "
                           "makes a new one", "a.npy", "b.npy", "-o", path)

    def test_file_without_a_name(self):
        """The link of /proc to a deleted file tells a path that must not be made."""
        with open("gone", "w+b") as file:
            os.remove("gone")
            os.symlink(f"/proc/self/fd/{file.fileno()}", "link.npy")
            self.refuse(2, "link.npy: not a regular file; the output replaces a regular file or "
                           "makes a new one", "a.npy", "b.npy", "-o", "link.npy",
                        pass_fds=[file.fileno()])


class Signals(OutputCase):
    @staticmethod
    def leave_no_core():
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    def start(self, number=None, action=None, k=1):
        """Starts a job that finds `action` set for the signal, and returns it while it computes or
        writes D = A B; A is ROWS x k."""
        def prepare():
            self.leave_no_core()
            if number is not None:
                signal.signal(number, action)

        np.save("a.npy", self.make(ROWS, k, dtype="<f8"))
        np.save("b.npy", self.make(k, ROWS, dtype="<f8"))
        before = set(list_temporary_files())
        job = subprocess.Popen([PROGRAMS["right"], "multiply", "a.npy", "b.npy", "-o", "d.mtx"],
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                               preexec_fn=prepare, env={**os.environ, **SANITIZERS})
        end = time.monotonic() + 60
        while not set(list_temporary_files()) - before:
            self.assertIsNone(job.poll(), "ended before its temporary file was seen")
            self.assertLess(time.monotonic(), end)
            time.sleep(0.002)
        return job

    def wait_for_lock(self, name):
        """Waits until a job has locked its temporary file. Others take it for a leftover before."""
        end = time.monotonic() + 60
        while os.path.exists("/proc/locks"):
            with open("/proc/locks", encoding="ascii") as file:
                if f":{os.stat(name).st_ino} " in file.read():
                    return
            self.assertLess(time.monotonic(), end)
            time.sleep(0.002)

    def interrupt(self, number, action=signal.SIG_DFL):
        """Returns the exit status and stderr of a job that gets the signal while it writes."""
        job = self.start(None if number == signal.SIGKILL else number, action)
        job.send_signal(number)
        errors = job.communicate(timeout=60)[1]
        return job.returncode, errors

    def test_every_signal(self):
        """Those between the first and the last of the real-time signals are as these."""
        between = set(range(signal.SIGRTMIN + 1, signal.SIGRTMAX))
        unstoppable = {signal.SIGKILL, signal.SIGSTOP, signal.SIGXFSZ}
        for number in sorted(signal.valid_signals() - HARMLESS - between - unstoppable):
            with self.subTest(number):
                status, errors = self.interrupt(number)
                self.assertEqual(status, -number)
                self.assertEqual("the memory of a mapped file is gone" in errors,
                                 number == signal.SIGBUS, errors)
                self.assert_old()

    def test_shortened_input(self):
        """The loss of an input's memory is told, whichever thread meets it."""
        for _ in range(4):
            job = self.start(k=2000)
            os.truncate("a.npy", 128)
            errors = job.communicate(timeout=60)[1]
            self.assertEqual(job.returncode, -signal.SIGBUS)
            self.assertRegex(errors, "^tilegemm: the memory of a mapped file is gone .*\n$")
            self.assert_old()

    def test_any_moment(self):
        """Whenever a signal comes, the output is the old one or whole, and alone."""
        words = [PROGRAMS["right"], "multiply", "a.npy", "b.npy", "-o", "d.mtx"]
        numbers = (signal.SIGINT, signal.SIGQUIT, signal.SIGALRM, signal.SIGUSR1, signal.SIGSEGV)
        start = time.monotonic()
        subprocess.run(words, stdout=subprocess.DEVNULL, check=True)
        whole_s, whole_bytes = time.monotonic() - start, os.path.getsize("d.mtx")
        for number in numbers * 10:
            with open("d.mtx", "wb") as file:
                file.write(self.OLD)
            job = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                   preexec_fn=self.leave_no_core,
                                   env={**os.environ, **SANITIZERS})
            time.sleep(self.random.uniform(0, 1.1 * whole_s))
            job.send_signal(number)
            status = job.wait(timeout=60)
            self.assertIn(status, (0, -number))
            self.assertEqual(list_temporary_files(), [])
            self.assertIn(os.path.getsize("d.mtx"),
                          (whole_bytes, len(self.OLD)) if status else (whole_bytes,))

    def test_ignored_signals(self):
        """Under nohup the work goes on."""
        for number in (signal.SIGHUP, signal.SIGINT, signal.SIGPIPE):
            self.assertEqual(self.interrupt(number, signal.SIG_IGN), (0, ""))
            self.assertGreater(os.path.getsize("d.mtx"), ROWS * ROWS)

    def test_killed_job(self):
        """The next job removes what a killed one has left, but neither the file of one that still
        writes nor another file."""
        others = ["d.mtx.tmp-0123456789abcde", "d.mtx.tmp-0123456789ABCDEF",
                  "d.npy.tmp-0123456789abcdef", "d.mtx.tmp-0000000000000000"]
        for name in others[:3]:
            with open(name, "wb"):
                pass
        os.symlink("a.npy", others[3])
        self.assertEqual(self.interrupt(signal.SIGKILL), (-signal.SIGKILL, ""))
        killed = set(list_temporary_files()) - set(others)
        self.assertEqual(len(killed), 1)
        job = self.start()
        self.wait_for_lock((set(list_temporary_files()) - set(others) - killed).pop())
        job.send_signal(signal.SIGSTOP)
        stopped = set(list_temporary_files()) - set(others)
        self.assertEqual(len(stopped), 1)
        self.assertNotEqual(stopped, killed)
        self.assertEqual(self.call("a.npy", "b.npy", "-o", "d.mtx").returncode, 0)
        self.assertEqual(set(list_temporary_files()), stopped | set(others))
        job.send_signal(signal.SIGCONT)
        self.assertEqual((job.communicate(timeout=60)[1], job.returncode), ("", 0))
        self.assertEqual(sorted(list_temporary_files()), sorted(others))
        self.assertTrue(os.path.islink(others[3]))


class Streams(OutputCase):
    def run_closed(self, words, streams):
        """Runs the command without those standard streams."""
        program = shlex.quote(PROGRAMS["right"])
        done = subprocess.run(["sh", "-c", f"exec {program} {words} {streams}"],
                              capture_output=True, text=True, timeout=60,
                              env={**os.environ, "TILEGEMM_LOG": "1"})
        self.assertEqual(list_temporary_files(), [])
        return done

    def test_closed_streams(self):
        """Text meant for a stream never lands in a file that has got its descriptor."""
        for streams, code in (("<&-", 0), ("2>&-", 0), (">&-", 1), ("<&- 2>&-", 0),
                              ("<&- >&- 2>&-", 1)):
            for words in ("multiply a.npy b.npy -o d.npy",
                          "bench --shape 32x32x32 --peer none --min-time 0 --json run.json"):
                with self.subTest(streams + " " + words):
                    done = self.run_closed(words, streams)
                    self.assertEqual(done.returncode, code)
                    self.assertEqual("cannot write to standard output" in done.stderr,
                                     code == 1 and "2>" not in streams, done.stderr)
            self.assertEqual(np.load("d.npy").shape, (600, 700))
            self.assertEqual(os.path.getsize("d.npy"), 128 + 4 * 600 * 700)
            with open("run.json", "rb") as file:
                self.assertEqual((file.read(1), file.read()[-2:]), (b"{", b"}\n"))
        done = self.run_closed("multiply a.npy b.npy -o d.npy --quiet", ">&-")
        self.assertEqual(done.returncode, 0)


if __name__ == "__main__":
    run_tests()
