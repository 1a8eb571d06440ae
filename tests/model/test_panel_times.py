"""Tests that the figures of panels (src/model/figures/h200_panels.def) predict the times that
bench_panels measured, which bench/results/h200/panels.json has.

usage: test_panel_times.py SOURCE_FOLDER TILEGEMM
"""

import json
import math
import pathlib
import statistics
import subprocess
import sys
import unittest

# A call of seconds lowers the GPU's clock (bench/notes/cuda_host.md), and the model does not know.
SHORT_S = 0.5


def predict(shape, limit_bytes):
    """Returns the seconds that explain predicts for a product in panels on an H200."""
    done = subprocess.run([TILEGEMM, "explain", shape, "--gpu", "h200", "--memory",
                           str(limit_bytes), "--json"], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)["total_s"]


class PanelTimes(unittest.TestCase):
    def test_committed_calls(self):
        rows = json.loads((ROOT / "bench/results/h200/panels.json").read_text(encoding="utf-8"))
        logs = []
        for row in rows["rows"]:
            if row["seconds"] > SHORT_S:
                continue
            ratio = predict(row["shape"], row["limit_bytes"]) / row["seconds"]
            self.assertTrue(0.85 < ratio < 1.15, (row["shape"], row["memory"], ratio))
            logs.append(math.log(ratio))
        self.assertGreaterEqual(len(logs), 16)
        self.assertLess(abs(statistics.mean(logs)), 0.05)


if __name__ == "__main__":
    ROOT, TILEGEMM = pathlib.Path(sys.argv[1]), sys.argv[2]
    unittest.main(argv=sys.argv[:1])
