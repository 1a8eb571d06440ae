#!/usr/bin/python3
"""Derives the polynomial coefficients of src/core/epilogue.h.

    tools/fit_activation.py            prints them as the #define lines of the header
    tools/fit_activation.py HEADER     exits with 1 unless the header holds these numbers

exp is a polynomial, the Mills ratio a quotient of two: the minimax fits in relative error, found by
the exchange algorithm of Remez in FP64. The coefficients are then rounded to FP32; the errors
printed count that rounding. The last bits depend on the linear algebra beneath NumPy, so that a
header is compared to within LAST_BITS.
"""
import math
import re
import sys

import numpy as np

GRID_POINTS = 8000
# Half the width of the interval that exp is reduced to, a little wider for the rounding of the
# reduction.
EXP_HALF_WIDTH = 0.5 * math.log(2.0) * 1.001
# The Mills ratio is fitted for 0 <= t <= MILLS_END.
MILLS_END = 14.5
# Relative difference between two derivations: a few units in the last place of FP32.
LAST_BITS = 2.0 ** -20


def find_extremes(error, count):
    """Indices of the largest error of each sign run, trimmed at the ends to `count` of them."""
    changes = np.flatnonzero(np.diff(np.sign(error)) != 0) + 1
    runs = np.split(np.arange(len(error)), changes)
    extremes = [run[np.argmax(np.abs(error[run]))] for run in runs]
    while len(extremes) > count:
        at_start = abs(error[extremes[0]]) < abs(error[extremes[-1]])
        extremes.pop(0 if at_start else -1)
    if len(extremes) < count:
        raise ArithmeticError(f"{len(extremes)} alternations of the error, {count} needed")
    return np.array(extremes)


def evaluate(coefficients, x):
    return sum(c * x ** power for power, c in enumerate(coefficients))


def fit_exp(degree):
    """c with exp(r) = 1 + r + r^2 (c0 + c1 r + ...), by relative error of exp."""
    low, high = -EXP_HALF_WIDTH, EXP_HALF_WIDTH
    grid = high * -np.cos(np.pi * np.arange(GRID_POINTS + 1) / GRID_POINTS)
    values = sum(grid ** i / float(math.factorial(i + 2)) for i in range(20))
    weights = grid ** 2 / np.exp(grid) + 1e-12  # 0 at r = 0 would make the system singular
    basis = np.stack([grid ** power for power in range(degree + 1)], axis=1)
    reference = np.round(np.linspace(0, GRID_POINTS, degree + 2)).astype(int)
    for _ in range(100):
        signs = (-1.0) ** np.arange(degree + 2) / weights[reference]
        system = np.concatenate([basis[reference], signs[:, None]], axis=1)
        fit = np.linalg.solve(system, values[reference])[:-1]
        extremes = find_extremes((values - basis @ fit) * weights, degree + 2)
        if np.array_equal(extremes, reference):
            break
        reference = extremes
    rounded = [float(np.float32(c)) for c in fit]
    sample = np.linspace(low, high, 20001)
    ratio = (1.0 + sample + sample ** 2 * evaluate(rounded, sample)) / np.exp(sample)
    return rounded, np.max(np.abs(ratio - 1.0))


def mills_ratio(t):
    """Q(t) exp(t^2 / 2), with Q(t) = erfc(t / sqrt 2) / 2 the upper tail of the normal law."""
    return np.array([0.5 * math.erfc(x / math.sqrt(2.0)) * math.exp(0.5 * x * x) for x in t])


def fit_mills(degree, end):
    """p, s with mills_ratio(t) = (1/2 + p1 t + ...) / (1 + s1 t + ...), s one degree higher."""
    # Dense near 0; in the variable t / end the system is well conditioned.
    grid = (0.5 - 0.5 * np.cos(np.pi * np.arange(1, GRID_POINTS + 1) / GRID_POINTS)) ** 2
    values = mills_ratio(grid * end)
    count = 2 * degree + 1
    reference = np.round(np.linspace(0.1 * GRID_POINTS, GRID_POINTS - 1, count + 1)).astype(int)
    divisor = np.ones_like(grid)
    for _ in range(100):
        signs = (-1.0) ** np.arange(count + 1)
        x, f = grid[reference], values[reference]
        for _ in range(4):  # the error is relative to the divisor that is being fitted
            columns = [x ** power / f for power in range(1, degree + 1)]
            columns += [-(x ** power) for power in range(1, degree + 2)]
            columns.append(-signs * divisor[reference])
            fit = np.linalg.solve(np.stack(columns, axis=1), 1.0 - 0.5 / f)
            p, s = [0.5, *fit[:degree]], [1.0, *fit[degree:count]]
            divisor = evaluate(s, grid)
        extremes = find_extremes(evaluate(p, grid) / divisor / values - 1.0, count + 1)
        if np.array_equal(extremes, reference):
            break
        reference = extremes
    p = [float(np.float32(c / end ** power)) for power, c in enumerate(p)]
    s = [float(np.float32(c / end ** power)) for power, c in enumerate(s)]
    sample = grid * end
    return p, s, np.max(np.abs(evaluate(p, sample) / evaluate(s, sample) / values - 1.0))


def format_fp32(value):
    """C literal of an FP32 value, in hexadecimal without trailing zeros."""
    fraction, exponent = value.hex().split("p")
    fraction = fraction.rstrip("0") if "." in fraction else fraction
    return f"{fraction.rstrip('.')}p{int(exponent)}f"


def derive_numbers():
    exp_c, exp_error = fit_exp(4)
    mills_p, mills_s, mills_error = fit_mills(4, MILLS_END)
    print(f"relative errors: exp 2^{math.log2(exp_error):.2f}, "
          f"Mills ratio 2^{math.log2(mills_error):.2f}", file=sys.stderr)
    return {f"TGI_{name}{power}": value
            for name, fit in (("EXP_C", exp_c), ("MILLS_P", mills_p), ("MILLS_S", mills_s))
            for power, value in enumerate(fit)}


def main():
    derived = derive_numbers()
    if len(sys.argv) < 2:
        for name, value in derived.items():
            print(f"#define {name} {format_fp32(value)}")
        return 0
    with open(sys.argv[1], encoding="utf-8") as header:
        present = dict(re.findall(r"^#define (TGI_\w+) +(\S+)f$", header.read(), re.MULTILINE))
    wrong = [name for name, value in derived.items()
             if not abs(float.fromhex(present.get(name, "nan")) / value - 1.0) <= LAST_BITS]
    for name in wrong:
        print(f"{sys.argv[1]}: {name} is {present.get(name, 'missing')}, derived is "
              f"{format_fp32(derived[name])}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
