/* crash.c - faults become findings. In a kernel the handler jumps out of the launch; in guarded host code it jumps
 * out of the call; elsewhere it records, tells the owner of the process, and lets the old action happen. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "runtime.h"

static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
#define N_SIGNALS (sizeof signals / sizeof signals[0])
#define ALT_STACK (64u << 10)

static struct sigaction old_action[N_SIGNALS];
static __thread sigjmp_buf *guard; /* of the innermost simt_call_guarded */
static __thread bool have_stack;
static void (*fatal_hook)(void);

static const void *pc_of(const void *context)
{
#if defined(__x86_64__)
    return (const void *)((const ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
    return (const void *)((const ucontext_t *)context)->uc_mcontext.pc;
#else
    return NULL;
#endif
}

static const uintptr_t *sp_of(const void *context)
{
#if defined(__x86_64__)
    return (const uintptr_t *)((const ucontext_t *)context)->uc_mcontext.gregs[REG_RSP];
#elif defined(__aarch64__)
    return (const uintptr_t *)((const ucontext_t *)context)->uc_mcontext.sp;
#else
    return NULL;
#endif
}

#define HOST_WORDS 512 /* of a host stack that are searched */

/* Code may fault inside a function that it called (an atomic, memcpy, abort): then the first return address on the
 * stack that lies in the candidate's own code is the place to name. Sets *call when it is a return address. */
static const void *blame(const void *context, bool kernel_code, bool *call)
{
    const void *pc = pc_of(context), *found;
    const uintptr_t *sp = sp_of(context), *end = sp + HOST_WORDS;
    struct source_line l = line_of(pc);

    *call = false;
    if (!sp || (l.line && strncmp(l.file, "simt/runtime/", 13)))
        return pc;
    if (kernel_code) {
        if (!run.current || (uintptr_t)sp - (uintptr_t)run.current->stack >= FIBER_STACK)
            return pc;
        end = (const uintptr_t *)(const void *)(run.current->stack + FIBER_STACK);
    }
    found = own_return_address((const uintptr_t *)((uintptr_t)sp & ~(uintptr_t)7), end);
    *call = found != NULL;
    return found ? found : pc;
}

#define NEAR (1u << 20) /* a fault this close to a tensor is called an overrun of it */

static void report_address(const char *who, uintptr_t addr, bool kernel_code, const void *pc, bool call)
{
    const struct range *r = memory_nearest(addr);
    bool near = r && addr + NEAR > r->lo && addr < r->hi + NEAR;
    char where[160];

    memory_describe(addr, 1, where, sizeof where);
    if (!kernel_code && memory_is_device(addr))
        finding("host_access", pc, call, "host code touches device memory (%s); only kernels and cudaMemcpy may", where);
    else if (addr < 65536)
        finding("illegal_access", pc, call, "%s follows a null pointer (address 0x%lx)", who, (unsigned long)addr);
    else if (kernel_code && near && !(addr >= r->lo && addr < r->hi))
        finding("out_of_bounds", pc, call, "access %s", where);
    else
        finding("illegal_access", pc, call, "%s touches address 0x%lx, which is %s memory", who, (unsigned long)addr,
                kernel_code ? "not device" : "not mapped");
}

static void report_fault(int sig, const siginfo_t *info, const void *context, bool kernel_code)
{
    const char *who = kernel_code ? "the kernel" : "host code";
    bool call;
    const void *pc = blame(context, kernel_code, &call);

    if (sig == SIGFPE)
        finding("crash", pc, call, "integer division by zero in %s", kernel_code ? "a kernel" : "host code");
    else if (sig == SIGILL)
        finding("assertion", pc, call, "%s executes a trap", who);
    else if (sig == SIGABRT)
        finding("assertion", pc, call, "%s aborts: a failed assertion or an uncaught exception", who);
    else if (info->si_code == SI_KERNEL)
        finding("misaligned", pc, call, "%s accesses memory at a misaligned or impossible address", who);
    else if (kernel_code && fiber_guards(run.current, info->si_addr))
        finding("crash", pc, call, "a thread needs more than %u KB of stack: local arrays are too large or recursion too "
                "deep", FIBER_STACK >> 10);
    else
        report_address(who, (uintptr_t)info->si_addr, kernel_code, pc, call);
}

static int error_of(int sig, const siginfo_t *info)
{
    if (sig == SIGABRT || sig == SIGILL)
        return CUDA_ASSERT;
    if (sig == SIGSEGV && info->si_code == SI_KERNEL)
        return CUDA_MISALIGNED;
    return sig == SIGFPE ? CUDA_LAUNCH_FAILURE : CUDA_ILLEGAL_ADDRESS;
}

static void give_back(int sig)
{
    for (size_t i = 0; i < N_SIGNALS; i++)
        if (signals[i] == sig)
            sigaction(sig, &old_action[i], NULL);
}

static void on_fault(int sig, siginfo_t *info, void *context)
{
    if (run.in_kernel && pthread_equal(run.owner, pthread_self())) {
        report_fault(sig, info, context, true);
        device_error_sticky(error_of(sig, info));
        memory_abandon();
        siglongjmp(run.escape, 1);
    }
    report_fault(sig, info, context, false);
    if (guard) {
        memory_abandon();
        memory_close_all();
        siglongjmp(*guard, 1);
    }
    if (fatal_hook)
        fatal_hook();
    give_back(sig);
    if (sig == SIGABRT || info->si_code <= 0) /* sent, not caused: returning would lose it */
        raise(sig);
}

static void own_signal_stack(void)
{
    stack_t s = {0}, old;

    if (have_stack)
        return;
    have_stack = true;
    if (sigaltstack(NULL, &old) == 0 && !(old.ss_flags & SS_DISABLE) && old.ss_size >= ALT_STACK)
        return;
    s.ss_size = ALT_STACK;
    s.ss_sp = mmap(NULL, s.ss_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (s.ss_sp != MAP_FAILED)
        sigaltstack(&s, NULL);
}

/* Others (Python's faulthandler, a test framework) may have put theirs on top of ours: look every time. */
void crash_install(void)
{
    own_signal_stack();
    for (size_t i = 0; i < N_SIGNALS; i++) {
        struct sigaction now, ours = {0};

        if (sigaction(signals[i], NULL, &now) == 0 && (now.sa_flags & SA_SIGINFO) && now.sa_sigaction == on_fault)
            continue;
        old_action[i] = now;
        ours.sa_sigaction = on_fault;
        ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
        sigaction(signals[i], &ours, NULL);
    }
}

int simt_call_guarded(void (*fn)(void *ctx), void *ctx)
{
    sigjmp_buf here, *outer = guard;

    crash_install();
    if (sigsetjmp(here, 1) != 0) {
        guard = outer;
        return -1;
    }
    guard = &here;
    fn(ctx);
    guard = outer;
    return 0;
}

void simt_set_fatal_hook(void (*hook)(void))
{
    fatal_hook = hook;
    crash_install();
}
