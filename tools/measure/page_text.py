"""Text of the pages that the scripts of this folder write: tables, times, bytes, and what was
measured: processor and source."""

import pathlib
import subprocess
import sys


def read_processor():
    for line in pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return "unknown processor"


def read_source():
    """Returns the commit of the tree, with "-dirty" behind it if files have changed since."""
    done = subprocess.run(["git", "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"],
                          cwd=pathlib.Path(__file__).parent, check=True, stdout=subprocess.PIPE,
                          text=True)
    return done.stdout.strip()


def write_table(page, name, contents, is_check):
    """Puts `contents` between the page's comments of that name. With is_check nothing is written.
    Returns 1 if the page differs."""
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    text = page.read_text(encoding="utf-8")
    before, rest = text.split(begin)
    wanted = before + begin + "\n" + contents + end + rest.split(end)[1]
    if not is_check:
        page.write_text(wanted, encoding="utf-8")
    elif text != wanted:
        print(f"docs/{page.name} is not what bench/results says; run the script with --pages",
              file=sys.stderr)
        return 1
    return 0


def table(header, rows):
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows]) + "\n"


def tell_time(seconds, digits=3):
    for unit_s, unit in ((1, "s"), (1e-3, "ms")):
        if abs(seconds) >= unit_s:
            return f"{seconds / unit_s:.{digits}g} {unit}"
    return f"{seconds * 1e6:.{digits}g} us"


def tell_bytes(count):
    for unit_bytes, unit in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB")):
        if count >= unit_bytes:
            return f"{count / unit_bytes:.3g} {unit}"
    return f"{count * 1e-3:.3g} kB"
