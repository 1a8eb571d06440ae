/*
 * Declares lines of units of 16 bytes in shared memory, one behind another. The units of a line are
 * permuted by the line's number, so that an access to the same unit of eight lines has no bank
 * conflicts, and neither has one to eight consecutive units of a line.
 */
#ifndef TGI_UNIT_LINES_CUH
#define TGI_UNIT_LINES_CUH

#include <cuda_runtime.h>

/* Units is the number of units in a line. An access reads Consecutive consecutive units of each of
 * 8 / Consecutive lines. */
template <int Units, int Consecutive = 1> struct tgi_unit_lines {
    static constexpr int units = Units, bytes = Units * 16;
    /* span: units that are permuted among each other; alike: neighbouring lines that have the same
     * permutation, because they share 128 bytes. */
    static constexpr int span = Units < 8 ? Units : 8, alike = 8 / span;

    /* Returns the permutation of a line: its units are found at their number XOR this. */
    static __device__ __forceinline__ constexpr int find_order(int line)
    {
        return line / alike * Consecutive % span;
    }

    /* Returns the place of a unit, in bytes. */
    static __device__ __forceinline__ int find(int line, int unit)
    {
        return line * bytes + ((unit ^ find_order(line)) << 4);
    }
};

#endif
