/*
 * Shows that the thread sanitizer sees through openmp_on_pthreads: a sum that a barrier orders is
 * clean, and one that it does not order is reported.
 *
 * usage: shared_sum ordered|racing
 */
#include <omp.h>
#include <stdio.h>
#include <string.h>

enum { THREAD_COUNT = 4 };

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: shared_sum ordered|racing\n");
        return 0; /* the racing test expects another failure than this */
    }
    const int is_racing = strcmp(argv[1], "racing") == 0;
    int parts[THREAD_COUNT] = {0}, sum = 0;
#pragma omp parallel num_threads(THREAD_COUNT)
    {
        parts[omp_get_thread_num()] = omp_get_thread_num() + 1;
        if (is_racing)
            sum += parts[omp_get_thread_num()];
#pragma omp barrier
        if (omp_get_thread_num() == 0 && !is_racing) {
            for (int i = 0; i < omp_get_num_threads(); i++)
                sum += parts[i];
        }
    }
    printf("%d\n", sum);
    if (is_racing)
        return 0; /* the sanitizer makes the process fail, whatever the sum is */
    return sum == THREAD_COUNT * (THREAD_COUNT + 1) / 2 ? 0 : 1;
}
