"""Each interface by which an array lends its memory, with objects that speak no other one."""

import array
import ctypes
import gc
import sys

import numpy
import pytest
import tilegemm


class DLPackOnly:
    """Speaks DLPack as a library of before or after version 1.0 does."""

    def __init__(self, values, is_old=False):
        self.values, self.is_old, self.streams = values, is_old, []

    def __dlpack_device__(self):
        return self.values.__dlpack_device__()

    def __dlpack__(self, **arguments):
        self.streams.append(arguments.get("stream"))
        if self.is_old:
            if arguments:
                raise TypeError(f"unexpected {arguments}")
            return self.values.__dlpack__()
        return self.values.__dlpack__(max_version=arguments["max_version"])

    def __array_namespace__(self):
        return numpy


class Device(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_int32), ("index", ctypes.c_int32)]


class Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device", Device), ("dim_count", ctypes.c_int32),
                ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64)]


ALLOCATE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(Tensor), ctypes.POINTER(ctypes.c_void_p),
                            ctypes.c_void_p, ctypes.c_void_p)
IMPORT = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p))
LEND = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(Tensor))
STREAM = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_int32,
                          ctypes.POINTER(ctypes.c_void_p))


class Table(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("older", ctypes.c_void_p),
                ("allocate", ALLOCATE), ("export", ctypes.c_void_p), ("import_object", IMPORT),
                ("lend", LEND), ("find_stream", STREAM)]


class TableOnly:
    """Lends by a table of C functions."""

    def __init__(self, values, kind=1):
        self.values = values
        strides = [stride // values.itemsize for stride in values.strides]
        self.shape = (ctypes.c_int64 * values.ndim)(*values.shape)
        self.strides = (ctypes.c_int64 * values.ndim)(*strides)
        self.tensor = Tensor(values.ctypes.data, Device(kind, 0), values.ndim, 2,
                             8 * values.itemsize, 1, self.shape, self.strides, 0)


def lend(lender, tensor):
    ctypes.memmove(tensor, ctypes.byref(lender.tensor), ctypes.sizeof(Tensor))
    return 0


MADE = []


def allocate(prototype, lease, _state, _set_error):
    shape = [prototype.contents.shape[i] for i in range(prototype.contents.dim_count)]
    MADE.append(TableOnly(numpy.full(shape, numpy.nan, f"f{prototype.contents.bits // 8}")))
    lease[0] = len(MADE)
    return 0


def import_object(lease, result):
    made = MADE[lease - 1]
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(made))
    result[0] = id(made)
    return 0


TABLE = Table(1, 3, None, ALLOCATE(allocate), None, IMPORT(import_object), LEND(lend),
              STREAM(lambda kind, index, stream: 0))
TABLE_NAME = ctypes.create_string_buffer(b"dlpack_exchange_api")  # a capsule keeps the address
new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype = ctypes.py_object
new_capsule.argtypes = [ctypes.c_void_p] * 3
TableOnly.__dlpack_c_exchange_api__ = new_capsule(ctypes.addressof(TABLE),
                                                  ctypes.addressof(TABLE_NAME), None)

A = numpy.arange(12, dtype="float32").reshape(3, 4)
B = numpy.arange(20, dtype="float32").reshape(4, 5)


@pytest.mark.parametrize("is_old", [False, True])
def test_dlpack(is_old):
    a, b = DLPackOnly(A, is_old), DLPackOnly(B.T.copy().T, is_old)
    out = numpy.empty((3, 5), "float32")
    assert tilegemm.matmul(a, b, out) is out
    assert numpy.array_equal(out, A @ B)
    assert a.streams[-1] is None


def test_dlpack_result_by_its_namespace():
    result = tilegemm.matmul(DLPackOnly(A), DLPackOnly(B))
    assert isinstance(result, numpy.ndarray) and numpy.array_equal(result, A @ B)
    pointer = result.ctypes.data
    assert pointer % 64 == 0  # the library's own memory, without a copy
    del result
    gc.collect()


def test_dlpack_result_that_no_memory_holds():
    """The operands have no elements, the result would have 2^64."""
    a, b = (numpy.zeros(shape, "float32") for shape in ((2 ** 16, 1, 2 ** 16, 0),
                                                        (1, 2 ** 16, 0, 2 ** 16)))
    with pytest.raises(tilegemm.OutOfMemoryError, match="more than 2.63 - 1 bytes"):
        tilegemm.matmul(DLPackOnly(a), DLPackOnly(b))


def test_dlpack_read_only_out():
    frozen = numpy.zeros((3, 5), "float32")
    frozen.flags.writeable = False
    with pytest.raises(tilegemm.ArgumentError, match="read-only"):
        tilegemm.matmul(A, B, DLPackOnly(frozen))


def test_table():
    result = tilegemm.matmul(TableOnly(A), TableOnly(numpy.asfortranarray(B)))
    assert isinstance(result, TableOnly)
    assert numpy.array_equal(result.values, A @ B)
    out = TableOnly(numpy.empty((3, 5), "float32"))
    assert tilegemm.matmul(TableOnly(A), TableOnly(B), out) is out
    assert numpy.array_equal(out.values, A @ B)
    with pytest.raises(tilegemm.OperandTypeError, match="kind 10"):
        tilegemm.matmul(TableOnly(A, kind=10), TableOnly(B))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_negative_strides_without_a_sign(dtype):
    """Some versions of CuPy divide the bytes of a negative stride as if they had no sign."""
    a, b = A[::-1, ::-1].astype(dtype)[::-1, ::-1], B.astype(dtype)
    table, itemsize = TableOnly(a), a.itemsize
    for dim in range(2):
        table.strides[dim] = (a.strides[dim] + 2 ** 64) // itemsize
    assert numpy.array_equal(tilegemm.matmul(table, b, numpy.empty((3, 5), dtype)), a @ b)


def test_buffers():
    a, b = array.array("f", range(12)), array.array("f", range(20))
    view = memoryview(a).cast("B").cast("f", (3, 4))
    other = memoryview(b).cast("B").cast("f", (4, 5))
    result = tilegemm.matmul(view, other)
    assert isinstance(result, memoryview) and result.shape == (3, 5)
    assert numpy.array_equal(numpy.asarray(result), A @ B)
    assert tilegemm.matmul(array.array("d", [1, 2]), array.array("d", [3, 4])) == 11.0
    with pytest.raises(tilegemm.ArgumentError, match="no dimension of size 0; pass out"):
        tilegemm.matmul(view, numpy.zeros((4, 0), "float32"))
    for wrong in (array.array("i", [1, 2]), b"abcd", bytearray(8)):
        with pytest.raises(tilegemm.OperandTypeError, match="elements of type"):
            tilegemm.matmul(wrong, array.array("f", [1, 2]))
    frozen = memoryview(bytes(60)).cast("f", (3, 5))
    with pytest.raises(tilegemm.ArgumentError, match="read-only"):
        tilegemm.matmul(view, other, frozen)
    tilegemm.matmul(a, a)
    view.release()
    a.append(1)  # no buffer is held after the calls, or this would raise BufferError


def test_kinds_that_mix():
    expected = A @ B
    for a in (A, DLPackOnly(A), TableOnly(A), memoryview(A)):
        for b in (B, DLPackOnly(B), TableOnly(B), memoryview(B)):
            out = numpy.empty((3, 5), "float32")
            assert numpy.array_equal(tilegemm.matmul(a, b, out), expected)


def test_subclasses_of_numpy():
    assert numpy.array_equal(tilegemm.matmul(A.view(numpy.matrix), B), A @ B)
    with pytest.raises(tilegemm.OperandTypeError, match="masked"):
        tilegemm.matmul(numpy.ma.masked_array(A), B)


def test_arrays_on_a_gpu_need_one():
    """Where there is no GPU the error says so, and no pointer is read."""
    class OnGpu:
        __cuda_array_interface__ = {"shape": (3, 4), "typestr": "<f4", "data": (4096, False),
                                    "strides": None, "version": 3, "stream": 1}
    try:
        result = tilegemm.matmul(OnGpu(), OnGpu())
    except tilegemm.ArgumentError as error:
        assert "columns of a differ" in str(error)
    else:
        pytest.fail(f"got {result}")
    with pytest.raises(tilegemm.ArgumentError, match="a is on CPU 0 and b is on GPU 0"):
        tilegemm.matmul(numpy.ones((2, 3), "float32"), OnGpu())


def test_no_reference_is_lost():
    a, b, out = (numpy.ones(shape, "float32") for shape in ((3, 4), (4, 5), (3, 5)))
    bias, plan = numpy.ones(5, "float32"), tilegemm.plan(a, b)
    def count():
        return [sys.getrefcount(x) for x in (a, b, out, bias, a.dtype, type(a), None, "relu")][:6]
    before = count()
    for _ in range(100):
        tilegemm.matmul(a, b, out, bias=bias, activation="relu")
        tilegemm.matmul(a, b)
        tilegemm.matmul(DLPackOnly(a), TableOnly(b), out)
        plan(a, b)
        for wrong in ({"b": a}, {"bias": a}, {"activation": "no"}, {"out": bias}):
            with pytest.raises(tilegemm.Error):
                tilegemm.matmul(**{"a": a, "b": b, **wrong})
    after = count()
    assert all(abs(x - y) <= 2 for x, y in zip(before, after)), (before, after)


def test_library_without_from_dlpack():
    class Lender:
        def __dlpack_device__(self):
            return A.__dlpack_device__()

        def __dlpack__(self, **arguments):
            return A.__dlpack__(max_version=arguments["max_version"])

    out = numpy.empty((A.shape[0], B.shape[1]), A.dtype)
    assert tilegemm.matmul(Lender(), B, out) is out and numpy.array_equal(out, A @ B)
    with pytest.raises(tilegemm.OperandTypeError, match="no from_dlpack; pass out"):
        tilegemm.matmul(Lender(), B)
