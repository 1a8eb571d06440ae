"""plan, explain, bench, report, threads, the command, and the examples of the docstrings."""

import doctest
import os
import subprocess
import sys
import threading

import numpy
import pytest
import tilegemm

A = numpy.arange(12, dtype="float32").reshape(3, 4)
B = numpy.arange(20, dtype="float32").reshape(4, 5)


def test_plan():
    multiply = tilegemm.plan(A, B, alpha=2, activation="relu", bias=B[0])
    assert multiply.problem == "3x5x4:alpha=2:bias=col:act=relu"
    assert multiply.kernel.startswith("cpu_") and multiply.predicted_s > 0
    assert multiply.workspace_bytes >= 0 and multiply.thread_count >= 1
    assert multiply.kernel in repr(multiply) and multiply.problem in repr(multiply)
    expected = numpy.maximum(2 * (A @ B) + B[1], 0)
    assert numpy.array_equal(multiply(A, B, bias=B[1]), expected)
    out = numpy.empty((3, 5), "float32")
    assert multiply(A, B, out, bias=B[1]) is out and numpy.array_equal(out, expected)


def test_plan_of_a_batch():
    left, right = numpy.random.rand(2, 1, 3, 4), numpy.random.rand(5, 4, 6)
    assert numpy.allclose(tilegemm.plan(left, right)(left, right), left @ right)


def test_plan_with_nan():
    assert numpy.isnan(tilegemm.plan(A, B, alpha=numpy.nan)(A, B)).all()


def test_plan_refuses_another_problem():
    multiply = tilegemm.plan(A, B)
    for a, b in ((A, numpy.asfortranarray(B)), (A[:2], B), (A.astype("f8"), B.astype("f8"))):
        with pytest.raises(tilegemm.ArgumentError, match="the plan is for 3x5x4 and the arguments"):
            multiply(a, b)
    with pytest.raises(tilegemm.ArgumentError, match="pass arrays and the stream alone"):
        multiply(A, B, alpha=2)
    with pytest.raises(tilegemm.ArgumentError, match="bias=col"):
        multiply(A, B, bias=B[0])
    with pytest.raises(TypeError):
        tilegemm.plan(A)


def test_explain():
    here = tilegemm.explain(A, B, bias=B[0])
    assert here.problem == "3x5x4:bias=col" and here.chosen.kernel.startswith("cpu_")
    assert here.chosen.kernel in str(here) and "other_device" in {row.refusal for row in here}
    assert len(here) == len(here.candidates) > 100
    assert "<table>" in here._repr_html_() and here.chosen.kernel in repr(here)
    assert tilegemm._explain.find_problem(A, B, {}) == ("3x5x4", "cpu")
    there = tilegemm.explain("4096x4096x4096:nt:bf16", gpu="h200")
    assert "wgmma" in there.chosen.kernel and there.chosen.block_count > 0
    with pytest.raises(tilegemm.ArgumentError, match="no_chip"):
        tilegemm.explain("8x8x8", gpu="no_chip")
    with pytest.raises(tilegemm.ArgumentError, match="8x8"):
        tilegemm.explain("8x8")
    with pytest.raises(tilegemm.OperandTypeError, match="takes no arrays"):
        tilegemm.explain("8x8x8", B)


def test_bench_and_report():
    result = tilegemm.bench(A, B, peer="none", rounds=3)
    assert "3x5x4" in str(result) and result.records[0]["is_right"]
    assert "1 contender" in repr(result)
    page = tilegemm.report(16, 16, 16, gpu="a100", tile=8, bench=result)
    assert page.html.startswith("<!DOCTYPE html>") and "<iframe srcdoc=" in page._repr_html_()
    with pytest.raises(tilegemm.Error, match="no_such"):
        tilegemm.bench(A, B, kernel="no_such")
    with pytest.raises(tilegemm.Error, match="tile"):
        tilegemm.report(16, 16, 16, tile=99)
    with pytest.raises(tilegemm.Error, match="--tile = 0 is outside"):
        tilegemm.report(16, 16, 16, tile=0)
    with pytest.raises(tilegemm.Error, match="m is not a whole number"):
        tilegemm.report(-1, 16, 16)


def test_report_is_saved(tmp_path):
    path = tmp_path / "page.html"
    tilegemm.Report("<p>").save(path)
    assert path.read_text() == "<p>"


def test_command():
    command = [sys.executable, "-m", "tilegemm"]
    run = subprocess.run([*command, "kernels"], capture_output=True, text=True, check=False)
    assert run.returncode == 0 and "cpu_packed" in run.stdout
    run = subprocess.run([*command, "explode"], capture_output=True, text=True, check=False)
    assert run.returncode == 2 and "no command is named 'explode'" in run.stderr


def test_command_takes_any_file_name(tmp_path):
    folder = os.fsencode(tmp_path)
    numpy.save(tmp_path / "a.npy", A)
    os.rename(folder + b"/a.npy", folder + b"/\xff.npy")
    subprocess.run([sys.executable, "-m", "tilegemm", "multiply", folder + b"/\xff.npy",
                    folder + b"/\xff.npy", "--transpose-b", "-o", folder + b"/\xfe.npy"],
                   check=True, capture_output=True)
    with open(folder + b"/\xfe.npy", "rb") as file:
        assert numpy.array_equal(numpy.load(file), A @ A.T)


def test_run_finds_the_package_as_the_program_does(tmp_path):
    """The program has the package from a folder of its own, and works in a folder with files of the
    names of modules."""
    for name in ("tilegemm", "json"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('from the working folder')\n")
    (tmp_path / "program").mkdir()
    (tmp_path / "program" / "main.py").write_text(
        f"import sys; sys.path.append({os.path.dirname(os.path.dirname(tilegemm.__file__))!r})\n"
        "import tilegemm; tilegemm.bench('8x8x8', peer='none', rounds=1)\n")
    subprocess.run([sys.executable, "-S", "program/main.py"], cwd=tmp_path, check=True)


def test_threads_share_a_plan():
    left, right = numpy.random.rand(200, 200), numpy.random.rand(200, 200)
    multiply, expected, faults = tilegemm.plan(left, right), left @ right, []

    def work():
        for _ in range(20):
            if not numpy.allclose(multiply(left, right), expected):
                faults.append("plan")
            if not numpy.allclose(tilegemm.matmul(left, right.T.copy().T), expected):
                faults.append("matmul")

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not faults


def test_the_gil_is_released():
    """Another thread counts while a product runs."""
    large, counts = numpy.random.rand(1500, 1500), [0]
    is_done = threading.Event()

    def count():
        while not is_done.is_set():
            counts[0] += 1

    thread = threading.Thread(target=count)
    thread.start()
    before = counts[0]
    tilegemm.matmul(large, large)
    counted = counts[0] - before
    is_done.set()
    thread.join()
    assert counted > 1000


def test_import_opens_no_driver_and_imports_no_library():
    code = ("import sys, tilegemm; maps = open('/proc/self/maps').read(); "
            "assert 'libcuda' not in maps and 'numpy' not in sys.modules, 'opened'")
    subprocess.run([sys.executable, "-c", code], check=True)


def test_examples():
    for module in (tilegemm, tilegemm._explain, tilegemm._run, tilegemm._tilegemm):
        assert doctest.testmod(module).failed == 0
    for text in (tilegemm.matmul.__doc__, tilegemm.attention.__doc__, tilegemm.Plan.__doc__):
        runner = doctest.DocTestRunner()
        runner.run(doctest.DocTestParser().get_doctest(text, {}, "doc", None, 0))
        assert runner.failures == 0 and runner.tries > 0


def test_environment():
    """TILEGEMM_DEVICE moves no product to another device: arrays say where they are."""
    code = "import numpy, tilegemm; a = numpy.eye(3); assert (tilegemm.matmul(a, a) == a).all()"
    subprocess.run([sys.executable, "-c", code], check=True,
                   env={**os.environ, "TILEGEMM_DEVICE": "cuda"})
