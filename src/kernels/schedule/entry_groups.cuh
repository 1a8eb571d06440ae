/*
 * Schedules groups of batch entries. A block has whole products, several at once, or some rows of
 * one.
 */
#ifndef TGI_ENTRY_GROUPS_CUH
#define TGI_ENTRY_GROUPS_CUH

#include "kernels/divisor.h"

/* The first entry of a unit, and its first row of D. */
struct tgi_entry_place {
    int batch, row;
};

/* The grid has a block for each unit, or as many blocks as run at once. Without portions, unit u
 * has the entries from u * entries on. With portions, a unit is some rows of one entry. Units and
 * entries are less than 2^31. */
struct tgi_entry_schedule {
    tgi_divisor portions; /* units of an entry */
    int entries, portion_rows;

    __device__ __forceinline__ tgi_entry_place find(int unit) const
    {
        if (portions.value == 1)
            return {unit * entries, 0};
        const int batch = tgi_divide(unit, portions);
        return {batch, (unit - batch * portions.value) * portion_rows};
    }
};

#endif
