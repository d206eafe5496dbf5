/* SPDX-License-Identifier: Apache-2.0 */
/* sim_heap.h - memory that forked processes share: for the simulated disk and the simulator, whose processes take
 * turns. There is one heap at a time. It has no lock. Out of memory ends the test. */
#ifndef LODE_SIM_HEAP_H
#define LODE_SIM_HEAP_H

#include <stddef.h>

void sim_heap_start(void);
void sim_heap_stop(void);
void *sim_heap_resize(void *p, size_t size); /* p may be NULL; what is new is not zeroed */
void sim_heap_free(void *p);
void *sim_heap_map(size_t size); /* a mapping of its own, zeroed, for as long as the process lives */

#endif
