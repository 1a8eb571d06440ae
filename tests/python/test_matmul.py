"""matmul beside numpy.matmul. Operands hold small integers, so that every order of summation gives
the same bits and results are compared exactly."""

import numpy
import pytest
import tilegemm

RANDOM = numpy.random.default_rng(7)
TYPES = ["float32", "float64", "float16"]


def make(shape, dtype="float32"):
    return RANDOM.integers(-4, 5, shape).astype(dtype)


def compare(a, b, **arguments):
    """Asserts that ours and NumPy's results are equal in bits, shape and type."""
    result, expected = tilegemm.matmul(a, b, **arguments), numpy.matmul(a, b)
    assert type(result) is type(expected)
    assert result.dtype == expected.dtype and result.shape == expected.shape
    assert numpy.array_equal(result, expected)


SHAPES = [
    ((3, 4), (4, 5)), ((1, 1), (1, 1)), ((4,), (4,)), ((4,), (4, 5)), ((3, 4), (4,)),
    ((2, 3, 4), (4, 5)), ((2, 3, 4), (2, 4, 5)), ((3, 4), (2, 4, 5)), ((1, 3, 4), (6, 4, 5)),
    ((2, 1, 3, 4), (5, 4, 6)), ((2, 7, 3, 4), (1, 7, 4, 6)), ((2, 1, 3, 3, 4), (1, 4, 1, 4, 2)),
    ((5, 1, 4), (4, 5)), ((2, 3, 4), (4,)), ((4,), (2, 4, 5)), ((2, 2, 2, 2, 3), (3, 1)),
    ((0, 4), (4, 5)), ((3, 0), (0, 5)), ((3, 4), (4, 0)), ((0, 3, 4), (4, 5)), ((2, 0, 4), (4, 5)),
    ((0,), (0,)), ((65, 130), (130, 67)), ((1, 300), (300, 200)), ((257, 129), (129, 1)),
]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("a_shape, b_shape", SHAPES)
def test_shapes(a_shape, b_shape, dtype):
    compare(make(a_shape, dtype), make(b_shape, dtype))


@pytest.mark.parametrize("dtype", TYPES)
def test_random_shapes_and_views(dtype):
    """Draws batches that broadcast, and views: transposed, strided, reversed, broadcast."""
    def view(shape):
        kind = RANDOM.integers(5)
        if kind == 0 and len(shape) > 1:
            return make((*shape[:-2], shape[-1], shape[-2]), dtype).swapaxes(-1, -2)
        if kind == 1:
            wide = make(tuple(2 * size for size in shape), dtype)
            return wide[(slice(None, None, 2),) * len(shape)]
        if kind == 2:
            return make(shape, dtype)[(slice(None, None, -1),) * len(shape)]
        if kind == 3:
            return numpy.broadcast_to(make((*shape[:-1], 1), dtype), shape)
        return make(shape, dtype)

    for _ in range(150):
        m, n, k = RANDOM.integers(1, 9, 3)
        batch = list(RANDOM.integers(1, 4, RANDOM.integers(0, 4)))
        def part(batch):
            start = RANDOM.integers(0, len(batch) + 1)
            return [1 if RANDOM.integers(3) == 0 else size for size in batch[start:]]
        compare(view((*part(batch), m, k)), view((*part(batch), k, n)))


def test_axes_in_any_order():
    for _ in range(100):
        order = RANDOM.permutation(4)
        shape = RANDOM.integers(1, 5, 4)
        a = make([shape[i] for i in order]).transpose(numpy.argsort(order))
        b = make((shape[1], shape[3], 3)) if RANDOM.integers(2) else make((shape[3], 3))
        compare(a, b)


def test_stride_of_one_element():
    """The stride of a dimension of one element leads nowhere, so that it may be any."""
    records = numpy.ones(3, [("number", "float32"), ("flag", "int16")])
    row = make((1, 5))
    assert numpy.array_equal(tilegemm.matmul(records["number"][:1], row), row[0])
    with pytest.raises(tilegemm.ArgumentError, match="stride of 6 bytes|between two elements"):
        tilegemm.matmul(records["number"], make((3, 5)))


def test_bfloat16_and_fp8():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    exact = make((5, 6)) @ make((6, 4))
    for name in ("bfloat16", "float8_e4m3fn", "float8_e5m2"):
        dtype = getattr(ml_dtypes, name)
        a, b = make((5, 6)), make((6, 4))
        result = tilegemm.matmul(a.astype(dtype), b.astype(dtype))
        assert result.dtype == ml_dtypes.bfloat16
        assert numpy.array_equal(result.astype("float32"), a @ b)
        out = numpy.full((5, 4), numpy.nan, "float32")
        assert tilegemm.matmul(a.astype(dtype), b.astype(dtype), out) is out
        assert numpy.array_equal(out, a @ b)
    assert exact.shape == (5, 4)


def test_mixed_fp8_and_scales():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    a, b = make((5, 6)), make((6, 4))
    low_a, low_b = a.astype(ml_dtypes.float8_e4m3fn), b.astype(ml_dtypes.float8_e5m2)
    out = numpy.empty((5, 4), "float32")
    rows, cols = numpy.float32([1, 2, 4, .5, 8]), numpy.float32([2, 1, .25, 4])
    assert numpy.array_equal(tilegemm.matmul(low_a, low_b, out, scale_a=rows, scale_b=cols),
                             (a @ b) * rows[:, None] * cols)
    assert numpy.array_equal(
        tilegemm.matmul(low_a, low_b, out, scale_a=rows[:, None], scale_b=cols[None]),
        (a @ b) * rows[:, None] * cols)
    tilegemm.matmul(low_a, low_b, out, scale_a=2, scale_b=rows[3:4])
    assert numpy.array_equal(out, a @ b)
    with pytest.raises(tilegemm.OperandTypeError, match="scale_a .* float32; only FP8"):
        tilegemm.matmul(a, b, scale_a=2)
    with pytest.raises(tilegemm.ArgumentError, match="scale_b has shape"):
        tilegemm.matmul(low_a, low_b, scale_b=rows)


def test_out():
    a, b = make((3, 4)), make((4, 5))
    out = numpy.full((5, 3), numpy.nan, "float32").T
    assert tilegemm.matmul(a, b, out) is out
    assert numpy.array_equal(out, a @ b)
    wide = numpy.full((3, 11), numpy.nan, "float32")
    tilegemm.matmul(a, b, out=wide[:, ::-2][:, :5])
    assert numpy.array_equal(wide[:, ::-2][:, :5], a @ b)
    assert numpy.isnan(wide[:, 1::2]).all()
    batches = numpy.empty((2, 3, 3, 5), "float32")
    left, right = make((2, 1, 3, 4)), make((3, 4, 5))
    assert numpy.array_equal(tilegemm.matmul(left, right, out=batches), left @ right)
    empty = numpy.empty((2, 3, 3, 0), "float32")
    assert tilegemm.matmul(left, right[..., :0], out=empty) is empty
    point = numpy.full((), numpy.nan, "float32")
    assert tilegemm.matmul(a[0], b[:, 0], point) is point and point == a[0] @ b[:, 0]


def test_out_that_does_not_fit():
    a, b = make((3, 4)), make((4, 5))
    with pytest.raises(tilegemm.ArgumentError, match=r"out has shape \(5, 3\).*\(3, 5\)"):
        tilegemm.matmul(a, b, numpy.empty((5, 3), "float32"))
    frozen = numpy.empty((3, 5), "float32")
    frozen.flags.writeable = False
    with pytest.raises(tilegemm.ArgumentError, match="out is read-only"):
        tilegemm.matmul(a, b, frozen)
    with pytest.raises(tilegemm.ArgumentError, match="out is read-only"):
        tilegemm.matmul(a[0], b[:, 0], numpy.float32(0))  # NumPy lends a copy of its value
    with pytest.raises(tilegemm.ArgumentError, match="type"):
        tilegemm.matmul(a, b, numpy.empty((3, 5), "float64"))


def test_overlap_is_refused():
    square = make((4, 4))
    with pytest.raises(tilegemm.ArgumentError):
        tilegemm.matmul(square, make((4, 4)), square)
    block = make((2, 3, 4, 4))
    kept = block.copy()
    with pytest.raises(tilegemm.ArgumentError, match="out shares memory with a"):
        tilegemm.matmul(block, make((3, 4, 4)), out=block[::-1])
    assert numpy.array_equal(block, kept)
    left, right = make((2, 1, 4, 4)), make((3, 4, 4))
    with pytest.raises(tilegemm.ArgumentError, match="out shares memory with c"):
        tilegemm.matmul(left, right, block, c=block[:1], beta=1)
    tilegemm.matmul(left, right, block, c=block[:], beta=1)
    assert numpy.array_equal(block, left @ right + kept)
    one = numpy.empty((1, 1, 4, 4), "float32")
    shared = numpy.lib.stride_tricks.as_strided(one, (2, 3, 4, 4), (0, 0, 16, 4))
    with pytest.raises(tilegemm.ArgumentError):
        tilegemm.matmul(make((2, 3, 4, 4)), make((3, 4, 4)), out=shared)


def test_overlap_beyond_one_product_is_refused():
    """What only the batch as a whole shows is refused before anything is written."""
    left, right, block = make((2, 1, 4, 4)), make((3, 4, 4)), make((2, 3, 4, 4))
    kept = block.copy()
    shifted = numpy.lib.stride_tricks.as_strided(block, block.shape, (96, 64, 16, 4))
    with pytest.raises(tilegemm.ArgumentError, match="out may overlap itself: its dimension 0"):
        tilegemm.matmul(left, right, shifted)
    with pytest.raises(tilegemm.ArgumentError, match="out shares memory with bias"):
        tilegemm.matmul(left, right, block, bias=block[1, 2, 3])
    assert numpy.array_equal(block, kept)
    memory = numpy.zeros(100, "float32")  # an operand without elements shares nothing
    empty = numpy.lib.stride_tricks.as_strided(memory[4:], (2, 1, 4, 0), (4, 4, 4, 16))
    out = memory[:96].reshape(2, 3, 4, 4)
    out[...] = 1
    assert not tilegemm.matmul(empty, right[:, :0], out).any()


def test_epilogue():
    a, b, c = make((3, 4)), make((4, 5)), make((3, 5))
    bias, rows = make(5), make((3, 1))
    assert numpy.array_equal(tilegemm.matmul(a, b, bias=bias, alpha=2), 2 * (a @ b) + bias)
    assert numpy.array_equal(tilegemm.matmul(a, b, bias=rows), a @ b + rows)
    assert numpy.array_equal(tilegemm.matmul(a, b, c=c, beta=3), a @ b + 3 * c)
    assert numpy.array_equal(tilegemm.matmul(a, b, c=c[0], beta=-1), a @ b - c[0])
    assert numpy.array_equal(tilegemm.matmul(a, b, activation="relu"), numpy.maximum(a @ b, 0))
    assert numpy.array_equal(tilegemm.matmul(a, b[:, 0], bias=rows[:, 0]), a @ b[:, 0] + rows[:, 0])
    out = c.copy()
    assert numpy.array_equal(tilegemm.matmul(a, b, out, beta=1), a @ b + c)
    poison = numpy.full((3, 5), numpy.nan, "float32")
    assert numpy.array_equal(tilegemm.matmul(a, b, poison, beta=0), a @ b)
    left, right, many = make((2, 3, 4)), make((4, 5)), make((2, 3, 5))
    assert numpy.array_equal(tilegemm.matmul(left, right, c=many, beta=2, bias=rows),
                             left @ right + 2 * many + rows)
    left, right = make((2, 1, 3, 4)), make((2, 3, 4, 5))
    assert numpy.array_equal(tilegemm.matmul(left, right, c=many[0], beta=2),
                             left @ right + 2 * many[0])


def test_precisions_and_batch_invariance():
    a, b = RANDOM.random((40, 300), "float32"), RANDOM.random((300, 50), "float32")
    exact = a.astype("float64") @ b
    for precision in ("default", "ieee_fp32", "tf32", "bf16x9"):
        assert numpy.allclose(tilegemm.matmul(a, b, precision=precision), exact, rtol=2e-3)
    whole = tilegemm.matmul(a, b, batch_invariant=True)
    for row in (0, 17, 39):
        alone = tilegemm.matmul(a[row:row + 1], b, batch_invariant=True)
        assert numpy.array_equal(alone[0], whole[row])


@pytest.mark.parametrize("arguments, error, text", [
    ({"activation": "tanh"}, ValueError, "activation = 'tanh' is none of none, relu"),
    ({"precision": 3}, ValueError, "precision = 3 is none of default"),
    ({"alpha": "x"}, TypeError, "alpha = 'x' is no number"),
    ({"gamma": 1}, TypeError, "has no argument 'gamma'"),
    ({"beta": 1}, ValueError, "neither c nor out"),
    ({"c": numpy.ones((3, 4), "float32"), "beta": 1}, ValueError, r"c has shape \(3, 4\)"),
    ({"bias": numpy.ones(3, "float32")}, ValueError, r"bias has shape \(3,\); pass n values"),
    ({"bias": numpy.ones(10, "float32")[::2]}, ValueError, "without gaps"),
    ({"bias": numpy.ones(5)}, TypeError, "bias has type float64"),
    ({"stream": "x"}, TypeError, "stream is 'x'"),
    ({"precision": "ieee_fp64"}, ValueError, "precision"),
])
def test_arguments_that_do_not_fit(arguments, error, text):
    with pytest.raises(error, match=text):
        tilegemm.matmul(make((3, 4)), make((4, 5)), **arguments)


def test_operands_that_do_not_fit():
    a = make((3, 4))
    for b, text in ((make((5, 4)), "columns of a differ"), (make(()), "b is a scalar"),
                    (make((2, 5, 4)), "columns of a differ")):
        with pytest.raises(tilegemm.ArgumentError, match=text):
            tilegemm.matmul(a, b)
    with pytest.raises(tilegemm.ArgumentError, match="do not broadcast"):
        tilegemm.matmul(make((2, 3, 4)), make((3, 4, 5)))
    for b in (make((4, 5), "float64"), make((4, 5)).astype("complex64"), make((4, 5)).astype(int),
              make((4, 5)).astype(object), [[1, 2]], None, 3, make((4, 5)).astype(">f4"),
              numpy.ma.masked_array(make((4, 5)))):
        with pytest.raises(TypeError):
            tilegemm.matmul(a, b)
    with pytest.raises(TypeError, match="needs the argument 'b'"):
        tilegemm.matmul(a)
    with pytest.raises(TypeError, match="3 positional"):
        tilegemm.matmul(a, a.T, None, None)
    raw = numpy.zeros(4 * 20 + 1, "uint8")[1:].view("float32").reshape(4, 5)
    strided = numpy.lib.stride_tricks.as_strided(numpy.zeros(30, "float32"), (4, 5), (22, 4))
    for b in (raw, strided, memoryview(raw)):
        with pytest.raises(tilegemm.ArgumentError, match="between two elements"):
            tilegemm.matmul(a, b)


def test_errors_are_errors_of_the_package():
    for name in ("ArgumentError", "OperandTypeError", "UnsupportedError", "OutOfMemoryError",
                 "DeviceError"):
        assert issubclass(getattr(tilegemm, name), tilegemm.Error)
    assert issubclass(tilegemm.OutOfMemoryError, MemoryError)
    assert issubclass(tilegemm.DeviceError, RuntimeError)
