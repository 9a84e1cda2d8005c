/* changed.c - see changed.h. Common ends are cut off first; the rest is the textbook's table of suffix lengths. */
#include "train/changed.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* len[i * (m + 1) + j]: length of the longest common subsequence of before[i..] and after[j..]. */
static void changed_mark(const int32_t *before, size_t n, const int32_t *after, size_t m, uint8_t *mask)
{
    uint16_t *len = xcalloc((n + 1) * (m + 1), sizeof *len);
    size_t w = m + 1, i = 0, j = 0;

    for (size_t a = n; a-- > 0;)
        for (size_t b = m; b-- > 0;) {
            uint16_t down = len[(a + 1) * w + b], right = len[a * w + b + 1];
            uint16_t both = (uint16_t)(len[(a + 1) * w + b + 1] + 1);

            len[a * w + b] = before[a] == after[b] ? both : down > right ? down : right;
        }
    while (i < n && j < m) {
        if (before[i] == after[j]) {
            mask[j] = 0;
            i++, j++;
        } else if (len[(i + 1) * w + j] >= len[i * w + j + 1]) {
            i++;
        } else {
            j++;
        }
    }
    free(len);
}

void changed_tokens(const int32_t *before, size_t n, const int32_t *after, size_t m, uint8_t *mask)
{
    size_t head = 0, tail = 0;

    memset(mask, 1, m);
    while (head < n && head < m && before[head] == after[head])
        mask[head++] = 0;
    while (tail < n - head && tail < m - head && before[n - 1 - tail] == after[m - 1 - tail])
        mask[m - 1 - tail++] = 0;
    n -= head + tail;
    m -= head + tail;
    if (n && m && n <= (size_t)CHANGED_MAX * CHANGED_MAX / m && n < UINT16_MAX && m < UINT16_MAX)
        changed_mark(before + head, n, after + head, m, mask + head);
}
