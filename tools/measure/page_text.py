"""Text of the pages that the scripts of this folder write: tables, times, bytes."""


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
