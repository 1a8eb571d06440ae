/* Compiles the small tiles of small_tiles.def from the ladder's own sources. */
#include "kernels/instances.cuh"
#include "kernels/ladder/first_rungs.cuh"

#define TGI_IMAGE_lesson TGI_CHOSEN
#define TGI_INSTANCE(name, family, type, rows, cols, depth, thread_rows, thread_cols, stages,      \
                     threads)                                                                      \
    extern "C" __global__ void __launch_bounds__(threads)                                          \
        name(const float *a, const float *b, float *d, int m, int n, int k)                        \
    {                                                                                              \
        family::multiply<rows>(a, b, d, m, n, k);                                                  \
    }
#include "sim/small_tiles.def"
