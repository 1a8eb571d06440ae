/*
 * Teams of a block in family mma are groups of Threads threads that share out k of its tiles. Each
 * team has stages and barriers of its own, like blocks that share a multiprocessor, but their sums
 * meet in shared memory.
 */
#ifndef TGI_MMA_TEAMS_CUH
#define TGI_MMA_TEAMS_CUH

#include "kernels/ptx/barrier.cuh"
#include "kernels/ptx/launch.cuh"
#include "kernels/ptx/shared_memory.cuh"

/* Most is 2 if a block has one or two teams, and 1 if it has one. */
template <int Threads, int Most> struct tgi_mma_teams {
    const int own, count;

    __device__ __forceinline__ tgi_mma_teams(void)
        : own(tgi_make_uniform(tgi_thread() / Threads)),
          count(static_cast<int>(blockDim.x) / Threads)
    {
    }

    static __device__ __forceinline__ int own_thread(void)
    {
        return tgi_thread() % Threads;
    }

    /* Returns the team's number, counted over all blocks. */
    __device__ __forceinline__ int find_number(void) const
    {
        return static_cast<int>(blockIdx.x) * count + own;
    }

    /* Waits for all threads of the team. */
    __device__ __forceinline__ void wait(void) const
    {
        tgi_named_barrier_sync(1 + own, Threads);
    }

    /* Adds the sums of the second team to those of the first, through the stages of the second,
     * which all its threads have read. `shared` is where the caller's stages begin. */
    template <int Count>
    __device__ __forceinline__ void add(float (&sums)[Count], uint32_t shared, int team_bytes) const
    {
        const uint32_t place = shared + own_thread() * 16;
#pragma unroll
        for (int i = 0; i < Count; i += 4)
            if (own > 0)
                tgi_write_shared_unit(
                    place + i * 4 * Threads,
                    make_uint4(__float_as_uint(sums[i]), __float_as_uint(sums[i + 1]),
                               __float_as_uint(sums[i + 2]), __float_as_uint(sums[i + 3])));
        /* Without this barrier the first team would read sums that the second has yet to write. */
        __syncthreads();
#pragma unroll
        for (int i = 0; i < Count; i += 4) {
            if (own > 0)
                continue;
            const uint4 unit = tgi_read_shared_unit(place + team_bytes + i * 4 * Threads);
            sums[i] += __uint_as_float(unit.x);
            sums[i + 1] += __uint_as_float(unit.y);
            sums[i + 2] += __uint_as_float(unit.z);
            sums[i + 3] += __uint_as_float(unit.w);
        }
        /* Without this barrier the second team's next copies would overwrite what the first one
         * still reads. */
        __syncthreads();
    }
};

template <int Threads> struct tgi_mma_teams<Threads, 1> {
    static constexpr int own = 0, count = 1;

    static __device__ __forceinline__ int own_thread(void)
    {
        return tgi_thread();
    }

    static __device__ __forceinline__ int find_number(void)
    {
        return static_cast<int>(blockIdx.x);
    }

    __device__ __forceinline__ void wait(void) const
    {
        __syncthreads();
    }
};

#endif
