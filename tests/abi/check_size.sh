#!/bin/sh
# check_size.sh LIBRARY LIMIT fails unless the shared library has fewer than LIMIT bytes without its
# symbol table, as packages ship it.
set -eu
library=$1 limit=$2
stripped=$(mktemp)
trap 'rm -f "$stripped"' EXIT
strip -o "$stripped" "$library"
bytes=$(wc -c <"$stripped")
echo "$library: $bytes bytes, the limit is $limit"
[ "$bytes" -lt "$limit" ]
