/* fiber.c - guarded stacks and the context switch: assembly for x86-64 and aarch64, ucontext elsewhere. */
#include "fiber.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define GUARD 4096u

static struct fiber pool[MAX_FIBERS];

#if defined(__x86_64__) && !defined(SIMT_UCONTEXT)

/* Ends in a jump instead of 'ret': the return predictor knows nothing of other stacks. */
__asm__(".text\n.p2align 4\n.globl fiber_switch\n.hidden fiber_switch\n.type fiber_switch,@function\n"
        "fiber_switch:\n"
        "  pushq %rbp\n  pushq %rbx\n  pushq %r12\n  pushq %r13\n  pushq %r14\n  pushq %r15\n"
        "  movq %rsp, (%rdi)\n  movq %rsi, %rsp\n"
        "  popq %r15\n  popq %r14\n  popq %r13\n  popq %r12\n  popq %rbx\n  popq %rbp\n"
        "  popq %rcx\n  jmp *%rcx\n"
        ".size fiber_switch,.-fiber_switch\n");

/* The same for functions that have switched (RETURNS_ANYWHERE). */
__asm__(".text\n.p2align 4\n.globl __x86_return_thunk\n.hidden __x86_return_thunk\n"
        ".type __x86_return_thunk,@function\n"
        "__x86_return_thunk:\n  popq %r11\n  jmp *%r11\n"
        ".size __x86_return_thunk,.-__x86_return_thunk\n");

static void *initial_sp(char *top, void (*entry)(void))
{
    void **sp = (void **)((uintptr_t)top & ~(uintptr_t)15);

    *--sp = NULL; /* the return address of entry(), which never returns: keeps the stack aligned as after a call */
    *--sp = (void *)entry;
    for (int i = 0; i < 6; i++)
        *--sp = NULL;
    return sp;
}

#elif defined(__aarch64__) && !defined(SIMT_UCONTEXT)

__asm__(".text\n.p2align 4\n.globl fiber_switch\n.hidden fiber_switch\n.type fiber_switch,%function\n"
        "fiber_switch:\n"
        "  sub sp, sp, #160\n"
        "  stp x19, x20, [sp]\n  stp x21, x22, [sp, #16]\n  stp x23, x24, [sp, #32]\n  stp x25, x26, [sp, #48]\n"
        "  stp x27, x28, [sp, #64]\n  stp x29, x30, [sp, #80]\n"
        "  stp d8, d9, [sp, #96]\n  stp d10, d11, [sp, #112]\n  stp d12, d13, [sp, #128]\n  stp d14, d15, [sp, #144]\n"
        "  mov x9, sp\n  str x9, [x0]\n  mov sp, x1\n"
        "  ldp x19, x20, [sp]\n  ldp x21, x22, [sp, #16]\n  ldp x23, x24, [sp, #32]\n  ldp x25, x26, [sp, #48]\n"
        "  ldp x27, x28, [sp, #64]\n  ldp x29, x30, [sp, #80]\n"
        "  ldp d8, d9, [sp, #96]\n  ldp d10, d11, [sp, #112]\n  ldp d12, d13, [sp, #128]\n  ldp d14, d15, [sp, #144]\n"
        "  add sp, sp, #160\n  br x30\n"
        ".size fiber_switch,.-fiber_switch\n");

static void *initial_sp(char *top, void (*entry)(void))
{
    void **sp = (void **)((uintptr_t)top & ~(uintptr_t)15) - 20;

    memset(sp, 0, 160);
    sp[11] = (void *)entry;
    return sp;
}

#else
#include <stdlib.h>
#include <ucontext.h>

/* sp points at a ucontext_t: one per fiber at the top of its stack, one for the main context. */
void fiber_switch(void **save, void *to)
{
    ucontext_t here;

    *save = &here;
    swapcontext(&here, to);
}

static void *initial_sp(char *top, void (*entry)(void))
{
    ucontext_t *u = (ucontext_t *)((uintptr_t)(top - sizeof *u) & ~(uintptr_t)63);
    char *low = top - FIBER_STACK / 2;

    getcontext(u);
    u->uc_stack.ss_sp = low;
    u->uc_stack.ss_size = (size_t)((char *)u - low);
    u->uc_link = NULL;
    makecontext(u, entry, 0);
    return u;
}
#endif

struct fiber *fiber_get(int i)
{
    struct fiber *f = &pool[i];
    char *p;

    if (f->stack)
        return f;
    p = mmap(NULL, GUARD + FIBER_STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED)
        return NULL;
    mprotect(p, GUARD, PROT_NONE);
    f->stack = p + GUARD;
    return f;
}

char *fiber_top(const struct fiber *f)
{
    /* Equal offsets would put the hot frames of all threads into the same cache sets. */
    size_t colour = (size_t)((f - pool) * 5 % 48) * 64;

    return f->stack + FIBER_STACK - colour;
}

void fiber_arm(struct fiber *f, void (*entry)(void))
{
    f->sp = initial_sp(fiber_top(f), entry);
    f->fresh = true;
    f->thread = -1;
}

bool fiber_guards(const struct fiber *f, const void *addr)
{
    const char *a = addr;

    return f && f->stack && a >= f->stack - GUARD && a < f->stack;
}
