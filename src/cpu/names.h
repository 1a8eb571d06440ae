/*
 * Names inside the bodies (*_body.h), which are included once for each instruction set and type:
 * ACC(load) is fp32_load where ACC_NAME is fp32, IN(load) is bf16_load where IN_NAME is bf16,
 * ACC_EPILOGUE(add_bias) is tgi_add_bias_fp32, a function of core/epilogue.h,
 * LOCAL(x) is a static name of its own for each instruction set and input type, TILE(x) for each of
 * their tile shapes too.
 */
#ifndef TGI_CPU_NAMES_H
#define TGI_CPU_NAMES_H

#include "core/dtype.h"

#define JOIN3(x, y, z) x##_##y##_##z
#define JOIN2(x, y) x##_##y
#define EXPAND3(x, y, z) JOIN3(x, y, z)
#define EXPAND2(x, y) JOIN2(x, y)

#define ACC(name) EXPAND2(ACC_NAME, name)
#define IN(name) EXPAND2(IN_NAME, name)
#define LOCAL(name) EXPAND3(name, ISA_NAME, IN_NAME)
#define ACC_LOCAL(name) EXPAND3(name, ISA_NAME, ACC_NAME)
#define ACC_EPILOGUE(name) EXPAND3(tgi, name, ACC_NAME)
#define TILE(name) EXPAND2(LOCAL(name), TILE_ROWS)

/* The FP8 types have no vectors here. The compiler vectorizes their loops. */
typedef uint8_t e4m3_elem, e5m2_elem;
#define e4m3_scalar tgi_fp32_from_e4m3
#define e5m2_scalar tgi_fp32_from_e5m2

#define VECTOR_ELEMS ((int)(sizeof(ACC(vec)) / sizeof(ACC(elem))))

/* Hides from the compiler how a pointer was computed. */
#define HIDE_POINTER(pointer) __asm__("" : "+r"(pointer))

/* Stands in a function that only prefetches: GCC takes such a one to have no effects, and drops
 * calls of it. */
#define KEEP_CALLS() __asm__ volatile("")

#endif
