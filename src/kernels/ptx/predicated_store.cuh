/* Declares stores under a predicate, which replace a branch around a store. */
#ifndef TGI_PTX_PREDICATED_STORE_CUH
#define TGI_PTX_PREDICATED_STORE_CUH

#include <cuda_runtime.h>
#include <stdint.h>

/* Defines, for a type of numbers, a store of one number if the condition holds, and a store of two
 * neighbours to an address that is aligned for both. Addresses are generic. */
#define TGI_DEFINE_STORES_IF(type, suffix, constraint)                                             \
    static __device__ __forceinline__ void tgi_store_if(type *place, type value, int condition)    \
    {                                                                                              \
        asm volatile("{ .reg .pred p; setp.ne.s32 p, %2, 0; @p st." suffix                         \
                     " [%0], %1; }" ::"l"(place),                                                  \
                     constraint(value), "r"(condition)                                             \
                     : "memory");                                                                  \
    }                                                                                              \
    static __device__ __forceinline__ void tgi_store_pair_if(type *place, type low, type high,     \
                                                             int condition)                        \
    {                                                                                              \
        asm volatile("{ .reg .pred p; setp.ne.s32 p, %3, 0; @p st.v2." suffix                      \
                     " [%0], {%1, %2}; }" ::"l"(place),                                            \
                     constraint(low), constraint(high), "r"(condition)                             \
                     : "memory");                                                                  \
    }

TGI_DEFINE_STORES_IF(float, "f32", "f")
TGI_DEFINE_STORES_IF(double, "f64", "d")
TGI_DEFINE_STORES_IF(uint16_t, "u16", "h")

#undef TGI_DEFINE_STORES_IF

#endif
