/* Declares what the planners of family small share. */
#ifndef TGI_CUDA_SMALL_H
#define TGI_CUDA_SMALL_H

#include "cuda/families/family.h"
#include "kernels/small/small_shape.h"

/* Returns 1 for a row of wide tiles, whose threads share out the sums of a tile, while the warps of
 * other rows share out k. */
int tgi_small_is_wide(const tgi_kernel *kernel);

/* Returns 1 for the rows of FP8, which are strips alone. */
int tgi_small_is_strip(const tgi_kernel *kernel);

/* Returns how many pieces a row of D has, in the form by units or by elements. */
int64_t tgi_small_count_pieces(const tgi_problem *p, int has_units);

/* Proposes pieces and strips, if they are predicted to be faster than what was proposed before. */
void tgi_small_propose_strips(const tgi_machine *machine, const tgi_problem *given,
                              tgi_proposal *proposal);

/* Proposes outer products of FP32, likewise. */
void tgi_small_propose_outer(const tgi_machine *machine, const tgi_problem *p,
                             tgi_proposal *proposal);

/* Proposes a row of FP8, or refuses the problem. */
void tgi_small_propose_strip_row(const tgi_machine *machine, const tgi_problem *p,
                                 tgi_proposal *proposal);

/* Returns 1 if the row has functions that sum a batch-invariant problem in the order. */
int tgi_small_serves(const tgi_kernel *kernel, const tgi_problem *p, tgi_sum_order order);

/* Returns 1 if elements of D are single products of 16-bit types. One of FP16 is exact in FP32, so
 * that all rows form the same. */
int tgi_small_is_product(const tgi_problem *p);

/* Returns 1 if these products of a batch-invariant problem of BF16, which may be too small for
 * FP32, are left to multiply-adds, by pieces and the functions without stages. */
int tgi_small_is_in_pieces(const tgi_problem *p);

/* Returns 1 if the functions without stages, and pieces, sum a batch-invariant problem in order of
 * k. */
int tgi_small_takes_one_lane(const tgi_machine *machine, const tgi_problem *p);

/* Returns how many threads of the functions without stages share out k of a batch-invariant
 * problem, whatever m is. A single one adds in order of k. */
int tgi_small_find_lanes(const tgi_machine *machine, const tgi_problem *p);

/* Proposes the functions without stages. */
void tgi_small_propose_direct(const tgi_machine *machine, const tgi_problem *p,
                              tgi_proposal *proposal);

/* Returns 1 for the row of each type that has relays. */
int tgi_small_has_relay(const tgi_kernel *kernel);

/* Returns 1 if pairs of A or B along k of 16-bit types are aligned where the operand is. */
int tgi_small_has_pairs(const tgi_problem *p, int is_b);

/* Returns 1 if the row's staged kernel loads A or B by pairs: two neighbours in k, or of one k, are
 * aligned together, and 8 along k are not. Rows on matrix instructions do on Hopper. */
int tgi_small_loads_pairs(const tgi_machine *machine, const tgi_kernel *kernel,
                          const tgi_problem *p, int is_b);

/* Returns how many operands kernels on matrix instructions load element by element: those whose
 * lines run across k, or begin between units of 16 bytes. One that is loaded by pairs counts in
 * part. */
double tgi_small_count_by_elements(const tgi_machine *machine, const tgi_kernel *kernel,
                                   const tgi_problem *p);

/* Returns 1 if values of k lie so close that relays which copy lines count their bytes by 32
 * bits. */
int tgi_small_is_near(const tgi_problem *p);

/* Proposes relays, if they are predicted to be faster than what was proposed before. */
void tgi_small_propose_relays(const tgi_machine *machine, const tgi_problem *p,
                              tgi_proposal *proposal);

/* Proposes relays that add chains from lines in shared memory, if they are predicted to be faster
 * than what was proposed before. */
void tgi_small_propose_chains(const tgi_machine *machine, const tgi_problem *p, int teams,
                              tgi_proposal *proposal);

/* Proposes relays that copy lines of a long k to shared memory, if they are predicted to be faster
 * than what was proposed before. */
void tgi_small_propose_lines(const tgi_machine *machine, const tgi_problem *p,
                             tgi_proposal *proposal);

#endif
