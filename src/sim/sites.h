/* Declares the places in the sources of a simulated kernel's calls, and the shared memory that it
 * has: the tables that sites.awk makes beside the code. */
#ifndef TGI_SITES_H
#define TGI_SITES_H

#include <stddef.h>
#include <stdint.h>

/* Reads the tables at its first call. Returns 0 when out of memory. */
int tgi_sim_open_sites(void);

int tgi_sim_count_sites(void);

/* Returns the site (0 .. count - 1) of a call by its return address; -1 if there is none. */
int tgi_sim_find_site(const void *return_address);

/* Returns the line of a site; 0 if it stands in cuda_on_host.h and counts as its caller's. */
int tgi_sim_get_line(int site);
const char *tgi_sim_get_file(int site); /* "l4_edges.cu" */

/* Returns the range that holds all shared memory of the kernels; and the variable in it that holds
 * an address (0: none). */
typedef struct tgi_sim_range {
    uintptr_t low, high; /* first byte, and the byte after the last */
} tgi_sim_range;
tgi_sim_range tgi_sim_get_shared(void);
int tgi_sim_find_variable(uintptr_t address, tgi_sim_range *variable);

/* Returns the text of a line of a ladder source without its end; "" if it is not known. */
const char *tgi_sim_get_source(const char *file, int line, int *length);

#endif
