"""attention beside its formula in float64, by the bound of tilegemm_attention.h."""

import sys

import numpy
import pytest
import tilegemm

from test_interfaces import DLPackOnly, TableOnly

RANDOM = numpy.random.default_rng(11)
UNIT = {"float16": 2.0 ** -11, "float32": 2.0 ** -24, "float64": 2.0 ** -53}


def make(*shape, dtype="float32"):
    return RANDOM.uniform(-2, 2, shape).astype(dtype)


def widen(array, dim_count=4):
    wide = numpy.asarray(array, "float64")
    return wide.reshape((1,) * (dim_count - wide.ndim) + wide.shape)


def is_seen(m, n, causal, before, after):
    """Returns which of n keys a query sees, and the distances."""
    shift = n - m if causal in (True, "bottom_right") else 0
    distance = numpy.arange(m)[:, None] + shift - numpy.arange(n)
    seen = distance >= 0 if causal else numpy.ones((m, n), bool)
    if before is not None:
        seen = seen & (distance <= before)
    if after is not None:
        seen = seen & (-distance <= after)
    return seen, numpy.abs(distance)


def attend(q, k, v, causal=False, scale=None, soft_cap=None, keys_before=None, keys_after=None,
           bias=None, slopes=None, key_lengths=None):
    """Returns the exact result, its bound and the exact logarithms, in four dimensions."""
    unit = UNIT[str(q.dtype)]
    q, k, v = widen(q), widen(k), widen(v)
    heads, m, d = q.shape[1:]
    batch, n = max(q.shape[0], k.shape[0], v.shape[0]), k.shape[2]
    k, v = (numpy.repeat(x, heads // k.shape[1], 1) for x in (k, v))
    scale = 1 / d ** .5 if scale is None else scale
    lengths = [n] * batch if key_lengths is None else key_lengths
    scores = scale * (q @ k.swapaxes(-1, -2))
    sizes = abs(scale) * (abs(q) @ abs(k).swapaxes(-1, -2)) + (soft_cap or 0)
    if soft_cap:
        scores = soft_cap * numpy.tanh(scores / soft_cap)
    scores, sizes = (numpy.broadcast_to(x, (batch, heads, m, n)).copy() for x in (scores, sizes))
    if bias is not None:
        scores += widen(bias)
        sizes += numpy.where(numpy.isfinite(widen(bias)), abs(widen(bias)), 0)
    for entry, length in enumerate(lengths):
        seen, distance = is_seen(m, int(length), causal, keys_before, keys_after)
        if slopes is not None:
            fall = numpy.asarray(slopes, "float64")[:, None, None] * distance
            scores[entry, :, :, :length] -= fall
            sizes[entry, :, :, :length] += abs(fall)
        scores[entry, :, :, :length][:, ~seen] = -numpy.inf
        scores[entry, :, :, length:] = -numpy.inf
    sizes[numpy.isneginf(scores)] = 0
    largest = scores.max(-1, initial=-numpy.inf, keepdims=True)
    largest[numpy.isneginf(largest)] = 0
    weights = numpy.exp(scores - largest)
    sums = weights.sum(-1, keepdims=True)
    weights = weights / numpy.where(sums == 0, 1, sums)
    sum_unit = min(unit, UNIT["float32"])
    error = numpy.expm1((d + 16) * sum_unit * sizes.max(-1, initial=0, keepdims=True))
    roundings = (2 * min(n, 240) + 4 * n / 240 + 40) * sum_unit
    exact = weights @ v
    bound = (2 * error + roundings) * (weights @ abs(v)) + unit * abs(exact)
    if unit == UNIT["float16"]:
        bound += 2.0 ** -24  # its least number
    if unit == UNIT["float64"]:
        bound *= 2  # this reference has roundings of float64 too
    with numpy.errstate(divide="ignore"):
        return exact, bound, numpy.log(sums) + largest


def compare(q, k, v, **arguments):
    exact, bound, logarithms = attend(q, k, v, **arguments)
    result, sums = tilegemm.attention(q, k, v, log_sum_exp=True, **arguments)
    dim_count = max(q.ndim, k.ndim, v.ndim)
    assert type(result) is numpy.ndarray and result.dtype == q.dtype
    assert result.shape == exact.shape[4 - dim_count:]
    assert sums.dtype == ("float64" if q.dtype == "float64" else "float32")
    assert sums.shape == result.shape[:-1]
    assert (abs(widen(result) - exact) <= bound).all()
    finite = numpy.isfinite(logarithms[..., 0])
    assert numpy.array_equal(numpy.isneginf(widen(sums, 3)), ~finite)
    assert numpy.allclose(widen(sums, 3)[finite], logarithms[finite, 0], rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("dtype", list(UNIT))
@pytest.mark.parametrize("q, k, v", [
    ((7, 16), (9, 16), (9, 16)), ((3, 7, 16), (3, 9, 16), (3, 9, 5)),
    ((2, 6, 33, 24), (2, 3, 257, 24), (2, 3, 257, 24)), ((4, 8, 1, 32), (4, 2, 500, 32),
                                                         (4, 2, 500, 32)),
    ((2, 3, 5, 8), (1, 3, 6, 8), (2, 3, 6, 8)), ((3, 5, 8), (2, 3, 6, 8), (1, 3, 6, 8)),
    ((2, 2, 5, 8), (2, 2, 0, 8), (2, 2, 0, 8)), ((2, 2, 0, 8), (2, 2, 5, 8), (2, 2, 5, 8)),
])
def test_shapes(q, k, v, dtype):
    compare(make(*q, dtype=dtype), make(*k, dtype=dtype), make(*v, dtype=dtype))


@pytest.mark.parametrize("arguments", [
    {"causal": True}, {"causal": "top_left"}, {"causal": "bottom_right", "keys_before": 3},
    {"keys_before": 2, "keys_after": 4}, {"scale": 0.3}, {"scale": -1, "soft_cap": 2.5},
    {"key_lengths": [0, 20]}, {"key_lengths": numpy.array([20, 7]), "causal": True},
    {"slopes": make(4)}, {"slopes": make(4), "causal": True, "keys_after": 0},
    {"bias": make(11, 20)}, {"bias": make(4, 1, 20)}, {"bias": make(2, 1, 11, 1)},
    {"bias": numpy.where(make(11, 20) > 0, 0, -numpy.inf).astype("float32")},
])
def test_masks_and_scores(arguments):
    compare(make(2, 4, 11, 16), make(2, 2, 20, 16), make(2, 2, 20, 8), **arguments)


def test_views():
    """[batch][row][head][element], reversed, strided and broadcast arrays are read in place."""
    q = make(2, 9, 4, 16).transpose(0, 2, 1, 3)
    k = make(2, 2, 30, 32)[:, :, ::-2, ::2]
    v = numpy.broadcast_to(make(2, 1, 15, 8), (2, 2, 15, 8))
    compare(q, k, v, causal=True)
    wide = numpy.full((2, 9, 4, 11), numpy.nan, "float32")
    out = wide.transpose(0, 2, 1, 3)[..., 1:9]
    assert tilegemm.attention(q, k, v, out) is out
    assert numpy.array_equal(out, tilegemm.attention(q, k, v))
    assert numpy.isnan(wide[..., [0, 9, 10]]).all()


def test_ones_and_hidden_rows():
    q, k, v = make(3, 50, 16), make(3, 70, 16), numpy.ones((3, 70, 8), "float32")
    assert (tilegemm.attention(q, k, v) == 1).all()
    rows = tilegemm.attention(q, k[:, :20], v[:, :20], causal=True)
    assert (rows[:, :30] == 0).all() and (rows[:, 30:] == 1).all()


def test_bfloat16():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    q, k, v = (make(2, 40, 32).astype(ml_dtypes.bfloat16) for _ in range(3))
    result = tilegemm.attention(q, k, v, causal=True)
    exact, _, _ = attend(*(x.astype("float32") for x in (q, k, v)), causal=True)
    assert result.dtype == ml_dtypes.bfloat16
    assert (abs(result.astype("float64") - exact[0]) <= 2.0 ** -8 * abs(exact[0]) + 1e-4).all()


def test_batch_invariant():
    q, k, v = make(3, 4, 9, 16), make(3, 2, 40, 16), make(3, 2, 40, 16)
    whole = tilegemm.attention(q, k, v, causal=True, batch_invariant=True)
    for entry in range(3):
        alone = tilegemm.attention(q[entry], k[entry], v[entry], causal=True, batch_invariant=True)
        assert numpy.array_equal(alone, whole[entry])


def test_interfaces():
    q, k, v = make(2, 5, 8), make(2, 6, 8), make(2, 6, 8)
    expected = tilegemm.attention(q, k, v)
    for wrap in (DLPackOnly, TableOnly, memoryview):
        out = numpy.empty_like(expected)
        assert tilegemm.attention(wrap(q), k, wrap(v), out) is out
        assert numpy.array_equal(out, expected)
    made = tilegemm.attention(TableOnly(q), k, v)
    assert isinstance(made, TableOnly) and numpy.array_equal(made.values, expected)
    made, sums = tilegemm.attention(memoryview(q), k, v, log_sum_exp=True)
    assert numpy.array_equal(numpy.asarray(made), expected) and sums.shape == (2, 5)


Q, K, V = make(2, 4, 5, 8), make(2, 2, 6, 8), make(2, 2, 6, 8)


@pytest.mark.parametrize("arguments, error, text", [
    ({"q": Q[0, 0, 0]}, ValueError, "q has 1 dimensions; pass"),
    ({"k": K[None]}, ValueError, "k has 5 dimensions"),
    ({"k": K[..., :7]}, ValueError, "rows of q and k differ in their elements"),
    ({"v": V[:, :, :5]}, ValueError, "their heads or rows differ"),
    ({"q": make(3, 4, 5, 8)}, ValueError, "batches do not broadcast"),
    ({"q": Q[:, :3]}, ValueError, "kv_head_count = 2 does not divide head_count = 3"),
    ({"k": K.astype("float64")}, TypeError, "k has type float64; convert it to float32, the type"),
    ({"v": [[1, 2]]}, TypeError, "v is a <class 'list'>"),
    ({"out": make(4, 5, 8)}, ValueError, r"out has shape \(4, 5, 8\)"),
    ({"out": Q}, ValueError, "d at .* shares memory with q"),
    ({"causal": "left"}, ValueError, "causal = 'left'; pass False"),
    ({"scale": "x"}, TypeError, "scale = 'x' is no number"),
    ({"scale": numpy.inf}, ValueError, "scale = inf"),
    ({"soft_cap": -1}, ValueError, "soft_cap = -1"),
    ({"keys_before": -1}, ValueError, "keys_before = -1; pass 0 or more"),
    ({"keys_after": 1.5}, TypeError, "keys_after = 1.5 is no whole number"),
    ({"keys_after": 2 ** 70}, TypeError, "is no whole number of 64 bits"),
    ({"bias": make(3, 6)}, ValueError, r"bias has shape \(3, 6\)"),
    ({"bias": make(5, 6, dtype="float64")}, TypeError, "bias has type float64"),
    ({"slopes": make(2)}, ValueError, r"slopes has shape \(2,\)"),
    ({"slopes": make(8)[::2]}, ValueError, "slopes has a stride of 2 elements"),
    ({"key_lengths": [3]}, ValueError, "key_lengths has 1 values; pass one for each of 2"),
    ({"key_lengths": [3, 7]}, ValueError, r"key_lengths\[1\] = 7; pass 0 .. 6"),
    ({"key_lengths": [3, 2 ** 40]}, ValueError, r"key_lengths\[1\]"),
    ({"key_lengths": [3, -1]}, ValueError, "a value of key_lengths = -1"),
    ({"key_lengths": [3, 1.0]}, TypeError, "a value of key_lengths = 1.0"),
    ({"key_lengths": 3}, TypeError, "key_lengths = 3 is no sequence"),
    ({"window": 3}, TypeError, "window"),
])
def test_arguments_that_do_not_fit(arguments, error, text):
    with pytest.raises(error, match=text):
        tilegemm.attention(**{"q": Q, "k": K, "v": V, **arguments})


def test_fp8_and_read_only():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    low = [x.astype(ml_dtypes.float8_e5m2) for x in (Q, K, V)]
    with pytest.raises(tilegemm.UnsupportedError, match="pass FP32, FP64, BF16 or FP16"):
        tilegemm.attention(*low)
    frozen = numpy.empty_like(Q)
    frozen.flags.writeable = False
    with pytest.raises(tilegemm.ArgumentError, match="out is read-only"):
        tilegemm.attention(Q, K, V, frozen)
    with pytest.raises(TypeError):
        tilegemm.attention(Q, K)


def test_no_reference_is_lost():
    out, bias, slopes = numpy.empty_like(Q), make(5, 6), make(4)
    def count():
        return [sys.getrefcount(x) for x in (Q, K, V, out, bias, slopes, Q.dtype, "top_left")]
    before = count()
    for _ in range(100):
        tilegemm.attention(Q, K, V, out, bias=bias, slopes=slopes, causal="top_left")
        tilegemm.attention(Q, K, V, log_sum_exp=True, key_lengths=[1, 2])
        for wrong in ({"k": bias}, {"bias": slopes}, {"out": Q}, {"key_lengths": [1, 9]}):
            with pytest.raises(tilegemm.Error):
                tilegemm.attention(**{"q": Q, "k": K, "v": V, **wrong})
    assert all(abs(x - y) <= 2 for x, y in zip(before, count()))
