/* watch.cc - what the host hands the device during one call of forward, as records (eval/hostflow.h), and what it reads
 * of it.
 *
 * Addresses: a block that lives since before the call is written as its address, one of this call as "#K+N": the K-th
 * block that was allocated, byte N. Memory that both sides see is compared around everything that the device does: what
 * changed in between was written by the host. Streams other than the call's own are noted, and on request held back, so
 * that one sees whether the call waits for them. */
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "json.h"
#include "process.h"

namespace {

constexpr size_t MAX_RECORDS = 20000, MAX_TEXT = 6 << 20, MAX_WORDS = 512, MAX_RUNS = 2048, GAP = 64;
constexpr size_t MAX_COMPARED = size_t(8) << 30; // bytes compared in one call; then memory is no longer looked at

struct Block {
    size_t n;
    long ordinal; // of this call, -1: older
};

struct Region {
    const void *device;
    size_t n;
    std::string name;
    unsigned char fill;
    bool fresh;             // nothing was seen of it yet: it holds fill
    std::vector<char> seen; // as the device left it
};

struct Side {
    void *stream;
    std::string kernel; // the last one launched there
};

std::recursive_mutex lock;
std::map<uintptr_t, Block> blocks;
std::map<char *, Region> regions;
std::vector<std::string> records;
std::vector<Side> sides;
size_t text_bytes, compared, read_bytes, folded;
uint64_t folded_hash;
long born;
int depth;
bool looking;    // at regions
bool shared;     // there is memory of the host's among the regions: the device must be done before it is looked at
void *main_stream;
thread_local std::string building;

extern lt_watch table;

uint64_t mix(uint64_t h, const void *p, size_t n)
{
    const unsigned char *s = static_cast<const unsigned char *>(p);

    for (; n >= 8; n -= 8, s += 8) {
        uint64_t w;
        memcpy(&w, s, 8);
        h = (h ^ w) * 0x9e3779b97f4a7c15ull;
        h ^= h >> 29;
    }
    for (; n > 0; n--, s++)
        h = (h ^ *s) * 0x100000001b3ull;
    return h ^ h >> 32;
}

/* ---- text ---- */

std::string address(uintptr_t p)
{
    char text[48];
    auto it = blocks.upper_bound(p);

    if (it != blocks.begin() && p - (--it)->first < it->second.n && it->second.ordinal >= 0)
        snprintf(text, sizeof text, "#%ld+%zx", it->second.ordinal, size_t(p - it->first));
    else
        snprintf(text, sizeof text, "%zx", size_t(p));
    return text;
}

void put_word(std::string &out, const void *bytes, size_t n, bool pointers)
{
    uint64_t w = 0;
    char text[24];

    memcpy(&w, bytes, n);
    if (pointers && n == 8 && w >> 16) {
        out += address(uintptr_t(w));
        return;
    }
    snprintf(text, sizeof text, "%llx", static_cast<unsigned long long>(w));
    out += text;
}

void put_label(std::string &out, const char *label, size_t n)
{
    out += "\t";
    out += label;
    out += ":" + std::to_string(n) + "=";
}

void put_words(std::string &out, const char *label, const void *bytes, size_t n, bool pointers)
{
    put_label(out, label, n);
    for (size_t i = 0; i < n; i += 8) {
        out += i ? "." : "";
        put_word(out, static_cast<const char *>(bytes) + i, n - i < 8 ? n - i : 8, pointers);
    }
}

/* Long contents: hashes of equal parts. */
void put_content(std::string &out, const char *label, const void *bytes, size_t n)
{
    size_t part = (n / MAX_WORDS + 8) / 8 * 8;
    char text[24];

    if (n <= MAX_WORDS * 8)
        return put_words(out, label, bytes, n, false);
    put_label(out, label, n);
    for (size_t i = 0; i < n; i += part) {
        snprintf(text, sizeof text, "%s%llx", i ? "." : "", static_cast<unsigned long long>(
                     mix(0, static_cast<const char *>(bytes) + i, n - i < part ? n - i : part)));
        out += text;
    }
}

void keep(std::string &text)
{
    if (records.size() >= MAX_RECORDS || text_bytes + text.size() > MAX_TEXT) {
        folded++;
        folded_hash = mix(folded_hash, text.data(), text.size());
    } else {
        text_bytes += text.size();
        records.push_back(std::move(text));
    }
    text.clear();
}

/* ---- memory that both sides see ---- */

size_t changed_bytes(const char *a, const char *b, size_t n)
{
    size_t k = 0;

    for (size_t i = 0; i < n; i++)
        k += a[i] != b[i];
    return k;
}

bool within_budget(size_t n)
{
    compared += n;
    if (compared > MAX_COMPARED && looking) {
        std::string text = "wrote\tmemory, no longer looked at\tno:8=1";
        looking = false;
        keep(text);
    }
    return looking;
}

/* One record for what the host changed in a region: runs of changed words, those near each other as one. */
void wrote(char *host, Region &r)
{
    const char *old = r.seen.data();
    std::string text = "wrote\t" + (r.name.empty() ? "device memory at " + address(uintptr_t(r.device)) : r.name);
    size_t runs = 0;

    for (size_t i = 0; i < r.n;) {
        size_t from, to;
        char label[24];

        while (i + 8 <= r.n && !memcmp(host + i, old + i, 8))
            i += 8;
        if (i >= r.n || !memcmp(host + i, old + i, r.n - i < 8 ? r.n - i : 8))
            break;
        for (from = i, to = i + 8; i < r.n && i < to + GAP; i += 8)
            if (memcmp(host + i, old + i, r.n - i < 8 ? r.n - i : 8))
                to = i + 8;
        if (++runs > MAX_RUNS || to > r.n)
            to = r.n;
        snprintf(label, sizeof label, "at%zx", from);
        put_content(text, label, host + from, to - from);
        i = to;
    }
    keep(text);
}

void look()
{
    if (!looking)
        return;
    for (auto &x : regions) {
        Region &r = x.second;
        if (!within_budget(r.n))
            return;
        if (r.fresh)
            r.seen.assign(r.n, char(r.fill)), r.fresh = false;
        if (memcmp(x.first, r.seen.data(), r.n))
            wrote(x.first, r);
    }
}

void remember(bool count)
{
    if (!looking)
        return;
    if (shared)
        process_sync();
    for (auto &x : regions) {
        Region &r = x.second;
        if (count && !within_budget(r.n))
            return;
        if (r.seen.size() != r.n || r.fresh)
            r.seen.assign(x.first, x.first + r.n), r.fresh = false;
        else if (memcmp(r.seen.data(), x.first, r.n)) {
            if (count && r.device == x.first) // the host can read it as it is
                read_bytes += changed_bytes(r.seen.data(), x.first, r.n);
            memcpy(r.seen.data(), x.first, r.n);
        }
    }
}

/* ---- the table ---- */

using Hold = std::lock_guard<std::recursive_mutex>;

void enter()
{
    Hold hold(lock);

    if (table.mode && depth++ == 0)
        look();
}

void leave_on(void *stream)
{
    Hold hold(lock);

    if (!table.mode || depth == 0 || --depth > 0)
        return;
    if (!shared || !process_capturing(stream))
        remember(true);
}

void leave()
{
    leave_on(process_stream());
}

void *plain(void *stream)
{
    return stream == reinterpret_cast<void *>(1) ? nullptr : stream; // cudaStreamLegacy
}

int side_of(void *stream)
{
    for (size_t i = 0; i < sides.size(); i++)
        if (sides[i].stream == stream)
            return int(i);
    if (sides.size() + 1 >= PROCESS_MARKS)
        return -1;
    sides.push_back({stream, ""});
    return int(sides.size()) - 1;
}

void launch_enter(void *stream, const char *kernel)
{
    Hold hold(lock);

    enter();
    if (!table.mode || plain(stream) == plain(main_stream) || process_capturing(stream))
        return;
    int i = side_of(plain(stream));
    if (i >= 0)
        sides[size_t(i)].kernel = kernel;
    if (table.mode & LT_WATCH_GATE)
        process_hold(stream);
}

void launch_leave(void *stream)
{
    Hold hold(lock);

    if (table.mode & LT_WATCH_GATE && plain(stream) != plain(main_stream) && !process_capturing(stream)) {
        int i = side_of(plain(stream));
        if (i >= 0)
            process_mark(i + 1, stream);
    }
    leave_on(stream);
}

void begin(const char *kind, const char *name)
{
    building = std::string(kind) + "\t";
    for (const char *s = name; *s; s++)
        building += *s == '\t' || *s == '\n' ? ' ' : *s;
}

/* Memory of the host that a kernel is given, seen for the first time: all that is there was written by somebody. */
void met(char *start, size_t n)
{
    lt_watch_region(start, start, n, "memory of the host", 0);
    if (!looking || !within_budget(n))
        return;
    Region &r = regions[start];
    r.seen.assign(n, 0);
    r.fresh = false;
    if (memcmp(start, r.seen.data(), n))
        wrote(start, r);
}

void words(const char *label, const void *bytes, size_t n)
{
    Hold hold(lock);

    for (size_t i = 0; i + 8 <= n; i += 8) {
        void *p, *start;
        size_t size;
        memcpy(&p, static_cast<const char *>(bytes) + i, 8);
        auto it = blocks.upper_bound(uintptr_t(p));
        bool known = it != blocks.begin() && uintptr_t(p) - (--it)->first < it->second.n;
        if (!known && uintptr_t(p) >> 16 && process_host_range(p, &start, &size) &&
            !regions.count(static_cast<char *>(start)))
            met(static_cast<char *>(start), size);
    }
    put_words(building, label, bytes, n, true);
}

void content(const char *label, const void *host, size_t n)
{
    put_content(building, label, host, n);
}

void end()
{
    Hold hold(lock);

    if (table.mode)
        keep(building);
    building.clear();
}

void read(size_t n)
{
    Hold hold(lock);

    read_bytes += table.mode ? n : 0;
}

void memory(const void *p, size_t n)
{
    Hold hold(lock);

    if (!p)
        return;
    if (n)
        blocks[uintptr_t(p)] = {n, table.mode ? born++ : -1};
    else
        blocks.erase(uintptr_t(p));
}

void host_memory(const void *p, size_t n)
{
    Hold hold(lock);
    char *start = static_cast<char *>(const_cast<void *>(p));

    memory(p, n);
    if (!n)
        return lt_watch_forget(p);
    lt_watch_region(start, p, n, "memory of the host", 0);
    if (looking && within_budget(n)) { // what lies in new memory is nobody's message
        regions[start].seen.assign(start, start + n);
        regions[start].fresh = false;
    }
}

lt_watch table = {0, 0, enter, leave, launch_enter, launch_leave, begin, words, content, end, read, memory, host_memory,
                  process_param_size};

} // namespace

extern "C" {

const struct lt_watch *lt_watch_table(void)
{
    return &table;
}

void lt_watch_region(void *host, const void *device, size_t n, const char *name, unsigned char fill)
{
    Hold hold(lock);

    regions[static_cast<char *>(host)] = {device, n, name ? name : "", fill, true, {}};
    shared |= device == host;
}

void lt_watch_forget(const void *host)
{
    Hold hold(lock);

    regions.erase(static_cast<char *>(const_cast<void *>(host)));
}

void lt_watch_begin(int mode)
{
    Hold hold(lock);

    records.clear();
    sides.clear();
    text_bytes = compared = read_bytes = folded = 0;
    folded_hash = 0;
    born = depth = 0;
    for (auto &b : blocks)
        b.second.ordinal = -1;
    main_stream = process_stream();
    // a stream that is held back would be waited for, were memory looked at
    looking = !(mode & LT_WATCH_GATE);
    remember(false);
    process_open_gate(false);
    table.mode = mode;
}

/* Does the call's stream wait for the others? What comes after it would start once 'main' is reached. */
static std::string unjoined()
{
    std::string who;

    if (!(table.mode & LT_WATCH_GATE) || process_capturing(main_stream))
        return who;
    process_mark(0, main_stream);
    process_wait(0);
    for (size_t i = 0; i < sides.size() && who.empty(); i++)
        if (!process_reached(int(i) + 1))
            who = sides[i].kernel;
    return who;
}

char *lt_watch_end(void)
{
    std::unique_lock<std::recursive_mutex> hold(lock);
    std::string out = "{\"records\":[", who = unjoined(), text;

    process_open_gate(true);
    look();
    if (folded) {
        text = "rest\t" + std::to_string(folded) + " records\thash:" + std::to_string(8 * folded) + "=";
        put_word(text, &folded_hash, 8, false);
        records.push_back(text);
    }
    for (auto &r : records)
        out += (&r == &records[0] ? "" : ",") + json_quoted(r);
    out += "],\"read\":" + std::to_string(read_bytes) + ",\"streams\":" + std::to_string(sides.size()) +
           ",\"unjoined\":" + (who.empty() ? "null" : json_quoted(who)) + "}";
    table.mode = 0;
    for (auto &x : regions) {
        x.second.seen = {};
        x.second.fresh = false;
    }
    records.clear();
    return strdup(out.c_str());
}

} // extern "C"
