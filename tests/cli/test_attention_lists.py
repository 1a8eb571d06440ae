#!/usr/bin/env python3
"""Tests the lists of the command attention (offsets, lengths, pages) and its log-sum-exp, against
sums of plain Python numbers.

usage: test_attention_lists.py TILEGEMM WRONG_TILEGEMM
"""
import json
import math
import os
import signal

import numpy as np

from multiply_case import (PROGRAMS, UNIT, MultiplyCase, list_temporary_files, run_tests,
                           write_npy)

OUT = ("-o", "d.npy", "--log-sum-exp", "l.npy")
INF = math.inf


def attend_row(query, keys, values, scale, bias=None):
    """Returns a row of D and its log-sum-exp; keys and values are lists of rows."""
    scores = [scale * math.fsum(x * y for x, y in zip(query, key)) for key in keys]
    scores = [s + b for s, b in zip(scores, bias)] if bias else scores
    if not scores:
        return None, -INF
    largest = max(scores)
    weights = [math.exp(s - largest) for s in scores]
    total = math.fsum(weights)
    row = [math.fsum(w * v[e] for w, v in zip(weights, values)) / total
           for e in range(len(values[0]))]
    return row, largest + math.log(total)


class AttentionLists(MultiplyCase):
    COMMAND = "attention"
    QKV = ("q.npy", "k.npy", "v.npy")

    def save(self, **arrays):
        for name, array in arrays.items():
            np.save(name + ".npy", array)

    def attend(self, *words):
        return self.multiply(*self.QKV, *OUT, *words)  # with --check

    def assert_rows(self, d, logs, rows):
        """`rows` yields the place of a row [head, row] or [batch, head, row], and its inputs."""
        count = 0
        for place, *inputs in rows:
            row, log = attend_row(*inputs)
            row = row or [0.0] * d.shape[-1]
            self.assertLess(max(abs(x - y) for x, y in zip(d[place].tolist(), row)),
                            30 * UNIT["f4"])
            self.assertTrue(logs[place] == log or abs(logs[place] - log) < 100 * UNIT["f4"])
            count += 1
        self.assertEqual((count, logs.shape), (logs.size, d.shape[:-1]))

    def test_log_sum_exp(self):
        q, k, v = self.make(2, 2, 5, 8), self.make(2, 1, 7, 8), self.make(2, 1, 7, 3)
        self.save(q=q, k=k, v=v)
        self.attend()
        rows = [((b, h, i), q[b, h, i].tolist(), k[b, 0].tolist(), v[b, 0].tolist(), 8**-0.5)
                for b in range(2) for h in range(2) for i in range(5)]
        logs = np.load("l.npy")
        self.assertEqual(logs.dtype.str, "<f4")
        self.assert_rows(np.load("d.npy"), logs, rows)
        self.save(q=q[0, 0, 0], k=k[0, 0], v=v[0, 0])  # a vector gives one number
        self.attend("--type", "fp64")
        self.assertEqual((np.load("l.npy").shape, np.load("l.npy").dtype.str), ((1,), "<f8"))
        self.assertLess(abs(np.load("l.npy")[0] - attend_row(*rows[0][1:])[1]), 1e-12)
        self.save(q=q[0], k=k[0], v=v[0])
        self.multiply(*self.QKV, "-o", "d.npy", "--log-sum-exp", "l.mtx")
        with open("l.mtx") as file:
            lines = file.read().split("\n")
        self.assertEqual(lines[1], "2 5")
        self.assertLess(abs(float(lines[2]) - logs[0, 0, 0]), 1e-6)

    def test_key_lengths(self):
        q, k, v = self.make(3, 2, 4, 8), self.make(3, 2, 9, 8), self.make(3, 2, 9, 5)
        lengths = (0, 9, 4)
        for dtype in ("<i4", "<i8", "<u4"):
            self.save(q=q, k=k, v=v, n=np.array(lengths, dtype))
            self.attend("--key-lengths", "n.npy")
            self.assert_rows(np.load("d.npy"), np.load("l.npy"), (
                ((b, h, i), q[b, h, i].tolist(), k[b, h, :lengths[b]].tolist(),
                 v[b, h, :lengths[b]].tolist(), 8**-0.5)
                for b in range(3) for h in range(2) for i in range(4)))
        self.attend("--key-lengths", "n.npy", "--causal")  # the last query sees all that count
        d = np.load("d.npy")
        row, _ = attend_row(*(x.tolist() for x in (q[2, 1, 3], k[2, 1, :4], v[2, 1, :4])), 8**-0.5)
        self.assertLess(max(abs(x - y) for x, y in zip(d[2, 1, 3].tolist(), row)), 30 * UNIT["f4"])

    def test_offsets(self):
        """Entries of 3, 0, 5 queries and 6, 2, 1 keys; the bias has the rows of Q."""
        q, k, v, bias = (self.make(*s) for s in ((2, 8, 8), (1, 9, 8), (1, 9, 5), (2, 8, 6)))
        at, of = (0, 3, 3, 8), (0, 6, 8, 9)
        self.save(q=q, k=k, v=v, bias=bias, qo=np.array(at, "<i8"), ko=np.array(of, "<i4"))
        words = ("--query-offsets", "qo.npy", "--key-offsets", "ko.npy")
        for extra in ((), ("--bias", "bias.npy")):
            done = self.attend(*words, *extra)
            self.assertIn("check: right, 16 of 16 rows", done.stdout)
            rows = []
            for b in range(3):
                keys = slice(of[b], of[b + 1])
                rows += [((h, i), q[h, i].tolist(), k[0, keys].tolist(), v[0, keys].tolist(),
                          8**-0.5, bias[h, i, :of[b + 1] - of[b]].tolist() if extra else None)
                         for h in range(2) for i in range(at[b], at[b + 1])]
            self.assert_rows(np.load("d.npy"), np.load("l.npy"), rows)
        self.save(q=q[0], k=self.make(3, 1, 4, 8), v=self.make(3, 1, 4, 5))
        done = self.multiply(*self.QKV, "-o", "d.mtx", "--query-offsets", "qo.npy")
        with open("d.mtx") as file:
            self.assertEqual(file.read().split("\n")[1], "8 5")

    def test_pages(self):
        """Pages in any order, shared by entries; what lies behind a length is not looked at."""
        k, v = self.make(5, 2, 4, 8), self.make(5, 2, 4, 6)
        table, lengths = ((3, 0, -1), (4, 3, 2), (7, -9, 99)), (5, 12, 0)
        q = self.make(3, 4, 2, 8)
        k[1], v[1] = np.nan, np.nan  # no entry has this page
        self.save(q=q, k=k, v=v, n=np.array(lengths), pages=np.array(table))
        self.attend("--pages", "pages.npy", "--key-lengths", "n.npy")
        rows = []
        for b in range(3):
            places = [(table[b][j // 4], j % 4) for j in range(lengths[b])]
            rows += [((b, h, i), q[b, h, i].tolist(), [k[p, h // 2, r].tolist() for p, r in places],
                      [v[p, h // 2, r].tolist() for p, r in places], 8**-0.5)
                     for h in range(4) for i in range(2)]
        self.assert_rows(np.load("d.npy"), np.load("l.npy"), rows)
        self.save(q=q[1:2], pages=np.array((4, 3, 2)))  # a vector: the pages of one entry, all full
        self.attend("--pages", "pages.npy")
        self.assert_rows(np.load("d.npy")[0], np.load("l.npy")[0],
                         (((h, i), *inputs) for (b, h, i), *inputs in rows if b == 1))

    def test_empty(self):
        """No query, no entry, no page."""
        for m, n, pages, lengths, offsets in ((0, 3, [[0]], [3], [0, 0]), (4, 3, [[]], [0], [0, 4]),
                                              (0, 1, np.zeros((0, 2)), [], [0])):
            self.save(q=self.make(2, m, 8), k=self.make(1, 2, n, 8), v=self.make(1, 2, n, 8),
                      pages=np.array(pages, "<i4"), n=np.array(lengths, "<i8"),
                      qo=np.array(offsets))
            self.attend("--query-offsets", "qo.npy", "--pages", "pages.npy", "--key-lengths",
                        "n.npy")
            self.assertEqual((np.load("d.npy").tolist(), np.load("l.npy").tolist()),
                             ([[[0.0] * 8] * m] * 2, [[-INF] * m] * 2))

    def test_json(self):
        self.save(q=self.make(2, 1, 3, 8), k=self.make(4, 1, 2, 8), v=self.make(4, 1, 2, 8),
                  pages=np.array(((0, 1), (3, 2))), n=np.array((3, 4)))
        words = (*self.QKV, *OUT, "--pages", "pages.npy", "--key-lengths", "n.npy", "--check")
        told = json.loads(self.call(*words, "--json").stdout)
        self.assertEqual((told["attention"], told["log_sum_exp"], told["written"],
                          told["check"]["ok"], told["check"]["compared_rows"]),
                         ("2,1,1,3,4,8:lse:lengths:pages=2x4x2", "l.npy", True, True, 6))

    def test_wrong_result(self):
        """A wrong log-sum-exp is caught as a wrong D is, and neither file is touched."""
        self.save(q=self.make(3, 8), k=self.make(4, 8), v=self.make(4, 8), d=np.ones(3),
                  l=np.ones(2))
        for what in ({}, {"WRONG_EXECUTE_LOGS": "1"}):
            done = self.call(*self.QKV, *OUT, "--check", program=PROGRAMS["wrong"],
                             env={**os.environ, **what})
            self.assertEqual(done.returncode, 1)
            self.assertIn("row 0 of head 0 of batch entry 0 is beyond its bound", done.stderr)
            self.assertEqual((np.load("d.npy").tolist(), np.load("l.npy").tolist()),
                             ([1, 1, 1], [1, 1]))
            self.assertEqual(list_temporary_files(), [])

    def test_signal(self):
        """A signal removes both temporary files."""
        self.save(q=self.make(3, 8), k=self.make(4, 8), v=self.make(4, 8), d=np.ones(3))
        for number in (signal.SIGTERM, signal.SIGXCPU):
            done = self.call(*self.QKV, *OUT, program=PROGRAMS["wrong"],
                             env={**os.environ, "WRONG_EXECUTE_SIGNAL": str(number.value)})
            self.assertEqual(done.returncode, -number)
            self.assertEqual(sorted(os.listdir(".")), ["d.npy", "k.npy", "q.npy", "v.npy"])
            self.assertEqual(np.load("d.npy").tolist(), [1, 1, 1])

    def test_outputs(self):
        """The outputs replace inputs; a log-sum-exp that cannot be written leaves D as it was."""
        self.save(q=self.make(3, 8), k=self.make(4, 8), v=self.make(4, 8))
        self.multiply(*self.QKV, "-o", "q.npy", "--log-sum-exp", "k.npy")
        self.assertEqual((np.load("q.npy").shape, np.load("k.npy").shape), ((3, 8), (3,)))
        self.save(k=self.make(4, 8), d=np.ones(3))
        os.mkdir("folder")
        os.symlink("folder", "link")
        out = (*self.QKV, "-o", "d.npy", "--log-sum-exp")
        for code, message, path in (
                (2, "--log-sum-exp = ./d.npy is the file of D; pass another", "./d.npy"),
                (2, "l.txt: the name has no known extension; end it with .npy or .mtx", "l.txt"),
                (2, "l.mtx would hold an array of 1 dimensions, and a .mtx file holds a matrix; "
                    "end its name with .npy", "l.mtx"),
                (3, None, "none/l.npy")):
            self.refuse(code, message, *out, path)
            self.assertEqual(np.load("d.npy").tolist(), [1, 1, 1])
        self.refuse(2, "--log-sum-exp = link/x.npy is the file of D; pass another", *self.QKV,
                    "-o", "folder/x.npy", "--log-sum-exp", "link/x.npy")

    def test_refusals(self):
        self.save(q=self.make(2, 1, 4, 8), k=self.make(2, 1, 7, 8), v=self.make(2, 1, 7, 8),
                  packed=self.make(1, 1, 4, 8), three=self.make(3, 1, 7, 8))
        offsets, lengths = "--query-offsets", "--key-lengths"
        packed = ("packed.npy", "k.npy", "v.npy")
        for message, numbers, option, words in (
                ("holds 8 at place 1; pass 0 .. 7, the keys of the entry", [7, 8], lengths, ()),
                ("holds -1 at place 0; pass 0 .. 7, the keys of the entry", [-1, 8], lengths, ()),
                ("is 3; pass a vector of 2 lengths, one for each batch entry", [1, 2, 3], lengths,
                 ()),
                ("is 1 x 2; pass a vector of 2 lengths, one for each batch entry", [[1, 2]],
                 lengths, ()),
                ("holds 1099511627776 at place 1; its numbers have 32 bits", [1, 2**40], lengths,
                 ()),
                ("holds no integers of 32 or 64 bits; save them as such, for example "
                 "a.astype('int32')", [1.0, 2.0], lengths, ()),
                ("holds no integers of 32 or 64 bits; save them as such, for example "
                 "a.astype('int32')", [True, False], lengths, ()),
                ("has 3 dimensions; a list has 1, a table of pages 2", [[[1]]], lengths, ()),
                ("begins with 1; pass offsets that begin with 0", [1, 2, 4], offsets, packed),
                ("falls from 3 to 2 at place 2; pass offsets that do not fall", [0, 3, 2], offsets,
                 packed),
                ("ends with 5 and packed.npy has 4 rows; pass offsets that end with the rows",
                 [0, 3, 5], offsets, packed),
                ("has 1 batch entries and k.npy has 2; pass as many, or 1 for all", [0, 4],
                 offsets, packed),
                ("is 2; pass a vector of 3 offsets, one for each batch entry and the end", [0, 4],
                 "--key-offsets", ("q.npy", "packed.npy", "packed.npy")),
                ("ends with 3 and packed.npy has 4 rows; pass offsets that end with the rows",
                 [0, 3, 3], "--key-offsets", ("q.npy", "packed.npy", "packed.npy")),
                ("is 0; pass a vector of offsets, one for each batch entry and the end",
                 np.zeros(0, int), offsets, packed),
                ("is 0 x 5; pass a vector of offsets, one for each batch entry and the end",
                 np.zeros((0, 5), int), "--key-offsets", ("q.npy", "packed.npy", "packed.npy")),
                ("is 1 x 2; pass a table of 2 rows, one for each batch entry", [[1, 2]], "--pages",
                 ()),
                ("holds 2 in row 1 at place 0; pass a page of k.npy, which has 2, from 0 on",
                 [[1], [2]], "--pages", ()),
                ("holds -1 in row 0 at place 0; pass a page of k.npy, which has 2, from 0 on",
                 [[-1], [1]], "--pages", ())):
            np.save("list.npy", np.array(numbers))
            self.refuse(2, "list.npy " + message, *(words or self.QKV), *OUT, option, "list.npy")
        np.save("list.npy", np.array([0, 4, 4]))
        for option, words, path, shape in (
                ("--query-offsets", self.QKV, "q.npy", "2 x 1 x 4 x 8"),
                ("--key-offsets", self.QKV, "k.npy", "2 x 1 x 7 x 8")):
            self.refuse(2, f"{path} is {shape}; with {option} pass one entry [head][row][element], "
                        "whose rows are those of all entries", *words, *OUT, option, "list.npy")
        np.save("list.npy", np.array([[1], [0]]))
        self.refuse(2, "k.npy is 2 x 1 x 7 x 8 and three.npy is 3 x 1 x 7 x 8; K and V have the "
                    "same pages, heads and rows", "q.npy", "k.npy", "three.npy", *OUT, "--pages",
                    "list.npy")
        self.save(no_rows=self.make(2, 1, 0, 8))
        self.refuse(2, "no_rows.npy has pages of 0 rows; pass pages of 1 row or more", "q.npy",
                    "no_rows.npy", "no_rows.npy", *OUT, "--pages", "list.npy")
        for name, row_count in (("q", 1), ("k", 2 ** 62), ("v", 2 ** 62)):
            write_npy(f"{name}_none.npy", "<f4", f"(1, 1, {row_count}, 0)", b"")
        np.save("list.npy", np.array([[0, 0, 0, 0]]))
        self.refuse(2, "n = 9223372036854775807 is above the limit; pass 2147483647 or less",
                    "q_none.npy", "k_none.npy", "v_none.npy", *OUT, "--pages", "list.npy")
        np.save("list.npy", np.array([[1], [0]]))
        done = self.refuse(2, None, *self.QKV, *OUT, "--pages", "list.npy", "--key-offsets",
                           "list.npy")
        self.assertIn("--pages and --key-offsets exclude each other; pass --key-lengths with "
                      "--pages", done.stderr)
        self.refuse(3, None, *self.QKV, *OUT, "--pages", "none.npy")


if __name__ == "__main__":
    run_tests()
