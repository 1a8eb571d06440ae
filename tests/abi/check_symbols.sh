#!/bin/sh
# check_symbols.sh NM LIBRARY LIST fails unless the symbols that the shared library exports are
# those of the list, one a line, sorted. A change of the list is a change of the ABI.
set -eu
nm=$1 library=$2 list=$3
exported=$("$nm" -D --defined-only "$library" | awk '{ print $3 }' | LC_ALL=C sort)
if ! printf '%s\n' "$exported" | diff -u "$list" -; then
    echo "$library exports other symbols than $list lists" >&2
    exit 1
fi
