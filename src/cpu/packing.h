/* Packs blocks of A and B for the tiles of family `packed`, or lets tiles read them in place. */
#ifndef TGI_CPU_PACKING_H
#define TGI_CPU_PACKING_H

#include "cpu/micropanels.h"

/* The parts of a call that all its blocks share. */
typedef struct tgi_packing {
    const tgi_call *call;
    const tgi_packed_decision *decision;
    const tgi_isa_kernels *kernels;
    const tgi_tile_set *tiles;
    tgi_copy_fn *pack_b; /* packs B's type */
} tgi_packing;

/* Fills *left and returns 1 if tiles can read A in place, else returns 0. */
int tgi_cpu_read_a_in_place(const tgi_problem *problem, const tgi_tile_set *tiles, tgi_left *left);

/* Return the tile elements of a chunk along k, and the pitch of a packed row of A. The pitch is an
 * odd number of cache lines, because rows would otherwise share cache sets. */
int64_t tgi_cpu_count_k_elems(const tgi_tile_set *tiles, int64_t k);
int64_t tgi_cpu_find_pitch(const tgi_tile_set *tiles, int64_t k);

/* Returns the bytes for the last step of k of a tile whose A is read in place. */
int64_t tgi_cpu_count_tail_bytes(const tgi_tile_set *tiles);

/* Fill s->b with the columns of s, and s->a with its rows, of k values of k from k0 on: packed to
 * `block`, or in place. The contiguous dimension of A stays contiguous, except pairs, which lie
 * along k. An A in place takes of its block what its last step of k and the rows behind whole tiles
 * need. */
void tgi_cpu_pack_b(const tgi_packing *packing, tgi_micropanels *s, int64_t k0, int64_t k,
                    char *block);
void tgi_cpu_pack_a(const tgi_packing *packing, tgi_micropanels *s, int64_t k0, int64_t k,
                    char *block);

#endif
