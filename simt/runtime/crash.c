/* crash.c - faults become findings. In a kernel the handler jumps out of the launch; in guarded host code it jumps
 * out of the call; elsewhere it records, tells the owner of the process, and lets the old action happen.
 *
 * The thread may have faulted inside malloc and hold its lock: nothing that the handler calls may allocate. Nor can the
 * process go on then, so such faults end it even in a kernel or in guarded code. */
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <link.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "runtime.h"

static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
#define N_SIGNALS (sizeof signals / sizeof signals[0])
#define ALT_STACK (64u << 10)

static struct sigaction old_action[N_SIGNALS];
THREAD_LOCAL sigjmp_buf *guard;   /* of the innermost simt_call_guarded */
THREAD_LOCAL sigjmp_buf *looking; /* of the handler, while it reads what may not be there */
THREAD_LOCAL bool have_stack;
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

/* ---- the allocator ---- */

static const char *const allocator_names[] = {"malloc", "free", "calloc", "realloc", "reallocarray", "memalign",
                                              "aligned_alloc", "posix_memalign", "valloc", "malloc_trim"};
#define N_ALLOCATOR (sizeof allocator_names / sizeof allocator_names[0])
static struct { uintptr_t lo, hi; } allocator[N_ALLOCATOR], libc;
static struct abort_message { unsigned bytes; char text[]; } **abort_message; /* of glibc: why it aborts */

/* Before anything happens: the linker allocates. */
static void find_allocator(void)
{
    static bool done;

    if (done)
        return;
    done = true;
    abort_message = dlvsym(RTLD_DEFAULT, "__abort_msg", "GLIBC_PRIVATE");
    for (size_t i = 0; i < N_ALLOCATOR; i++) {
        void *fn = dlsym(RTLD_DEFAULT, allocator_names[i]), *symbol = NULL;
        Dl_info info;

        if (!fn || !dladdr1(fn, &info, &symbol, RTLD_DL_SYMENT) || !symbol)
            continue;
        allocator[i].lo = (uintptr_t)fn;
        allocator[i].hi = (uintptr_t)fn + ((const ElfW(Sym) *)symbol)->st_size;
        if (i == 0 && !image_of(fn, &libc.lo, &libc.hi))
            libc.lo = libc.hi = 0;
    }
}

static bool in_allocator(uintptr_t addr)
{
    for (size_t i = 0; i < N_ALLOCATOR; i++)
        if (addr - allocator[i].lo < allocator[i].hi - allocator[i].lo)
            return true;
    return false;
}

static bool in_libc(uintptr_t addr)
{
    return addr - libc.lo < libc.hi - libc.lo;
}

/* Has libc, which faulted, come from the allocator? The functions that do its work have no names: their callers are on
 * the stack, below the code that called libc. */
static bool faulted_in_allocator(const void *pc, const uintptr_t *sp, const uintptr_t *end)
{
    if (!in_libc((uintptr_t)pc))
        return false;
    for (uintptr_t at = (uintptr_t)pc; !in_allocator(at); at = *sp++)
        if (sp == end || (is_code(at) && !in_libc(at)))
            return false;
    return true;
}

/* "PROGRAM: " in front of an assertion's words: whose process it was says nothing. */
static size_t name_at_start(const char *text)
{
    size_t n = strlen(program_invocation_short_name);

    return !strncmp(text, program_invocation_short_name, n) && !strncmp(text + n, ": ", 2) ? n + 2 : 0;
}

/* glibc's words, if it aborts by itself and gives them; once, for it keeps them. */
static bool take_abort_message(char *out, size_t n)
{
    struct abort_message *m = abort_message ? *abort_message : NULL;

    out[0] = 0;
    if (!m)
        return false;
    *abort_message = NULL;
    snprintf(out, n, "%s", m->text + name_at_start(m->text));
    out[strcspn(out, "\n")] = 0;
    return out[0] != 0;
}

static bool about_the_heap(const char *message)
{
    static const char *const words[] = {"malloc", "free", "realloc", "corrupted", "chunk"};

    for (size_t i = 0; i < sizeof words / sizeof words[0] && !strstr(message, "ssertion `"); i++)
        if (strstr(message, words[i]))
            return true;
    return false;
}

/* ---- the place ---- */

#define HOST_WORDS 512 /* of a host stack that are searched */

struct place {
    const void *pc;
    bool call;      /* a return address */
    bool allocator; /* it faulted inside malloc or the like */
};

/* Code may fault inside a function that it called (an atomic, memcpy, abort): then the first return address on the
 * stack that lies in the candidate's own code is the place to name. */
static void blame(struct place *p, const uintptr_t *sp, bool kernel_code)
{
    const uintptr_t *end = sp + HOST_WORDS;
    struct source_line l;
    const void *found;

    if (memory_mover()) {
        p->pc = memory_mover();
        p->call = true;
        return;
    }
    l = line_of(p->pc);
    if (!sp || (l.line && strncmp(l.file, "simt/runtime/", 13)))
        return;
    if (kernel_code) {
        if (!run.current || (uintptr_t)sp - (uintptr_t)run.current->stack >= FIBER_STACK)
            return;
        end = (const uintptr_t *)(const void *)(run.current->stack + FIBER_STACK);
    }
    p->allocator = faulted_in_allocator(p->pc, sp, end);
    if (!(found = own_return_address(sp, end)))
        return;
    p->pc = found;
    p->call = true;
}

/* The stack may be what is broken, or end early: a fault in here comes back to here, and what is known until then is
 * the answer. */
static struct place place_of(const void *context, bool kernel_code)
{
    THREAD_LOCAL struct place p;
    sigjmp_buf here;

    p = (struct place){pc_of(context), false, false};
    if (sigsetjmp(here, 0) == 0) {
        looking = &here;
        blame(&p, (const uintptr_t *)((uintptr_t)sp_of(context) & ~(uintptr_t)7), kernel_code);
    }
    looking = NULL;
    return p;
}

#define NEAR (1u << 20) /* a fault this close to a tensor is called an overrun of it */

static void report_address(const char *who, uintptr_t addr, bool kernel_code, const void *pc, bool call)
{
    const struct range *r = memory_nearest(addr);
    bool near = r && addr + NEAR > r->lo && addr < r->hi + NEAR;
    char where[160];

    memory_describe(addr, 1, where, sizeof where);
    if (!kernel_code && memory_is_device(addr))
        finding("host_access", pc, call, "host code touches device memory (%s); only kernels and cudaMemcpy may",
                where);
    else if (addr < 65536)
        finding("illegal_access", pc, call, "%s follows a null pointer (address 0x%lx)", who, (unsigned long)addr);
    else if (kernel_code && near && !(addr >= r->lo && addr < r->hi))
        finding("out_of_bounds", pc, call, "access %s", where);
    else
        finding("illegal_access", pc, call, "%s touches address 0x%lx, which is %s memory", who, (unsigned long)addr,
                kernel_code ? "not device" : "not mapped");
}

/* True if the process cannot go on: the heap is broken, or locked for good. */
static bool report_fault(int sig, const siginfo_t *info, const void *context, bool kernel_code)
{
    const char *who = kernel_code ? "the kernel" : "host code";
    struct place p = place_of(context, kernel_code);
    const void *pc = p.pc;
    bool call = p.call;
    char why[200] = "";

    if (sig == SIGABRT && take_abort_message(why, sizeof why)) /* its words tell more than what lies on the stack */
        p.allocator = about_the_heap(why);
    if (p.allocator)
        finding("crash", pc, call, "the heap is corrupted: %s has written outside of a block, or has freed what it "
                "must not (%s)", who, why[0] ? why : "a fault inside malloc or free");
    else if (sig == SIGFPE)
        finding("crash", pc, call, "integer division by zero in %s", kernel_code ? "a kernel" : "host code");
    else if (sig == SIGILL)
        finding("assertion", pc, call, "%s executes a trap", who);
    else if (sig == SIGABRT)
        finding("assertion", pc, call, "%s aborts: %s", who,
                why[0] ? why : "a failed assertion or an uncaught exception");
    else if (info->si_code == SI_KERNEL)
        finding("misaligned", pc, call, "%s accesses memory at a misaligned or impossible address", who);
    else if (kernel_code && fiber_guards(run.current, info->si_addr))
        finding("crash", pc, call, "a thread needs more than %u KB of stack: local arrays are too large or recursion "
                                   "too "
                "deep", FIBER_STACK >> 10);
    else
        report_address(who, (uintptr_t)info->si_addr, kernel_code, pc, call);
    return p.allocator;
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
    bool kernel = in_my_kernel();

    if (looking)
        siglongjmp(*looking, 1);
    if (!report_fault(sig, info, context, kernel)) {
        if (kernel) {
            device_error_sticky(error_of(sig, info));
            siglongjmp(run.escape, 1);
        }
        if (guard)
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
    find_allocator();
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
    int depth = memory_depth();

    crash_install();
    if (sigsetjmp(here, 1) != 0) {
        guard = outer;
        memory_abandon();
        findings_abandon();
        memory_close_to(depth);
        launch_abandon();
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

/* ---- a kernel whose time is up ---- */

static int (*stop_wanted)(void);

/* "; 31 threads of its block wait at a __syncthreads(), 4 have returned": what tells of a thread that never comes. */
static void describe_others(char *out, size_t n)
{
    const struct block *b = &run.block;
    size_t at = 0;

    out[0] = 0;
    if (b->arrived)
        at = (size_t)snprintf(out, n, "; %d thread%s of its block wait%s at a __syncthreads()", b->arrived,
                              b->arrived == 1 ? "" : "s", b->arrived == 1 ? "s" : "");
    if (b->exited && at < n)
        snprintf(out + at, n - at, "%s %d %s returned", at ? "," : "; of its block", b->exited,
                 b->exited == 1 ? "has" : "have");
}

static void on_stop(int sig, siginfo_t *info, void *context)
{
    char others[160];
    struct place p;

    (void)sig, (void)info;
    if (!in_my_kernel() || (stop_wanted && !stop_wanted()))
        return;
    p = place_of(context, true);
    describe_others(others, sizeof others);
    finding("still_running", p.pc, p.call, "this thread is still running (block %lu of %lu)%s",
            (unsigned long)run.block_index + 1, (unsigned long)run.blocks, others);
    if (fatal_hook)
        fatal_hook();
}

void simt_set_stop_signal(int sig, int (*wanted)(void))
{
    struct sigaction ours = {0};

    crash_install();
    stop_wanted = wanted;
    ours.sa_sigaction = on_stop;
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
    sigaction(sig, &ours, NULL);
}
