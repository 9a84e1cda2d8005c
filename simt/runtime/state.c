/* state.c - what runs: the launch, its block, the built-in variables, dynamic shared memory. Every file looks here. */
#include <stdlib.h>
#include <sys/mman.h>

#include "runtime.h"

struct run run;
__thread char thread_mark;
struct simt_dim3u threadIdx, blockIdx, blockDim, gridDim;
const int warpSize = WARP;
const struct simt_dim3u *thread_index;
/* Behind the largest possible block's memory comes a page that nobody may touch. */
#define SHARED_ROOM ((SHARED_OPTIN + 4095) / 4096 * 4096)
char simt_dynamic_shared[SHARED_ROOM + 4096] __attribute__((aligned(4096)));

/* What looks for leaks at the end of a process reads all static memory. */
static void open_shared(void)
{
    mprotect(simt_dynamic_shared + SHARED_ROOM, 4096, PROT_READ | PROT_WRITE);
}

static __attribute__((constructor)) void guard_shared(void)
{
    mprotect(simt_dynamic_shared + SHARED_ROOM, 4096, PROT_NONE);
    atexit(open_shared);
}

int check_wanted = 1;
bool check_build, check_now;

void wake_all(struct list *l)
{
    struct list *r = &run.block.ready;

    if (!l->head)
        return;
    if (r->tail)
        r->tail->next = l->head;
    else
        r->head = l->head;
    r->tail = l->tail;
    l->head = l->tail = NULL;
}

struct read_site read_sites[READ_SITES];
const struct read_site *read_latest;
uint64_t read_moment, read_turn;

void read_turns_over(void)
{
    for (int i = 0; i < READ_SITES; i++)
        read_sites[i].key = 0;
}

static bool progress;

void wait_note_progress(void)
{
    progress = true;
}

bool wait_progress(void)
{
    bool p = progress;

    progress = false;
    return p;
}
