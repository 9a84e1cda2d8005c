/* fiber.h - stackful coroutines for the threads of a block. A fiber is a guarded stack and a saved stack pointer;
 * switching is ten instructions. Stacks are mapped once per process and reused. */
#ifndef SIMT_FIBER_H
#define SIMT_FIBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FIBER_STACK (256u << 10) /* bytes, guard page below not included; touched pages only become real memory */

struct fiber {
    void *sp;
    struct fiber *next;  /* the list that it waits in */
    char *stack;         /* lowest usable byte */
    int thread;          /* linear index in the block of the thread that runs here */
    bool fresh;          /* has never run since it was (re)armed */
    struct spin {        /* what the thread last looked at without finding it changed (wait.c) */
        const void *pc, *addr;
        uint64_t value;
        uintptr_t read; /* where it read before that: who reads on does not wait */
        unsigned times;
    } spin;
    const void *wait_pc; /* of __activemask, while it waits there */
    unsigned __int128 active; /* and its answer */
};

#define MAX_FIBERS 1024

/* Of shuffles, which kernels call and which switch: other fibers have called meanwhile, so the return predictor names
 * another place nearly each time. They jump back, which is predicted by the jumps before. */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(SIMT_UCONTEXT)
#define RETURNS_ANYWHERE __attribute__((function_return("thunk-extern")))
#else
#define RETURNS_ANYWHERE
#endif

/* Fiber i of the pool, 0 <= i < 1024, with its stack mapped; NULL if memory is exhausted. */
struct fiber *fiber_get(int i);
/* Makes f start in entry() when it is next switched to. What ran on its stack is gone. */
void fiber_arm(struct fiber *f, void (*entry)(void));
/* Saves the running context in *save and continues 'to'. */
void fiber_switch(void **save, void *to);
/* The stack's end: where the frames of entry() begin. */
char *fiber_top(const struct fiber *f);
/* Does the address lie in the guard page below f's stack, or just above its end? */
bool fiber_guards(const struct fiber *f, const void *addr);

#endif
