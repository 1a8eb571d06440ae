"""The command: python -m tilegemm multiply a.npy b.npy -o d.npy."""

import sys

from tilegemm._tilegemm import run_command


def main() -> int:
    """Runs the command with the words of this process."""
    return run_command(["tilegemm", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
