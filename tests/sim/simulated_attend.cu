/*
 * Kernels of attention on mma.sync for the simulator, and mutants of them that wait for too little.
 */
#include "kernels/attend/attend.cuh"

/* The shared memory of a block: the most that sm_90 gives, which suffices any kernel. */
__shared__ char shared[227 << 10];

/* Copies of the turn before may not be there. */
template <tg_type Type, int Head, int Warps, int Blocks, int Keys>
struct tgi_attend_by_rash_warps : tgi_attend_by_warps<Type, Head, Warps, Blocks, Keys> {
    template <int Pending> static inline void wait_copies(void)
    {
        __syncthreads();
    }
};

/* Threads may overwrite what others read. */
template <tg_type Type, int Head, int Warps, int Blocks, int Keys>
struct tgi_attend_by_lone_warps : tgi_attend_by_warps<Type, Head, Warps, Blocks, Keys> {
    template <int Pending> static inline void wait_copies(void)
    {
        tgi_copy_async_wait<Pending>();
    }
};

#define SIMULATED_ATTEND(name, products, type, queries, head, warps, keys)                         \
    extern "C" void name(const tgi_attend_args *args)                                              \
    {                                                                                              \
        tgi_attend<tgi_attend_by_##products<type, head, warps, queries / 16 / warps, keys>>(       \
            *args, shared);                                                                        \
    }
SIMULATED_ATTEND(simulated_rash, rash_warps, TG_TYPE_BF16, 128, 64, 4, 64)
SIMULATED_ATTEND(simulated_lone, lone_warps, TG_TYPE_BF16, 128, 64, 4, 64)

#define TGI_ATTENTION_ROW(image, family, isa, type, queries, head, products, warps, keys, tiles,   \
                          resident)                                                                \
    SIMULATED_ATTEND_##isa(type, queries, head, products, warps, keys)
#define SIMULATED_ATTEND_sm90a(...)
#define SIMULATED_ATTEND_sm80(type, queries, head, products, warps, keys)                          \
    SIMULATED_ATTEND(simulated_##type##_##queries##x##head, products, TGI_TYPE_OF(type), queries,  \
                     head, warps, keys)
#include "core/attention_kernels.def"

extern "C" void simulated_merge_bf16(const tgi_attend_args *args)
{
    tgi_attend_merge<TG_TYPE_BF16>(*args);
}

extern "C" void simulated_merge_fp16(const tgi_attend_args *args)
{
    tgi_attend_merge<TG_TYPE_FP16>(*args);
}
