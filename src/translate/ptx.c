/* ptx.c - inline PTX to C++: statements, operands, and the table of instructions. ptx_emit_NAME appends the C++ of
 * the instruction; ptx_plain_NAME: does litetorch/ptx_plain.h have it? */
#include "translate/ptx.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { MAX_PARTS = 16, MAX_ARGS = 64, MAX_TEMPLATE = 16 << 10 }; /* names are looked up by searching */

struct ptx_span {
    const char *p;
    size_t n;
};

struct ptx {
    bool extended, plain; /* plain: for litetorch/ptx_plain.h */
    const struct ptx_operand *operands;
    size_t n;
    struct buf out;     /* the statements so far */
    struct buf decls;   /* local registers and labels */
    char failed[96];    /* first instruction outside of the table; "" if none */
};

/* One instruction: opcode parts "mul" "wide" "u32", and its operands with their groups opened. */
struct insn {
    struct ptx_span whole, part[MAX_PARTS];
    int n_parts;
    struct ptx_span arg[MAX_ARGS];
    char group[MAX_ARGS]; /* 'v': of a {list}; 'a': an [address]; 0 */
    int n_args;
    int dst, src;         /* how many of the args are of the first, and of the second {list} */
};

static bool ptx_span_is(struct ptx_span s, const char *text)
{
    return s.n == strlen(text) && !memcmp(s.p, text, s.n);
}

static struct ptx_span ptx_trim(struct ptx_span s)
{
    while (s.n && isspace((unsigned char)s.p[0]))
        s.p++, s.n--;
    while (s.n && isspace((unsigned char)s.p[s.n - 1]))
        s.n--;
    return s;
}

/* Is the span one of the words, which are parted by single spaces? */
static bool ptx_word_of(struct ptx_span s, const char *words)
{
    for (const char *w = words; *w;) {
        size_t n = strcspn(w, " ");

        if (n == s.n && !memcmp(w, s.p, n))
            return true;
        w += n;
        w += *w == ' ';
    }
    return false;
}

/* Keeps the first part that is not understood. */
static void ptx_fail(struct ptx *x, struct ptx_span what)
{
    if (x->failed[0])
        return;
    for (size_t i = 0; i < what.n && i + 1 < sizeof x->failed; i++) {
        char ch = what.p[i];

        x->failed[i] = ch == '"' || ch == '\\' || !isprint((unsigned char)ch) ? ' ' : ch;
        x->failed[i + 1] = 0;
    }
    if (!x->failed[0])
        strcpy(x->failed, "an empty instruction");
}

/* ---- operands ---- */

static const char *const special[][2] = {
    {"%tid.x", "threadIdx.x"}, {"%tid.y", "threadIdx.y"}, {"%tid.z", "threadIdx.z"},
    {"%ctaid.x", "blockIdx.x"}, {"%ctaid.y", "blockIdx.y"}, {"%ctaid.z", "blockIdx.z"},
    {"%ntid.x", "blockDim.x"}, {"%ntid.y", "blockDim.y"}, {"%ntid.z", "blockDim.z"},
    {"%nctaid.x", "gridDim.x"}, {"%nctaid.y", "gridDim.y"}, {"%nctaid.z", "gridDim.z"},
    {"%laneid", "::simt::ptx::laneid()"}, {"%warpid", "::simt::ptx::warpid()"},
    {"%smid", "::simt::ptx::smid()"}, {"%nsmid", "132u"}, {"WARP_SZ", "unsigned(warpSize)"},
    {"%clock", "unsigned(clock64())"}, {"%clock64", "clock64()"}, {"%globaltimer", "clock64()"},
    {"%lanemask_eq", "(1u << ::simt::ptx::laneid())"}, {"%lanemask_lt", "((1u << ::simt::ptx::laneid()) - 1u)"},
    {"%lanemask_le", "((2u << ::simt::ptx::laneid()) - 1u)"}, {"%lanemask_gt", "(~0u << ::simt::ptx::laneid() << 1)"},
    {"%lanemask_ge", "(~0u << ::simt::ptx::laneid())"}, {"%dynamic_smem_size", "::simt::ptx::dynamic_smem()"}};

/* Appends the C++ variable's name of a register. */
static void ptx_add_register(struct buf *b, struct ptx_span s)
{
    buf_adds(b, "simt_r_");
    for (size_t i = 0; i < s.n; i++)
        buf_addc(b, isalnum((unsigned char)s.p[i]) ? s.p[i] : '_');
}

/* "%3" or "%[name]": the operand's index, or -1. */
static int ptx_operand_index(const struct ptx *x, struct ptx_span s)
{
    size_t k = 0;

    if (!x->extended || s.n < 2 || s.p[0] != '%')
        return -1;
    if (s.p[1] == '[') {
        for (size_t i = 0; i < x->n; i++)
            if (x->operands[i].name && x->operands[i].n_name == s.n - 3 &&
                !memcmp(x->operands[i].name, s.p + 2, s.n - 3))
                return (int)i;
        return -1;
    }
    for (size_t i = 1; i < s.n; i++) {
        if (!isdigit((unsigned char)s.p[i]) || k > x->n)
            return -1;
        k = k * 10 + (size_t)(s.p[i] - '0');
    }
    return k < x->n ? (int)k : -1;
}

/* Appends a number; floats of hexadecimal bits become calls. */
static void ptx_add_number(struct buf *b, struct ptx_span s)
{
    if (s.n == 10 && (!memcmp(s.p, "0f", 2) || !memcmp(s.p, "0F", 2)))
        buf_addf(b, "::simt::ptx::bits_f32(0x%.8su)", s.p + 2);
    else if (s.n == 18 && (!memcmp(s.p, "0d", 2) || !memcmp(s.p, "0D", 2)))
        buf_addf(b, "::simt::ptx::bits_f64(0x%.16sull)", s.p + 2);
    else
        buf_addf(b, "(%.*s)", (int)s.n, s.p);
}

/* True if the register has been declared. */
static bool ptx_declared(const struct ptx *x, struct ptx_span s)
{
    struct buf name;
    bool found;

    buf_init(&name, 256);
    buf_addc(&name, ' ');
    ptx_add_register(&name, s);
    buf_adds(&name, " =");
    found = strstr(x->decls.p, name.p) != NULL;
    buf_free(&name);
    return found;
}

/* Appends the C++ expression of an operand. */
static void ptx_add_value(struct ptx *x, struct ptx_span s)
{
    struct buf *b = &x->out;
    bool minus;
    int k;

    s = ptx_trim(s);
    if (!s.n)
        return ptx_fail(x, x->failed[0] ? s : (struct ptx_span){"a missing operand", 17});
    if (s.p[0] == '!') {
        buf_addc(b, '!');
        return ptx_add_value(x, (struct ptx_span){s.p + 1, s.n - 1});
    }
    if ((k = ptx_operand_index(x, s)) >= 0) {
        buf_addf(b, "simt_%d", k);
        return;
    }
    if (x->extended && s.n > 1 && s.p[0] == '%' && s.p[1] == '%')
        s.p++, s.n--;
    for (size_t i = 0; i < sizeof special / sizeof special[0]; i++)
        if (ptx_span_is(s, special[i][0]) && !(x->plain && ptx_word_of(s, "%smid %nsmid %globaltimer "
                                                                          "%dynamic_smem_size"))) {
            buf_adds(b, special[i][1]);
            return;
        }
    minus = s.p[0] == '-' && s.n > 1;
    if (isdigit((unsigned char)s.p[minus]))
        return ptx_add_number(b, s);
    if (ptx_span_is(s, "_")) {
        buf_adds(b, "::simt::ptx::sink()");
        return;
    }
    for (size_t i = 0; i < s.n; i++)
        if (!isalnum((unsigned char)s.p[i]) && !strchr("_%$.", s.p[i]))
            return ptx_fail(x, s);
    if (s.p[0] == '%' && !ptx_declared(x, s)) /* a special register outside of the table */
        return ptx_fail(x, s);
    ptx_add_register(b, s);
}

/* "[reg+16]" in a state space. */
static void ptx_add_address(struct ptx *x, struct ptx_span s, const char *space)
{
    size_t plus = 0;

    while (plus < s.n && s.p[plus] != '+')
        plus++;
    buf_addf(&x->out, "(::simt::ptx::%s(", space);
    ptx_add_value(x, (struct ptx_span){s.p, plus});
    buf_adds(&x->out, ")");
    if (plus < s.n) {
        buf_adds(&x->out, " + (long)");
        ptx_add_value(x, (struct ptx_span){s.p + plus + 1, s.n - plus - 1});
    }
    buf_adds(&x->out, ")");
}

/* ---- one instruction, taken apart ---- */

/* Splits an opcode at its dots. */
static void ptx_take_parts(struct insn *in, struct ptx_span op)
{
    in->whole = op;
    in->n_parts = 0;
    for (size_t i = 0; i <= op.n && in->n_parts < MAX_PARTS;) {
        size_t k = i;

        while (k < op.n && op.p[k] != '.')
            k++;
        in->part[in->n_parts++] = (struct ptx_span){op.p + i, k - i};
        i = k + 1;
    }
}

/* Appends an operand, trimmed; empty ones and those beyond the limit are dropped. */
static void ptx_add_arg(struct insn *in, struct ptx_span s, char group)
{
    s = ptx_trim(s);
    if (!s.n || in->n_args == MAX_ARGS)
        return;
    in->group[in->n_args] = group;
    in->arg[in->n_args++] = s;
}

/* "a|b" is two destinations. */
static void ptx_add_plain(struct insn *in, struct ptx_span s)
{
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] == '|') {
            ptx_add_arg(in, (struct ptx_span){s.p, i}, 0);
            s = (struct ptx_span){s.p + i + 1, s.n - i - 1};
            break;
        }
    ptx_add_arg(in, s, 0);
}

/* The place of the first of the letters in 'stops', or the end. */
static size_t ptx_until(struct ptx_span s, size_t i, const char *stops)
{
    while (i < s.n && !strchr(stops, s.p[i]))
        i++;
    return i;
}

/* Splits the operands of an instruction; vectors and addresses are grouped. */
static void ptx_take_args(struct insn *in, struct ptx_span s)
{
    int lists = 0;

    in->n_args = in->dst = in->src = 0;
    for (size_t i = 0; i < s.n;) {
        size_t k;
        char ch = s.p[i];

        if (ch == '{' || (ch == '[' && !(i > 0 && s.p[i - 1] == '%'))) {
            const char *stop = ch == '{' ? "}" : "]";
            size_t end = i + 1, had = (size_t)in->n_args;

            for (; end < s.n && s.p[end] != *stop; end++) /* %[name] inside of [address] */
                if (s.p[end] == '%' && end + 1 < s.n && s.p[end + 1] == '[')
                    end = ptx_until(s, end, "]");
            for (k = i + 1; k < end;) {
                size_t e = ch == '{' ? ptx_until(s, k, ",") : end;

                if (e > end)
                    e = end;
                ptx_add_arg(in, (struct ptx_span){s.p + k, e - k}, ch == '{' ? 'v' : 'a');
                k = e + 1;
            }
            if (ch == '{' && lists++ < 2)
                *(lists == 1 ? &in->dst : &in->src) = in->n_args - (int)had;
            i = end + 1;
        } else if (ch == ',' || isspace((unsigned char)ch)) {
            i++;
        } else {
            k = i;
            while (k < s.n && s.p[k] != ',')
                k = s.p[k] == '%' && k + 1 < s.n && s.p[k + 1] == '[' ? ptx_until(s, k, "]") + 1 : k + 1;
            ptx_add_plain(in, (struct ptx_span){s.p + i, (k < s.n ? k : s.n) - i});
            i = k;
        }
    }
}

/* ---- the table ---- */

static const char types[]
    = "f16 f16x2 bf16 bf16x2 tf32 f32 f64 f32x2 e4m3 e5m2 e4m3x2 e5m2x2 u8 u16 u32 u64 s8 s16 s32 s64 "
                            "b8 b16 b32 b64 b128 pred u16x2 s16x2";
static const char scopes[] = "cta gpu sys cluster";
static const char orders[] = "relaxed acquire release acq_rel volatile weak mmio sc";

struct ptx_row {
    const char *name;
    const char *variants; /* parts that become part of the function's name */
    const char *ignored;
    void (*emit)(struct ptx *, const struct insn *, const struct ptx_row *); /* NULL: the usual */
    const char *as;       /* function; NULL: the name */
};

static const char *ptx_space_of(const struct insn *in);

/* Appends the operands from number 'from' on. */
static void ptx_add_args(struct ptx *x, const struct insn *in, int from)
{
    const char *space = ptx_space_of(in);

    for (int i = from; i < in->n_args; i++) {
        if (i > from)
            buf_adds(&x->out, ", ");
        if (in->group[i] == 'a')
            ptx_add_address(x, in->arg[i], space ? space : "shared");
        else
            ptx_add_value(x, in->arg[i]);
    }
}

/* "name_variant<types>(args);" */
static void ptx_emit_usual(struct ptx *x, const struct insn *in, const struct ptx_row *r)
{
    int n_types = 0;

    buf_addf(&x->out, "::simt::ptx::%s", r->as ? r->as : r->name);
    for (int i = 1; i < in->n_parts; i++)
        if (ptx_word_of(in->part[i], r->variants))
            buf_addf(&x->out, "_%.*s", (int)in->part[i].n, in->part[i].p);
    for (int i = 1; i < in->n_parts; i++)
        if (ptx_word_of(in->part[i], types) && !ptx_word_of(in->part[i], r->variants) &&
            !ptx_word_of(in->part[i], r->ignored))
            buf_addf(&x->out, "%s%.*s", n_types++ ? ", ::simt::ptx::" : "<::simt::ptx::", (int)in->part[i].n,
                     in->part[i].p);
        else if (!ptx_word_of(in->part[i], r->variants) && !ptx_word_of(in->part[i], r->ignored))
            return ptx_fail(x, in->whole);
    buf_adds(&x->out, n_types ? ">(" : "(");
    ptx_add_args(x, in, 0);
    buf_adds(&x->out, "); ");
}

/* For instructions that have no effect here. */
static void ptx_emit_nothing(struct ptx *x, const struct insn *in, const struct ptx_row *r)
{
    (void)x, (void)in, (void)r;
}

/* Appends mov, with packing and unpacking of vectors. */
static void ptx_emit_mov(struct ptx *x, const struct insn *in, const struct ptx_row *r)
{
    bool unpack = in->n_args > 1 && in->group[0] == 'v', pack = in->n_args > 1 && in->group[1] == 'v';

    (void)r;
    if (in->n_parts != 2)
        return ptx_fail(x, in->whole);
    buf_addf(&x->out, "::simt::ptx::%s<::simt::ptx::%.*s>(", unpack ? "unpack" : pack ? "pack" : "mov",
             (int)in->part[1].n, in->part[1].p);
    if (unpack) { /* the source first */
        ptx_add_value(x, in->arg[in->n_args - 1]);
        for (int i = 0; i < in->n_args - 1; i++) {
            buf_adds(&x->out, ", ");
            ptx_add_value(x, in->arg[i]);
        }
    } else {
        ptx_add_args(x, in, 0);
    }
    buf_adds(&x->out, "); ");
}

/* Which of the parts says where memory is. */
static const char *ptx_space_of(const struct insn *in)
{
    for (int i = 1; i < in->n_parts; i++) {
        if (ptx_word_of(in->part[i], "shared shared::cta"))
            return "shared";
        if (ptx_word_of(in->part[i], "shared::cluster param"))
            return NULL;
    }
    return "global";
}

/* True if a part behind the instruction's name is one of the words. */
static bool ptx_has(const struct insn *in, const char *words)
{
    for (int i = 1; i < in->n_parts; i++)
        if (ptx_word_of(in->part[i], words))
            return true;
    return false;
}

/* The instruction's last type; b32 without one. */
static struct ptx_span ptx_type_of(const struct insn *in)
{
    for (int i = in->n_parts - 1; i > 0; i--)
        if (ptx_word_of(in->part[i], types))
            return in->part[i];
    return (struct ptx_span){"b32", 3};
}

/* True where all parts are types or among the words of a, b or c. */
static bool ptx_only(const struct insn *in, const char *a, const char *b, const char *c)
{
    for (int i = 1; i < in->n_parts; i++)
        if (!ptx_word_of(in->part[i], a) && !ptx_word_of(in->part[i], b) && !ptx_word_of(in->part[i], c) &&
            !ptx_word_of(in->part[i], types))
            return false;
    return true;
}

static const char memory_parts[]
    = "shared shared::cta global local const nc ca cg cs lu cv wb wt v2 v4 v8 L1::no_allocate "
    "L1::evict_first L1::evict_last L1::evict_normal L1::evict_unchanged L2::64B L2::128B L2::256B L2::cache_hint "
    "L2::evict_first L2::evict_last L2::evict_normal";

/* ld.space.v4.f32 {a, b, c, d}, [address]; and the same of st, the other way round */
static void ptx_emit_memory(struct ptx *x, const struct insn *in, const struct ptx_row *r)
{
    const char *space = ptx_space_of(in);
    bool load = !strcmp(r->name, "ld"), weak = !ptx_has(in, "relaxed acquire release volatile mmio");
    const char *how = !weak ? "_volatile" : load && ptx_has(in, "nc") ? "_nc" : "";
    int address = -1;

    for (int i = 0; i < in->n_args && address < 0; i++)
        if (in->group[i] == 'a')
            address = i;
    if (!space || address < 0 || !ptx_only(in, memory_parts, orders, scopes))
        return ptx_fail(x, in->whole);
    if (ptx_has(in, "release"))
        buf_adds(&x->out, "__threadfence(); ");
    buf_addf(&x->out, "::simt::ptx::%s%s<::simt::ptx::%.*s>(", load ? "ld" : "st", how,
             (int)ptx_type_of(in).n, ptx_type_of(in).p);
    ptx_add_address(x, in->arg[address], space);
    for (int i = load ? 0 : address + 1; load ? i < address : i < in->n_args; i++) {
        if (!load && ptx_has(in, "L2::cache_hint") && i == in->n_args - 1)
            break;
        buf_adds(&x->out, ", ");
        ptx_add_value(x, in->arg[i]);
    }
    buf_adds(&x->out, "); ");
}

/* atom.global.add.f32 d, [a], b; red.global.add.f32 [a], b; vectors of red one after the other */
static void ptx_emit_atomic(struct ptx *x, const struct insn *in, const struct ptx_row *r)
{
    const char *space = ptx_space_of(in);
    bool red = !strcmp(r->name, "red");
    int a = 0;

    while (a < in->n_args && in->group[a] != 'a')
        a++;
    if (!space || a == in->n_args || !ptx_only(in,
        "shared shared::cta global noftz v2 v4 v8 add min max and or xor exch cas inc dec",
                                               orders, scopes) || (!red && ptx_has(in, "v2 v4 v8")))
        return ptx_fail(x, in->whole);
    if (ptx_has(in, "release acq_rel"))
        buf_adds(&x->out, "__threadfence(); ");
    for (int i = 1; i < in->n_parts; i++)
        if (ptx_word_of(in->part[i], "add min max and or xor exch cas inc dec"))
            buf_addf(&x->out, "::simt::ptx::%s_%.*s", red ? "red" : "atom", (int)in->part[i].n, in->part[i].p);
    buf_addf(&x->out, "<::simt::ptx::%.*s>(", (int)ptx_type_of(in).n, ptx_type_of(in).p);
    if (!red) {
        ptx_add_value(x, in->arg[0]);
        buf_adds(&x->out, ", ");
    }
    ptx_add_address(x, in->arg[a], space);
    for (int i = a + 1; i < in->n_args; i++) {
        buf_adds(&x->out, ", ");
        ptx_add_value(x, in->arg[i]);
    }
    buf_adds(&x->out, "); ");
}

/* Appends cvt of any types and rounding. */
static void ptx_emit_cvt(struct ptx *x, const struct insn *in, const struct ptx_row *r)
{
    struct ptx_span to = {0}, from = {0}, how = {"rn", 2};

    (void)r;
    for (int i = 1; i < in->n_parts; i++) {
        struct ptx_span p = in->part[i];

        if (ptx_word_of(p, types))
            *(to.n ? &from : &to) = p;
        else if (ptx_word_of(p, "rn rz rm rp rni rzi rmi rpi rna"))
            how = p;
        else if (!ptx_word_of(p, "ftz sat satfinite relu"))
            return ptx_fail(x, in->whole);
    }
    if (!from.n)
        return ptx_fail(x, in->whole);
    buf_addf(&x->out, "::simt::ptx::cvt<::simt::ptx::%.*s, ::simt::ptx::%.*s, ::simt::ptx::%.*s, %s, %s>(", (int)to.n,
             to.p, (int)from.n, from.p, (int)how.n, how.p, ptx_has(in, "sat") ? "true" : "false",
             ptx_has(in, "relu") ? "true" : "false");
    ptx_add_args(x, in, 0);
    buf_adds(&x->out, "); ");
}

/* cvta.to.shared.u64 d, a; cvta.shared.u64 d, a */
static void ptx_emit_cvta(struct ptx *x, const struct insn *in, const struct ptx_row *r)
{
    bool shared = ptx_has(in, "shared shared::cta"), to = ptx_has(in, "to");

    (void)r;
    if (in->n_args != 2 || ptx_has(in, "param local const shared::cluster"))
        return ptx_fail(x, in->whole);
    buf_addf(&x->out, "::simt::ptx::%s(", !shared ? "mov<::simt::ptx::b64>" : to ? "cvta_to_shared" : "cvta_shared");
    ptx_add_args(x, in, 0);
    buf_adds(&x->out, "); ");
}

/* Appends setp. */
static void ptx_emit_setp(struct ptx *x, const struct insn *in, const struct ptx_row *r)
{
    (void)r;
    if (in->n_parts < 3 || in->n_args < 3 || in->n_args > 4 || ptx_has(in, "and or xor"))
        return ptx_fail(x, in->whole);
    buf_addf(&x->out, "::simt::ptx::setp<::simt::ptx::%.*s>(", (int)ptx_type_of(in).n, ptx_type_of(in).p);
    buf_addf(&x->out, x->plain ? "::simt::ptx::how_%.*s, " : "\"%.*s\", ", (int)in->part[1].n, in->part[1].p);
    ptx_add_args(x, in, 0);
    buf_adds(&x->out, "); ");
}

/* cp.async.cg.shared.global [to], [from], bytes {, bytes read}; commit_group; wait_group n; wait_all */
static void ptx_emit_cp(struct ptx *x, const struct insn *in, const struct ptx_row *r)
{
    int n = in->n_args;

    (void)r;
    if (in->n_parts < 3 || !ptx_span_is(in->part[1], "async"))
        return ptx_fail(x, in->whole);
    if (ptx_span_is(in->part[2], "commit_group") && in->n_parts == 3) {
        buf_adds(&x->out, "::simt::ptx::async_commit(); ");
    } else if (ptx_span_is(in->part[2], "wait_all") && in->n_parts == 3) {
        buf_adds(&x->out, "::simt::ptx::async_wait(~0u); ");
    } else if (ptx_span_is(in->part[2], "wait_group") && n == 1) {
        buf_adds(&x->out, "::simt::ptx::async_wait(");
        ptx_add_value(x, in->arg[0]);
        buf_adds(&x->out, "); ");
    } else if (ptx_span_is(in->part[2], "bulk") && n == 4 && ptx_has(in, "mbarrier::complete_tx::bytes") &&
               ptx_has(in, "global") &&
               in->part[3].n > 6 && !memcmp(in->part[3].p, "shared", 6)) {
        buf_adds(&x->out, "::simt::ptx::bulk_copy(");
        ptx_add_address(x, in->arg[0], "shared");
        buf_adds(&x->out, ", ");
        ptx_add_address(x, in->arg[1], "global");
        buf_adds(&x->out, ", ");
        ptx_add_value(x, in->arg[2]);
        buf_adds(&x->out, ", ");
        ptx_add_address(x, in->arg[3], "shared");
        buf_adds(&x->out, "); ");
    } else if (ptx_word_of(in->part[2], "ca cg") && n >= 3 && in->group[0] == 'a' && in->group[1] == 'a') {
        if (ptx_has(in, "L2::cache_hint"))
            n--;
        buf_adds(&x->out, "::simt::ptx::async_copy(");
        ptx_add_address(x, in->arg[0], "shared");
        buf_adds(&x->out, ", ");
        ptx_add_address(x, in->arg[1], "global");
        for (int i = 2; i < n; i++) {
            buf_adds(&x->out, ", ");
            ptx_add_value(x, in->arg[i]);
        }
        buf_adds(&x->out, "); ");
    } else {
        ptx_fail(x, in->whole);
    }
}

/* ldmatrix.sync.aligned.m8n8.x4{.trans}.shared.b16 {..}, [a]; stmatrix likewise, the address first */
static void ptx_emit_matrix(struct ptx *x, const struct insn *in, const struct ptx_row *r)
{
    bool load = !strcmp(r->name, "ldmatrix");
    int address = load ? in->n_args - 1 : 0, n = in->n_args - 1;

    if (!ptx_only(in, "sync aligned m8n8 x1 x2 x4 trans shared shared::cta", "", "") || !ptx_has(in, "m8n8") || n < 1
        || n > 4 ||
        in->group[address] != 'a' || !ptx_span_is(ptx_type_of(in), "b16"))
        return ptx_fail(x, in->whole);
    buf_addf(&x->out, "::simt::ptx::%s<%s>(", r->name, ptx_has(in, "trans") ? "true" : "false");
    ptx_add_address(x, in->arg[address], "shared");
    for (int i = load ? 0 : 1; i < (load ? n : n + 1); i++) {
        buf_adds(&x->out, ", ");
        ptx_add_value(x, in->arg[i]);
    }
    buf_adds(&x->out, "); ");
}

/* mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {d}, {a}, {b}, {c} */
static void ptx_emit_mma(struct ptx *x, const struct insn *in, const struct ptx_row *r)
{
    struct ptx_span t[4];
    int n_types = 0, k = 0;
    struct ptx_span shape = {0};

    (void)r;
    for (int i = 1; i < in->n_parts; i++) {
        struct ptx_span p = in->part[i];

        if (ptx_word_of(p, types) && n_types < 4)
            t[n_types++] = p;
        else if (p.n > 5 && !memcmp(p.p, "m16n8k", 6))
            shape = p;
        else if (!ptx_word_of(p, "sync aligned row col satfinite kind::f8f6f4"))
            return ptx_fail(x, in->whole);
    }
    for (size_t i = 6; i < shape.n; i++)
        k = k * 10 + (shape.p[i] - '0');
    if (n_types != 4 || !shape.n)
        return ptx_fail(x, in->whole);
    buf_addf(&x->out, "::simt::ptx::mma<%d", k);
    for (int i = 0; i < 4; i++)
        buf_addf(&x->out, ", ::simt::ptx::%.*s", (int)t[i].n, t[i].p);
    buf_adds(&x->out, ">::run(");
    ptx_add_args(x, in, 0);
    buf_adds(&x->out, "); ");
}

/* Appends bra as a goto. */
static void ptx_emit_bra(struct ptx *x, const struct insn *in, const struct ptx_row *r)
{
    (void)r;
    if (in->n_args != 1)
        return ptx_fail(x, in->whole);
    buf_adds(&x->out, "goto ");
    ptx_add_register(&x->out, in->arg[0]);
    buf_adds(&x->out, "; ");
}

#define FLOAT "rn rz rm rp ftz approx full"
static const struct ptx_row rows[] = {
    {"mov", "", "", ptx_emit_mov, NULL},
    {"ld", "", "", ptx_emit_memory, NULL},
    {"st", "", "", ptx_emit_memory, NULL},
    {"ldu", "", "", NULL, NULL},
    {"atom", "", "", ptx_emit_atomic, NULL},
    {"red", "", "", ptx_emit_atomic, NULL},
    {"cvt", "", "", ptx_emit_cvt, NULL},
    {"cvta", "", "", ptx_emit_cvta, NULL},
    {"cp", "", "", ptx_emit_cp, NULL},
    {"ldmatrix", "", "", ptx_emit_matrix, NULL},
    {"stmatrix", "", "", ptx_emit_matrix, NULL},
    {"mma", "", "", ptx_emit_mma, NULL},
    {"setp", "", "", ptx_emit_setp, NULL},
    {"bra", "", "", ptx_emit_bra, NULL},
    {"add", "sat cc", FLOAT, NULL, NULL},
    {"sub", "sat", FLOAT, NULL, NULL},
    {"mul", "lo hi wide sat", FLOAT, NULL, NULL},
    {"mad", "lo hi wide", FLOAT, NULL, NULL},
    {"fma", "relu sat", FLOAT, NULL, NULL},
    {"mul24", "lo", "", NULL, NULL},
    {"div", "", FLOAT, NULL, "div_"},
    {"rem", "", "", NULL, "rem_"},
    {"abs", "", "ftz", NULL, "abs_"},
    {"neg", "", "ftz", NULL, NULL},
    {"min", "NaN", "ftz", NULL, "min_"},
    {"max", "NaN", "ftz", NULL, "max_"},
    {"and", "", "", NULL, "and_"},
    {"or", "", "", NULL, "or_"},
    {"xor", "", "", NULL, "xor_"},
    {"not", "", "", NULL, "not_"},
    {"shl", "", "", NULL, NULL},
    {"shr", "", "", NULL, NULL},
    {"shf", "l r wrap clamp", "", NULL, NULL},
    {"lop3", "", "", NULL, NULL},
    {"prmt", "", "", NULL, NULL},
    {"bfe", "", "", NULL, NULL},
    {"bfi", "", "", NULL, NULL},
    {"popc", "", "", NULL, NULL},
    {"clz", "", "", NULL, NULL},
    {"brev", "", "", NULL, NULL},
    {"selp", "", "", NULL, NULL},
    {"dp4a", "", "", NULL, NULL},
    {"ex2", "", FLOAT, NULL, NULL},
    {"lg2", "", FLOAT, NULL, NULL},
    {"rcp", "", FLOAT, NULL, NULL},
    {"sqrt", "", FLOAT, NULL, "sqrt_"},
    {"rsqrt", "", FLOAT, NULL, "rsqrt_"},
    {"sin", "", FLOAT, NULL, "sin_"},
    {"cos", "", FLOAT, NULL, "cos_"},
    {"tanh", "", FLOAT, NULL, "tanh_"},
    {"copysign", "", "", NULL, "copysign_"},
    {"shfl", "sync bfly down up idx", "", NULL, NULL},
    {"vote", "sync any all ballot uni", "", NULL, NULL},
    {"redux", "sync add min max and or xor", "", NULL, NULL},
    {"match", "sync any", "", NULL, NULL},
    {"activemask", "", "", NULL, NULL},
    {"elect", "sync", "", NULL, NULL},
    {"bar", "sync arrive warp red", "cta aligned", NULL, NULL},
    {"barrier", "sync arrive", "cta aligned", NULL, "bar"},
    {"membar", "", "gl sys cta", NULL, "fence"},
    {"fence", "", "acq_rel sc acquire release gpu cta sys cluster proxy async alias global shared::cta async.shared "
                  "mbarrier_init async::generic sync_restrict::shared::cta", NULL, NULL},
    {"nanosleep", "", "u32", NULL, NULL},
    {"trap", "", "", NULL, NULL},
    {"exit", "", "", NULL, NULL},
    {"isspacep", "shared global", "", NULL, NULL},
    {"createpolicy", "", "fractional range L2::evict_last L2::evict_first L2::evict_normal L2::evict_unchanged b64",
        NULL,
     NULL},
    {"mbarrier", "init arrive expect_tx test_wait try_wait inval parity", "shared shared::cta b64 release acquire cta",
     NULL, NULL},
    {"prefetch", "", "", ptx_emit_nothing, NULL},
    {"prefetchu", "", "", ptx_emit_nothing, NULL},
    {"discard", "", "", ptx_emit_nothing, NULL},
    {"applypriority", "", "", ptx_emit_nothing, NULL},
    {"griddepcontrol", "", "", ptx_emit_nothing, NULL},
    {"setmaxnreg", "", "", ptx_emit_nothing, NULL},
    {"pragma", "", "", ptx_emit_nothing, NULL},
    {"brkpt", "", "", ptx_emit_nothing, NULL},
};

/* ---- what litetorch/ptx_plain.h has of it ---- */

/* True if all types of the instruction are among the words. */
static bool ptx_plain_types(const struct insn *in, const char *words)
{
    for (int i = 1; i < in->n_parts; i++)
        if (ptx_word_of(in->part[i], types) && !ptx_word_of(in->part[i], words))
            return false;
    return true;
}

/* True for a cvt that a C cast means as well. */
static bool ptx_plain_cvt(const struct insn *in)
{
    struct ptx_span to = {0}, from = {0};

    for (int i = 1; i < in->n_parts; i++)
        if (ptx_word_of(in->part[i], types))
            to = to.n ? to : in->part[i], from = in->part[i];
    if (ptx_has(in, "sat rz rm rp rni rmi rpi satfinite"))
        return false;
    if (ptx_word_of(to, "f16 bf16 f16x2 bf16x2"))
        return ptx_span_is(from, "f32");
    if (ptx_word_of(from, "f16 bf16"))
        return ptx_span_is(to, "f32");
    if (ptx_span_is(from, "f32"))
        return ptx_span_is(to, "tf32") || (ptx_has(in, "rzi") && ptx_word_of(to, "u32 s32"));
    return ptx_plain_types(in, "f32 u8 s8 u16 s16 u32 s32 u64 s64 b32 b64");
}

static bool ptx_plain_mma(const struct insn *in)
{
    return ptx_plain_types(in, "f32 f16 bf16 tf32") && ptx_has(in, "m16n8k4 m16n8k8 m16n8k16") &&
           !ptx_has(in, "satfinite");
}

static bool ptx_plain_cp(const struct insn *in)
{
    return ptx_has(in, "commit_group wait_group wait_all ca cg");
}

static bool ptx_plain_bar(const struct insn *in)
{
    return ptx_has(in, "sync") && !ptx_has(in, "arrive red") && in->n_args == 1 &&
           (ptx_has(in, "warp") || ptx_span_is(in->arg[0],
        "0"));
}

static bool ptx_plain_shfl(const struct insn *in)
{
    return in->n_args == 5;
}

static bool ptx_plain_mov(const struct insn *in)
{
    return ptx_plain_types(in, "b16 u16 s16 b32 u32 s32 b64 u64 s64 f32 pred f16 bf16 f16x2 bf16x2") &&
           !(in->n_args > 3 && ptx_has(in, "b32"));
}

/* Names that the header has, the types that they work on there, and what more must hold. */
static const struct {
    const char *names, *types, *not_with;
    bool (*also)(const struct insn *);
} plain_rows[] = {
    {"mov", "", "", ptx_plain_mov},
    {"ld st", "b8 u8 s8 b16 u16 s16 b32 u32 s32 b64 u64 s64 f32 f16 bf16 f16x2 bf16x2", "", NULL},
    {"cvt", "", "", ptx_plain_cvt},
    {"cvta", "u64 u32", "", NULL},
    {"cp", "", "bulk", ptx_plain_cp},
    {"ldmatrix stmatrix", "b16", "", NULL},
    {"mma", "", "", ptx_plain_mma},
    {"atom red", "u32 s32 b32 f32", "cas inc dec xor v2 v4 v8", NULL},
    {"setp", "f32 u32 s32 b32 u64 s64 b64 u16 s16 b16", "", NULL},
    {"selp", "f32 u32 s32 b32 u64 s64 b64 u16 s16 b16", "", NULL},
    {"add sub mul mad fma div rem abs neg min max", "f32 u32 s32 u64 s64 u16 s16 b32",
        "wide hi sat cc relu NaN rz rm rp", NULL},
    {"and or xor not shl shr", "b16 b32 b64 u16 u32 u64 s16 s32 s64 pred", "", NULL},
    {"ex2 lg2 rcp sqrt rsqrt sin cos tanh", "f32", "rz rm rp", NULL},
    {"lop3 prmt createpolicy activemask", "b32 b64", "", NULL},
    {"shfl", "b32", "", ptx_plain_shfl},
    {"vote", "b32", "any all uni", NULL},
    {"bar barrier", "", "", ptx_plain_bar},
    {"membar", "", "", NULL},
    {"fence", "", "proxy mbarrier_init cluster", NULL},
    {"prefetch prefetchu bra", "", "", NULL},
};

/* True where plain C++ means the instruction too. */
static bool ptx_plain_has(const struct insn *in)
{
    for (size_t i = 0; i < sizeof plain_rows / sizeof plain_rows[0]; i++)
        if (ptx_word_of(in->part[0], plain_rows[i].names))
            return !ptx_has(in, plain_rows[i].not_with) && (!*plain_rows[i].types || ptx_plain_types(in,
                plain_rows[i].types)) &&
                   (!plain_rows[i].also || plain_rows[i].also(in));
    return false;
}

/* Translates one instruction by its row; one without a row fails the statement. */
static void ptx_emit(struct ptx *x, const struct insn *in)
{
    if (x->plain && !ptx_plain_has(in))
        return ptx_fail(x, in->whole);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (ptx_span_is(in->part[0], rows[i].name)) {
            (rows[i].emit ? rows[i].emit : ptx_emit_usual)(x, in, &rows[i]);
            return;
        }
    ptx_fail(x, in->whole);
}

/* ---- statements ---- */

static const char *const register_types[][2] = {
    {"pred", "bool"}, {"b8", "unsigned char"}, {"u8", "unsigned char"}, {"s8", "signed char"},
    {"b16", "unsigned short"}, {"u16", "unsigned short"}, {"s16", "short"}, {"f16", "unsigned short"},
    {"bf16", "unsigned short"}, {"b32", "unsigned"}, {"u32", "unsigned"}, {"s32", "int"}, {"f16x2", "unsigned"},
    {"bf16x2", "unsigned"}, {"b64", "unsigned long long"}, {"u64", "unsigned long long"}, {"s64", "long long"},
    {"f32", "float"}, {"f64", "double"}};

/* ".reg .b32 a, b<4>" */
static void ptx_declare(struct ptx *x, struct ptx_span s)
{
    const char *type = NULL;
    size_t i = ptx_until(s, 1, "."), k = i + 1;

    while (k < s.n && !isspace((unsigned char)s.p[k]))
        k++;
    for (size_t t = 0; t < sizeof register_types / sizeof register_types[0]; t++)
        if (i < s.n && ptx_span_is((struct ptx_span){s.p + i + 1, k - i - 1}, register_types[t][0]))
            type = register_types[t][1];
    if (!type)
        return ptx_fail(x, s);
    while (k < s.n) {
        size_t e = ptx_until(s, k, ",");
        struct ptx_span name = ptx_trim((struct ptx_span){s.p + k, e - k});
        size_t lt = ptx_until(name, 0, "<");
        int many = lt < name.n ? 0 : -1;

        for (size_t d = lt + 1; many >= 0 && d < name.n && isdigit((unsigned char)name.p[d]) && many < 100; d++)
            many = many * 10 + (name.p[d] - '0');
        name.n = lt;
        if (x->extended && name.n > 1 && name.p[0] == '%' && name.p[1] == '%')
            name.p++, name.n--;
        for (int c = 0; many < 0 ? c < 1 : c < many; c++) {
            buf_addf(&x->decls, "%s ", type);
            ptx_add_register(&x->decls, name);
            if (many >= 0)
                buf_addf(&x->decls, "%d", c);
            buf_adds(&x->decls, " = 0; ");
        }
        k = e + 1;
    }
}

/* Appends one instruction, with its predicate, as C++. */
static void ptx_instruction(struct ptx *x, struct ptx_span s)
{
    struct insn in;
    size_t k = 0;

    if (s.p[0] == '@') {
        k = 1;
        while (k < s.n && !isspace((unsigned char)s.p[k]))
            k++;
        buf_adds(&x->out, "if (");
        ptx_add_value(x, (struct ptx_span){s.p + 1, k - 1});
        buf_adds(&x->out, ") ");
        s = ptx_trim((struct ptx_span){s.p + k, s.n - k});
    }
    for (k = 0; k < s.n && !isspace((unsigned char)s.p[k]);)
        k++;
    ptx_take_parts(&in, (struct ptx_span){s.p, k});
    ptx_take_args(&in, (struct ptx_span){s.p + k, s.n - k});
    buf_adds(&x->out, "{ ");
    ptx_emit(x, &in);
    buf_adds(&x->out, "} ");
}

/* A label stands before an instruction: "LOOP:". */
static struct ptx_span ptx_labels(struct ptx *x, struct ptx_span s)
{
    for (;;) {
        size_t k = 0;

        s = ptx_trim(s);
        while (k < s.n && (isalnum((unsigned char)s.p[k]) || strchr("_$%=", s.p[k])))
            k++;
        if (k == 0 || k >= s.n || s.p[k] != ':' || (k + 1 < s.n && s.p[k + 1] == ':'))
            return s;
        buf_adds(&x->decls, "__label__ ");
        ptx_add_register(&x->decls, (struct ptx_span){s.p, k});
        buf_adds(&x->decls, "; ");
        ptx_add_register(&x->out, (struct ptx_span){s.p, k});
        buf_adds(&x->out, ":; ");
        s = (struct ptx_span){s.p + k + 1, s.n - k - 1};
    }
}

/* Appends one statement: a declaration or an instruction. */
static void ptx_statement(struct ptx *x, struct ptx_span s)
{
    s = ptx_labels(x, s);
    if (!s.n)
        return;
    if (s.n > 4 && !memcmp(s.p, ".reg", 4))
        ptx_declare(x, s);
    else if (s.p[0] == '.' && !(s.n > 7 && !memcmp(s.p, ".pragma", 7)))
        ptx_fail(x, s);
    else if (s.p[0] != '.')
        ptx_instruction(x, s);
}

/* The template without comments. */
static void ptx_strip(const char *text, struct buf *out)
{
    for (const char *p = text; *p;) {
        const char *end;

        if (p[0] == '/' && p[1] == '/') {
            p += strcspn(p, "\n");
        } else if (p[0] == '/' && p[1] == '*' && (end = strstr(p + 2, "*/"))) {
            p = end + 2;
        } else {
            buf_addc(out, *p++);
        }
    }
}

/* Statements end at ';'; a brace opens or closes a scope unless an operand list is open, i.e. unless the statement has
 * begun. */
static void ptx_statements(struct ptx *x, struct ptx_span s)
{
    size_t from = 0;

    for (size_t i = 0; i < s.n; i++) {
        bool begun = ptx_trim((struct ptx_span){s.p + from, i - from}).n > 0;

        if (s.p[i] == ';') {
            ptx_statement(x, (struct ptx_span){s.p + from, i - from});
            from = i + 1;
        } else if ((s.p[i] == '{' || s.p[i] == '}') && !begun) {
            from = i + 1;
        } else if (s.p[i] == '{') {
            i = ptx_until(s, i, "}");
        }
    }
    if (from < s.n)
        ptx_statement(x, (struct ptx_span){s.p + from, s.n - from});
}

void ptx_bind(const struct ptx_operand *operands, size_t i, bool plain, struct buf *before, struct buf *behind)
{
    const char *space = plain ? "musacoder" : "simt";

    buf_addf(before, "%s simt_%zu = (", operands[i].out ? "auto &&" : "const auto", i);
    buf_adds(behind, "); ");
    if (operands[i].tied >= 0)
        buf_addf(behind, "::%s::ptx::mov<::%s::ptx::any>(simt_%d, simt_%zu); ", space, space, operands[i].tied, i);
}

/* Appends the variables that stand for the asm's operands. */
static void ptx_add_bindings(struct buf *out, const struct ptx *x)
{
    struct buf behind;

    for (size_t i = 0; i < x->n; i++) {
        buf_init(&behind, 256);
        ptx_bind(x->operands, i, false, out, &behind);
        buf_add(out, x->operands[i].text, x->operands[i].n_text);
        buf_add(out, behind.p, behind.n);
        buf_free(&behind);
    }
}

/* Some operands no instruction uses. */
static void ptx_add_uses(struct buf *out, const struct ptx *x)
{
    for (size_t i = 0; i < x->n; i++)
        buf_addf(out, "(void)simt_%zu; ", i);
}

/* Translates the asm's text; x->failed tells what is not understood. */
static void ptx_run_template(struct ptx *x, const char *text)
{
    struct buf stripped;

    buf_init(&stripped, BUF_MAX_TEXT);
    buf_init(&x->out, BUF_MAX_TEXT);
    buf_init(&x->decls, BUF_MAX_TEXT);
    ptx_strip(text, &stripped);
    if (stripped.n > MAX_TEMPLATE)
        ptx_fail(x, (struct ptx_span){"of more than 16 KB", 18});
    else
        ptx_statements(x, (struct ptx_span){stripped.p, stripped.n});
    buf_free(&stripped);
}

/* Labels are declared before anything else. */
static void ptx_add_labels(struct buf *out, const struct ptx *x)
{
    for (char *p = x->decls.n ? x->decls.p : NULL; p && (p = strstr(p, "__label__ "));) {
        size_t k = strcspn(p, ";") + 1;

        buf_add(out, p, k);
        memset(p, ' ', k);
    }
}

/* Appends the translated statement, or a call that says it is unsupported. */
static void ptx_add_statement(struct buf *out, const struct ptx *x)
{
    buf_adds(out, "do { ");
    if (x->failed[0]) {
        buf_addf(out, "::simt::ptx::unsupported(\"inline PTX '%s'\"); ", x->failed);
    } else {
        ptx_add_labels(out, x);
        ptx_add_bindings(out, x);
        ptx_add_uses(out, x);
        buf_add(out, x->decls.p, x->decls.n);
        buf_add(out, x->out.p, x->out.n);
    }
    buf_adds(out, "} while (0)");
}

static void ptx_free(struct ptx *x)
{
    buf_free(&x->out);
    buf_free(&x->decls);
}

void ptx_translate(const char *text, bool extended, const struct ptx_operand *operands, size_t n, struct buf *out)
{
    struct ptx x = {.extended = extended, .operands = operands, .n = n};

    ptx_run_template(&x, text);
    ptx_add_statement(out, &x);
    ptx_free(&x);
}

/* Calls of the emulator's functions as calls of the plain header's. */
static void ptx_add_renamed(struct buf *out, const char *p)
{
    static const char emulator[] = "::simt::";

    for (const char *q; (q = strstr(p, emulator)); p = q + sizeof emulator - 1) {
        buf_add(out, p, (size_t)(q - p));
        buf_adds(out, "::musacoder::");
    }
    buf_adds(out, p);
}

bool ptx_plain(const char *text, bool extended, const struct ptx_operand *operands, size_t n, struct buf *head,
               struct buf *tail, char *failed, size_t n_failed)
{
    struct ptx x = {.extended = extended, .plain = true, .operands = operands, .n = n};

    ptx_run_template(&x, text);
    snprintf(failed, n_failed, "%s", x.failed);
    if (!x.failed[0]) {
        buf_adds(head, "do { ");
        ptx_add_labels(head, &x);
        ptx_add_uses(tail, &x);
        buf_add(tail, x.decls.p, x.decls.n);
        ptx_add_renamed(tail, x.out.n ? x.out.p : "");
        buf_adds(tail, "} while (0)");
    }
    ptx_free(&x);
    return !failed[0];
}
