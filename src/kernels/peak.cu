/* Measures the peak rate of the FMA units by eight chains of multiply-adds a thread, on registers
 * alone. */

/* The kernel writes `sums` only if a sum is NaN, which never happens. The compiler therefore keeps
 * the loop, and the measurement has no memory access. */
#define TGI_PEAK(name, type, fused)                                                                \
    extern "C" __global__ void name(type *sums, int iteration_count)                               \
    {                                                                                              \
        type chain[8];                                                                             \
        const type factor = (type)(threadIdx.x + 1) / (type)1024;                                  \
        _Pragma("unroll") for (int i = 0; i < 8; i++) chain[i] = (type)i;                          \
        for (int step = 0; step < iteration_count; step += 8) {                                    \
            _Pragma("unroll") for (int repeat = 0; repeat < 8; repeat++)                           \
                _Pragma("unroll") for (int i = 0; i < 8; i++) chain[i] =                           \
                    fused(chain[i], factor, factor);                                               \
        }                                                                                          \
        type sum = 0;                                                                              \
        _Pragma("unroll") for (int i = 0; i < 8; i++) sum += chain[i];                             \
        if (sum != sum)                                                                            \
            sums[threadIdx.x] = sum;                                                               \
    }

TGI_PEAK(tgi_peak_fp32, float, fmaf)
TGI_PEAK(tgi_peak_fp64, double, fma)
