/*
 * The passes before and behind kernels of family mma for the simulator: copies of operands with
 * aligned lines, slices of FP32, and the sum of splits.
 */
#include "kernels/copy/repack.cu"
#include "kernels/copy/slices.cu"
#include "kernels/splits.cu"

#define TGI_SIM_PASS(name, arguments)                                                              \
    extern "C" void name##_body(const arguments *args)                                             \
    {                                                                                              \
        name(*args);                                                                               \
    }
#include "sim/mma_passes.def"
#undef TGI_SIM_PASS
