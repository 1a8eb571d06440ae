/*
 * Predicts the time of a CPU kernel by closed formulas. They rank kernels, so ratios matter more
 * than seconds.
 */
#ifndef TGI_CPU_MODEL_H
#define TGI_CPU_MODEL_H

#include "core/problem.h"
#include "model/machine.h"

/* Work of one kernel on one problem, as its family counts it. */
typedef struct tgi_cpu_work {
    double macs;           /* multiply-adds issued, edges of tiles included */
    double macs_per_cycle; /* rate of one core at best */
    double memory_bytes;   /* bytes of the operands, and those of a second pass over D */
    double memory_share;   /* share of the memory's rate for this order of access, 0..1 */
    double fixed_cycles;   /* set-up of each call, micropanel and tile */
    double cold_cycles;    /* more where operands come from memory, which hot calls do not tell */
    int thread_count;
} tgi_cpu_work;

/* Returns how far x is above the limit, or 0. */
static inline double tgi_model_find_excess(double x, double limit)
{
    return x > limit ? x - limit : 0.0;
}

/* Returns the bytes of L2 on which predictions count. */
double tgi_model_cpu_l2_bytes(const tgi_machine *machine);

/* Returns the cycles that are lost because micropanels go down columns: `wide_bytes` of B and D,
 * beyond a part of L2, are accessed in narrow columns, and each micropanel reads A again. */
double tgi_model_cpu_column_cycles(const tgi_machine *machine, double micropanel_count,
                                   double a_bytes, double wide_bytes);

/* Returns the cycles that a batch entry loses because a D of many rows comes from memory down the
 * columns of several micropanels. */
double tgi_model_cpu_tall_cycles(double micropanel_count, const tgi_problem *problem);

/* Returns the seconds of the work on the machine. */
double tgi_model_cpu_seconds(const tgi_machine *machine, const tgi_cpu_work *work);

/* Returns the thread count, 1 .. most, with which work is predicted to end first. One thread takes
 * `serial_s` for it. */
int tgi_model_cpu_threads(double serial_s, int most);

/* Returns the bytes of A, B and D, and of C if it is read, each counted once. */
double tgi_model_operand_bytes(const tgi_problem *problem);

#endif
