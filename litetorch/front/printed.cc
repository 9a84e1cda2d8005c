/* printed.cc - what a candidate's host code prints, printf and std::cout, marked as its Python half's print is
 * (Marked in runner/front_role.py): descriptor 1 carries other output too, and the record shows only the program's. */
#include <cstdio>
#include <iostream>
#include <streambuf>
#include <sys/uio.h>

namespace {

constexpr size_t LONGEST = 65535; /* of a piece: four hexadecimal digits */

/* Each line goes out at once: the process may crash or be ended in the next one. */
ssize_t put_marked(void *, const char *text, size_t n)
{
    for (size_t at = 0; at < n; at += LONGEST) {
        size_t k = n - at < LONGEST ? n - at : LONGEST;
        char head[6];
        iovec parts[] = {{head, 5}, {const_cast<char *>(text) + at, k}};

        snprintf(head, sizeof head, "\x1e%04zx", k);
        if (writev(1, parts, 2) < 0)
            return 0;
    }
    return static_cast<ssize_t>(n);
}

/* std::cout knows the stream that stdout was when the process began; this one asks what it is now. */
struct ToStdout : std::streambuf {
    int overflow(int c) override { return c == EOF ? 0 : putc(c, stdout); }
    std::streamsize xsputn(const char *text, std::streamsize n) override
    {
        return static_cast<std::streamsize>(fwrite(text, 1, static_cast<size_t>(n), stdout));
    }
    int sync() override { return fflush(stdout); }
};

} // namespace

extern "C" {

/* Once in a candidate's process, before its code runs. */
void front_printed_mark(void)
{
    cookie_io_functions_t io = {nullptr, put_marked, nullptr, nullptr};
    FILE *marked = fopencookie(nullptr, "w", io);

    if (!marked || setvbuf(marked, nullptr, _IOLBF, 4096) != 0)
        return;
    stdout = marked;
    std::cout.rdbuf(new ToStdout); /* lives as long as the process */
}

/* A line without its end. */
void front_printed_flush(void)
{
    fflush(stdout);
}
}
