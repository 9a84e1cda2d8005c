/* arena.h - memory of the simulated device: one range of pages, mapped twice.
 *
 * The host mapping is what torch's CPU kernels work on. The device mapping of the same pages is what data_ptr()
 * returns: it is inaccessible except while a launch or a device copy is open, so host code that follows a device
 * pointer faults at once, as on a real machine. Every block ends (rounded up to 64 bytes) at a page that is never
 * accessible, so a kernel that runs past the end faults too; the bytes between are a red zone.
 * Blocks are filled with 0xFF (NaN in every floating type) when they are given out and when they are returned, and
 * addresses are not reused until the range is used up. Thread-safe. */
#ifndef LT_ARENA_H
#define LT_ARENA_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

struct arena_block;

int arena_init(size_t bytes);                      /* once per process, after the fork; 0, or -1 with errno */
bool arena_ready(void);
struct arena_block *arena_alloc(size_t n);         /* n > 0; NULL when the device is out of memory */
void arena_free(struct arena_block *b);
void *arena_block_host(struct arena_block *b);
struct arena_block *arena_find(const void *host);  /* the live block that starts at host, or NULL */
bool arena_has_host(const void *p);                /* is p in the host mapping? */
bool arena_has_device(const void *p);
void *arena_to_device(const void *host);           /* NULL stays NULL */
void *arena_to_host(const void *device);

void arena_open(void);                             /* around launches and copies; nests */
void arena_close(void);

/* Registration of blocks with the emulator, by device address. */
void arena_set_registry(int (*add)(const void *p, size_t n, const char *name), int (*drop)(const void *p));
/* Calls f for each live block whose red zone was overwritten since the last call; repairs it. Returns how many. */
int arena_check(void (*f)(void *device, size_t n, long offset, void *ctx), void *ctx);
void *arena_device_base(void);
size_t arena_bytes(void);
size_t arena_in_use(void);
size_t arena_peak(void);

#ifdef __cplusplus
}
#endif
#endif
