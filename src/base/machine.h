/* machine.h - what this program runs on, in a few words: the head of results names it. */
#ifndef MC_BASE_MACHINE_H
#define MC_BASE_MACHINE_H

/* "2 CPUs (Intel(R) Xeon(R) Platinum 8481C)": those that the process may use, and the model where the kernel tells it.
 * Nothing that names a host or a person. The caller frees. */
char *machine_text(void);
int machine_processors(void); /* that the process may use (taskset, cpusets), 1 at least */

/* How many that want to run share a processor: load, of the last minute, over processors; 1 at least. */
double machine_sharers(double load, long processors);
double machine_busy(void); /* of this machine, now */

#endif
