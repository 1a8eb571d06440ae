/* Where in the sources a simulated kernel's calls stand, and what memory it shares: the tables that
 * sites.awk makes beside the code. */
#ifndef TGI_SITES_H
#define TGI_SITES_H

#include <stddef.h>
#include <stdint.h>

/* Reads the tables at its first call. Not for two threads at once. 0 when out of memory. */
int tgi_sim_open_sites(void);

int tgi_sim_count_sites(void);

/* Site 0 .. count - 1 of a call by its return address, -1 where there is none. */
int tgi_sim_find_site(const void *return_address);

/* Line of a site, 0 where it stands in cuda_on_host.h and counts as its caller's. */
int tgi_sim_get_line(int site);
const char *tgi_sim_get_file(int site); /* "l4_edges.cu" */

/* Shared memory of the kernels: one range that holds all of it, and the variable in it that an
 * address belongs to (0: none). */
typedef struct tgi_sim_range {
    uintptr_t low, high; /* first byte, and the one after the last */
} tgi_sim_range;
tgi_sim_range tgi_sim_get_shared(void);
int tgi_sim_find_variable(uintptr_t address, tgi_sim_range *variable);

/* Text of a line of a ladder source, without its end; "" where it is not known. */
const char *tgi_sim_get_source(const char *file, int line, int *length);

#endif
