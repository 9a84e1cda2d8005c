/* evidence.cc - what litetorch/runtime/api.cc asks of a process (process.h), in one without a device: nothing is
 * gathered here, because nothing that this process could say acquits it. */
#include "../runtime/process.h"
#include "front.h"

#include <cstdlib>
#include <cstring>

namespace {

void nothing() {}
void nothing_stream(void *, const char *) {}
void nothing_end(void *) {}
void nothing_words(const char *, const void *, size_t) {}
void nothing_begin(const char *, const char *) {}
void nothing_read(size_t) {}
void nothing_memory(const void *, size_t) {}
int no_size(const void *, size_t, size_t *) { return -1; }

const struct lt_watch table = {0, 0, nothing, nothing, nothing_stream, nothing_end, nothing_begin, nothing_words,
                               nothing_words, nothing, nothing_read, nothing_memory, nothing_memory, no_size};

} // namespace

extern "C" {

const struct lt_watch *lt_watch_table(void) { return &table; }
bool process_has_device(const void *p) { return front_has(p); }
bool process_is_inside(void) { return false; }
bool process_may_pause(void) { return false; }
int process_take(const void *, size_t, const char *) { return 0; }
void *process_stream(void) { return front_stream(); }

/* Calls a function of a candidate's library; a crash of its host code ends the process, which says where. */
int lt_invoke(void *f, void *self, const void *args, void *ret, char *message, size_t max)
{
    message[0] = 0;
    return reinterpret_cast<int (*)(void *, const void *, void *, char *, size_t)>(f)(self, args, ret, message, max);
}

} // extern "C"
