"""Finds the files of a source tree that belong to the project, and the kind of each."""

import os
import subprocess

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
C_SUFFIXES = (".c", ".h", ".cu", ".cuh")
PRUNED = ("build", ".git", "__pycache__")


def list_files(root):
    """Returns sorted paths below `root`: files that git tracks or would add. Without git these are
    all files but those of build folders."""
    git = subprocess.run(["git", "-C", root, "ls-files", "-co", "--exclude-standard", "-z"],
                         capture_output=True, check=False)
    if git.returncode == 0:
        paths = git.stdout.decode().split("\0")
        return sorted(p for p in set(paths) if p and os.path.isfile(os.path.join(root, p)))
    found = []
    for folder, folders, names in os.walk(root):
        folders[:] = [f for f in folders if not f.startswith(PRUNED)]
        found += [os.path.relpath(os.path.join(folder, n), root) for n in names]
    return sorted(found)


def is_python(path, text):
    return path.endswith(".py") or text.startswith("#!/usr/bin/env python3")


def is_shell(path, text):
    return path.endswith((".sh", ".bash")) or text.startswith(("#!/bin/sh", "#!/bin/bash",
                                                               "#!/usr/bin/env bash"))
