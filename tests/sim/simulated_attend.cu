/*
 * Kernels of attention on mma.sync and CUDA cores for the simulator, and mutants of those on
 * mma.sync that wait for too little.
 */
#include "kernels/attend/attend_few_keys.cuh"
#include "kernels/attend/attend_few_queries.cuh"
#include "kernels/attend/attend_merge.cuh"
#include "kernels/attend/attend_multiply_adds.cuh"

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

#define SIMULATED_MUTANT(name, products)                                                           \
    extern "C" void name(const tgi_attend_args *args)                                              \
    {                                                                                              \
        tgi_attend<tgi_attend_by_##products<TG_TYPE_BF16, 64, 4, 2, 64>, 3>(*args, shared);        \
    }
SIMULATED_MUTANT(simulated_rash, rash_warps)
SIMULATED_MUTANT(simulated_lone, lone_warps)

/* A word that lane `first`, 0, reads in one turn of a warp, and lane 1 reads and writes in the next
 * one: the compiler would join the branches of lanes that it knows. */
template <int IsRash> static void take_turns(int first)
{
    volatile int *const word = reinterpret_cast<int *>(shared);
    int read = 0;
    if (tgi_thread() == first) {
        *word = 1;
        read = *word;
    }
    __syncwarp();
    if (tgi_thread() == 1)
        *word = *word + read + 1;
    else if (IsRash)
        read = *word;
}

extern "C" void simulated_turns(const tgi_attend_args *args)
{
    take_turns<0>(args->is_bottom);
}

extern "C" void simulated_rash_turns(const tgi_attend_args *args)
{
    take_turns<1>(args->is_bottom);
}

#define TGI_ATTENTION_ROW(image, family, isa, type, queries, head, products, warps, keys, tiles,   \
                          resident)                                                                \
    SIMULATED_ATTEND_##isa(type, queries, head, products, warps, keys, tiles)
#define SIMULATED_ATTEND_sm90a(type, queries, head, products, ...)                                 \
    SIMULATED_##products(type, queries, head, products, __VA_ARGS__)
#define SIMULATED_groups(...)
#define SIMULATED_clusters(...)
#define SIMULATED_short_sequences(...)
#define SIMULATED_few_keys SIMULATED_ATTEND_sm80
#define SIMULATED_few_queries SIMULATED_ATTEND_sm80
#define SIMULATED_ATTEND_sm80(type, queries, head, products, warps, keys, tiles)                   \
    extern "C" void simulated_##products##_##type##_##queries##x##head(                            \
        const tgi_attend_args *args)                                                               \
    {                                                                                              \
        tgi_attend_in_##products<TGI_TYPE_OF(type), head, warps, queries, keys, tiles>(*args,      \
                                                                                       shared);    \
    }
/* Also as chips without matrix instructions of FP32 and FP64 multiply. */
#define SIMULATED_ATTEND_sm75(type, queries, head, products, warps, keys, tiles)                   \
    SIMULATED_ATTEND_sm80(type, queries, head, products, warps, keys, tiles) extern "C" void       \
        simulated_plain_##type##_##queries##x##head(const tgi_attend_args *args)                   \
    {                                                                                              \
        tgi_attend_in_multiply_adds<TGI_TYPE_OF(type), head, warps, queries, keys, tiles, 0>(      \
            *args, shared);                                                                        \
    }
#include "core/attention_kernels.def"

#define SIMULATED_MERGE(name, type)                                                                \
    extern "C" void name(const tgi_attend_args *args)                                              \
    {                                                                                              \
        tgi_attend_merge<type>(*args);                                                             \
    }
SIMULATED_MERGE(simulated_merge_bf16, TG_TYPE_BF16)
SIMULATED_MERGE(simulated_merge_fp16, TG_TYPE_FP16)
SIMULATED_MERGE(simulated_merge_fp32, TG_TYPE_FP32)
SIMULATED_MERGE(simulated_merge_fp64, TG_TYPE_FP64)
