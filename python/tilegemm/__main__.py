"""The command: python -m tilegemm multiply a.npy b.npy -o d.npy."""

import os
import sys

from tilegemm._tilegemm import run_command


def main() -> int:
    """Runs the command with the words of this process, which need not be text: paths are bytes."""
    return run_command([b"tilegemm", *map(os.fsencode, sys.argv[1:])])


if __name__ == "__main__":
    sys.exit(main())
