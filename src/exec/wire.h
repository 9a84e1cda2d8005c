/* wire.h - what the client says to the executor: requests in a ring of shared memory, replies in slots.
 *
 * The client maps the area read-write and is hostile. The executor copies a message out of the ring before it looks at
 * it (wire_parse), then checks every number against its own tables. Nothing that the executor decides by is read from
 * the area: heads, tails and words below are hints, and a wrong one harms the client alone.
 *
 * A message is a wire_head, the op's struct, then 'tail' bytes (names, arguments, data), all little endian, padded to 8
 * bytes. Device addresses are true: the same number in the client, in kernel arguments and in the executor. */
#ifndef MC_EXEC_WIRE_H
#define MC_EXEC_WIRE_H

#include <assert.h>
#include <stdalign.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WIRE_VERSION 1u
#define WIRE_MAGIC 0x6365786du /* "mxec" */

/* Bytes of the area's parts, in this order: header page, reply slots, downloads of each slot, ring. */
#define WIRE_PAGE 4096u
#define WIRE_SLOTS 16u
#define WIRE_CHUNK (256u << 10) /* most bytes of one upload or download; larger copies are several requests */
#define WIRE_RING (4u << 20)
#define WIRE_SLOTS_AT WIRE_PAGE
#define WIRE_DOWN_AT (2 * WIRE_PAGE)
#define WIRE_RING_AT (WIRE_DOWN_AT + WIRE_SLOTS * WIRE_CHUNK)
#define WIRE_AREA (WIRE_RING_AT + WIRE_RING)

#define WIRE_NO_REPLY 0xffffu
#define WIRE_DIMS 12   /* most dimensions of a view */
#define WIRE_ATTRS 8   /* most attributes of a launch */
#define WIRE_PARAMS 256 /* most parameters of a kernel */
#define WIRE_ARGS (64u << 10) /* most bytes of a kernel's arguments; CUDA's own limit is 32,764 */
#define WIRE_NAME 4096u

/* Device memory lies in [WIRE_BASE, WIRE_BASE + info.reserved): the client maps this range without access. */
#define WIRE_BASE 0x200000000000ull

/* Results: CUDA's numbers (cudaError_t and CUresult agree on these), and two of the executor's own. */
enum wire_code {
    WIRE_OK = 0,
    WIRE_INVALID = 1,
    WIRE_OUT_OF_MEMORY = 2,
    WIRE_BAD_CONFIG = 9,
    WIRE_BAD_HANDLE = 400,
    WIRE_NOT_FOUND = 500,
    WIRE_NOT_READY = 600,
    WIRE_ILLEGAL_ADDRESS = 700,
    WIRE_TOO_MANY_RESOURCES = 701,
    WIRE_TIMEOUT = 702,
    WIRE_LAUNCH_FAILED = 719,
    WIRE_UNSUPPORTED = 801,
    WIRE_UNKNOWN = 999,
    WIRE_REFUSED = 10001, /* a rule of the judge forbids it: the executor's log says which */
    WIRE_GONE = 10002     /* no executor answers any more */
};

/* Kinds of a request, bits. */
enum {
    WIRE_REPLIES = 1, /* the client waits for a slot */
    WIRE_LOGGED = 2,  /* becomes an entry of the log and is played in order */
    WIRE_READS = 4    /* the reply depends on the device's progress: counted, and on the 1 ms grid within a call */
};

/* Streams: 0 is the legacy default stream, 1 the legacy one by name, 2 per thread; others come from STREAM_CREATE. */
#define WIRE_STREAM_LEGACY 1u
#define WIRE_STREAM_PER_THREAD 2u

struct wire_head {
    uint32_t bytes;  /* of the whole message, head and padding included; a multiple of 8 */
    uint16_t op;     /* enum wire_op */
    uint16_t slot;   /* where the reply goes, or WIRE_NO_REPLY */
    uint32_t ticket; /* what the slot's 'done' becomes; never 0 */
    uint32_t tail;   /* bytes behind the op's struct */
};

/* ---- memory ---- */

enum wire_alloc_kind {
    WIRE_ALLOC_POOL,  /* torch.empty and the like: no drain when it is replayed */
    WIRE_ALLOC_RAW,   /* cudaMalloc: drains */
    WIRE_ALLOC_ASYNC  /* cudaMallocAsync: in stream order */
};
struct wire_alloc { /* reply v[0]: address, aligned to 512 bytes; bytes == 0 gives address 0 */
    uint64_t bytes;
    uint32_t kind, stream;
};
struct wire_free {
    uint64_t addr;
    uint32_t kind, stream;
};
struct wire_memset { /* count elements of 'width' (1, 2, 4, 8 or 16) bytes, each equal to 'value' */
    uint64_t addr, count;
    uint8_t value[16];
    uint32_t width, stream;
};
struct wire_up { /* tail: the bytes, 1 to WIRE_CHUNK */
    uint64_t addr;
    uint32_t stream, zero;
};
struct wire_down { /* reply: n bytes in the slot's download area. Waits for the device. n: 1 to WIRE_CHUNK */
    uint64_t addr, n;
    uint32_t stream, zero;
};
struct wire_copy {
    uint64_t to, from, n;
    uint32_t stream, zero;
};
/* ---- data movement: views are in elements; sizes are shared; strides >= 0 ---- */
struct wire_fill { /* value: one element in the view's own type */
    uint64_t addr;
    uint32_t dtype, dims, stream, zero;
    uint8_t value[16];
    int64_t size[WIRE_DIMS], stride[WIRE_DIMS];
};
struct wire_strided { /* a copy, and a cast where the types differ. The destination must not overlap itself */
    uint64_t to, from;
    uint32_t to_dtype, from_dtype, dims, stream;
    int64_t size[WIRE_DIMS], to_stride[WIRE_DIMS], from_stride[WIRE_DIMS];
};
struct wire_arange { /* start + i * step, in double for floating types, else in int64 (the _i fields) */
    uint64_t addr, count;
    double start, step;
    int64_t start_i, step_i;
    uint32_t dtype, stream;
};
enum wire_random_kind { WIRE_UNIFORM, WIRE_NORMAL, WIRE_INTEGERS, WIRE_RANDOM_KINDS };
struct wire_random { /* uniform [a, b), normal (mean a, deviation b), integers [lo, hi) */
    uint64_t addr, count, seed, offset;
    double a, b;
    int64_t lo, hi;
    uint32_t dtype, kind, stream, zero;
};
struct wire_equal { /* reply v[0]: 1 if all elements are close (both tolerances 0: equal). Reads, and costs what it
                       compares */
    uint64_t a, b;
    uint32_t a_dtype, b_dtype, dims, equal_nan;
    double rtol, atol; /* |a - b| <= atol + rtol |b| */
    int64_t size[WIRE_DIMS], a_stride[WIRE_DIMS], b_stride[WIRE_DIMS];
};

/* ---- code ---- */
struct wire_module { /* an image that the judge has handed over. Reply v[0]: module */
    uint8_t sha256[32];
};
struct wire_function { /* tail: the name (on sim: simt/image.h's). Reply v[0]: function, download: wire_function_info */
    uint32_t module, zero;
};
struct wire_symbol { /* tail: the name. Reply v[0]: address, v[1]: bytes */
    uint32_t module, zero;
};
struct wire_func_attr {
    uint32_t function;
    int32_t attr, value, zero; /* CU_FUNC_ATTRIBUTE_* numbers; 8 is the limit of dynamic shared memory */
};
struct wire_occupancy { /* reply v[0]: blocks a multiprocessor */
    uint32_t function, threads;
    uint64_t shared;
};
enum wire_attr_kind { /* CUlaunchAttributeID's numbers */
    WIRE_ATTR_WINDOW = 1,
    WIRE_ATTR_COOPERATIVE = 2,
    WIRE_ATTR_CLUSTER = 4,
    WIRE_ATTR_CLUSTER_POLICY = 5,
    WIRE_ATTR_PDL = 6, /* programmatic stream serialisation */
    WIRE_ATTR_PRIORITY = 8,
    WIRE_ATTR_CARVEOUT = 14
};
struct wire_attr {
    uint32_t kind;
    uint32_t v[3];
};
struct wire_launch { /* tail: the arguments as one blob, each at its parameter's offset */
    uint32_t function, stream;
    uint32_t grid[3], block[3];
    uint32_t shared, attrs; /* dynamic shared memory in bytes; entries of attr[] that are used */
    struct wire_attr attr[WIRE_ATTRS];
};
struct wire_param {
    uint32_t offset, bytes;
};
struct wire_function_info {
    uint32_t params, args_bytes; /* args_bytes: least size of the blob; 0 on sim: the image checks */
    uint32_t static_shared, max_dynamic, max_threads, registers, local, constant, binary, ptx;
    struct wire_param param[WIRE_PARAMS];
};
struct wire_tensor_map { /* cuTensorMapEncodeTiled. Reply: 128 bytes in the download area */
    uint64_t addr, size[5], stride[5]; /* strides in bytes, of dimensions 1 and up */
    uint32_t box[5], element_stride[5];
    uint32_t type, rank, interleave, swizzle, l2, fill;
};

/* ---- order ---- */
struct wire_stream_create { /* reply v[0]: stream */
    uint32_t flags;         /* 1: does not wait for the legacy stream */
    int32_t priority;
};
struct wire_stream { /* STREAM_DESTROY, STREAM_SYNC, STREAM_QUERY (reads; WIRE_NOT_READY) */
    uint32_t stream, zero;
};
struct wire_event_create { /* reply v[0]: event */
    uint32_t flags, zero;
};
struct wire_event { /* EVENT_DESTROY, RECORD, WAIT (the stream waits), SYNC, QUERY (reads) */
    uint32_t event, stream;
};
struct wire_elapsed { /* reads; reply v[0]: the bits of a float, milliseconds. Counts as 4 bytes down */
    uint32_t from, to;
};
struct wire_nothing {
    uint64_t zero;
};
/* What a program asked for and no executor has: X(number's name, what the record calls it, in words). Append only. */
#define WIRE_LACKS(X)                                                                                                  \
    X(OTHER, "not_supported", "a function of the runtime that an executor does not have")                              \
    X(MANAGED, "managed_memory", "host memory is never mapped for the device")                                         \
    X(CAPTURES, "launch_captures", "a launch that names its kernel through several pointers of the host")              \
    X(LAUNCH, "launch_by_pointer", "this way to launch a kernel is not there; use kernel<<<...>>>(...)")               \
    X(GRAPHS, "cuda_graphs", "graphs made or changed node by node, or with copies from the host")                      \
    X(HOST_FUNCTION, "host_function", "functions of the host on a stream")                                             \
    X(HOST_MEMORY, "mapped_host_memory", "host memory that is mapped for the device")                                  \
    X(TEXTURES, "textures", "textures and surfaces")                                                                   \
    X(PEERS, "peers", "several devices")                                                                               \
    X(IMAGES, "images_at_run_time", "code for the device that is made or read at run time")                            \
    X(CLUSTERS, "clusters", "clusters of blocks")                                                                      \
    X(DRIVER, "driver_api", "a function of the driver")                                                                \
    X(TENSOR_MAPS, "tensor_maps", "tensor maps")                                                                       \
    X(LANGUAGE, "other_language", "kernels in another language than CUDA and MUSA C++")                                \
    X(TORCH, "torch_api", "a part of PyTorch that needs a device in its own process")                                  \
    X(AUTOGRAD, "autograd", "PyTorch's automatic differentiation on the device")
enum wire_lack {
#define WIRE_LACK_ENUM(name, code, text) WIRE_LACK_##name,
    WIRE_LACKS(WIRE_LACK_ENUM)
#undef WIRE_LACK_ENUM
    WIRE_LACK_COUNT
};
struct wire_note { /* the client asked for this, in vain. It may be said on purpose: rules.c says what it excuses */
    uint32_t lack, zero;
};

/* X(name, struct, most bytes of tail, kind bits). The order is the protocol: append only. */
#define WIRE_OPS(X)                                                                                                    \
    X(ALLOC, wire_alloc, 0, WIRE_REPLIES | WIRE_LOGGED)                                                                \
    X(FREE, wire_free, 0, WIRE_LOGGED)                                                                                 \
    X(MEMSET, wire_memset, 0, WIRE_LOGGED)                                                                             \
    X(UP, wire_up, WIRE_CHUNK, WIRE_LOGGED)                                                                            \
    X(DOWN, wire_down, 0, WIRE_REPLIES | WIRE_LOGGED | WIRE_READS)                                                     \
    X(COPY, wire_copy, 0, WIRE_LOGGED)                                                                                 \
    X(FILL, wire_fill, 0, WIRE_LOGGED)                                                                                 \
    X(STRIDED, wire_strided, 0, WIRE_LOGGED)                                                                           \
    X(ARANGE, wire_arange, 0, WIRE_LOGGED)                                                                             \
    X(RANDOM, wire_random, 0, WIRE_LOGGED)                                                                             \
    X(EQUAL, wire_equal, 0, WIRE_REPLIES | WIRE_READS)                                                                 \
    X(MODULE, wire_module, 0, WIRE_REPLIES | WIRE_LOGGED | WIRE_READS)                                                 \
    X(FUNCTION, wire_function, WIRE_NAME, WIRE_REPLIES | WIRE_LOGGED | WIRE_READS)                                     \
    X(SYMBOL, wire_symbol, WIRE_NAME, WIRE_REPLIES | WIRE_LOGGED | WIRE_READS)                                         \
    X(FUNC_ATTR, wire_func_attr, 0, WIRE_LOGGED)                                                                       \
    X(OCCUPANCY, wire_occupancy, 0, WIRE_REPLIES)                                                                      \
    X(LAUNCH, wire_launch, WIRE_ARGS, WIRE_LOGGED)                                                                     \
    X(TENSOR_MAP, wire_tensor_map, 0, WIRE_REPLIES)                                                                    \
    X(STREAM_CREATE, wire_stream_create, 0, WIRE_REPLIES | WIRE_LOGGED)                                                \
    X(STREAM_DESTROY, wire_stream, 0, WIRE_LOGGED)                                                                     \
    X(STREAM_SYNC, wire_stream, 0, WIRE_LOGGED)                                                                        \
    X(STREAM_QUERY, wire_stream, 0, WIRE_REPLIES | WIRE_READS)                                                         \
    X(EVENT_CREATE, wire_event_create, 0, WIRE_REPLIES | WIRE_LOGGED)                                                  \
    X(EVENT_DESTROY, wire_event, 0, WIRE_LOGGED)                                                                       \
    X(EVENT_RECORD, wire_event, 0, WIRE_LOGGED)                                                                        \
    X(EVENT_WAIT, wire_event, 0, WIRE_LOGGED)                                                                          \
    X(EVENT_SYNC, wire_event, 0, WIRE_LOGGED)                                                                          \
    X(EVENT_QUERY, wire_event, 0, WIRE_REPLIES | WIRE_READS)                                                           \
    X(ELAPSED, wire_elapsed, 0, WIRE_REPLIES | WIRE_READS)                                                             \
    X(DEVICE_SYNC, wire_nothing, 0, WIRE_LOGGED)                                                                       \
    X(MEM_INFO, wire_nothing, 0, WIRE_REPLIES)                                                                         \
    X(FENCE, wire_nothing, 0, WIRE_REPLIES)                                                                            \
    X(NOTE, wire_note, 0, WIRE_LOGGED)

enum wire_op {
#define WIRE_ENUM(name, type, tail, kind) WIRE_##name,
    WIRE_OPS(WIRE_ENUM)
#undef WIRE_ENUM
    WIRE_OP_COUNT
};

/* ---- the shared area ---- */

/* What the device is, for cudaGetDeviceProperties and checks before a launch. Written once, before the client starts.
 * */
struct wire_info {
    char name[256];
    uint64_t memory, reserved; /* bytes a recording may hold; bytes of addresses behind WIRE_BASE */
    uint64_t shared_block, shared_optin, shared_multiprocessor, constant, pitch;
    int32_t regs_block, regs_multiprocessor, warp, threads_block, dim[3], grid[3], clock_khz;
    int32_t major, minor, multiprocessors, threads_multiprocessor, blocks_multiprocessor;
    int32_t l2, memory_clock_khz, memory_bus;
    int32_t cooperative, persisting_l2, backend; /* backend: 0 sim, 1 cuda, 2 musa */
    int32_t reaches_host; /* kernels can read and write the executor's own memory (HMM) */
};

struct wire_area {
    uint32_t magic, version, bytes, spin_ns; /* spin_ns: how long a waiting side looks before it sleeps */
    struct wire_info info;
    alignas(64) uint64_t head; /* bytes ever written to the ring; the client's */
    alignas(64) uint64_t tail; /* bytes ever taken from it; the executor's */
    alignas(64) uint32_t asleep; /* the executor waits for the bell (an eventfd) */
    uint32_t blocked;             /* producers that wait for room, on the low word of tail */
    int32_t error;                /* the sticky error of the device, WIRE_OK so far */
};

struct wire_slot {
    alignas(64) uint32_t done; /* the ticket whose reply is here; futex */
    uint32_t waiting;           /* the client sleeps on 'done' */
    int32_t code;               /* enum wire_code */
    uint32_t down;              /* bytes in the slot's download area */
    uint64_t v[4];
};

static_assert(sizeof(struct wire_area) <= WIRE_PAGE, "the header is one page");
static_assert(WIRE_SLOTS * sizeof(struct wire_slot) <= WIRE_PAGE, "the slots are one page");

/* ---- parsing: pure, for the executor and the fuzzer ---- */

union wire_body {
#define WIRE_MEMBER(name, type, tail, kind) struct type name;
    WIRE_OPS(WIRE_MEMBER)
#undef WIRE_MEMBER
};

struct wire_request {
    struct wire_head head;
    union wire_body body;
    const uint8_t *tail; /* head.tail bytes within the parsed message */
};

const char *wire_name(unsigned op);  /* "LAUNCH"; NULL past the last */
unsigned wire_kind(unsigned op);     /* bits; 0 past the last */
size_t wire_size(unsigned op);       /* bytes of the op's struct; 0 past the last */
size_t wire_message(unsigned op, size_t tail); /* bytes of the whole message */

/* Takes a private copy of a message apart. False where sizes do not fit the op; addresses and handles are not looked
 * at. *ret points into msg. */
bool wire_parse(const void *msg, size_t n, struct wire_request *ret);
/* Sizes and strides of a view are sane: dims and dtype known, no negative number, no overflow. *ret_lo, *ret_hi: bytes
 * from its address that it touches (equal when empty). */
bool wire_view_span(uint32_t dtype, uint32_t dims, const int64_t *size, const int64_t *stride, uint64_t *ret_bytes);
/* No two of its elements share an address, as far as the usual test by sorted strides can tell. */
bool wire_view_injective(uint32_t dims, const int64_t *size, const int64_t *stride);

#endif
