/* Instantiates the rungs of attention for the simulator: a function for each row, around its
 * `attend`. */
#include "kernels/attention_ladder/attention_rungs.cuh"

#define TGI_TEMPLATE(...) <__VA_ARGS__>
#define TGI_ATTENTION_RUNG(family, rung, isa, type, queries, head, threads_x, threads_y,           \
                           registers, arguments, idea)                                             \
    extern "C" void attention_##family##_##isa##_##type##_##queries##x##head(                      \
        const tgi_attention_rung_args *args)                                                       \
    {                                                                                              \
        attention_##family::attend TGI_TEMPLATE arguments(*args);                                  \
    }
#include "core/attention_kernels.def"
