#!/bin/sh
# check_vectorized.sh COMPILER SOURCE_ROOT TARGET VECTOR_BYTES asserts that gcc vectorizes the loop
# over each activation for that target attribute.
set -eu
source="$2/tests/core/activation_loops.c"
report=$("$1" -std=c11 -O3 -ffp-contract=off -I"$2/src" -I"$2/include" \
    -DLOOPS_NAME=loops_checked -DLOOPS_ISA='"checked"' -DTGI_EPILOGUE_HAS_FMA=1 \
    -DLOOPS_TARGET="__attribute__((target(\"$3\")))" \
    -fopt-info-vec-optimized -c "$source" -o /dev/null 2>&1)
for name in relu_fp32 gelu_erf_fp32 gelu_tanh_fp32 silu_fp32 \
    relu_narrow gelu_erf_narrow gelu_tanh_narrow silu_narrow \
    relu_fp64 gelu_erf_fp64 gelu_tanh_fp64 silu_fp64; do
    line=$(grep -n "^DEFINE_LOOP($name," "$source" | cut -d: -f1)
    if ! echo "$report" | grep -q "activation_loops.c:$line:.*vectorized using $4 byte"; then
        echo "the loop $name is not vectorized for $3"
        exit 1
    fi
done
