"""What the tools that measure drawn shapes share: sizes, and a run of tilegemm bench."""

import json
import math
import pathlib
import re
import signal
import subprocess
import tempfile


def draw_size(rng, low, high):
    """Returns a size between low and high whose logarithm is uniform; half are rounded."""
    size = math.exp(rng.uniform(math.log(low), math.log(high + 1)))
    step = rng.choice((1, 1, 1, 8, 16, 64))
    return max(low, min(high, round(size / step) * step or step))


def parse_part(text):
    """Returns the index of a part and the number of parts of the text I/N. Raises ValueError with
    what is wrong."""
    part = re.fullmatch(r"([1-9]\d*)/([1-9]\d*)", text)
    if not part or int(part[1]) > int(part[2]):
        raise ValueError(f"--part = '{text}' is no part; pass I/N with 1 <= I <= N")
    return int(part[1]) - 1, int(part[2])


class BenchDied(RuntimeError):
    """A signal ended bench."""


def run_bench(program, texts, words, environment=None):
    """Measures the shapes with the options `words`; returns the JSON of the run. Raises
    RuntimeError with what bench said if it wrote none: BenchDied if a signal ended it."""
    with tempfile.TemporaryDirectory() as folder:
        suite, output = pathlib.Path(folder, "suite"), pathlib.Path(folder, "run.json")
        suite.write_text("\n".join(texts) + "\n", encoding="utf-8")
        command = [program, "bench", "--suite", suite, "--rounds", "5", "--min-time", "0.001",
                   "--json", output, *words]
        done = subprocess.run(command, check=False, capture_output=True, text=True,
                              env=environment)
        if not output.exists():
            said = done.stderr.strip()
            if done.returncode < 0:
                name = signal.Signals(-done.returncode).name
                died = f"{name} ended bench, in our code or a peer's"
                raise BenchDied(": ".join(filter(None, (died, said))))
            raise RuntimeError(said or "bench wrote nothing")
        return json.loads(output.read_text(encoding="utf-8"))
