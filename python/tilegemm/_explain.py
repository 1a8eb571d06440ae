"""explain: the kernels that the planner considers for a product."""

from __future__ import annotations

from typing import Any, Iterator, NamedTuple

from . import _tilegemm


class Candidate(NamedTuple):
    """One kernel for a product. The fields after `reason` are 0 on the CPU and if is_legal is
    False."""

    kernel: str
    predicted_s: float
    is_legal: bool
    is_chosen: bool
    refusal: str  # why it is not chosen, in a word: "other_type"
    reason: str  # the same in a sentence, with its values; "" for the chosen one
    block_count: int
    split_count: int
    threads_per_block: int
    shared_bytes: int
    global_read_bytes: float
    global_write_bytes: float
    occupancy: float


class Explanation:
    """The candidates of a product. It prints as a table, and as one in a notebook."""

    def __init__(self, problem: str, candidates: list[Candidate]) -> None:
        self.problem = problem
        self.candidates = candidates

    @property
    def chosen(self) -> Candidate | None:
        """The kernel that computes the product; None if there is none."""
        return next((row for row in self.candidates if row.is_chosen), None)

    def __iter__(self) -> Iterator[Candidate]:
        return iter(self.candidates)

    def __len__(self) -> int:
        return len(self.candidates)

    def _list_rows(self) -> list[tuple[str, str, str]]:
        """Returns (kernel, time, reason): legal kernels by their time, then those refused."""
        legal = sorted((row for row in self.candidates if row.is_legal),
                       key=lambda row: (not row.is_chosen, row.predicted_s))
        refused = [row for row in self.candidates if not row.is_legal]
        return [(row.kernel, f"{row.predicted_s * 1e6:.3g} us" if row.predicted_s else "",
                 "chosen" if row.is_chosen else row.reason) for row in legal + refused]

    def __str__(self) -> str:
        rows = self._list_rows()
        width = max((len(kernel) for kernel, _, _ in rows), default=0)
        lines = [f"{kernel:{width}}  {time:>10}  {why}".rstrip() for kernel, time, why in rows]
        return "\n".join([self.problem, *lines])

    def __repr__(self) -> str:
        name = self.chosen.kernel if self.chosen else "no kernel"
        return f"<tilegemm.Explanation {self.problem} by {name}>"

    def _repr_html_(self) -> str:
        import html
        rows = "".join("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>"
                       for row in self._list_rows())
        return (f"<p>{html.escape(self.problem)}</p><table><tr><th>kernel</th><th>predicted</th>"
                f"<th>why not</th></tr>{rows}</table>")


def find_problem(a: Any, b: Any, arguments: dict[str, Any]) -> tuple[str, str]:
    """Returns the text and the device of a product that is given as text or as arrays."""
    if isinstance(a, str):
        if b is not None or arguments:
            raise _tilegemm.OperandTypeError(
                "a product that is given as text takes no arrays beside it")
        return a, "cpu"
    return _tilegemm.describe(a, b, **arguments)


def explain(a: Any, b: Any = None, *, device: str | None = None, gpu: str | None = None,
            **arguments: Any) -> Explanation:
    """Return the kernels for a product, with the time that the model predicts for each, and why
    each but one is not chosen.

    a, b, arguments   what matmul takes, or a text alone, "MxNxK" with what differs from FP32
                      row-major: "4096x4096x4096:nt:bf16"
    device            "cpu", "cuda", "cuda:1": a device of this machine; default: that of the
                      arrays, the CPU for a text
    gpu               a chip that need not be here: "h200", "a100", "l4", ...

    Raises what matmul raises, and ArgumentError for names that are none.

    >>> import tilegemm
    >>> tilegemm.explain("4096x4096x4096:nt:bf16", gpu="h200").chosen.kernel
    'cuda_wgmma_sm90a_bf16_128x256x64'
    """
    problem, own_device = find_problem(a, b, arguments)
    rows = _tilegemm.list_candidates(problem, device or own_device, gpu)
    return Explanation(problem, [Candidate(*row) for row in rows])
