/* Instantiates the rungs of attention on a GPU: a function for each row, around its `attend`. */
#include "kernels/attention_ladder/attention_rungs.cuh"

#define TGI_TEMPLATE(...) <__VA_ARGS__>
#define TGI_KERNEL(family, name, threads, arguments)                                               \
    extern "C" __global__ void __launch_bounds__(threads)                                          \
        name(const __grid_constant__ tgi_attention_rung_args args)                                 \
    {                                                                                              \
        attention_##family::attend TGI_TEMPLATE arguments(args);                                   \
    }
#define TGI_KERNEL_naive TGI_KERNEL
#define TGI_KERNEL_tiled TGI_KERNEL
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
#define TGI_KERNEL_mma TGI_KERNEL
#else
#define TGI_KERNEL_mma(...)
#endif
#define TGI_ATTENTION_RUNG(family, rung, isa, type, queries, head, threads_x, threads_y,           \
                           registers, arguments, idea)                                             \
    TGI_KERNEL_##family(family, attention_##family##_##isa##_##type##_##queries##x##head,          \
                        threads_x *threads_y, arguments)
#include "core/attention_kernels.def"
