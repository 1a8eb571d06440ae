"""bench and report: runs of the command, which is part of the extension, in a process of its own.

Modules that only they need are imported in them, so that `import tilegemm` takes no longer.
"""

from __future__ import annotations

import os
import sys
from typing import Any, Sequence

from . import _tilegemm
from ._explain import find_problem


def run_command(words: Sequence[str]) -> str:
    """Returns what the command printed. Raises Error with its error lines if it failed."""
    import subprocess
    # The process looks for modules where this one does, and nowhere else.
    folders = [folder for folder in sys.path if isinstance(folder, str)]
    start = (f"import sys; sys.path = {folders!r}; from tilegemm.__main__ import main; "
             "sys.exit(main())")
    run = subprocess.run([sys.executable, "-c", start, *words], capture_output=True, text=True,
                         check=False)
    if run.returncode != 0:
        raise _tilegemm.Error(run.stderr.strip() or f"tilegemm ended with code {run.returncode}")
    return run.stdout


class BenchResult:
    """What bench measured: `data` is what `tilegemm bench --json` writes. It prints as a table."""

    def __init__(self, data: dict[str, Any], table: str) -> None:
        self.data = data
        self._table = table

    @property
    def records(self) -> list[dict[str, Any]]:
        """One entry for each contender: "name", "median_s", "gflop_per_s", "max_error", ..."""
        return list(self.data["records"])

    def __str__(self) -> str:
        return self._table

    def __repr__(self) -> str:
        return f"<tilegemm.BenchResult of {len(self.records)} contenders>"


def bench(a: Any, b: Any = None, *, kernel: str = "best", peer: str = "all",
          device: str | None = None, rounds: int = 15, cold: bool = False,
          **arguments: Any) -> BenchResult:
    """Time kernels for a product in turn with other libraries, and check what each computed.

    a, b, arguments   what matmul takes, or a text: see explain
    kernel            "best", "ladder", "all", or a kernel's name
    peer              "all" that are installed, "none", "openblas", "blis", "onednn",
                      "onednn_sgemm", "libxsmm", "mkl", "cublas", "cublas_lt", "cublas_best"
    device            "cpu", "cuda", "cuda:1"; default: that of the arrays, the CPU for a text
    rounds            samples of each
    cold              True: operands come from memory, not from caches

    The process of the measurement makes its own operands of the same shape. Raises Error if a
    result is wrong or the command fails.

    >>> import tilegemm
    >>> result = tilegemm.bench("64x64x64", peer="none", rounds=3)
    >>> result.records[0]["shape"], result.records[0]["is_right"]
    ('64x64x64', True)
    """
    import json
    import tempfile
    problem, own_device = find_problem(a, b, arguments)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "bench.json")
        table = run_command(["bench", "--shape", problem, "--kernel", kernel, "--peer", peer,
                             "--device", device or own_device, "--rounds", str(rounds),
                             "--json", path, "--cold" if cold else "--hot"])
        with open(path, encoding="utf-8") as file:
            return BenchResult(json.load(file), table)


class Report:
    """A page of one product in HTML, which needs no server and no network. It shows itself in a
    notebook."""

    def __init__(self, html: str) -> None:
        self.html = html

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page to a file."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.html)

    def __repr__(self) -> str:
        return f"<tilegemm.Report of {len(self.html)} characters>"

    def _repr_html_(self) -> str:
        page = self.html.replace("&", "&amp;").replace('"', "&quot;")
        return f'<iframe srcdoc="{page}" width="100%" height="900" style="border:0"></iframe>'


def report(m: int, n: int, k: int, *, gpu: str | None = None, tile: int | None = None,
           bench: BenchResult | None = None) -> Report:
    """Return a page that shows how (m, k) @ (k, n) is multiplied: tile by tile, threads, roofline,
    reads, ladder, plan.

    gpu     chip to open with: "h200", "a100", ...
    tile    side of the tile to open with, 1 to 32
    bench   measured times to show, from tilegemm.bench(..., kernel="ladder")

    Raises Error if the build has no page.

    >>> import tilegemm
    >>> page = tilegemm.report(16, 16, 16)
    >>> page.html.startswith("<!DOCTYPE html>")
    True
    """
    import json
    import tempfile
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "report.html")
        words = ["report", "-o", path]
        words += [f"--gpu={gpu}"] if gpu is not None else []
        words += [f"--tile={tile}"] if tile is not None else []
        if bench:
            words += ["--bench", os.path.join(folder, "bench.json")]
            with open(words[-1], "w", encoding="utf-8") as file:
                json.dump(bench.data, file)
        run_command([*words, "--", f"{m}x{n}x{k}"])
        with open(path, encoding="utf-8") as file:
            return Report(file.read())
