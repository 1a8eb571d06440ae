/*
 * Walks the ring of stages that a producer warp fills and consumer warps multiply.
 */
#ifndef TGI_STAGE_RING_CUH
#define TGI_STAGE_RING_CUH

#include <cuda_runtime.h>
#include <stdint.h>

/* A ring position is a stage and the parity of its use. The producer and the consumers advance
 * alike. */
template <int Stages> struct tgi_ring {
    int stage = 0;
    uint32_t parity = 0;

    __device__ explicit tgi_ring(int = Stages)
    {
    }

    __device__ void advance(void)
    {
        if (++stage == Stages) {
            stage = 0;
            parity ^= 1;
        }
    }
};

/* A ring of as many stages as the launch says. */
template <> struct tgi_ring<0> {
    int stage = 0, count;
    uint32_t parity = 0;

    __device__ explicit tgi_ring(int given) : count(given)
    {
    }

    __device__ void advance(void)
    {
        if (++stage == count) {
            stage = 0;
            parity ^= 1;
        }
    }
};

#endif
