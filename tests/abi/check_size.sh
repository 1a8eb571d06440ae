#!/bin/sh
# check_size.sh LIBRARY LIMIT fails unless the shared library has fewer than LIMIT bytes.
set -eu
library=$1 limit=$2
bytes=$(wc -c <"$library")
echo "$library: $bytes bytes, the limit is $limit"
[ "$bytes" -lt "$limit" ]
